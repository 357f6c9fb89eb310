"""What people want of a running system is heard, and a file that makes no sense changes nothing."""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sanderling.stores.control_file import (
    FILE,
    MOST_HOSTS,
    Control,
    LiveControl,
    Wish,
    change_control,
    clear_ending,
    read_control,
    write_control,
)
from sanderling.stores.durable import FolderError
from sanderling.testing.clock import FakeClock


def test_without_a_file_nothing_is_wanted(tmp_path: Path) -> None:
    assert read_control(tmp_path) == Control()


controls = st.builds(
    Control,
    paused=st.booleans(),
    hosts=st.frozensets(st.text(max_size=20).map(lambda host: host.encode(errors="replace").decode()), max_size=5),
    ending=st.sampled_from(("", "stop", "drain")),
)


@settings(max_examples=25)
@given(controls)
def test_what_is_written_is_read_and_whoever_begins_takes_the_ending_out(
    tmp_path_factory: pytest.TempPathFactory, wanted: Control
) -> None:
    folder = tmp_path_factory.mktemp("control")
    write_control(folder, wanted)

    assert read_control(folder) == wanted
    assert [clear_ending(folder), clear_ending(folder)] == [wanted.ending, ""]
    assert read_control(folder) == Control(paused=wanted.paused, hosts=wanted.hosts)


def test_a_file_of_a_release_without_endings_is_read_and_one_without_an_ending_is_as_that_release_wrote_it(
    tmp_path: Path,
) -> None:
    (tmp_path / FILE).write_text('{"paused":true,"hosts":["a.example"]}\n')
    before = read_control(tmp_path)
    write_control(tmp_path, Control(ending="drain", paused=before.paused, hosts=before.hosts))
    clear_ending(tmp_path)

    assert before == Control(paused=True, hosts=frozenset({"a.example"}))
    assert (tmp_path / FILE).read_text() == '{"paused":true,"hosts":["a.example"]}\n'


WISHES: dict[Wish, Control] = {
    "pause": Control(paused=True, hosts=frozenset({"a"}), ending="drain"),
    "resume": Control(hosts=frozenset({"a"}), ending="drain"),
    "leave": Control(hosts=frozenset({"a", "b"}), ending="drain"),
    "let-go": Control(hosts=frozenset({"a"}), ending="drain"),
    "stop": Control(hosts=frozenset({"a"}), ending="stop"),
    "drain": Control(hosts=frozenset({"a"}), ending="drain"),
}


@pytest.mark.parametrize("wish", WISHES)
def test_a_wish_changes_what_it_says_and_nothing_else(tmp_path: Path, wish: Wish) -> None:
    write_control(tmp_path, Control(hosts=frozenset({"a"}), ending="drain"))

    assert change_control(tmp_path, lambda control: control.after(wish, "b")) == WISHES[wish]
    assert read_control(tmp_path) == WISHES[wish]


def test_nobody_overwrites_what_another_wants_at_the_same_time(tmp_path: Path) -> None:
    def leave(number: int) -> Control:
        return change_control(tmp_path, lambda control: control.after("leave", f"h{number}"))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(leave, range(64)))

    assert len(read_control(tmp_path).hosts) == 64


def test_more_hosts_than_can_be_left_alone_are_refused_and_the_file_stays(tmp_path: Path) -> None:
    write_control(tmp_path, Control(hosts=frozenset(map(str, range(MOST_HOSTS)))))

    with pytest.raises(ValueError, match=r"100,001 hosts, expected at most 100,000"):
        change_control(tmp_path, lambda control: control.after("leave", "one more"))

    assert len(read_control(tmp_path).hosts) == MOST_HOSTS


@pytest.mark.parametrize("text", ['{"ending": "sleep"}', '{"ending": "stop", "until": 7}'])
def test_a_word_of_a_newer_release_is_an_error_that_says_so(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)

    with pytest.raises(ValueError, match=r'ending \("stop" or "drain"\)\. A newer release may have written it'):
        read_control(tmp_path)
    with pytest.raises(ValueError, match=FILE):
        clear_ending(tmp_path)

    assert (tmp_path / FILE).read_text() == text


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
