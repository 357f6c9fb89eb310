"""A file of items, or of rows of our crawlers, is published: batch after batch.

What becomes a batch depends on the lines and on nothing else. So a file that is published again, because the first time
was cut short, ends in the same batches and the same events, and whoever has seen them has seen them.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from sanderling.events.crawled import Item, LineError, read_line
from sanderling.events.producer import LARGEST_ITEM, BatchSink, ItemError
from sanderling.stores.durable import plainly

# A row of a page has more in it than the item that is made of it.
LONGEST_LINE = 4 * LARGEST_ITEM
PIECE = 1 << 20  # bytes of lines that are read at a time, more or less
MOST_PROBLEMS = 20  # that are told


@dataclass(slots=True)
class Published:
    """What came of a file."""

    items: int = 0
    left_out: int = 0  # lines that are no items, and need not be
    bad: int = 0
    problems: list[str] = field(default_factory=list)  # the first of them, with their lines


async def publish_file(path: Path, sink: BatchSink) -> Published:
    """Return when all items of the file are safe. A line that cannot be read is counted, and the others are published.

    Raises FolderError if the file cannot be read; then some may be published.
    """
    published = Published()
    with plainly(path):
        file = await asyncio.to_thread(path.open, "rb")
    try:
        lines = enumerate(_lines(file), 1)
        while some := await asyncio.to_thread(_some, path, lines):
            for number, line in some:
                await _publish(number, line, sink, published)
    finally:
        await asyncio.to_thread(file.close)
    await sink.flush()
    return published


async def _publish(number: int, line: bytes, sink: BatchSink, published: Published) -> None:
    if not line.strip():
        return
    try:
        item = _item(line)
        if item is None:
            published.left_out += 1
            return
        await sink.add(item)
    except (LineError, ItemError) as error:
        published.bad += 1
        if len(published.problems) < MOST_PROBLEMS:
            published.problems.append(f"line {number}: {error}")
    else:
        published.items += 1


def _item(line: bytes) -> Item | None:
    if len(line) > LONGEST_LINE:
        raise LineError(f"more than {LONGEST_LINE:,} bytes, expected at most that many")
    return read_line(line)


def _some(path: Path, lines: Iterator[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """The next lines."""
    some: list[tuple[int, bytes]] = []
    size = 0
    with plainly(path):
        for number, line in lines:
            some.append((number, line))
            size += len(line)
            if size >= PIECE:
                break
    return some


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines; of one that is too long no more than shows that it is."""
    while line := file.readline(LONGEST_LINE + 1):
        yield line
        while line and not line.endswith(b"\n"):
            line = file.readline(LONGEST_LINE + 1) if len(line) > LONGEST_LINE else b""
