"""The folder of a crawl: whose it is, what it holds, and how a run begins and ends in it.

A run that was killed is gone on with. A crawl that is finished is crawled again, and its files move to earlier/0001/.
What would mix two crawls is refused, with what to do instead.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from typing import Self

import msgspec

from sanderling.pages import earlier, parquet
from sanderling.pages.earlier import LEDGER, NEXT
from sanderling.pages.output import FAILED, PAGES, Output, whole_rows
from sanderling.stores.durable import FolderError, Lock, check_empty, plainly, sync_folder, write_new
from sanderling.stores.frontier import Frontier
from sanderling.stores.frontier_file import FrontierMeta
from sanderling.stores.frontier_rows import KEPT, End, Ended, FoundUrl, RetryUrl
from sanderling.stores.frontier_rows import Failed as FailedUrl
from sanderling.stores.rows_file import reaches

__all__ = ["CrawlFolder", "FolderError", "Plan", "State"]


class Plan(msgspec.Struct, frozen=True):
    """What to crawl: where to begin, which hosts to follow links to, and how far."""

    seeds: tuple[str, ...]
    allow: tuple[str, ...]
    depth: int


class State(Enum):
    """How a run finds its folder."""

    NEW = "new"
    RESUMED = "resumed"
    AGAIN = "again"  # crawled before, to the end


class CrawlFolder:
    """A folder that one run holds alone, from `open` to the end of its `with` block."""

    def __init__(self, path: Path, lock: Lock, ledger: Frontier) -> None:
        self.path = path
        self.ledger = ledger
        self.plan = _plan_of(ledger.meta, path)
        if ledger.known:
            self.state = State.RESUMED
        else:
            self.state = State.NEW if ledger.meta.crawl == 1 else State.AGAIN
        if ledger.meta.closed:
            ledger.note(closed=False, finished=False)
        self.put_back = 0  # URLs to be asked for once more, because their rows were lost
        self._lock = lock
        self._output = self._reconciled()

    @classmethod
    def open(cls, path: Path, plan: Plan | None, *, resume: bool, wall: float) -> Self:
        """Begin a run of `plan`, or with `resume` of whatever the folder holds. FolderError says why not."""
        if plan is None and not resume:
            raise ValueError("neither a plan nor anything to resume")
        with plainly(path):
            _check_place(path, resume=resume)
            if plan is not None:
                path.mkdir(parents=True, exist_ok=True)
            with ExitStack() as undo:
                lock = Lock(path / "lock")
                undo.callback(lock.release)
                ledger = _open_ledger(path, plan, resume=resume, wall=wall)
                undo.callback(ledger.close)
                folder = cls(path, lock, ledger)
                undo.pop_all()
        return folder

    @property
    def crawl(self) -> int:
        """The how-manieth crawl of this folder it is."""
        return self.ledger.meta.crawl

    @property
    def moved_hosts(self) -> tuple[str, ...]:
        """Hosts that the seeds turned out to live at."""
        return msgspec.json.decode(self.ledger.meta.moved_hosts, type=tuple[str, ...])

    def allow_moved(self, host: str) -> None:
        """Remember a host that a seed turned out to live at."""
        hosts = dict.fromkeys((*self.moved_hosts, host))
        self.ledger.note(moved_hosts=msgspec.json.encode(list(hosts)).decode())

    def commit(
        self, ended: Sequence[Ended], found: Sequence[FoundUrl], again: Sequence[RetryUrl] = ()
    ) -> dict[str, int]:
        """Keep what became of some URLs and which were found, all or nothing; how many new ones wait, by host."""
        with plainly(self.path):
            watermark = self._output.write(ended)
            try:
                return self.ledger.commit(ended, found, watermark, again)
            except BaseException:
                self._output.cut(self.ledger.meta.watermark)
                raise

    # By position, since that is how a thread is handed its work.
    def finish(self, wall: float, complete: bool, parquet_too: bool = False) -> None:  # noqa: FBT001, FBT002
        """End the run: write what is made from rows and ledger, and if all is decided call the crawl finished."""
        with plainly(self.path):
            write_new(self.path / FAILED, map(failed_row, self.ledger.failed()))
            sync_folder(self.path)
            if parquet_too:
                parquet.write_in_child(self.path)
            else:
                parquet.remove(self.path)  # those of an earlier run have fewer rows
            self.ledger.note(closed=True, finished=complete, ended=wall)

    def _reconciled(self) -> Output:
        """The output, as long as the ledger says; or if it is not, what of it is whole, and the ledger knows."""
        path, watermark = self.path / PAGES, self.ledger.meta.watermark
        if reaches(path, watermark):
            return Output(self.path, watermark)
        ends = self.ledger.ends()
        length = whole_rows(path, ends)
        output = Output(self.path, length)
        lost = (number for number, end in enumerate(ends) if end in KEPT)  # those that were found are marked
        self.put_back = self.ledger.put_back(lost, length)
        return output

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._output.close()
        self.ledger.close()
        self._lock.release()

    def __repr__(self) -> str:
        return f"<CrawlFolder {self.path} crawl={self.crawl} {self.state.value}>"


def _check_place(path: Path, *, resume: bool) -> None:
    """Raise FolderError for a folder that is none, or somebody else's, before anything is written there."""
    holds_crawl = any((path / name).exists() for name in (LEDGER, NEXT))
    if resume and not holds_crawl and (path.is_dir() or not path.exists()):
        raise FolderError(f"there is nothing to resume in {path}: it holds no {LEDGER}. Begin without resume.")
    check_empty(path, LEDGER, NEXT)


