"""A race day that is polled under virtual time: our real code and a real database, without sockets.

What outlives a process is here, and a process is a `PollingSystem`: there may be one after the other.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from world_networks import RaceNetwork

from sanderling.apis.trackside import Trackside
from sanderling.cli.polling.flags import PollingUpstream
from sanderling.fetch.attempts import Fetcher
from sanderling.fetch.guard import GuardRules
from sanderling.limit import Limiter
from sanderling.limit.memory import Memory
from sanderling.polling.control import PollingControl
from sanderling.polling.source import ENGINE
from sanderling.polling.system import PollingResources, PollingSystem
from sanderling.polling.watch import PollingWatch
from sanderling.stores.polling import Op, RowChange
from sanderling.stores.polling_store import PollingStore
from sanderling.stores.sqlite_polling import open_sqlite_polling
from sanderling.task import Reply, Task
from sanderling.testing import LoopClock, run_virtual
from sanderling.worlds.race import BEGAN, ORIGIN, RaceDay, RaceRules

T = TypeVar("T")
RPS = 200.0
ROUNDING = 1e-6  # seconds by which two times may be closer than they were meant to be


async def at_once(work: Callable[..., T], /, *args: Any) -> T:  # noqa: ANN401 - whatever `work` takes
    """A desk without threads: under virtual time nothing may happen elsewhere."""
    return work(*args)


class SetClock(LoopClock):
    """A clock whose wall somebody sets."""

    ahead = 0.0

    def wall(self) -> float:
        """Seconds since 1970, as far as anyone knows."""
        return super().wall() + self.ahead


class WatchedNetwork(RaceNetwork):
    """Notes when each path was asked for, and how many at once."""

    def __init__(self, day: RaceDay, clock: LoopClock, *, guard: GuardRules) -> None:
        super().__init__(day, clock, guard=guard)
        self.times: dict[str, list[float]] = {}
        self.flying: dict[str, list[float]] = {}  # when each request left that is out
        self.most_at_once = 0
        self.most_of_one = 0
        self.broken: set[str] = set()  # paths that answer with a broken document
        self.delay: Callable[[float], float] = lambda _: 0.0  # seconds more that an answer takes
        self.outage: Callable[[str, float], Coroutine[Any, Any, Reply] | None] = lambda _path, _now: None
        self._now = clock.now

    async def send(self, task: Task) -> Reply:
        path = "/" + task.url.split("/", 3)[3]
        self.times.setdefault(path, []).append(self._now())
        left, flying = self._now(), self.flying.setdefault(path, [])
        flying.append(left)
        self.most_at_once = max(self.most_at_once, sum(map(len, self.flying.values())))
        if path != self.day.path("Event"):  # which discovery asks for, too
            # What is live is asked for once more beside a request that hangs.
            self.most_of_one = max(self.most_of_one, sum(left - each < ENGINE.hangs - ROUNDING for each in flying))
        try:
            if (failing := self.outage(path, self._now())) is not None:
                return await failing
            await asyncio.sleep(more := self.delay(self._now()))
            reply = await super().send(task)
            reply = replace(reply, latency=reply.latency + more)
            return replace(reply, body=b'[{"ID": "') if path in self.broken else reply
        finally:
            flying.remove(left)


class Polling:
    """A race day and a database, and the system that is at it."""

    def __init__(self, folder: Path, rules: RaceRules | None = None, *, seed: int = 1) -> None:
        self.clock = SetClock()
        self.path = folder / "polling.db"
        self.day = RaceDay(seed, rules, began=BEGAN)
        world = LoopClock()  # nobody sets the upstream's clock
        self.network = WatchedNetwork(self.day, world, guard=GuardRules(private=True, raw_addresses=True))
        self.source = Trackside(ORIGIN)
        self.limiter: Limiter
        self.system: PollingSystem
        self.control: PollingControl
        self.store: PollingStore

    async def open(self, store: PollingStore | None = None) -> PollingSystem:
        """A new process at the same database."""
        self.store = store or await open_sqlite_polling(self.path, self.source.schema, self.source.name, at_once)
        # That of the command, with a chance that is always the same.
        rules = PollingUpstream(rps=RPS).limiter(self.clock).rules
        self.limiter = Limiter(rules, clock=self.clock, rng=Random(1))
        fetcher = Fetcher(self.network, self.limiter, clock=self.clock, follow=False, retry=False)
        tools = PollingResources(self.source, fetcher, self.limiter, Memory(2**28), self.store, at_once)
        self.system = PollingSystem(tools, clock=self.clock, rng=Random(1))
        self.control = PollingControl(self.system, PollingWatch(self.system))
        await self.system.open()
        return self.system

    async def during(self, script: Callable[[], Awaitable[object]]) -> None:
        """Poll while the script runs, then stop gracefully."""

        async def play() -> None:
            try:
                await script()
            finally:
                self.system.stop()

        await self.system.run(play())

    async def run(self, seconds: float) -> None:
        """Open, poll for so long, stop, close."""
        await self.open()
        await self.during(lambda: self.clock.sleep(seconds))
        await self.store.close()

    async def killed_after(self, seconds: float) -> None:
        """Poll for so long and end like a process that is killed: nothing is written back, nothing is closed neatly."""
        await self.open()
        flush = self.system.sync.flush

        async def nothing() -> None:
            return None

        self.system.sync.flush = nothing  # type: ignore[method-assign]
        try:
            async with asyncio.timeout(seconds):
                await self.system.run()
        except TimeoutError:
            pass
        self.system.sync.flush = flush  # type: ignore[method-assign]
        await self.store.close()

    async def reopened(self) -> PollingStore:
        """The database, for whoever only looks."""
        return await open_sqlite_polling(self.path, self.source.schema, self.source.name, at_once)

    # What is true.

    def asked(self, path: str) -> list[float]:
        """When a path was asked for, in seconds of the day."""
        return self.network.times.get(path, [])


async def everything(store: PollingStore) -> list[RowChange]:
    """All changes there are."""
    found: list[RowChange] = []
    while page := await store.changes(found[-1].seq if found else 0, 1000):
        found += page
    return found


def replayed(changes: list[RowChange]) -> dict[str, dict[str, dict[str, object]]]:
    """The rows that the changes add up to, by table and key."""
    tables: dict[str, dict[str, dict[str, object]]] = {}
    for change in changes:
        table = tables.setdefault(change.table, {})
        if change.op is Op.PURGE:
            tables.clear()
        elif change.op is Op.DELETE:
            del table[change.key]
        else:
            assert (change.op is Op.INSERT) == (change.key not in table), change
            table[change.key] = dict(change.values)
    return {name: rows for name, rows in tables.items() if rows}


async def stored(polling: Polling) -> dict[str, dict[str, dict[str, object]]]:
    """The rows that are there, by table and key."""
    tables: dict[str, dict[str, dict[str, object]]] = {}
    for table in polling.source.schema.tables:
        rows: dict[str, dict[str, object]] = {}
        while page := await polling.store.rows(table.name, after=max(rows, default=""), most=1000):
            rows |= {row.key: dict(row.values) for row in page}
        if rows:
            tables[table.name] = rows
    return tables


def play(script: Coroutine[Any, Any, T]) -> T:
    """Run it under virtual time."""
    return run_virtual(script)
