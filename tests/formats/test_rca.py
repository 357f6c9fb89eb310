import io
import struct
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from archives import THREE, Kept, collection, written

from sanderling.formats.parsed import Collection
from sanderling.formats.rca import MOST_U16, BlockError, Header, RcaError, decode_block, encode_block

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdCompressor
else:
    from backports.zstd import ZstdCompressor

ONE = THREE[0]


def test_the_layout_is_the_one_that_is_written_down() -> None:
    """Byte for byte, built here by hand."""
    frame = ONE.block()[-ONE.block()[::-1].index(b"\x28\xb5\x2f\xfd"[::-1]) - 4 :]
    toc = struct.pack("<H3sII", 3, b"a.b", 1, len(frame))
    texts = b"".join(
        struct.pack("<H", len(text)) + text for text in (b"did:plc:bbb", b"https://pds.example", b"3k" + b"a" * 11)
    )
    body = texts + struct.pack("<qHI", 1_700_000_000_000_001, 1, zlib.crc32(toc + frame)) + toc + frame
    block = struct.pack("<I", len(body) + 4) + body

    assert ONE.block() == block

    index = struct.pack("<IH11sqII", 1, 11, b"did:plc:bbb", 64, len(block), zlib.crc32(block))
    place = 64 + len(block)
    header = struct.pack("<8sHHqIq32x", b"REPOARCH", 1, 0, 1_700_000_000_000_000, 1, place)
    footer = struct.pack("<qIII4x8s", place, len(index), 1, zlib.crc32(index), b"REPOARCH")

    assert written([ONE]).getvalue() == header + block + index + footer


def test_an_empty_file_and_an_empty_repo_have_their_known_sizes() -> None:
    assert len(written([]).getvalue()) == 100
    assert len(encode_block("did:plc:empty", "https://pds.example.com", "", 0, [])) == 60


def test_collections_are_sorted_and_empty_ones_left_out() -> None:
    given = [collection("b", [("x", b"1")]), collection("c", []), collection("a", [("y", b"2")])]

    block = decode_block(encode_block("d", "p", "r", 0, given), 64)

    assert [entry[:2] for entry in block.toc] == [("a", 1), ("b", 1)]
    assert list(block.records("b")) == [("x", b"1")]
    assert list(block.records("c")) == []
    assert repr(block) == f"<Block d at 64, {len(block.data)} bytes, 2 collections>"


@pytest.mark.parametrize("level", [1, 3, 19])
def test_every_level_unpacks_to_the_same(level: int) -> None:
    block = decode_block(THREE[2].block(level), 0)

    assert list(block.records("a.b")) == [("y", b"{}"), ("z", b"[]")]


@pytest.mark.parametrize("level", [0, 20, -1, 22])
def test_a_level_is_from_1_to_19(level: int) -> None:
    with pytest.raises(BlockError, match=f"zstd level {level}, expected 1 to 19"):
        ONE.block(level)


def test_frames_carry_their_size_so_that_all_readers_can_unpack_them() -> None:
    frame = ONE.block()[ONE.block().index(b"\x28\xb5\x2f\xfd") :]

    assert frame[4] & 0xE0 == 0x20  # a single segment: the size is in the head
    assert frame[5] == len(collection("", ONE.records["a.b"]).data)


@pytest.mark.parametrize(
    ("repo", "fault"),
    [
        (Kept("d" * 65536, "", "", 0, {}), "did of 65536 bytes"),
        (Kept("d", "é" * 32768, "", 0, {}), "pds of 65536 bytes"),
        (Kept("d", "", "r" * 65536, 0, {}), "rev of 65536 bytes"),
        (Kept("d", "", "", 2**63, {}), "time 9223372036854775808"),
        (Kept("d", "", "", 0, {"c" * 65536: [("a", b"")]}), "collection of 65536 bytes"),
        (Kept("d", "", "", 0, {str(number): [("a", b"")] for number in range(65536)}), "65536 collections"),
    ],
)
def test_what_does_not_fit_its_field_is_refused(repo: Kept, fault: str) -> None:
    with pytest.raises(BlockError, match=fault):
        repo.block()


def test_what_just_fits_is_kept() -> None:
    repo = Kept("d" * MOST_U16, "p", "r", 2**63 - 1, {str(number): [("a", b"")] for number in range(65535)})

    block = decode_block(repo.block(), 0)

    assert (block.did, block.crawled_at, len(block.toc)) == ("d" * MOST_U16, 2**63 - 1, 65535)


def test_more_records_than_can_be_counted_are_refused() -> None:
    with pytest.raises(BlockError, match="records 4294967296"):
        encode_block("d", "", "", 0, [Collection("c", 2**32, b"")])


def test_a_collection_is_there_once() -> None:
    with pytest.raises(BlockError, match="collection 'c' twice"):
        encode_block("d", "", "", 0, [collection("c", [("a", b"")]), collection("c", [("b", b"")])])


def test_blocks_may_be_made_in_many_threads() -> None:
    repo = Kept("d", "p", "r", 0, {"c": [(str(number), b"{}" * number) for number in range(200)]})

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(repo.block, [1, 3, 9] * 20))

    assert len(set(made)) == 3
    assert all(decode_block(block, 0).did == "d" for block in made)


