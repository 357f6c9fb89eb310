"""Places in a text, and what stands around them, in Python: what `_scan_windows.c` does faster, and must do alike.

A window reaches 30 characters to both sides, but not beyond a mark or a pivot, for there another thought begins; and it
ends between words.
"""

import re
from collections.abc import Sequence

from sanderling.events.analysis.scan_python import BREAKS, OTHER

RADIUS = 30  # characters

# Before a digit a mark may be part of a number.
_MARK = re.compile(r"[.,;!?](?![0-9])")

Span = tuple[int, int]
NOWHERE: Span = (-1, -1)
EDGES = frozenset(" '" + BREAKS + OTHER)


def locate(text: str, phrase: str, at: int) -> Span:
    """Start and end of the first place from `at` on where a phrase stands as whole words, or NOWHERE."""
    begin = text.find(phrase, at)
    while begin >= 0:
        end = begin + len(phrase)
        if (begin == 0 or text[begin - 1] in EDGES) and (end == len(text) or text[end] in EDGES):
            return begin, end
        begin = text.find(phrase, begin + 1)
    return NOWHERE


def windows(text: str, pivots: Sequence[Span], places: Sequence[Span]) -> list[str]:
    """What stands around each place and belongs to it; `pivots` is where thoughts turn. All are starts and ends."""
    return [_window(text, pivots, start, end) for start, end in places]


def _window(text: str, pivots: Sequence[Span], start: int, end: int) -> str:
    least, most = _bounds(text, pivots, start, end)
    first, last = max(least, start - RADIUS), min(most, end + RADIUS)
    if first > least and text[first - 1] != " ":
        space = text.find(" ", first, start)
        first = start if space < 0 else space
    if last < most and text[last] != " ":
        space = text.rfind(" ", end, last)
        last = end if space < 0 else space
    return text[first:last].strip()


def _bounds(text: str, pivots: Sequence[Span], start: int, end: int) -> Span:
    """Where the thought begins and ends, if that is within reach; where it is not, anything beyond."""
    least, most = 0, len(text)
    # A character more than is asked about, for a mark may be part of a number.
    for mark in _MARK.finditer(text, max(0, start - RADIUS - 1), start + 1):
        if mark.end() <= start:
            least = mark.end()
    mark_behind = _MARK.search(text, end, end + RADIUS + 2)
    if mark_behind is not None:
        most = mark_behind.start()
    for begins, ends in pivots:
        if least < ends <= start:
            least = ends
        elif end <= begins < most:
            most = begins
    return least, most
