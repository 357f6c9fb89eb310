"""The .rca layout: repos in one file, each a block that can be skipped, with an index by DID at the end.

    [header 64] [block]... [index] [footer 32]

All numbers are little-endian, all checksums CRC-32 (IEEE), all times microseconds since 1970. A block is

    u32 size (with these four bytes), DID, PDS, rev, i64 crawled at, u16 collections, u32 CRC of all that follows,
    [name, u32 records, u32 packed size]... [zstd frame]...

where a text is a u16 size and UTF-8, and a frame unpacks to [u16 size, rkey, u32 size, JSON]... The index is
[u32 entries] [DID, i64 offset, u32 size, u32 CRC of the whole block]..., sorted by DID. Header and footer both say
where it is and how many repos there are; a header with zeros there is that of a file which was never finalised.

What no checksum covers: the header's time of creation, always; in a file that is not finalised also each block's DID,
PDS, rev and time, since only the index sums up whole blocks.
"""

import struct
import sys
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from sanderling.formats.parsed import Collection

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdCompressor, ZstdDecompressor, ZstdError
else:
    from backports.zstd import ZstdCompressor, ZstdDecompressor, ZstdError

MAGIC = b"REPOARCH"
VERSION = 1
LEVELS = range(1, 20)
HEADER = struct.Struct("<8sHHqIq32s")
FOOTER = struct.Struct("<qIIII8s")
ENTRY = struct.Struct("<qII")  # of the index, after its DID
U16, U32, I64 = struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<q")
_COUNTS = struct.Struct("<II")
_BEFORE_TOC = struct.Struct("<qHI")
SMALLEST_BLOCK = U32.size + 3 * U16.size + _BEFORE_TOC.size
MOST_U16, MOST_U32, MOST_I64 = 2**16 - 1, 2**32 - 1, 2**63 - 1


class BlockError(ValueError):
    """A repo does not fit into a block: a text, a number or the whole is larger than its field."""


class RcaError(ValueError):
    """A file is not a sound .rca. `offset` is the byte of it at which that shows."""

    def __init__(self, offset: int, found: str) -> None:
        super().__init__(f"byte {offset}: {found}")
        self.offset = offset


class Header(NamedTuple):
    """How a file begins; the last two are 0 until it is finalised."""

    created_at: int  # microseconds since 1970
    repos: int = 0
    index_offset: int = 0

    def encode(self) -> bytes:
        """As it is in the file."""
        return HEADER.pack(MAGIC, VERSION, 0, self.created_at, self.repos, self.index_offset, bytes(32))

    @classmethod
    def decode(cls, data: bytes) -> "Header":
        """Raises RcaError."""
        if len(data) < HEADER.size:
            raise RcaError(len(data), f"the end of the file, expected a header of {HEADER.size} bytes")
        magic, version, flags, created_at, repos, index_offset, reserved = HEADER.unpack(data)
        if magic != MAGIC:
            raise RcaError(0, f"magic {magic!r}, expected {MAGIC!r}")
        if version != VERSION:
            raise RcaError(8, f"version {version}, expected {VERSION}")
        if flags or any(reserved):
            raise RcaError(10 if flags else 32, "reserved bytes that are not zero")
        if index_offset < HEADER.size and (index_offset or repos):
            raise RcaError(20, f"{repos} repos and an index at {index_offset}, expected both or neither")
        return cls(created_at, repos, index_offset)


class Footer(NamedTuple):
    """How a finalised file ends."""

    index_offset: int
    index_size: int
    repos: int
    crc: int

    def encode(self) -> bytes:
        """As it is in the file."""
        return FOOTER.pack(*self, 0, MAGIC)

    @classmethod
    def decode(cls, data: bytes, offset: int) -> "Footer":
        """`offset` is where `data` stands in the file. Raises RcaError."""
        *fields, reserved, magic = FOOTER.unpack(data)
        if magic != MAGIC or reserved:
            raise RcaError(offset, f"magic {magic!r} and reserved {reserved}, expected {MAGIC!r} and 0")
        return cls(*fields)


class TocEntry(NamedTuple):
    """One collection of a block."""

    name: str
    count: int  # type: ignore[assignment] # hides the method of tuples, which nobody needs here
    size: int  # compressed


@dataclass(frozen=True, slots=True)
class Block:
    """One repo of a file. Collections are unpacked when they are asked for."""

    offset: int
    did: str
    pds: str
    rev: str
    crawled_at: int  # microseconds since 1970
    toc: tuple[TocEntry, ...]
    data: bytes  # as it is in the file
    most: int  # bytes that one collection may unpack to

    def records(self, collection: str) -> Iterator[tuple[str, bytes]]:
        """Its rkeys and their JSON; none if it is not there. Raises RcaError."""
        for entry, offset, content in self.contents(lambda name: name == collection):
            return _records(content, entry.count, offset)
        return iter(())

    def contents(self, wanted: Callable[[str], bool]) -> Iterator[tuple[TocEntry, int, bytes]]:
        """The wanted collections, where each stands in the file, and its records unpacked. Raises RcaError."""
        at = len(self.data) - sum(entry.size for entry in self.toc)
        for entry in self.toc:
            if wanted(entry.name):
                yield entry, self.offset + at, self._unpacked(at, entry.size)
            at += entry.size

    def _unpacked(self, at: int, size: int) -> bytes:
        inner = ZstdDecompressor()
        try:
            content = inner.decompress(memoryview(self.data)[at : at + size], max_length=self.most + 1)
        except ZstdError as error:
            raise RcaError(self.offset + at, f"no zstd frame: {error}") from None
        if len(content) > self.most:
            raise RcaError(self.offset + at, f"a collection of more than {self.most} bytes")
        if not inner.eof or inner.unused_data:
            raise RcaError(self.offset + at, "a zstd frame that ends early or late")
        return content

    def __repr__(self) -> str:
        return f"<Block {self.did} at {self.offset}, {len(self.data)} bytes, {len(self.toc)} collections>"


