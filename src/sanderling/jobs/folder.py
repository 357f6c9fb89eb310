"""The folder of a job: whose it is, what it holds, and how a run begins and ends in it."""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any, Self

import msgspec

from sanderling.jobs.job import Job
from sanderling.stores import frontier_file
from sanderling.stores.durable import FolderError, Lock, check_empty, plainly, sync_folder, write_new
from sanderling.stores.frontier_file import FrontierMeta
from sanderling.stores.frontier_requests import EndedRequest, FoundRequest, JobProgress, RequestFrontier, Waiting
from sanderling.stores.frontier_rows import Failed, HostNote, RetryUrl
from sanderling.stores.rows_file import RowsFile, reaches

RECORDS, FAILED, FRONTIER, JOB = "records.jsonl", "failed.jsonl", "frontier.db", "job.json"
FORMAT = 1  # of job.json


class JobFile(msgspec.Struct, frozen=True, kw_only=True):
    """What job.json says, for people and other programs: the frontier has what counts."""

    name: str
    arguments: dict[str, Any]
    readers: tuple[str, ...]
    hosts: tuple[str, ...]
    format: int = FORMAT


class Plan(msgspec.Struct, frozen=True):
    """Whose folder it is."""

    name: str
    arguments: dict[str, Any]


class JobFolder:
    """A folder that one run holds alone, from `open` to the end of its `with` block."""

    def __init__(self, path: Path, lock: Lock, frontier: RequestFrontier) -> None:
        self.path = path
        self.frontier = frontier
        self.arguments = _plan_of(path, frontier.meta).arguments
        self._lock = lock
        meta = frontier.meta
        if not reaches(path / RECORDS, meta.watermark):
            size = (path / RECORDS).stat().st_size if (path / RECORDS).exists() else 0
            raise FolderError(
                f"{path / RECORDS} has {size} bytes, expected {meta.watermark} that end with a line: it was cut short"
                " or changed. Restore it from a copy, or begin anew in another folder."
            )
        self._rows = RowsFile(path / RECORDS, meta.watermark)
        if meta.closed:
            frontier.note(closed=False, finished=False)

    @classmethod
    def open(cls, path: Path, job: Job, arguments: Mapping[str, Any], hosts: Sequence[str], wall: float) -> Self:
        """Begin a run of `job`, or go on with it. FolderError says why not."""
        plan = Plan(job.name, dict(arguments))
        with plainly(path), ExitStack() as undo:
            check_empty(path, FRONTIER)
            path.mkdir(parents=True, exist_ok=True)
            lock = Lock(path / "lock")
            undo.callback(lock.release)
            _make(path, plan, wall)
            frontier = RequestFrontier(path / FRONTIER, job.readers)
            undo.callback(frontier.close)
            _check_plan(path, frontier.meta, plan)
            said = JobFile(name=job.name, arguments=plan.arguments, readers=tuple(job.readers), hosts=tuple(hosts))
            write_new(path / JOB, [msgspec.json.encode(said), b"\n"])
            folder = cls(path, lock, frontier)
            undo.pop_all()
        return folder

    def begin(self, found: Iterable[FoundRequest]) -> None:
        """Add what the job starts with."""
        with plainly(self.path):
            self.frontier.commit_requests([], found, self._progress(self.frontier.meta.requests))

    def commit(
        self, ended: Sequence[EndedRequest], again: Sequence[RetryUrl], notes: Sequence[HostNote], requests: int
    ) -> Waiting:
        """Keep what became of some requests, with their records, all or nothing; how many new ones wait."""
        with plainly(self.path):
            records = [record for each in ended for record in each.records]
            self._rows.append(records)
            try:
                new = self.frontier.commit_requests(ended, (), self._progress(requests, records), again)
            except BaseException:
                self._rows.cut(self.frontier.meta.watermark)
                raise
            self.frontier.note_hosts(notes)
        return new

    def _progress(self, requests: int, records: Sequence[bytes] = ()) -> JobProgress:
        checksum = self.frontier.meta.checksum
        for piece in chain.from_iterable((record, b"\n") for record in records):
            checksum = zlib.crc32(piece, checksum)
        return JobProgress(self._rows.length, self.frontier.meta.records + len(records), checksum, requests)

    # By position, since that is how a thread is handed its work.
    def finish(self, wall: float, complete: bool) -> None:  # noqa: FBT001
        """End the run: list what failed, and if all is decided call the job finished."""
        with plainly(self.path):
            write_new(self.path / FAILED, map(failed_line, self.frontier.failed_requests()))
            sync_folder(self.path)
            self.frontier.note(closed=True, finished=complete, ended=wall)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._rows.close()
        self.frontier.close()
        self._lock.release()


def _make(path: Path, plan: Plan, wall: float) -> None:
    """Make the frontier, unless it is there: under another name first, so that it is there whole or not at all."""
    if (path / FRONTIER).exists():
        return
    draft = path / f"{FRONTIER}.draft"
    for each in path.glob(f"{draft.name}*"):
        each.unlink()
    frontier_file.create(draft, FrontierMeta(plan=msgspec.json.encode(plan).decode(), started=wall))
    draft.replace(path / FRONTIER)
    sync_folder(path)


def _check_plan(path: Path, meta: FrontierMeta, plan: Plan) -> None:
    """Raise FolderError if the folder is another job's, or that of the same job with other arguments."""
    found = _plan_of(path, meta)
    if found.name != plan.name:
        raise FolderError(f"{path} holds the job {found.name}, not {plan.name}. Choose another folder.")
    if found.arguments != plan.arguments:
        names = sorted(found.arguments.keys() | plan.arguments.keys())
        changed = [
            f"{name} was {found.arguments.get(name)!r} and is {plan.arguments.get(name)!r}"
            for name in names
            if found.arguments.get(name) != plan.arguments.get(name)
        ]
        raise FolderError(
            f"{path} holds {plan.name} with other arguments: {'; '.join(changed)}."
            " Go on with those that it began with, or choose another folder."
        )


def _plan_of(path: Path, meta: FrontierMeta) -> Plan:
    try:
        return msgspec.json.decode(meta.plan, type=Plan)
    except msgspec.MsgspecError as error:
        raise FolderError(f"{path / FRONTIER} is damaged: plan: {error}. Restore it from a copy.") from None


def failed_line(found: tuple[Failed, str]) -> bytes:
    """A line of failed.jsonl."""
    failed, reader = found
    row = failed._asdict()
    row["outcome"] = row.pop("code")
    row["end"] = failed.end.name.lower()
    return msgspec.json.encode(row | {"read": reader}) + b"\n"
