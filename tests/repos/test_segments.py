import hashlib
import os
import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import appending
import pytest
from appending import NOW, block, blocks, did, encode
from hypothesis import given, settings
from hypothesis import strategies as st
from killed import killed

from sanderling.formats.rca import Header, RcaError
from sanderling.formats.rca_reader import RcaReader
from sanderling.repos.segments import Segments, segments_in
from sanderling.stores.durable import FolderError
from sanderling.stores.ports import Finished

FIRST, PART = "segment_0001.rca", "segment_0001.rca.part"
SMALL = len(block(1))


def begin(folder: Path, size: int = 10**9) -> Segments:
    return Segments(folder, size=size, created_at=lambda: NOW)


@contextmanager
def begun(folder: Path, size: int = 10**9) -> Iterator[Segments]:
    """As a run that ends well."""
    segments = begin(folder, size)
    yield segments
    segments.close()


def stopped(segments: Segments) -> None:
    """Let go of everything as a run does that is killed."""
    assert segments._held is not None
    segments._held.close()


def dids(path: Path) -> list[str]:
    with path.open("rb") as file:
        reader = RcaReader(file)
        assert reader.finalised == (path.suffix == ".rca")
        return [each.did for each in reader]


def all_dids(folder: Path) -> list[str]:
    return [each for path in segments_in(folder) for each in dids(path)]


def names(folder: Path) -> list[str]:
    return [path.name for path in segments_in(folder)]


def fingerprints(folder: Path) -> dict[str, tuple[int, str]]:
    """Of finished segments: when they were last changed, and what they hold."""
    finished = [path for path in segments_in(folder) if path.suffix == ".rca"]
    return {path.name: (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest()) for path in finished}


