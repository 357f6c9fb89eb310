"""Durable files: whole or as before, whatever fails; one process a folder; plain errors with the right exit code."""

import errno
import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.files import (
    DRAFT,
    LOCK,
    AppendFile,
    Exit,
    FolderError,
    FolderLock,
    disk_errors,
    lock_holder,
    make_folder,
    read_small,
    remove_drafts,
    write_file,
)

CALLS = ["open", "write", "fsync", "replace", "ftruncate", "pwrite"]


class FailingDisk:
    """The system calls of `os`; the one of number `fails_at` fails, and a write writes half before."""

    def __init__(self, patch: pytest.MonkeyPatch, fails_at: int, code: int) -> None:
        self.made: list[str] = []
        self._fails_at = fails_at
        self._code = code
        for name in CALLS:
            patch.setattr(os, name, self._failing(name, getattr(os, name)))

    def _failing(self, name: str, call: Callable[..., object]) -> Callable[..., object]:
        def failing(*arguments: int | memoryview, **keywords: int) -> object:
            self.made.append(name)
            if len(self.made) - 1 == self._fails_at:
                if name == "write":
                    handle, data = arguments
                    assert isinstance(data, memoryview)
                    call(handle, data[: len(data) // 2])
                raise OSError(self._code, os.strerror(self._code))
            return call(*arguments, **keywords)

        return failing


def count_calls(act: Callable[[], object]) -> int:
    with pytest.MonkeyPatch.context() as patch:
        disk = FailingDisk(patch, -1, 0)
        act()
        return len(disk.made)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS])
def test_a_file_is_new_or_as_before_whichever_call_fails(tmp_path: Path, code: int) -> None:
    path = tmp_path / "limiter.json"
    write_file(path, b"before")
    calls = count_calls(lambda: write_file(path, [b"after", b"wards"]))

    for fails_at in range(calls):
        write_file(path, b"before")
        with pytest.MonkeyPatch.context() as patch:
            FailingDisk(patch, fails_at, code)
            with pytest.raises(FolderError) as raised:
                write_file(path, [b"after", b"wards"])
        assert path.read_bytes() in (b"before", b"afterwards")
        assert list(tmp_path.iterdir()) == [path]
        assert raised.value.code == (Exit.WRONG if code == errno.EROFS else Exit.LATER)


def test_content_and_name_are_synced_in_that_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FailingDisk(monkeypatch, -1, 0)

    write_file(tmp_path / "a", b"1")
    durable, disk.made = disk.made, []
    write_file(tmp_path / "a", b"1", durable=False)

    assert durable == ["open", "write", "fsync", "replace", "open", "fsync"]
    assert disk.made == ["open", "write", "replace"]


def test_only_abandoned_drafts_are_removed(tmp_path: Path) -> None:
    for name, age in {f".a.1{DRAFT}": 4000, f".b.2{DRAFT}": 10, "c": 4000}.items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1_000_000 - age,) * 2)

    remove_drafts(tmp_path, wall=1_000_000.0)

    assert {path.name for path in tmp_path.iterdir()} == {f".b.2{DRAFT}", "c"}


Appends = list[tuple[bytes, bool]]  # what, and whether the disk is full


@given(st.lists(st.tuples(st.binary(min_size=2, max_size=9), st.booleans()), max_size=9), st.binary(max_size=9))
def test_a_failed_append_leaves_no_byte(tmp_path_factory: pytest.TempPathFactory, plan: Appends, torn: bytes) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    file, stored = AppendFile(path), b""

    for data, fails in plan:
        with pytest.MonkeyPatch.context() as patch:
            if fails:
                FailingDisk(patch, 0, errno.ENOSPC)
                with pytest.raises(FolderError):
                    file.append(data)
            else:
                file.append(data)
                stored += data
    file.sync()
    file.close()

    assert path.read_bytes() == stored
    assert (file.length, file.crc) == (len(stored), zlib.crc32(stored))
    with path.open("ab") as other:
        other.write(torn)  # as a kill before the ledger's commit leaves it
    AppendFile(path, file.length, file.crc).close()
    assert path.read_bytes() == stored


