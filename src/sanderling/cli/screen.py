"""What the screens of all systems share: a picture on a terminal, plain lines elsewhere, or JSON at the end."""

import re
import sys
import textwrap
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from json import dumps
from shutil import get_terminal_size
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.live import Live
from rich.text import Text

from sanderling.words import clock_face, printable

NAME = 10  # columns of what a line is about
NOTES, NOTE_LINES = 2, 2  # that stay under a picture, and the most that one may have
SAY_EVERY = 10  # frames between plain lines: five seconds, of the people who watch
WIDEST_END = 100  # columns; longer lines of words cannot be read
NUMBER = r"\d[\d.,]*\d"  # of more than one letter
PURPOSE = "  # "  # between a command and what it is for
PLAIN_WIDTH = 80  # columns, where nobody says how many there are

# How a system stands, and what happens meanwhile.
Shown = TypeVar("Shown", contravariant=True)  # noqa: PLC0105 - the name is read in every screen
Told = TypeVar("Told", contravariant=True)  # noqa: PLC0105


class Drawing(Protocol):
    """What is more than a line."""

    def drawn(self, width: int, *, plain: bool = False) -> Iterable[Text]:
        """The lines of it, in so many columns; `plain` if there are neither colours nor other letters than ASCII."""


class ScreenOf(Protocol[Shown, Told]):
    """Where a system is shown."""

    every: float  # seconds between frames

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def show(self, shown: Shown, /) -> None:
        """Show how it stands."""

    def tell(self, told: Told, /) -> None:
        """Show what happened, if that is for here."""

    def note(self, text: str) -> None:
        """Say something besides, at once."""

    def end(self, lines: Iterable[str | Drawing], document: Mapping[str, Any]) -> None:
        """Say what came of it, once, after the last frame: in words, or as JSON. Indented lines are commands."""


def suited(
    picture: Callable[[Console], ScreenOf[Shown, Told]],
    plain: Callable[[], ScreenOf[Shown, Told]],
    *,
    json: bool,
    logs: bool = False,
) -> ScreenOf[Shown, Told]:
    """The screen for what stdout is; with `logs`, what happens is in the log and is not said twice."""
    if json:
        return Silent()
    if (console := drawable()) is not None:
        return picture(console)
    return Wordy() if logs else plain()


def drawable(*, colourless: bool = False) -> Console | None:
    """The terminal behind stdout, if pictures can be drawn on it and people want them.

    Without colours nobody does, as a rule; what is drawn for its own sake may be `colourless`.
    """
    console = Console(highlight=False)
    able = console.is_terminal and sys.stdout.isatty() and not console.is_dumb_terminal
    able = able and (colourless or not console.no_color)
    return console if able and console.encoding.startswith("utf") else None


