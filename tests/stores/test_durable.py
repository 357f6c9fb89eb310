"""Files that are replaced as a whole, by any number of writers at once."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sanderling.stores.durable import ABANDONED, draft_of, plainly, remove_drafts, write_new


def test_writers_of_one_file_never_fail_and_a_reader_sees_one_of_them_whole(tmp_path: Path) -> None:
    path, writers, times = tmp_path / "file", 4, 25

    def write(number: int) -> set[bytes]:
        seen = set()
        for _ in range(times):
            write_new(path, [f"{number}".encode()] * 10_000, sync=False)
            seen.add(path.read_bytes())
        return seen

    with ThreadPoolExecutor(writers) as threads:
        seen = set[bytes]().union(*threads.map(write, range(writers)))

    assert seen <= {f"{number}".encode() * 10_000 for number in range(writers)}
    assert [*tmp_path.iterdir()] == [path]


def test_a_write_that_fails_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_new(path, [b"before"])

    def torn() -> Iterator[bytes]:
        yield b"after"
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        write_new(path, torn())

    assert path.read_bytes() == b"before"
    assert [*tmp_path.iterdir()] == [path]


def test_drafts_of_killed_writers_are_removed_and_those_of_living_ones_are_not(tmp_path: Path) -> None:
    old, young, own = draft_of(tmp_path / "a"), draft_of(tmp_path / "a"), tmp_path / "mine.tmp"
    for each in (old, young, own):
        each.write_bytes(b"half")
        os.utime(each, (1e9, 1e9))
    os.utime(young, (1e9 + 2, 1e9 + 2))

    remove_drafts(tmp_path, 1e9 + ABANDONED + 1)

    assert {*tmp_path.iterdir()} == {young, own}


def test_a_reader_who_goes_away_is_no_fault_of_the_disk(tmp_path: Path) -> None:
    with pytest.raises(BrokenPipeError), plainly(tmp_path):
        raise BrokenPipeError
