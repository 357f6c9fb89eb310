"""One part of a fleet's crawl of repos: a copy of its progress, and segments that go to the object store.

A part asks hosts of its own. It reads the directory from its cursor on, and takes what is at these hosts: so its
progress is all that the next owner needs.
"""

import io
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from sanderling.clock import Clock
from sanderling.crawls.fleet_log import PendingObjects
from sanderling.crawls.fleet_mail import FleetOutbox
from sanderling.crawls.fleet_open import OpenedRun, OpeningPart, PartOpener, SharedCrawl
from sanderling.executor import Executor
from sanderling.fetch.attempts import LeasedSender
from sanderling.fetch.transport import Transport
from sanderling.formats.rca_writer import RcaWriter
from sanderling.repos.crawl import RepoCrawl, Stores
from sanderling.repos.directory import Directory
from sanderling.repos.fleet_directory import MovedRepos, PartWalk, SharedPages
from sanderling.repos.measures import ARCHIVED
from sanderling.repos.parts import PROGRESS
from sanderling.repos.report import RepoWatch
from sanderling.repos.rules import RepoRules
from sanderling.repos.segments import Blocks
from sanderling.repos.since import EarlierRevs
from sanderling.repos.sink import RULES
from sanderling.stores import sqlite_progress
from sanderling.stores.durable import FolderError
from sanderling.stores.fleet import FleetCrawl
from sanderling.stores.ports import ProgressError, ProgressView
from sanderling.stores.sqlite_progress import SqliteProgress

LEDGER_FORMAT = f"repos {sqlite_progress.PROGRESS.version}.1"
# A commit is an object of its own, and costs the server as much with one repo as with a thousand: so repos wait for
# others, for some seconds. What waits is in memory, and a worker may have all parts.
WRITING = replace(RULES, every=4.0, hungry=2.0)
LARGEST_SEGMENT = 16 * 2**20  # bytes
LEAST_WAITING, MOST_WAITING = 8 * 2**20, RULES.most_bytes  # bytes, of one part
ALL_WAITING = 512 * 2**20  # bytes, of all parts of a worker
FIRST_DIDS = 100  # by which two directories are told apart, beside the number of all
SAME = 0.9  # how many of them one has that was updated meanwhile: accounts come, and some are deleted


class RepoPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What all workers must have alike, for the segments to be those of one crawl."""

    cids: str
    server: str = ""  # the address of the directory, if it has one
    dids: int = 0  # of a directory in a file, how many it has, and which come first
    first: tuple[str, ...] = ()
    earlier: int = 0  # repos of earlier archives, which are left out if they have not changed

    def of_file(self, directory: Directory) -> "RepoPlan":
        """The same for a directory in a file."""
        first = tuple(each.did for each in directory.page("", FIRST_DIDS))
        return msgspec.structs.replace(self, dids=directory.count(), first=first)

    def compare(self, ours: "RepoPlan", directory: Directory) -> str:
        """What is different in this plan; nothing if our directory is its own, or an update of that."""
        if self.server != ours.server:
            return f"its directory is {self.server or 'a file'}, not {ours.server or 'a file'}"
        if self.cids != ours.cids:
            return f"its cids are {self.cids}, not {ours.cids}"
        if self.earlier != ours.earlier:
            return f"it leaves out {self.earlier:,} earlier repos, not {ours.earlier:,}"
        if len(directory.hosts_of(self.first)) < SAME * len(self.first) or ours.dids < SAME * self.dids:
            return f"its directory has {self.dids:,} DIDs from {self.first[0]} on; ours is another, of {ours.dids:,}"
        return ""


@dataclass(frozen=True, slots=True)
class RepoReading:
    """What the parts of a worker share, beside the crawl."""

    pages: SharedPages
    cores: Executor  # does as many things at once as there are cores
    segment_size: int  # bytes that a segment grows to
    earlier: EarlierRevs | None = None


class PendingSegment:
    """Blocks that wait for the commit that has them: a whole segment, in the place of segments in a folder."""

    def __init__(self, number: int, created_at: Callable[[], int]) -> None:
        """`number` is that of the last segment that the progress knows."""
        self.number = number
        self.finalised = 0  # by us
        self.bytes = 0  # of those that wait
        self._created_at = created_at
        self._blocks: list[tuple[str, bytes]] = []

    def append(self, blocks: Blocks) -> int:
        """Have blocks kept with the next commit; the number of their segment."""
        if blocks and not self._blocks:
            self.number += 1
        self._blocks += blocks
        self.bytes += sum(len(block) for _, block in blocks)
        return self.number

    def take(self) -> PendingObjects:
        """The segment as a file; nothing if nothing waits."""
        if not self._blocks:
            return PendingObjects(b"")
        file = io.BytesIO()
        writer = RcaWriter(file, created_at=self._created_at())
        for did, block in self._blocks:
            writer.append(did, block)
        writer.finalise()
        self._blocks, self.bytes = [], 0
        self.finalised += 1
        return PendingObjects(file.getvalue())


class RepoPartOpener(PartOpener):
    """Opens parts of a crawl of repos, each with a transport of its own."""

    ledger = PROGRESS

    def __init__(
        self,
        folder: Path,
        shared: SharedCrawl,
        clock: Clock,
        make_transport: Callable[[], Transport[Any]],
        rules: RepoRules,
        reads: RepoReading,
    ) -> None:
        super().__init__(folder, shared, clock)
        self._make_transport = make_transport
        self._rules = rules
        self._reads = reads
        self.watches: dict[int, RepoWatch] = {}  # of the parts that were opened last

    def create(self, path: Path) -> None:
        """Make the empty progress that every copy begins with."""
        create_ledger(path, self.shared.crawl)

    async def open_run(self, part: OpeningPart) -> OpenedRun:
        """Open the progress of a part, and the crawl of it."""
        number, reads = part.held.lease.part, self._reads
        progress, before = await part.executor(_open_progress, part.path / PROGRESS)
        with ExitStack() as undo:
            undo.callback(progress.close)  # before the lock is free, and before its thread ends
            segment = PendingSegment(before.segment, lambda: int(self.clock.wall() * 1e6))
            moved = MovedRepos(progress, FleetOutbox(self.shared.fleet, part.held), part.inbox)
            log = part.log(segment, bytes, lambda: moved.read)
            progress.share(log)
            transport = self._make_transport()
            leased = replace(transport, http=LeasedSender(transport.http, part.held.may_send))
            walk = PartWalk(reads.pages, part.held, self.worker.board, self.clock, moved, part.executor)
            stores = Stores(reads.pages.directory, progress, segment, reads.earlier, walk)
            crawl = RepoCrawl(stores, leased, part.executor, reads.cores, rules=self.part_rules(), clock=self.clock)
            part.undo.callback(part.lock.release)
            part.undo.push(undo.pop_all())
        self.watches[number] = RepoWatch(crawl, segment, 0, before)

        def archived() -> int:
            return before.total_crawled + crawl.ended[ARCHIVED]

        return OpenedRun(
            crawl, log, transport, archived, lambda: crawl.unread + progress.scheduled, is_resting=lambda: walk.rests
        )

    def part_rules(self) -> RepoRules:
        """The rules of one part of those that we have, or will have: it has its share of the memory of this worker."""
        share = -(-self.shared.crawl.parts // self.worker.figures.workers)
        most = max(LEAST_WAITING, min(MOST_WAITING, ALL_WAITING // share))
        size = min(LARGEST_SEGMENT, most // 2, self._reads.segment_size)
        page_size = max(1, self._rules.page_size // share)
        return replace(self._rules, page_size=page_size, writing=replace(WRITING, bytes=size, most_bytes=most))


def _open_progress(path: Path) -> tuple[SqliteProgress, ProgressView]:
    try:
        progress = SqliteProgress(path)
        return progress, progress.view()
    except ProgressError as error:
        path.unlink(missing_ok=True)  # the next copy is made anew
        raise FolderError(str(error)) from error


def create_ledger(path: Path, crawl: FleetCrawl) -> None:
    """Make the empty progress that every copy of a part begins with."""
    del crawl
    SqliteProgress.create_shared(path)
