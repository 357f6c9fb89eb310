"""The folder of a crawl: its lock, its ledger and its rows, and how a batch is made durable in it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import msgspec

from sanderling.crawls.archive import SEEN, PageArchive
from sanderling.crawls.exchange import PartExchange
from sanderling.crawls.kept import KeptReplies, KeptReply
from sanderling.crawls.session import CookieStore, FolderCookies
from sanderling.stores.durable import FolderError, Lock, plainly, sync_folder, write_new
from sanderling.stores.frontier import Frontier
from sanderling.stores.frontier_file import FrontierMeta
from sanderling.stores.frontier_rows import Failed, HostNote, RetryUrl

FAILED = "failed.jsonl"

L = TypeVar("L", bound=Frontier)
P = TypeVar("P")


class Checkpoint(NamedTuple):
    """How far a run has come, at the instant that a batch is cut."""

    requests: int | None = None  # sent in all runs, where that is counted
    positions: Mapping[str, int] | None = None  # how far what other parts sent is read, where there are others


AT_START = Checkpoint()


class AppendedRows(Protocol):
    """Rows that a ledger vouches for up to a watermark: a file of them, or what stands for one."""

    def append(self, rows: Iterable[bytes]) -> int:
        """Add rows without line breaks; where they end."""

    def cut(self, length: int) -> None:
        """Drop what stands behind `length`."""

    def close(self) -> None:
        """Let go of them."""


class LedgerFolder(Generic[L]):
    """A folder that one run holds alone, from its opening to the end of its `with` block."""

    rows: AppendedRows  # opened by the subclass, once it knows that they reach the watermark
    kept: KeptReplies | None = None  # answers as they came, where that is wanted

    def __init__(self, path: Path, lock: Lock, ledger: L) -> None:
        self.path = path
        self.ledger = ledger
        self._lock = lock
        self.others: PartExchange | None = None
        self.cookies: CookieStore = FolderCookies(path)
        if ledger.meta.closed:
            ledger.note(closed=False, finished=False)

    @classmethod
    def hold(cls, path: Path, open_ledger: Callable[[], L], *more: Any) -> Self:  # noqa: ANN401 - of the subclass
        """Lock the folder, which is there, and open what is in it: all of that or nothing."""
        with ExitStack() as undo:
            lock = Lock(path / "lock")
            undo.callback(lock.release)
            ledger = open_ledger()
            undo.callback(ledger.close)
            folder = cls(path, lock, ledger, *more)
            undo.pop_all()
        return folder

    def commit(
        self,
        ended: Sequence[Any],
        found: Sequence[Any],
        again: Sequence[RetryUrl] = (),
        notes: Sequence[HostNote] = (),
        checkpoint: Checkpoint = AT_START,
        kept: Sequence[KeptReply] = (),
    ) -> Mapping[Any, int]:
        """Keep what became of some items, what was found and some answers, all or nothing; how many new ones wait."""
        positions = checkpoint.positions
        with plainly(self.path):
            try:
                if positions is not None:
                    self.ledger.inbox = msgspec.json.encode(positions).decode()
                if self.kept is not None:
                    self.ledger.kept = self.kept.write(kept)
                new = self.write(ended, found, again, checkpoint.requests)
            except BaseException:
                self.rows.cut(self.ledger.meta.watermark)
                if self.kept is not None:
                    self.kept.cut(self.ledger.meta.kept)
                    self.ledger.kept = self.ledger.meta.kept
                raise
            if notes:
                self.ledger.note_hosts(notes)
        if self.others is not None and positions is not None:
            self.others.committed(positions)
        return new

    @property
    def archive(self) -> PageArchive | None:
        """The WARC of what is fetched, if there is one."""
        return None if self.kept is None else self.kept.archive

    @property
    def positions(self) -> Mapping[str, int] | None:
        """How far what other parts sent is read, if there are others."""
        return None if self.others is None else self.others.positions

    @property
    def is_first(self) -> bool:
        """Whether what a crawl does once is done here."""
        return self.others is None or self.others.own == 0

    @property
    def root(self) -> Path:
        """The folder of the whole crawl."""
        return self.path if self.others is None else self.path.parent.parent

    def owns(self, host: str) -> bool:
        """Whether a host is asked by this part, or there is only one."""
        return self.others is None or self.others.owns(host)

    def join(self, others: PartExchange) -> None:
        """Be a part of a crawl: what is found for the others is sent to them."""
        self.others = others
        self.ledger.keep_own = others.keep_own
        if self.archive is not None:
            # What is held in memory is that of the crawl, not of each of its parts.
            self.archive.hold(SEEN // others.board.parts)

    def write(
        self, ended: Sequence[Any], found: Sequence[Any], again: Sequence[RetryUrl], requests: int | None
    ) -> Mapping[Any, int]:
        """Write rows, then the ledger with the watermark."""
        raise NotImplementedError

    # By position, since that is how a thread is handed its work.
    def finish(self, wall: float, complete: bool) -> None:  # noqa: FBT001
        """End the run: write what is made from rows and ledger, and if all is decided call the crawl finished."""
        raise NotImplementedError

    def list_failures(self, lines: Iterable[bytes]) -> None:
        """Write failed.jsonl."""
        list_failures(self.path, lines)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.others is not None:
            self.others.close()
        self.rows.close()
        if self.kept is not None:
            self.kept.close()
        self.ledger.close()
        self._lock.release()


def list_failures(path: Path, lines: Iterable[bytes]) -> None:
    """Write failed.jsonl."""
    write_new(path / FAILED, lines)
    sync_folder(path)


def failed_line(failed: Failed, **more: object) -> bytes:
    """A line of failed.jsonl."""
    row = failed._asdict() | more
    row["outcome"] = row.pop("code")
    row["end"] = failed.end.name.lower()
    return msgspec.json.encode(row) + b"\n"


def plan_of(meta: FrontierMeta, path: Path, kind: type[P]) -> P:
    """What the ledger at `path` says that it is a crawl of. Raises FolderError."""
    try:
        return msgspec.json.decode(meta.plan, type=kind)
    except msgspec.MsgspecError as error:
        raise FolderError(f"{path} is damaged: plan: {error}. Restore it from a copy.") from None
