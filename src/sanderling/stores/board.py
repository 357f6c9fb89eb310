"""Numbers that the processes of one crawl show each other, in memory that they share.

Each part has a line of its own, which only the process that owns the part writes. What must outlive the processes is in
ledgers: the board is made anew at each start.
"""

import mmap
import struct
from enum import IntEnum
from pathlib import Path

NUMBER = struct.Struct("=q")


class BoardField(IntEnum):
    """What a part says of itself."""

    IDLE = 0  # 1 while it has nothing to do, unless another part finds something for it
    SENT = 1  # lines for other parts; only ever more
    LOOKED = 2  # how often it looked into its inbox, found nothing, and was idle
    FETCHED = 3  # pages, of this run and those before
    INFLIGHT = 4  # requests
    COMPLETE = 5  # 1 once it came to its end, and nothing of it is left
    TAKEN = 6  # items, of those that one process hands out to all
    REQUESTS = 7  # of a job: requests that were sent, of this run and those before, and those in flight
    RECORDS = 8  # of a job: records, the same
    ANSWERED = 9  # of a job: requests that have their end, the same


LINE = NUMBER.size * len(BoardField)


class Board:
    """The board at `path`, of so many parts. One process makes it; the others open it."""

    def __init__(self, path: Path, parts: int, *, make: bool = False) -> None:
        size = NUMBER.size + LINE * parts
        if make:
            path.write_bytes(bytes(size))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), size)
        self.parts = parts

    @property
    def over(self) -> bool:
        """Whether all parts have nothing to do, and nothing is on its way."""
        return bool(NUMBER.unpack_from(self._memory, 0)[0])

    @over.setter
    def over(self, over: bool) -> None:
        NUMBER.pack_into(self._memory, 0, over)

    def get(self, part: int, field: BoardField) -> int:
        """What a part says."""
        return int(NUMBER.unpack_from(self._memory, NUMBER.size + LINE * part + NUMBER.size * field)[0])

    def put(self, part: int, field: BoardField, number: int) -> None:
        """Say it, of a part that is ours."""
        NUMBER.pack_into(self._memory, NUMBER.size + LINE * part + NUMBER.size * field, number)

    def total(self, field: BoardField) -> int:
        """What all parts say together."""
        return sum(self.get(part, field) for part in range(self.parts))

    def close(self) -> None:
        """Let go of it."""
        self._memory.close()
