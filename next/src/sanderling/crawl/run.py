"""One run of a crawl: from where it begins to the exit code."""

import asyncio
import os
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sanderling.clock import Clock
from sanderling.crawl.forget import Forgetting, begin_to_forget, forget, read_journal
from sanderling.crawl.handler import CrawlHandler
from sanderling.crawl.keep import Keeper
from sanderling.crawl.report import make_report
from sanderling.crawl.sink import CrawlSink, write_failed
from sanderling.crawl.source import HostShares, Progress
from sanderling.engine.loop import Engine
from sanderling.files import Exit
from sanderling.forms import Bytes
from sanderling.limit import Limiter
from sanderling.observe.control import Control, ControlRequest
from sanderling.observe.report import Report
from sanderling.readers.pool import Readers
from sanderling.stores import Batch, Counts, FoundUrl, HostCount, Ledger

CHUNK = 5_000  # first addresses that are stored at once
LOOK = 1.0  # seconds between two looks at the counts
LATELY = 10  # looks
EVERY = 1 << 30
MOST_HOSTS = 20  # in a report
LIMITED = 100  # hosts that were requested last, of which some are in a report

LOOK_ROOM = 5.0  # seconds between two looks at the size of the folder, and ten times as long as the last one took
ROOM_AGAIN = 0.95  # of what is allowed: what has to be undercut before requests go on


@dataclass(slots=True)
class CrawlStanding:
    """What the ledger said of this crawl when it was last asked."""

    counts: Counts
    hosts: Sequence[HostCount] = ()
    rates: Mapping[str, float] = field(default_factory=dict)  # requests a second that hosts were sent lately


@dataclass(frozen=True, slots=True)
class Parts:
    """What a run is made of."""

    name: str  # of the system
    folder: Path
    rows: str  # how its files of rows are called
    notes: Path
    ledger: Ledger
    limiter: Limiter
    readers: Readers
    handler: CrawlHandler
    sink: CrawlSink
    keeper: Keeper
    room: "RoomBound | None"
    engine: Engine
    progress: Progress
    shares: HostShares
    clock: Clock
    begin: Callable[[bool], Sequence[FoundUrl]]  # where it begins; what is new of that, if the run has begun
    bounds: dict[str, int | None]  # options that bound it, by name


