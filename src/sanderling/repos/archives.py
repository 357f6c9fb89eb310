"""Segments, read past what is wrong with them: a bad block is reported, and the others are still given.

A finalised one is read by its index, in the order of the file. Without an index, because it was not finalised or since
the index is damaged, one block leads to the next: behind a bad one it goes on if a sound one follows where it says that
it ends. If none does, that was the end: of what was not finalised a torn block, which is no fault.
"""

import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Self, cast

from sanderling.formats.rca import (
    ENTRY,
    FOOTER,
    HEADER,
    I64,
    SMALLEST_BLOCK,
    U16,
    U32,
    Block,
    Footer,
    Header,
    RcaError,
    TocEntry,
    decode_block,
)
from sanderling.formats.rca_reader import IndexEntry, RcaReader
from sanderling.repos.parts import archive_folders
from sanderling.repos.segments import number_of
from sanderling.stores.durable import FolderError

SUFFIXES = (".rca", ".rca.part")
# Read of a block for its table of contents: enough for some eighty collections, which few repos have.
HEAD_BYTES = 4096
# A block is summed up in pieces, so that a large one does not have to be in memory.
PIECE = 1 << 20
_REST = struct.Struct("<qHI")  # crawled at, collections, CRC
_COUNTS = struct.Struct("<II")


class ArchiveProblem(NamedTuple):
    """What is wrong, and at which byte of which file."""

    path: Path
    offset: int
    found: str

    @classmethod
    def of(cls, path: Path, error: RcaError) -> "ArchiveProblem":
        """What was raised over a file."""
        return cls(path, error.offset, str(error).removeprefix(f"byte {error.offset}: "))

    def __str__(self) -> str:
        return f"{self.path}: byte {self.offset}: {self.found}"


Report = Callable[[ArchiveProblem], None]


class BlockHead(NamedTuple):
    """A block without its records."""

    offset: int
    size: int
    did: str
    pds: str
    rev: str
    crawled_at: int  # microseconds since 1970
    toc: tuple[TocEntry, ...]
    crc: int
    body: int  # bytes before what the CRC is of

    @property
    def records(self) -> int:
        """How many there are."""
        return sum(entry.count for entry in self.toc)


class Archive:
    """One segment. What is wrong with it goes to `report`, when it is met."""

    def __init__(self, path: Path, report: Report) -> None:
        """Raises RcaError for what is no .rca, and OSError."""
        self.path = path
        self._report = report
        self._file = path.open("rb", buffering=0)
        self.torn = 0  # bytes behind the last whole block of one that was not finalised; known after a pass
        try:
            self.header = Header.decode(self._file.read(HEADER.size))
            self.size = self._file.seek(0, os.SEEK_END)
            self._reader = self._read_index()
        except BaseException:
            self._file.close()
            raise

    def _read_index(self) -> RcaReader | None:
        """A reader that has an index, if there is one and it is sound."""
        try:
            reader = RcaReader(self._file)
        except RcaError as error:
            self._say(error)
            return None
        return reader if reader.finalised else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def finalised(self) -> bool:
        """Whether it was ended, and its index is sound."""
        return self._reader is not None

    @property
    def footer(self) -> Footer | None:
        """Of a finalised one."""
        if self._reader is None:
            return None
        return Footer.decode(self._bytes(self.size - FOOTER.size, FOOTER.size), self.size - FOOTER.size)

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """All sound blocks from a byte on, in the order of the file; each one in memory."""
        if self._reader is None:
            for offset, size in self._chain():
                if offset >= start:
                    yield decode_block(self._bytes(offset, size), offset)
            return
        for entry in self._entries():
            if entry.offset < start:
                continue
            try:
                yield self._block(entry)
            except RcaError as error:
                self._say(error)

    def heads(self, *, check: bool) -> Iterator[BlockHead]:
        """All blocks without their records, in the order of the file; with `check` all CRCs are compared.

        Without an index that is done in any case.
        """
        if self._reader is None:
            yield from (self._head(offset, size) for offset, size in self._chain())
            return
        for entry in self._entries():
            try:
                yield self._checked(entry) if check else self._head(entry.offset, entry.size)
            except RcaError as error:
                self._say(error)

    def head_of(self, block: Block) -> BlockHead:
        """A block without its records."""
        return self._head(block.offset, len(block.data))

    def find(self, did: str) -> Block | None:
        """The last block of `did`. Raises RcaError if that one is damaged."""
        if self._reader is not None:
            return self._reader.find(did)
        places = [(head.offset, head.size) for head in self.heads(check=True) if head.did == did]
        return decode_block(self._bytes(*places[-1]), places[-1][0]) if places else None

    def _say(self, error: RcaError) -> None:
        self._report(ArchiveProblem.of(self.path, error))

    def _bytes(self, offset: int, size: int) -> bytes:
        pieces: list[bytes] = []
        while size and (piece := os.pread(self._file.fileno(), size, offset)):
            pieces.append(piece)
            offset, size = offset + len(piece), size - len(piece)
        if size:
            raise RcaError(offset, f"the end of the file, expected {size} bytes more")
        return b"".join(pieces)

    def _entries(self) -> Iterator[IndexEntry]:
        """The index, which was found to be sound, in the order of the blocks."""
        start = self.header.index_offset
        data = self._bytes(start, self.size - FOOTER.size - start)
        places: list[int] = []
        at = U32.size
        while at < len(data):
            after = at + U16.size + U16.unpack_from(data, at)[0]
            # Both in one number: there may be a million, and an index has less than 4 GiB.
            places.append(I64.unpack_from(data, after)[0] << 32 | at)
            at = after + ENTRY.size
        places.sort()
        for place in places:
            did = (place & 0xFFFFFFFF) + U16.size
            after = did + U16.unpack_from(data, did - U16.size)[0]
            yield IndexEntry(data[did:after], *ENTRY.unpack_from(data, after))

    def _block(self, entry: IndexEntry) -> Block:
        data = self._bytes(entry.offset, entry.size)
        _check_entry(entry, zlib.crc32(data), entry.did)
        block = decode_block(data, entry.offset)
        _check_entry(entry, entry.crc, block.did.encode())
        return block

    def _checked(self, entry: IndexEntry) -> BlockHead:
        head = self._head(entry.offset, entry.size)
        _check_entry(entry, self._sum(entry.offset, entry.size), head.did.encode())
        self._check_body(head)
        return head

    def _check_body(self, head: BlockHead) -> None:
        if (found := self._sum(head.offset + head.body, head.size - head.body)) != head.crc:
            raise RcaError(head.offset, f"a block with CRC {found:08x}, expected {head.crc:08x}")

    def _sum(self, offset: int, size: int) -> int:
        found = 0
        for at in range(offset, offset + size, PIECE):
            found = zlib.crc32(self._bytes(at, min(PIECE, offset + size - at)), found)
        return found

    def _head(self, offset: int, size: int) -> BlockHead:
        """Raises RcaError for what is no block of this size."""
        enough = HEAD_BYTES
        while True:
            data = self._bytes(offset, min(enough, size))
            try:
                return _head(data, offset, size)
            except (struct.error, IndexError):
                if enough >= size:
                    raise RcaError(offset, f"{size} bytes that end before their table of contents does") from None
            enough *= 16

    def _chain(self) -> Iterator[tuple[int, int]]:
        """Offset and size of every sound block, found without an index."""
        end = self.header.index_offset if HEADER.size <= self.header.index_offset <= self.size else self.size
        at = HEADER.size
        while at < end:
            try:
                size = self._sound(at, end)
            except RcaError as error:
                if (after := self._after(at, end)) is None:
                    self._end(at, end, error)
                    return
                self._say(error)
                at = after
            else:
                yield at, size
                at += size

    def _end(self, at: int, end: int, error: RcaError) -> None:
        if self.header.index_offset:
            self._say(error)
        else:
            self.torn = end - at

    def _sound(self, at: int, end: int) -> int:
        """The size of the block at `at`. Raises RcaError if it is none, or a damaged one."""
        if end - at < SMALLEST_BLOCK:
            raise RcaError(at, f"{end - at} bytes, expected a block of {SMALLEST_BLOCK} at least")
        size = cast("int", U32.unpack(self._bytes(at, U32.size))[0])
        if not SMALLEST_BLOCK <= size <= end - at:
            raise RcaError(at, f"a block of {size} bytes, expected {SMALLEST_BLOCK} to {end - at}")
        self._check_body(self._head(at, size))
        return size

    def _after(self, at: int, end: int) -> int | None:
        """Where the next sound block is, if the one at `at` is damaged and says the right size."""
        if end - at < SMALLEST_BLOCK:
            return None
        after = at + cast("int", U32.unpack(self._bytes(at, U32.size))[0])
        try:
            self._sound(after, end)
        except RcaError:
            return None
        return after

    def __repr__(self) -> str:
        return f"<Archive {self.path}, {self.size} bytes>"


