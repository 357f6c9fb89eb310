"""Whether a disk has room for more: a folder with its limit, and a real file system with its reserve."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sanderling.stores import disk_room
from sanderling.stores.control_file import Control, LiveControl, read_control, write_control
from sanderling.stores.disk_room import DiskRoom
from sanderling.testing import LoopClock

KB = 1 << 10


def fill(path: Path, kilobytes: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * kilobytes * KB)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MB: its reserve is 5 % of that."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(  # noqa: S603
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)],  # noqa: S607
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("only root can mount a file system")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)  # noqa: S603, S607


def test_a_folder_pauses_at_its_limit_and_goes_on_a_twentieth_below_it(tmp_path: Path) -> None:
    room = DiskRoom(tmp_path, most=1000 * KB)
    seen = []
    # What is written, and whether there is room then: 960 kB is below the limit, but not by enough.
    for kilobytes in (0, 900, 1000, 960, 940, 960, 1004):
        fill(tmp_path / "below" / "segment", kilobytes)
        room.look()
        seen.append(bool(room.trouble))

    assert seen == [False, False, True, True, False, False, True]
    assert room.trouble == f"{tmp_path} has the 1.0 MB that --max-disk allows: make room there, or allow more"


def test_a_folder_without_a_limit_is_never_walked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_room, "_measure", None)
    room = DiskRoom(tmp_path)

    room.look()

    assert room.trouble == ""


def test_a_large_folder_is_walked_seldom_and_growth_is_seen_meanwhile(small_disk: Path) -> None:
    walks = []

    def measure(folder: Path) -> tuple[int, int]:
        walks.append(folder)
        return measured(folder)[0], 5 * disk_room.FILES_A_LOOK

    with pytest.MonkeyPatch.context() as patch:
        measured = disk_room._measure
        patch.setattr(disk_room, "_measure", measure)
        room = DiskRoom(small_disk, most=4000 * KB)
        room.look()
        fill(small_disk / "segment", 4500)
        room.look()
        paused, walked = bool(room.trouble), len(walks)
        for _ in range(20):
            room.look()

    assert (paused, walked) == (True, 1)
    assert len(walks) == 4  # one, and then one after every five looks of rest


def test_a_disk_pauses_before_it_is_full_and_goes_on_by_itself(small_disk: Path) -> None:
    room = DiskRoom(small_disk)
    seen = []
    # The reserve is 409 kB of 8,192: 7,700 is room enough, 7,900 is not; 7,760 is too little to go on with.
    for kilobytes in (7700, 7900, 7760, 7700):
        fill(small_disk / "segment", kilobytes)
        room.look()
        seen.append(room.trouble)

    full = f"the disk of {small_disk} has less than 419.4 kB free: make room there"
    assert seen == ["", full, full, ""]


def test_a_folder_that_is_gone_has_room(tmp_path: Path) -> None:
    room = DiskRoom(tmp_path / "gone", most=1)

    room.look()

    assert room.trouble == ""


def test_the_disk_pauses_a_system_and_the_file_of_people_is_as_it_was(tmp_path: Path) -> None:
    told: list[Control] = []
    room = DiskRoom(tmp_path, most=1)
    live = LiveControl(tmp_path, told.append, LoopClock(), room)
    write_control(tmp_path, Control(hosts=frozenset({"a.example"})))

    live.look()
    room.look()
    live.look()
    live.look()
    room.trouble = ""
    live.look()

    plain = Control(hosts=frozenset({"a.example"}))
    full = f"{tmp_path} has the 1 B that --max-disk allows: make room there, or allow more"
    assert told == [plain, Control(paused=True, hosts=plain.hosts, disk_trouble=full), plain]
    assert read_control(tmp_path) == plain


def test_what_the_process_alone_may_say_is_not_taken_from_the_file(tmp_path: Path) -> None:
    (tmp_path / "control.json").write_text('{"disk_trouble": "somebody wrote this"}')

    assert read_control(tmp_path) == Control()


def test_it_looks_every_second_until_it_is_cancelled(tmp_path: Path) -> None:
    class Once(LoopClock):
        async def sleep(self, seconds: float) -> None:
            assert seconds == disk_room.EVERY
            raise asyncio.CancelledError

    fill(tmp_path / "segment", 1)
    room = DiskRoom(tmp_path, most=1)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(room.run(Once()))

    assert room.trouble
