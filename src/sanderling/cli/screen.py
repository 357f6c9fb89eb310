"""What the screens of all systems share: where a picture can be drawn, and what is printed where none can."""

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Self

from rich.console import Console

from sanderling.cli.pages_summary import printable


def drawable() -> Console | None:
    """The terminal behind stdout, if pictures can be drawn on it and people want them."""
    console = Console(highlight=False)
    able = console.is_terminal and sys.stdout.isatty() and not console.is_dumb_terminal and not console.no_color
    return console if able and console.encoding.startswith("utf") else None


def ascii_of(text: str) -> str:
    """The text as any terminal and any file can take it."""
    return printable(text).encode("ascii", "replace").decode()


class Quiet:
    """Draws nothing; what must be said goes to stderr, where it does not get into what is piped."""

    every = 1.0  # seconds between frames

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, status: Any) -> None:  # noqa: ANN401 - whatever the system calls its status
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say it at once."""
        print(printable(text), file=sys.stderr, flush=True)


class Silent(Quiet):
    """Says nothing but the summary, as JSON."""

    def end(self, lines: Iterable[str], document: Mapping[str, Any]) -> None:
        """Print the document."""
        del lines
        print(json.dumps(document, indent=2))


class Wordy(Quiet):
    """Says the summary in words."""

    def end(self, lines: Iterable[str], document: Mapping[str, Any]) -> None:
        """Print the lines."""
        del document
        for line in lines:
            print(ascii_of(line))
