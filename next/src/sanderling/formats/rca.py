"""`.rca`: repos in one file, each a block that can be skipped, with an index by DID at the end.

    [header 64] [block]... [index] [footer 32]

docs/formats.md has the fields. What no checksum covers: the header's time of creation, always; in a file that is not
finished also each block's DID, PDS, rev and time, since only the index has checksums of whole blocks.
"""

import os
import struct
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple, Self

from sanderling.formats.repo import RepoCollection, RepoRecord, split_records

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdCompressor, ZstdDecompressor, ZstdError
else:
    from backports.zstd import ZstdCompressor, ZstdDecompressor, ZstdError

MAGIC, VERSION = b"REPOARCH", 1
LEVELS = range(1, 20)
HEADER = struct.Struct("<8sHHqIq32s")
FOOTER = struct.Struct("<qIIII8s")
ENTRY = struct.Struct("<qII")  # of the index, after its DID
_U16, _U32 = struct.Struct("<H"), struct.Struct("<I")
_COUNTS = struct.Struct("<II")
_BEFORE_TOC = struct.Struct("<qHI")
_MOST_U16, _MOST_U32, _MOST_I64 = (1 << 16) - 1, (1 << 32) - 1, (1 << 63) - 1
LARGEST_COLLECTION = 1 << 30  # bytes it may unpack to: a parsed repo has 1 GiB of JSON at most


class BlockError(ValueError):
    """A repo does not fit into a block: a text, a number or the whole is larger than its field."""


class RcaError(ValueError):
    """A file is no sound .rca. `offset` is the byte of it at which that shows."""

    def __init__(self, path: Path, offset: int, found: str) -> None:
        super().__init__(f"{path}: byte {offset}: {found}")
        self.path = path
        self.offset = offset


class RcaHeader(NamedTuple):
    """How a file begins; the last two are 0 until it is finished."""

    created_at: int  # microseconds since 1970
    repos: int = 0
    index_offset: int = 0

    def encode(self) -> bytes:
        """The 64 bytes."""
        return HEADER.pack(MAGIC, VERSION, 0, self.created_at, self.repos, self.index_offset, bytes(32))


def encode_block(
    did: str, pds: str, rev: str, crawled_at: int, collections: Iterable[RepoCollection], level: int = 3
) -> bytes:
    """A repo as it is in a file. Empty collections are left out; the others are sorted by name. Raises BlockError."""
    if level not in LEVELS:
        raise BlockError(f"zstd level {level}, expected {LEVELS[0]} to {LEVELS[-1]}")
    compressor = _compressor(level)
    toc: list[bytes] = []
    frames: list[bytes] = []
    last = None
    for name, count, data in sorted(each for each in collections if each.records):
        if name == last:
            raise BlockError(f"collection {name[:80]!r} twice in {did}")
        last = name
        frames.append(compressor.compress(data, ZstdCompressor.FLUSH_FRAME))
        toc += _text("collection", name), _COUNTS.pack(count, len(frames[-1]))
    body = b"".join(toc + frames)
    texts = _text("DID", did) + _text("PDS", pds) + _text("rev", rev)
    size = _U32.size + len(texts) + _BEFORE_TOC.size + len(body)
    if size > _MOST_U32 or len(frames) > _MOST_U16 or not 0 <= crawled_at <= _MOST_I64:
        raise BlockError(f"{did}: {size} bytes, {len(frames)} collections, time {crawled_at}: more than a block holds")
    return _U32.pack(size) + texts + _BEFORE_TOC.pack(crawled_at, len(frames), zlib.crc32(body)) + body


def _text(what: str, value: str) -> bytes:
    data = value.encode()
    if len(data) > _MOST_U16:
        raise BlockError(f"{what} of {len(data)} bytes, expected at most {_MOST_U16}")
    return _U16.pack(len(data)) + data


# One for all threads, which it serves in turn: a new one costs as much as compressing a small repo.
_compressor = cache(ZstdCompressor)


def index_entry(block: bytes, offset: int) -> bytes:
    """The entry in the index for the block that begins at `offset`."""
    (size,) = _U16.unpack_from(block, _U32.size)
    did = block[_U32.size : _U32.size + _U16.size + size]
    return did + ENTRY.pack(offset, len(block), zlib.crc32(block))


def encode_index(entries: list[bytes], offset: int) -> bytes:
    """Index and footer of a file whose blocks, with these entries, end at `offset`."""
    # By DID; of one DID as they were written.
    ordered = sorted(entries, key=lambda entry: entry[_U16.size : -ENTRY.size])
    index = _U32.pack(len(ordered)) + b"".join(ordered)
    return index + FOOTER.pack(offset, len(index), len(ordered), zlib.crc32(index), 0, MAGIC)


class BlockCollection(NamedTuple):
    """What a block says of one of its collections."""

    name: str
    records: int
    packed: int  # bytes, compressed


