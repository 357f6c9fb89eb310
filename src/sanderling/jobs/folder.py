"""The folder of a job: whose it is, what it holds, and how a run begins and ends in it."""

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Self

import msgspec

from sanderling.crawls.archive import FOLDER as WARCS
from sanderling.crawls.archive import write_index
from sanderling.crawls.folder import AppendedRows, LedgerFolder, failed_line, list_failures, plan_of
from sanderling.crawls.kept import FILE as KEPT
from sanderling.crawls.kept import Keep, KeptReplies, write_bodies
from sanderling.crawls.parts import check_one
from sanderling.fetch.attempts import LeavingOut, Sends
from sanderling.jobs.aliases import AliasClaim, judge_claims
from sanderling.jobs.files import FRONTIER, JOB, RECORDS
from sanderling.jobs.forget import go_on, is_forgotten
from sanderling.jobs.job import Job
from sanderling.pages.forget import ForgottenUrls
from sanderling.stores import frontier_file
from sanderling.stores.durable import FolderError, Lock, check_empty, plainly, sync_folder, write_new
from sanderling.stores.forgotten import Forgotten
from sanderling.stores.frontier_file import FrontierMeta
from sanderling.stores.frontier_requests import EndedRequest, FoundRequest, JobProgress, RequestFrontier, Waiting
from sanderling.stores.frontier_rows import UNFETCHED, BodyFile, End, RetryUrl
from sanderling.stores.rows_file import RowsFile, reaches

FORMAT = 1  # of job.json


class JobFile(msgspec.Struct, frozen=True, kw_only=True):
    """What job.json says, for people and other programs: the ledger has what counts."""

    name: str
    arguments: dict[str, Any]
    readers: tuple[str, ...]
    hosts: tuple[str, ...]
    format: int = FORMAT


class JobPlan(msgspec.Struct, frozen=True):
    """Whose folder it is."""

    name: str
    arguments: dict[str, Any]


