"""What people want of a running system is heard, and a file that makes no sense changes nothing."""

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.stores.control_file import FILE, Control, LiveControl, read_control, write_control
from sanderling.stores.durable import FolderError
from sanderling.testing.clock import FakeClock


def test_without_a_file_nothing_is_wanted(tmp_path: Path) -> None:
    assert read_control(tmp_path) == Control()


@given(st.booleans(), st.frozensets(st.text(max_size=20), max_size=5))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, paused: bool, hosts: frozenset[str]) -> None:  # noqa: FBT001
    folder = tmp_path_factory.mktemp("control")
    wanted = Control(paused=paused, hosts=frozenset(host.encode(errors="replace").decode() for host in hosts))
    write_control(folder, wanted)

    assert read_control(folder) == wanted


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"paused": 1}', '{"hosts": "a"}', '{"pause": true}', "\udcff", '{"hosts": ' + "[" * 100_000],
)
def test_a_file_that_makes_no_sense_says_where(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_bytes(text.encode(errors="surrogateescape"))

    with pytest.raises(ValueError, match=FILE):
        read_control(tmp_path)


def test_a_pipe_in_its_place_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE)

    with pytest.raises(ValueError, match=FILE):
        read_control(tmp_path)


def test_a_folder_that_is_not_there_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(FolderError):
        write_control(tmp_path / "none", Control())


def test_the_system_is_told_once_of_each_change_and_keeps_the_last_that_made_sense(tmp_path: Path) -> None:
    told: list[Control] = []
    live = LiveControl(tmp_path, told.append, FakeClock())
    live.look()
    write_control(tmp_path, Control(paused=True))
    live.look()
    live.look()
    (tmp_path / FILE).write_text("{")
    live.look()
    broken = live.trouble
    write_control(tmp_path, Control(hosts=frozenset({"a.example"})))
    live.look()

    assert told == [Control(paused=True), Control(hosts=frozenset({"a.example"}))]
    assert FILE in broken
    assert live.trouble == ""


def test_it_looks_until_it_is_cancelled(tmp_path: Path) -> None:
    async def main() -> list[Control]:
        told: list[Control] = []
        clock = FakeClock()
        task = asyncio.ensure_future(LiveControl(tmp_path, told.append, clock).run())
        await asyncio.sleep(0)
        write_control(tmp_path, Control(paused=True))
        for _ in range(3):
            clock.advance(1.0)
            await asyncio.sleep(0)
        task.cancel()
        return told

    assert asyncio.run(main()) == [Control(paused=True)]