def test_a_segment_gets_its_name_when_it_is_finished(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "segments"
    segments = begin(folder)
    assert (segments.number, segments.bytes, segments.found, segments.cut) == (0, 0, (), 0)

    assert segments.append(blocks(2, 1)) == 1
    assert (segments.number, segments.bytes) == (1, 64 + 2 * SMALL)
    assert dids(folder / PART) == [did(2), did(1)]

    segments.close()
    assert names(folder) == [FIRST]
    with (folder / FIRST).open("rb") as file:
        reader = RcaReader(file)
        assert reader.header.created_at == NOW
        found = reader.find(did(1))
        assert found is not None
        assert found.data == block(1)


def test_a_full_segment_is_finished_before_the_next_repo(tmp_path: Path) -> None:
    with begun(tmp_path, size=64 + 2 * SMALL) as segments:
        assert [segments.append(blocks(number)) for number in range(1, 6)] == [1, 1, 2, 2, 3]
        assert names(tmp_path) == [FIRST, "segment_0002.rca", "segment_0003.rca.part"]

    assert names(tmp_path) == [FIRST, "segment_0002.rca", "segment_0003.rca"]
    assert all_dids(tmp_path) == [did(number) for number in range(1, 6)]


def test_the_blocks_of_one_call_stay_together(tmp_path: Path) -> None:
    with begun(tmp_path, size=1) as segments:
        assert segments.append(blocks(1, 2, 3)) == 1
        assert segments.append(blocks(4)) == 2


def test_nothing_to_keep_leaves_nothing(tmp_path: Path) -> None:
    with begun(tmp_path):
        pass
    with begun(tmp_path) as segments:
        segments.append([])

    assert names(tmp_path) == []


def test_each_run_begins_a_new_segment(tmp_path: Path) -> None:
    for number in (1, 2):
        with begun(tmp_path) as segments:
            assert segments.append(blocks(number)) == number
            assert segments.found == ()


def test_segments_sort_by_number(tmp_path: Path) -> None:
    for number in (9999, 10, 100_000, 10_000):
        (tmp_path / f"segment_{number:04}.rca").touch()

    assert names(tmp_path) == ["segment_0010.rca", "segment_9999.rca", "segment_10000.rca", "segment_100000.rca"]
    with begun(tmp_path) as segments:
        assert segments.append(blocks(1)) == 100_001


def test_what_a_killed_run_left_is_found_and_gone_on_with(tmp_path: Path) -> None:
    segments = begin(tmp_path)
    segments.append(blocks(1, 2))
    stopped(segments)

    with begun(tmp_path) as segments:
        assert segments.found == (Finished(did(1), SMALL), Finished(did(2), SMALL))
        assert (segments.number, segments.bytes, segments.cut) == (1, 64 + 2 * SMALL, 0)
        assert segments.append(blocks(3)) == 1

    assert dids(tmp_path / FIRST) == [did(1), did(2), did(3)]


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A .part with three repos."""
    folder = tmp_path_factory.mktemp("left")
    segments = begin(folder)
    segments.append(blocks(1, 2, 3))
    stopped(segments)
    return (folder / PART).read_bytes()


@settings(max_examples=60)
@given(cut=st.floats(0, 1), tail=st.one_of(st.just(b""), st.binary(max_size=80), st.just(bytes(5000))))
def test_a_torn_end_of_any_length_is_cut(
    tmp_path_factory: pytest.TempPathFactory, left: bytes, cut: float, tail: bytes
) -> None:
    """The last append had not returned: nothing says that it was durable."""
    folder = tmp_path_factory.mktemp("torn")
    length = int(len(left) * cut)
    kept = max(0, length - 64) // SMALL
    rest = left[:length] + (tail if length > 64 else b"")
    (folder / PART).write_bytes(rest)

    with begun(folder) as segments:
        assert segments.found == tuple(Finished(did(number), SMALL) for number in range(1, kept + 1))
        assert segments.cut == (len(rest) - 64 - kept * SMALL if length >= 64 else 0)
        segments.append(blocks(9))

    assert dids(folder / FIRST) == [*(did(number) for number in range(1, kept + 1)), did(9)]


@pytest.mark.parametrize("header", ["old", "new"])
def test_finalising_that_was_cut_short_is_done_again(tmp_path: Path, left: bytes, header: str) -> None:
    with begun(tmp_path / "whole") as segments:
        segments.append(blocks(1, 2, 3))
    whole = (tmp_path / "whole" / FIRST).read_bytes()

    for cut in range(len(left), len(whole) + 1, 7):
        folder = tmp_path / f"{header}{cut}"
        folder.mkdir()
        (folder / PART).write_bytes((left if header == "old" else whole)[:64] + whole[64:cut])
        with begun(folder) as segments:
            assert len(segments.found) == 3
        assert (folder / FIRST).read_bytes() == whole


def test_a_finished_segment_that_only_lacks_its_name_gets_it(tmp_path: Path) -> None:
    with begun(tmp_path) as segments:
        segments.append(blocks(1))
    before = (tmp_path / FIRST).read_bytes()
    (tmp_path / FIRST).rename(tmp_path / PART)

    with begun(tmp_path) as segments:
        assert segments.found == (Finished(did(1), SMALL),)
        assert names(tmp_path) == [FIRST]
        assert segments.append(blocks(2)) == 2

    assert (tmp_path / FIRST).read_bytes() == before


def test_finished_segments_are_never_touched(tmp_path: Path) -> None:
    with begun(tmp_path, size=1) as segments:
        for number in range(1, 4):
            segments.append(blocks(number))
    before = fingerprints(tmp_path)
    assert len(before) == 3

    segments = begin(tmp_path, size=1)
    segments.append(blocks(4))
    stopped(segments)
    (tmp_path / "segment_0004.rca.part").write_bytes((tmp_path / "segment_0004.rca.part").read_bytes() + b"torn")
    with begun(tmp_path, size=1) as segments:
        segments.append(blocks(5))

    after = fingerprints(tmp_path)
    assert after.items() >= before.items()
    assert len(after) == 5


@pytest.mark.parametrize("at", [64 + 5, 64 + SMALL - 1, 64 + SMALL + 2])
def test_damage_is_not_taken_for_a_torn_end(tmp_path: Path, at: int) -> None:
    segments = begin(tmp_path)
    segments.append(blocks(1, 2, 3))
    stopped(segments)
    content = bytearray((tmp_path / PART).read_bytes())
    content[at] ^= 0xFF
    (tmp_path / PART).write_bytes(content)

    with pytest.raises(FolderError, match=rf"{PART} is damaged at byte \d+, though it was whole up to {len(content)}"):
        begin(tmp_path)

    assert (tmp_path / PART).read_bytes() == content


@pytest.mark.parametrize("synced", [b"", b"nonsense", b"1", b"7 999999", b"1 -5", b"\xff" * 42])
def test_without_knowledge_of_what_was_synced_the_rest_is_trusted(tmp_path: Path, synced: bytes) -> None:
    segments = begin(tmp_path)
    segments.append(blocks(1))
    stopped(segments)
    (tmp_path / "synced").write_bytes(synced)

    with begun(tmp_path) as segments:
        assert len(segments.found) == 1


@pytest.mark.parametrize("content", [b"x" * 65, b"PK\3\4" + bytes(200), Header(1).encode()[:32] + b"x" * 64])
def test_a_part_of_something_else_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / PART).write_bytes(content)

    with pytest.raises(FolderError, match=rf"{PART} is damaged, or no segment"):
        begin(tmp_path)

    assert (tmp_path / PART).read_bytes() == content


def test_foreign_files_are_left_alone(tmp_path: Path) -> None:
    foreign = [
        "notes.txt",
        "segment_1.rca",
        "segment_00001.rca",
        "segment_0000.rca",
        "segment_0001.rca.bak",
        "x.rca.part",
    ]
    for name in foreign:
        (tmp_path / name).write_text("mine")

    with begun(tmp_path) as segments:
        assert segments.append(blocks(1)) == 1

    assert {(tmp_path / name).read_text() for name in foreign} == {"mine"}
    assert names(tmp_path) == [FIRST]


def test_two_parts_or_two_of_one_number_are_refused(tmp_path: Path) -> None:
    (tmp_path / PART).write_bytes(b"")
    (tmp_path / "segment_0002.rca.part").write_bytes(b"")
    with pytest.raises(FolderError, match=r"holds 2 files .part, expected one at most"):
        begin(tmp_path)

    (tmp_path / "segment_0002.rca.part").rename(tmp_path / FIRST)
    with pytest.raises(FolderError, match=r"holds segment_0001.rca with and without .part"):
        begin(tmp_path)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with begun(tmp_path):
        with pytest.raises(FolderError, match=rf"another crawl is running in .* \(process {os.getpid()}\)"):
            begin(tmp_path)
        command = [sys.executable, appending.__file__, str(tmp_path), "1"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - ourselves
        assert f"another crawl is running in {tmp_path} (process {os.getpid()})" in done.stderr
    begin(tmp_path).close()


def test_a_refused_start_lets_others_in(tmp_path: Path) -> None:
    (tmp_path / PART).write_bytes(b"x" * 65)
    with pytest.raises(FolderError, match="is damaged"):
        begin(tmp_path)
    (tmp_path / PART).unlink()

    begin(tmp_path).close()


def test_what_is_closed_takes_nothing_more(tmp_path: Path) -> None:
    segments = begin(tmp_path)
    segments.close()
    segments.close()

    with pytest.raises(ValueError, match="were closed"):
        segments.append(blocks(1))


def test_a_segment_has_a_size(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="size is 0"):
        begin(tmp_path, size=0)


def test_one_bad_block_keeps_out_all_of_its_call(tmp_path: Path) -> None:
    with begun(tmp_path) as segments:
        segments.append(blocks(1))
        with pytest.raises(RcaError):
            segments.append([*blocks(2), (did(3), block(4))])
        assert segments.bytes == 64 + SMALL
        segments.append(blocks(5))

    assert dids(tmp_path / FIRST) == [did(1), did(5)]


def test_twelve_kills_lose_nothing_that_was_acknowledged_and_keep_nothing_twice(tmp_path: Path) -> None:
    """What is told to be durable is what the next run may rely on; it goes on behind what it finds."""
    chance, first, sure = random.Random(4), 1, 0
    for _ in range(12):
        sure = first - 1 + 3 * (after := chance.randrange(5))
        killed([appending.__file__, str(tmp_path), str(first)], after=after)

        before = fingerprints(tmp_path) if tmp_path.exists() else {}
        segments = begin(tmp_path)
        kept = all_dids(tmp_path)
        assert kept == [did(number) for number in range(1, len(kept) + 1)]
        assert len(kept) >= sure
        assert [each.did for each in segments.found] == kept[len(kept) - len(segments.found) :]
        stopped(segments)
        # One that was killed between its footer and its name is named now; the others are as they were.
        assert fingerprints(tmp_path).items() >= before.items()
        first = len(kept) + 1
    assert len(names(tmp_path)) > 5, "hardly anything was killed while it worked"


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """A file system of its own; skips the test where that is not allowed."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:  # noqa: S603
        pytest.skip("mounting is not allowed here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)  # noqa: S603, S607 - what was mounted above


def large(number: int) -> list[tuple[str, bytes]]:
    return [(did(number), encode(number, random.Random(number).randbytes(40_000)))]


def test_a_full_disk_is_said_and_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    with small_disk(folder, "300k"):
        segments = begin(folder)
        for number in range(1, 5):
            segments.append([*blocks(1000 + number), *large(number)])
        before = segments.bytes
        too_much = [*blocks(1005), *(each for number in range(5, 10) for each in large(number))]
        for _ in range(2):
            with pytest.raises(
                FolderError, match=r"the disk is full. Nothing is lost: .* Free some space and run again"
            ):
                segments.append(too_much)
            assert segments.bytes == (folder / PART).stat().st_size == before

        subprocess.run(["mount", "-o", "remount,size=8m", str(folder)], check=True)  # noqa: S603, S607 - mounted above
        segments.append([*blocks(1005), *large(5)])
        segments.close()

        assert dids(folder / FIRST) == [each for n in range(1, 6) for each in (did(1000 + n), did(n))]


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("room", [1, 4, 5, 40, 60])
def test_an_index_that_does_not_fit_is_written_later(tmp_path: Path, room: int) -> None:
    """Also where the index fits and the footer does not."""
    segments = begin(tmp_path, size=1)
    segments.append(blocks(1))
    with files_of_at_most(segments.bytes + room):
        with pytest.raises(FolderError, match="the disk is full"):
            segments.append(blocks(2))
        with pytest.raises(FolderError, match="the disk is full"):
            segments.close()
    assert names(tmp_path) == [PART]

    with begun(tmp_path, size=1) as again:
        assert again.found == (Finished(did(1), SMALL),)
        assert again.append(blocks(2)) == 2
    assert all_dids(tmp_path) == [did(1), did(2)]


def test_a_segment_that_cannot_be_begun_leaves_no_file(tmp_path: Path) -> None:
    segments = begin(tmp_path)
    with files_of_at_most(40), pytest.raises(FolderError, match="the disk is full"):
        segments.append(blocks(1))
    assert names(tmp_path) == []

    segments.append(blocks(1))
    segments.close()
    assert all_dids(tmp_path) == [did(1)]


def test_everything_is_synced_before_append_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data of the file, and the folder that has its name: as the system is asked for it."""
    calls: list[str] = []
    really = os.fsync

    def fsync(handle: int) -> None:
        calls.append(Path(f"/proc/self/fd/{handle}").readlink().name)
        really(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr("sanderling.repos.segments.sync_data", fsync)
    segments = begin(tmp_path, size=1)

    segments.append(blocks(1))
    assert calls == [PART, tmp_path.name, PART]

    calls.clear()
    segments.append(blocks(2))
    assert calls == [PART, tmp_path.name, "segment_0002.rca.part", tmp_path.name, "segment_0002.rca.part"]
    segments.close()
