"""Read an .rca, finalised or not. Every CRC on the way is checked, and nothing a file says is believed without."""

import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from sanderling.formats.rca import (
    ENTRY,
    FOOTER,
    HEADER,
    SMALLEST_BLOCK,
    U16,
    U32,
    Block,
    Footer,
    Header,
    RcaError,
    decode_block,
)


class Counts(NamedTuple):
    """How often a collection is there."""

    repos: int = 0
    records: int = 0


class IndexEntry(NamedTuple):
    """Where the repo of a DID is."""

    did: bytes
    offset: int
    size: int
    crc: int


class Index:
    """All entries of a finalised file, kept as they are in it; only those that are asked for become objects."""

    def __init__(self, data: bytes, start: int, repos: int) -> None:
        """`data` stands at `start`, which is where the blocks end. Raises RcaError."""
        self._data = data
        self._starts = array("Q")
        (count,) = U32.unpack_from(data)
        if count != repos:
            raise RcaError(start, f"an index of {count} entries, expected {repos}")
        at, last, blocks = U32.size, (b"", 0), HEADER.size
        for _ in range(count):
            self._starts.append(at)
            entry, at = self._read(at, start)
            if entry[:2] <= last:
                raise RcaError(start + at, f"an index entry of {entry.did!r:.80} out of order")
            if entry.offset < HEADER.size or entry.offset + entry.size > start:
                raise RcaError(start + at, f"a block at {entry.offset} of {entry.size} bytes, outside of the blocks")
            last, blocks = entry[:2], blocks + entry.size
        if at != len(data) or blocks != start:
            raise RcaError(start, f"an index of {at} bytes over {blocks} of blocks, expected {len(data)} over {start}")

    def _read(self, at: int, start: int) -> tuple[IndexEntry, int]:
        data = self._data
        if at + U16.size > len(data):
            raise RcaError(start + at, "the end of the index, expected an entry")
        did = at + U16.size
        after = did + U16.unpack_from(data, at)[0]
        if after + ENTRY.size > len(data):
            raise RcaError(start + at, "an index entry that goes beyond the index")
        return IndexEntry(data[did:after], *ENTRY.unpack_from(data, after)), after + ENTRY.size

    def __len__(self) -> int:
        return len(self._starts)

    def _entry(self, start: int) -> IndexEntry:
        return self._read(start, 0)[0]

    def find(self, did: bytes) -> IndexEntry | None:
        """The last block of `did`."""
        place = bisect_right(self._starts, did, key=lambda start: self._entry(start).did)
        entry = self._entry(self._starts[place - 1]) if place else None
        return entry if entry is not None and entry.did == did else None

    def at(self, did: bytes, offset: int) -> IndexEntry | None:
        """The entry of the block of `did` at `offset`."""
        place = bisect_left(self._starts, (did, offset), key=lambda start: self._entry(start)[:2])
        entry = self._entry(self._starts[place]) if place < len(self) else None
        return entry if entry is not None and entry[:2] == (did, offset) else None


class RcaReader:
    """The repos of a file. It seeks before it reads, so the file may be used between two blocks."""

    def __init__(self, file: BinaryIO, *, most: int = 2**30) -> None:
        """Raises RcaError for what is no .rca, or says that it was finalised and was not.

        `most` is how many bytes a collection may unpack to: a parsed repo has 1 GiB of JSON at most.
        """
        self._file = file
        self._most = most
        self.size = file.seek(0, 2)
        self.header = Header.decode(self._bytes(0, min(HEADER.size, self.size)))
        self.finalised = self.header.index_offset != 0
        self._index = self._read_index() if self.finalised else None
        # How far whole blocks have been read: after a pass over a file that was not finalised, where repair would cut.
        self.whole_until = HEADER.size

    def _bytes(self, offset: int, size: int) -> bytes:
        self._file.seek(offset)
        data = self._file.read(size)
        if len(data) < size:
            raise RcaError(offset + len(data), f"the end of the file, expected {size} bytes from {offset}")
        return data

    def _read_index(self) -> Index:
        start, end = self.header.index_offset, self.size - FOOTER.size
        if end - start < U32.size:
            raise RcaError(24, f"an index at {start} of a file of {self.size} bytes")
        footer = Footer.decode(self._bytes(end, FOOTER.size), end)
        expected = (start, end - start, self.header.repos)
        if footer[:3] != expected:
            raise RcaError(end, f"index offset, index size and repos {footer[:3]}, expected {expected}")
        data = self._bytes(start, end - start)
        if (found := zlib.crc32(data)) != footer.crc:
            raise RcaError(start, f"an index with CRC {found:08x}, expected {footer.crc:08x}")
        return Index(data, start, self.header.repos)

    def __iter__(self) -> Iterator[Block]:
        """All blocks as they come in the file. One that was not finalised may end in a torn block, and ends before it.

        Raises RcaError at the first fault of a finalised file.
        """
        end = self.size if self._index is None else self.header.index_offset
        at = HEADER.size
        self.whole_until = at
        while at < end:
            try:
                block = self._block(at, end)
            except RcaError:
                if self._index is None:
                    return
                raise
            at += len(block.data)
            self.whole_until = at
            yield block

    def _block(self, at: int, end: int) -> Block:
        if end - at < SMALLEST_BLOCK:
            raise RcaError(at, f"{end - at} bytes, expected a block of {SMALLEST_BLOCK} at least")
        (size,) = U32.unpack(self._bytes(at, U32.size))
        if not SMALLEST_BLOCK <= size <= end - at:
            raise RcaError(at, f"a block of {size} bytes, expected {SMALLEST_BLOCK} to {end - at}")
        block = decode_block(self._bytes(at, size), at, most=self._most)
        if self._index is not None:
            self._check(block, self._index.at(block.did.encode(), at))
        return block

    def _check(self, block: Block, entry: IndexEntry | None) -> None:
        if entry is None or entry.size != len(block.data):
            raise RcaError(block.offset, f"a block of {block.did[:80]!r} that the index does not have")
        if (found := zlib.crc32(block.data)) != entry.crc:
            raise RcaError(block.offset, f"a block with CRC {found:08x}, expected {entry.crc:08x}")

    def find(self, did: str) -> Block | None:
        """The block of `did` in a finalised file, the last if there are several; None if there is none."""
        if self._index is None:
            raise RcaError(20, "a repo is found by its DID once the file is finalised")
        entry = self._index.find(did.encode())
        if entry is None:
            return None
        block = self._block(entry.offset, self.header.index_offset)
        if block.did != did:
            raise RcaError(entry.offset, f"a block of {block.did[:80]!r}, expected {did[:80]!r}")
        return block

    def counts(self) -> dict[str, Counts]:
        """How many repos and records each collection has, by name. Nothing is unpacked; every CRC is checked."""
        found: dict[str, Counts] = {}
        for block in self:
            for name, count, _ in block.toc:
                repos, records = found.get(name, Counts())
                found[name] = Counts(repos + 1, records + count)
        return dict(sorted(found.items()))

    def __repr__(self) -> str:
        state = f"{self.header.repos} repos" if self.finalised else "not finalised"
        return f"<RcaReader {state}, {self.size} bytes>"
