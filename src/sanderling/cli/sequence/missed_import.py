"""`sanderling sequence missed import`: ids that somebody else has missed, one decimal number to a line.

Such a log has each id as often as it was missed, in no order, and may be larger than the memory: it is sorted in a
temporary file. A line that is no id is counted and left out, however long it is.
"""

import json as jsonlib
import re
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import sleep
from typing import BinaryIO

from sanderling.apis.numbered import LARGEST_ID
from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import AsJson
from sanderling.cli.progress_line import Saying
from sanderling.cli.sequence.missed import BREATH, File
from sanderling.cli.sequence.place import USUAL, SequenceFolder
from sanderling.clock import Clock, SystemClock
from sanderling.sequence.cursor import ranges_of
from sanderling.sequence.retries import Missed, Reason, check_in
from sanderling.sequence.state import Range, SequenceState
from sanderling.stores.durable import FolderError, plainly
from sanderling.words import count, printable

ID = re.compile(rb"[0-9]{1,19}")
EXPECTED = f"expected an id from 0 to {LARGEST_ID}"
MARK = b"\xef\xbb\xbf"  # what some editors put before the first line
LONGEST = 64  # bytes of a line; an id has nineteen, and may have blanks around it
BUFFER = 1 << 20  # bytes that are read at once
EXAMPLES = 5  # lines that are shown
IN_MEMORY = 100_000  # ids
# Of one transaction, which a crawl that is running has to wait for: ids, ranges, and ids of one range.
IDS_AT_ONCE, RANGES_AT_ONCE, LONGEST_RANGE = 20_000, 2000, 1000


