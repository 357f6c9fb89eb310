"""All parts of a crawl in one event loop, under virtual time, whichever system it is of."""

import asyncio
from collections.abc import Mapping
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from sanderling.crawls.exchange import EndOfParts
from sanderling.crawls.part_folders import BegunParts
from sanderling.crawls.parts import enough_parts, make_parts, number_of_parts, part_of
from sanderling.crawls.run import FrontierRun
from sanderling.fetch.attempts import Sends
from sanderling.stores.board import Board, BoardField
from sanderling.task import Reply, Task
from sanderling.testing import LoopClock, run_virtual


class SentBy(NamedTuple):
    """A request, by its host's own log."""

    part: int
    host: str
    url: str
    begun: float
    ended: float


class LoggingSender:
    """The client of one part."""

    def __init__(self, http: Sends, part: int, log: list[SentBy]) -> None:
        self._http, self._part, self._log = http, part, log

    async def send(self, task: Task) -> Reply:
        begun = asyncio.get_running_loop().time()
        try:
            return await self._http.send(task)
        finally:
            self._log.append(SentBy(self._part, task.host, task.url, begun, asyncio.get_running_loop().time()))


class PartsInOneLoop:
    """The parts of a crawl in `root`. A subclass opens the run of one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(exist_ok=True)
        self.number = number_of_parts(root) or make_parts(root, enough_parts(2))
        self.complete: dict[int, bool] = {}
        self.clock = LoopClock()
        self.log: list[SentBy] = []

    def sender(self, http: Sends, part: int) -> LoggingSender:
        """The client of a part, whose requests are in the log."""
        return LoggingSender(http, part, self.log)

    def strangers(self) -> list[SentBy]:
        """Requests of parts that their host does not belong to."""
        return [each for each in self.log if each.part != part_of(each.host, self.number)]

    def closest(self, host: str) -> float:
        """The least seconds between two requests to a host."""
        times = sorted(each.begun for each in self.log if each.host == host)
        return min((later - earlier for earlier, later in pairwise(times)), default=inf)

    def begin(self, clock: LoopClock) -> BegunParts:
        """What the process that people see does first."""
        del clock
        return BegunParts(resumed=False, shown=())

    def open_run(self, part: int, board: Board, clock: LoopClock) -> FrontierRun[Any, Any]:
        """A run of one part, in its folder."""
        raise NotImplementedError

    def run(self, kills: Mapping[float, int] | None = None, stop_after: float | None = None) -> None:
        """To the end; at each of these times the part is killed, and starts again."""
        run_virtual(self._run(kills or {}, stop_after))

    async def _run(self, kills: Mapping[float, int], stop_after: float | None) -> None:
        clock = self.clock = LoopClock(1_800_000_000.0)
        board = Board(self.root / "board", self.number, make=True)
        for part, shown in enumerate(self.begin(clock).shown):
            for field, number in shown.items():
                board.put(part, field, number)
        end, self.runs = EndOfParts(board), dict[int, FrontierRun[Any, Any]]()
        tasks = {part: asyncio.create_task(self._part(part, board, clock)) for part in range(self.number)}
        for at, part in sorted(kills.items()):
            await asyncio.sleep(max(0.0, at - clock.now()))
            if not tasks[part].done():
                tasks[part].cancel()
                await asyncio.wait([tasks[part]])
                board.put(part, BoardField.IDLE, 0)
                tasks[part] = asyncio.create_task(self._part(part, board, clock))
        while any(not task.done() for task in tasks.values()):
            await asyncio.sleep(0.1)
            for task in tasks.values():
                if task.done():
                    task.result()  # the others would wait for one that failed
            board.over = board.over or end.is_reached()
            if stop_after is not None and clock.now() >= stop_after:
                for each in self.runs.values():
                    each.stop()

    async def _part(self, part: int, board: Board, clock: LoopClock) -> None:
        one = self.runs[part] = self.open_run(part, board, clock)
        folder = one.folder
        try:
            self.complete[part] = await one.run()
        except asyncio.CancelledError:  # as if it were killed: nothing is closed in order
            folder.ledger._db.close()
            folder._lock.release()
            raise
        folder.finish(clock.wall(), self.complete[part])
        folder.__exit__()
