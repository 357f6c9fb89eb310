import io
import random
from typing import BinaryIO, cast

import pytest
from archives import THREE, Kept, read, repos, written
from hypothesis import given
from hypothesis import strategies as st

from sanderling.formats.rca import Header, RcaError, encode_block
from sanderling.formats.rca_reader import RcaReader
from sanderling.formats.rca_writer import RcaWriter, repair
from sanderling.formats.repo import parse_repo
from sanderling.worlds.pds_repos import make_repo, mix

WHOLE = written(THREE).getvalue()
OPEN = written(THREE, finalise=False).getvalue()
ENDS = [64]
for _repo in THREE:
    ENDS.append(ENDS[-1] + len(_repo.block()))


def test_append_gives_the_offset() -> None:
    writer = RcaWriter(io.BytesIO(), created_at=0)

    offsets = [writer.append(repo.did, repo.block()) for repo in THREE]

    assert [*offsets, writer.size] == ENDS
    assert len(writer) == 3
    assert writer.finalise() == len(WHOLE)


def test_a_block_of_somebody_else_or_of_nobody_is_not_written() -> None:
    file = io.BytesIO()
    writer = RcaWriter(file, created_at=0)
    block = THREE[0].block()

    for did, wrong in {"did:plc:other": block, "did:plc:bbb": block[:-1], THREE[0].did + "\0": block}.items():
        with pytest.raises(RcaError):
            writer.append(did, wrong)

    assert len(file.getvalue()) == writer.size == 64
    assert len(writer) == 0


def test_a_torn_tail_is_cut_and_the_rest_can_be_finalised() -> None:
    for cut in range(64, len(OPEN)):
        kept = sum(1 for end in ENDS[1:] if end <= cut)
        file = io.BytesIO(OPEN[:cut])

        assert repair(file) == (kept, cut - ENDS[kept])
        assert repair(file) == (kept, 0)
        writer = RcaWriter(file, created_at=9)
        assert len(writer) == kept
        for repo in THREE[kept:]:
            writer.append(repo.did, repo.block())
        writer.finalise()

        assert file.getvalue() == WHOLE


@pytest.mark.parametrize("header", [OPEN[:64], WHOLE[:64]], ids=["before", "after"])
def test_a_file_whose_finalising_was_stopped_is_mended(header: bytes) -> None:
    """Whether or not the new header had reached the disk."""
    for cut in range(len(OPEN), len(WHOLE)):
        file = io.BytesIO(header + WHOLE[64:cut])

        assert repair(file) == (3, cut - len(OPEN))
        assert file.getvalue() == OPEN


@given(repos, st.binary(max_size=40))
def test_whatever_follows_the_last_block_is_cut(given: list[Kept], tail: bytes) -> None:
    whole = written(given, finalise=False).getvalue()
    file = io.BytesIO(whole + b"\0\0\0\0" + tail)

    assert repair(file) == (len(given), 4 + len(tail))
    assert file.getvalue() == whole


def test_a_sound_file_is_left_alone() -> None:
    file = io.BytesIO(WHOLE)

    assert repair(file) == (3, 0)
    assert file.getvalue() == WHOLE
    with pytest.raises(RcaError, match="a file finalised with 3 repos"):
        RcaWriter(file, created_at=0)
    assert file.getvalue() == WHOLE


def test_damage_inside_of_a_finalised_file_is_not_cut_away() -> None:
    damaged = bytearray(WHOLE)
    damaged[ENDS[1] - 1] ^= 1
    file = io.BytesIO(damaged)

    with pytest.raises(RcaError, match="byte 64: "):
        repair(file)

    assert file.getvalue() == damaged


@pytest.mark.parametrize("data", [b"x", b"REPOARCH", bytes(64), b"PK\3\4" + bytes(100), Header(1).encode()[:63]])
def test_what_is_no_rca_is_not_touched(data: bytes) -> None:
    for attempt in (repair, lambda file: RcaWriter(file, created_at=0)):
        file = io.BytesIO(data)
        with pytest.raises(RcaError):
            attempt(file)
        assert file.getvalue() == data


class _FullDisk(io.BytesIO):
    """Takes a few bytes at a time, and at some point no more."""

    room = 10**9

    def write(self, data: bytes | memoryview, /) -> int:  # type: ignore[override] # narrower, and enough here
        if not self.room:
            raise OSError(28, "No space left on device")
        taken = bytes(data)[: min(7, self.room)]
        self.room -= len(taken)
        return super().write(taken)


def test_a_file_may_take_a_block_in_pieces() -> None:
    file = _FullDisk()
    writer = RcaWriter(cast("BinaryIO", file), created_at=1_700_000_000_000_000)
    for repo in THREE:
        writer.append(repo.did, repo.block())
    writer.finalise()

    assert file.getvalue() == WHOLE


@pytest.mark.parametrize("room", [0, 3, 20, 60])
def test_a_full_disk_loses_no_more_than_the_block_it_refused(room: int) -> None:
    file = _FullDisk()
    writer = RcaWriter(cast("BinaryIO", file), created_at=1_700_000_000_000_000)
    writer.append(THREE[0].did, THREE[0].block())
    file.room = room

    with pytest.raises(OSError, match="No space"):
        writer.append(THREE[2].did, THREE[2].block())

    file.room = 10**9
    torn = io.BytesIO(file.getvalue())
    assert repair(torn) == (1, room)
    for repo in THREE[1:]:
        writer.append(repo.did, repo.block())
    writer.finalise()
    assert file.getvalue() == WHOLE


def test_nothing_of_a_block_that_was_refused_is_behind_the_footer() -> None:
    file = _FullDisk()
    writer = RcaWriter(cast("BinaryIO", file), created_at=1_700_000_000_000_000)
    writer.append(THREE[0].did, THREE[0].block())
    file.room = 120

    with pytest.raises(OSError, match="No space"):
        writer.append(THREE[2].did, THREE[2].block())
    file.room = 10**9
    writer.finalise()

    assert file.getvalue() == written(THREE[:1]).getvalue()


def test_real_repos_keep_every_byte() -> None:
    rng = random.Random(7)
    parsed = [parse_repo(make_repo(rng, f"did:plc:{number:024}", mix(number))) for number in range(30)]
    file = io.BytesIO()
    writer = RcaWriter(file, created_at=0)
    for repo in rng.sample(parsed, len(parsed)):
        writer.append(repo.did, encode_block(repo.did, "p", repo.rev, 0, repo.collections))
    writer.finalise()

    reader = RcaReader(file)
    for repo in parsed:
        block = reader.find(repo.did)
        assert block is not None
        assert [entry[:2] for entry in block.toc] == [(name, count) for name, count, _ in repo.collections]
        for name, count, data in repo.collections:
            records = list(block.records(name))
            assert len(records) == count
            assert sum(2 + len(rkey) + 4 + len(json) for rkey, json in records) == len(data)
            assert all(json in data for _, json in records)
    assert sum(counts.records for counts in reader.counts().values()) == sum(range(30))
    assert len(read(file)) == 30
