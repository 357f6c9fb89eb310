"""What a crawl looks like: on a terminal of any size, without one, and with hosts that would rather draw themselves."""

import json
import re
from collections.abc import Iterator
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from statuses import host, status
from test_pages_summary import SUMMARY

from sanderling.cli.pages.screen import Plain, Screen, Terminal, bar, fitting
from sanderling.cli.pages.summary import words
from sanderling.cli.screen import Silent
from sanderling.engine.host_report import HostStatus
from sanderling.pages.status import Status

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
HOSTILE = "\x1b[2J\x1b]0;owned\x07[bold red]\x9b31m\u202e\r\nevil"
TROUBLED = (
    host("failing.example", state="open", why="circuit open for another 4.0 s after failures", queued=1200),
    host("throttled.example", rejected=3, ceiling=4.0, why="cruising just below its ceiling"),
    host("slow.example", ceiling=4.0, latency=1.2, learned="latency: the host began to queue", why="cruising"),
)


def drawn(now: Status, *, columns: int = 80, lines: int = 24, names: dict[str, str] | None = None) -> str:
    """Everything that is written for one frame."""
    written = StringIO()
    console = Console(file=written, force_terminal=True, width=columns, height=lines, color_system="standard")
    with Terminal(console, names or {}) as screen:
        screen.show(now)
    return written.getvalue()


def frame(now: Status, *, columns: int = 80, lines: int = 24) -> list[str]:
    """One frame, as a person sees it."""
    console = Console(file=StringIO(), force_terminal=True, width=columns, height=lines)
    with Terminal(console, {}) as screen:
        screen.show(now)
    seen = Console(file=StringIO(), width=columns, height=lines)
    with seen.capture() as written:
        seen.print(screen)
    return written.get().rstrip("\n").split("\n")


def many(number: int) -> Iterator[HostStatus]:
    return (host(f"host-{each}.example", requests=each) for each in range(number))


def test_the_headline_says_how_it_goes() -> None:
    text = ESCAPES.sub("", drawn(status(*TROUBLED)))

    assert "1:40    60 pages  0.0/s  4 failed  28 waiting  2 in flight  1.2 MB" in text
    assert "70 % of 100 known URLs" in text


def test_a_failing_a_throttled_and_a_slow_host_are_seen_at_a_glance() -> None:
    text = drawn(status(*TROUBLED, *many(40)))

    assert "\x1b[1;31mfailing" in text
    assert "\x1b[33mthrottled" in text
    assert "\x1b[35mslow" in text
    assert "circuit open for another 4.0 s after failures" in text


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (100, 30), (200, 60), (60, 12)])
def test_it_fits(columns: int, lines: int) -> None:
    seen = frame(status(*TROUBLED, *many(100)), columns=columns, lines=lines)

    assert max(map(len, seen)) <= columns
    assert len(seen) in (lines - 1, lines - 2), "all but the cursor's line, and one that a host of two would need"


def test_at_eighty_columns_nothing_is_cut_off() -> None:
    name = "a-name-of-28-letters.example"
    full = host(name, rejected=99_999, ceiling=9999.9, latency=9.999, queued=999_999)

    assert f"{name}      -  9999.9 9,999 ms  99,999 999,999  throttled" in frame(status(full))


def test_hosts_that_have_no_room_are_counted() -> None:
    seen = frame(status(*TROUBLED, *many(40), hosts_known=500, waiting=2000))

    hosts = sum(".example" in line for line in seen)
    waiting = 2000 - 2 - (1200 + 10 * (hosts - 1))
    assert seen[-1] == f"and {500 - hosts} more hosts, {waiting:,} URLs waiting for them"


def test_more_room_shows_more_hosts_and_the_words_beside_them() -> None:
    hosts = (*TROUBLED, *many(40))
    small, large = frame(status(*hosts)), frame(status(*hosts), columns=160, lines=60)

    assert sum(".example" in line for line in small) < sum(".example" in line for line in large) == 43
    assert "  circuit open for another 4.0 s after failures" in small
    assert any(re.search(r"failing +circuit open for another 4.0 s after failures", line) for line in large)


