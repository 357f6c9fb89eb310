"""What polling asks next: what is live, as often as was set, and all else in its turn; and what follows from answers.

A target's next run is planned when its answer is there, or when it hangs; what the database says of the document comes
later, and moves the next run only if the target is at fault or waits for another.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import inf
from types import MappingProxyType

from sanderling.apis.polled import PolledKind
from sanderling.clock import Timer
from sanderling.engine.classes import Class
from sanderling.engine.flights import SUPERSEDED, UNANSWERED
from sanderling.engine.ports import Settled
from sanderling.engine.rules import EngineRules
from sanderling.outcome import Code, Outcome
from sanderling.polling.adaptive import Adapter
from sanderling.polling.cadence import pause
from sanderling.polling.document_writer import NOT_NOW, DocumentWriter, Keeper, Kept, Unsaved, failed
from sanderling.polling.handler import NOWHERE, PolledAnswer, PollingHandler
from sanderling.polling.hosts import PolledHost
from sanderling.polling.measures import PollingMeasures
from sanderling.polling.settings import OFF
from sanderling.polling.target_sync import TargetSync
from sanderling.polling.targets import PollResult, PollRun, ScheduledTarget
from sanderling.stores.documents import Document
from sanderling.stores.polling import PolledDocument, PollingStoreError
from sanderling.task import Blame

WAIT = 1.0  # seconds until a target asks again that waits for another
# A live target that fails so often in a row while its host answers others is asked about once a second: as often as a
# host that is down.
FAILING, LIVE_PAUSE = 10, 1.0
# Of permits, where they are scarce: what is live is ten times as often next as all else, which does not starve.
WEIGHTS = MappingProxyType(dict.fromkeys(Class, 10.0) | {Class.LIVE: 90.0})
# Requests at a host are bounded, by a setting; there is no bound for all hosts.
ENGINE = EngineRules(
    slots=10**6, weights=WEIGHTS, contract=True, slotless=frozenset({Class.LIVE}), hangs=1.0, most_hanging=4
)
PATIENCE = 10.0  # seconds that a target waits for others at most
NO_ROOM = PollingStoreError("too many documents wait for the database")


class Needs:
    """Which documents wait for others: those of a kind whose rows refer to what a needed kind brings.

    It spares requests at the beginning, when everything is new. What was stored once never waits again, and nothing
    waits for long: a needed document may be paused, switched off or broken, and then the rows themselves decide.
    """

    def __init__(self, kinds: Iterable[PolledKind]) -> None:
        self._needs = {kind.name: kind.needs for kind in kinds}
        self._had: set[tuple[str, str]] = set()
        self._since: dict[int, float] = {}
        self._waiting: dict[str, dict[int, None]] = {}  # targets by event

    def load(self, had: Iterable[tuple[str, str]]) -> None:
        """Take up what was had before, by event and kind."""
        self._had.update(had)

    def lacking(self, target: int, event: str, kind: str, now: float) -> tuple[str, ...]:
        """The kinds that this one, which was never had, waits for; none once it has waited long enough."""
        lacking = tuple(need for need in self._needs.get(kind, ()) if (event, need) not in self._had)
        if not lacking:
            self._since.pop(target, None)
            return ()
        if now - self._since.setdefault(target, now) >= PATIENCE:
            return ()
        self._waiting.setdefault(event, {})[target] = None
        return lacking

    def had(self, event: str, kind: str) -> tuple[int, ...]:
        """Note that one of these went well; the targets that may have waited for it, if it is the first."""
        if (event, kind) in self._had:
            return ()
        self._had.add((event, kind))
        return tuple(self._waiting.pop(event, ()))

    def forget(self) -> None:
        """Everything is gone."""
        self._had.clear()
        self._since.clear()
        self._waiting.clear()


class PollingSource:
    """Targets, by host. `look` whenever something may have become due."""

    loading = True  # targets are due again and again

    def __init__(
        self,
        handler: PollingHandler,
        sync: TargetSync,
        keeper: Keeper,
        needs: Needs,
        writer: DocumentWriter,
        adapter: Adapter,
    ) -> None:
        self.burst = OFF.burst
        self.paused = True  # until there are settings
        self._until = inf  # while it drains: when what is asked for fell due at the latest
        self.wake: Callable[[Iterable[PolledHost]], object] = lambda _: None  # these have something to ask for
        self.measures: PollingMeasures = keeper.measures
        self._adapter = adapter
        self._handler = handler
        self._schedule = sync.schedule
        self._sync = sync
        self._keeper = keeper
        self._needs = needs
        self._writer = writer
        self._clock = handler.clock
        self._asked: defaultdict[int, list[asyncio.Future[PollResult]]] = defaultdict(list)
        self._timer: Timer | None = None  # of targets that cannot be asked about

    # What the engine asks.

    def classes(self, host: PolledHost, now: float) -> Sequence[Class]:
        """What is live, and what is not, if something is due."""
        live, usual = host.live.due(now), host.usual_due(self.burst, now)
        return [of for of, due in ((Class.LIVE, live), (Class.NEW, usual)) if due <= now]

    def due(self, host: PolledHost, now: float) -> float | None:
        """When the next one falls due."""
        due = min(host.live.due(now), host.usual_due(self.burst, now))
        return None if due == inf else due

    def take(self, host: PolledHost, of: Class, now: float) -> PollRun | None:
        """The most urgent one; None if it has to wait for another."""
        entry = host.pick(of, now)
        if entry is not None and entry.at > self._until and entry.id not in self._asked:
            self._schedule.started(entry)
            self._schedule.finish(entry, now)  # for the next process
            return None
        return None if entry is None else self._begin(entry, now, live=of is Class.LIVE)

    def take_untried(self, host: PolledHost, now: float) -> PollRun | None:  # noqa: ARG002 - the port's
        """Nothing is a probe here: every request is work."""
        return None

    def enough(self, inflight: int) -> bool:  # noqa: ARG002 - the port's
        """It never is, unless it drains: then what is due now is the last, and all documents are written."""
        if self._until == inf or not self._writer.idle:
            return False
        now, hosts = self._clock.now(), self._schedule.hosts.values()
        return not any(min(each.live.due(now), each.usual.due(now)) <= now for each in hosts if each.name != NOWHERE)

    def drain(self) -> None:
        """Ask for what is due once more, and for nothing that falls due later."""
        self._until = min(self._until, self._clock.now())

    def _begin(self, entry: ScheduledTarget, now: float, *, live: bool) -> PollRun | None:
        """Begin a run, unless the target has to wait for others."""
        self._schedule.started(entry)
        asked = self._asked.pop(entry.id, [])
        lacking = self._needs.lacking(entry.id, entry.event, entry.kind, now) if entry.fetched is None else ()
        if lacking and not asked:
            entry.status = f"waiting for {','.join(lacking)}"
            self._schedule.finish(entry, now, at=now + min(WAIT, entry.interval))
            self._sync.note(entry)
            return None
        entry.late = max(0.0, now - entry.at)
        return PollRun(entry, now, live, entry.late, asked)

    # What the engine says.

    def settled(self, host: PolledHost, work: PollRun, settled: Settled[PolledAnswer], now: float) -> None:
        """It was asked for."""
        answer = settled.result or PolledAnswer(settled.outcome, now - work.began)
        self._end(host, work, answer, now)
        self._schedule.woken.pop(host.name, None)  # it gets its next turn anyway
        self.look()

    def later(self, host: PolledHost, work: PollRun, outcome: Outcome, due: float) -> None:  # noqa: ARG002 - on its grid
        """It was cut off, or takes long: then the next one leaves in its time, beside it."""
        now = self._clock.now()
        if outcome is UNANSWERED:
            work.entry.status = f"not now: {outcome.detail}"
            self._plan(work, now)
        else:
            self.settled(host, work, Settled(outcome), now)

    def failed(self, host: PolledHost, work: PollRun, outcome: Outcome, failures: int, due: float | None) -> None:  # noqa: ARG002 - the port's
        """Never: what fails is planned here."""
        self.settled(host, work, Settled(outcome), self._clock.now())

    def leave(self, host: PolledHost, outcome: Outcome, due: float) -> None:
        """Never: a host is asked for as long as somebody wants that."""

    def welcome(self, host: PolledHost) -> None:
        """Never: it was not set aside."""

    def written(self, result: object) -> Iterable[PolledHost]:  # noqa: ARG002 - who waits for a document is told
        """Nobody waited for a group."""
        return ()

    # What follows.

    def _end(self, host: PolledHost, run: PollRun, answer: PolledAnswer, now: float) -> None:
        entry, code = run.entry, answer.outcome.code
        self.measures.ran(entry.kind, code, late=run.late, seconds=answer.seconds, accelerated=run.live)
        if run.over and answer.outcome is SUPERSEDED:
            run.tell(failed(answer.outcome))  # a later run says how it went
            return
        if answer.document is not None or code is Code.NOT_MODIFIED:
            host.serve(run, answer.seconds)
        elif answer.outcome is SUPERSEDED:
            entry.took = answer.seconds  # or one that takes longer by now would never be had
        own = self._blames_target(host, entry, answer.outcome, now)
        run.since = entry.usual if entry.ran is None else now - entry.ran  # `asked` is on a clock that somebody may set
        entry.runs += 1
        entry.ran, entry.asked = now, self._clock.wall()
        if answer.document is not None:
            self._plan(run, now)
            self._write(run, answer, answer.document)
            return
        if code is Code.NOT_MODIFIED:
            if answer.raw:  # all of it came, and is the same: what it is known by may be new
                entry.etag, entry.modified, entry.raw = answer.etag, answer.modified, answer.raw
            result = PollResult(self._keeper.status(entry))
        else:
            result = failed(answer.outcome)
        own = own and result.failed
        self._conclude(run, result, now, own=own)
        asked_for = 0.0 if result.ok else answer.outcome.retry_after or 0.0
        self._plan(run, now, self._pause(entry) if own else asked_for)
        run.tell(result)

    def _write(self, run: PollRun, answer: PolledAnswer, document: Document) -> None:
        """Keep what it said. Nobody is held up by that."""
        entry = run.entry
        told = PolledDocument(
            entry.kind,
            entry.source_id,
            entry.event,
            document,
            self._clock.wall(),
            answer.etag,
            answer.modified,
            answer.digest,
        )
        done = partial(self._kept, run, answer)
        if not self._writer.put(Unsaved(told, answer.size, done, run.asked)):
            done(NO_ROOM)

    def _kept(self, run: PollRun, answer: PolledAnswer, kept: Kept) -> None:
        """What became of its document: stored, not yet, or refused."""
        entry, now = run.entry, self._clock.now()
        result = self._keeper.settle(run, answer, kept)
        self._conclude(run, result, now, own=result.failed)
        if result.waits:
            self._schedule.replan(entry, now, at=now + min(WAIT, entry.interval))
        elif result.failed:
            self._schedule.replan(entry, now, away=self._pause(entry))
        if not entry.dropped:  # or what is stored of it by now would be undone
            self._sync.note(entry)
        run.tell(result)
        self.look()

    def _conclude(self, run: PollRun, result: PollResult, now: float, *, own: bool) -> None:
        """Note how a run ended; `own` if it is the target that fails."""
        entry = run.entry
        entry.status = result.status
        entry.failures = entry.failures + 1 if own else 0 if result.ok else entry.failures
        if not result.ok:
            return
        entry.fetched = self._clock.wall()
        for number in self._needs.had(entry.event, entry.kind):
            if (other := self._schedule.entries.get(number)) is not None:
                self._schedule.promote(other, now)
        self._adapter.ran(entry, run.since, changed=result.changes > 0)
        self._schedule.set_usual(entry, self._adapter.interval(entry), now)

    def _plan(self, run: PollRun, now: float, away: float = 0.0) -> None:
        entry = run.entry
        if not run.over:
            run.over = True
            if missed := self._schedule.finish(entry, now, away=away):
                self.measures.missed(entry.kind, missed)
        if not entry.dropped:
            self._sync.note(entry)

    def _blames_target(self, host: PolledHost, entry: ScheduledTarget, outcome: Outcome, now: float) -> bool:
        """Whether a failure is the target's own, and no outage: the host has answered others since the last run.

        What is live never pauses for long, whoever is to blame.
        """
        if outcome.ok or outcome.code in NOT_NOW:
            return True
        # It may have been let go from memory meanwhile.
        ran = now - entry.interval if entry.ran is None else entry.ran
        if outcome.blames_host:
            return host.answered is not None and host.answered > ran
        return not host.answers_wrongly(entry, ran) or entry.live

    def _pause(self, entry: ScheduledTarget) -> float:
        """Seconds to stay away for the target's own failures."""
        if entry.live:
            return 0.0 if entry.failures < FAILING else LIVE_PAUSE
        return pause(entry.failures, entry.interval, self._schedule.rng)

    # What may have become due.

    def look(self) -> None:
        """Let the hosts have their turn at which something may be due."""
        woken, self._schedule.woken = self._schedule.woken, {}
        if woken.pop(NOWHERE, None) is not None:
            self._end_unaskable()
        if woken:
            self.wake(woken.values())

    def _end_unaskable(self) -> None:
        """Targets that cannot be asked about fail in their time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        host, now = self._schedule.hosts.get(NOWHERE), self._clock.now()
        while host is not None and not self.paused and (classes := self.classes(host, now)):
            run = self.take(host, classes[0], now)
            if run is not None:
                self._end(host, run, PolledAnswer(self._handler.problem(run.entry) or UNANSWERED, 0.0), now)
        if host is not None and not self.paused and (due := self.due(host, now)) is not None:
            self._timer = self._clock.call_later(due - now, self._end_unaskable)
        self._schedule.woken.pop(NOWHERE, None)

    # What people ask for.

    async def now(self, entry: ScheduledTarget) -> PollResult:
        """PollRun a target as soon as it can be, and say how it went. It must be in the schedule."""
        future: asyncio.Future[PollResult] = asyncio.get_running_loop().create_future()
        self._asked[entry.id].append(future)
        if entry.running or not self.paused:
            self._schedule.promote(entry, self._clock.now())
            self.look()
        else:  # nothing is polled now, but this was asked for
            await self._ask_now(entry)
        return await future

    async def _ask_now(self, entry: ScheduledTarget) -> None:
        host = self._schedule.hosts[entry.host]
        run = self._begin(entry, self._clock.now(), live=entry.live)
        if run is None:  # never: somebody asked for it
            return
        try:
            settled = await self._handler(run, None, Blame(run.key))
        except BaseException:
            self._schedule.finish(entry, self._clock.now())
            raise
        self.settled(host, run, settled, self._clock.now())

    def close(self) -> None:
        """Nothing is asked for any more: whoever waits for it need not."""
        self.paused = True
        if self._timer is not None:
            self._timer.cancel()
        for future in (each for asked in self._asked.values() for each in asked):
            future.cancel()
