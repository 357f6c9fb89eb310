"""A crawl of the simulated fleet in parts, all in one event loop under virtual time, whose parts can be killed."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from fleet_crawl import LIMITS, Listed, archived, inline
from world_networks import FleetNetwork

from sanderling.crawls.exchange import EndOfParts
from sanderling.crawls.parts import folders_of, make_parts, number_of_parts
from sanderling.executor import Executor
from sanderling.fetch.attempts import Sends
from sanderling.fetch.transport import Transport
from sanderling.limit import Limiter
from sanderling.limit.memory import Memory
from sanderling.repos.crawl import RepoCrawl, Stores
from sanderling.repos.directory import Directory
from sanderling.repos.hand_out import HandedPages, HandOut
from sanderling.repos.parts import JoinedProgress, archive_folders, settle_moves
from sanderling.repos.rules import RepoRules
from sanderling.repos.segments import Segments
from sanderling.stores.board import Board, BoardField
from sanderling.stores.ports import ProgressView
from sanderling.stores.sqlite_progress import SqliteProgress
from sanderling.task import Reply, Task
from sanderling.testing import LoopClock, run_virtual
from sanderling.worlds.pds import Fleet

T = TypeVar("T")
RULES = RepoRules(page_size=100)


@dataclass(slots=True)
class CrawledParts:
    """What came of it."""

    complete: bool
    view: ProgressView
    archive: Counter[str]  # DIDs, by how often they are in the segments
    seconds: float
    sent: Counter[str]  # requests, by host
    senders: dict[str, set[int]]  # the parts that asked each host


@dataclass(slots=True)
class VirtualParts:
    """A crawl of `root`, in parts that are killed at some times, and begun again at once."""

    root: Path
    fleet: Fleet
    directory: Directory | None = None
    rules: RepoRules = RULES
    through: Callable[[FleetNetwork], Sends] = lambda network: network
    kills: Mapping[float, int] = field(default_factory=dict)  # the part that is killed, by time
    die_at: float | None = None  # when all of them are, and who hands out
    reading: float = 0.0  # seconds that each call of the directory takes who hands out
    _sent: Counter[str] = field(default_factory=Counter)
    _senders: dict[str, set[int]] = field(default_factory=dict)

    def run(self) -> CrawledParts:
        """Crawl to the end, or until all are killed."""
        self.root.mkdir(exist_ok=True)
        if not number_of_parts(self.root):
            make_parts(self.root, 8)
        return run_virtual(self._main())

    async def _main(self) -> CrawledParts:
        clock, parts, directory = LoopClock(), number_of_parts(self.root), self._directory
        with ExitStack() as stack:
            stores = [
                stack.enter_context(closing(SqliteProgress(each / "progress.db")))
                for each in archive_folders(self.root)
            ]
            settle_moves(stores, parts, directory)
            board = Board(self.root / "parts" / "board", parts, make=True)
            after = JoinedProgress(stores, parts).begin_together()
            hand_out = HandOut(self.root, directory, after, board, self._slowly(clock), self.rules.page_size)
            with suppress(TimeoutError):
                async with asyncio.timeout(self.die_at):
                    await self._all_parts(hand_out, board, stores, clock)
            joined = JoinedProgress(stores, parts)
            complete = board.total(BoardField.COMPLETE) == parts
            if complete:
                joined.begin_anew()
            found = sum((archived(each) for each in archive_folders(self.root)), Counter[str]())
            return CrawledParts(complete, joined.view(), found, clock.now(), self._sent, self._senders)

    def _slowly(self, clock: LoopClock) -> Executor:
        async def executor(work: Callable[..., T], /, *args: Any) -> T:  # noqa: ANN401 - whatever `work` takes
            await clock.sleep(self.reading)
            return work(*args)

        return executor

    @property
    def _directory(self) -> Directory:
        return self.directory or Listed(list(self.fleet.directory()))

    async def _all_parts(
        self, hand_out: HandOut, board: Board, stores: Sequence[SqliteProgress], clock: LoopClock
    ) -> None:
        end = EndOfParts(board)
        async with asyncio.TaskGroup() as group:
            handing = group.create_task(hand_out.run(clock))
            parts = {part: group.create_task(self._part(part, board, stores, clock)) for part in range(board.parts)}
            kills = sorted(self.kills.items(), reverse=True)
            while not all(each.done() for each in parts.values()):
                await clock.sleep(0.1)
                while kills and kills[-1][0] <= clock.now():
                    _, killed = kills.pop()
                    parts[killed].cancel()
                    with suppress(asyncio.CancelledError):
                        await parts[killed]
                    board.put(killed, BoardField.IDLE, 0)
                    parts[killed] = group.create_task(self._part(killed, board, stores, clock))
                board.over = board.over or end.is_reached()
            handing.cancel()

    async def _part(self, number: int, board: Board, stores: Sequence[SqliteProgress], clock: LoopClock) -> None:
        """What a process does for one of its parts; cancelled, it leaves what kill -9 does."""
        folder = folders_of(self.root)[number]
        with (
            closing(SqliteProgress(folder / "progress.db")) as progress,
            Segments(folder, size=200_000, created_at=lambda: int(clock.wall() * 1e6)) as segments,
        ):
            progress.record(segments.found, [], cursor=None, segment=segments.number)
            stored = Stores(
                self._directory,
                progress,
                segments,
                None,
                HandedPages(folder, number, board, clock, inline),
                [each for other, each in enumerate(stores) if other != number],
            )
            network = _Noted(self.through(FleetNetwork(self.fleet, clock)), number, self._sent, self._senders)
            transport = Transport(network, Limiter(LIMITS, clock=clock, rng=Random(number)), Memory(2**30))
            crawl = RepoCrawl(stored, transport, inline, inline, rules=self.rules, clock=clock)
            board.put(number, BoardField.COMPLETE, await crawl.run())


class _Noted:
    """Notes which part asked which host."""

    def __init__(self, network: Sends, part: int, sent: Counter[str], senders: dict[str, set[int]]) -> None:
        self._network, self._part, self._sent, self._senders = network, part, sent, senders

    async def send(self, task: Task) -> Reply:
        self._sent[task.host] += 1
        self._senders.setdefault(task.host, set()).add(self._part)
        return await self._network.send(task)
