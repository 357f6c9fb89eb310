"""`sanderling demo house`: all five systems, as real commands, against simulated upstreams on this machine.

    worlds (this process) <--HTTP-- pages, sequence, repos, polling     a process each
    pages, sequence, a crawler of social media --batches--> events      one more
    all five --status.json--> terminal and dashboard (this process)

At the end the crawls are told to stop, events takes what is left, and what it has is compared with what was found.
"""

import asyncio
import json as jsonlib
import shutil
import signal
import sys
import textwrap
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from rich.console import Console, ConsoleOptions
from rich.text import Text

from sanderling.cli import screen as screens
from sanderling.cli.command_error import CommandError
from sanderling.cli.command_line import as_called
from sanderling.cli.dashboard import dashboard_beside
from sanderling.cli.demos.house_children import Child, Children, children_in
from sanderling.cli.demos.house_report import HouseReport, has_said, prove, waiting
from sanderling.cli.demos.house_worlds import EVENTS, JOBS, ORDER, HousePublisher, HouseWorlds, serve_worlds
from sanderling.cli.demos.shell import WRONG, make_room, mark_folder
from sanderling.cli.events.place import KNOWN
from sanderling.cli.loop import explain_end, stop_on_signals
from sanderling.cli.loop import run as run_loop
from sanderling.cli.status import house_in
from sanderling.cli.top import top
from sanderling.cli.top.view import Look
from sanderling.clock import Clock, SystemClock
from sanderling.observe import logs
from sanderling.web.dashboard import PORT
from sanderling.words import printable

COMMAND = "sanderling demo house"
BETWEEN = 0.4  # seconds between two that are begun: each takes a core for a second
FIRST, ALL = 8.0, 12.0  # seconds for events, and for all, to say something; then it goes on without
DRAIN, LOOK = 10.0, 0.2  # seconds for events to take what is left, and between two looks


def run(out: Path, *, as_json: bool, seconds: float = 28.0, port: int | None = None, keep_open: bool = False) -> None:
    """Run all five systems together for a while, show them, and prove what came of it."""
    make_room(out, "house")
    mark_folder(out, "house")
    logs.configure(None, "error")  # what goes wrong is in the picture
    house = House(out, seconds, port, SystemClock(), as_json, keep_open)
    with explain_end(COMMAND, KNOWN):
        found = run_loop(house.run())
    if found.died:
        raise CommandError("\n".join(map(printable, found.describe_died())))
    if not found.proof.ok:
        raise CommandError(WRONG)
    if house.stopped:
        raise KeyboardInterrupt