class JobFolder(LedgerFolder[RequestFrontier]):
    """A folder that one run holds alone, from `open` to the end of its `with` block."""

    def __init__(self, path: Path, lock: Lock, ledger: RequestFrontier, job: Job, keep: Keep | None = None) -> None:
        super().__init__(path, lock, ledger)
        self.job = job
        self.keep = keep
        self.twice = 0  # records that came by a redirect and were there, in this run
        self.more = Counter(
            {End.MOVED: 0, End.FAILED: 0}
        )  # requests that have an end in this run by that, and were not asked for
        self._forgotten = ForgottenUrls(Forgotten.of(path))
        self.arguments = plan_of(ledger.meta, path / FRONTIER, JobPlan).arguments
        self.rows = self._open_rows()
        if keep is not None or ledger.meta.kept:
            self.kept = self._open_kept()

    def _open_rows(self) -> AppendedRows:
        path, watermark = self.path / RECORDS, self.ledger.meta.watermark
        if not reaches(path, watermark):
            size = path.stat().st_size if path.exists() else 0
            raise FolderError(
                f"{path} has {size} bytes, expected {watermark} that end with a line: it was cut short"
                " or changed. Restore it from a copy, or begin anew in another folder."
            )
        return RowsFile(path, watermark)

    def _keep_bodies(self, bodies: Sequence[BodyFile]) -> None:
        write_bodies(self.path, bodies)

    def _open_kept(self) -> KeptReplies:
        self.ledger.note(kept=self.ledger.meta.kept)  # which ledgers of earlier releases do not have
        try:
            archive = self.keep == "warc" or (self.path / WARCS).exists()
            return KeptReplies(self.path, self.ledger.meta.kept, archive=archive)
        except BaseException:
            self.rows.close()
            raise

    @classmethod
    def open(
        cls,
        path: Path,
        job: Job,
        arguments: Mapping[str, Any],
        hosts: Sequence[str],
        wall: float,
        keep: Keep | None = None,
    ) -> Self:
        """Begin a run of `job`, or go on with it; answers are kept as they came if you say how. Raises FolderError."""
        plan = JobPlan(job.name, dict(arguments))

        def open_ledger() -> RequestFrontier:
            go_on(path)
            _make(path, plan, wall)
            ledger = RequestFrontier(path / FRONTIER, job.readers)
            try:
                _check_plan(path, plan_of(ledger.meta, path / FRONTIER, JobPlan), plan)
                said = JobFile(name=job.name, arguments=plan.arguments, readers=tuple(job.readers), hosts=tuple(hosts))
                write_new(path / JOB, [msgspec.json.encode(said), b"\n"])
            except BaseException:
                ledger.close()
                raise
            return ledger

        with plainly(path):
            check_one(path)
            check_empty(path, FRONTIER)
            path.mkdir(parents=True, exist_ok=True)
            return cls.hold(path, open_ledger, job, keep)

    def write(
        self,
        ended: Sequence[EndedRequest],
        found: Sequence[FoundRequest | AliasClaim],
        again: Sequence[RetryUrl],
        requests: int | None,
    ) -> Waiting:
        """Write screenshots and records, then the ledger with their number and checksum."""
        claims = [each for each in found if isinstance(each, AliasClaim)]
        requested = [each for each in found if not isinstance(each, AliasClaim)]
        judged = judge_claims(self.ledger, claims)
        if self._forgotten:
            requested, ended = (
                self._without_forgotten(requested),
                [msgspec.structs.replace(each, found=tuple(self._without_forgotten(each.found))) for each in ended],
            )
        ended = self._once(ended, {each.key for each in judged.claimed})
        self._keep_bodies([each.body for each in ended if each.body is not None])
        meta = self.ledger.meta
        records, checksum = [record for each in ended for record in each.records], meta.checksum
        for piece in chain.from_iterable((record, b"\n") for record in records):
            checksum = zlib.crc32(piece, checksum)
        sent = meta.requests if requests is None else requests
        progress = JobProgress(self.rows.append(records), meta.records + len(records), checksum, sent)
        new = self.ledger.commit_requests(ended, requested, progress, again, judged.claimed)
        self.more[End.MOVED] += len(judged.claimed)
        if self.others is not None:
            for part, verdict in judged.verdicts:
                self.others.tell(part, verdict)
        return new

    def _once(self, ended: Sequence[EndedRequest], taken: set[bytes]) -> list[EndedRequest]:
        """Of a page that is known by the address that a redirect led to, nothing is kept a second time."""
        found = []
        for each in ended:
            end = None if each.alias is None else self.ledger.end_by_key(each.alias)
            if each.alias is None or (end is None and each.alias.key not in taken):
                taken |= set() if each.alias is None else {each.alias.key}
                self.more[End.MOVED] += each.alias is not None
                found.append(each)
            elif end in UNFETCHED:
                found.append(msgspec.structs.replace(each, alias=None))
            else:
                self.twice += len(each.records)
                self.more[End.FAILED] -= each.spoiled is not None
                found.append(msgspec.structs.replace(each, records=(), found=(), spoiled=None, alias=None))
        return found

    def before(self, http: Sends) -> Sends:
        """A client that asks for nothing that the folder has forgotten, wherever a redirect leads."""
        if not self._forgotten:
            return http
        return LeavingOut(http, lambda task: "it was forgotten" if is_forgotten(self._forgotten, task.url) else "")

    def _without_forgotten(self, found: Iterable[FoundRequest]) -> list[FoundRequest]:
        return [each for each in found if not is_forgotten(self._forgotten, each.url)]

    # By position, since that is how a thread is handed its work.
    def finish(self, wall: float, complete: bool) -> None:  # noqa: FBT001
        """End the run: list what failed, and if all is decided call the job finished."""
        with plainly(self.path):
            if self.archive is not None and self.kept is not None:
                write_index(self.path, 1, self.path / KEPT, self.kept.length)
            finish_ledger(self.path, self.ledger, wall, complete=complete)


def finish_ledger(path: Path, ledger: RequestFrontier, wall: float, *, complete: bool) -> None:
    """List what failed, and note that the run has ended."""
    list_failures(path, (failed_line(each, read=reader) for each, reader in ledger.failed_requests()))
    ledger.note(closed=True, finished=complete, ended=wall)


def _make(path: Path, plan: JobPlan, wall: float) -> None:
    """Make the frontier, unless it is there: under another name first, so that it is there whole or not at all."""
    if (path / FRONTIER).exists():
        return
    draft = path / f"{FRONTIER}.draft"
    for each in path.glob(f"{draft.name}*"):
        each.unlink()
    frontier_file.create(draft, FrontierMeta(plan=msgspec.json.encode(plan).decode(), started=wall))
    draft.replace(path / FRONTIER)
    sync_folder(path)


def _check_plan(path: Path, found: JobPlan, plan: JobPlan) -> None:
    """Raise FolderError if the folder is another job's, or that of the same job with other arguments."""
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
