"""One run: requests what is due, hears what became of it, and writes it down.

One task decides what is sent next, within `workers` and as the limiter allows; a task a request; one task that commits.
Work comes from four places: new ids, ids that are asked again, probes that look for the end of a gap, and a record that
is known, which shows whether a host that fails is well.
"""

import asyncio
from collections import Counter
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import Protocol

from sanderling.clock import Clock
from sanderling.fetch.client import Read
from sanderling.fetch.messages import Headers, HttpRequest, HttpResponse
from sanderling.files import Exit
from sanderling.limit import Limiter, Permit
from sanderling.observe.alerts import Alert, Alerts, Level
from sanderling.observe.control import Control, ControlRequest
from sanderling.observe.log import log
from sanderling.observe.report import Report
from sanderling.outcome import Outcome
from sanderling.sequence.atlas import SUPERCHARGE, AtlasLaw
from sanderling.sequence.description import IdAnswer, IdApi, Meaning, outcome_of
from sanderling.sequence.follower import Follower
from sanderling.sequence.guarded import workers_for
from sanderling.sequence.health import HostHealth
from sanderling.sequence.later import LaterWork
from sanderling.sequence.options import LARGEST_ID, SequenceOptions
from sanderling.sequence.readings import Metrics, show_elapsed
from sanderling.sequence.retries import DISABLED, RETRIES, Reason, is_retried, offload_tries
from sanderling.sequence.searching import GapWalk
from sanderling.sequence.store import Missed, SavedState, SequenceStore, Visit
from sanderling.sequence.storing import Storing
from sanderling.sequence.targets import RetryQueue

GRACE = 10.0  # seconds for what is in flight when we stop
COMMIT = 0.2  # seconds between commits
LOOK = 1.0  # seconds between looks at what is due again
STATUS_SECONDS = 300.0  # between two status messages
RETRY_SHARE = 4  # one of so many requests is a retry or a visit, where there are new ids as well
ASKED_SHARE = 2  # the same, for what a person wants to be asked again
MISSES_IN_ROW = 150  # ids that are not there, below what the API says its newest is: a gap
MOST_REFUSALS = 3  # of a new id, which then waits elsewhere: it must not hold up those behind it
VISIT_AGAIN = 3600.0  # seconds until a visit that failed is made again
ALERT_PAUSE = 60.0  # seconds between two messages about single ids
LOOKS = 8  # of one search that the law of the seed asks for
BY_REASON = {
    Meaning.HIDDEN: Reason.HIDDEN,
    Meaning.BAD_FORMAT: Reason.BAD_FORMAT,
    Meaning.ERROR: Reason.ERROR,
    Meaning.REFUSED: Reason.REFUSED,
    Meaning.MISSING: Reason.NOT_FOUND,
}


# Messages of the seed, by how often a missed id was tried in vain.
UNRESOLVED = {3: "Unresolved Instance (Warning)", 6: "Unresolved Instance"}


class Sender(Protocol):
    """What sends requests: the client, or a test's."""

    async def send(
        self,
        request: HttpRequest,
        permit: Permit | None = None,
        *,
        read: Read | None = None,
        item: Hashable = None,
        of_host: bool = False,
    ) -> HttpResponse:
        """Send it, and report to the permit how it went."""


@dataclass(slots=True)
class Inquiry:
    """What one request is for."""

    kind: str  # new, again, visit, probe or check
    numbers: tuple[int, ...]
    missed: Missed | None = None
    visit: Visit | None = None


@dataclass(slots=True)
class SequenceFigures:
    """What this process has seen."""

    answers: Counter[Meaning] = field(default_factory=Counter)
    requests: int = 0
    probes: int = 0
    checks: int = 0
    stored: int = 0
    skipped: int = 0
    visited: int = 0
    changed: int = 0
    deleted: int = 0
    lag: float | None = None  # of the newest record
    latency: float = 0.0  # of most requests


@dataclass(frozen=True, slots=True)
class SequenceParts:
    """What a run is made of."""

    options: SequenceOptions
    api: IdApi
    host: str
    store: SequenceStore
    storing: Storing
    metrics: Metrics
    client: Sender
    limiter: Limiter
    alerts: Alerts
    clock: Clock
    random: Random
    headers: Headers = ()
    retry_queue: RetryQueue | None = None


