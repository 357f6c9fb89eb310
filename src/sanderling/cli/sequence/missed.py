"""`sanderling sequence missed list`, `retry` and `export`: what a crawl of ids missed, to see, ask and take along.

All of it works beside a crawl that is running: what is read is of one moment, and what is written is written in pieces
so small that the crawl never waits for long.
"""

import json as jsonlib
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from time import sleep
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from sanderling.apis.numbered import LARGEST_ID
from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import AsJson, again
from sanderling.cli.progress_line import Saying
from sanderling.cli.sequence.place import USUAL, SequenceFolder, known_state
from sanderling.clock import SystemClock
from sanderling.sequence.report import MEANINGS
from sanderling.sequence.retries import Missed, Reason
from sanderling.sequence.state import COLUMNS, Hurry, SequenceState
from sanderling.stores.durable import FolderError, plainly, sync_folder, write_new
from sanderling.stores.sqlite_file import connect_read_only
from sanderling.words import count, duration, printable

SHOWN = 20  # ranges
PAGE = 500  # ranges that are hastened in one transaction
# Seconds between two transactions. SQLite has no line to stand in: whoever writes on and on keeps a crawl out until
# it gives up.
BREATH = 0.05
PIECE = 10_000  # ids that are written at once

Id = Number(gte=0, lte=LARGEST_ID)
Why = Annotated[Reason | None, Parameter(help="Only ids that are missed for this reason.")]
File = Annotated[Path, Parameter(help="A file, or - for the standard one.", allow_leading_hyphen=True)]


def list_missed(
    *,
    reason: Why = None,
    limit: Annotated[
        int | None,
        Parameter(validator=Number(gte=1), help=f"Ranges to show at most; {SHOWN}, or with --json all."),
    ] = None,
    json: AsJson = False,
    place: SequenceFolder = USUAL,
) -> None:
    """Say which ids the crawl of a folder misses."""
    wall = SystemClock().wall()
    with _snapshot(place) as db:
        if json:
            for each in islice(_ranges(db, reason), limit):
                print(jsonlib.dumps(asdict(each) | {"ids": len(each)}))
            return
        for line in _table(db, reason, limit or SHOWN, place, wall):
            print(printable(line))


def retry(
    *,
    first: Annotated[int, Parameter(name="--from", validator=Id, help="The first id to ask.")] = 0,
    last: Annotated[
        int, Parameter(name="--to", validator=Id, show_default=False, help="The last one; by default there is none.")
    ] = LARGEST_ID,
    reason: Why = None,
    every: Annotated[
        bool, Parameter(negative=(), help="Ask each id, also of a gap, of which some would do otherwise.")
    ] = False,
    json: AsJson = False,
    place: SequenceFolder = USUAL,
) -> None:
    """Let missed ids be asked at once, whenever they would be due."""
    if first > last:
        raise CommandError(f"--from {first} --to {last}: expected ids that ascend", code=2)
    clock, asked = SystemClock(), 0
    saying, wall = Saying(clock), clock.wall()
    with known_state(place) as state:
        for window in _windows(state, first, last):
            asked += state.hasten(Hurry(wall, *window), reason, every=every)
            saying(f"{asked:,} ids due at once, up to {window[1]}")
    if json:
        print(jsonlib.dumps({"asked": asked}))
    elif asked:
        where = printable(str(place.out))
        how = "each of them" if every else "of a gap some, and each if one of these is there"
        print(f"{count(asked, 'missed id')} due at once: asked by the crawl in {where}, or by the next ({how}).")
    else:
        print(f"No such id is missed in {printable(str(place.out))}.")


def export(
    file: File,
    /,
    *,
    ranges: Annotated[bool, Parameter(negative=(), help="Write lines of low-high instead of one for each id.")] = False,
    reason: Why = None,
    place: SequenceFolder = USUAL,
) -> None:
    """Write the ids that are missed, one to a line, in ascending order."""
    told = Written(Saying(SystemClock()))
    with _snapshot(place) as db:
        lines = (told.counted(*some) for each in _ranges(db, reason) for some in _lines(each, ranges=ranges))
        if str(file) == "-":
            for some in lines:
                sys.stdout.write(some)
            return
        with plainly(file):
            write_new(file, (some.encode() for some in lines))
            sync_folder(file.absolute().parent)
    print(f"{count(told.ids, 'missed id')} written to {printable(str(file))}.")


