"""Undo Content-Encoding piece by piece, never making more than is allowed: a kilobyte can unpack to a gigabyte."""

import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

import brotli  # type: ignore[import-untyped] # it ships no types

if sys.version_info >= (3, 14):
    from compression.zstd import DecompressionParameter, ZstdDecompressor, ZstdError
else:
    from backports.zstd import DecompressionParameter, ZstdDecompressor, ZstdError

ACCEPTED = "gzip, deflate, br, zstd"
PIECE = 65_536  # bytes unpacked at a time: what a bomb costs before it is noticed
# Bytes unpacked from at a time. What follows the end of a member is copied, so large ones of many members would be
# copied as often as they have members.
SLICE = 16_384
# gzip members and zstd frames of one body. Tools that compress in parallel write one for each 64 KB or more.
MOST_MEMBERS = 10_000
MOST_CODINGS = 3  # one is usual; a list of twenty is an attack
ZSTD_WINDOW = 23  # a window of 8 MB at most, by RFC 9659; without it 128 MB are taken for a header of some bytes
NO_CODINGS = frozenset({"", "identity", "none", "utf-8", "utf8", "binary", "8bit"})  # servers do say so


class BadEncoding(Exception):  # noqa: N818 - it names what was found
    """A body is not in the Content-Encoding that it is said to be in, or in one that is not read."""


class TooLarge(Exception):  # noqa: N818 - the same
    """More came than is wanted. The message says of what, and where the limit is."""


class TooShort(Exception):  # noqa: N818 - the same
    """A body ended early."""


class Unpacker(Protocol):
    """One coding."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The pieces that `data` unpacks to, each of about PIECE bytes at most."""

    @property
    def finished(self) -> bool:
        """Whether the stream has come to its own end."""


class _Zlib:
    """gzip and deflate; gzip may have several members one after the other."""

    def __init__(self, wbits: int) -> None:
        self._wbits = wbits
        self._inner = zlib.decompressobj(wbits)
        self._members = 1
        self._sniffed = wbits != zlib.MAX_WBITS

    def feed(self, data: bytes) -> Iterator[bytes]:
        if not self._sniffed and data:
            # The standard means zlib by "deflate"; some servers send the bare stream. The first byte tells them apart.
            self._sniffed = True
            if data[0] & 0x0F != 8:
                self._inner = zlib.decompressobj(-zlib.MAX_WBITS)
        while data:
            if self._inner.eof:
                if not data.strip(b"\0"):  # padding, which some servers add
                    return
                self._members = _one_more(self._members)
                self._inner = zlib.decompressobj(self._wbits)
            yield self._inner.decompress(data, PIECE)
            data = self._inner.unconsumed_tail or self._inner.unused_data

    @property
    def finished(self) -> bool:
        return self._inner.eof


class _Brotli:
    def __init__(self) -> None:
        self._inner = brotli.Decompressor()

    def feed(self, data: bytes) -> Iterator[bytes]:
        piece = self._inner.process(data, output_buffer_limit=PIECE)
        yield piece
        # It may say that it takes more while it still holds output back; a full piece is the surer sign.
        while len(piece) >= PIECE or not self._inner.can_accept_more_data():
            piece = self._inner.process(b"", output_buffer_limit=PIECE)
            yield piece

    @property
    def finished(self) -> bool:
        return bool(self._inner.is_finished())


class _Zstd:
    def __init__(self) -> None:
        self._members = 0
        self._next()

    def _next(self) -> None:
        self._members = _one_more(self._members)
        self._inner = ZstdDecompressor(options={DecompressionParameter.window_log_max: ZSTD_WINDOW})

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data or not (self._inner.needs_input or self._inner.eof):
            if self._inner.eof:
                self._next()
            yield self._inner.decompress(data, max_length=PIECE)
            data = self._inner.unused_data if self._inner.eof else b""

    @property
    def finished(self) -> bool:
        return self._inner.eof


def _one_more(members: int) -> int:
    if members >= MOST_MEMBERS:
        raise BadEncoding(f"the body is packed in more than {MOST_MEMBERS:,} members")
    return members + 1


_UNPACKERS: dict[str, Callable[[], Unpacker]] = {
    "gzip": lambda: _Zlib(zlib.MAX_WBITS | 16),
    "x-gzip": lambda: _Zlib(zlib.MAX_WBITS | 16),
    "deflate": lambda: _Zlib(zlib.MAX_WBITS),
    "br": _Brotli,
    "zstd": _Zstd,
}
_BROKEN = (zlib.error, brotli.error, ZstdError)


class Body:
    """Collects a body: `add` what arrives, `finish` when there is no more. Holds at most `largest` bytes.

    With `cut`, the first `largest` bytes are the body, and once they are there it is `full`.
    """

    def __init__(self, encoding: str, largest: int, *, cut: bool = False) -> None:
        names = [name.strip().lower() for name in encoding.split(",")] if encoding else []
        names = [name for name in names if name not in NO_CODINGS]
        unknown = [name for name in names if name not in _UNPACKERS]
        if unknown or len(names) > MOST_CODINGS:
            raise BadEncoding(f"Content-Encoding is {encoding[:80]!r}; {ACCEPTED} are read")
        self._unpackers = [_UNPACKERS[name]() for name in reversed(names)]
        self._largest = largest
        self._cut = cut
        self._packed = 0
        self._whole = bytearray()
        self.full = False

    def add(self, data: bytes) -> None:
        """Take in what has arrived. Raises TooLarge or BadEncoding."""
        if not self._unpackers:
            self._keep(data)
            return
        self._packed += len(data)
        # What packs badly grows by some bytes for each 16 KB.
        if self._packed > self._largest + self._largest // 64 + 65_536 and not self._cut:
            raise TooLarge(f"the body has more than {self._largest:,} bytes")
        try:
            for start in range(0, len(data), SLICE):
                if self.full:
                    return
                self._unpack(data[start : start + SLICE], 0)
        except _BROKEN:
            raise BadEncoding(f"the body does not unpack; it broke within its first {self._packed:,} bytes") from None

    def finish(self) -> bytes:
        """The body, as far as wanted. Raises TooShort if a coding has not come to its end: the rest was lost."""
        if not self.full and self._packed and not all(each.finished for each in self._unpackers):
            raise TooShort(f"the packed body ends early, after {self._packed:,} bytes")
        return bytes(self._whole)

    def _unpack(self, data: bytes, level: int) -> None:
        if level == len(self._unpackers):
            self._keep(data)
            return
        for piece in self._unpackers[level].feed(data):
            if self.full:
                return
            if piece:
                self._unpack(piece, level + 1)

    def _keep(self, data: bytes) -> None:
        room = self._largest - len(self._whole)
        if len(data) > room:
            if not self._cut:
                raise TooLarge(f"the body has more than {self._largest:,} bytes")
            data = data[:room]
        self._whole += data
        self.full = self._cut and len(self._whole) == self._largest