@dataclass(frozen=True, slots=True)
class Block:
    """One repo of a file. Collections are unpacked when they are asked for."""

    path: Path
    offset: int
    did: str
    pds: str
    rev: str
    crawled_at: int  # microseconds since 1970
    collections: tuple[BlockCollection, ...]
    data: bytes = field(repr=False)  # all of it, as it is in the file

    def contents(self, wanted: Callable[[str], bool] | None = None) -> Iterator[RepoCollection]:
        """The collections whose names are wanted, their records as they are packed. Raises RcaError."""
        at = len(self.data) - sum(each.packed for each in self.collections)
        for name, records, packed in self.collections:
            if wanted is None or wanted(name):
                yield RepoCollection(name, records, self._unpack(at, packed))
            at += packed

    def records(self, wanted: Callable[[str], bool] | None = None) -> Iterator[RepoRecord]:
        """The records of the collections whose names are wanted. Raises RcaError."""
        for collection in self.contents(wanted):
            try:
                yield from split_records(*collection)
            except ValueError as error:
                raise RcaError(self.path, self.offset, str(error)) from None

    def _unpack(self, at: int, size: int) -> bytes:
        frame = ZstdDecompressor()
        try:
            content = frame.decompress(self.data[at : at + size], max_length=LARGEST_COLLECTION + 1)
        except ZstdError as error:
            raise RcaError(self.path, self.offset + at, f"no zstd frame: {error}") from None
        if len(content) > LARGEST_COLLECTION:
            raise RcaError(self.path, self.offset + at, f"a collection of more than {LARGEST_COLLECTION} bytes")
        if not frame.eof or frame.unused_data:
            raise RcaError(self.path, self.offset + at, "a zstd frame that ends early or late")
        return content


def decode_block(data: bytes, path: Path, offset: int) -> Block:
    """The block that `data` is, its CRC checked; `path` and `offset` say where it was read. Raises RcaError."""
    try:
        if _U32.unpack_from(data) != (len(data),):
            raise RcaError(path, offset, f"a block that does not say that it has {len(data)} bytes")
        at, texts = _U32.size, []
        for _ in range(3):
            text, at = _read_text(data, at)
            texts.append(text)
        crawled_at, count, crc = _BEFORE_TOC.unpack_from(data, at)
        at += _BEFORE_TOC.size
        if (found := zlib.crc32(memoryview(data)[at:])) != crc:
            raise RcaError(path, offset, f"a block with CRC {found:08x}, expected {crc:08x}")
        collections = []
        for _ in range(count):
            name, at = _read_text(data, at)
            collections.append(BlockCollection(name, *_COUNTS.unpack_from(data, at)))
            at += _COUNTS.size
    except (struct.error, UnicodeDecodeError):
        raise RcaError(path, offset, "no block: a text or number goes beyond its end, or is no UTF-8") from None
    packed = sum(each.packed for each in collections)
    if packed != len(data) - at:
        raise RcaError(path, offset, f"collections of {packed} bytes, expected the {len(data) - at} that follow")
    did, pds, rev = texts
    return Block(path, offset, did, pds, rev, crawled_at, tuple(collections), data)


def _read_text(data: bytes, at: int) -> tuple[str, int]:
    (size,) = _U16.unpack_from(data, at)
    end = at + _U16.size + size
    if end > len(data):
        raise struct.error
    return data[at + _U16.size : end].decode(), end


