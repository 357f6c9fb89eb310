"""A worker of a fleet: it shows that it lives, has as many parts as any other worker, and runs them."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count

import structlog

from sanderling.clock import Clock
from sanderling.crawls.fleet import FleetStores
from sanderling.crawls.fleet_mail import FleetBoard
from sanderling.crawls.fleet_pace import WorkerLateness
from sanderling.crawls.fleet_part import FleetPart, OpenPart
from sanderling.stores.control_file import NOTHING, Control
from sanderling.stores.durable import FolderError
from sanderling.stores.fleet import Beat, CrawlView, FleetCrawl
from sanderling.stores.leases import BEATS, HeldLease, Lease, LeaseLostError, LeasesAwayError, fair_share
from sanderling.stores.ports import ProgressError

log = structlog.get_logger()

LISTEN = 0.25  # seconds between two looks into the inboxes
# What workers cost a server that have nothing to do must not grow with their number: so many looks a second, together.
IDLE_LISTENS = 250.0  # into inboxes; who has had anything to do lately is not among them
LATELY = 10.0  # seconds
IDLE_LOOKS = 10.0  # at all parts, whether anything is left; who has nothing to do any more looks at once
MOST_MESSAGES = 1_000  # that are brought at once
FEEL = 0.1  # seconds between two looks at how late we are
TICK = 1.0  # seconds between two looks at what is idle
AGAIN = 10  # looks, after which it is said once more: a server may have forgotten it
MOST_FAILURES = 3  # of one part here, after which the worker ends
HURRY = 15.0  # seconds after it was told to stop, from which it waits for no server
OPENING = 4  # parts that are made ready at once


@dataclass(slots=True)
class _Held:
    held: HeldLease
    after: "asyncio.Task[None] | None" = None  # which ends an earlier lease of the same part
    part: FleetPart | None = None
    task: "asyncio.Task[None] | None" = None
    stopping: bool = False


@dataclass(slots=True)
class WorkerFigures:
    """What a worker has seen, for people."""

    workers: int = 1  # of the fleet
    acquired: int = 0  # parts, in all
    lost: int = 0  # parts that others took
    dropped: int = 0  # requests in flight or answered there, and not committed: others ask again for these at most
    away: int = 0  # times that a server was not there
    retries: int = 0  # how often what had failed was to be asked for again
    failures: dict[int, int] = field(default_factory=dict)  # by part


class FleetWorker:
    """Works on a crawl until nothing is left of it, or it is stopped. `run` it once."""

    def __init__(
        self,
        fleet: FleetStores,
        crawl: FleetCrawl,
        clock: Clock,
        boot: Callable[[], float],
        open_part: OpenPart,
    ) -> None:
        """`boot` is a clock that runs while the machine sleeps."""
        self.report: Callable[[], str] = str  # what others see of us
        self.heard: Callable[[Beat], object] = bool  # told what the server says
        self.board = FleetBoard(crawl.parts)
        self.figures = WorkerFigures()
        self.lateness = WorkerLateness()
        self.away = ""  # why no server hears that we live, while none does
        self.crawl = crawl
        self.view = CrawlView(crawl.parts, 0, 0, 0, 0)  # how much is left of the crawl, once it has run
        self._fleet = fleet
        self._clock = clock
        self._boot = boot
        self._open_part = open_part
        self._mine: dict[int, _Held] = {}
        self._cached: dict[int, None] = {}  # parts that we had, of which there is a copy, in order
        self._wanted = NOTHING
        self._stopped = False
        self._draining = False
        self._wake = asyncio.Event()
        self._opening = asyncio.Semaphore(OPENING)
        self._failed: Exception | None = None
        self._last_view: CrawlView | None = None
        self._end_due = clock.now()  # when to look next whether anything is left

    @property
    def parts(self) -> list[FleetPart]:
        """Those that are ours, and open."""
        return [each.part for each in self._mine.values() if each.part is not None]

    @property
    def inflight(self) -> int:
        """Requests that are out."""
        return sum(each.run.inflight for each in self.parts)

    def control(self, wanted: Control) -> None:
        """Pause, or go on; leave some hosts alone: all parts, and those that become ours later.

        Who is to stop or to drain leaves its parts to others: what it asks for no more is not left undone.
        """
        if wanted.ending:
            self.stop()
            return
        self._wanted = wanted
        for part in self.parts:
            part.run.control(wanted)

    def stop(self) -> None:
        """Ask for nothing more; what is in flight comes to its end, and the parts are given back."""
        self._stopped = True
        self._wake.set()
        for each in self._mine.values():
            self._stop_part(each)

    async def run(self) -> bool:
        """Work until nothing is left, or somebody stops it; whether nothing is left. Raises LeasesError, and others."""
        async with asyncio.TaskGroup() as group:
            beside = [group.create_task(each) for each in (self._listen(), self._look_for_the_end(), self._feel())]
            try:
                await self._keep_parts(group)
            finally:
                for task in beside:
                    task.cancel()
        with suppress(LeasesAwayError):  # who was stopped while it is away has nothing to say
            await self._fleet.leave()
            self.view = await self._fleet.view()
        if self._failed is not None:
            raise self._failed
        return self.board.over and not self.view.waiting

    # Leases.

    async def _keep_parts(self, group: asyncio.TaskGroup) -> None:
        """Beat until nothing is ours any more, and nothing more is wanted."""
        every = self.crawl.seconds / BEATS
        stopped_at = None
        while not self.leaving or self._mine:
            if self.leaving:
                now = self._clock.now()
                stopped_at = now if stopped_at is None else stopped_at
                self._hurry(now - stopped_at)
            try:
                await self._beat(group)
            except LeasesAwayError as error:
                self.figures.away += 1
                if not self.away:
                    log.warning("fleet_server_away", error=str(error))
                self.away = f"PostgreSQL is away: {error}"
                await self._sleep(min(every, 1.0))
            else:
                self.away = ""
                await self._sleep(every)

    @property
    def leaving(self) -> bool:
        """Whether it gives all of its parts back, and ends."""
        return self._stopped or self._draining or self.board.over or self._failed is not None

    def _hurry(self, seconds: float) -> None:
        for each in self._mine.values():
            self._stop_part(each)
            each.held.hurried = seconds > HURRY

    async def _beat(self, group: asyncio.TaskGroup) -> None:
        asked, figures = self._boot(), [part.figures() for part in self.parts]
        mine = dict(self._mine)
        leases, pace = [each.held.lease for each in mine.values()], self.lateness.measure()
        beat = await self._fleet.beat(leases, figures, self.report(), pace)
        self.heard(beat)
        self.figures.workers = beat.workers
        self._draining = self._draining or beat.draining
        self.board.hear(beat, figures)
        for number, each in mine.items():
            if number in beat.kept:
                each.held.renewed(asked)
                if each.part is not None:
                    each.part.run.engine.pump()
            elif self._mine.get(number) is each:  # else it was given back meanwhile
                self._lose(each)
        if beat.retries > self.figures.retries:
            self.figures.retries = beat.retries
            for each in mine.values():
                self._stop_part(each)  # whoever opens it again asks for what failed
        if beat.done:
            self.board.over = True
        if not self.leaving:
            others = beat.weights - pace.weight  # as the server knew us
            weight = self.lateness.compare(beat.late, lacking=beat.lacking)
            await self._share(group, fair_share(self.crawl.parts, weight, others + weight, lacking=beat.lacking))

    async def _share(self, group: asyncio.TaskGroup, want: int) -> None:
        """Have so many parts, as many as any other worker."""
        staying = [each for each in self._mine.values() if not each.stopping]
        for each in staying[want:]:
            self._stop_part(each)
        if len(self._mine) < want:
            asked = self._boot()
            for lease in await self._fleet.acquire(want - len(self._mine), list(self._cached)):
                self._take(group, lease, asked)

    def _take(self, group: asyncio.TaskGroup, lease: Lease, asked: float) -> None:
        self.figures.acquired += 1
        before = self._mine.get(lease.part)
        held = _Held(HeldLease(lease, self.crawl.seconds, self._boot, asked), before.task if before else None)
        self._mine[lease.part] = held
        held.task = group.create_task(self._run_part(held))

    def _lose(self, each: _Held) -> None:
        """Somebody else has it: what is under way there is dropped."""
        if not each.held.lost.is_set():
            self.figures.lost += 1
            self.figures.dropped += 0 if each.part is None else each.part.uncommitted
            log.warning("fleet_part_lost", part=each.held.lease.part, epoch=each.held.lease.epoch)
            each.held.lost.set()
            if each.task is not None:
                each.task.cancel()

    def _stop_part(self, each: _Held) -> None:
        each.stopping = True
        if each.part is not None:
            each.part.stop()

    # Parts.

    async def _run_part(self, each: _Held) -> None:
        """Open it, run it, close it and give it back. What goes wrong with one costs that one."""
        held, number = each.held, each.held.lease.part
        try:
            if each.after is not None:
                await asyncio.wait([each.after])
            async with self._opening:
                part = each.part = await self._open_part(held)
            self.board.take_over(part.figures())
            try:
                part.run.control(self._wanted)
                if each.stopping:
                    part.stop()
                await part.work()
            except asyncio.CancelledError:
                held.hurried = True  # nobody waits for its server any more
                raise
            finally:
                await _close(part)
            self._cached[number] = None
            self._wake.set()
        except asyncio.CancelledError:
            if not held.lost.is_set():
                raise
        except BaseExceptionGroup as group:
            self._judge(number, _first(group))
        except (LeaseLostError, LeasesAwayError, FolderError) as error:
            self._judge(number, error)
        finally:
            if self._mine.get(number) is each:
                del self._mine[number]
                self.board.forget(number)
        await self._give_back(held)  # what is not ours any more stays whose it is

    def _judge(self, number: int, error: BaseException) -> None:
        """A part has failed: somebody has it, its server is away, its copy is damaged; or more than that is wrong."""
        if isinstance(error, LeaseLostError | LeasesAwayError):
            return
        failures = self.figures.failures[number] = self.figures.failures.get(number, 0) + 1
        log.warning("fleet_part_failed", part=number, failures=failures, error=str(error))
        stays = not isinstance(error, FolderError | ProgressError) or getattr(error, "full", False)
        if failures >= MOST_FAILURES or stays:
            self._failed = self._failed or (error if isinstance(error, Exception) else RuntimeError(repr(error)))

    async def _give_back(self, held: HeldLease) -> None:
        try:
            await self._fleet.release([held.lease])
        except LeasesAwayError as error:
            log.warning("fleet_part_not_given_back", part=held.lease.part, error=str(error))

    # What others say, and what we say.

    async def _listen(self) -> None:
        lively = self._clock.now()  # when there was last anything to do
        while True:
            parts = {part.number: part for part in self.parts if not part.inbox.is_full}
            taken = {number: set(part.inbox.taken) for number, part in parts.items()}
            try:
                found = await self._fleet.receive(taken, MOST_MESSAGES)
            except LeasesAwayError:
                found = []
            for number, part in parts.items():
                part.inbox.add([each for each in found if each.part == number])
            if len(found) < MOST_MESSAGES:
                now = self._clock.now()
                if found or not all(part.is_idle for part in self.parts):
                    lively = now
                idle = now > lively + LATELY
                await self._clock.sleep(max(LISTEN, self.figures.workers / IDLE_LISTENS) if idle else LISTEN)

    async def _feel(self) -> None:
        while True:
            before = self._clock.now()
            await self._clock.sleep(FEEL)
            self.lateness.ran(FEEL, self._clock.now() - before)

    async def _look_for_the_end(self) -> None:
        for look in count():
            await self._clock.sleep(min(TICK, self.crawl.seconds / BEATS))
            if self.board.over:
                return
            try:
                for part in self.parts:
                    await self._say_whether_idle(part, again=look % AGAIN == 0)
                due = self.parts and self._clock.now() >= self._end_due
                if due and all(part.is_idle for part in self.parts) and await self._is_over():
                    await self._fleet.end(done=True)
                    self._wake.set()
            except LeasesAwayError:
                continue

    async def _say_whether_idle(self, part: FleetPart, *, again: bool) -> None:
        """The last part to have nothing to do is somebody's: whoever that is looks at once, and sees the end."""
        if await part.say_whether_idle(again=again):
            self._end_due = self._clock.now()

    async def _is_over(self) -> bool:
        """Whether no part has anything to do, and nothing is on its way.

        Servers are looked at one after the other: only what two looks see the same is true of all at once.
        """
        view = await self._fleet.view()
        same, self._last_view = view == self._last_view, view
        if view.busy or view.unread:
            self._end_due = self._clock.now() + self.figures.workers / IDLE_LOOKS
            return False
        return same or len(self._fleet.servers) == 1

    async def _sleep(self, seconds: float) -> None:
        """Until it is time, or something has changed."""
        timer = self._clock.call_later(seconds, self._wake.set)
        await self._wake.wait()
        self._wake.clear()
        timer.cancel()


async def _close(part: FleetPart) -> None:
    """Return when it is closed, also if we are cancelled: else the next who opens it finds it locked."""
    # Not here: the leases of other parts are renewed meanwhile.
    closing = asyncio.create_task(asyncio.to_thread(part.stack.close))
    try:
        await asyncio.shield(closing)
    except asyncio.CancelledError:
        await asyncio.wait([closing])
        raise


def _first(group: BaseException) -> BaseException:
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group
