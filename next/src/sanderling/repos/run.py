"""One run of an archive: from the first page of the directory to the exit code."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

import msgspec

from sanderling.clock import Clock
from sanderling.engine.loop import Engine
from sanderling.files import Exit
from sanderling.formats.rca import Block
from sanderling.formats.segments import Segments, segment_number
from sanderling.limit import Limiter
from sanderling.observe.alerts import Alert, Alerts, Level
from sanderling.observe.control import Control, ControlRequest
from sanderling.observe.report import Report
from sanderling.readers.pool import Readers
from sanderling.repos.archive import Archive
from sanderling.repos.atproto import RepoCategory, account_at
from sanderling.repos.away import Servers
from sanderling.repos.directory import Directory
from sanderling.repos.feed import AHEAD, FEW_HOSTS, MOST_AHEAD, DirectoryFeed
from sanderling.repos.figures import RepoFigures
from sanderling.repos.notes import own_files
from sanderling.repos.options import ReposOptions
from sanderling.repos.paces import HostPaces
from sanderling.repos.redis_progress import CHUNK, FailedRepo, RedisProgress
from sanderling.repos.report import make_report
from sanderling.repos.sink import FAILED, ParkedNote, RepoSink
from sanderling.stores import Batch, Counts, HostCount, Ledger

LOOK = 1.0  # seconds between two looks at the counts
MOST_HOSTS = 20  # in a report
MANY = 1000  # accounts of a host that is worth an alert when it is set aside


@dataclass(frozen=True, slots=True)
class ArchiveParts:
    """What a run is made of."""

    folder: Path
    options: ReposOptions
    ledger: Ledger
    directory: Directory
    feed: DirectoryFeed
    segments: Segments
    sink: RepoSink
    redis: RedisProgress | None
    limiter: Limiter
    paces: HostPaces
    readers: Readers
    engine: Engine
    figures: RepoFigures
    servers: Servers
    alerts: Alerts
    clock: Clock


class ReposRun:
    """An archive at work, as the shell sees it."""

    def __init__(self, parts: ArchiveParts, counts: Counts) -> None:
        self.parts = parts
        self.counts = counts
        self.hosts: Sequence[HostCount] = ()
        self.stopped = False
        self.wanted = Control()
        self._alerted: set[str] = set()
        self._aside: set[str] = set()  # hosts that were set aside or blocked
        self._hosts_at = -inf  # when the hosts are looked at again

    async def run(self) -> Exit:
        """Archive until nothing is left to request; the exit code."""
        parts = self.parts
        async with asyncio.TaskGroup() as group:
            feeding = parts.feed.run(parts.engine.wake, self._is_roomy, self._is_idle)
            beside = [group.create_task(work) for work in (feeding, self._look(), self._hear(), self._bury())]
            await parts.engine.run()
            if not self.stopped:
                await beside[-1]
            for task in beside:
                task.cancel()
        await asyncio.to_thread(parts.segments.close)
        self._hosts_at = -inf
        await self._count()
        if not self.stopped:
            await self._end()
            await self._count()
        if parts.options.alert_webhook is not None:  # the screen has it anyway
            parts.alerts.post(Alert("Archive of repos ended", fields=tuple(self._summary())))
        return self._exit()

    async def _end(self) -> None:
        """The run has ended by itself: what waits does so for another one."""
        parts = self.parts
        state = parts.feed.state
        # Where several processes share a ledger, the others may be at work.
        state.ended = await parts.ledger.finish() or not parts.ledger.process
        await parts.ledger.commit(Batch(state=msgspec.msgpack.encode(state)))
        if parts.redis is None:
            return
        for host in await parts.ledger.waiting_by_host(1 << 30):
            note = msgspec.msgpack.decode(host.note, type=ParkedNote) if host.note else ParkedNote()
            category = parts.paces.blocked.get(host.host) or RepoCategory(note.category or RepoCategory.UNKNOWN)
            await self._note_waiting(parts.redis, host.host, category)
        if not self.counts.waiting:
            await parts.redis.record(cursor="")

    async def _note_waiting(self, redis: RedisProgress, host: str, category: RepoCategory) -> None:
        """Say why accounts of a host wait, those too that were never requested."""
        waiting: list[FailedRepo] = []
        async for task in self.parts.ledger.tasks("waiting", host=host):
            known = task.code if task.code in set(RepoCategory) else category
            waiting.append(FailedRepo(account_at(task.url)[1], RepoCategory(known)))
            if len(waiting) >= CHUNK:
                await redis.record(failed=waiting)
                waiting = []
        await redis.record(failed=waiting)

    async def _bury(self) -> None:
        """Give those accounts a tombstone that are archived, and that the directory has deleted since."""
        parts, state = self.parts, self.parts.feed.state
        if state.looked or not parts.directory.knows_deleted:
            return
        archive = Archive(parts.folder, await own_files(parts.folder, parts.ledger))
        gone: list[tuple[Block, int]] = []
        for path in archive.segments:
            places = await asyncio.to_thread(lambda path=path: list(archive.places(path)))  # type: ignore[misc]
            for start in range(0, len(places), CHUNK):
                dids = {did: offset for did, offset, _ in places[start : start + CHUNK]}
                found = await parts.servers.call(lambda dids=dids: parts.directory.find(list(dids)))  # type: ignore[misc]
                is_present = segment_number(path) >= state.first_segment
                run = parts.ledger.run if is_present else parts.ledger.run - 1
                blocks = [archive.block_at(path, dids[did]) for did, host in found.items() if not host]
                gone += [(block, run) for block in blocks if not archive.is_gone(block)]
        state.looked = True
        await parts.sink.bury(gone, msgspec.msgpack.encode(state))

    def _is_roomy(self, waiting: int) -> bool:
        """Whether another page of the directory is of use, with so many DIDs waiting."""
        facts = self.parts.engine.facts()
        page = self.parts.options.page_size
        if waiting <= AHEAD * page:
            return True
        active = facts.hosts - len(facts.parked)
        return active < FEW_HOSTS and waiting < MOST_AHEAD * page

    def _is_idle(self) -> bool:
        """Whether half of the workers have nothing to do."""
        return self.parts.engine.facts().inflight < self.parts.options.workers // 2

    async def _look(self) -> None:
        while True:
            await self._count()
            self._block()
            await self.parts.clock.sleep(LOOK)

    async def _count(self) -> None:
        """Look at the counts; at the hosts more seldom, since that reads all that waits."""
        clock, ledger = self.parts.clock, self.parts.ledger
        self.counts = await ledger.counts()
        if (now := clock.now()) >= self._hosts_at:
            self.hosts = await ledger.waiting_by_host(MOST_HOSTS)
            self._hosts_at = clock.now() + 50 * (clock.now() - now)

    def _block(self) -> None:
        """Leave hosts alone that failed ten times in a row, if that is wanted; say which are set aside."""
        parts = self.parts
        if parts.paces.blocked.keys() - self._aside:
            self.control(self.wanted)
        self._aside.update(parts.paces.blocked, parts.engine.facts().parked)
        parts.figures.blocked = len(self._aside)
        for host in self.hosts:
            if host.host in self._aside and host.waiting >= MANY and host.host not in self._alerted:
                self._alerted.add(host.host)
                fields = (("host", host.host), ("accounts that wait", f"{host.waiting:,}"))
                parts.alerts.post(Alert("Host set aside", level=Level.WARNING, fields=fields))

    async def _hear(self) -> None:
        """Take up what other processes found at hosts of ours."""
        while True:
            self.parts.engine.wake(await self.parts.ledger.woken())

    def _summary(self) -> list[tuple[str, str]]:
        ends = Counter[str]()
        for (end, _), number in self.counts.ends.items():
            ends[end] += number
        return [(name, f"{number:,}") for name, number in (*ends.items(), ("waiting", self.counts.waiting))]

    def _exit(self) -> Exit:
        if self.counts.waiting or (self.stopped and not self.parts.feed.is_over):
            return Exit.WAITING
        failed = sum(number for (end, _), number in self.counts.ends.items() if end == FAILED)
        return Exit.FAILED if failed else Exit.DONE

    def stop(self) -> None:
        """Begin nothing new."""
        self.stopped = self.parts.servers.stopped = True
        self.parts.engine.stop()

    def control(self, wanted: Control) -> None:
        """Do as is wanted from now on."""
        if wanted.draining:
            self.stop()
            return
        self.wanted = wanted
        self.parts.engine.control(paused=wanted.paused, blocked=wanted.blocked | self.parts.paces.blocked.keys())

    async def carry_out(self, request: ControlRequest) -> str:
        """Retry what the words name, or say what holds a host."""
        if request.action == "why":
            host = request.words[0]
            if host in self.parts.paces.blocked:
                return f"blocked for this run after ten failures in a row ({self.parts.paces.blocked[host]})"
            known = self.parts.limiter.snapshot(1 << 30).hosts
            why = next((each.why for each in known if each.host == host), None)
            return "it was not requested lately" if why is None else why or "nothing holds it back"
        if request.action != "retry":
            return f"an archive cannot {request.action} while it runs"
        state, host, code = (*request.words, "", "", "")[:3]
        number = await self.parts.ledger.retry(state, host=host or None, code=code or None)
        return f"{number:,} are tried again by the next run"

    def report(self, *, running: bool = True) -> Report:
        """All that is shown."""
        return make_report(self, running=running)