@dataclass(slots=True)
class Written:
    """How many ids were written, which is said now and then."""

    saying: Saying
    ids: int = 0

    def counted(self, lines: str, ids: int) -> str:
        """The lines; they stand for so many ids."""
        self.ids += ids
        self.saying(f"{self.ids:,} ids written")
        return lines


# Reading.


@contextmanager
def _snapshot(place: SequenceFolder) -> Iterator[sqlite3.Connection]:
    """The state as it is at one moment, whatever is written meanwhile; nothing is changed. Raises CommandError."""
    with known_state(place):
        pass  # it is there, and ours
    try:
        with plainly(place.state), closing(connect_read_only(place.state)) as db:
            db.execute("BEGIN")
            yield db
    except FolderError as error:
        raise CommandError(str(error)) from None


def _ranges(db: sqlite3.Connection, reason: Reason | None) -> Iterator[Missed]:
    """What is missed, ascending, one by one."""
    query = f"SELECT {COLUMNS} FROM missed WHERE coalesce(?, reason) = reason ORDER BY low"  # noqa: S608 - ours
    for low, high, why, *times in db.execute(query, (reason,)):
        yield Missed(low, high, Reason(why), *times)


def _table(
    db: sqlite3.Connection, reason: Reason | None, limit: int, place: SequenceFolder, wall: float
) -> Iterator[str]:
    counts = db.execute(
        """SELECT reason, sum(high - low + 1), count(*) FROM missed WHERE coalesce(?, reason) = reason
        GROUP BY reason ORDER BY 2 DESC""",
        (reason,),
    ).fetchall()
    if not counts:
        yield f"Nothing is missed in {place.out}." if reason is None else f"No id is missed as {reason} in {place.out}."
        return
    ids, ranges = sum(each for _, each, _ in counts), sum(each for _, _, each in counts)
    yield f"The crawl in {place.out} misses {count(ids, 'id')}, in {count(ranges, 'range')}:"
    yield ""
    yield from (f"  {each:>15,}  {MEANINGS[why]} ({why})" for why, each, _ in counts)
    yield ""
    yield f"  {'ids':<40}{'number':>15}  {'reason':<13}{'asked':>6}  {'missed for':<13}next"
    for each in islice(_ranges(db, reason), limit):
        yield _row(each, wall)
    if ranges > limit:
        yield f"  and {count(ranges - limit, 'range')} more: see --limit"
    yield ""
    yield "To have them asked at once:"
    yield ""
    yield f"    {again('sequence missed retry', place, *(('--reason', reason) if reason else ()))}"
    yield ""


def _row(each: Missed, wall: float) -> str:
    numbers = f"{each.low}" if each.low == each.high else f"{each.low}-{each.high}"
    due = "now" if each.next_check <= wall else f"in {duration(each.next_check - wall)}"
    age = duration(max(0.0, wall - each.first_seen))
    return f"  {numbers:<40}{len(each):>15,}  {each.reason:<13}{each.tries:>6}  {age:<13}{due}"


def _lines(each: Missed, *, ranges: bool) -> Iterator[tuple[str, int]]:
    """A range as lines, some thousands at a time, and how many ids they stand for."""
    if ranges:
        yield f"{each.low}-{each.high}\n", len(each)
        return
    for low in range(each.low, each.high + 1, PIECE):
        numbers = range(low, min(each.high + 1, low + PIECE))
        yield "".join(f"{number}\n" for number in numbers), len(numbers)


# Writing.


def _windows(state: SequenceState, first: int, last: int) -> Iterator[tuple[int, int]]:
    """All ids from the first to the last, in so many parts that each has few ranges; others have their turn between."""
    while first <= last:
        page = state.missed(first - 1, PAGE)
        high = min(last, page[-1].high) if len(page) == PAGE else last
        yield first, high
        first = high + 1
        sleep(BREATH)