def _open_ledger(path: Path, plan: Plan | None, *, resume: bool, wall: float) -> Frontier:
    """The ledger of this run: the one that is there, if it is to be gone on with, or a new one."""
    _take(earlier.go_on(path))
    if not (path / LEDGER).exists():
        _take(earlier.begin(path, FrontierMeta(plan=msgspec.json.encode(plan).decode(), started=wall)))
        return Frontier(path / LEDGER)
    ledger = Frontier(path / LEDGER)
    try:
        goes_on = _goes_on(ledger, path, plan, resume=resume)
    except BaseException:
        ledger.close()
        raise
    if goes_on:
        return ledger
    ledger.close()
    if (path / f"{LEDGER}-wal").exists():
        raise FolderError(f"{path / LEDGER} is in use by another program, so it cannot be moved. Try again later.")
    _take(earlier.begin(path, earlier.again(ledger.meta, wall)))
    return Frontier(path / LEDGER)


def _goes_on(ledger: Frontier, path: Path, plan: Plan | None, *, resume: bool) -> bool:
    """Whether the crawl that is there is gone on with; False if it is finished and a new one is due."""
    found = _plan_of(ledger.meta, path)
    if plan is not None and (differences := _differences(plan, found)):
        which = "a finished" if ledger.meta.finished else "an unfinished"
        advice = "" if ledger.meta.finished else ", or resume without a plan"
        raise FolderError(
            f"{path} holds {which} crawl of another plan: {differences}. Choose another folder, use that plan{advice}."
        )
    if not ledger.meta.finished:
        return True
    counts = ledger.counts()
    if resume and not counts[End.FAILED] + counts[End.LEFT]:
        raise FolderError(f"there is nothing to resume in {path}: its crawl is finished. Crawl again without resume.")
    return resume


def _differences(asked: Plan, found: Plan) -> str:
    said = []
    for name in ("seeds", "allow"):
        ours, theirs = set(getattr(asked, name)), set(getattr(found, name))
        said += [f"{name} {each} was not there" for each in sorted(ours - theirs)[:3]]
        said += [f"{name} {each} is missing" for each in sorted(theirs - ours)[:3]]
    if asked.depth != found.depth:
        said.append(f"depth was {found.depth}, not {asked.depth}")
    return "; ".join(said)


def _plan_of(meta: FrontierMeta, path: Path) -> Plan:
    try:
        return msgspec.json.decode(meta.plan, type=Plan)
    except msgspec.MsgspecError as error:
        raise FolderError(f"{path / LEDGER} is damaged: plan: {error}. Restore it from a copy.") from None


def failed_row(failed: FailedUrl) -> bytes:
    """A line of failed.jsonl."""
    row = failed._asdict()
    row["outcome"] = row.pop("code")
    row["end"] = failed.end.name.lower()
    return msgspec.json.encode(row) + b"\n"


def _take(steps: Iterator[str]) -> None:
    """Take all of the steps."""
    for _ in steps:
        pass
