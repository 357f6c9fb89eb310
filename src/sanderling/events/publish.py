"""A file of items, or of rows of our crawlers, is published: batch after batch. So is whatever somebody pipes to us.

What becomes a batch depends on the lines and on nothing else. So a file that is published again, because the first time
was cut short, ends in the same batches and the same events, and whoever has seen them has seen them.
"""

import asyncio
import io
import os
import select
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from sanderling.events.crawl_items import Item, LineError, read_line
from sanderling.events.producer import LARGEST_ITEM, BatchSink, ItemError
from sanderling.stores.durable import plainly

# A row of a page has more in it than the item that is made of it.
LONGEST_LINE = 4 * LARGEST_ITEM
PIECE = 1 << 20  # bytes of lines that are read at a time, more or less
MOST_PROBLEMS = 20  # that are told
STEP = 0.2  # seconds between looks at whether to stop, while nothing comes through a pipe


@dataclass(slots=True)
class PublishedFile:
    """What came of a file."""

    items: int = 0
    left_out: int = 0  # lines that are no items, and need not be
    bad: int = 0
    problems: list[str] = field(default_factory=list)  # the first of them, with their lines


async def publish_file(path: Path, sink: BatchSink) -> PublishedFile:
    """Return when all items of the file are safe. A line that cannot be read is counted, and the others are published.

    Raises FolderError if the file cannot be read; then some may be published.
    """
    with plainly(path):
        file = await asyncio.to_thread(path.open, "rb")
    try:
        return await _publish_all(path, file, sink, PIECE)
    finally:
        await asyncio.to_thread(file.close)


async def publish_piped(handle: int, sink: BatchSink) -> PublishedFile:
    """The same for what comes through a pipe, or from a terminal, until its end."""
    piped = Piped(handle)
    try:
        # Line by line: who pipes slowly should not have to wait until there is much of it.
        return await _publish_all(Path("-"), io.BufferedReader(piped, PIECE), sink, 1)
    finally:
        piped.stop()


async def _publish_all(path: Path, file: BinaryIO, sink: BatchSink, piece: int) -> PublishedFile:
    published = PublishedFile()
    lines = enumerate(_lines(file), 1)
    while some := await asyncio.to_thread(_some, path, lines, piece):
        for number, line in some:
            await _publish(number, line, sink, published)
    await sink.flush()
    return published


class Piped(io.RawIOBase):
    """What can be read from a handle; whoever waits for more is let go by `stop`."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._stopping = False

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - the types of the library know no better word
        """Read some, as soon as there is some; nothing at the end."""
        while not self._stopping:
            # In small steps: nobody can wake a thread that reads, and the process could not end before it.
            if select.select([self._handle], [], [], STEP)[0]:
                found = os.read(self._handle, len(buffer))
                buffer[: len(found)] = found
                return len(found)
        return 0

    def stop(self) -> None:
        """Let it be the end."""
        self._stopping = True


async def _publish(number: int, line: bytes, sink: BatchSink, published: PublishedFile) -> None:
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


def _some(path: Path, lines: Iterator[tuple[int, bytes]], piece: int) -> list[tuple[int, bytes]]:
    """The next lines, of so many bytes or a little more."""
    some: list[tuple[int, bytes]] = []
    size = 0
    with plainly(path):
        for number, line in lines:
            some.append((number, line))
            size += len(line)
            if size >= piece:
                break
    return some


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines; of one that is too long no more than shows that it is."""
    while line := file.readline(LONGEST_LINE + 1):
        yield line
        while line and not line.endswith(b"\n"):
            line = file.readline(LONGEST_LINE + 1) if len(line) > LONGEST_LINE else b""
