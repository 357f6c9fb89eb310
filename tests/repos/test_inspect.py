"""What a segment holds is told without unpacking it, and what is wrong with it with its place."""

from pathlib import Path

import pytest
from small_archives import CRAWLED_AT, LIKE, POST, PROFILE, THREE, Heard, Small, flip, offset_of, write

from sanderling.formats.rca import Block, RcaError, decode_block
from sanderling.repos.inspect import CollectionStats, inspect, newest, verify


def packed(name: str) -> int:
    """Compressed bytes of a collection over all repos."""
    blocks: list[Block] = [decode_block(repo.block(), 0) for repo in THREE]
    return sum(entry.size for block in blocks for entry in block.toc if entry.name == name)


@pytest.mark.parametrize("unpack", [False, True])
def test_a_segment_is_counted(tmp_path: Path, unpack: bool) -> None:  # noqa: FBT001 - a case
    path, heard = write(tmp_path / "segment_0001.rca"), Heard()

    found = inspect(path, heard, verify=unpack)

    assert heard == []
    assert (found.repos, found.records, found.size, found.torn) == (3, 7, path.stat().st_size, 0)
    assert list(found.collections.items()) == [
        (PROFILE, CollectionStats(1, 1, packed(PROFILE))),
        (LIKE, CollectionStats(2, 4, packed(LIKE))),
        (POST, CollectionStats(1, 2, packed(POST))),
    ]
    assert (found.header.created_at, found.header.repos) == (CRAWLED_AT, 3)
    assert found.footer is not None
    assert found.footer.repos == 3


def test_the_largest_repos_come_first(tmp_path: Path) -> None:
    repos = [Small(f"did:plc:{size}", {"a.b": {str(key): b"{}" for key in range(size)}}) for size in (30, 900, 200)]

    found = inspect(write(tmp_path / "segment_0001.rca", repos), Heard(), largest=2)

    assert [(repo.did, repo.records) for repo in found.largest] == [("did:plc:900", 900), ("did:plc:200", 200)]
    assert found.largest[0].bytes == len(repos[1].block())


def test_a_bad_record_shows_only_when_it_is_unpacked(tmp_path: Path) -> None:
    path, heard = write(tmp_path / "segment_0001.rca"), Heard()
    offset = offset_of(path, THREE[0])
    flip(path, offset + len(THREE[0].block()) - 3)

    quick = inspect(path, heard)
    assert (quick.repos, heard) == (3, [])

    whole = inspect(path, heard, verify=True)
    assert (whole.repos, heard.places) == (2, [("segment_0001.rca", offset)])


def test_one_that_is_not_finished_is_counted_to_its_last_whole_block(tmp_path: Path) -> None:
    path, heard = write(tmp_path / "segment_0001.rca.part", finalise=False), Heard()
    path.write_bytes(path.read_bytes()[:-1])

    found = inspect(path, heard)

    assert (found.repos, found.footer, found.torn) == (2, None, len(THREE[2].block()) - 1)
    assert heard == []


def test_what_is_no_archive_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.rca").write_bytes(b"x" * 100)

    with pytest.raises(RcaError):
        inspect(tmp_path / "x.rca", Heard())


def test_sound_segments_are_found_sound(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"segment_{number:04}.rca") for number in range(1, 10)]
    heard, seen = Heard(), [0]

    def watch(number: int) -> None:
        seen.append(number)

    done = verify(paths, heard, watch)

    size = sum(len(repo.block()) for repo in THREE)
    assert (done.segments, done.repos, done.bytes, done.problems, done.torn) == (9, 27, 9 * size, 0, {})
    assert (sum(seen), heard) == (9 * size, [])


def test_every_damaged_byte_of_every_block_is_found_with_its_place(tmp_path: Path) -> None:
    path = write(tmp_path / "segment_0001.rca")
    data = path.read_bytes()
    starts = {offset_of(path, repo): len(repo.block()) for repo in THREE}

    for start, size in starts.items():
        for at in range(start, start + size):
            flip(path, at)
            heard = Heard()
            done = verify([path], heard)
            assert heard.places == [("segment_0001.rca", start)], f"byte {at}"
            assert (done.repos, done.problems) == (2, 1)
            path.write_bytes(data)


def test_problems_of_several_segments_are_all_told(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"segment_{number:04}.rca") for number in range(1, 5)]
    flip(paths[1], offset_of(paths[1], THREE[0]) + 30)
    paths[2].write_bytes(b"short")
    heard = Heard()

    done = verify([*paths, tmp_path / "gone.rca"], heard)

    assert sorted(name for name, _ in heard.places) == ["gone.rca", "segment_0002.rca", "segment_0003.rca"]
    assert (done.segments, done.repos, done.problems) == (5, 8, 3)


def test_a_torn_end_is_told_and_no_problem(tmp_path: Path) -> None:
    path, heard = write(tmp_path / "segment_0001.rca.part", finalise=False), Heard()
    path.write_bytes(path.read_bytes() + b"\x00" * 7)

    done = verify([path], heard)

    assert (done.torn, done.repos, heard) == ({path: 7}, 3, [])


def test_the_newest_segment_that_has_a_repo_has_the_say(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / "segment_0001.rca", [Small("did:plc:a", {}, 1), Small("did:plc:b", {}, 1)]),
        write(tmp_path / "segment_0002.rca", [Small("did:plc:a", {}, 2)]),
        write(tmp_path / "segment_0003.rca.part", [Small("did:plc:c", {}, 3)], finalise=False),
    ]

    found = {did: newest(paths, f"did:plc:{did}", Heard()) for did in "abcd"}

    assert {did: kept and (kept[0].name, kept[1].crawled_at) for did, kept in found.items()} == {
        "a": ("segment_0002.rca", 2),
        "b": ("segment_0001.rca", 1),
        "c": ("segment_0003.rca.part", 3),
        "d": None,
    }


def test_where_the_newest_is_damaged_that_is_told_and_an_older_one_is_taken(tmp_path: Path) -> None:
    old, new = Small("did:plc:a", {"a.b": {"k": b"{}"}}, 1), Small("did:plc:a", {"a.b": {"k": b"{}"}}, 2)
    paths = [write(tmp_path / "segment_0001.rca", [old]), write(tmp_path / "segment_0002.rca", [new])]
    flip(paths[1], offset_of(paths[1], new) + 60)
    heard = Heard()

    found = newest(paths, "did:plc:a", heard)

    assert found is not None
    assert found[1].crawled_at == 1
    assert heard.places == [("segment_0002.rca", 64)]
