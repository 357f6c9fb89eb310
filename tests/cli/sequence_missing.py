"""A crawl of ids that is under way and has missed some, for the commands that list, import and forget them."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sanderling.clock import SystemClock
from sanderling.sequence.cursor import Position
from sanderling.sequence.retries import Missed, Reason
from sanderling.sequence.state import Fates, SavedCrawl, SequenceState

FAR = SystemClock().wall() + 5 * 86_400  # days away


def missed(low: int, high: int | None = None, reason: Reason = Reason.NOT_FOUND, due: float = FAR) -> Missed:
    """A range of ids."""
    wall = SystemClock().wall()
    return Missed(low, low if high is None else high, reason, wall - 7200, wall, 3, due)


@contextmanager
def under_way(folder: Path) -> Iterator[SequenceState]:
    """The state of a crawl which is under way there: it has the file open."""
    with closing(SequenceState(folder / "sequence.db")) as state:
        known = [missed(5), missed(7, reason=Reason.HIDDEN), missed(1000, 2999, Reason.GAP)]
        state.record(SavedCrawl("numbers", Position(5000), 4999), Fates(missed=known))
        yield state


def spans(state: SequenceState) -> list[tuple[int, int, str]]:
    """All ranges."""
    return [(each.low, each.high, each.reason.value) for each in state.missed()]


def ids(state: SequenceState) -> list[int]:
    """All ids."""
    return [number for each in state.missed(limit=10**6) for number in range(each.low, each.high + 1)]
