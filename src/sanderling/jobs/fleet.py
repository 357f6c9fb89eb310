"""One part of a fleet's job: a copy of its ledger, and records that go to the object store.

An object has the records of a commit and, with --keep, the lines of the answers that were kept: how many bytes of it
are records, as eight bytes, then the records, then those lines.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from struct import Struct
from typing import Any

import msgspec

from sanderling.clock import Clock
from sanderling.crawls import fleet_frontier
from sanderling.crawls.archive import FOLDER as WARCS
from sanderling.crawls.archive import write_index
from sanderling.crawls.fleet_archive import SharedArchive
from sanderling.crawls.fleet_frontier import WRITING, FrontierPartOpener
from sanderling.crawls.fleet_log import PendingObjects, PendingParts, PendingRows
from sanderling.crawls.fleet_open import OpeningPart, SharedCrawl
from sanderling.crawls.fleet_pull import PulledPart, bring_captures, bring_files, unpack_rows
from sanderling.crawls.folder import plan_of
from sanderling.crawls.kept import FILE as KEPT
from sanderling.crawls.kept import Keep, KeptReplies, KeptReply
from sanderling.executor import Executor
from sanderling.fetch.transport import Transport
from sanderling.jobs.aliases import JobMail
from sanderling.jobs.files import FRONTIER, JOB, RECORDS
from sanderling.jobs.folder import JobFile, JobFolder, JobPlan, finish_ledger
from sanderling.jobs.job import Job
from sanderling.jobs.rules import JobRules
from sanderling.jobs.run import START, JobRun, heed_stuck, hosts_of, queued_by
from sanderling.jobs.watchdog import TWICE, FolderWatch, Stuck, Watchdog
from sanderling.stores.durable import FolderError, Lock, plainly, sync_folder, write_new
from sanderling.stores.fleet import FleetCrawl
from sanderling.stores.frontier_requests import LAST, RequestFrontier
from sanderling.stores.frontier_rows import BodyFile, End
from sanderling.stores.leases import LeaseLostError, LeasesAwayError
from sanderling.stores.objects import ObjectError

LENGTH = Struct(">Q")  # of the records in an object


class SharedJobPlan(JobPlan, frozen=True, kw_only=True):
    """What all workers must agree in. Requests are stored with the number of their reader, which is its place here."""

    readers: tuple[str, ...]
    keep: Keep | None = None
    hosts: tuple[str, ...] = ()  # for people: those of a worker are what its own file says

    @classmethod
    def of(cls, job: Job, arguments: Mapping[str, Any], keep: Keep | None) -> "SharedJobPlan":
        """The plan of a job. Raises JobError."""
        return cls(job.name, dict(arguments), readers=tuple(job.readers), keep=keep, hosts=hosts_of(job))

    def differs(self, ours: "SharedJobPlan") -> str:
        """What is different in ours, in words; nothing if it is the same."""
        if self.name != ours.name:
            return f"it is the job {self.name}, not {ours.name}"
        if self.arguments != ours.arguments:
            names = sorted(self.arguments.keys() | ours.arguments.keys())
            theirs, given = self.arguments, ours.arguments
            changed = [name for name in names if theirs.get(name) != given.get(name)]
            said = "; ".join(f"{name} is {theirs.get(name)!r}, not {given.get(name)!r}" for name in changed)
            return f"it has other arguments: {said}"
        if set(self.readers) != set(ours.readers):
            return f"its readers are {', '.join(self.readers)}, not {', '.join(ours.readers)}"
        return "" if self.keep == ours.keep else f"its --keep is {self.keep or 'not given'}, not {ours.keep or 'none'}"


def create_ledger(path: Path, crawl: FleetCrawl) -> None:
    """Make the empty ledger that every copy of a part begins with: readers have the same numbers in all of them."""
    fleet_frontier.create_ledger(path, crawl)
    plan = msgspec.json.decode(crawl.plan, type=SharedJobPlan)
    RequestFrontier(path, plan.readers).close()


class PendingRecords:
    """Records, and the lines of answers that were kept, until a commit has them."""

    def __init__(self, watermark: int, kept: PendingRows) -> None:
        self.records = PendingRows(watermark)
        self.kept = kept

    def take(self) -> PendingObjects:
        """All that waits."""
        (records, files, _), (kept, bodies, captures) = self.records.take(), self.kept.take()
        packed = LENGTH.pack(len(records)) + records + kept if records or kept else b""
        return PendingObjects(packed, [*files, *bodies], captures)


class SharedKept(KeptReplies):
    """The answers that a part keeps, which wait for the commit that has them."""

    def __init__(self, pending: PendingRows) -> None:  # no file: so not that of the other answers
        self.pending = pending
        self.length = pending.length
        self.archive = pending.archive

    def write(self, kept: Sequence[KeptReply]) -> int:
        """Have answers kept with the next commit; where their lines end."""
        self.pending.keep_files(each.raw for each in kept if each.raw is not None)
        self.length = self.pending.archive_and_append(kept)
        return self.length

    def cut(self, length: int) -> None:
        """The commit was not made."""
        self.pending.cut(length)
        self.length = length

    def close(self) -> None:
        """Nothing is open."""


class SharedJobFolder(JobFolder):
    """A folder whose ledger is a copy, and whose records are elsewhere."""

    def __init__(
        self, path: Path, lock: Lock, ledger: RequestFrontier, job: Job, keep: Keep | None, pending: PendingRecords
    ) -> None:
        self._pending = pending
        super().__init__(path, lock, ledger, job, keep)

    def _open_rows(self) -> PendingRows:
        return self._pending.records

    def _open_kept(self) -> SharedKept:
        return SharedKept(self._pending.kept)

    def _keep_bodies(self, bodies: Sequence[BodyFile]) -> None:
        self._pending.records.keep_files(bodies)


class JobPartOpener(FrontierPartOpener[RequestFrontier, SharedJobFolder, JobRun]):
    """Opens parts of a job, each with a transport of its own. Set `dog` before any is opened, to have calls watched."""

    ledger = FRONTIER
    mail = JobMail

    def __init__(
        self,
        folder: Path,
        shared: SharedCrawl,
        clock: Clock,
        make_transport: Callable[[], Transport[Any]],
        job: Job,
        rules: JobRules,
    ) -> None:
        super().__init__(folder, shared, clock, make_transport)
        self.dog: Watchdog | None = None
        self._job = job
        self._keep = msgspec.json.decode(shared.crawl.plan, type=SharedJobPlan).keep
        self._rules = replace(rules, writing=rules.writing or WRITING)
        self._opened: dict[Path, tuple[SharedJobFolder, Executor]] = {}  # the last of each part

    def create(self, path: Path) -> None:
        """Make the empty ledger that every copy begins with."""
        create_ledger(path, self.shared.crawl)

    def open_ledger(self, path: Path) -> RequestFrontier:
        """Open a copy of the ledger, which has all readers. Raises FolderError."""
        return RequestFrontier(path, ())

    def open_folder(
        self, part: OpeningPart, ledger: RequestFrontier, share: Callable[[PendingParts], None]
    ) -> SharedJobFolder:
        """Open the folder of a part."""
        archive = SharedArchive(part.next_commit) if self._keep == "warc" else None
        pending = PendingRecords(ledger.meta.watermark, PendingRows(ledger.meta.kept, archive))
        share(pending)
        return SharedJobFolder(part.path, part.lock, ledger, self._job, self._keep, pending)

    def make_run(self, part: OpeningPart, folder: SharedJobFolder, transport: Transport[Any]) -> JobRun:
        """The run of a part."""
        self._opened[part.path] = folder, part.executor
        rules = replace(self._rules, slots=self.slots(self._rules.slots))
        watch = None if self.dog is None else FolderWatch(self.dog, part.path)
        return JobRun(folder, transport, part.executor, rules=rules, clock=self.clock, watch=watch)

    def say(self, run: JobRun) -> tuple[Callable[[], int], Callable[[], int]]:
        """Records and requests that are in commits: whoever takes the part over has no fewer."""
        ledger = run.folder.ledger
        return (lambda: ledger.meta.records), (lambda: ledger.meta.requests)

    def failed(self, run: JobRun) -> int:
        """How many requests of a part have failed, or were left out."""
        return run.counts[End.FAILED] + run.counts[End.LEFT_OUT]

    def tell_stuck(self, key: str, folder: Path, stuck: Stuck) -> None:
        """Have whoever takes the part over know which request has held the event loop. In a thread of its own.

        What was asked for last, since it was stuck before, has failed now.
        """
        if key == START or folder not in self._opened:
            return
        opened, executor = self._opened[folder]

        def heed() -> None:
            queued = queued_by(opened, key)
            if queued is not None:
                times = max(stuck.times, TWICE if queued.priority == LAST else 1)
                heed_stuck(opened, queued, msgspec.structs.replace(stuck, times=times))

        async def wait() -> None:
            await executor(heed)

        # Else stuck.json says it to the next worker of this machine.
        with suppress(FolderError, LeaseLostError, LeasesAwayError, ObjectError):
            asyncio.run(wait())


# What was brought here.


async def bring_records(part: PulledPart) -> int:
    """Have what the ledger speaks of beside it; how many bytes of records are new. Raises FolderError, ObjectError."""
    segments, paths = await part.segments(FRONTIER), [part.folder / name for name in (RECORDS, KEPT)]
    there = [path.stat().st_size if path.exists() else 0 for path in paths]
    ends = list(accumulate((each.size - LENGTH.size for each in segments), initial=0))
    with plainly(part.folder):
        if sum(there) not in ends:  # somebody was killed in the middle of one
            for path in paths:
                path.unlink(missing_ok=True)
            there = [0, 0]
        for each in segments[ends.index(sum(there)) :]:
            rows = unpack_rows(await part.fetch(each), each)
            middle = LENGTH.size + LENGTH.unpack_from(rows)[0]
            await bring_captures(part, each, rows[middle:])
            _append(paths, (rows[LENGTH.size : middle], rows[middle:]))
        paths[0].touch()  # of a part without records, too
        sync_folder(part.folder)
    await bring_files(part)
    with closing(RequestFrontier(part.folder / FRONTIER, ())) as ledger:
        expected = [ledger.meta.watermark, ledger.meta.kept]
    found = [path.stat().st_size if path.exists() else 0 for path in paths]
    if found != expected:
        sizes = f"{RECORDS} and {KEPT} have {found[0]} and {found[1]} bytes, expected {expected[0]} and {expected[1]}"
        raise FolderError(f"{part.folder}: {sizes}: somebody has changed them; pull into another folder")
    return found[0] - there[0]


def _append(paths: Sequence[Path], rows: Sequence[bytes]) -> None:
    for path, each in zip(paths, rows, strict=True):
        if each:
            with path.open("ab") as file:
                file.write(each)


def finish_pulled(folder: Path, wall: float, complete: bool) -> None:  # noqa: FBT001 - by a table
    """Leave a part that was pulled as the folder of a job whose run has come to its end."""
    with plainly(folder), closing(RequestFrontier(folder / FRONTIER, ())) as ledger:
        plan = plan_of(ledger.meta, folder / FRONTIER, SharedJobPlan)
        said = JobFile(name=plan.name, arguments=plan.arguments, readers=plan.readers, hosts=plan.hosts)
        write_new(folder / JOB, [msgspec.json.encode(said), b"\n"])
        if plan.keep == "warc":
            (folder / WARCS).mkdir(exist_ok=True)  # of a part without answers, too
            write_index(folder, 1, folder / KEPT, ledger.meta.kept)
        finish_ledger(folder, ledger, wall, complete=complete)
