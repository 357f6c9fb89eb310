import io
import struct
import zlib

import pytest
from archives import THREE, Kept, read, repos, written
from hypothesis import given, settings
from hypothesis import strategies as st

from sanderling.formats.rca import Footer, Header, RcaError
from sanderling.formats.rca_reader import Counts, RcaReader

WHOLE = written(THREE).getvalue()
OPEN = written(THREE, finalise=False).getvalue()


@given(repos)
def test_what_goes_in_comes_out(given: list[Kept]) -> None:
    assert read(written(given)) == given
    assert read(written(given, finalise=False)) == given


@given(repos)
def test_every_repo_is_found_by_its_did(given: list[Kept]) -> None:
    reader = RcaReader(written(given))
    last = {repo.did: repo for repo in given}

    assert reader.header.repos == len(given)
    for did, repo in last.items():
        block = reader.find(did)
        assert block is not None
        assert (block.did, block.rev, block.crawled_at) == (did, repo.rev, repo.crawled_at)
    for other in ("did:plc:nobody", "", "\U0010ffff"):
        assert (reader.find(other) is None) == (other not in last)


def test_of_a_repo_that_is_there_twice_the_last_is_found() -> None:
    older, newer = THREE[0], THREE[0]._replace(rev="newer")

    block = RcaReader(written([THREE[1], newer._replace(rev="oldest"), older, newer])).find(older.did)

    assert block is not None
    assert block.rev == "newer"


def test_counts_come_from_the_tables_of_contents() -> None:
    expected = {"a.b": Counts(2, 3), "a.b.c": Counts(1, 1)}

    assert RcaReader(io.BytesIO(WHOLE)).counts() == expected
    assert RcaReader(io.BytesIO(OPEN)).counts() == expected


def test_it_says_what_it_reads() -> None:
    reader = RcaReader(io.BytesIO(WHOLE))

    assert reader.finalised
    assert reader.header == Header(1_700_000_000_000_000, 3, len(OPEN))
    assert repr(reader) == f"<RcaReader 3 repos, {len(WHOLE)} bytes>"
    assert repr(RcaReader(io.BytesIO(OPEN))) == f"<RcaReader not finalised, {len(OPEN)} bytes>"


def test_without_an_index_nothing_is_found() -> None:
    reader = RcaReader(io.BytesIO(OPEN))

    with pytest.raises(RcaError, match="once the file is finalised"):
        reader.find("did:plc:aaa")


# The time at which a file was begun is the only thing that nothing sums up.
NOT_COVERED = range(12, 20)


@pytest.mark.parametrize("bit", range(8))
def test_a_flipped_bit_anywhere_is_noticed(bit: int) -> None:
    for at in range(len(WHOLE)):
        flipped = bytearray(WHOLE)
        flipped[at] ^= 1 << bit

        try:
            found = read(io.BytesIO(flipped))
        except RcaError as error:
            assert at not in NOT_COVERED
            assert 0 <= error.offset <= len(WHOLE)  # noqa: PT017 - either is fine
        else:
            assert at in NOT_COVERED, f"byte {at}"
            assert found == THREE


def test_in_a_file_not_finalised_only_these_bytes_are_not_covered() -> None:
    """The times, and of each block what comes before its CRC: did, pds, rev, crawled at."""
    flips_unseen = set()
    for at in range(len(OPEN)):
        flipped = bytearray(OPEN)
        flipped[at] ^= 1
        try:
            reader = RcaReader(io.BytesIO(flipped))
            blocks = list(reader)
        except RcaError:
            continue
        if len(blocks) == 3 and reader.whole_until == len(OPEN):
            flips_unseen.add(at)

    expected = set(NOT_COVERED)
    for block in RcaReader(io.BytesIO(OPEN)):
        at = block.offset + 4
        for text in (block.did, block.pds, block.rev):
            size = len(text.encode())
            expected |= set(range(at + 2, at + 2 + size))
            at += 2 + size
        expected |= set(range(at, at + 8))
    assert flips_unseen <= expected
    # An é broken in two is noticed, as it is no UTF-8 any more.
    assert len(expected - flips_unseen) <= 2


def test_a_file_cut_anywhere_is_read_to_its_last_whole_block() -> None:
    ends = [64]
    for repo in THREE:
        ends.append(ends[-1] + len(repo.block()))

    for cut in range(64, len(OPEN) + 1):
        whole = [end for end in ends if end <= cut]
        reader = RcaReader(io.BytesIO(OPEN[:cut]))

        assert len(list(reader)) == len(whole) - 1, cut
        assert reader.whole_until == whole[-1]
        assert reader.size == cut


def test_a_finalised_file_that_was_cut_is_refused() -> None:
    for cut in range(len(WHOLE)):
        with pytest.raises(RcaError):
            RcaReader(io.BytesIO(WHOLE[:cut]))


