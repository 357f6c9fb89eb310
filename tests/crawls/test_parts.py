"""Which part of a crawl has which hosts, and what its folder says."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling import Job
from sanderling.crawls.parts import (
    FEWEST,
    FILE,
    check_one,
    enough_parts,
    folders_of,
    make_parts,
    number_of_parts,
    part_of,
    share_out,
)
from sanderling.jobs.folder import JobFolder
from sanderling.pages.folder import CrawlFolder, CrawlPlan
from sanderling.stores.durable import FolderError


@given(st.text(min_size=1, max_size=30), st.sampled_from([8, 16, 64, 1024]))
def test_a_host_belongs_to_one_part_and_halves_stay_together(host: str, parts: int) -> None:
    """Twice as many parts cut each in two."""
    assert 0 <= part_of(host, parts) < parts
    assert part_of(host, parts) // 2 == part_of(host, parts // 2)


@given(st.integers(1, 1024), st.integers(1, 100))
def test_each_part_has_one_process_and_none_has_many_more(parts: int, processes: int) -> None:
    shares = share_out(parts, processes)
    assert sorted(part for share in shares for part in share) == list(range(parts))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert len(shares) == min(parts, processes)


@pytest.mark.parametrize(("processes", "parts"), [(2, FEWEST), (8, 8), (9, 16), (100, 128), (5000, 1024)])
def test_there_are_parts_for_all_processes(tmp_path: Path, processes: int, parts: int) -> None:
    assert number_of_parts(tmp_path) == 0
    assert folders_of(tmp_path) == [tmp_path]
    assert make_parts(tmp_path, enough_parts(processes)) == number_of_parts(tmp_path) == parts
    assert all(each.is_dir() for each in folders_of(tmp_path))
    assert len(folders_of(tmp_path)) == parts


@pytest.mark.parametrize(
    ("said", "found"),
    [("{", "damaged"), ('{"parts":0}', "0 parts, expected 1 to 1024"), ('{"parts":8,"format":2}', "of format 2")],
)
def test_what_makes_no_sense_is_told(tmp_path: Path, said: str, found: str) -> None:
    (tmp_path / FILE).write_text(said)
    with pytest.raises(FolderError, match=found):
        folders_of(tmp_path)


def test_who_would_work_in_the_folder_itself_is_told_of_its_parts(tmp_path: Path) -> None:
    check_one(tmp_path)
    make_parts(tmp_path, 8)

    with pytest.raises(FolderError, match="is in 8 parts, which several processes share"):
        CrawlFolder.open(tmp_path, CrawlPlan(("http://a.example/",), (), 1), resume=False, wall=0.0)
    with pytest.raises(FolderError, match="is in 8 parts"):
        JobFolder.open(tmp_path, Job("a", start="http://a.example/"), {}, (), 0.0)
