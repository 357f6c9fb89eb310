"""How far a command is that ends by itself: one line that changes on a terminal, or a line now and then."""

import os
import sys
from typing import Self

from rich.console import Console
from rich.text import Text

from sanderling.clock import Clock
from sanderling.words import printable

SAY_EVERY = 2.0  # seconds


class Saying:
    """Says how it goes to stderr, now and then."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = clock.now()

    def __call__(self, words: str) -> None:
        """Say that, if it is time."""
        if self._clock.now() - self._last >= SAY_EVERY:
            self._last = self._clock.now()
            print(words, file=sys.stderr, flush=True)


class ProgressLine:
    """One line that changes, on a terminal; nothing elsewhere."""

    def __init__(self, *, shown: bool = True) -> None:
        drawn = shown and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._status = Console(stderr=True).status("") if drawn else None

    @property
    def is_drawn(self) -> bool:
        """Whether anybody sees it."""
        return self._status is not None

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def show(self, text: str) -> None:
        """How far it is."""
        if self._status is not None:
            self._status.update(Text(printable(text), overflow="ellipsis", no_wrap=True))

    def note(self, text: str) -> None:
        """Something that should stay to be read."""
        if self._status is not None:
            self._status.console.print(Text(printable(text)))
        else:
            print(printable(text), file=sys.stderr, flush=True)
