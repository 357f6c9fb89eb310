"""A crawl in several processes: the one that people see starts the others, each with some parts, and watches them.

The others run the same command, with `SANDERLING_PARTS` in their environment. Each ends when the one that started it
does, however that ends: its standard input is closed then.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from sanderling.cli.command_error import CommandError
from sanderling.cli.loop import run
from sanderling.clock import Clock
from sanderling.crawls.exchange import EndOfParts
from sanderling.crawls.parts import FOLDER, folders_of, number_of_parts, share_out
from sanderling.jobs.watchdog import STUCK
from sanderling.stores.board import Board, BoardField
from sanderling.stores.control_file import Control
from sanderling.stores.durable import FolderError, Lock
from sanderling.stores.time_table import TimeTable
from sanderling.words import count

OWN = "SANDERLING_PARTS"  # the parts of a process that was started by another one
BOARD, QUOTAS, DOMAINS = "board", "quotas", "domains"
MOST_DOMAINS = 1 << 20  # of which pages are counted; those beyond share a count
LOOK = 0.1  # seconds between two looks at the others
MOST_DEATHS = 5  # of one process in a row, each within SHORT seconds of its start
SHORT = 30.0
PATIENCE = 20.0  # seconds that the others have to end once we are told to stop at once

ProcessCount = Annotated[
    str,
    Parameter(help="Processes that share the work, or auto: one for each core. A crawl may go on with another number."),
]


def how_many(processes: str) -> int:
    """The number that is meant. Raises CommandError."""
    if processes == "auto":
        return len(os.sched_getaffinity(0))
    if not (processes.isdecimal() and int(processes)):
        raise CommandError(f"--processes is {processes!r}, expected 1 or more, or auto", code=2)
    return int(processes)


def is_in_parts(out: Path) -> bool:
    """Whether the crawl in a folder is. Raises CommandError."""
    try:
        return number_of_parts(out) > 0
    except FolderError as error:
        raise CommandError(str(error), code=2) from None


def own_parts() -> list[int]:
    """The parts of this process, if it was started by another one for them."""
    return [int(part) for part in os.environ.get(OWN, "").split(",") if part]


def open_board(root: Path, parts: int, *, make: bool = False) -> Board:
    """The board of the crawl in a folder."""
    return Board(root / FOLDER / BOARD, parts, make=make)


def open_quotas(root: Path, *, make: bool = False) -> TimeTable:
    """What the limiters of all parts share."""
    return TimeTable(root / FOLDER / QUOTAS, make=make)


def open_domains(root: Path, *, make: bool = False) -> TimeTable:
    """How many pages of each domain all parts have."""
    return TimeTable(root / FOLDER / DOMAINS, MOST_DOMAINS, make=make)


def wait_for_parts(out: Path, note: Callable[[str], object], clock: Clock) -> None:
    """Return when no process of an earlier run holds a part: who is killed leaves some that are still ending.

    Raises FolderError if one does not let go.
    """
    until, busy = clock.now() + PATIENCE, _busy_part(out)
    if busy is not None:
        note("processes of an earlier run are still ending")
    while busy is not None:
        if clock.now() > until:
            raise busy
        run(clock.sleep(LOOK))
        busy = _busy_part(out)


def _busy_part(out: Path) -> FolderError | None:
    """Why a part cannot be had, if one cannot."""
    try:
        for folder in folders_of(out):
            Lock(folder / "lock").release()
    except FolderError as error:
        return error
    return None


@dataclass(slots=True)
class _Child:
    number: int  # from 1
    parts: list[int]
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    deaths: int = 0
    code: int | None = None


class ProcessGroup:
    """The processes of one crawl. `run` it once; `stop` lets all of them finish what is in flight."""

    def __init__(self, root: Path, parts: int, processes: int, clock: Clock, note: Callable[[str], object]) -> None:
        self.board = open_board(root, parts, make=True)
        open_quotas(root, make=True).close()
        self._children = [_Child(number, own) for number, own in enumerate(share_out(parts, processes), 1)]
        self._clock = clock
        self._note = note
        self._stopped = False
        self.restarts = 0

    def show(self, shown: Sequence[Mapping[BoardField, int]]) -> None:
        """Say on the board what each part had before, until it says more itself."""
        for part, said in enumerate(shown):
            for field, number in said.items():
                self.board.put(part, field, number)

    @property
    def inflight(self) -> int:
        """Requests that are out."""
        return self.board.total(BoardField.INFLIGHT)

    async def run(self) -> bool:
        """Run until every process has ended; whether nothing is left. Raises CommandError if one cannot go on."""
        end = EndOfParts(self.board)
        try:
            for child in self._children:
                self._start(child)
            while any(child.code is None for child in self._children):
                await self._clock.sleep(LOOK)
                for child in self._children:
                    self._look_after(child)
                if not self.board.over and end.is_reached():
                    self.board.over = True
            return self.board.total(BoardField.COMPLETE) == self.board.parts
        finally:
            self._end_all()
            self.board.close()

    def stop(self) -> None:
        """Ask for nothing more; what is in flight comes to its end, and is kept."""
        self._stopped = True
        for child in self._children:
            if child.process is not None and child.code is None:
                child.process.send_signal(signal.SIGTERM)

    def control(self, wanted: Control) -> None:
        """Nothing: each process follows what people want by itself."""

    def _start(self, child: _Child) -> None:
        own = ",".join(map(str, child.parts))
        child.process = subprocess.Popen(  # noqa: S603 - ourselves
            [sys.executable, "-m", "sanderling", *sys.argv[1:]],
            env={**os.environ, OWN: own},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for us, who tell them
        )
        child.started = self._clock.now()

    def _look_after(self, child: _Child) -> None:
        """Start it again if it was killed; end with it if it says that it cannot go on."""
        if child.code is not None or child.process is None or (code := child.process.poll()) is None:
            return
        _let_go(child.process)
        for part in child.parts:
            self.board.put(part, BoardField.IDLE, 0)
            self.board.put(part, BoardField.INFLIGHT, 0)
        if (code >= 0 and code != STUCK) or self._stopped:
            child.code = code
            if code not in (0, -signal.SIGTERM):
                said = f"{self._name(child)} ended with code {code}; what it said is above"
                raise CommandError(said, code if code > 0 else 1)
            return
        lived = self._clock.now() - child.started
        child.deaths = child.deaths + 1 if lived < SHORT else 1
        if child.deaths > MOST_DEATHS:
            raise CommandError(f"{self._name(child)} {_why(code)}, {count(child.deaths, 'time')} in a row")
        self.restarts += 1
        self._note(f"{self._name(child)} {_why(code)}, and is started again; nothing is lost")
        self._start(child)

    def _name(self, child: _Child) -> str:
        return f"process {child.number} of {len(self._children)}"

    def _end_all(self) -> None:
        """Let the others end by themselves, and not wait for one that does not."""
        started = [child.process for child in self._children if child.process is not None]
        for process in started:
            _let_go(process)
        for process in started:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _let_go(process: subprocess.Popen[bytes]) -> None:
    """By which it knows that nobody waits for it any more."""
    if process.stdin is not None:
        process.stdin.close()


def _why(code: int) -> str:
    """Why a process has ended that is started again."""
    if code == STUCK:
        return "was held up by one call, or did not reach its servers"
    try:
        return f"was killed ({signal.Signals(-code).name})"
    except ValueError:
        return f"was killed (signal {-code})"
