"""`sanderling status` of a crawl of ids: how a crawl of ids stands, beside it or after it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from sanderling.cli.published_words import tell
from sanderling.cli.report_words import line, report_lines
from sanderling.cli.sequence.place import SequenceFolder, known_state
from sanderling.clock import SystemClock
from sanderling.sequence.report import WorkerDecision, explain_missed, report
from sanderling.sequence.status import SequenceStatus, published
from sanderling.stores.status_file import is_running

SHOWN = 5  # decisions


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What is on disk. It counts, and not what a crawl that was killed has said before. None before its first write."""

    api: str | None = None
    cursor: int | None = None  # every id below has its fate
    next: int | None = None
    open: int | None = None  # ids from the cursor to the next that have no fate yet
    newest: int | None = None
    missed: dict[str, int]  # ids, by reason


def show_ids(folder: Path, *, as_json: bool) -> None:
    """Print how the crawl of a folder stands. Raises CommandError."""
    place = SequenceFolder(out=folder)
    there, found = kept_in(place), published(place.out)
    wall = SystemClock().wall()
    tell(f"The crawl in {place.out}", found, wall, words(there, found, wall), as_json=as_json, kept=there)


def kept_in(place: SequenceFolder) -> Kept:
    """What a crawl has on disk. Raises CommandError."""
    with known_state(place) as state:
        saved, counts = state.load(), {reason.value: ids for reason, ids in state.counts().items()}
    if saved is None:
        return Kept(missed=counts)
    at = saved.position
    return Kept(api=saved.api, cursor=at.low, next=at.next, open=len(at.open), newest=saved.newest, missed=counts)


def words(there: Kept, found: SequenceStatus | None, wall: float) -> Iterator[str]:
    """The same as lines."""
    if found is not None:
        # What is on disk counts, and not what one that was killed has said before.
        same = there.cursor in (None, found.cursor)
        low, behind = (found.cursor, found.behind) if same else (there.cursor or 0, None)
        now = msgspec.structs.replace(found, missed=there.missed, cursor=low, behind=behind)
        made = report(now)
        yield from report_lines(made, running=is_running(found, wall))
        yield from _decisions(made.facts.decisions)
        return
    if there.cursor is not None:
        yield line("ids", f"all below {there.cursor:,} have their fate")
    if there.missed:
        yield line("missed", explain_missed(there.missed))


def _decisions(decisions: tuple[WorkerDecision, ...]) -> Iterator[str]:
    if not decisions:
        return
    yield ""
    yield "The last decisions about workers:"
    yield ""
    for each in decisions[-SHOWN:]:
        at = datetime.fromtimestamp(each.wall, UTC).strftime("%H:%M:%S")
        yield f"  {at}  {each.before:>4} -> {each.workers:<4} {each.strategy:<9} {each.why}"
