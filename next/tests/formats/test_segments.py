import os
from pathlib import Path
from typing import Any

import pytest
from formats.test_rca import Repo, block_of, read, some_repos

from sanderling.files import FolderError
from sanderling.formats.rca import RcaReader
from sanderling.formats.segments import SegmentEnd, Segments, remove_repos, segments_in

REPOS = some_repos(12)
NONE = SegmentEnd(0, 0, 0)


def opened(folder: Path, durable: SegmentEnd | None = NONE, size: int = 300) -> Segments:
    return Segments(folder, size=size, now=lambda: 1_700_000_000_000_000, durable=durable)


def append(segments: Segments, repos: list[Repo]) -> None:
    for repo in repos:
        segments.append(repo[0], block_of(repo))


def names(folder: Path) -> list[str]:
    return [path.name for path in segments_in(folder)]


def stored(folder: Path) -> list[Repo]:
    return [repo for path in segments_in(folder) for repo in read(path)]


def test_a_full_segment_is_finished_by_the_first_append_after_a_sync(tmp_path: Path) -> None:
    segments = opened(tmp_path)
    ends = []
    for place in range(0, 12, 3):
        append(segments, REPOS[place : place + 3])
        ends.append(segments.sync())

    assert [end.number for end in ends] == [1, 2, 3, 4]
    assert names(tmp_path) == [f"segment_{number:04}.rca" for number in (1, 2, 3)] + ["segment_0004.rca.part"]
    segments.close()
    assert stored(tmp_path) == REPOS
    assert segments.finished == 4
    assert segments.sync() == (4, 0, 0)
    for path in segments_in(tmp_path):
        with RcaReader(path) as reader:
            assert reader.verify() == 3


class _Killed(BaseException):
    """The process ends here."""


def test_killed_at_any_write_nothing_is_missing_and_nothing_is_double(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger is a variable that survives. Each run is killed one system call later than the one before."""
    calls = {name: getattr(os, name) for name in ("write", "pwrite", "fsync", "open", "rename", "unlink", "ftruncate")}
    left = 0

    def counted(name: str) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                if name == "write":  # half of it is there
                    calls[name](given[0], bytes(given[1])[: len(given[1]) // 2])
                raise _Killed
            return calls[name](*given, **named)

        return call

    for steps in range(200):
        folder = tmp_path / str(steps)
        folder.mkdir()
        left = steps
        ended = False
        ledger, noted = NONE, 0
        with monkeypatch.context() as patch:
            for name in calls:
                patch.setattr(os, name, counted(name))
            try:
                segments = opened(folder)
                for place in range(0, 12, 2):
                    append(segments, REPOS[place : place + 2])
                    end = segments.sync()
                    ledger, noted = end, place + 2
                segments.close()
                ended = True
            except _Killed:
                pass
        again = opened(folder, ledger)
        append(again, REPOS[noted:])
        again.close()
        assert stored(folder) == REPOS, steps
        if ended:
            break
    assert ended


def test_without_a_ledger_the_repos_of_a_part_are_named(tmp_path: Path) -> None:
    segments = opened(tmp_path, size=10**6)
    append(segments, REPOS[:4])
    segments.abandon()
    path = tmp_path / "segment_0001.rca.part"
    path.write_bytes(path.read_bytes()[:-5])

    again = opened(tmp_path, None)
    assert again.found == [repo[0] for repo in REPOS[:3]]
    append(again, REPOS[3:])
    again.close()
    assert stored(tmp_path) == REPOS


@pytest.mark.parametrize("at", [0, 15, 70, 90, 200, -1])
def test_a_part_with_a_flipped_bit_is_refused(tmp_path: Path, at: int) -> None:
    """Also where the format has no checksum: the ledger has one."""
    segments = opened(tmp_path, size=10**6)
    append(segments, REPOS[:3])
    end = segments.sync()
    segments.abandon()
    path = tmp_path / "segment_0001.rca.part"
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)

    with pytest.raises(FolderError, match=r"segment_0001\.rca\.part( is damaged|: byte)"):
        opened(tmp_path, end)
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("found", "error"),
    [
        (["segment_0001.rca.part", "segment_0002.rca.part"], "not the last segment"),
        (["segment_0001.rca", "segment_0001.rca.part"], "not the last segment"),
        (["segment_0001.rca.part", "segment_0002.rca"], "not the last segment"),
    ],
)
def test_a_part_that_is_not_the_last_is_refused(tmp_path: Path, found: list[str], error: str) -> None:
    for name in found:
        (tmp_path / name).write_bytes(bytes(100))
    with pytest.raises(FolderError, match=error):
        opened(tmp_path, None)


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    others = ["segment_1.rca", "segment_00001.rca", "segment_0000.rca", "segment_0001.rca.bak", "a.rca", "segment_.rca"]
    for name in others:
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "segment_10000.rca").write_bytes(b"x")
    segments = opened(tmp_path, None)
    append(segments, REPOS[:1])
    segments.close()

    assert names(tmp_path) == ["segment_10000.rca", "segment_10001.rca"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, *names(tmp_path)])
    with pytest.raises(FolderError, match=r"no \.rca file"):
        remove_repos(tmp_path / "segment_10000.rca", lambda _: True)


def test_repos_are_removed_from_a_segment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    segments = opened(tmp_path, size=10**6)
    append(segments, REPOS)
    segments.close()
    (path,) = segments_in(tmp_path)
    before = path.read_bytes()
    gone = {repo[0] for repo in REPOS[::3]}

    assert remove_repos(path, lambda block: block.did == "did:none") == 0
    assert path.read_bytes() == before

    def fails(*_: Any) -> None:
        raise OSError(5, "i/o")

    for name in ("write", "fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fails)
            with pytest.raises(FolderError):
                remove_repos(path, lambda block: block.did in gone)
        assert path.read_bytes() == before
        assert names(tmp_path) == [each.name for each in tmp_path.iterdir()]

    assert remove_repos(path, lambda block: block.did in gone) == 4
    assert read(path) == [repo for repo in REPOS if repo[0] not in gone]
    with RcaReader(path) as reader:
        assert reader.verify() == 8
    assert remove_repos(path, lambda _: True) == 8
    assert (read(path), path.stat().st_size) == ([], 100)

    path.write_bytes(before[:200] + b"?" + before[201:])
    with pytest.raises(FolderError, match=r"byte .* has CRC"):
        remove_repos(path, lambda _: True)
    part = path.rename(tmp_path / "segment_0002.rca.part")
    part.write_bytes(bytes(before[:20]) + bytes(12) + before[32:200])
    with pytest.raises(FolderError, match="is not finished"):
        remove_repos(part, lambda _: True)


def test_a_full_disk_leaves_a_part_to_go_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    segments = opened(tmp_path, size=10**6)
    append(segments, REPOS[:2])
    end = segments.sync()

    def full(handle: int, data: Any) -> int:
        raise OSError(28, "full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(FolderError, match="disk is full"):
            append(segments, REPOS[2:3])
        with pytest.raises(FolderError, match="disk is full"):
            segments.close()
    segments.abandon()
    again = opened(tmp_path, end)
    append(again, REPOS[2:])
    again.close()
    assert stored(tmp_path) == REPOS


def test_what_is_no_block_of_that_did_is_a_mistake_of_ours(tmp_path: Path) -> None:
    segments = opened(tmp_path)
    for did, block in (("did:other", block_of(REPOS[0])), (REPOS[0][0], block_of(REPOS[0])[:-1]), ("", b"")):
        with pytest.raises(ValueError, match="no block of"):
            segments.append(did, block)
    assert names(tmp_path) == []
