"""`sanderling top`: all systems of a home as they live, on a terminal or as plain lines."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Annotated, Protocol, Self

from cyclopts import Parameter
from rich.console import Console, ConsoleOptions
from rich.live import Live as Drawing
from rich.text import Text

from sanderling.cli.command_error import CommandError
from sanderling.cli.home import configured, home_of
from sanderling.cli.house_words import flowing, nothing, titled
from sanderling.cli.loop import run
from sanderling.cli.screen import ascii_of, drawable
from sanderling.cli.status import house_in
from sanderling.cli.top.keys import QUIT, Keyboard, pressing
from sanderling.cli.top.view import Look, View
from sanderling.clock import Clock, SystemClock
from sanderling.observe import logs
from sanderling.web.house_facts import System
from sanderling.web.house_live import Live

SHORTEST, LONGEST = 0.2, 3600.0  # seconds between looks; what is looked at changes once a second
DRAWN, SAID = 1.0, 5.0  # by default, on a terminal and elsewhere
UNITS = {"": 1.0, "s": 1.0, "ms": 0.001, "m": 60.0}
_TIME = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+) *(ms|s|m)?", re.ASCII)


def top(
    *,
    every: Annotated[
        str | None,
        Parameter(help="How often to look, as in 1s or 500ms; by default 1s, and 5s where lines are printed."),
    ] = None,
) -> None:
    """Show how every system of the home lives, until q or Ctrl-C."""
    seconds = None if every is None else parse_time(every)
    home = home_of(configured())
    if not home.is_dir():
        raise CommandError(nothing(str(home), there=False), code=2)
    logs.configure(None, "error")  # what goes wrong with a file is in the picture, and a log would be drawn over it
    console = drawable(colourless=True)
    screen: Screen = TopLines() if console is None else TopTerminal(console)
    if run(watch(home, screen, seconds or (SAID if console is None else DRAWN), SystemClock())) != QUIT:
        sys.exit(130)


def parse_time(text: str) -> float:
    """Seconds, from what people write. Raises CommandError."""
    found = _TIME.fullmatch(text.strip())
    seconds = float(found[1]) * UNITS[found[2] or ""] if found else 0.0
    if not SHORTEST <= seconds <= LONGEST:
        raise CommandError(f"--every: {ascii_of(text[:40])!r}, expected a time from 200ms to 60m, as in 1s", code=2)
    return seconds


class Screen(Protocol):
    """Where it is shown."""

    view: View

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def show(self, look: Look) -> None:
        """Show how everything stands."""

    def rest(self, keyboard: Keyboard | None) -> None:
        """Let others have the terminal until we are to go on."""


async def watch(home: Path, screen: Screen, every: float, clock: Clock) -> str:
    """Look and show until somebody ends it; says by which key, or that there was none."""
    pressed: asyncio.Queue[str] = asyncio.Queue()
    live = house_in(home, clock)
    loop = asyncio.get_running_loop()
    await live.look()
    with ExitStack() as stack:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, pressed.put_nowait, "")
            stack.callback(loop.remove_signal_handler, number)
        stack.enter_context(screen)
        keyboard = stack.enter_context(pressing(pressed.put_nowait))
        screen.view.keys = keyboard is not None
        if keyboard is not None:
            loop.add_signal_handler(signal.SIGTSTP, screen.rest, keyboard)
            stack.callback(loop.remove_signal_handler, signal.SIGTSTP)
        return await _show(home, live, screen, every, pressed, clock)


async def _show(home: Path, live: Live, screen: Screen, every: float, pressed: asyncio.Queue[str], clock: Clock) -> str:
    """Show it, and look again; says by which key it ended."""
    while True:
        screen.view.take(live.seen)
        screen.show(_look(home, live))
        async for key in _keys(pressed, clock, clock.now() + every):
            if not key or not screen.view.press(key, live.seen.systems):
                return key
            screen.show(_look(home, live))
        await live.look()


async def _keys(pressed: asyncio.Queue[str], clock: Clock, until: float) -> AsyncIterator[str]:
    """The keys that are pressed before then."""
    while (left := until - clock.now()) > 0:
        try:
            async with asyncio.timeout(left):
                key = await pressed.get()
        except TimeoutError:
            return
        yield key


def _look(home: Path, live: Live) -> Look:
    running = [live.seen.found[each.name] for each in live.seen.systems if each.running]
    return Look(str(home), live.seen, [row for each in running for row in live.rows_of(each)])


class TopTerminal:
    """The whole terminal, which is as it was afterwards."""

    def __init__(self, console: Console) -> None:
        self.view = View()
        self._look: Look | None = None
        self._drawing = Drawing(self, console=console, auto_refresh=False, screen=True)

    def __enter__(self) -> Self:
        self._drawing.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._drawing.stop()

    def show(self, look: Look) -> None:
        """Draw it over what was there."""
        self._look = look
        self._drawing.refresh()

    def rest(self, keyboard: Keyboard | None) -> None:
        """As Ctrl-Z does; whoever stopped us gets the terminal as it was."""
        self._drawing.stop()
        if keyboard is not None:
            keyboard.give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        if keyboard is not None:
            keyboard.take()
        self._drawing.start(refresh=True)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        if self._look is not None:
            yield from self.view.lines(self._look, options.max_width, console.height)


class TopLines:
    """A line for each system that runs, and what is wrong with it when that changes. ASCII only."""

    def __init__(self) -> None:
        self.view = View()
        self._troubles: dict[str, tuple[str, ...]] = {}
        self._idle = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, look: Look) -> None:
        """Print the lines."""
        at = datetime.fromtimestamp(look.seen.wall).astimezone().strftime("%H:%M:%S")
        running = [each for each in look.seen.systems if each.running]
        said = [line for each in running for line in self._said(each)]
        if not running and not self._idle:
            said.append(f"nothing runs in {look.home}")
        self._idle = not running
        for line in said:
            print(ascii_of(f"{at}  {line}"), flush=True)

    def rest(self, keyboard: Keyboard | None) -> None:
        """Nothing is to be given back."""

    def _said(self, system: System) -> Iterator[str]:
        yield f"{titled(system)}: {flowing(system)}; {system.doing}"
        before, now = self._troubles.get(system.name, ()), system.troubles
        self._troubles[system.name] = now
        if now != before:
            yield from (f"{titled(system)}: {each}" for each in now or ("all is well again",))