class CrawlRun:
    """A crawl at work, as the shell sees it."""

    def __init__(self, parts: Parts, counts: Counts, begun: int) -> None:
        self.parts = parts
        self.begun = begun  # the run whose first addresses are all stored
        self.standing = CrawlStanding(counts)
        self._sent: deque[tuple[float, dict[str, int]]] = deque([(parts.clock.now(), {})], maxlen=LATELY)
        self.stopped = False
        self.wanted = Control()

    async def run(self) -> Exit:
        """Crawl until nothing is left to request; the exit code."""
        parts = self.parts
        await self._see_room()
        async with asyncio.TaskGroup() as group:
            beside = [group.create_task(self._look()), group.create_task(self._hear())]
            await self._begin(parts.begin(self.begun == parts.ledger.run))
            if parts.ledger.finished and not self.stopped:
                # A finished crawl is crawled anew: what has not changed says so.
                await parts.ledger.new_run()
                parts.progress.fetched = parts.progress.records = 0
                await self._begin(parts.begin(False))  # noqa: FBT003 - whether this run has begun
            await parts.engine.run()
            for task in beside:
                task.cancel()
        await self._forget()
        if not self.stopped:
            await parts.ledger.finish()
        await self._count()
        await asyncio.to_thread(parts.keeper.finish, await parts.ledger.row_files())
        await write_failed(parts.folder, parts.ledger)
        return self._exit()

    async def _begin(self, found: Sequence[FoundUrl]) -> None:
        """Store where it begins; what is known already stays as it is."""
        ledger = self.parts.ledger
        for at in range(0, len(found), CHUNK):
            is_last = at + CHUNK >= len(found)
            state = self.parts.sink.state(begun=ledger.run) if is_last else None
            for host in await ledger.commit(Batch(found=found[at : at + CHUNK], state=state)):
                ledger.release(host)  # the engine begins by asking for all hosts

    async def _look(self) -> None:
        while True:
            await self._see_room()
            await self._forget()
            await self.parts.clock.sleep(LOOK)
            await self._count()

    async def _hear(self) -> None:
        """Take up what other processes found at hosts of ours."""
        while True:
            self.parts.engine.wake(await self.parts.ledger.woken())

    async def _forget(self) -> str:
        """Forget what the journal says, if it says anything; what is being requested, once that has ended."""
        parts = self.parts
        if await asyncio.to_thread(read_journal, parts.folder) is None:
            return ""
        async with parts.sink.quiet:
            wanted = await asyncio.to_thread(read_journal, parts.folder)
            if wanted is None:
                return ""  # it was done while we waited
            if parts.sink.is_away:
                return "they are forgotten as soon as the ledger can be reached"
            count, busy = await forget(parts.folder, parts.rows, parts.notes, parts.ledger, wanted)
            parts.sink.reopen(await parts.ledger.row_files(), wanted.names_kind, wanted.hosts)
        more = f"; {busy:,} that wait for their turn are as soon as it has come" if busy else ""
        return f"addresses forgotten: {count:,}{more}"

    async def _see_room(self) -> None:
        if self.parts.room is not None and await self.parts.room.look():
            self.control(self.wanted)

    async def _count(self) -> None:
        counts = await self.parts.ledger.counts()
        self.parts.shares.learn(counts.ends)
        now, snapshot = self.parts.clock.now(), self.parts.limiter.snapshot(LIMITED)
        self._sent.append((now, {each.host: each.requests for each in snapshot.hosts}))
        then, before = self._sent[0]
        rates = {
            host: max(0, requests - before.get(host, 0)) / (now - then)
            for host, requests in (self._sent[-1][1].items() if now > then else ())
        }
        self.standing = CrawlStanding(counts, await self.parts.ledger.waiting_by_host(MOST_HOSTS), rates)

    def _exit(self) -> Exit:
        """WAITING if anything is left that nobody asked to leave, FAILED if something failed."""
        counts = self.standing.counts
        if self.stopped and counts.waiting:
            return Exit.WAITING
        ends = Counter[str]()
        for (end, _), number in counts.ends.items():
            ends[end] += number
        if counts.waiting and not self.parts.progress.enough(0):
            return Exit.WAITING
        return Exit.FAILED if ends["failed"] or self.parts.sink.bad_starts else Exit.DONE

    def stop(self) -> None:
        """Begin nothing new."""
        self.stopped = True
        self.parts.ledger.hurry()
        self.parts.engine.stop()

    def control(self, wanted: Control) -> None:
        """Do as is wanted from now on."""
        if wanted.draining:
            self.stop()
            return
        self.wanted = wanted
        is_full = self.parts.room is not None and self.parts.room.is_full
        self.parts.engine.control(paused=wanted.paused or is_full, blocked=wanted.blocked)

    async def carry_out(self, request: ControlRequest) -> str:
        """Retry or forget what the words name, or say what holds a host."""
        if request.action == "forget":
            await asyncio.to_thread(begin_to_forget, self.parts.folder, Forgetting.of(request.words))
            return await self._forget()
        if request.action == "why":
            known = self.parts.limiter.snapshot(EVERY).hosts
            why = next((each.why for each in known if each.host == request.words[0]), None)
            return "it was not requested lately" if why is None else why or "nothing holds it back"
        if request.action != "retry":
            return f"a crawl cannot {request.action}"
        state, host, code = (*request.words, "", "", "")[:3]
        number = await self.parts.ledger.retry(state, host=host or None, code=code or None)
        return f"{number:,} are tried again by the next run"

    def report(self, *, running: bool = True) -> Report:
        """All that is shown."""
        return make_report(self.parts, self.standing, running=running)


class RoomBound:
    """Whether a folder has grown as large as it may."""

    def __init__(self, folder: Path, most: int, clock: Clock) -> None:
        self._folder = folder
        self._most = most
        self._clock = clock
        self._again_at = 0.0
        self.is_full = False
        self.size = 0

    async def look(self) -> bool:
        """See how large the folder is, unless somebody has just done so; whether that changes what may be requested."""
        started, was_full = self._clock.now(), self.is_full
        if started < self._again_at:
            return False
        self.size = await asyncio.to_thread(folder_size, self._folder)
        self.is_full = self.size >= self._most * (ROOM_AGAIN if self.is_full else 1)
        now = self._clock.now()
        self._again_at = now + max(LOOK_ROOM, 10 * (now - started))
        return self.is_full != was_full

    @property
    def said(self) -> str:
        """Why nothing is requested."""
        show = Bytes.__metadata__[0].show  # type: ignore[attr-defined] # of an Annotated type
        return (
            f"the folder has {self.size / (1 << 20):,.1f} MB, and --max-disk is {show(self._most)}: "
            "nothing is requested until it has a twentieth less"
        )


def folder_size(folder: Path) -> int:
    """Bytes on disk of all that is in a folder."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(f"{place}/{name}").st_blocks * 512
            except OSError:  # it has just been removed
                continue
    return total