class RcaReader:
    """The repos of an .rca file: iterate over it, or `find` one by its DID. Every checksum on the way is checked.

    A file that was not finished ends before its first block that is not whole. Raises RcaError for what is no .rca and
    at the first fault of a finished one, and OSError for what cannot be read.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file = self.path.open("rb")
        try:
            self.size = os.fstat(self._file.fileno()).st_size
            self.header = self._read_header()
            self.finished = self.header.index_offset != 0
            self._index = self._read_index() if self.finished else b""
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Block]:
        """All blocks, in the order of the file."""
        if self.finished:
            yield from map(self.block_at, self._places)
            return
        at = HEADER.size
        while at < self.size:
            try:
                block = self.block_at(at)
            except RcaError:
                return
            at += len(block.data)
            yield block

    def places(self) -> Iterator[tuple[str, int, int]]:
        """DID, offset and size of each block, in the order of the file; of a finished file, by its index alone."""
        if not self.finished:
            yield from ((block.did, block.offset, len(block.data)) for block in self)
            return
        for place in self._places.values():
            did, offset, size, _ = self._entry(place)
            yield did.decode(errors="replace"), offset, size

    def find(self, did: str) -> Block | None:
        """The block of `did`, the last if there are several; None if there is none."""
        if not self.finished:
            found = [offset for name, offset, _ in self.places() if name == did]
            return self.block_at(found[-1]) if found else None
        # No binary search: that needs a pass over all entries first, and this is one at the speed of memory. The size
        # before a DID has a zero in it, and no DID has: so the end of a longer one is not found.
        wanted = did.encode()
        place = self._index.rfind(_U16.pack(len(wanted)) + wanted) if did.startswith("did:") else -1
        return self._read_block(*self._entry(place)) if place >= 0 else None

    def block_at(self, offset: int) -> Block:
        """The block that begins at `offset`."""
        if not self.finished:
            (size,) = _U32.unpack(self._read(offset, _U32.size))
            return decode_block(self._read(offset, size), self.path, offset)
        place = self._places.get(offset)
        if place is None:
            raise self._error(offset, "no block begins here")
        return self._read_block(*self._entry(place))

    def verify(self) -> int:
        """Read all of a finished file and unpack every collection; how many repos it holds. Raises RcaError."""
        if not self.finished:
            raise self._error(20, "a file that was not finished")
        for block in self:
            for _ in block.records():
                pass
        return self.header.repos

    @cached_property
    def _places(self) -> dict[int, int]:
        """For the offset of each block, in the order of the file, where its entry is in the index."""
        at, last = _U32.size, b""
        packed = []  # offset, size and place in one number: a million tuples cost three times as much
        while at < len(self._index):
            did, offset, size, _ = self._entry(at)
            if did < last:  # the seed's writer has several of one DID in any order
                raise self._error(self.header.index_offset + at, f"an index entry of {did!r:.80} out of order")
            last = did
            packed.append(offset << 64 | size << 32 | at)
            at += _U16.size + len(did) + ENTRY.size
        if _U32.unpack_from(self._index) != (len(packed),) or len(packed) != self.header.repos:
            raise self._error(20, f"{self.header.repos} repos, and an index of {len(packed)}")
        end, places = HEADER.size, {}
        for number in sorted(packed):
            if number >> 64 != end:
                break
            places[end] = number & _MOST_U32
            end += number >> 32 & _MOST_U32
        if len(places) < len(packed) or end != self.header.index_offset:
            raise self._error(end, "a block that is not in the index, or is there twice")
        return places

    def _entry(self, place: int) -> tuple[bytes, int, int, int]:
        """DID, offset, size and CRC of the entry at `place` in the index."""
        try:
            start = place + _U16.size
            end = start + _U16.unpack_from(self._index, place)[0]
            return (self._index[start:end], *ENTRY.unpack_from(self._index, end))
        except struct.error:
            raise self._error(self.header.index_offset + place, "an index entry that goes beyond the index") from None

    def _read_block(self, did: bytes, offset: int, size: int, crc: int) -> Block:
        """The block of an entry."""
        data, name = self._read(offset, size), did.decode(errors="replace")
        if (found := zlib.crc32(data)) != crc:
            raise self._error(offset, f"the block of {name:.80} has CRC {found:08x}, expected {crc:08x}")
        block = decode_block(data, self.path, offset)
        if block.did != name:
            raise self._error(offset, f"a block of {block.did:.80}, expected {name:.80}")
        return block

    def _read_header(self) -> RcaHeader:
        if self.size < HEADER.size:
            raise self._error(self.size, f"no .rca file: it ends within its header of {HEADER.size} bytes")
        magic, version, flags, created_at, repos, index_offset, reserved = HEADER.unpack(self._read(0, HEADER.size))
        if magic != MAGIC:
            raise self._error(0, f"no .rca file: it begins with {magic!r}, expected {MAGIC!r}")
        if version != VERSION:
            raise self._error(8, f".rca version {version}, expected {VERSION}")
        if flags or any(reserved):
            raise self._error(10 if flags else 32, "reserved bytes that are not zero")
        if index_offset < HEADER.size and (index_offset or repos):
            raise self._error(20, f"{repos} repos and an index at {index_offset}, expected both or neither")
        return RcaHeader(created_at, repos, index_offset)

    def _read_index(self) -> bytes:
        start, end = self.header.index_offset, self.size - FOOTER.size
        if end - start < _U32.size:
            raise self._error(24, f"an index at {start} of a file of {self.size} bytes")
        *fields, crc, reserved, magic = FOOTER.unpack(self._read(end, FOOTER.size))
        expected = [start, end - start, self.header.repos]
        if [*fields, reserved, magic] != [*expected, 0, MAGIC]:
            raise self._error(end, f"a footer with {[*fields, reserved, magic]}, expected {[*expected, 0, MAGIC]}")
        index = self._read(start, end - start)
        if (found := zlib.crc32(index)) != crc:
            raise self._error(start, f"an index with CRC {found:08x}, expected {crc:08x}")
        return index

    def _read(self, offset: int, size: int) -> bytes:
        if not 0 <= offset <= self.size - size:
            raise self._error(offset, f"{size} bytes, expected at most the {self.size - offset} that follow")
        self._file.seek(offset)
        return self._file.read(size)

    def _error(self, offset: int, found: str) -> RcaError:
        return RcaError(self.path, offset, found)