@settings(max_examples=150)
@given(st.data())
def test_whatever_is_changed_it_is_read_or_refused(data: st.DataObject) -> None:
    changed = bytearray(data.draw(st.sampled_from([WHOLE, OPEN])))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(changed) - 1))
        changed[at : at + data.draw(st.integers(1, 8))] = data.draw(st.binary(max_size=8))

    try:
        read(io.BytesIO(changed))
    except RcaError as error:
        assert error.offset >= 0  # noqa: PT017 - either is fine


def sealed(index: bytes, *, repos: int = 3, blocks: bytes = OPEN[64:]) -> io.BytesIO:
    """A finalised file with this index, its CRC right: as whoever writes hostile files would."""
    at = 64 + len(blocks)
    footer = Footer(at, len(index), repos, zlib.crc32(index)).encode()
    return io.BytesIO(Header(1, repos, at).encode() + blocks + index + footer)


def entry(did: bytes, offset: int, size: int, crc: int = 0) -> bytes:
    return struct.pack("<H", len(did)) + did + struct.pack("<qII", offset, size, crc)


ENTRIES = [
    entry(block.did.encode(), block.offset, len(block.data), zlib.crc32(block.data))
    for block in RcaReader(io.BytesIO(OPEN))
]
B, A, WEB = ENTRIES
SIZE_A = len(THREE[1].block())


def test_the_index_made_by_hand_is_good() -> None:
    assert read(sealed(struct.pack("<I", 3) + A + B + WEB)) == THREE


@pytest.mark.parametrize(
    ("index", "fault"),
    [
        (struct.pack("<I", 2) + A + B + WEB, "an index of 2 entries, expected 3"),
        (struct.pack("<I", 3) + A + B, "expected an entry"),
        (struct.pack("<I", 3) + A + B + WEB + b"\0", "an index of"),
        (struct.pack("<I", 3) + A + B + WEB[:-1], "beyond the index"),
        (struct.pack("<I", 3) + A + B + b"\xff\xff" + WEB[2:], "beyond the index"),
        (struct.pack("<I", 3) + B + A + WEB, "out of order"),
        (struct.pack("<I", 3) + A + A + WEB, "out of order"),
        (struct.pack("<I", 3) + entry(b"a", -1, SIZE_A) + B + WEB, "outside"),
        (struct.pack("<I", 3) + entry(b"a", 0, SIZE_A) + B + WEB, "outside"),
        (struct.pack("<I", 3) + entry(b"", 2**62, SIZE_A) + B + WEB, "outside"),
        (struct.pack("<I", 3) + entry(b"", 64, 2**32 - 1) + B + WEB, "outside"),
        (struct.pack("<I", 3) + entry(b"", 64, SIZE_A - 1) + B + WEB, "over"),
        (struct.pack("<I", 2**32 - 1) + A + B + WEB, "an index of 4294967295 entries"),
    ],
)
def test_an_index_that_lies_is_refused_at_once(index: bytes, fault: str) -> None:
    with pytest.raises(RcaError, match=fault):
        RcaReader(sealed(index))


@pytest.mark.parametrize(
    "wrong",
    [
        entry(b"did:plc:aaa", 65, SIZE_A),  # not where a block begins
        entry(b"did:plc:aaa", 64, SIZE_A),  # where another begins
        A[:-1] + bytes([A[-1] ^ 1]),  # of another CRC
        entry(b"did:plc:ab", *struct.unpack("<qII", A[-16:])),  # of another repo
    ],
)
def test_an_index_that_points_elsewhere_is_noticed_on_the_way(wrong: bytes) -> None:
    reader = RcaReader(sealed(struct.pack("<I", 3) + wrong + B + WEB))

    with pytest.raises(RcaError):
        list(reader)
    with pytest.raises(RcaError):
        reader.find(wrong[2:-16].decode())


@pytest.mark.parametrize("size", [0, 3, 4, 23, 2**31, 2**32 - 1])
def test_a_block_whose_size_lies_is_torn_or_refused(size: int) -> None:
    blocks = struct.pack("<I", size) + OPEN[68:]

    reader = RcaReader(io.BytesIO(OPEN[:64] + blocks))
    assert list(reader) == []
    assert reader.whole_until == 64

    with pytest.raises(RcaError, match="byte 64: a block of"):
        list(RcaReader(sealed(struct.pack("<I", 3) + A + B + WEB, blocks=blocks)))


def test_the_file_may_be_used_between_two_blocks() -> None:
    file = io.BytesIO(WHOLE)
    dids = []

    for block in RcaReader(file):
        dids.append(block.did)
        file.seek(0)

    assert dids == [repo.did for repo in THREE]
