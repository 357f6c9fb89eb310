"""`sanderling top`: on a real terminal, where there is none, and that the terminal is as it was afterwards."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import called
from command_line import start as started
from known_reports import host, pages
from terminals import Terminal
from terminals import environment as usual

from sanderling.cli.command_error import CommandError
from sanderling.cli.top.top import TopLines, parse_time, watch
from sanderling.clock import SystemClock
from sanderling.stores.status_file import write_status

CRASH = """
import sys
from sanderling.cli import main
from sanderling.cli.top.view import View
def crash(*_):
    raise RuntimeError("it crashed")
View.press = crash
sys.argv = ["sanderling", "top", *sys.argv[1:]]
main()
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "crawl").mkdir()
    soon = time.time() + 600  # so that it does not fall silent, however slow the machine is
    write_status(tmp_path / "crawl", pages(host("a.example"), host("b.example"), process={"wall": soon}))
    os.utime(tmp_path / "crawl" / "status.json", (soon, soon))
    return tmp_path


class Window(Terminal):
    """A terminal of 100 columns and 30 lines, and the command in it."""

    def __init__(self, command: list[str], **environment: str) -> None:
        super().__init__(columns=100, lines=30)
        self.before = termios.tcgetattr(self.ours)
        self.process = subprocess.Popen(  # noqa: S603
            command, stdin=self.theirs, stdout=self.theirs, stderr=self.theirs, env=usual(**environment)
        )

    def press(self, keys: str) -> None:
        os.write(self.ours, keys.encode())

    def end(self) -> int:
        """Its exit code."""
        return self.process.wait(timeout=300)

    @property
    def as_before(self) -> bool:
        """Whether the terminal is as it was."""
        return termios.tcgetattr(self.ours) == self.before


@contextmanager
def window(*command: str, **environment: str) -> Iterator[Window]:
    opened = Window([sys.executable, *command], **environment)
    try:
        yield opened
    finally:
        if opened.process.poll() is None:
            opened.process.kill()
            opened.process.wait()
        os.close(opened.theirs)
        os.close(opened.ours)


def test_keys_choose_what_is_shown_and_q_quits_and_gives_the_terminal_back(home: Path) -> None:
    with window("-m", "sanderling", "top", "--home", str(home), "--every", "200ms") as shown:
        shown.read_until("2 hosts, by requests")
        taken = not shown.as_before
        shown.press("l")
        shown.read_until("by latency")
        shown.press("\x1b[A?")  # an arrow, which is no key of ours, and one that is
        shown.read_until("look at one system alone")
        shown.press("1")
        shown.read_until("doing")
        shown.press("q")
        code = shown.end()

        assert (code, taken, shown.as_before) == (0, True, True)
        assert "\x1b[?1049h" in shown.text  # on a screen of its own
        assert "crawl (pages)" in shown.text


def test_without_colours_there_are_none_and_a_signal_ends_it_with_130(home: Path) -> None:
    with window("-m", "sanderling", "top", "--home", str(home), NO_COLOR="1") as shown:
        picture = shown.read_until("? help")
        shown.process.send_signal(signal.SIGTERM)
        code = shown.end()

        assert (code, shown.as_before) == (130, True)
    assert "crawl (pages)" in picture
    assert not re.search(r"\x1b\[(?:\d;)?[39]\d", picture)


def test_the_terminal_is_given_back_after_a_crash_too(home: Path) -> None:
    with window("-c", CRASH, "--home", str(home)) as shown:
        shown.read_until("? help")
        shown.press("r")
        shown.read_until("it crashed")
        code = shown.end()

        assert (code, shown.as_before) == (1, True)
        assert shown.text.index("\x1b[?1049l") < shown.text.index("it crashed")  # where it can be read


def test_where_there_is_no_terminal_it_prints_lines_until_ctrl_c(home: Path) -> None:
    async def main() -> tuple[str, str, int | None]:
        process = await started("top", "--home", str(home), "--every", "200ms")
        assert process.stdout is not None
        async with asyncio.timeout(300):
            first, second = (await process.stdout.readline(), await process.stdout.readline())
            process.send_signal(signal.SIGINT)
            await process.communicate()
        return first.decode(), second.decode(), process.returncode

    first, second, code = asyncio.run(main())

    assert code == 130
    assert "crawl (pages): 30 waiting; how much moves is not known yet; asking 2 hosts" in first
    assert second[8:] == first[8:]
    assert "\x1b" not in first


def test_lines_say_what_is_wrong_when_that_changes_and_that_nothing_runs_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []

    class Counting(TopLines):
        """Changes what there is to see, and ends after five looks."""

        def show(self, look: object) -> None:
            super().show(look)  # type: ignore[arg-type]
            said.append(capsys.readouterr().out)
            match len(said):
                case 1 | 2:
                    trouble = "TIMEOUT" if len(said) == 1 else ""
                    state = "open" if trouble else "closed"
                    crawl = pages(host(state=state, trouble=trouble), process={"wall": time.time(), "pid": len(said)})
                    write_status(tmp_path, crawl)
                case 3:
                    write_status(tmp_path, pages(process={"wall": time.time(), "running": False}))
                case 5:
                    os.kill(os.getpid(), signal.SIGINT)

    ended = asyncio.run(watch(tmp_path, Counting(), 0.01, SystemClock()))

    nothing, troubled, well, *after = said[:5]
    assert ended == ""
    assert "nothing runs in" in nothing
    assert "a.example: TIMEOUT" in troubled
    assert "all is well again" in well
    assert ["nothing runs in" in each for each in after] == [True, False]


@pytest.mark.parametrize(("text", "seconds"), [("1s", 1.0), ("500ms", 0.5), ("2", 2.0), ("1.5 s", 1.5), ("2m", 120.0)])
def test_times_are_written_as_people_do(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "1x", "-1s", "61m", "1e3", "\u0661s", "nan"])
def test_what_is_no_time_is_said(text: str) -> None:
    with pytest.raises(CommandError, match=r"--every: .*, expected a time from 200ms to 60m") as raised:
        parse_time(text)

    assert raised.value.code == 2


def test_a_home_that_is_not_there_is_said_to_be_none(tmp_path: Path) -> None:
    done = called("top", "--home", str(tmp_path / "x"))

    assert (done.code, done.out) == (2, "")
    assert f"there is no folder {tmp_path / 'x'}" in done.err


def test_the_help_lists_what_is_about_the_whole_home() -> None:
    said = called("--help").out

    assert all(f"│ {command} " in said for command in ("status", "top", "doctor"))


@pytest.mark.parametrize("command", ["status", "top", "doctor"])
def test_each_has_an_example(command: str) -> None:
    assert f"    sanderling {command} " in called(command, "--help").out