class Quiet(Generic[Shown, Told]):
    """Draws nothing; what must be said goes to stderr, where it does not get into what is piped."""

    every = 1.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, shown: Shown, /) -> None:
        """Say nothing."""

    def tell(self, told: Told, /) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say it at once."""
        print(printable(text), file=sys.stderr, flush=True)


class Silent(Quiet[Shown, Told]):
    """Says nothing but the summary, as JSON."""

    def end(self, lines: Iterable[str | Drawing], document: Mapping[str, Any]) -> None:
        """Print the document."""
        del lines
        print(dumps(document, indent=2))


class Wordy(Quiet[Shown, Told]):
    """Leaves what happens to the log, and says the summary in words. ASCII only."""

    def note(self, text: str) -> None:
        """Say it at once."""
        super().note(ascii_of(text))

    def end(self, lines: Iterable[str | Drawing], document: Mapping[str, Any]) -> None:
        """Print the lines, broken where the window ends if there is one."""
        del document
        for text in fitted(lines, get_terminal_size().columns if sys.stdout.isatty() else None, plain=True):
            print(ascii_of(text.plain.rstrip()))


class Lines(Wordy[Shown, Told]):
    """What is new at once, and now and then how it stands: for pipes, files and terminals that cannot do more."""

    every = 0.5

    def __init__(self) -> None:
        self._frames = 0
        self._troubles: tuple[str, ...] = ()

    def _say(self, seconds: float, news: Iterable[str], standing: str) -> None:
        """Say what is new, and every few frames how it stands."""
        self._frames += 1
        for line in (*news, *([] if self._frames % SAY_EVERY else [standing])):
            self.note(f"{clock_face(seconds)}  {line}")

    def _changed(self, troubles: Iterable[str]) -> tuple[str, ...]:
        """What there is to say of troubles, if they are others than before."""
        before, self._troubles = self._troubles, tuple(troubles)
        return () if self._troubles == before else self._troubles or ("all is well again",)


class Window(NamedTuple):
    """How large a picture may be."""

    width: int
    height: int
    notes: int  # lines under the picture

    def left(self, lines: int) -> int:
        """Lines that are left when there are so many, the notes, and that of the cursor."""
        return max(0, self.height - self.notes - lines - 1)


class Picture(ABC, Generic[Shown, Told]):
    """What is redrawn on a terminal, four times a second, with the last notes under it."""

    every = 0.25

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown: Shown | None = None
        self._notes: deque[str] = deque(maxlen=NOTES)
        self._live = Live(self, console=console, auto_refresh=False, vertical_overflow="crop")

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, shown: Shown, /) -> None:
        """Draw it over the frame before."""
        self._shown = shown
        self._live.refresh()

    def tell(self, told: Told, /) -> None:
        """Say nothing, unless a picture has a place for it."""

    def note(self, text: str) -> None:
        """Keep the words under the picture from now on."""
        self._notes.append(printable(text))
        self._live.refresh()

    def end(self, lines: Iterable[str | Drawing], document: Mapping[str, Any]) -> None:
        """Print the lines under the last frame, broken where the window ends."""
        del document
        for text in fitted(lines, self._console.width):
            self._console.print(text, soft_wrap=True)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        if self._shown is None:
            return
        width = options.max_width
        notes = [Text(part, "bold") for note in self._notes for part in broken(note, width, NOTE_LINES)]
        for line in [*self._lines(self._shown, Window(width, console.height, len(notes))), *notes]:
            yield shortened(line, width)

    @abstractmethod
    def _lines(self, shown: Shown, window: Window) -> Iterable[Text]:
        """The picture, without the notes."""


def shortened(line: Text, width: int) -> Text:
    """What fits of a line, and a sign that there was more. Half a number is another number: it is left out."""
    last = width - 1  # where the sign is
    halved = (each.start() for each in re.finditer(NUMBER, line.plain) if each.start() < last < each.end())
    line.truncate(next(halved, last) + 1 if len(line) > width else width, overflow="ellipsis")
    return line


def broken(line: str, width: int, most: int | None = None) -> list[str]:
    """The line in parts that fit, `most` of them at most."""
    line = printable(line)
    if cell_len(line) > len(line):  # letters that take two columns each
        width = max(2, width // 2)
    parts = textwrap.wrap(line, width, break_on_hyphens=False, max_lines=most, placeholder=" …")
    return parts or [""]


def fitted(lines: Iterable[str | Drawing], width: int | None, *, plain: bool = False) -> Iterator[Text]:
    """A summary for a window of that width; None if there is no window, and so no need to break anything."""
    narrow = min(WIDEST_END, width or PLAIN_WIDTH)
    for commands, some in groupby(lines, lambda line: isinstance(line, str) and line.startswith(" ")):
        if commands:
            yield from map(Text, _commands([printable(str(line)) for line in some], width))
            continue
        for line in some:
            if isinstance(line, str):
                yield from map(Text, broken(line, narrow) if width else [printable(line)])
            else:
                yield from line.drawn(narrow, plain=plain)


def _commands(lines: Sequence[str], width: int | None) -> Iterator[str]:
    """Commands, which must not be broken; what they are for stands above them if there is no room beside them."""
    beside = width is None or max(map(len, lines)) <= width
    for line in lines:
        command, _, purpose = line.partition(PURPOSE)
        yield from [line] if beside or not purpose else [f"    # {purpose}", command.rstrip()]


def label(name: str, columns: int = NAME) -> tuple[str, str]:
    """What a line is about, and how that looks."""
    return f"{printable(name):>{columns}}  ", "dim"


def labelled(name: str, text: str, style: str = "", columns: int = NAME) -> Text:
    """A line about something."""
    return Text.assemble(label(name, columns), (printable(text), style))


def cut(text: str, width: int) -> str:
    """As much of the text as fits, and a sign that there was more."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def ascii_of(text: str) -> str:
    """The text as any terminal and any file can take it."""
    return printable(text).encode("ascii", "replace").decode()
