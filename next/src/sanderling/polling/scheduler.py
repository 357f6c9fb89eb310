"""The scheduler: discovery, the worker for what takes turns, live targets, and the writer behind them.

Storing is no part of a poll: what came is queued for the writer, and a live target's next request leaves on time
however slow the disk is.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from random import Random
from typing import NamedTuple

from sanderling.clock import Clock
from sanderling.fetch.messages import HttpResponse
from sanderling.files import Exit, FolderError
from sanderling.observe.log import log
from sanderling.outcome import Code
from sanderling.polling.cadence import LIVE_BELOW, live_pause, next_on_grid, next_pause, phase
from sanderling.polling.race import standing
from sanderling.polling.settings import Settings, read_settings
from sanderling.polling.store import Key, Polled, PollTarget, Store, seconds_of
from sanderling.polling.tables import SNAPSHOT
from sanderling.polling.trackside import Document, DocumentError, odd_fields, read_current, read_event_id
from sanderling.polling.turns import PollTurns
from sanderling.polling.upstream import PolledUpstream, Requests

TICK = 0.2  # seconds between two looks for due targets
ACTIVITY = 0.5  # seconds between two looks at which race runs
WATCH_MS = 1000  # between two requests for what tells that a race has started
WATCH_BESIDE_MS = 10_000  # the same, while a race runs
RESULTS_OF_RACE_MS = 30_000
ACTIVE_PRIORITY = 100
INLINE = 16_384  # bytes of a document that is read on the event loop
STATE_SECONDS = 1.0  # between two writes of a live target's row where nothing has changed
AWAY_SECONDS = 600.0  # that a database is waited for
STOP_SECONDS = 3.0
CURRENT = "current"  # the key of what upstream says of its own selection; no row has it


@dataclass(slots=True)
class Live:
    """A target that is requested to the instant."""

    target: PollTarget
    interval: float  # seconds
    due: float
    wanted: bool = True
    failures: int = 0
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class Late(NamedTuple):
    """How late a target was polled that is not live."""

    seconds: float
    at: float


@dataclass(slots=True)
class Figures:
    """What was counted since the start."""

    polls: Counter[str] = field(default_factory=Counter)  # by how they ended
    missed: int = 0  # live polls that the upstream was too slow for
    live: int = 0  # live polls
    lateness: deque[float] = field(default_factory=lambda: deque(maxlen=1500))  # of live polls
    stored: int = 0  # documents
    latency: float = 0.0
    late: dict[Key, Late] = field(default_factory=dict)


class Scheduler:
    """Polls the targets of a store, each at its cadence."""

    def __init__(
        self,
        store: Store,
        upstream: PolledUpstream,
        requests: Requests,
        clock: Clock,
        random: Random,
        *,
        next_race: str,
    ) -> None:
        self.store = store
        self.settings = Settings()
        self._settings_read = False
        self.figures = Figures()
        self.live: dict[Key, Live] = {}
        self.event: str | None = None
        self.active: str | None = None
        self.following: str | None = None
        self.faults: list[str] = []  # of the settings
        self.away = ""  # why the upstream cannot be polled now
        self.unsaved = ""  # why the database does not take what came
        self.paused = False
        self._upstream = upstream
        self._requests = requests
        self._clock = clock
        self._random = random
        self._watches = next_race == "second" and bool(upstream.base)
        self._turns = PollTurns(clock, self._next_live)
        self._has_current = True  # whether upstream says which race is selected
        self._selected: str | None = None
        self._busy: set[Key] = set()  # requested, or not stored yet
        self._etags: dict[Key, str] = {}
        self._stated: dict[Key, float] = {}  # when a live target's row was written
        self._empty: Counter[Key] = Counter()
        self._refusals = 0
        self._unsaved: dict[Key, Polled] = {}
        self._saving = asyncio.Event()
        self._wake = asyncio.Event()
        self._stopping = asyncio.Event()
        self._rediscover = asyncio.Event()
        self._group: asyncio.TaskGroup | None = None  # while it runs

    # What others call

    async def promote(self, kind: str, source_id: str, priority: int | None = None) -> int:
        """Make a target the next one; `event_snapshot` stands for those that describe the event. How many there are."""
        kinds = (kind, *SNAPSHOT) if kind == "event_snapshot" else (kind,)
        found = [each for name in kinds if (each := await self.store.target((name, source_id))) and not each.gone_at]
        await self.store.promote([each.key for each in found], priority)
        for each in found:
            if each.key in self.live:
                self.live[each.key].due = self._clock.now()
                self.live[each.key].woken.set()
            log.info("target_promoted", type=each.type, source_id=each.source_id)
        self._wake.set()
        return len(found)

    async def set_race_interval(self, race: str, interval_ms: int) -> None:
        """Switch a race between its active and its idle cadence; a person's interval is back after the race."""
        target = await self.store.target(("race", race))
        if target is None:
            return
        person = target.interval_ms != target.own_ms
        if interval_ms == self.settings.raceIdleMs:
            interval = target.interval_ms if person else target.base_ms or interval_ms
            await self.store.set_interval(target.key, interval, interval_ms, None, 0)
        else:
            base = target.interval_ms if person else target.base_ms
            await self.store.set_interval(target.key, interval_ms, interval_ms, base, ACTIVE_PRIORITY)
        log.info("target_updated", type="race", source_id=race, interval_ms=interval_ms)

    async def reconcile_targets(self, event: str, races: Sequence[str] | None) -> None:
        """Bring the targets in line with what discovery found; `races` is None where upstream did not say."""
        settings, wall = self.settings, self._clock.wall()
        there = [each for each in await self.store.targets() if each.event]
        known = {each.key for each in there if each.event == event and each.gone_at is None}
        wanted: dict[Key, int] = {(kind, event): settings.fullIntervalMs for kind in SNAPSHOT}
        if settings.resultsMs:
            wanted["results", event] = settings.resultsMs
        wanted |= {("race", race): settings.raceIdleMs for race in races or ()}
        first = not any(kind == "race" for kind, _ in known)
        new = {key: interval for key, interval in wanted.items() if key not in known}
        # What is new in an event that is known is polled at once.
        await self.store.add_targets(
            (key, event, interval, wall + phase(key[1], interval) if first else wall, int(key[0] == "rounds"))
            for key, interval in new.items()
        )
        for kind, source_id in new:
            log.info("target_created", type=kind, source_id=source_id)
        listed = set(races) if races is not None else None
        gone = [
            each.key for each in there
            if each.is_there and each.key not in wanted and (
                each.event != event or (listed is not None and each.type in ("race", "results")
                                        and each.source_id not in listed))
        ]  # fmt: skip
        if gone:
            await self.store.orphan(gone)
            log.info("targets_gone", number=len(gone))

    async def drain_once(self) -> int:
        """Poll due targets, as many as the burst allows; how many."""
        number = 0

        async def work() -> None:
            nonlocal number
            while number < self.settings.burst and not self._stopping.is_set():
                number += 1
                if not await self._next_turn():
                    number -= 1
                    return

        async with asyncio.TaskGroup() as group:
            for _ in range(min(self.settings.concurrency, self.settings.burst)):
                group.create_task(work())
        return number

    def stop(self) -> None:
        """Begin nothing new."""
        self._stopping.set()
        self._wake.set()
        for each in self.live.values():
            each.woken.set()

    def pause(self, *, paused: bool) -> None:
        """Request nothing until the opposite is said."""
        self.paused = paused

    @property
    def works(self) -> bool:
        """Whether it may request anything now."""
        return self.settings.enabled and not self.paused and not self._stopping.is_set()

    def forget(self) -> None:
        """Begin anew, since all was purged."""
        self.event = self.active = self.following = None
        self._etags.clear()
        self._rediscover.set()

    # Its loops

    async def run(self) -> None:
        """Poll until it is stopped."""
        await self.load()
        async with asyncio.TaskGroup() as group:
            self._group = group
            writer = group.create_task(self._write())
            loops = [group.create_task(each()) for each in (self._work, self._look)]
            if self._upstream.base:
                loops.append(group.create_task(self._discover_again()))
            await self._stopping.wait()
            until = self._clock.now() + STOP_SECONDS
            while self._turns.busy and self._clock.now() < until:
                await self._clock.sleep(0.05)
            for each in loops:
                each.cancel()
            self._group = None
            await self._saved()
            writer.cancel()

    async def run_once(self) -> None:
        """Poll each target once."""
        await self.load()
        async with asyncio.TaskGroup() as group:
            writer = group.create_task(self._write())
            if self._upstream.base:
                await self.discover()
                await self._saved()
            for target in await self.store.targets():
                if target.enabled and target.is_there and target.type != "event" and not self._stopping.is_set():
                    await self._poll(target)
            await self._saved()
            writer.cancel()

    async def load(self) -> None:
        """Take up what an earlier run has stored."""
        self.event = await self.store.event()
        if not self._upstream.base:
            await self._take_documents(self._upstream.targets())
        self._etags = {each.key: each.etag for each in await self.store.targets() if each.etag}
        await self._read_settings()

    async def _take_documents(self, wanted: dict[str, int]) -> None:
        """Targets for what a file describes; what it does not describe any more is gone."""
        there = {each.key: each for each in await self.store.targets() if each.type == "document"}
        wall = self._clock.wall()
        await self.store.add_targets(
            (("document", name), "", every, wall + phase(name, min(every, self.settings.fullIntervalMs)), 0)
            for name, every in wanted.items()
        )
        for name, every in wanted.items():
            known = there.get(("document", name))
            if known is not None and known.interval_ms == known.own_ms != every:
                await self.store.set_interval(known.key, every, every, None, known.priority)
        await self.store.orphan([key for key, each in there.items() if each.is_there and key[1] not in wanted])

    async def _saved(self) -> None:
        while self._unsaved and not self.unsaved:
            self._saving.set()
            await self._clock.sleep(0.01)

    async def _work(self) -> None:
        """Look for due targets at each tick, or at once when something was promoted."""
        while True:
            await self._read_settings()
            if self.works:
                await self.drain_once()
            self._wake.clear()
            timer = self._clock.call_later(TICK, self._wake.set)
            try:
                await self._wake.wait()
            finally:
                timer.cancel()

    async def _next_turn(self) -> bool:
        """Wait for a turn, then poll what is due first by then; False if nothing is."""
        target = await self._first_due()
        while target is not None:
            await self._turns.take(target.type)
            try:
                # Something may have been promoted meanwhile, or be live by now.
                target = await self._first_due() if self.works else None
                if target is None:
                    return False
                self._busy.add(target.key)
                late = self._clock.wall() - seconds_of(target.next_due_at)
                if target.next_due_at and not target.promoted_at:
                    self._note_late(target, late)
                await self._poll(target, held=True)
            finally:
                self._turns.release()
            return True
        return False

    def _note_late(self, target: PollTarget, late: float) -> None:
        if late > max(2.0, target.interval_ms / 2000):
            self.figures.late[target.key] = Late(late, self._clock.now())
        else:
            self.figures.late.pop(target.key, None)

    async def _first_due(self) -> PollTarget | None:
        skipped = self._busy | self.live.keys()
        for each in await self.store.due(len(skipped) + 1):
            if each.key not in skipped:
                return each
        return None

    async def _look(self) -> None:
        """Find out again and again which race runs, and which targets are live."""
        pruned = self._clock.now()
        while True:
            await self.look()
            if self._clock.now() - pruned > 600:
                pruned = self._clock.now()
                await self.store.prune()
            await self._clock.sleep(ACTIVITY)

    async def look(self) -> None:
        """Find out which race runs, and which targets are live."""
        now_standing = standing(await self.store.races(self.event), self._selected) if self.event else None
        active = now_standing.active if now_standing else None
        if active != self.active:
            before, self.active = self.active, active
            if before is not None:
                await self.set_race_interval(before, self.settings.raceIdleMs)
                if self.settings.resultsMs and self.event:
                    wall = self._clock.wall()
                    await self.store.add_targets([(("results", before), self.event, RESULTS_OF_RACE_MS, wall, 0)])
                    await self.promote("results", before)
            if active is not None:
                await self.set_race_interval(active, self.settings.raceActiveMs)
            log.info("race_active", race=active, before=before)
        self.following = now_standing.following if now_standing else None
        await self._follow_live()

    async def _follow_live(self) -> None:
        wanted: dict[Key, tuple[PollTarget, int]] = {
            each.key: (each, each.interval_ms) for each in await self.store.fast(LIVE_BELOW)
        }
        if self.active and ("race", self.active) not in wanted:
            target = await self.store.target(("race", self.active))
            if target and target.enabled and target.is_there and target.interval_ms:
                wanted[target.key] = target, target.interval_ms
        if self._watches and self.event:
            every = WATCH_BESIDE_MS if self.active else WATCH_MS
            if self._has_current:
                wanted[CURRENT, self.event] = _current(self.event), every
            watched = self._selected if self._has_current else self.following
            if watched and watched != self.active and ("race", watched) not in wanted:
                target = await self.store.target(("race", watched))
                if target and target.enabled and target.is_there and target.interval_ms > every:
                    wanted[target.key] = target, every
        if self._group is None or self._stopping.is_set():
            return
        for key in self.live.keys() - wanted.keys():
            live = self.live.pop(key)
            live.wanted = False
            live.woken.set()
        for key, (target, interval_ms) in wanted.items():
            known = self.live.get(key)
            if known is None:
                live = self.live[key] = Live(target, interval_ms / 1000, self._clock.now())
                self._group.create_task(self._follow(live))
            else:
                known.target = target
                if known.interval != interval_ms / 1000:
                    known.interval = interval_ms / 1000
                    known.due = min(known.due, self._clock.now() + known.interval)
                    known.woken.set()

    async def _follow(self, live: Live) -> None:
        """Request a live target on its grid until it is not live any more."""
        while live.wanted and not self._stopping.is_set():
            wait = live.due - self._clock.now()
            if wait > 0 or not self.works:
                live.woken.clear()
                timer = self._clock.call_later(wait if wait > 0 else TICK, live.woken.set)
                try:
                    await live.woken.wait()
                finally:
                    timer.cancel()
                continue
            if live.target.key in self._busy and live.target.key not in self._unsaved:
                await self._clock.sleep(0.01)  # it has been requested as one that takes turns
                continue
            await self._turns.take_live()
            try:
                begun = self._clock.now()
                if self.works and live.wanted:
                    await self._poll_live(live, begun)
            finally:
                self._turns.release()

    async def _poll_live(self, live: Live, begun: float) -> None:
        due = live.due
        live.due, missed = next_on_grid(due, live.interval, begun)
        figures = self.figures
        figures.live += 1
        if live.failures == 0:
            figures.lateness.append(begun - due)
            figures.missed += missed
        well = (
            await self._look_at_current() if live.target.type == CURRENT else await self._poll(live.target, held=True)
        )
        live.failures = 0 if well else live.failures + 1
        if live.failures:
            live.due = max(live.due, self._clock.now() + live_pause(live.interval, live.failures))

    def _next_live(self) -> float | None:
        return min((each.due for each in self.live.values()), default=None)

    async def _look_at_current(self) -> bool:
        """What upstream says of its own selection."""
        url = f"{self._upstream.base}/current"
        if self._requests.ready_at(url) > self._clock.now() + TICK:
            return True
        response = await self._get(url, CURRENT)
        if not response.outcome.ok:
            self._note_away(response)
            return False
        self._note_there()
        there, selected = read_current(response.body)
        if there != self._has_current:
            self._has_current = there
            log.info("current", served=there)
        if selected != self._selected:
            self._selected = selected
            await self.look()
        return True

    # One request

    async def _get(self, url: str, kind: str, headers: tuple[tuple[str, str], ...] = ()) -> HttpResponse:
        begun = self._clock.now()
        response = await self._requests.get(url, headers)
        took = self._clock.now() - begun
        if response.outcome.ok:
            self._turns.learn(kind, took)
            self.figures.latency += (took - self.figures.latency) * 0.1
        return response

    async def _poll(self, target: PollTarget, *, held: bool = False) -> bool:
        """Request a target's document, and queue what came for the writer; whether it went well."""
        if not held:
            await self._turns.take(target.type)
        self._busy.add(target.key)
        try:
            if target.type == "event_snapshot":
                return await self._snapshot(target)
            polled = await self._ask(target)
        except BaseException:
            self._busy.discard(target.key)
            raise
        finally:
            if not held:
                self._turns.release()
        self._queue(polled)
        return polled.failures == 0

    async def _snapshot(self, target: PollTarget) -> bool:
        """All that describes an event: a row that a person has written stands for four."""
        event = target.event or target.source_id
        well = True
        for kind in SNAPSHOT:
            polled = await self._ask(target._replace(type=kind, source_id=event, event=event, etag=None))
            self._queue(replace(polled, target=target))
            well = well and not polled.failures
        return well

    async def _ask(self, target: PollTarget) -> Polled:
        target = target if target.event or not self.event else target._replace(event=self.event)
        fetched_at = self._clock.wall()
        try:
            url, headers = self._upstream.place(target)
        except DocumentError as error:
            failures = target.failures + 1
            pause = next_pause(self._interval(target), 0, failures, self._random)
            return Polled(target, f"error: {error}", fetched_at, fetched_at + pause, failures=failures)
        silence = self._requests.ready_at(url) - self._clock.now()
        if silence > TICK:  # by its Retry-After: that is no failure
            return Polled(target, "deferred by Retry-After", fetched_at, fetched_at + silence, failures=target.failures)
        begun = self._clock.now()
        response = await self._get(url, target.type, headers)
        wall = self._clock.wall()
        took = self._clock.now() - begun
        document, etag, fault = None, None, ""
        if response.outcome.ok and response.status == 200:
            self._note_there()
            etag = blake2b(response.body, digest_size=16).hexdigest()
            if etag == self._etags.get(target.key):
                etag = None
            else:
                try:
                    document = await self._read(target, response)
                except DocumentError as error:
                    fault = str(error)
        else:
            fault = self._note_away(response)
        status = f"error: {fault}" if fault else "ok"
        failures = target.failures + 1 if fault else 0
        if target.failures and target.key in self.live:
            failures = self.live[target.key].failures + 1 if fault else 0
        if document is not None and document.absent:
            status = "absent"
        kind = "failed" if fault else "changed" if document is not None else "unchanged"
        self.figures.polls[kind] += 1
        log.info("target_polled", type=target.type, source_id=target.source_id, status=status, ms=round(took * 1000))
        pause = next_pause(self._interval(target), self.settings.jitterMs, failures, self._random)
        if fault and response.outcome.retry_after:
            pause = max(pause, response.outcome.retry_after)
        if target.type == "results" and target.source_id != target.event and not fault:
            pause = self._pause_of_results(target, response, pause)
        if document is not None and etag is not None:
            self._etags[target.key] = etag
            for name in odd_fields(document):
                log.warning("odd_field", type=target.type, source_id=target.source_id, field=name)
        return Polled(
            target, status, fetched_at, wall + pause, etag if document is not None else None, failures, document
        )

    def _interval(self, target: PollTarget) -> int:
        """Milliseconds; a person's odd ones are bounded by the table already."""
        return max(target.interval_ms, 50)

    def _pause_of_results(self, target: PollTarget, response: HttpResponse, pause: float) -> float:
        """Results are written after the end, and emptied before they are written again."""
        if len(response.body) > 4:
            del self._empty[target.key]
            return pause
        self._empty[target.key] += 1
        return min(pause, self.settings.resultsMs / 1000 * 2.0 ** min(self._empty[target.key] - 1, 8))

    async def _read(self, target: PollTarget, response: HttpResponse) -> Document:
        if len(response.body) <= INLINE:
            return self._upstream.read(target, response.body)
        return await asyncio.to_thread(self._upstream.read, target, response.body)

    def _note_away(self, response: HttpResponse) -> str:
        outcome = response.outcome
        fault = f"{outcome.code}{f' {response.status}' if response.status else ''}" + (
            f": {outcome.detail}" if outcome.detail else ""
        )
        if not response.status:
            self.away = fault
        if outcome.code is Code.RATE_LIMITED and not outcome.retry_after:
            self._refusals += 1
            self._requests.hold(response.url, min(60.0, 0.5 * 2.0 ** min(self._refusals, 10)))
        return fault

    def _note_there(self) -> None:
        self._refusals = 0
        if self.away:
            log.info("upstream_back")
            self.away = ""
            self._wake.set()

    # Storing

    def _queue(self, polled: Polled) -> None:
        key, now = polled.target.key, self._clock.now()
        before = self._unsaved.get(key)
        if before is not None and polled.document is None:
            polled = replace(polled, document=before.document, etag=before.etag)
        if key in self.live:
            polled = replace(polled, due=self._clock.wall() + max(0.0, self.live[key].due - now))
            quiet = polled.document is None and polled.failures == 0 and polled.target.failures == 0
            if quiet and now - self._stated.get(key, -STATE_SECONDS) < STATE_SECONDS and before is None:
                self._busy.discard(key)
                return
            self._stated[key] = now
        self._unsaved[key] = polled
        self._saving.set()

    async def _write(self) -> None:
        """Store what has come, all of it in one transaction."""
        failing_since: float | None = None
        while True:
            await self._saving.wait()
            self._saving.clear()
            batch = dict(self._unsaved)
            if not batch:
                continue
            try:
                overwritten = await self.store.save(list(batch.values()))
            except FolderError as error:
                failing_since = failing_since or self._clock.now()
                if error.code is not Exit.LATER or self._clock.now() - failing_since > AWAY_SECONDS:
                    raise
                self.unsaved = str(error)
                await self._clock.sleep(0.5)
                self._saving.set()
                continue
            failing_since, self.unsaved = None, ""
            for key, polled in batch.items():
                if self._unsaved.get(key) is polled:
                    del self._unsaved[key]
                    self._busy.discard(key)
                else:  # newer has come; what is stored by now need not be stored again
                    self._saving.set()
            for each in overwritten:
                log.warning("edit_overwritten", record=each)
            documents = [each for each in batch.values() if each.document is not None]
            self.figures.stored += len(documents)
            await self._after(documents)

    async def _after(self, polled: Iterable[Polled]) -> None:
        """What follows from what was stored: new targets, another race that runs, others that may have changed."""
        looks = False
        for each in polled:
            document, target = each.document, each.target
            if document is None:
                continue
            looks = looks or bool(document.rows.keys() & {"races", "rounds", "events"})
            if target.type in ("event", "event_snapshot") and "events" in document.rows and self.event:
                await self.reconcile_targets(self.event, document.races)
                if target.etag is not None:
                    await self.store.promote([("rounds", self.event), ("pilots", self.event)])
            if target.type == "race" and target.etag is not None:
                await self.store.promote([("results", target.source_id)])
        if looks:
            await self.look()

    # Discovery and settings

    async def _discover_again(self) -> None:
        while True:
            begun = self._clock.now()
            if self.works:
                await self.discover()
            # Between two events nothing listens: the next one is noticed within a second or so.
            every = self.settings.fullIntervalMs / 1000
            pause = begun + (min(every, 1.0) if self.away else every) - self._clock.now()
            self._rediscover.clear()
            timer = self._clock.call_later(max(0.0, pause), self._rediscover.set)
            try:
                await self._rediscover.wait()
            finally:
                timer.cancel()

    async def discover(self) -> None:
        """Ask which event is open, and read what it has."""
        await self._turns.take("page")
        try:
            if self._requests.ready_at(self._upstream.base + "/") > self._clock.now() + TICK:
                return
            response = await self._get(f"{self._upstream.base}/", "page")
        finally:
            self._turns.release()
        if not response.outcome.ok:
            log.warning("discovery_failed", why=self._note_away(response))
            return
        self._note_there()
        try:
            event = read_event_id(response.body)
        except DocumentError as error:
            if self.event is None:
                raise FolderError(f"{self._upstream.base} is no FPVTrackside: {error}", "check the address") from None
            log.warning("discovery_failed", why=str(error))
            return
        if event != self.event or not await self.store.event():
            log.info("event_found", source_id=event)
            self.event = event
            self._selected = None
            self._has_current = True
            await self.store.set_current(event)
        target = await self.store.target(("event", event))
        if target is None:
            wall = self._clock.wall()
            await self.store.add_targets([(("event", event), event, self.settings.fullIntervalMs, wall, 0)])
            target = await self.store.target(("event", event))
        if target is not None and target.enabled and target.key not in self._busy and target.key not in self.live:
            await self._poll(target)

    async def _read_settings(self) -> None:
        settings, self.faults = read_settings(await self.store.settings())
        before = self.settings
        self._turns.limit = settings.concurrency
        if settings == before and self._settings_read:
            return
        self.settings, self._settings_read = settings, True
        log.info("settings", **settings.rows())
        await self.store.move_intervals(SNAPSHOT, settings.fullIntervalMs)
        await self.store.move_intervals(("race",), settings.raceIdleMs)
        await self.store.move_intervals(("results",), settings.resultsMs)
        if self.active and before.raceActiveMs != settings.raceActiveMs:
            await self.set_race_interval(self.active, settings.raceActiveMs)
        for each in self.live.values():
            each.woken.set()


def _current(event: str) -> PollTarget:
    return PollTarget(CURRENT, event, WATCH_MS, event=event)
