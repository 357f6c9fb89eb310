"""Reports on a terminal: the live screen, drawn anew each second, and lines that stay; elsewhere plain text."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from sanderling.cli.context import Context
from sanderling.observe.render import Line, plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_STYLES = {"dim": "dim", "bold": "bold", "good": "green", "bad": "red", "": ""}


def is_terminal(stream: TextIO, context: Context) -> bool:
    """Whether lines can be drawn anew there."""
    return stream.isatty() and context.environment.get("TERM") != "dumb"


def print_lines(lines: Iterable[Line], stream: TextIO, context: Context, *, color: bool = True) -> None:
    """Lines that stay: styled on a terminal."""
    if not is_terminal(stream, context):
        stream.write(plain(lines) + "\n")
        return
    console = _console(stream, context, color=color)
    for line in lines:
        console.print(_text([line]), soft_wrap=True)


@contextmanager
def live(context: Context, *, color: bool = True) -> Iterator[Callable[[Iterable[Line]], None]]:
    """What draws lines over the last ones, on standard error; what is logged meanwhile stands above them."""
    from rich.live import Live  # noqa: PLC0415 - 35 ms, and only on terminals

    console = _console(context.err, context, color=color)
    with Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False) as screen:
        yield lambda lines: screen.update(_text(lines), refresh=True)


def _console(stream: TextIO, context: Context, *, color: bool) -> "Console":
    from rich.console import Console  # noqa: PLC0415 - as above

    no_color = not color or bool(context.environment.get("NO_COLOR"))
    return Console(file=stream, no_color=no_color, highlight=False, emoji=False, markup=False)


def _text(lines: Iterable[Line]) -> "Text":
    from rich.text import Text  # noqa: PLC0415 - as above

    text = Text(no_wrap=True, overflow="ellipsis")
    for number, line in enumerate(lines):
        text.append("\n" * bool(number))
        for piece, style in line:
            text.append(piece, _STYLES[style])
    return text
