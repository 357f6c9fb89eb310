"""Every coding comes out as it went in, whatever the pieces; nothing unpacks to more than was allowed."""

import gzip
import sys
import zlib
from collections.abc import Callable

import brotli  # type: ignore[import-untyped] # it ships no types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.fetch.classify import BadEncoding, TooLarge
from sanderling.fetch.decode import PIECE, Body

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstd.compress,
    "identity": bytes,
    "": bytes,
}
MANY = 10**9


def unpack(encoding: str | None, *pieces: bytes, most_raw: int = MANY, most_decoded: int = MANY) -> bytes:
    body = Body(encoding, most_raw=most_raw, most_decoded=most_decoded)
    for piece in pieces:
        body.add(piece)
    return body.finish()


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("encoding", sorted(PACK))
def test_a_large_body_comes_out_whole(encoding: str) -> None:
    data = bytes(range(256)) * 5000 + bytes(300_000)

    assert unpack(encoding, *cut(PACK[encoding](data), 1000)) == data


@given(st.binary(max_size=5000), st.sampled_from(sorted(PACK)), st.integers(1, 2000))
def test_what_was_packed_comes_out_whatever_the_pieces(data: bytes, encoding: str, size: int) -> None:
    assert unpack(encoding, *cut(PACK[encoding](data), size)) == data


@given(st.binary(max_size=2000), st.lists(st.sampled_from(["gzip", "br", "zstd", "deflate"]), max_size=3))
def test_codings_are_undone_from_the_last_to_the_first(data: bytes, encodings: list[str]) -> None:
    packed = data
    for encoding in encodings:
        packed = PACK[encoding](packed)

    assert unpack(", ".join(encodings), packed) == data


def test_a_body_of_several_gzip_streams_is_one_body() -> None:
    assert unpack("gzip", gzip.compress(b"one ") + gzip.compress(b"two"), b"\0\0") == b"one two"


def test_deflate_without_its_wrapper_is_understood() -> None:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)

    assert unpack("deflate", packer.compress(b"bare") + packer.flush()) == b"bare"


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
def test_a_bomb_is_stopped_at_the_cap(encoding: str) -> None:
    bomb = PACK[encoding](bytes(50 * 2**20))

    with pytest.raises(TooLarge, match="1,048,576 bytes once unpacked"):
        unpack(encoding, bomb, most_decoded=2**20)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
def test_a_bomb_is_unpacked_piece_by_piece(encoding: str) -> None:
    body = Body(encoding, most_raw=MANY, most_decoded=MANY)
    (decoder,) = body._decoders

    pieces = [len(piece) for piece in decoder.feed(PACK[encoding](bytes(2**20)))]

    assert max(pieces) <= 2 * PIECE
    assert sum(pieces) == 2**20


def test_what_is_on_the_wire_has_a_cap_of_its_own() -> None:
    with pytest.raises(TooLarge, match="more than 10 bytes on the wire"):
        unpack(None, b"123456", b"789012", most_raw=10)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
def test_a_body_that_ends_early_is_not_taken_for_whole(encoding: str) -> None:
    packed = PACK[encoding](bytes(range(256)) * 50)

    with pytest.raises(EOFError, match="ends early"):
        unpack(encoding, packed[: len(packed) // 2])


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd"])
def test_what_is_not_packed_at_all_is_an_error_with_its_place(encoding: str) -> None:
    with pytest.raises(BadEncoding, match="does not unpack at byte 27"):
        unpack(encoding, b"<html>this is no coding</ht")


@pytest.mark.parametrize("encoding", ["compress", "aws-chunked, rot13", "gzip, gzip, gzip, gzip", "g" * 10_000])
def test_codings_we_do_not_know_are_named_and_bounded(encoding: str) -> None:
    with pytest.raises(BadEncoding, match="we can read gzip, deflate, br, zstd") as caught:
        unpack(encoding, b"\x1f\x9d\x90packed by something\0")

    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("encoding", ["utf-8", "None", "identity", "rot13", "x-gzip, utf-8", "rot13, gzip"])
def test_a_body_that_can_be_read_is_taken_as_it_is_whatever_its_coding_is_called(encoding: str) -> None:
    body = PACK["gzip"](b"<p>pl\xe9in") if "gzip" in encoding else b"<p>pl\xe9in"

    assert unpack(encoding, body) == b"<p>pl\xe9in"


def test_what_is_said_to_have_no_coding_may_be_anything() -> None:
    assert unpack("none", b"\x89PNG\r\n\0") == b"\x89PNG\r\n\0"


def test_an_empty_body_needs_no_coding() -> None:
    assert unpack("gzip") == b""