def _records(content: bytes, count: int, offset: int) -> Iterator[tuple[str, bytes]]:
    reader = _Reader(content, 0, offset)
    for _ in range(count):
        rkey = reader.text()
        yield rkey, reader.take(reader.number(U32))
    if reader.at != len(content):
        raise RcaError(offset, f"{len(content) - reader.at} bytes after record {count}, unpacked")


class _Reader:
    """Takes a block apart without ever going past its end."""

    def __init__(self, data: bytes, at: int, offset: int) -> None:
        self._data = data
        self._offset = offset
        self.at = at

    def take(self, size: int) -> bytes:
        start, self.at = self.at, self.at + size
        if self.at > len(self._data):
            raise RcaError(self._offset, f"{size} bytes at byte {start} of {len(self._data)}")
        return self._data[start : self.at]

    def number(self, kind: struct.Struct) -> int:
        (value,) = kind.unpack(self.take(kind.size))
        return int(value)

    def text(self) -> str:
        try:
            return self.take(self.number(U16)).decode("utf-8")
        except UnicodeDecodeError as error:
            raise RcaError(self._offset, f"a text that is not UTF-8: {error.reason}") from None


def decode_block(data: bytes, offset: int, *, most: int = 2**30) -> Block:
    """The block that `data` is, its CRC checked; `offset` is where it stands in the file. Raises RcaError."""
    reader = _Reader(data, 0, offset)
    size = reader.number(U32)
    if size != len(data):
        raise RcaError(offset, f"a block that says {size} bytes, expected {len(data)}")
    did, pds, rev = reader.text(), reader.text(), reader.text()
    crawled_at, collections, crc = _BEFORE_TOC.unpack(reader.take(_BEFORE_TOC.size))
    if (found := zlib.crc32(memoryview(data)[reader.at :])) != crc:
        raise RcaError(offset, f"a block with CRC {found:08x}, expected {crc:08x}")
    toc = tuple(TocEntry(reader.text(), *_COUNTS.unpack(reader.take(_COUNTS.size))) for _ in range(collections))
    packed = sum(entry.size for entry in toc)
    if packed != len(data) - reader.at:
        raise RcaError(offset, f"collections of {packed} bytes, expected the {len(data) - reader.at} that follow")
    return Block(offset, did, pds, rev, crawled_at, toc, data, most)


def encode_block(
    did: str, pds: str, rev: str, crawled_at: int, collections: Iterable[Collection], level: int = 3
) -> bytes:
    """A repo as it is in a file. Takes nothing but its arguments, so it may run in any thread. Raises BlockError.

    Empty collections are left out; the others are sorted by name.
    """
    compressor = _compressor(level)
    toc: list[bytes] = []
    frames: list[bytes] = []
    before = None
    for name, count, data in sorted(kept for kept in collections if kept.count):
        if name == before:
            raise BlockError(f"collection {name[:80]!r} twice in {did}")
        before = name
        frame = compressor.compress(data, ZstdCompressor.FLUSH_FRAME)
        toc += _text("collection", name), _u32("records", count) + _u32("packed size", len(frame))
        frames.append(frame)
    if len(frames) > MOST_U16:
        raise BlockError(f"{len(frames)} collections in {did}, expected at most {MOST_U16}")
    body = b"".join(toc + frames)
    texts = _text("did", did) + _text("pds", pds) + _text("rev", rev)
    size = U32.size + len(texts) + _BEFORE_TOC.size + len(body)
    head = _u32("block size", size) + texts + _BEFORE_TOC.pack(checked_time(crawled_at), len(frames), zlib.crc32(body))
    return head + body


def checked_time(microseconds: int) -> int:
    """`microseconds` if the format can keep it. Raises BlockError."""
    if not -MOST_I64 <= microseconds <= MOST_I64:
        raise BlockError(f"time {microseconds}, expected microseconds in 64 bits")
    return microseconds


class _Compressors(threading.local):
    """One compressor per thread and level: a new one costs as much as compressing a small repo."""

    def __init__(self) -> None:
        self.by_level: dict[int, ZstdCompressor] = {}


_COMPRESSORS = _Compressors()


def _compressor(level: int) -> ZstdCompressor:
    if level not in LEVELS:
        raise BlockError(f"zstd level {level}, expected {LEVELS[0]} to {LEVELS[-1]}")
    known = _COMPRESSORS.by_level
    if level not in known:
        known[level] = ZstdCompressor(level)
    return known[level]


def _text(what: str, value: str) -> bytes:
    data = value.encode()
    if len(data) > MOST_U16:
        raise BlockError(f"{what} of {len(data)} bytes, expected at most {MOST_U16}")
    return U16.pack(len(data)) + data


def _u32(what: str, value: int) -> bytes:
    if value > MOST_U32:
        raise BlockError(f"{what} {value}, expected at most {MOST_U32}")
    return U32.pack(value)