def test_the_rows_do_not_change_places_with_each_frame() -> None:
    written = StringIO()
    console = Console(file=written, force_terminal=True, width=80, height=24)
    with Terminal(console, {}) as screen:
        screen.show(status(host("a.example", requests=2), host("b.example", requests=1), wall=1000.0))
        screen.show(status(host("a.example", requests=2), host("b.example", requests=9), wall=1000.5))
        soon = written.getvalue()
        screen.show(status(host("a.example", requests=2), host("b.example", requests=9), wall=1003.0))

    def order(text: str) -> list[str]:
        return re.findall(r"([ab])\.example", text)[-2:]

    assert order(soon) == ["a", "b"]
    assert order(written.getvalue()) == ["b", "a"]


def test_a_note_stays_under_the_picture() -> None:
    written = StringIO()
    with Terminal(Console(file=written, force_terminal=True, width=80, height=24), {}) as screen:
        screen.show(status(host()))
        screen.note(f"finishing {HOSTILE}")
        screen.show(status(host()))

    assert "finishing" in written.getvalue().rpartition("known URLs")[2]
    assert not harmful(written.getvalue())


def harmful(text: str) -> list[str]:
    """What is left that could act on a terminal, beside what we wrote ourselves."""
    return [each for each in ESCAPES.sub("", text) if not each.isprintable() and each not in "\r\n"]


def test_what_hosts_say_cannot_act_on_the_terminal() -> None:
    bad = host(state="open", trouble=HOSTILE, why=HOSTILE, cap=1.0, cap_why=HOSTILE)

    for columns in (80, 160):
        text = drawn(status(bad), columns=columns)
        assert "owned" in text, "it is shown"
        assert harmful(text) == []
        assert "\x1b[2J" not in text
        assert "[bold red]" in text, "markup is text"


@given(st.text(max_size=60))
def test_no_text_whatever_can(trouble: str) -> None:
    assert harmful(drawn(status(host(state="open", trouble=trouble, why=trouble)))) == []


def test_the_names_that_people_know_are_shown() -> None:
    assert "library (127.0.0.1:4711)" in drawn(
        status(host("127.0.0.1:4711")), names={"127.0.0.1:4711": "library (127.0.0.1:4711)"}
    )


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 200))
def test_the_bar_is_as_long_as_there_is_room(fetched: int, failed: int, waiting: int, width: int) -> None:
    now = status(
        counts={"fetched": fetched, "failed": failed, "unchanged": 0},
        known=fetched + failed + waiting,
        waiting=waiting,
        inflight=0,
    )

    text = bar(now, width).plain
    assert text.count("━") == max(10, width - len(text.lstrip("━")))
    assert ("100 %" in text) == (waiting == 0 and fetched + failed > 0)


def test_without_a_terminal_there_is_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Plain({"slow.example": "the slow one"})
    for second in range(12):
        screen.show(status(*TROUBLED, host("fine.example"), started=1000.0, wall=1000.0 + second))

    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split(",")[0] for line in err.splitlines()] == ["0:05", "0:10"]
    assert err.splitlines()[0].endswith("failing.example failing, throttled.example throttled, the slow one slow")


def test_plain_lines_are_ascii_and_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Plain({})
    screen.note(HOSTILE)
    screen.end([f"    {HOSTILE}", "é"], {})

    out, err = capsys.readouterr()
    assert (out + err).isascii()
    assert harmful(out + err) == []
    assert "owned" in out


def test_silence_but_for_the_summary(capsys: pytest.CaptureFixture[str]) -> None:
    screen: Screen = Silent()
    with screen:
        screen.show(status(host()))
        screen.note("finishing")
    screen.end(words(SUMMARY), SUMMARY.as_json())

    out, err = capsys.readouterr()
    assert json.loads(out)["out"] == SUMMARY.out
    assert err == "finishing\n"


def test_the_summary_stands_in_lines_that_fit_and_commands_that_are_whole() -> None:
    written = StringIO()
    console = Console(file=written, force_terminal=True, width=60, height=24)
    command = "    sanderling pages failed /a/very/long/path/that/does/not/fit/into/sixty/columns --retry"
    Terminal(console, {}).end(["words " * 30, "", command], {})

    *text, last = ESCAPES.sub("", written.getvalue()).splitlines()
    assert max(map(len, text)) <= 60
    assert last == command


def test_pipes_get_plain_lines_and_programs_get_json() -> None:
    assert isinstance(fitting(json=False), Plain)
    assert isinstance(fitting(json=True), Silent)
