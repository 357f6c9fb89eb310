"""Terminals that commands write to, for those who look at what is on them."""

import codecs
import os
import pty
import select
import signal
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from forked import Command

SECONDS = 300.0  # for words to appear: the machine may be busy


class Terminal:
    """A terminal, and all that was written on it so far."""

    def __init__(self, columns: int, lines: int) -> None:
        self.ours, self.theirs = pty.openpty()
        termios.tcsetwinsize(self.ours, (lines, columns))
        self.text = ""
        # What is written comes in pieces, which may end within a letter.
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def read_until(self, words: str, seconds: float = SECONDS) -> str:
        """What was written since the last time, until it holds `words`."""
        seen, end = "", time.monotonic() + seconds
        while words not in seen:
            ready, _, _ = select.select([self.ours], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"{words!r} was not shown within {seconds:g} s, but {seen[-500:]!r}"
            seen += self._decoder.decode(os.read(self.ours, 65536))
        self.text += seen
        return seen


@contextmanager
def terminal(columns: int = 80, lines: int = 24) -> Iterator[Terminal]:
    """One of that size."""
    opened = Terminal(columns, lines)
    try:
        yield opened
    finally:
        os.close(opened.theirs)
        os.close(opened.ours)


def environment(**more: str) -> dict[str, str]:
    """Ours without what would make a terminal look other than usual: whoever runs the tests has one, too."""
    odd = {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"}
    usual = {name: value for name, value in os.environ.items() if name not in odd}
    return {**usual, "TERM": "xterm-256color", "PYTHONUTF8": "1", **more}


class Interrupted(NamedTuple):
    """What came of a command that was ended with Ctrl-C."""

    code: int
    text: str
    errors: bytes


def interrupted(*arguments: str, at: str, last: str, cwd: Path, columns: int = 80, lines: int = 24) -> Interrupted:
    """Run it on a terminal, end it when `at` was shown there, and read on until `last` is."""
    with (
        terminal(columns, lines) as shown,
        Command[bytes](arguments, stdout=shown.theirs, stderr=subprocess.PIPE, cwd=cwd, env=environment()) as process,
    ):
        try:
            shown.read_until(at)
            process.send_signal(signal.SIGINT)
            shown.read_until(last)
            _, errors = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    return Interrupted(process.returncode, shown.text, errors)
