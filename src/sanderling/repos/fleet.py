"""One part of a fleet's crawl of repos: a copy of its progress, and segments that go to the object store.

A part asks hosts of its own. It reads the directory for itself, from its cursor on, and takes what is at these hosts:
so its progress is all that the next owner needs. The parts of one worker read the same pages, and each page once as
long as they are near each other.
"""

import io
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from sanderling.clock import Clock
from sanderling.crawls.fleet_log import PendingObjects
from sanderling.crawls.fleet_open import OpenedRun, OpeningPart, PartOpener, SharedCrawl
from sanderling.executor import Executor
from sanderling.fetch.attempts import LeasedSender
from sanderling.fetch.transport import Transport
from sanderling.formats.rca_writer import RcaWriter
from sanderling.repos.crawl import RepoCrawl, Stores
from sanderling.repos.directory import Directory, DirectoryEntry
from sanderling.repos.feeding import WalkedPage
from sanderling.repos.hand_out import OwnHosts, PartLookup
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

LEDGER_FORMAT = f"repos {sqlite_progress.PROGRESS.version}"
# A commit is an object of its own, and costs the server as much with one repo as with a thousand: so repos wait for
# others, for some seconds. What waits is in memory, and a worker may have all parts.
WRITING = replace(RULES, every=4.0, hungry=2.0)
LARGEST_SEGMENT = 16 * 2**20  # bytes
LEAST_WAITING, MOST_WAITING = 8 * 2**20, RULES.most_bytes  # bytes, of one part
ALL_WAITING = 512 * 2**20  # bytes, of all parts of a worker
PAGES_KEPT = 4  # pages of the directory that are kept for other parts
SAMPLE = 1_000  # DIDs by which two directories are told apart, beside their number


class RepoPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What all workers must have alike, for the segments to be those of one crawl."""

    directory: str  # how it is told from others
    cids: str
    earlier: int = 0  # repos of earlier archives, which are left out if they have not changed


def describe_directory(directory: Directory) -> str:
    """How a directory is told from others: how many DIDs it has, and a digest of the first."""
    digest = blake2b(msgspec.json.encode(directory.page("", SAMPLE)), digest_size=8)
    return f"{directory.count()} DIDs ({digest.hexdigest()})"


@dataclass(frozen=True, slots=True)
class RepoReading:
    """What the parts of a worker share, beside the crawl."""

    pages: "SharedPages"
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


class SharedPages:
    """The directory as the parts of one worker read it: the last pages are kept, for those that come to them later."""

    def __init__(self, directory: Directory, parts: int, page_size: int, executor: Executor) -> None:
        """The `executor` does one thing at a time."""
        self.directory = directory
        self.part_of = PartLookup(parts)
        self._page_size = page_size
        self._executor = executor
        self._kept: OrderedDict[str, _SplitPage | None] = OrderedDict()  # by the DID that they are behind

    async def page(self, part: int, after: str) -> WalkedPage | None:
        """What follows a DID at hosts of a part, up to where it was looked for; None at the end of the directory."""
        page = await self._executor(self._read, after)
        return None if page is None else WalkedPage(page.entries.get(part, ()), page.last)

    def _read(self, after: str) -> "_SplitPage | None":
        if after not in self._kept:
            found = self.directory.page(after, self._page_size)
            self._kept[after] = _SplitPage.of(found, self.part_of) if found else None
        self._kept.move_to_end(after)
        while len(self._kept) > PAGES_KEPT:
            self._kept.popitem(last=False)
        return self._kept[after]


@dataclass(frozen=True, slots=True)
class _SplitPage:
    entries: dict[int, list[DirectoryEntry]]  # by part
    last: str

    @classmethod
    def of(cls, found: Sequence[DirectoryEntry], part_of: PartLookup) -> "_SplitPage":
        entries: dict[int, list[DirectoryEntry]] = {}
        for each in found:
            entries.setdefault(part_of(each.host), []).append(each)
        return cls(entries, found[-1].did)


class PartWalk:
    """The directory as one part walks it, to its end: whoever has come there waits for the others elsewhere."""

    def __init__(self, pages: SharedPages, part: int) -> None:
        self._pages = pages
        self._part = part

    async def page(self, after: str, *, idle: bool) -> WalkedPage | None:
        """What follows."""
        del idle
        return await self._pages.page(self._part, after)


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
            log = part.log(segment, bytes, tuple)
            progress.share(log)
            transport = self._make_transport()
            leased = replace(transport, http=LeasedSender(transport.http, part.held.may_send))
            part_of = reads.pages.part_of
            own = OwnHosts(reads.pages.directory, lambda url: part_of(url) == number)
            stores = Stores(own, progress, segment, reads.earlier, PartWalk(reads.pages, number))
            crawl = RepoCrawl(stores, leased, part.executor, reads.cores, rules=self._share(), clock=self.clock)
            part.undo.callback(part.lock.release)
            part.undo.push(undo.pop_all())
        self.watches[number] = RepoWatch(crawl, segment, 0, before)

        def archived() -> int:
            return before.total_crawled + crawl.ended[ARCHIVED]

        return OpenedRun(crawl, log, transport, archived, lambda: crawl.unread + progress.scheduled)

    def _share(self) -> RepoRules:
        """The rules of one part of those that we have, or will have."""
        share = -(-self.shared.crawl.parts // self.worker.figures.workers)
        most = max(LEAST_WAITING, min(MOST_WAITING, ALL_WAITING // share))
        size = min(LARGEST_SEGMENT, most // 2, self._reads.segment_size)
        return replace(self._rules, writing=replace(WRITING, bytes=size, most_bytes=most))


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
