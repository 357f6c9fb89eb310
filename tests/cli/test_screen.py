"""What all screens share: a picture where one can be drawn and is wanted, and nothing of the kind anywhere else."""

import os
import pty
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from sanderling.cli.screen import Picture, ScreenOf, Window, Wordy, cut, drawable, fitted, labelled, shortened

SCREENS = ("report_screen",)
COLOURS = ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")


@contextmanager
def terminal(**environment: str) -> Iterator[None]:
    """A terminal as people have it, behind stdout."""
    ours, theirs = pty.openpty()
    with (
        pytest.MonkeyPatch.context() as patch,
        open(theirs, "w", encoding="utf-8") as file,  # noqa: PTH123 - of a handle
        redirect_stdout(file),
    ):
        for name in COLOURS:
            patch.delenv(name, raising=False)
        for name, value in {"TERM": "xterm-256color", **environment}.items():
            patch.setenv(name, value)
        yield
    os.close(ours)


def kind(screen: str, *, json: bool = False) -> str:
    return type(import_module(f"sanderling.cli.{screen}").fitting(json=json)).__name__


@pytest.mark.parametrize("screen", SCREENS)
def test_a_terminal_gets_a_picture_unless_json_is_wanted(screen: str) -> None:
    with terminal():
        kinds = kind(screen), kind(screen, json=True)

    assert kinds == ("Terminal", "Silent")


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
@pytest.mark.parametrize("screen", SCREENS)
def test_whoever_wants_no_colours_or_cannot_have_a_picture_gets_lines(screen: str, environment: dict[str, str]) -> None:
    with terminal(**environment):
        found = kind(screen)

    assert found == "Plain"


@pytest.mark.parametrize("screen", SCREENS)
def test_what_is_no_terminal_gets_lines_even_if_colours_are_forced(
    screen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")

    with redirect_stdout(StringIO()):
        assert kind(screen) == "Plain"


def test_what_may_be_drawn_without_colours_is() -> None:
    with terminal(NO_COLOR="1"):
        colourless, usual = drawable(colourless=True), drawable()

    assert usual is None
    assert colourless is not None
    assert colourless.no_color


class Numbers(Picture[int, str]):
    """As many lines as there is room for, at most."""

    def _lines(self, shown: int, window: Window) -> list[Text]:
        return [Text(f"line {number}") for number in range(min(shown, window.left(0)))]


def frame(screen: Numbers, columns: int, lines: int) -> list[str]:
    seen = Console(file=StringIO(), width=columns, height=lines)
    with seen.capture() as written:
        seen.print(screen)
    return written.get().splitlines()


def picture(*notes: str, columns: int = 40, lines: int = 12, shown: int | None = 99) -> list[str]:
    with Numbers(Console(file=StringIO(), force_terminal=True, width=columns, height=lines)) as screen:
        for note in notes:
            screen.note(note)
        if shown is not None:
            screen.show(shown)
    return frame(screen, columns, lines)


def test_nothing_is_drawn_before_there_is_something_to_show() -> None:
    assert picture("a note", shown=None) == []


def test_a_picture_leaves_room_for_the_last_two_notes_and_the_cursor() -> None:
    seen = picture("gone", "this note has more words than a line of forty", "last")

    assert seen[-3:] == ["this note has more words than a line of", "forty", "last"]
    assert seen[:-3] == [f"line {number}" for number in range(8)]
    assert len(seen) == 12 - 1


def test_of_an_endless_note_the_beginning_is_seen() -> None:
    assert picture("word " * 99, columns=12, shown=0) == ["word word", "word word …"]


@pytest.mark.parametrize(
    ("width", "seen"),
    [
        (23, "laps 4.98, 5.24, 60,000"),
        (22, "laps 4.98, 5.24, …"),
        (18, "laps 4.98, 5.24, …"),
        (17, "laps 4.98, 5.24,…"),
        (16, "laps 4.98, 5.24…"),
        (15, "laps 4.98, …"),
        (3, "la…"),
    ],
)
def test_a_line_is_cut_where_the_window_ends_but_not_within_a_number(width: int, seen: str) -> None:
    assert shortened(Text("laps 4.98, 5.24, 60,000"), width).plain == seen


@given(st.text("12.,a \N{CJK UNIFIED IDEOGRAPH-4E00}"), st.integers(1, 30))
def test_what_is_shortened_fits(text: str, width: int) -> None:
    line = shortened(Text(text), width)

    assert line.cell_len <= width
    assert line.plain == text or line.plain.rstrip().endswith("…") or not line.plain.strip()


def summary(*lines: str, width: int | None) -> list[str]:
    return [text.plain for text in fitted(lines, width)]


def test_words_are_broken_and_commands_are_not() -> None:
    command = "    sanderling sequence crawl --out somewhere/far/away"

    assert summary("Go on where it stopped with:", "", command, width=20) == [
        "Go on where it",
        "stopped with:",
        "",
        command,
    ]
    assert max(map(len, summary("word " * 99, width=200))) <= 100, "longer lines cannot be read"
    assert summary("word " * 99, command, width=None) == ["word " * 99, command], "where there is no window"


class Colourless(StringIO):
    """A terminal that nobody draws on."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_without_colours_gets_no_torn_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    told = Colourless()
    screen: ScreenOf[int, str] = Wordy()

    with redirect_stdout(told):
        screen.end(["a line of more than twenty letters"], {})

    assert told.getvalue().splitlines() == ["a line of more than", "twenty letters"]


def test_what_commands_are_for_stands_above_them_where_it_has_no_room_beside_them() -> None:
    commands = (
        "    sanderling pages failed out  # what failed, and why",
        "    sanderling demo limiter      # how it learns",
    )

    assert summary("To try next:", *commands, width=60) == ["To try next:", *commands]
    assert summary("To try next:", *commands, "", "    plain", width=50) == [
        "To try next:",
        "    # what failed, and why",
        "    sanderling pages failed out",
        "    # how it learns",
        "    sanderling demo limiter",
        "",
        "    plain",
    ]


def test_what_a_line_is_about_stands_before_it() -> None:
    assert labelled("lag", "4 s\x1b").plain == "       lag  4 s\N{REPLACEMENT CHARACTER}"
    assert labelled("0:01", "gap", columns=7).plain == "   0:01  gap"


def test_what_is_cut_says_so() -> None:
    assert [cut("words", width) for width in (5, 4, 1, 0)] == ["words", "wor…", "…", "…"]
