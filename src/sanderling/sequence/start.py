"""Where a crawl begins."""

from sanderling.apis.numbered import LARGEST_ID
from sanderling.sequence.cursor import Position, ranges_of
from sanderling.sequence.missed import Missed
from sanderling.sequence.retries import Reason
from sanderling.sequence.state import Saved

BUFFER = 10_000  # ids before the latest that is stored: some of those may not have been there yet


class StartError(Exception):
    """There is nowhere to begin. The message says what to do."""


def begin_at(
    api: str,
    saved: Saved | None,
    latest: int | None,
    *,
    begin: int | None = None,
    target: int | None = None,
    buffer: int = BUFFER,
) -> Position:
    """The position to begin with: at `target` if there is one, else where the crawl was, else at the latest stored.

    At `begin` if there is none of these. A crawl that goes on needs no buffer: it knows of every id before whether it
    has a fate; and neither does one that has nothing yet.
    """
    if saved is not None and saved.api != api:
        raise StartError(f"this folder follows {saved.api}, not {api}; choose another folder")
    for number in (begin, target):
        if number is not None and not 0 <= number <= LARGEST_ID:
            raise StartError(f"the first id is {number}; expected one from 0 to {LARGEST_ID}")
    if target is not None:
        return Position(max(0, target - buffer))
    if saved is not None:
        return saved.position
    if latest is not None:
        return Position(max(0, latest - buffer))
    if begin is not None:
        return Position(begin)
    raise StartError("nothing is stored yet, so there is no id to go on from: name the first with --begin")


def left_open(saved: Saved, position: Position, wall: float) -> list[Missed]:
    """Ids that were handed out before and have no fate, of a crawl that now begins behind them: they are missed."""
    left = [number for number in saved.position.open if number < position.low]
    return [Missed(low, high, Reason.IMPORTED, wall, wall, 0, wall) for low, high in ranges_of(left)]
