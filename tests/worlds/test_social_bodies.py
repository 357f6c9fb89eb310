"""The objects of a simulated crawler: shapes, packing, and what is wrong with some."""

import json
import sys

import pytest

from sanderling.worlds.social_bodies import BOMB, PREFIX, Packing, Shape, document, pack, spoil_object
from sanderling.worlds.social_hostile import Spoil, fate_of
from sanderling.worlds.social_truth import BatchFate

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor, decompress, get_frame_info
else:
    from backports.zstd import ZstdDecompressor, decompress, get_frame_info

ITEMS = [{"meta": {"id": str(number)}} for number in range(50)]
DATA = document(ITEMS, Shape.LIST)


def test_items_become_a_list_or_a_counted_one_or_stand_alone() -> None:
    assert json.loads(document(ITEMS, Shape.LIST)) == ITEMS
    assert json.loads(document(ITEMS, Shape.COUNTED)) == {"items": ITEMS, "count": 50}
    assert json.loads(document(ITEMS[:1], Shape.COUNTED, alone=True)) == ITEMS[0]
    assert json.loads(document(ITEMS, Shape.LIST, count=3)) == {"items": ITEMS, "count": 3}


@pytest.mark.parametrize(("packing", "size"), [(Packing.ZSTD, len(DATA)), (Packing.ZSTD_STREAM, None)])
def test_packed_objects_have_their_size_in_the_header_or_not(packing: Packing, size: int | None) -> None:
    body, metadata = pack(DATA, packing, 0)

    assert decompress(body) == DATA
    assert get_frame_info(body).decompressed_size == size
    assert metadata[PREFIX + "original-size"] == str(len(DATA))
    assert metadata[PREFIX + "compressed-size"] == str(len(body))


def test_packed_objects_say_so_in_three_ways() -> None:
    said = [pack(DATA, Packing.ZSTD, number).metadata for number in range(3)]

    packed, algorithm = PREFIX + "compressed", PREFIX + "compression-algorithm"
    assert [(each.get(packed), each.get(algorithm)) for each in said] == [
        ("true", "zstd"),
        ("True", None),
        (None, "zstd"),
    ]
    assert said[0][PREFIX + "compression-level"] == "2"


@pytest.mark.parametrize("packing", Packing)
def test_a_frame_that_is_cut_does_not_come_to_its_end(packing: Packing) -> None:
    body, metadata = spoil_object(DATA, packing, 0, Spoil.CUT_FRAME)

    unpacker = ZstdDecompressor()
    unpacker.decompress(body)
    assert not unpacker.eof
    assert metadata[PREFIX + "compressed"] == "true"


def test_a_bomb_is_small_and_becomes_large() -> None:
    body, _ = spoil_object(DATA, Packing.PLAIN, 0, Spoil.BOMB)

    unpacker = ZstdDecompressor()
    size, piece = 0, body
    while not unpacker.eof:
        size += len(unpacker.decompress(piece, max_length=2**20))
        piece = b""
    assert len(body) < 20_000
    assert size == BOMB * 2**20 + 2


@pytest.mark.parametrize("packing", Packing)
@pytest.mark.parametrize("number", [1, 2])
def test_wrong_metadata_says_the_contrary(number: int, packing: Packing) -> None:
    body, metadata = spoil_object(DATA, packing, number, Spoil.WRONG_METADATA)

    says_packed = PREFIX + "compressed" in metadata or PREFIX + "compression-algorithm" in metadata
    assert says_packed == (body == DATA) == (number % 2 == 1)


def test_two_frames_are_one_document() -> None:
    body, _ = spoil_object(DATA, Packing.PLAIN, 0, Spoil.TWO_FRAMES)

    unpacker = ZstdDecompressor()
    first = unpacker.decompress(body)
    assert 0 < len(first) < len(DATA)
    assert first + decompress(unpacker.unused_data) == DATA


@pytest.mark.parametrize("spoil", [Spoil.CUT, Spoil.NOT_JSON, Spoil.EMPTY, Spoil.GZIPPED, Spoil.MARKED])
def test_what_is_no_json_by_the_letter_is_none(spoil: Spoil) -> None:
    body, metadata = spoil_object(DATA, Packing.ZSTD, 0, spoil)

    assert metadata == {}
    with pytest.raises((ValueError, UnicodeDecodeError)):
        json.loads(body.decode())


def test_every_spoil_has_a_fate() -> None:
    fates = {spoil: fate_of(spoil) for spoil in Spoil}

    assert fate_of(None) is BatchFate.READ
    assert set(fates.values()) == set(BatchFate)
    assert [spoil for spoil, fate in fates.items() if fate is BatchFate.MISSING] == [Spoil.GONE]
