"""Keys as they are pressed, without Enter; and a terminal that is as it was before, however it ends."""

import asyncio
import os
import re
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

MOST = 64  # bytes of one look; an arrow key has three, and somebody may paste something
ESCAPE = "\x1b"
QUIT = "q"
_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?<]*[A-Za-z~]|O[A-Za-z])")


def keys_in(typed: bytes) -> list[str]:
    """The keys that were pressed. Arrows and their like come as an escape and more behind it, and are left out."""
    return list(_SEQUENCE.sub("", typed.decode(errors="ignore")))


@contextmanager
def pressing(pressed: Callable[[str], object]) -> Iterator["Keyboard | None"]:
    """Tell `pressed` of every key while the block runs; gives None if nobody can press any, since stdin is no terminal.

    Ctrl-C and Ctrl-Z mean what they always do.
    """
    if not sys.stdin.isatty():
        yield None
        return
    keyboard = Keyboard(sys.stdin.fileno(), pressed)
    try:
        keyboard.take()
        yield keyboard
    finally:
        keyboard.give_back()


class Keyboard:
    """A terminal whose keys come to us one by one."""

    def __init__(self, handle: int, pressed: Callable[[str], object]) -> None:
        self._handle = handle
        self._pressed = pressed
        self._before = termios.tcgetattr(handle)

    def take(self) -> None:
        """Have the keys from now on."""
        tty.setcbreak(self._handle, termios.TCSANOW)
        asyncio.get_running_loop().add_reader(self._handle, self._read)

    def give_back(self) -> None:
        """Leave them to whoever had them before. Harmless if that was done."""
        asyncio.get_running_loop().remove_reader(self._handle)
        termios.tcsetattr(self._handle, termios.TCSANOW, self._before)

    def _read(self) -> None:
        try:
            typed = os.read(self._handle, MOST)
        except OSError:  # the terminal has gone
            typed = b""
        if not typed:
            asyncio.get_running_loop().remove_reader(self._handle)
            self._pressed(QUIT)
        for key in keys_in(typed):
            self._pressed(key)