@dataclass(slots=True)
class MissedTally:
    """What was found in a file."""

    lines: int = 0
    ids: int = 0  # lines that are one
    bad: int = 0
    examples: list[str] = field(default_factory=list)
    different: int = 0
    added: int = 0

    def complain(self, found: bytes, size: int) -> None:
        """The last line, which has so many bytes, is no id."""
        self.bad += 1
        if len(self.examples) < EXAMPLES:
            shown = found[: LONGEST // 2].decode("utf-8", "replace").strip()
            long = f"{size:,} bytes, beginning with " if size > LONGEST else ""
            self.examples.append(f"line {self.lines:,}: {long}{printable(shown)!r}; {EXPECTED}")


def import_missed(file: File, /, *, json: AsJson = False, place: SequenceFolder = USUAL) -> None:
    """Take in ids that were missed elsewhere; they are asked one by one."""
    clock, tally = SystemClock(), MissedTally()
    saying = Saying(clock)
    with _explained(), closing(_Sorter()) as sorter:
        with _opened(file) as lines:
            _sort(lines, sorter, tally, saying)
        with closing(SequenceState(place.state)) as state:
            _take_in(sorter, state, tally, saying, clock)
    _tell(tally, place, as_json=json)
    if tally.bad:
        sys.exit(1)


def _sort(lines: BinaryIO, sorter: "_Sorter", tally: MissedTally, saying: Saying) -> None:
    for number in _ids(lines, tally):
        if sorter.add(number):
            saying(f"{tally.lines:,} lines read")


def _take_in(sorter: "_Sorter", state: SequenceState, tally: MissedTally, saying: Saying, clock: Clock) -> None:
    """A little at a time: a crawl that is running has to write, too."""
    for ranges in _batches(sorter.ranges()):
        tally.different += sum(high - low + 1 for low, high in ranges)
        tally.added += state.add_new(_missed(ranges, clock.wall()))
        saying(f"{tally.different:,} different ids, {tally.added:,} of them not missed before")
        sleep(BREATH)


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except FolderError as error:
        raise CommandError(str(error)) from None


@contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    given = sys.stdin.fileno() if str(file) == "-" else file
    try:
        with plainly(file), open(given, "rb", BUFFER, closefd=given is file) as lines:
            yield lines
    except FolderError as error:
        raise CommandError(str(error), code=2) from None


def _ids(file: BinaryIO, tally: MissedTally) -> Iterator[int]:
    """The ids of a file, in its order. Memory is bounded, whatever is in it."""
    for line, size in _lines(file):
        tally.lines += 1
        text = (line.removeprefix(MARK) if tally.lines == 1 else line).strip()
        if ID.fullmatch(text) and size <= LONGEST and (number := int(text)) <= LARGEST_ID:
            tally.ids += 1
            yield number
        elif text or size > LONGEST:
            tally.complain(text, size)


def _lines(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Each line, of a long one the beginning, and its size in bytes."""
    while line := file.readline(LONGEST):
        size, end = len(line), line
        while not end.endswith(b"\n") and (end := file.readline(BUFFER)):
            size += len(end)
        yield line, size


class _Sorter:
    """Takes ids in any order, each as often as it comes; gives them as ranges, in ascending order."""

    def __init__(self) -> None:
        self._waiting: list[int] = []
        # Without a name it is a temporary file, and only what does not fit into SQLite's own memory is ever written.
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.execute("PRAGMA journal_mode = OFF")
        self._db.execute("CREATE TABLE part (low INTEGER NOT NULL, high INTEGER NOT NULL)")

    def add(self, number: int) -> bool:
        """Whether there is less in memory now."""
        self._waiting.append(number)
        full = len(self._waiting) >= IN_MEMORY
        if full:
            self._put_away()
        return full

    def _put_away(self) -> None:
        with plainly(TEMPORARY):
            self._db.execute("BEGIN")
            self._db.executemany("INSERT INTO part VALUES (?, ?)", ranges_of(self._waiting))
            self._db.execute("COMMIT")
        self._waiting.clear()

    def ranges(self) -> Iterator[Range]:
        self._put_away()
        low, high = 0, -2
        with plainly(TEMPORARY):
            for next_low, next_high in self._db.execute("SELECT low, high FROM part ORDER BY low"):
                if next_low <= high + 1:
                    high = max(high, next_high)
                    continue
                if high >= low:
                    yield low, high
                low, high = next_low, next_high
        if high >= low:
            yield low, high

    def close(self) -> None:
        self._db.close()


TEMPORARY = Path("the temporary folder")


def _batches(ranges: Iterable[Range]) -> Iterator[list[Range]]:
    """The same ids, in ranges that are not long, a few at a time."""
    batch: list[Range] = []
    ids = 0
    for low, high in ranges:
        for first in range(low, high + 1, LONGEST_RANGE):
            last = min(high, first + LONGEST_RANGE - 1)
            batch.append((first, last))
            ids += last - first + 1
            if ids >= IDS_AT_ONCE or len(batch) >= RANGES_AT_ONCE:
                yield batch
                batch, ids = [], 0
    if batch:
        yield batch


def _missed(ranges: Iterable[Range], wall: float) -> list[Missed]:
    check = wall + check_in(Reason.IMPORTED, 0, Random())
    return [Missed(low, high, Reason.IMPORTED, wall, wall, 0, check) for low, high in ranges]


def _tell(tally: MissedTally, place: SequenceFolder, *, as_json: bool) -> None:
    if as_json:
        known = {"lines": tally.lines, "ids": tally.ids, "different": tally.different, "added": tally.added}
        print(jsonlib.dumps(known | {"bad": tally.bad, "examples": tally.examples}))
        return
    print(f"{count(tally.lines, 'line')} read: {count(tally.ids, 'id')}, {tally.different:,} of them different.")
    where, known_before = printable(str(place.out)), tally.different - tally.added
    print(f"{count(tally.added, 'id')} added to what is missed in {where}; {known_before:,} were there already.")
    if tally.bad:
        print(f"{count(tally.bad, 'line')} left out:", file=sys.stderr)
        for example in tally.examples:
            print(f"    {example}", file=sys.stderr)
        if tally.bad > len(tally.examples):
            print(f"    and {tally.bad - len(tally.examples):,} more", file=sys.stderr)
