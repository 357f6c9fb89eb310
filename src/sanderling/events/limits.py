"""How much one batch may hold, and how much memory it takes. Pure.

A few hundred bytes unpack to half a million comments, and each of these becomes a row. So what a batch would become is
counted before it is made: an item with too many comments is an error row in its place, and the others stay posts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sanderling.events.fields import members
from sanderling.events.items import Oversized
from sanderling.events.salvage import MARKS, MOST_MEMBERS

# Measured on batches of the smallest comments: 210 bytes as values, 700 with their rows and what a database is sent.
ROW_BYTES = 1_000
# A value has a mark of JSON or more, and an object with one member, which takes the most, has three.
MARK_BYTES = 64
# A text is held as a value, which a single emoji makes four times as large, and as what a database is sent.
TEXT_BYTES = 6
# To count marks takes a hundredth of the time of a batch, so small bodies are not counted: they have a mark to 8 bytes,
# and 16 MB at the worst.
SMALL, SMALL_BYTES = 256 * 1024, 16


@dataclass(frozen=True, slots=True)
class Limits:
    """What a batch may have."""

    items: int = MOST_MEMBERS
    comments: int = 10_000  # of an item; crawlers send some hundreds
    rows: int = 50_000  # of all items: posts, comments and errors


USUAL = Limits()


def weight(data: bytes | bytearray) -> int:
    """About how many bytes a JSON document takes as values."""
    if len(data) <= SMALL:
        return SMALL_BYTES * len(data)
    return TEXT_BYTES * len(data) + MARK_BYTES * sum(map(data.count, MARKS))


def row_count(items: Sequence[object]) -> int:
    """How many rows the items become at most."""
    return sum(map(_rows_of, items))


def within(items: list[object], limits: Limits) -> list[object]:
    """The items; those that are too large are Oversized, without what is too much.

    Where all of them together are too large, the largest are.
    """
    rows = [_rows_of(item) for item in items]
    total = sum(rows)
    if total <= limits.rows and max(rows, default=0) <= limits.comments + 1:
        return items
    bounded = list(items)
    for place in sorted(range(len(items)), key=rows.__getitem__, reverse=True):
        comments, over = rows[place] - 1, total > limits.rows
        if not comments or (comments <= limits.comments and not over):
            break
        if comments > limits.comments:
            why = f"found {comments:,}, expected at most {limits.comments:,} (max-comments)"
        else:
            why = f"found {comments:,} in a batch of {total:,} rows, expected at most {limits.rows:,} (max-rows)"
        bounded[place] = Oversized(_without_comments(items[place]), f"comments of item {place}: {why}")
        total -= comments
    return bounded


def _rows_of(item: object) -> int:
    comments = item.get("comments") if isinstance(item, dict) else None
    return 1 + len(comments) if isinstance(comments, list) else 1


def _without_comments(item: object) -> dict[str, object]:
    return {name: value for name, value in members(item).items() if name != "comments"}
