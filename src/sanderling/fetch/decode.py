"""Undo Content-Encoding piece by piece, never making more than was allowed: a kilobyte can unpack to a gigabyte."""

import re
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

import brotli  # type: ignore[import-untyped] # it ships no types

from sanderling.fetch.classify import BadEncoding, TooLarge

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor, ZstdError
else:
    from backports.zstd import ZstdDecompressor, ZstdError

ACCEPTED = "gzip, deflate, br, zstd"
PIECE = 65536  # bytes unpacked at a time: what a bomb costs before it is noticed
NO_CODINGS = frozenset({"", "identity", "none", "utf-8", "utf8", "binary", "8bit"})  # though servers say so
UNREADABLE = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f]")  # what no text has, by WHATWG's sniffing
SNIFFED = 1445  # bytes, by the same
MOST_CODINGS = 3  # one is usual; a list of twenty is an attack


class Decoder(Protocol):
    """One coding."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The pieces that `data` unpacks to, each of about PIECE bytes at most."""

    def finished(self) -> bool:
        """Whether the stream has come to its own end."""


class _Zlib:
    """gzip and deflate; gzip may be several streams one after the other."""

    def __init__(self, wbits: int) -> None:
        self._wbits = wbits
        self._inner = zlib.decompressobj(wbits)

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._inner.eof:
                if not data.strip(b"\0"):  # padding, which some servers add
                    return
                self._inner = zlib.decompressobj(self._wbits)
            yield self._inner.decompress(data, PIECE)
            data = self._inner.unconsumed_tail or self._inner.unused_data

    def finished(self) -> bool:
        return self._inner.eof


class _Deflate(_Zlib):
    """The standard means zlib by "deflate"; some servers send the bare stream. The first byte tells them apart."""

    def __init__(self) -> None:
        super().__init__(zlib.MAX_WBITS)
        self._fresh = True

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._fresh and data:
            self._fresh = False
            if data[0] & 0x0F != 8:
                self._inner = zlib.decompressobj(-zlib.MAX_WBITS)
        yield from super().feed(data)


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

    def finished(self) -> bool:
        return bool(self._inner.is_finished())


class _Zstd:
    def __init__(self) -> None:
        self._inner = ZstdDecompressor()

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data or not (self._inner.needs_input or self._inner.eof):
            if self._inner.eof:
                self._inner = ZstdDecompressor()
            yield self._inner.decompress(data, max_length=PIECE)
            data = self._inner.unused_data if self._inner.eof else b""

    def finished(self) -> bool:
        return self._inner.eof


DECODERS: dict[str, Callable[[], Decoder]] = {
    "gzip": lambda: _Zlib(zlib.MAX_WBITS | 16),
    "x-gzip": lambda: _Zlib(zlib.MAX_WBITS | 16),
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}
BROKEN = (zlib.error, brotli.error, ZstdError)


class Receiver(Protocol):
    """What takes a body as it comes."""

    @property
    def full(self) -> bool:
        """Whether no more of it is wanted."""

    def add(self, data: bytes) -> None:
        """Take in what has arrived. Raises TooLarge or BadEncoding."""

    def steps(self, data: bytes) -> Iterator[int]:
        """The same in pieces; how many bytes of memory are taken up after each."""

    def finish(self) -> bytes:
        """All has come; the body, as far as it is in memory."""


class Body:
    """Collects a body: `add` what arrives, `finish` when there is no more. Holds at most the decoded cap.

    Who wants only the first `wanted` bytes stops when they are there: `full`.
    """

    def __init__(self, encoding: str | None, *, most_raw: int, most_decoded: int, wanted: int | None = None) -> None:
        names = [name.strip().lower() for name in encoding.split(",")] if encoding else []
        names = [name for name in names if name not in NO_CODINGS]
        if len(names) > MOST_CODINGS:
            raise BadEncoding(f"Content-Encoding is {(encoding or '')[:80]!r}; we can read {ACCEPTED}")
        self._decoders = [DECODERS[name]() for name in reversed(names) if name in DECODERS]
        # As browsers do, we take a body as it is whose coding nobody knows; but only what can be read then.
        self._unknown = "" if len(self._decoders) == len(names) else (encoding or "")[:80]
        self._most_raw, self._most_decoded = most_raw, most_decoded
        self._wanted = wanted
        self._raw = 0
        self._pieces: bytes | bytearray = b""  # as it came, while it is one

    @property
    def size(self) -> int:
        """Bytes that are there, unpacked."""
        return len(self._pieces)

    @property
    def full(self) -> bool:
        """Whether all that was wanted is there, and more would be of no use."""
        return self._wanted is not None and len(self._pieces) >= self._wanted

    def add(self, data: bytes) -> None:
        """Take in what has arrived. Raises TooLarge or BadEncoding."""
        for _ in self.steps(data):
            pass

    def steps(self, data: bytes) -> Iterator[int]:
        """Take in what has arrived, a piece after the other; how many bytes are there after each. Take all of them.

        Who has no room for what it unpacks to can wait between two of them. Raises TooLarge or BadEncoding.
        """
        self._raw += len(data)
        if self._raw > self._most_raw:
            raise TooLarge(f"more than {self._most_raw:,} bytes on the wire")
        if not self._decoders:  # as most, and there is nothing to wait for between two of its pieces
            if not self.full:
                yield self._keep(data)
            return
        try:
            yield from self._unpack(data, 0)
        except BROKEN as error:
            raise BadEncoding(f"body does not unpack at byte {self._raw:,}: {error}") from None

    def finish(self) -> bytes:
        """The body, as far as wanted. Raises EOFError if a coding has not come to its end: the rest was lost."""
        if self.full:
            return bytes(self._pieces[: self._wanted])
        if self._decoders and self._raw and not all(decoder.finished() for decoder in self._decoders):
            raise EOFError(f"packed body ends early, after {self._raw:,} bytes")
        if self._unknown and UNREADABLE.search(self._pieces[:SNIFFED]):
            raise BadEncoding(f"Content-Encoding is {self._unknown!r}; we can read {ACCEPTED}")
        return bytes(self._pieces)

    def _unpack(self, data: bytes, level: int) -> Iterator[int]:
        if self.full:
            return
        if level < len(self._decoders):
            for piece in self._decoders[level].feed(data):
                yield from self._unpack(piece, level + 1)
            return
        yield self._keep(data)

    def _keep(self, data: bytes) -> int:
        """Take in what is unpacked; how many bytes that makes."""
        if len(self._pieces) + len(data) > self._most_decoded:
            raise TooLarge(f"more than {self._most_decoded:,} bytes once unpacked")
        if not self._pieces:
            self._pieces = data
        elif isinstance(self._pieces, bytearray):
            self._pieces += data
        else:
            self._pieces = bytearray(self._pieces) + data
        return len(self._pieces)
