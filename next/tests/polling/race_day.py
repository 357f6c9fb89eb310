"""A race day on virtual time: an upstream in memory, a database without threads, and what was requested when."""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from random import Random
from typing import Any

from sanderling.clock import LoopClock, run_virtual
from sanderling.fetch.messages import Headers, HttpResponse
from sanderling.outcome import Code, Outcome
from sanderling.polling.database import Statement
from sanderling.polling.scheduler import Scheduler
from sanderling.polling.settings import Settings
from sanderling.polling.store import Store
from sanderling.polling.tables import statements
from sanderling.polling.upstream import Requests, Trackside

BASE, EVENT = "http://localhost:8080", "event-1"


class InlineDatabase:
    """SQLite in memory, in the caller's thread; `slow` is what each commit takes."""

    def __init__(self, clock: LoopClock) -> None:
        self.db = sqlite3.connect(":memory:", isolation_level=None)
        self.slow = 0.0
        self._clock = clock
        for each in statements("sqlite"):
            self.db.execute(each)

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def read(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return self.db.execute(sql.replace("$", "?"), values).fetchall()

    async def write(self, wanted: Sequence[Statement], *, by_hand: bool = False) -> None:
        await self._clock.sleep(self.slow)
        self.db.execute("UPDATE stream SET own = ?", (not by_hand,))
        for sql, rows in wanted:
            self.db.executemany(sql.replace("$", "?"), rows)
        self.db.execute("UPDATE stream SET own = 0")

    def by_hand(self, sql: str, *values: object) -> None:
        self.db.execute(sql, values)


class RaceDay(Requests):
    """Upstream and scheduler. A test is a coroutine of it."""

    def __init__(self, races: int = 4, next_race: str = "second", **settings: Any) -> None:
        self.clock = LoopClock()
        self.database = InlineDatabase(self.clock)
        self.store = Store(self.database, self.clock)
        self.races = [f"race-{number}" for number in range(races)]
        self.times: dict[str, list[str | None]] = {race: [None, None] for race in self.races}
        self.asked: list[tuple[float, str]] = []  # when each path was requested
        self.took = 0.01
        self.down = False
        self.has_current = True
        self.in_flight = self.most_in_flight = 0
        self.busy_until = 0.0
        self.broken: set[str] = set()
        self.silent_until = 0.0
        self.scheduler = Scheduler(self.store, Trackside(BASE), self, self.clock, Random(1), next_race=next_race)
        self.settings = Settings(**settings)

    async def get(self, url: str, headers: Headers = ()) -> HttpResponse:
        path = url.removeprefix(BASE)
        self.asked.append((self.clock.now(), path))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            if self.down:
                return HttpResponse(Outcome(Code.CONNECTION_REFUSED, sent=False), url)
            self.busy_until = max(self.busy_until, self.clock.now()) + self.took  # one thread
            await self.clock.sleep(self.busy_until - self.clock.now())
        finally:
            self.in_flight -= 1
        if any(each in path for each in self.broken):
            return HttpResponse(Outcome(Code.HOST_UNAVAILABLE, 503), url, 1, 503)
        return HttpResponse(Outcome(Code.OK, 200), url, 1, 200, body=self.body(path))

    def ready_at(self, url: str) -> float:
        return self.silent_until

    def hold(self, url: str, seconds: float) -> None:
        self.silent_until = self.clock.now() + seconds

    def body(self, path: str) -> bytes:
        name = path.rpartition("/")[2]
        if path == "/current" and self.has_current:
            running = [race for race, (start, end) in self.times.items() if start and not end]
            return json.dumps({"CurrentRace": running[0] if running else None}).encode()
        if path in ("/", "/current"):
            return b'new EventManager("events/%s")' % EVENT.encode()
        match name:
            case "Event.json":
                return json.dumps(
                    [{"ID": EVENT, "Races": self.races, "RemovedPilots": [], "PilotChannels": []}]
                ).encode()
            case "Rounds.json":
                return b'[{"ID":"round","Order":100,"Valid":true}]'
            case "Race.json":
                race = path.split("/")[3]
                if race not in self.races:
                    return b""
                start, end = self.times[race]
                row = {"ID": race, "Round": "round", "RaceNumber": self.races.index(race), "Valid": True,
                       "Start": start or "0001/01/01 0:00:00", "End": end or "0001/01/01 0:00:00"}  # fmt: skip
                return json.dumps([{**row, "Laps": [], "Detections": [], "PilotChannels": []}]).encode()
            case "Result.json":
                return b'[{"Pilot":"p","ResultType":"Race"}]' if self.times[path.split("/")[3]][1] else b""
            case "Results.json":
                return b""
        return b"[]"

    def start(self, place: int) -> None:
        self.times[self.races[place]][0] = f"2026/01/01 10:00:{int(self.clock.now()) % 60:02d}"

    def end(self, place: int) -> None:
        self.times[self.races[place]][1] = f"2026/01/01 10:30:{int(self.clock.now()) % 60:02d}"

    def requests(self, part: str, since: float = 0.0) -> list[float]:
        return [at for at, path in self.asked if part in path and at >= since]

    def per_second(self, part: str, since: float) -> float:
        return len(self.requests(part, since)) / (self.clock.now() - since)

    async def column(self, race: int, name: str) -> Any:
        rows = self.database.db.execute(
            f'SELECT "{name}" FROM ingest_targets WHERE type = ? AND sourceId = ?', ("race", self.races[race])
        )
        return next(rows)[0]

    async def until(self, holds: Callable[[], object], seconds: float) -> float:
        begun = self.clock.now()
        while not holds():
            assert self.clock.now() - begun < seconds, f"not within {seconds} s"
            await self.clock.sleep(0.01)
        return self.clock.now() - begun


def play(day: Callable[[], RaceDay], story: Callable[[RaceDay], Coroutine[Any, Any, None]]) -> RaceDay:
    """Run a scheduler on a race day while its story is told."""

    async def told() -> RaceDay:
        world = day()
        await world.store.set_settings(world.settings.rows())
        running = asyncio.create_task(world.scheduler.run())
        try:
            await story(world)
            if running.done():
                await running
        finally:
            world.scheduler.stop()
            with suppress(asyncio.CancelledError):
                await running
        return world

    return run_virtual(told())
