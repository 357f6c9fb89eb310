"""The objects of a simulated crawler: items as JSON of some shape, packed or not, and what is said about that.

Metadata is as S3 shows it in headers; who stores an object through a client leaves out the `x-amz-meta-` before each
name.
"""

import gzip
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import cache
from typing import NamedTuple

import msgspec

from sanderling.worlds.social_hostile import DEEP, Spoil

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdCompressor, compress
else:
    from backports.zstd import ZstdCompressor, compress

LEVEL = 2
BOMB = 64  # MiB that it unpacks to
CUT = 30  # bytes that are left of what is cut: no item of it is whole, of which something could be made
PREFIX = "x-amz-meta-"

Metadata = dict[str, str]


class Shape(StrEnum):
    """How items become one document. One that is alone may also be the document itself."""

    LIST = "list"
    COUNTED = "counted"  # {"items": […], "count": n}


class Packing(StrEnum):
    """How a document becomes an object."""

    PLAIN = "plain"
    ZSTD = "zstd"
    ZSTD_STREAM = "zstd_stream"  # without the size in its header, so that it cannot be unpacked at one go


class PackedObject(NamedTuple):
    """An object as it lies in a store."""

    body: bytes
    metadata: Metadata


def document(items: Sequence[object], shape: Shape, *, alone: bool = False, count: int | None = None) -> bytes:
    """Items as JSON; `alone` is for a single one that is the document, and `count` for one that lies."""
    if alone:
        return msgspec.json.encode(items[0])
    if shape is Shape.COUNTED or count is not None:
        return msgspec.json.encode({"items": items, "count": len(items) if count is None else count})
    return msgspec.json.encode(items)


def pack(data: bytes, packing: Packing, number: int) -> PackedObject:
    """A document as an object. Three crawlers say in three ways that they have packed it; the number decides which."""
    if packing is Packing.PLAIN:
        return PackedObject(data, {})
    body = compress(data, LEVEL) if packing is Packing.ZSTD else _streamed(data)
    return PackedObject(body, _said(number, len(data), len(body)))


def _said(number: int, size: int, packed: int) -> Metadata:
    said = (
        {"compressed": "true", "compression-algorithm": "zstd", "compression-level": str(LEVEL)},
        {"compressed": "True"},
        {"compression-algorithm": "zstd"},
    )[number % 3]
    sizes = {"original-size": str(size), "compressed-size": str(packed)}
    return {PREFIX + name: value for name, value in {**said, **sizes}.items()}


def _streamed(data: bytes) -> bytes:
    # Whoever packs piece by piece does not know the size when the header is written.
    packer = ZstdCompressor(LEVEL)
    return packer.compress(data) + packer.flush()


def spoil_object(data: bytes, packing: Packing, number: int, spoil: Spoil) -> PackedObject:
    """The same, with something wrong."""
    whole = pack(data, packing, number)
    return SPOIL[spoil](data, whole, number) if spoil in SPOIL else whole


def _wrong_metadata(data: bytes, whole: PackedObject, number: int) -> PackedObject:
    if number % 2:
        return PackedObject(data, _said(number, len(data), len(data)))
    return PackedObject(whole.body if whole.metadata else compress(data, LEVEL), {PREFIX + "original-size": "1"})


def _cut_frame(data: bytes, _whole: PackedObject, number: int) -> PackedObject:
    whole = pack(data, Packing.ZSTD, number)
    return PackedObject(whole.body[:CUT], whole.metadata)


def _two_frames(data: bytes, _whole: PackedObject, number: int) -> PackedObject:
    middle = len(data) // 2
    body = compress(data[:middle], LEVEL) + compress(data[middle:], LEVEL)
    return PackedObject(body, _said(number, len(data), len(body)))


def _bomb(_data: bytes, _whole: PackedObject, number: int) -> PackedObject:
    return PackedObject(_blanks(), _said(number, BOMB * 2**20, len(_blanks())))


@cache
def _blanks() -> bytes:
    """A list with nothing in it, after many blanks, which are JSON as well. Never in memory as a whole."""
    packer, piece = ZstdCompressor(LEVEL), b" " * 2**20
    return b"".join([*(packer.compress(piece) for _ in range(BOMB)), packer.compress(b"[]"), packer.flush()])


# Those that are not here are a matter of the document, or of the message.
SPOIL: dict[Spoil, Callable[[bytes, PackedObject, int], PackedObject]] = {
    Spoil.WRONG_METADATA: _wrong_metadata,
    Spoil.MARKED: lambda data, _whole, _number: PackedObject(b"\xef\xbb\xbf" + data, {}),
    Spoil.TWO_FRAMES: _two_frames,
    Spoil.CUT: lambda data, _whole, _number: PackedObject(data[:CUT], {}),
    Spoil.CUT_FRAME: _cut_frame,
    Spoil.BOMB: _bomb,
    Spoil.DEEP: lambda _data, _whole, _number: PackedObject(b"[" * DEEP + b"]" * DEEP, {}),
    Spoil.NOT_JSON: lambda _data, _whole, _number: PackedObject(b"<html><h1>502 Bad Gateway</h1></html>\n", {}),
    Spoil.SCALAR: lambda _data, _whole, _number: PackedObject(b'"no items"', {}),
    Spoil.EMPTY: lambda _data, _whole, _number: PackedObject(b"", {}),
    # A fixed time, or it would not be the same bytes again.
    Spoil.GZIPPED: lambda data, _whole, _number: PackedObject(gzip.compress(data, mtime=0), {}),
}
