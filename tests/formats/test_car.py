import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.formats.car import read_car, write_car
from sanderling.formats.cid import DAG_CBOR, RAW, Cid
from sanderling.formats.parsed import Kind, Limits, RepoError

LIMITS = Limits()
ROOT = Cid.of(b"root")
blocks = st.lists(st.tuples(st.sampled_from([DAG_CBOR, RAW]), st.binary(max_size=300)), max_size=8)


@given(blocks, st.integers(1, 3))
def test_what_is_written_is_read_again(given: list[tuple[bytes, bytes]], roots: int) -> None:
    named = [(Cid.of(block, kind), block) for kind, block in given]

    car = write_car([ROOT] * roots, named)
    read = read_car(car, limits=LIMITS)

    assert read.roots == (ROOT,) * roots
    assert read.frames == len(named)
    assert {cid: car[start:end] for cid, (start, end) in read.spans.items()} == dict(named)


@given(blocks, st.data())
def test_a_cut_is_noticed_unless_it_falls_between_two_frames(
    given: list[tuple[bytes, bytes]], data: st.DataObject
) -> None:
    named = [(Cid.of(block, kind), block) for kind, block in given]
    whole = {len(write_car([ROOT], named[:count])) for count in range(len(named) + 1)}
    car = write_car([ROOT], named)
    cut = data.draw(st.integers(0, len(car)))

    try:
        read = read_car(car[:cut], limits=LIMITS)
    except RepoError as error:
        assert cut not in whole
        assert error.kind is (Kind.CAR_HEADER if cut < min(whole) else Kind.CAR_FRAME)  # noqa: PT017 - either is fine
        assert error.offset <= cut  # noqa: PT017 - the same
    else:
        assert cut in whole
        assert read.frames <= len(named)


@given(blocks.filter(len), st.data())
def test_a_flipped_bit_is_noticed(given: list[tuple[bytes, bytes]], data: st.DataObject) -> None:
    car = bytearray(write_car([ROOT], [(Cid.of(block, kind), block) for kind, block in given]))
    header = len(write_car([ROOT], []))
    at = data.draw(st.integers(header, len(car) - 1))
    car[at] ^= 1 << data.draw(st.integers(0, 7))

    # A raw block may become a DAG-CBOR one, which has the same hash: 0x55 and 0x71 are three bits apart.
    with pytest.raises(RepoError) as caught:
        read_car(bytes(car), limits=LIMITS)

    assert caught.value.kind in {Kind.CAR_FRAME, Kind.CAR_CID, Kind.HASH_MISMATCH}


def test_without_verifying_a_hash_is_believed() -> None:
    car = write_car([ROOT], [(ROOT, b"something else")])

    read = read_car(car, verify=False, limits=LIMITS)

    assert list(read.spans) == [ROOT]
    with pytest.raises(RepoError, match=f"hash_mismatch at byte {len(car) - 14}: a block that is not {ROOT.text}"):
        read_car(car, limits=LIMITS)


def test_of_two_blocks_with_one_name_the_last_counts() -> None:
    car = write_car([ROOT], [(ROOT, b"first"), (ROOT, b"last")])

    read = read_car(car, verify=False, limits=LIMITS)

    assert car[slice(*read.spans[ROOT])] == b"last"
    assert read.frames == 2


@pytest.mark.parametrize("size", [0, 1, 91, 92, 127, 128, 16_346, 16_347, 16_348, 70_000])
def test_frames_of_every_length_of_length(size: int) -> None:
    block = bytes(size)
    car = write_car([ROOT], [(Cid.of(block), block), (Cid.of(b"x"), b"x")])

    read = read_car(car, limits=LIMITS)

    assert [end - start for start, end in read.spans.values()] == [size, 1]


@pytest.mark.parametrize(
    ("limits", "fault", "offset"),
    [
        (Limits(car=199), "200 bytes, expected at most 199", 0),
        (Limits(block=9), "a block of 10 bytes, expected at most 9", 59),
        (Limits(blocks=2), "more than 2 blocks", 153),
    ],
)
def test_limits_are_kept(limits: Limits, fault: str, offset: int) -> None:
    named = [(Cid.of(block), block) for block in (b"a" * 10, b"b" * 10, b"c" * 10)]
    car = write_car([ROOT], named)
    assert read_car(car, limits=Limits(car=len(car), block=10, blocks=3)).frames == 3

    with pytest.raises(RepoError, match=fault) as caught:
        read_car(car, limits=limits)

    assert caught.value.kind is Kind.TOO_LARGE
    assert caught.value.offset == offset