@dataclass(slots=True)
class House:
    """The demo under way."""

    home: Path
    seconds: float
    port: int | None
    clock: Clock
    json: bool
    keep_open: bool
    ending: bool = False
    stopped: bool = False  # by Ctrl-C
    over: float | None = None  # when it will be, once that is known
    patience: asyncio.Timeout | None = None  # while it is shown
    died: list[Child] = field(default_factory=list)

    async def run(self) -> HouseReport:
        """Run it; says what came of it, after having told people."""
        async with (
            serve_worlds(self.home, self.clock) as worlds,
            self._dashboard() as address,
            children_in(self.home) as children,
        ):
            publishing = HousePublisher(self.home, self.clock)
            async with asyncio.TaskGroup() as group:
                group.create_task(publishing.run())
                beginning = group.create_task(self._begin(worlds, children, group))
                timing = group.create_task(self._time())
                complete = await self._watched(address)
                publishing.stop()
                timing.cancel()
                await asyncio.wait({beginning})  # who is being begun is known then, and can be told to stop
                await self._finish(children, drain=complete)
            found = await self._report(publishing, complete=complete)
            self._tell(found, address)
            if self.keep_open and not (self.stopped or found.died):
                await self._kept_open()
        return found

    @asynccontextmanager
    async def _dashboard(self) -> AsyncIterator[str]:
        """Its address. Where nobody chose a port and the usual one is taken, any other will do."""
        async with AsyncExitStack() as stack:
            home = self.home.absolute()
            try:
                wanted = PORT if self.port is None else self.port
                address = await stack.enter_async_context(dashboard_beside(wanted, home, flag="--port"))
            except CommandError:
                if self.port is not None:
                    raise
                address = await stack.enter_async_context(dashboard_beside(0, home, flag="--port"))
            yield address or ""

    # While it runs.

    async def _begin(self, worlds: HouseWorlds, children: Children, group: asyncio.TaskGroup) -> None:
        """Begin one after the other; who hands on to events waits until that is there."""
        commands = worlds.commands(self.home)
        for name in ORDER:
            until = self.clock.now() + (FIRST if name in JOBS else BETWEEN)
            while self.clock.now() < until and not (self.ending or (name in JOBS and has_said(self.home / EVENTS))):
                await self.clock.sleep(LOOK)
            if self.ending:
                return
            child = await children.begin(name, commands[name])
            group.create_task(self._guard(child))

    async def _time(self) -> None:
        """Look no longer when the time is over, which counts from when all have said something."""
        until = self.clock.now() + ALL
        while self.clock.now() < until and not all(has_said(self.home / name) for name in ORDER):
            await self.clock.sleep(LOOK)
        self.over = self.clock.now() + self.seconds
        await self.clock.sleep(self.seconds)
        self._enough()

    async def _guard(self, child: Child) -> None:
        """End everything if one ends that was not told to, and has not come to the end of its work."""
        await child.process.wait()
        if not child.stopped and not (child.code in (0, 1) and has_said(self.home / child.name, running=False)):
            self.died.append(child)
            self._enough()

    async def _watched(self, address: str) -> bool:
        """Show how it goes; whether it went on until its time was over, or somebody had seen enough."""
        console = None if self.json else screens.drawable(colourless=True)
        screen = self._screen(address, console)
        try:
            async with asyncio.timeout(None) as self.patience:
                key = await top.watch(self.home, screen, top.DRAWN if console else top.SAID, self.clock)
        except TimeoutError:
            return not self.died
        finally:
            self.patience, self.ending = None, True
        self.stopped = not key
        return not self.stopped

    def _screen(self, address: str, console: Console | None) -> top.Screen:
        if self.json:
            return Unseen()
        if console is None:
            return HouseLines(address)
        return Framed(console, address, self._ends)

    def _ends(self) -> str:
        if self.over is None:
            return "The five commands are being started, each in a process of its own."
        return f"It ends in {max(0.0, self.over - self.clock.now()):.0f} s, with a report; q ends it now."

    def _enough(self) -> None:
        """Look no longer."""
        if self.patience is not None:
            self.patience.reschedule(0.0)  # which is past

    # When it is over.

    async def _finish(self, children: Children, *, drain: bool) -> None:
        """Let the crawls come to their end, then events; a Ctrl-C makes it quick."""
        quick = asyncio.Event()
        if not drain:
            quick.set()
        with stop_on_signals(quick.set, self._note, lambda: "stopping") as came:
            self._note(
                "All are told to stop; events takes what the others found." if drain else "All are told to stop."
            )
            await children.stop([name for name in ORDER if name != EVENTS])
            until = self.clock.now() + DRAIN
            while not quick.is_set() and self.clock.now() < until and await waiting(self.home, self.clock):
                await self.clock.sleep(LOOK)
            await children.stop([EVENTS])
        self.stopped = self.stopped or bool(came)

    async def _report(self, publishing: HousePublisher, *, complete: bool) -> HouseReport:
        live = house_in(self.home, self.clock)
        await live.look()
        complete = complete and not self.stopped and not await waiting(self.home, self.clock)
        proof = await asyncio.to_thread(prove, self.home, publishing, complete=complete)
        died = await asyncio.to_thread(lambda: {child.name: child.last_words() for child in self.died})
        return HouseReport(self.home, live.seen.found, proof, died)

    def _tell(self, found: HouseReport, address: str) -> None:
        if self.json:
            print(jsonlib.dumps(found.document(), indent=2))
            return
        width = min(100, shutil.get_terminal_size().columns)
        for line in map(screens.ascii_of, map(as_called, found.lines())):
            whole = not line or line.startswith(" ")
            print(line if whole else textwrap.fill(line, width, break_on_hyphens=False))
        if self.keep_open:
            print(f"The dashboard is still at {address}; Ctrl-C ends it.", flush=True)

    async def _kept_open(self) -> None:
        loop, stopped = asyncio.get_running_loop(), asyncio.Queue[int]()
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, stopped.put_nowait, each)
        self.stopped = await stopped.get() == signal.SIGINT

    def _note(self, text: str) -> None:
        if not self.json:
            print(printable(text), file=sys.stderr, flush=True)


def heading(address: str) -> str:
    """What stands above all."""
    return f"Five systems at work on simulated hosts; nothing leaves this machine. In a browser: {address}"


class Framed(top.TopTerminal):
    """The picture of `sanderling top`, under the address of the dashboard."""

    def __init__(self, console: Console, address: str, ends: Callable[[], str]) -> None:
        super().__init__(console)
        self._address = address
        self._ends = ends

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        above = [Text(heading(self._address), "bold cyan"), Text(self._ends(), "dim")]
        for line in above:
            line.truncate(options.max_width, overflow="ellipsis")
            yield line
        if self._look is not None:
            yield from self.view.lines(self._look, options.max_width, console.height - len(above))


class HouseLines(top.TopLines):
    """The lines of `sanderling top`, after the address of the dashboard."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address = address

    def __enter__(self) -> Self:
        print(heading(self._address), flush=True)
        return self


class Unseen(top.TopLines):
    """Shows nothing."""

    def show(self, look: Look) -> None:
        """Nothing."""
