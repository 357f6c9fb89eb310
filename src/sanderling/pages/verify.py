"""Prove that a crawl lost nothing and kept nothing twice: ledger, rows, bodies and derived files against each other.

Reads beside a crawl that is running, up to the watermark it finds first, and changes nothing. What is only made when a
run ends (failed.jsonl, Parquet) is compared if the last one did. A byte of memory for each URL, and one row at a time.
"""

import hashlib
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import msgspec

from sanderling.extras import load
from sanderling.pages import parquet
from sanderling.pages.earlier import LEDGER, NEXT
from sanderling.pages.output import FAILED, PAGES, SEEN
from sanderling.stores import frontier_file, frontier_reading
from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.frontier_file import FrontierMeta
from sanderling.stores.frontier_rows import KEPT, UNFETCHED, Aside, End

MOST_PROBLEMS = 100
_BODY = re.compile(r"bodies/([0-9a-f]{2})/\1[0-9a-f]{62}(\.[\w+-]{1,16})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Proof:
    """What was found: how many URLs there are in each end, how many rows and bodies, and what is wrong."""

    counts: Mapping[End, int]
    rows: int
    bodies: int
    finished: bool
    problems: tuple[str, ...]  # the first hundred
    wrong: int  # how many problems there are in all
    unproven: tuple[str, ...]  # what could not be looked at, and why
    aside: tuple[Aside, ...]  # hosts that did not answer; of what waits, this is why

    @property
    def known(self) -> int:
        """How many URLs are known."""
        return sum(self.counts.values())

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return self.wrong == 0


class _Row(msgspec.Struct):
    """What of a line can be compared."""

    id: int
    url: str
    outcome: str
    status: int
    detail: str = ""
    body_path: str | None = None


def verify(folder: Path) -> Proof:
    """Compare all that the folder of a crawl holds with its ledger. FolderError if there is no such folder."""
    if not folder.is_dir():
        raise FolderError(f"there is no folder {folder}")
    found = _Inspection(folder)
    if (folder / NEXT).exists():
        found.say(f"{NEXT}: the move of a finished crawl to earlier/ was cut short; crawl again to end it")
    try:
        with plainly(folder / LEDGER), closing(frontier_file.connect_to_read(folder / LEDGER)) as db:
            db.execute("BEGIN")  # one state of the ledger, whatever a crawl does meanwhile
            found.inspect(db)
    except FolderError as error:
        found.say(str(error))
    return found.proof()


class _Inspection:
    """One look at a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # The bodies of an earlier crawl are where they were.
        self._root = folder.parent.parent if folder.parent.name == "earlier" else folder
        self._counts = dict.fromkeys(End, 0)
        self._rows = self._bodies = self._wrong = 0
        self._meta = FrontierMeta()
        self._aside: tuple[Aside, ...] = ()
        self._problems: list[str] = []
        self._unproven: list[str] = []

    def say(self, problem: str) -> None:
        """Something is wrong."""
        self._wrong += 1
        if self._wrong <= MOST_PROBLEMS:
            self._problems.append(problem)

    def proof(self) -> Proof:
        """All that was found."""
        problems, unproven = tuple(self._problems), tuple(self._unproven)
        counted = self._counts, self._rows, self._bodies
        return Proof(*counted, self._meta.finished, problems, self._wrong, unproven, self._aside)

    def inspect(self, db: sqlite3.Connection) -> None:
        """Look at everything, the ledger first: the rest is measured by it."""
        self._meta = frontier_file.read_meta(db, self._folder / LEDGER)
        if not self._ledger(db):
            return
        self._aside = tuple(frontier_reading.aside(db))
        ends = frontier_reading.ends(db)
        self._rows = self._lines(db, ends, PAGES, self._meta.watermark)
        self._body_files()
        if self._meta.closed:
            failed = self._lines(db, ends, FAILED, _size(self._folder / FAILED))
            self._derived(failed)
        else:
            self._unproven.append(f"{FAILED} and Parquet: they are made when a run ends, and the last one has not")

    def _ledger(self, db: sqlite3.Connection) -> bool:
        """Whether the ledger agrees with itself."""
        for (problem,) in db.execute(f"PRAGMA integrity_check({MOST_PROBLEMS})"):
            if problem != "ok":
                self.say(f"{LEDGER}: {problem}")
        if self._wrong:
            return False
        self._counts |= {End(end): number for end, number in db.execute("SELECT end, count(*) FROM url GROUP BY end")}
        if (number := sum(self._counts.values())) != self._meta.known:
            self.say(f"{LEDGER}: its ends add up to {number} URLs, expected {self._meta.known}")
            return False
        if self._meta.finished and self._counts[End.WAITING]:
            self.say(f"{LEDGER}: {self._counts[End.WAITING]} URLs wait, expected none in a finished crawl")
        return True

    def _lines(self, db: sqlite3.Connection, ends: bytearray, name: str, length: int) -> int:
        """Compare a file with the ledger: one row for each URL that belongs there, and for no other; how many rows."""
        path, wanted, rows = self._folder / name, KEPT if name == PAGES else UNFETCHED, 0
        for where, line in _numbered(path, length):
            try:
                row = msgspec.json.decode(line, type=_Row)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                self.say(f"{where}: {error}, expected a row")
                continue
            rows += 1
            problem = _misplaced(row, ends, wanted) or _different(row, db, name)
            if problem:
                self.say(f"{where}: {problem}")
            elif row.body_path is not None:
                self._body_of(where, row.body_path)
        if _size(path) < length or (self._meta.closed and _size(path) > length):
            self.say(f"{name}: has {_size(path)} bytes, expected {length}")
        for number, end in enumerate(ends):
            if end in wanted:
                ((url,),) = db.execute("SELECT url FROM url WHERE id = ?", (number,))
                self.say(f"{name}: no row of {url} (id {number}), which ended {End(end).name}")
        return rows

    def _body_of(self, where: str, path: str) -> None:
        if not _BODY.fullmatch(path):
            self.say(f"{where}: body_path is {path!r}, expected bodies/ab/ab….pdf or so")
        elif not (self._root / path).is_file():
            self.say(f"{where}: {path} is not there")

    def _body_files(self) -> None:
        """Each file holds what its name says, whoever speaks of it."""
        for path in (self._root / "bodies").glob("[0-9a-f][0-9a-f]/[0-9a-f]*"):
            self._bodies += 1
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest != path.name.partition(".")[0]:
                self.say(f"{path.relative_to(self._root)}: its content has sha256 {digest}, expected its name")

    def _derived(self, failed: int) -> None:
        """As many rows in Parquet as in the files it was made from."""
        files = parquet.files(self._folder)
        if files and not parquet.have_parquet():
            self._unproven.append("Parquet: pyarrow is not installed")
            return
        for name, rows in (("pages", self._rows), ("failed", failed)):
            of_it = [path for path in files if path.name.startswith(name)]
            counted = [self._parquet_rows(path) for path in of_it]
            if of_it and sum(counted) != rows:
                self.say(f"{of_it[0].name} to {of_it[-1].name}: {sum(counted)} rows, expected {rows}")

    def _parquet_rows(self, path: Path) -> int:
        try:
            return int(load("pyarrow.parquet", "Parquet").read_metadata(path).num_rows)
        except (OSError, ValueError) as error:  # pyarrow's own are both
            self.say(f"{path.name}: {error}")
            return 0


def _misplaced(row: _Row, ends: bytearray, wanted: frozenset[End]) -> str | None:
    """Why a row should not be there; if it should, its URL is marked as SEEN."""
    if not 0 < row.id < len(ends):
        return f"id {row.id} is not known"
    end = ends[row.id]
    if end & SEEN:
        return f"a second row of id {row.id}, expected one"
    if end not in wanted:
        return f"a row of id {row.id}, which is {End(end).name}, expected none"
    ends[row.id] |= SEEN
    return None


def _different(row: _Row, db: sqlite3.Connection, name: str) -> str | None:
    """What the ledger says otherwise."""
    if name == PAGES:
        ((url,),) = db.execute("SELECT url FROM url WHERE id = ?", (row.id,))
        return None if row.url == url else f"url of id {row.id} is {row.url}, expected {url}"
    ((url, *why),) = db.execute(
        """SELECT url.url, code.name, failure.status, failure.detail FROM url
        JOIN code ON code.id = url.code LEFT JOIN failure ON failure.id = url.id WHERE url.id = ?""",
        (row.id,),
    )
    if row.url != url:
        return f"url of id {row.id} is {row.url}, expected {url}"
    said = [row.outcome, row.status, row.detail]
    return None if said == why else f"outcome of id {row.id} is {said}, expected {why}"


def _numbered(path: Path, length: int) -> Iterator[tuple[str, bytes]]:
    """The lines of the first `length` bytes, and where each stands."""
    if not path.exists():
        return
    offset = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if offset >= length:
                return
            yield f"{path.name} line {number} (byte {offset})", line[: length - offset]
            offset += len(line)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
