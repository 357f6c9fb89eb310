"""Prove that a crawl lost nothing and kept nothing twice: its ledger against itself, rows and failures against it.

Reads beside a crawl that is running, up to the watermark it finds first, and changes nothing. What is only made when a
run ends (failed.jsonl) is compared if the last one did. A byte of memory for each item, and one row at a time.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from sanderling.crawls.archive_check import check_archive
from sanderling.crawls.folder import FAILED
from sanderling.crawls.kept import FILE as KEPT
from sanderling.crawls.kept import KeptRow
from sanderling.crawls.parts import folders_of
from sanderling.stores import frontier_file, frontier_reading
from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.frontier_file import FrontierMeta
from sanderling.stores.frontier_rows import UNFETCHED, Aside, End

MOST_PROBLEMS = 100
SEEN = 0x80  # set in the end of an item whose row was seen; no end is as large


@dataclass(slots=True)
class CrawlProof:
    """What was found: how many items there are in each end, how many rows and files, and what is wrong."""

    counts: dict[End, int] = field(default_factory=lambda: dict.fromkeys(End, 0))
    rows: int = 0
    bodies: int = 0  # documents that are kept as files
    kept: int = 0  # answers that are kept as they came
    finished: bool = False
    problems: list[str] = field(default_factory=list)  # the first hundred
    wrong: int = 0  # how many problems there are in all
    unproven: list[str] = field(default_factory=list)  # what could not be looked at, and why
    aside: tuple[Aside, ...] = ()  # hosts that did not answer; of what waits, this is why

    @property
    def known(self) -> int:
        """How many items are known."""
        return sum(self.counts.values())

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return self.wrong == 0

    def say(self, problem: str) -> None:
        """Something is wrong."""
        self.wrong += 1
        if self.wrong <= MOST_PROBLEMS:
            self.problems.append(problem)


def verify_parts(folder: Path, verify: Callable[[Path], CrawlProof]) -> CrawlProof:
    """What `verify` finds in the folder of a crawl, or in all of its parts together. Raises FolderError."""
    parts = folders_of(folder)
    if parts == [folder]:
        return verify(folder)
    whole, proofs = CrawlProof(finished=True), [verify(part) for part in parts]
    for part, proof in zip(parts, proofs, strict=True):
        for end, number in proof.counts.items():
            whole.counts[end] += number
        whole.rows += proof.rows
        whole.bodies += proof.bodies
        whole.kept += proof.kept
        whole.finished &= proof.finished
        for problem in proof.problems:
            whole.say(f"part {part.name}: {problem}")
        whole.wrong += proof.wrong - len(proof.problems)
        whole.unproven += [f"part {part.name}: {gap}" for gap in proof.unproven]
        whole.aside += proof.aside
    return whole


class ComparedRow(msgspec.Struct):
    """What of a line can be compared with the ledger."""

    id: int
    url: str
    outcome: str
    status: int
    detail: str = ""
    body_path: str | None = None


@dataclass(slots=True)
class LedgerInspection:
    """One state of a ledger, whatever a crawl does meanwhile, and what was found by it."""

    db: sqlite3.Connection
    ledger: Path
    meta: FrontierMeta
    proof: CrawlProof
    ends: bytearray = field(default_factory=bytearray)

    def is_consistent(self) -> bool:
        """Whether the ledger agrees with itself: the rest is measured by it."""
        name, proof = self.ledger.name, self.proof
        for (problem,) in self.db.execute(f"PRAGMA integrity_check({MOST_PROBLEMS})"):
            if problem != "ok":
                proof.say(f"{name}: {problem}")
        if not proof.ok:
            return False
        counted = frontier_reading.count_ends(self.db)
        for (end, _), number in counted.items():
            proof.counts[end] += number
        proof.finished, proof.aside = self.meta.finished, tuple(frontier_reading.aside(self.db))
        if proof.known != self.meta.known:
            proof.say(f"{name}: its ends add up to {proof.known}, expected {self.meta.known}")
            return False
        if counted != frontier_reading.tally(self.db):
            proof.say(f"{name}: its sums by end and reason are not those of its URLs")
        if proof.finished and proof.counts[End.WAITING]:
            proof.say(f"{name}: {proof.counts[End.WAITING]} wait, expected none where all is finished")
        self.ends = frontier_reading.ends(self.db)
        return True

    def check_rows(
        self,
        path: Path,
        length: int,
        wanted: frozenset[End],
        differs: Callable[[ComparedRow], str | None],
        seen: Callable[[str, ComparedRow], object] = lambda _where, _row: None,
        versions: dict[int, int] | None = None,
    ) -> int:
        """Compare a file: one row for each item with an end that is wanted, and for no other; how many rows.

        Of those that have `versions`, which were visited again, so many rows as these say.
        """
        rows, left = 0, {} if versions is None else dict(versions)
        for where, line in numbered(path, length):
            try:
                row = msgspec.json.decode(line, type=ComparedRow)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                self.proof.say(f"{where}: {error}, expected a row")
                continue
            rows += 1
            if problem := self._misplaced(row, wanted, left) or differs(row):
                self.proof.say(f"{where}: {problem}")
            else:
                seen(where, row)
        self.check_size(path, length)
        for number, end in enumerate(self.ends):
            if end in wanted and number not in left:
                url = self.url_of(number)
                self.proof.say(f"{path.name}: no row of {url} (id {number}), which ended {End(end).name}")
        for number, lacking in left.items():
            if lacking:
                self.proof.say(f"{path.name}: {lacking} rows of {self.url_of(number)} (id {number}) are not there")
        return rows

    def check_failures(self) -> int:
        """Compare failed.jsonl, which the end of a run has written; how many rows it has."""
        path = self.ledger.with_name(FAILED)
        return self.check_rows(path, size_of(path), UNFETCHED, self._differs_from_failure)

    def check_size(self, path: Path, length: int) -> None:
        """Behind the watermark there may be rows only while a run writes them, or was killed as it did."""
        if size_of(path) < length or (self.meta.closed and size_of(path) > length):
            self.proof.say(f"{path.name}: has {size_of(path)} bytes, expected {length}")

    def url_of(self, number: int) -> str:
        """The URL of an id."""
        ((url,),) = self.db.execute("SELECT url FROM url WHERE id = ?", (number,))
        return str(url)

    def differs(self, row: ComparedRow) -> str | None:
        """What the ledger says otherwise of a URL that was kept."""
        url = self.url_of(row.id)
        return None if row.url == url else f"url of id {row.id} is {row.url}, expected {url}"

    def _differs_from_failure(self, row: ComparedRow) -> str | None:
        ((*why,),) = self.db.execute(
            """SELECT code.name, failure.status, failure.detail FROM url
            JOIN code ON code.id = url.code LEFT JOIN failure ON failure.id = url.id WHERE url.id = ?""",
            (row.id,),
        )
        said = [row.outcome, row.status, row.detail]
        return self.differs(row) or (None if said == why else f"outcome of id {row.id} is {said}, expected {why}")

    def _misplaced(self, row: ComparedRow, wanted: frozenset[End], left: dict[int, int]) -> str | None:
        """Why a row should not be there; if it should, its item is marked as SEEN, or has one left fewer."""
        if not 0 < row.id < len(self.ends):
            return f"id {row.id} is not known"
        if left.get(row.id):
            left[row.id] -= 1
            return None
        end = self.ends[row.id]
        if end & SEEN:
            return f"a second row of id {row.id}, expected one"
        if end not in wanted:
            return f"a row of id {row.id}, which is {End(end).name}, expected none"
        self.ends[row.id] |= SEEN
        return None


def inspect(ledger: Path, proof: CrawlProof, look: Callable[[LedgerInspection], object]) -> CrawlProof:
    """Have the ledger inspected, and the rest by it if it agrees with itself."""
    try:
        with plainly(ledger), closing(frontier_file.connect_to_read(ledger)) as db:
            db.execute("BEGIN")
            inspection = LedgerInspection(db, ledger, frontier_file.read_meta(db, ledger), proof)
            if inspection.is_consistent():
                look(inspection)
    except FolderError as error:
        proof.say(str(error))
    return proof


def check_bodies(root: Path, proof: CrawlProof) -> None:
    """Each file holds what its name says, whoever speaks of it."""
    for path in (root / "bodies").glob("[0-9a-f][0-9a-f]/[0-9a-f]*"):
        proof.bodies += 1
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != path.name.partition(".")[0]:
            proof.say(f"{path.relative_to(root)}: its content has sha256 {digest}, expected its name")


def check_kept(folder: Path, found: LedgerInspection) -> None:
    """Each line of kept.jsonl that the ledger vouches for leads to an answer that is there, whole and once."""
    path, proof = folder / KEPT, found.proof
    found.check_size(path, found.meta.kept)
    length = min(found.meta.kept, size_of(path))
    for where, line in numbered(path, length):
        row = msgspec.json.decode(line, type=KeptRow)
        proof.kept += 1
        if row.body_path is not None and not (folder / row.body_path).is_file():
            proof.say(f"{where}: {row.body_path} is not there")
    check_bodies(folder, proof)
    check_archive(folder, 1, path, length, proof.say, closed=found.meta.closed)


def numbered(path: Path, length: int) -> Iterator[tuple[str, bytes]]:
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


def size_of(path: Path) -> int:
    """The bytes of a file; 0 if it is not there."""
    return path.stat().st_size if path.exists() else 0
