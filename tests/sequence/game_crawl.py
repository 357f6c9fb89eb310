"""A whole crawl of a simulated game under virtual time: our real code, without sockets, and with what is true of it.

What outlives a process is here, and a process is a `SequenceSystem`: there may be one after the other.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import nullcontext
from dataclasses import replace
from math import inf
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from hostile_game import HostileGame, HostileRules
from sequence_parts import JumpingClock, MemoryQueue
from world_networks import GameNetwork

from sanderling.apis.bungie import Bungie
from sanderling.fetch.attempts import Fetcher
from sanderling.fetch.guard import GuardRules as Addresses
from sanderling.limit import Limiter, PaceRules
from sanderling.limit.memory import Memory
from sanderling.observe.alerts import Alert
from sanderling.sequence.cursor import Position
from sanderling.sequence.inquiries import limits
from sanderling.sequence.retries import Missed, Reason
from sanderling.sequence.scaling import ScaleRules
from sanderling.sequence.state import Fates, SavedCrawl, SequenceState
from sanderling.sequence.system import SequenceRules, SequenceServices, SequenceSystem
from sanderling.stores.durable import FolderError
from sanderling.task import Reply, Task
from sanderling.testing import LoopClock, run_virtual
from sanderling.worlds.game import ORIGIN, Game, GameRules
from sanderling.worlds.game_schedule import Piece, ScheduleRules

T = TypeVar("T")

RATE = 2.0  # ids a second: enough for every rule, and each costs a play some time
HISTORY = 60.0  # seconds of them when a crawl begins
MOST_RPS = 200.0
# Decisions every minute or so, and few workers: a small game.
SMALL = SequenceRules(scale=ScaleRules(min_workers=2, workers=8, max_workers=40, period=600))


def schedule(rate: float = RATE, history: float = HISTORY, **rules: Any) -> ScheduleRules:  # noqa: ANN401 - of ScheduleRules
    """A short history and then so many ids a second for ever, unless there are other pieces."""
    return ScheduleRules(**{"pieces": (Piece(-history, inf, rate),), "delay": 2.0, "spread": 2.0, **rules})


def game(**rules: Any) -> GameRules:  # noqa: ANN401 - of GameRules
    """A small game, of which a tenth is raids."""
    return (HostileRules if "hostile" in rules else GameRules)(**{"schedule": schedule(), "raids": 0.1, **rules})


class WatchedState(SequenceState):
    """Remembers of every write what it said."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._db.execute("PRAGMA synchronous = OFF")  # nobody pulls a plug here
        self.ended: dict[int, float] = {}  # when the record of an id was first noted, kept or not
        self.positions: list[Position] = []
        self.broken = False
        self.now = LoopClock().wall
        self.given_up: Counter[Reason] = Counter()  # ids, each time that one was newly missed

    def record(self, saved: SavedCrawl, fates: Fates) -> None:
        if self.broken:
            raise FolderError("the disk is full")
        super().record(saved, fates)
        for low, high in fates.gone:
            for number in range(low, high + 1):
                self.ended.setdefault(number, self.now())
        for each in fates.missed:
            self.given_up[each.reason] += len(each) if each.tries == 0 else 0
        self.positions.append(saved.position)


class CountingNetwork(GameNetwork):
    """Knows how many requests were in flight at most; with `slots`, no more are answered at the same time."""

    most = 0
    inflight = 0
    slots: asyncio.Semaphore | None = None

    async def send(self, task: Task) -> Reply:
        self.inflight += 1
        self.most = max(self.most, self.inflight)
        try:
            async with self.slots or nullcontext():
                return await super().send(task)
        finally:
            self.inflight -= 1


