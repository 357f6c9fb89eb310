"""Bodies are unpacked piece by piece, within bounds, in time that grows with what came."""

import gzip
import sys
import zlib
from collections.abc import Iterator

import brotli  # type: ignore[import-untyped] # it ships no types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.fetch.decode import MOST_MEMBERS, BadEncoding, Body, TooLarge, TooShort

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def bare(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACK = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstd.compress,
    "x-gzip": gzip.compress,
}


def unpack(encoding: str, data: bytes, largest: int = 1 << 20, *, step: int = 0, cut: bool = False) -> bytes:
    body = Body(encoding, largest, cut=cut)
    for start in range(0, len(data), step or max(1, len(data))):
        body.add(data[start : start + (step or len(data))])
    return body.finish()


@given(data=st.binary(max_size=300), encoding=st.sampled_from([*PACK]), step=st.integers(1, 50))
def test_what_was_packed_comes_out_however_it_is_cut_in_pieces(data: bytes, encoding: str, step: int) -> None:
    assert unpack(encoding, PACK[encoding](data), step=step) == data


def test_forms_that_servers_send_beside_the_standard() -> None:
    text = b"some text " * 50

    assert unpack("deflate", bare(text)) == text
    assert unpack("gzip", gzip.compress(text) * 3) == text * 3
    assert unpack("zstd", zstd.compress(text) * 3) == text * 3
    assert unpack("gzip", gzip.compress(text) + bytes(500)) == text
    assert unpack("gzip, BR", brotli.compress(gzip.compress(text))) == text
    assert unpack("identity, utf-8", text) == text
    assert unpack("gzip", b"") == b""


@pytest.mark.parametrize("encoding", PACK)
def test_a_cut_body_is_truncated_and_a_damaged_one_is_badly_encoded(encoding: str) -> None:
    packed = PACK[encoding](bytes(range(256)) * 40)

    with pytest.raises(TooShort):
        unpack(encoding, packed[:-9])
    with pytest.raises(BadEncoding):
        unpack(encoding, b"\x15" + b"\xff" * 200)


@pytest.mark.parametrize("encoding", PACK)
def test_a_bomb_is_noticed_before_it_is_large(encoding: str) -> None:
    packed = PACK[encoding](bytes(1 << 23))
    body = Body(encoding, 1 << 20)

    with pytest.raises(TooLarge):
        body.add(packed)
    assert unpack(encoding, packed, 1000, cut=True) == bytes(1000)


def test_layers_of_bombs_hold_no_more() -> None:
    packed = gzip.compress(gzip.compress(gzip.compress(bytes(1 << 23))))

    with pytest.raises(TooLarge):
        unpack("gzip, gzip, gzip", packed)


@pytest.mark.parametrize(
    "encoding", ["gzip, gzip, gzip, gzip", "compress", "gzip, aes128gcm", "gzip;q=1", "x" * 10_000]
)
def test_codings_that_nobody_reads(encoding: str) -> None:
    with pytest.raises(BadEncoding) as caught:
        Body(encoding, 1000)
    assert len(str(caught.value)) < 200


def members(encoding: str, number: int) -> int:
    """Bytes that were handed to unpackers for a body of so many empty members."""
    packed = PACK[encoding](b"") * number
    body = Body(encoding, 1 << 20)
    handed = 0
    unpacker = body._unpackers[0]
    feed = unpacker.feed

    class Counting:
        finished = True

        def feed(self, data: bytes) -> Iterator[bytes]:
            nonlocal handed
            handed += len(data)
            return feed(data)

    body._unpackers[0] = Counting()
    for start in range(0, len(packed), 65_536):
        body.add(packed[start : start + 65_536])
    return handed // len(packed)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_many_empty_members_end_it_and_cost_in_proportion(encoding: str) -> None:
    assert members(encoding, MOST_MEMBERS) == members(encoding, MOST_MEMBERS // 10)
    with pytest.raises(BadEncoding):
        unpack(encoding, PACK[encoding](b"") * 1_000_000, 64 << 20)


def test_a_window_of_128_megabytes_is_not_taken() -> None:
    packer = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 27})
    large = packer.compress(b"x" * 100) + packer.flush()
    packed = zstd.compress(b"x" * 100)

    assert unpack("zstd", packed) == b"x" * 100
    with pytest.raises(BadEncoding):
        unpack("zstd", large)


def test_what_packs_nothing_is_bounded_by_what_came() -> None:
    nothing = zlib.compressobj(wbits=31)
    endless = nothing.compress(b"") + nothing.flush(zlib.Z_FULL_FLUSH)
    empty = nothing.flush(zlib.Z_FULL_FLUSH) or b"\0\0\0\xff\xff"  # a block of no bytes
    body = Body("gzip", 1000)
    body.add(endless + empty * 10_000)  # which a kilobyte may take, packed badly in small pieces
    with pytest.raises(TooLarge):
        body.add(empty * 10_000)