class SequenceRun:
    """A sequence that is followed, as the shell sees it."""

    def __init__(self, parts: SequenceParts, state: SavedState) -> None:
        self.parts = parts
        self.state = state
        self.storing = parts.storing
        self.figures = SequenceFigures()
        options = parts.options
        self.follower = Follower(
            state.position,
            parts.api.description.stride * options.stride,
            LARGEST_ID if options.until is None else options.until,
            options.first_workers,
        )
        self.walk = GapWalk(self.follower, state, parts.storing, parts.alerts, parts.clock)
        self.workers = options.first_workers
        self.law = AtlasLaw(self) if options.scaling == "atlas" else None
        self.missed_counts: dict[tuple[str, bool], int] = {}
        self.health = HostHealth(parts.alerts)
        self.later = LaterWork(parts.store, parts.storing, parts.clock, parts.random)
        self.stopped = False
        self.wanted = Control()
        self.committed = asyncio.Event()  # set by each commit
        self._refused: Counter[int] = Counter()  # how often new ids were refused
        self._given = state.given  # as the last commit has it
        self._in_flight = 0
        self._turn = 0
        self._wake = asyncio.Event()
        self._committing = asyncio.Lock()
        self._missing_in_row = 0
        self._known: int | None = None  # an id that is known to exist
        self._no_retries = False  # the store has none within its first retries
        self._alerted_at = -inf  # about a single id

    async def run(self) -> Exit:
        """Follow the ids until the last has been decided, or for ever."""
        self._say_bounds()
        self.parts.alerts.post(Alert("Starting up...", "", Level.INFO))
        work = [self._commit_often(), self._look_often(), self._look_at_head()]
        if self.law is None:
            work.append(self._tell_often())
        if self.parts.retry_queue is not None:
            work.append(self.parts.retry_queue.take_back(self.parts.store))
        try:
            async with asyncio.TaskGroup() as group:
                helpers = [group.create_task(each) for each in work]
                if self.law is not None:
                    offload = group.create_task(self._follow(group))  # retries, which the seed offloads
                    await self.law.follow()
                    self.stop()
                    await offload
                else:
                    await self._follow(group)
                await self._finish_requests()
                async with self._committing:  # what has begun ends: its rows are in no other batch
                    for each in helpers:
                        each.cancel()
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from several
        await self._commit()
        await self._count()
        return Exit.DONE if self.follower.done and self._no_retries else Exit.WAITING

    def _say_bounds(self) -> None:
        """Which bound holds: requests a second, or connections."""
        options = self.parts.options
        most = options.max_workers + (SUPERCHARGE if self.law is not None else 0)
        said = f"At most {most} connections (--max-workers) and "
        if options.rps is None:
            said += "no bound of requests a second: the connections hold."
        else:
            slow = most / options.rps
            said += (
                f"{options.rps:g} requests a second (--rps), which holds while a response takes less than {slow:.2g} s."
            )
        log.info("bounds", say=said)

    def is_over(self) -> bool:
        """Whether nothing is left to do, or somebody stops us."""
        return self.stopped or (self.follower.done and self._no_retries)

    @property
    def is_held(self) -> bool:
        """Whether somebody has paused the run, or blocked its host."""
        return self.wanted.paused or self.parts.host in self.wanted.blocked

    async def _finish_requests(self) -> None:
        """Give what is in flight some time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                while self._in_flight:
                    self._wake.clear()
                    await self._wake.wait()

    # What is sent.

    async def _follow(self, group: asyncio.TaskGroup) -> None:
        clock = self.parts.clock
        while not self.is_over():
            if (
                self.health.away_since is not None
                and clock.now() - self.health.away_since > self.parts.options.patience
            ):
                return
            self._wake.clear()
            wait = self._send_what_is_due(group)
            with suppress(TimeoutError):
                async with asyncio.timeout(min(wait, 1.0)):
                    await self._wake.wait()

    def _send_what_is_due(self, group: asyncio.TaskGroup) -> float:
        """Send all that may be sent now; seconds until there may be more."""
        clock, limiter, host = self.parts.clock, self.parts.limiter, self.parts.host
        while self._in_flight < self.workers and not self.is_held:
            ready = limiter.ready_at(host)
            now = clock.now()  # not before: what is ready at once is ready at the limiter's own now
            if ready > now:
                return ready - now
            inquiry = self._choose(now)
            if inquiry is None:
                later = [each - now for each in (self.health.quiet_until, self.follower.resume_at) if each > now]
                return min(later, default=inf)
            permit = limiter.try_acquire(host)
            if permit is None:  # pragma: no cover - it was ready above
                self._put_back(inquiry)
                return 0.05
            self._in_flight += 1
            group.create_task(self._request(inquiry, permit))
        return inf

    async def _request(self, inquiry: Inquiry, permit: Permit) -> None:
        try:
            await self._ask(inquiry, permit)
        finally:
            self._in_flight -= 1
            self._wake.set()

    def _choose(self, now: float) -> Inquiry | None:
        """What to ask next, if anything is due."""
        if now < self.health.quiet_until or self.storing.is_full:
            return None
        if self.health.in_doubt:
            return None if self.health.checking or self._in_flight else self._check()
        self._turn += 1
        if self._turn % (ASKED_SHARE if self.later.is_urgent else RETRY_SHARE) == 0 and (again := self._again()):
            return again
        if self.walk.waiting:
            return Inquiry("probe", (self.walk.waiting.popleft(),))
        if self.law is None and (numbers := self._new(now)) is not None:
            return Inquiry("new", numbers)
        return self._again()

    def _again(self) -> Inquiry | None:
        """What is asked not for the first time: missed ids first, since visits can wait."""
        if (found := self.later.next_id()) is not None:
            return Inquiry("again", (found[0],), missed=found[1])
        if (visit := self.later.next_visit()) is not None:
            return Inquiry("visit", (visit.number,), visit=visit)
        return None

    def _new(self, now: float) -> tuple[int, ...] | None:
        numbers: list[int] = []
        while len(numbers) < self.parts.api.description.batch:
            number = self.follower.take(now)
            if number is None:
                break
            numbers.append(number)
        return tuple(numbers) or None

    def _check(self) -> Inquiry | None:
        known = self._known if self._known is not None else self.follower.peek()
        if known is None:
            known = self.follower.newest
        self.health.checking = True
        self.figures.checks += 1
        return Inquiry("check", (known,))

    def _put_back(self, inquiry: Inquiry) -> None:
        if inquiry.kind == "new":
            for number in inquiry.numbers:
                self.follower.undecided(number)
        elif inquiry.kind == "probe":
            self.walk.waiting.appendleft(inquiry.numbers[0])
        elif inquiry.kind in ("again", "visit"):
            self.later.put_back(inquiry.numbers[0])
        if inquiry.kind == "check":
            self.health.checking = False

    async def _ask(self, inquiry: Inquiry, permit: Permit) -> None:
        sent = self.parts.clock.now()
        try:
            answers = await self.request(inquiry.numbers, permit, of_host=inquiry.kind == "check")
        except BaseException:
            self._put_back(inquiry)
            raise
        self._hear(inquiry, answers, sent)

    async def request(self, numbers: tuple[int, ...], permit: Permit, *, of_host: bool = False) -> list[IdAnswer]:
        """Ask for ids, and count what is said."""
        api, clock = self.parts.api, self.parts.clock
        answers: list[IdAnswer] = []

        def read(response: HttpResponse) -> Outcome:
            answers[:] = api.read(numbers, response)
            return outcome_of(answers, response)

        sent = clock.now()
        request = HttpRequest(api.url(numbers), headers=self.parts.headers)
        response = await self.parts.client.send(request, permit, read=read, item=numbers[0], of_host=of_host)
        if not answers:
            answers = api.read(numbers, response)
        self.figures.requests += response.requests
        took = clock.now() - sent
        self.figures.latency += (took - self.figures.latency) * (0.1 if self.figures.latency else 1.0)
        for answer in answers:
            self.figures.answers[answer.meaning] += 1
        if len(numbers) > 1 and response.status in (400, 404, 422) and all(each.meaning.fails for each in answers):
            # One bad id must not cost the others theirs.
            halves = numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]
            answers = []
            for half in halves:
                answers += await self.request(half, await self.parts.limiter.acquire(self.parts.host))
        return answers

    # What came of it.

    def _hear(self, inquiry: Inquiry, answers: list[IdAnswer], sent: float) -> None:
        now = self.parts.clock.now()
        meanings = {answer.meaning for answer in answers}
        if inquiry.kind == "check":
            self.health.checking = False
        if Meaning.DISABLED in meanings:
            self._put_back(inquiry)
            self.health.be_quiet(now + DISABLED, "the API says that it is switched off")
            return
        failing = all(meaning.fails for meaning in meanings)
        self.health.heard(now, failing=failing, refused=Meaning.REFUSED in meanings)
        if inquiry.kind in ("new", "again"):
            for answer in answers:
                self.parts.metrics.meter.count(answer.meaning)
        if inquiry.kind == "check":
            if failing:
                self.health.check_failed(answers[0], sent, now)
            return
        if failing and self.health.is_to_blame(sent, now):
            self._put_back(inquiry)
            return
        match inquiry.kind:
            case "new":
                for answer in answers:
                    self._hear_new(answer, now)
            case "probe":
                self.figures.probes += 1
                self.walk.hear(answers[0])
            case "again":
                if inquiry.missed is not None:
                    self._hear_again(inquiry.missed, answers[0], sent)
            case "visit":
                if inquiry.visit is not None:
                    self._hear_visit(inquiry.visit, answers[0])

    def _hear_new(self, answer: IdAnswer, now: float) -> None:
        number, follower = answer.number, self.follower
        self.health.heard_new(answer)
        if answer.meaning.exists:
            self._missing_in_row = 0
            self._known = number
            if number > follower.newest:
                self.state.run += 1
                self.walk.moved()
            for hole in follower.found(number, now):
                self._miss(hole, Reason.NOT_FOUND)
            follower.was_there()
            self._keep(answer)
        elif answer.meaning is Meaning.MISSING:
            if follower.missing(number, now):
                self._missing_in_row += 1
                self._miss(number, Reason.NOT_FOUND)
        elif answer.meaning is Meaning.REFUSED and self._refused[number] < MOST_REFUSALS:
            self._refused[number] += 1
            follower.undecided(number)
            return
        else:
            follower.leave(number, now)
            self._miss(number, BY_REASON[answer.meaning])
        self._refused.pop(number, None)

    def _keep(self, answer: IdAnswer) -> None:
        """There is a record: keep it, or note that it is not wanted or hidden."""
        if answer.time is not None:
            lag = self.parts.clock.wall() - answer.time
            self.figures.lag = max(0.0, lag)
            self.parts.metrics.meter.observe(lag)
        match answer.meaning:
            case Meaning.FOUND:
                self.storing.keep(answer.number, answer.line)
                self.figures.stored += 1
            case Meaning.UNWANTED:
                self.storing.batch.skipped.append((answer.number, "unwanted"))
                self.figures.skipped += 1
            case Meaning.HIDDEN:
                self._miss(answer.number, Reason.HIDDEN)

    def _miss(self, number: int, reason: Reason, tries: int = 1, since: float | None = None) -> None:
        self.storing.miss(number, reason, tries, since)
        self._no_retries = False
        unresolved = UNRESOLVED.get(offload_tries(reason, tries))
        now = self.parts.clock.now()
        if unresolved is not None and now >= self._alerted_at + ALERT_PAUSE:
            self._alerted_at = now
            elapsed = self.parts.clock.wall() - since if since is not None else 0.0
            fields = (("Instance Id", f"`{number}`"), ("Time Elapsed", show_elapsed(elapsed)))
            self.parts.alerts.post(Alert(unresolved, reason.value, Level.WARNING, fields))

    def settle(self, answer: IdAnswer) -> None:
        """An id that was taken in order has a record."""
        self._known = answer.number
        self.state.run += 1
        self.follower.decide(answer.number, exists=True)
        self._keep(answer)

    def give_up(self, number: int, reason: Reason, tries: int) -> None:
        """An id that was taken in order is missed."""
        self.follower.decide(number, exists=False)
        self._miss(number, reason, tries)

    def _hear_again(self, missed: Missed, answer: IdAnswer, sent: float) -> None:
        number = answer.number
        self.later.answered(number)
        if len(missed) > 1:  # one of several ids of a gap: if it is there, each near it is asked
            if answer.meaning.exists:
                self._keep(answer)
                self.later.turned_up(number)
            return
        if answer.meaning in (Meaning.FOUND, Meaning.UNWANTED):
            if missed.tries == 1 and missed.reason is Reason.NOT_FOUND:
                self.follower.was_late()
            self._keep(answer)
            return
        reason = BY_REASON[answer.meaning]
        own = not answer.meaning.fails or self.health.was_well(sent)
        tries = missed.tries + own
        if reason is not missed.reason and is_retried(missed.reason, missed.tries):
            tries = min(tries, RETRIES.get(reason, 0) + 1)
        self._miss(number, reason, tries, missed.since)

    def _hear_visit(self, visit: Visit, answer: IdAnswer) -> None:
        """What has become of a record that is stored."""
        self.later.answered(visit.number)
        self.figures.visited += 1
        match answer.meaning:
            case Meaning.FOUND:
                self.figures.changed += self.storing.keep_state(visit, answer.line)
            case Meaning.MISSING:
                self.figures.deleted += self.storing.keep_state(visit, b"")
            case _:
                self.storing.put_off(visit, VISIT_AGAIN)

    # Gaps.

    async def search_gap(self) -> bool:
        """Look for the next records behind a gap, and go on there; whether there are any."""
        newest = self.follower.newest
        self.walk.moved()
        while self.walk.looks < LOOKS and self.follower.newest == newest and not self.stopped:
            self.walk.look(at_once=True)
            while self.walk.is_looking and not self.stopped:
                self._wake.set()
                await self.parts.clock.sleep(0.2)
        return self.follower.newest > newest

    def _look_for_gap(self) -> None:
        """Begin or go on to ask whether there is something behind what is missing."""
        follower = self.follower
        suspicious = follower.suspects_gap if follower.ceiling is None else self._missing_in_row >= MISSES_IN_ROW
        if self.law is None and suspicious and not self.walk.is_looking and self.health.away_since is None:
            passed = self.walk.passed
            self.walk.look()
            self._missing_in_row *= passed == self.walk.passed

    # What is due again, and what is written.

    async def _look_often(self) -> None:
        while True:
            now = self.parts.clock.now()
            self.parts.metrics.meter.sample(now)
            self._set_workers(now)
            self._look_for_gap()
            if self.health.away_since is None:
                if self.later.has_turned_up:
                    await self._commit()
                    await self.later.wake()
                await self.later.load()
            if self.follower.done and not self.storing.records and not self.storing.batch:
                self._no_retries = await self.parts.store.retried() == 0 and not self.storing.batch
            await self._count()
            self._wake.set()
            await self.parts.clock.sleep(LOOK)

    def _set_workers(self, now: float) -> None:
        """Let as many requests be in flight as are needed; the law of the seed decides by its periods instead."""
        parts, follower = self.parts, self.follower
        follower.workers = self.workers
        if self.law is None and self.figures.latency and self.health.away_since is None:
            figures = parts.limiter.snapshot(1).hosts
            allowed = figures[0].fill_rate if figures else 1.0
            idle = follower.at_head and now < follower.resume_at
            self.workers = workers_for(
                allowed, self.figures.latency, (follower.rate or 0.0) if idle else None,
                self.workers, parts.options.min_workers, parts.options.max_workers,
            )  # fmt: skip

    async def _tell_often(self) -> None:
        """Post how it stands, with the workers of the time that has passed."""
        while True:
            workers = self.workers
            await self.parts.clock.sleep(STATUS_SECONDS)
            self.parts.metrics.tell(await self.parts.metrics.read(STATUS_SECONDS), workers)

    async def _look_at_head(self) -> None:
        """Ask the address that says the newest id, as often as that is of use."""
        head, follower, clock = self.parts.api.description.head, self.follower, self.parts.clock
        while head is not None:
            now = clock.now()
            if now >= self.health.quiet_until and self.health.away_since is None and not self.is_held:
                response = await self.parts.client.send(HttpRequest(head.url, headers=self.parts.headers))
                self.figures.requests += response.requests
                if (newest := self.parts.api.head_of(response)) is not None:
                    follower.see_head(newest, clock.now())
                    self._wake.set()
            await clock.sleep(follower.head_pause)

    async def _count(self) -> None:
        self.missed_counts = await self.parts.store.count_missed()

    async def _commit_often(self) -> None:
        while True:
            await self.parts.clock.sleep(COMMIT)
            await self._commit()

    async def _commit(self) -> None:
        async with self._committing:
            await self._commit_batch()

    async def _commit_batch(self) -> None:
        answered = self.later.take_answered()
        state, position = self.state, self.follower.saved()
        pending = self.storing.take()
        if not any(pending) and not answered and position == state.position and state.given == self._given:
            return
        self._given = state.given
        state.position = position
        state.limiter = self.parts.limiter.saved(self.parts.host) or b""
        await self.storing.write(*pending, state)
        self.later.release(answered)
        self.committed.set()

    # What the shell asks.

    def stop(self) -> None:
        """Begin nothing new."""
        self.stopped = self.storing.stopping = True
        self._wake.set()

    def control(self, wanted: Control) -> None:
        """Do as is wanted from now on."""
        self.wanted = wanted
        if wanted.draining:
            self.stop()
        self._wake.set()

    async def carry_out(self, request: ControlRequest) -> str:
        """Retry what the words name."""
        if request.action != "retry":
            return f"a sequence cannot {request.action}"
        _, _, code, low, high = (*request.words, "", "", "", "", "")[:5]
        number = await self.parts.store.retry(int(low or 0), int(high or LARGEST_ID), code or None)
        self.later.reload()  # what a person wants goes first
        return f"{number:,} are asked again"

    def report(self, *, running: bool = True) -> Report:
        """All that is shown."""
        from sanderling.sequence.report import make_report  # noqa: PLC0415 - it reads this module

        return make_report(self, running=running)