@pytest.mark.parametrize(
    ("data", "offset", "fault"),
    [
        (b"", 0, "expected a header of 64 bytes"),
        (bytes(63), 63, "expected a header of 64 bytes"),
        (bytes(64), 0, "magic"),
        (Header(1).encode().replace(b"REPOARCH", b"REPOARCX"), 0, "magic"),
        (Header(1).encode()[:8] + b"\x02" + Header(1).encode()[9:], 8, "version 2, expected 1"),
        (Header(1).encode()[:10] + b"\x01" + Header(1).encode()[11:], 10, "reserved"),
        (Header(1).encode()[:63] + b"\x01", 32, "reserved"),
        (Header(1, repos=1).encode(), 20, "expected both or neither"),
        (Header(1, index_offset=63).encode(), 20, "expected both or neither"),
        (Header(1, index_offset=-1).encode(), 20, "expected both or neither"),
    ],
)
def test_a_header_that_is_none(data: bytes, offset: int, fault: str) -> None:
    with pytest.raises(RcaError, match=fault) as caught:
        Header.decode(data)

    assert caught.value.offset == offset


def resealed(block: bytes, change: tuple[bytes, bytes]) -> bytes:
    """The block with a change made and its CRC set right, as whoever writes hostile files would."""
    changed = block.replace(*change, 1)
    assert changed != block
    toc = changed.index(b"\x03\x00a.b")
    sealed = changed[: toc - 4] + struct.pack("<I", zlib.crc32(changed[toc:])) + changed[toc:]
    return struct.pack("<I", len(sealed)) + sealed[4:]


_FRAME = ONE.block()[ONE.block().index(b"\x28\xb5\x2f\xfd") :]
_TOC = b"\x03\x00a.b\x01\0\0\0" + struct.pack("<I", len(_FRAME))


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ((_TOC, _TOC[:-4] + b"\xff\xff\xff\xff"), "collections of 4294967295 bytes"),
        ((_TOC, _TOC[:-4] + bytes(4)), "collections of 0 bytes"),
        ((_FRAME, _FRAME + b"x"), "collections of"),
        ((_FRAME, _FRAME[:-1]), "collections of"),
    ],
)
def test_a_table_of_contents_that_lies(change: tuple[bytes, bytes], fault: str) -> None:
    with pytest.raises(RcaError, match=fault) as caught:
        decode_block(resealed(ONE.block(), change), 640)

    assert caught.value.offset == 640


def packed(content: bytes, *, count: int = 1) -> bytes:
    """A block whose one collection unpacks to `content`, whatever that is."""
    return encode_block("d", "p", "r", 0, [Collection("c", count, content)])


@pytest.mark.parametrize(
    ("content", "count", "fault"),
    [
        (b"\x01\0x\x02\0\0\0{}", 2, "2 bytes at byte 9"),
        (b"\x01\0x\x02\0\0\0{}\0", 1, "1 bytes after record 1"),
        (b"\x01\0x\xff\xff\xff\xff{}", 1, "4294967295 bytes at byte 7 of 9"),
        (b"\xff\xffx\x02\0\0\0{}", 1, "65535 bytes at byte 2 of 9"),
        (b"\x01\0\xff\x02\0\0\0{}", 1, "not UTF-8"),
        (b"\x01\0x\x02", 1, "4 bytes at byte 3"),
    ],
)
def test_records_that_lie(content: bytes, count: int, fault: str) -> None:
    block = decode_block(packed(content, count=count), 640)

    with pytest.raises(RcaError, match=fault) as caught:
        list(block.records("c"))

    assert 640 < caught.value.offset < 640 + len(block.data)


def test_a_bomb_is_defused() -> None:
    block = packed(struct.pack("<H1sI", 1, b"x", 50_000_000) + bytes(50_000_000))
    assert len(block) < 10_000

    assert [len(json) for _, json in decode_block(block, 0).records("c")] == [50_000_000]
    with pytest.raises(RcaError, match="more than 1000000 bytes"):
        list(decode_block(block, 0, most=1_000_000).records("c"))


def streamed(content: bytes) -> bytes:
    """A frame as streaming encoders write them, which do not know the size when they begin."""
    compressor = ZstdCompressor(3)
    return compressor.compress(content) + compressor.flush()


def with_frame(frame: bytes) -> bytes:
    """A block of one record with this for its frame."""
    toc = struct.pack("<H1sII", 1, b"c", 1, len(frame))
    body = b"\1\0d\1\0p\1\0r" + struct.pack("<qHI", 0, 1, zlib.crc32(toc + frame)) + toc + frame
    return struct.pack("<I", len(body) + 4) + body


def test_frames_without_their_size_can_be_unpacked() -> None:
    assert list(decode_block(with_frame(streamed(b"\x01\0x\x02\0\0\0{}")), 0).records("c")) == [("x", b"{}")]


@pytest.mark.parametrize("frame", [b"", b"junk", streamed(b"abc")[:-1], streamed(b"abc") + b"x", streamed(b"a") * 2])
def test_a_frame_that_is_none(frame: bytes) -> None:
    with pytest.raises(RcaError, match="zstd frame"):
        list(decode_block(with_frame(frame), 0).records("c"))


def test_a_block_is_read_from_exactly_its_bytes() -> None:
    block = ONE.block()

    for wrong in (block[:-1], block + b"\0", block[:3], b"", io.BytesIO(block).read(30)):
        with pytest.raises(RcaError):
            decode_block(wrong, 0)