class GameCrawl:
    """A game and its crawl. `run` is a process, from where the last one came to."""

    def __init__(
        self,
        folder: Path,
        rules: GameRules,
        crawl: SequenceRules = SMALL,
        *,
        rps: float = MOST_RPS,
        kind: type[Game] = Game,
    ) -> None:
        self.clock = JumpingClock()  # of the crawl; the game goes by a better one
        self.true = LoopClock()
        began = self.true.wall()
        self.game = (
            HostileGame(rules, 1, began) if isinstance(rules, HostileRules) else kind(rules, seed=1, began=began)
        )
        self.game.tally.ids = Counter()
        self.network = CountingNetwork(self.game, self.true, guard=Addresses(private=True))
        self.queue = MemoryQueue(self.clock)
        self.state = WatchedState(folder / "sequence.db")
        self.rules = crawl
        self.alerts: list[tuple[float, Alert]] = []
        self.first = self.game.first
        self.system: SequenceSystem
        self.end: float | None = None
        self._pace = replace(PaceRules.up_to(rps), initial_rps=min(rps, 20.0))

    async def executor(self, work: Callable[..., T], /, *args: Any) -> T:  # noqa: ANN401 - whatever `work` takes
        """Takes a moment before and after, as a disk does: a crash can fall into either."""
        await self.true.sleep(0.01)
        result = work(*args)
        await self.true.sleep(0.01)
        return result

    def start(self, position: Position | None = None) -> SequenceSystem:
        """A new process, which goes on where the last one was."""
        clock = self.clock
        limiter = Limiter(limits(self._pace), clock=clock, rng=Random(2))
        fetcher = Fetcher(self.network, limiter, clock=clock)
        api = Bungie(ORIGIN)
        tools = SequenceServices(api, fetcher, limiter, Memory(2**26), self.state, self.queue, self.executor)
        if position is None:
            saved = self.state.load()
            position = Position(self.first) if saved is None else saved.position
        self.system = SequenceSystem(tools, position, self.rules, say=self._say, clock=clock, rng=Random(3))
        return self.system

    def _say(self, alert: Alert) -> None:
        self.alerts.append((self.true.now(), alert))

    async def run(self, seconds: float, *others: Coroutine[Any, Any, object]) -> None:
        """Crawl for so long, and come to an orderly end."""
        system = self.start()
        await system.run(self._stop_after(seconds), *others)

    async def crash(self, seconds: float) -> None:
        """Crawl for so long, and die."""
        running = asyncio.ensure_future(self.start().run())
        await self.true.sleep(seconds)
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()

    async def _stop_after(self, seconds: float) -> None:
        await self.true.sleep(seconds)
        self.system.stop()

    # What is true of it.

    def now(self) -> float:
        """The time by the game, in Unix seconds; when it is over, that of its end."""
        return self.true.wall() if self.end is None else self.end

    @property
    def missed(self) -> list[Missed]:
        """The ranges."""
        return self.state.missed(limit=10**6)

    @property
    def missed_ids(self) -> set[int]:
        """The ids."""
        return {number for each in self.missed for number in range(each.low, each.high + 1)}

    def live(self, age: float = 0.0) -> Iterator[int]:
        """The ids that could be fetched so many seconds ago."""
        then = self.now() - age
        newest = self.game.newest(then)
        return iter(()) if newest is None else self.game.ids(self.first, newest + 1, then)

    def without_fate(self) -> list[int]:
        """Ids that the crawl has passed, and of which nothing is known: what is lost."""
        saved = self.state.load()
        assert saved is not None
        known = self.state.ended.keys() | self.missed_ids | set(saved.position.open)
        return [number for number in range(self.first, saved.position.next) if number not in known]

    def not_ended(self, age: float) -> list[int]:
        """Ids that could be fetched so many seconds ago, and have no record here."""
        return [number for number in self.live(age) if number not in self.state.ended]

    def raids(self, age: float) -> set[str]:
        """The keys of the raids among those."""
        return {str(number) for number in self.live(age) if self.game.raid(number)}

    def said(self, kind: str) -> list[float]:
        """When people were told so."""
        return [at for at, alert in self.alerts if alert.kind == kind]

    def behind(self) -> float:
        """Seconds that the newest id we have is behind the newest there is."""
        newest = self.game.newest(self.now())
        return 0.0 if newest is None else self.game.born(newest) - self.game.born(max(self.state.ended))


Script = Callable[[GameCrawl], Coroutine[Any, Any, None]]


def play(folder: Path, rules: GameRules, script: float | Script, crawl: SequenceRules = SMALL, **how: Any) -> GameCrawl:  # noqa: ANN401 - of GameCrawl
    """Crawl a game for so many seconds, or as a script says."""

    async def main() -> GameCrawl:
        crawled = GameCrawl(folder, rules, crawl, **how)
        await (script(crawled) if callable(script) else crawled.run(script))
        crawled.end = crawled.true.wall()
        return crawled

    return run_virtual(main())