def test_after_a_failed_sync_nothing_is_appended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = AppendFile(tmp_path / "rows.jsonl")
    file.append(b"1\n")
    with monkeypatch.context() as patch:
        FailingDisk(patch, 0, errno.EIO)
        with pytest.raises(FolderError):
            file.sync()

    for call in (file.sync, lambda: file.append(b"2\n")):
        with pytest.raises(FolderError) as raised:
            call()
        assert raised.value.code == Exit.LATER
    file.close()


def test_rows_that_the_ledger_counts_and_the_file_lacks_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(b"12")

    with pytest.raises(FolderError, match="counts 3"):
        AppendFile(tmp_path / "rows.jsonl", 3)


def hold(folder: Path) -> None:
    FolderLock(folder)


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that holds the lock of the folder."""
    code = "import sys, pathlib, sanderling.files as f; l = f.FolderLock(pathlib.Path(sys.argv[1])); print(flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", f"{code}; input()", tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


@pytest.mark.real
def test_a_lock_names_its_holder_and_ends_with_it(tmp_path: Path, holder: subprocess.Popen[bytes]) -> None:
    with pytest.raises(FolderError, match=f"process {holder.pid} ") as raised:
        FolderLock(tmp_path)
    assert raised.value.code == Exit.LATER
    assert f"process {holder.pid} " in (lock_holder(tmp_path) or "")

    holder.kill()
    holder.wait()

    assert lock_holder(tmp_path) is None
    with FolderLock(tmp_path):
        assert f"process {os.getpid()} " in (lock_holder(tmp_path) or "")
    assert (tmp_path / LOCK).exists()


def test_looking_does_not_keep_others_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A status is read in the very moment in which a crawl starts."""
    import fcntl

    FolderLock(tmp_path).release()
    other = os.open(tmp_path / LOCK, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_SH)
    flock, calls = fcntl.flock, []

    def looking(handle: int, kind: int) -> None:
        calls.append(kind)
        if len(calls) == 4:
            flock(other, fcntl.LOCK_UN)
        flock(handle, kind)

    monkeypatch.setattr(fcntl, "flock", looking)
    FolderLock(tmp_path).release()
    os.close(other)


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (lambda folder: read_small(folder / "missing"), Exit.WRONG),
        (read_small, Exit.WRONG),
        (lambda folder: read_small(folder / "pipe"), Exit.WRONG),
        (lambda folder: read_small(folder / "file", most=3), Exit.WRONG),
        (lambda folder: AppendFile(folder / "pipe"), Exit.WRONG),
        (lambda folder: AppendFile(folder / "link"), Exit.WRONG),
        (lambda folder: make_folder(folder / "file" / "below"), Exit.WRONG),
        (lambda folder: make_folder(folder / "file"), Exit.WRONG),
        (lambda folder: hold(folder / "missing"), Exit.WRONG),
        (lambda folder: write_file(folder / "missing" / "file", b""), Exit.WRONG),
    ],
)
def test_what_is_no_file_or_folder(tmp_path: Path, act: Callable[[Path], object], code: Exit) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"1234")
    (tmp_path / "link").symlink_to("file")

    with pytest.raises(FolderError) as raised:
        act(tmp_path)

    assert raised.value.code == code


def test_new_folders_are_durable_up_to_the_first_that_existed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr("sanderling.files.sync_folder", synced.append)

    make_folder(tmp_path / "a" / "b")

    assert set(synced) == {tmp_path, tmp_path / "a"}


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.EFBIG])
def test_what_may_pass_is_tried_again_later(code: int) -> None:
    with pytest.raises(FolderError) as raised, disk_errors(Path("x")):
        raise OSError(code, "")

    assert raised.value.code == Exit.LATER


def test_a_closed_stdout_is_no_trouble_of_the_disk() -> None:
    with pytest.raises(BrokenPipeError), disk_errors(Path("x")):
        raise BrokenPipeError
