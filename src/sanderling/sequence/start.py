"""Where a crawl begins."""

from sanderling.apis.numbered import LARGEST_ID
from sanderling.sequence.cursor import Position, ranges_of
from sanderling.sequence.missed import Missed
from sanderling.sequence.retries import Reason
from sanderling.sequence.state import Saved

BUFFER = 10_000  # ids before the latest that is stored: some of those may not have been there yet


class StartError(Exception):
    """There is nowhere to begin. The message says what to do."""


def begin_at(api: str, saved: Saved | None, latest: int | None, *, target: int | None, buffer: int) -> Position:
    """The position to begin with: at `target` if there is one, else where the crawl was, else at the latest stored.

    A crawl that goes on needs no buffer: it knows of every id before whether it has a fate.
    """
    if saved is not None and saved.api != api:
        raise StartError(f"this folder follows {saved.api}, not {api}; choose another folder")
    if target is not None and not 0 <= target <= LARGEST_ID:
        raise StartError(f"the target is {target}; expected an id from 0 to {LARGEST_ID}")
    if target is not None:
        return Position(max(0, target - buffer))
    if saved is not None:
        return saved.position
    if latest is not None:
        return Position(max(0, latest - buffer))
    raise StartError("nothing is stored yet, so there is no id to go on from: name one with --target")


def left_open(saved: Saved, position: Position, wall: float) -> list[Missed]:
    """Ids that were handed out before and have no fate, of a crawl that now begins behind them: they are missed."""
    left = [number for number in saved.position.open if number < position.low]
    return [Missed(low, high, Reason.IMPORTED, wall, wall, 0, wall) for low, high in ranges_of(left)]