def _check_entry(entry: IndexEntry, crc: int, did: bytes) -> None:
    if crc != entry.crc:
        raise RcaError(entry.offset, f"a block with CRC {crc:08x}, expected {entry.crc:08x}")
    if did != entry.did:
        raise RcaError(entry.offset, f"a block of {did!r:.80}, expected {entry.did!r:.80}")


def _head(data: bytes, offset: int, size: int) -> BlockHead:
    """The head that `data` begins with. Raises struct.error or IndexError if it is not all there."""
    (says,) = U32.unpack_from(data)
    if says != size:
        raise RcaError(offset, f"a block that says {says} bytes, expected {size}")
    did, at = _text(data, U32.size, offset)
    pds, at = _text(data, at, offset)
    rev, at = _text(data, at, offset)
    crawled_at, collections, crc = _REST.unpack_from(data, at)
    body = at = at + _REST.size
    toc = []
    for _ in range(collections):
        name, at = _text(data, at, offset)
        toc.append(TocEntry(name, *_COUNTS.unpack_from(data, at)))
        at += _COUNTS.size
    if at + sum(entry.size for entry in toc) != size:
        raise RcaError(offset, f"collections that do not fill a block of {size} bytes")
    return BlockHead(offset, size, did, pds, rev, crawled_at, tuple(toc), crc, body)


def _text(data: bytes, at: int, offset: int) -> tuple[str, int]:
    start = at + U16.size
    end = start + U16.unpack_from(data, at)[0]
    if end > len(data):
        raise IndexError
    try:
        return data[start:end].decode(), end
    except UnicodeDecodeError as error:
        raise RcaError(offset, f"a text that is not UTF-8: {error.reason}") from None


def archives_in(places: Iterable[Path]) -> list[Path]:
    """The .rca files that are given, or in folders that are, by number. Raises FolderError if there are none.

    Of several archives that is not the order of their age, which only their blocks tell.
    """
    found: list[Path] = []
    for place in places:
        if not place.exists():
            raise FolderError(f"there is no {place}")
        inside = [place]
        if not place.is_file():
            inside = [
                path for each in archive_folders(place) for path in each.iterdir() if path.name.endswith(SUFFIXES)
            ]
        if not inside:
            raise FolderError(f"{place} holds no .rca; expected the folder of a crawl of repos")
        found += inside
    return sorted(dict.fromkeys(found), key=lambda path: (number_of(path), path.name))
