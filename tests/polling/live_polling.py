"""Live documents of an upstream that may behave as badly as HTTP allows, polled under virtual time.

The upstream knows nothing of polling: it gets requests and gives replies, by RFC 9110. Our code is real, and so is the
database.
"""

import asyncio
import errno
import json
from collections.abc import Callable, Coroutine
from email.utils import formatdate
from pathlib import Path
from random import Random
from typing import Any

from race_polling import at_once, play

from sanderling.apis.json_source import JsonSource
from sanderling.executor import Executor
from sanderling.fetch.attempts import Fetcher
from sanderling.limit import Limiter, LimiterRules
from sanderling.limit.memory import Memory
from sanderling.observe.report import Report
from sanderling.polling.report import PollingFacts
from sanderling.polling.system import PollingResources, PollingSystem
from sanderling.polling.watch import PollingWatch
from sanderling.stores.polling import PollingStoreError
from sanderling.stores.polling_store import PollingStore
from sanderling.stores.sqlite_polling import open_sqlite_polling
from sanderling.task import Headers, Reply, Task
from sanderling.testing import LoopClock

HOST = "scores.example"
ORIGIN = f"http://{HOST}"
TIMEOUT = 5.0  # seconds, the default of the command
LIVE_FROM = 10.0  # by then everything is known and under way

Outage = Callable[[], Coroutine[Any, Any, Reply]]


async def refused_connection() -> Reply:
    """Nobody listens."""
    raise ConnectionRefusedError(errno.ECONNREFUSED, "nobody listens")


async def reset() -> Reply:
    """Somebody cuts the connection."""
    raise ConnectionResetError(errno.ECONNRESET, "reset by peer")


async def silence() -> Reply:
    """Somebody accepts the connection, and that is all."""
    await asyncio.sleep(3600)
    raise AssertionError("nobody waits for an hour")


def saying(status: int, **headers: str) -> Outage:
    """Somebody answers so; underscores in names become hyphens."""

    async def say() -> Reply:
        return answer(status, b"", **headers)

    say.__name__ = f"say_{status}"
    return say


def answer(status: int, body: bytes = b"", **headers: str) -> Reply:
    """A reply, as it comes from a client."""
    named: Headers = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Reply(status, named, body, ORIGIN, 0.0)


class Upstream:
    """Documents that change every so often, and a list of them. Stands where `fetch.http.Http` would."""

    def __init__(self, clock: LoopClock, live: int, idle: int) -> None:
        self.times: dict[str, list[float]] = {}  # when each path was asked for
        self.latency: Callable[[float], float] = lambda _: 0.008
        self.outage: Callable[[str, float], Outage | None] = lambda _path, _now: None
        self.ids = {f"live{number}": "live" for number in range(live)} | {f"idle{n}": "over" for n in range(idle)}
        self.changes = 2.0  # seconds between changes of a document
        self.most_at_once = 0
        self.conditions: list[dict[str, str]] = []
        self._clock = clock
        self._flying = 0

    async def send(self, task: Task) -> Reply:
        """One exchange, for as long as a client waits. Raises what one would."""
        began, path = self._clock.now(), "/" + task.url.split("/", 3)[3]
        self.times.setdefault(path, []).append(began)
        self.conditions.append({name.lower(): value for name, value in task.headers})
        self._flying += 1
        self.most_at_once = max(self.most_at_once, self._flying)
        try:
            async with asyncio.timeout(TIMEOUT):
                failing = self.outage(path, began)
                reply = await (self._answer(path) if failing is None else failing())
        except TimeoutError:
            raise TimeoutError("first byte") from None
        finally:
            self._flying -= 1
        return Reply(reply.status, reply.headers, reply.body, task.url, self._clock.now() - began)

    async def _answer(self, path: str) -> Reply:
        await asyncio.sleep(self.latency(self._clock.now()))
        date = formatdate(self._clock.wall(), usegmt=True)
        return answer(200, json.dumps(self.document(path)).encode(), Date=date)

    def document(self, path: str) -> object:
        """What there is at a path."""
        if path == "/list":
            return list(self.ids)
        name, version = path.rsplit("/", 1)[1], int(self._clock.now() / self.changes)
        return {"id": name, "state": self.ids.get(name, "live"), "version": version}

    # What it saw.

    def rate(self, begin: float, end: float, name: str = "live0") -> float:
        """How often a second a document was asked for."""
        return sum(begin <= at < end for at in self.times.get(f"/match/{name}", ())) / (end - begin)

    def rates(self, begin: float, end: float) -> list[float]:
        """The same for each that is live."""
        return [self.rate(begin, end, name) for name, state in self.ids.items() if state == "live"]

    def first(self, after: float) -> float:
        """Seconds until anything was asked for."""
        return min((at for times in self.times.values() for at in times if at >= after), default=1e9) - after

    def first_live(self, after: float) -> float:
        """Seconds until one that is live was asked for."""
        live = (times for path, times in self.times.items() if self.ids.get(path.removeprefix("/match/")) == "live")
        return min((at for times in live for at in times if at >= after), default=1e9) - after

    def longest_gap(self, begin: float, end: float) -> float:
        """Seconds between two requests at most, whatever they were for."""
        times = sorted(at for each in self.times.values() for at in each if begin <= at < end)
        return max(b - a for a, b in zip([begin, *times], [*times, end], strict=True))


def during(begin: float, seconds: float, outage: Outage, path: str = "") -> Callable[[str, float], Outage | None]:
    """The outage, for all paths or those that have this in them."""
    return lambda asked, now: outage if begin <= now < begin + seconds and path in asked else None


class Absent:
    """A database that is not to be had for a while, and takes so many seconds to say so."""

    def __init__(self, store: PollingStore, begin: float, end: float, seconds: float) -> None:
        self.database = store.database
        self._store = store
        self._begin = begin
        self._end = end
        self._seconds = seconds

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, object]]:
        method = getattr(self._store, name)

        async def call(*args: object, **options: object) -> object:
            if self._begin <= asyncio.get_running_loop().time() < self._end:
                await asyncio.sleep(self._seconds)
                raise PollingStoreError("nobody there")
            return await method(*args, **options)

        return call


class Live:
    """The upstream, a database, and the system that polls the one into the other."""

    def __init__(self, folder: Path, live: int = 1, idle: int = 0, *, listed: bool = True) -> None:
        self.clock = LoopClock()
        self.upstream = Upstream(self.clock, live, idle)
        match: dict[str, object] = {
            "url": f"{ORIGIN}/match/{{id}}" if listed else f"{ORIGIN}/match/live0",
            "active_when": 'state = "live"',
            "seconds": 10.0,
            "active_seconds": 0.2,
        }
        listing = {"ids_url": f"{ORIGIN}/list"} if listed else {}
        self.source = JsonSource.from_settings({"name": "scores", "kinds": {"match": match | listing}})
        self.settings: dict[str, str] = {}
        self.max_rps = 100.0
        self.desk: Executor = at_once
        self.wrapped: Callable[[PollingStore], PollingStore] = lambda store: store
        self.saved: bytes | None = None  # what a limiter has kept of an earlier process
        self.limiter: Limiter
        self.system: PollingSystem
        self.status: Report[PollingFacts]  # when the last process ended
        self._path = folder / "polling.db"

    async def run(self, seconds: float) -> None:
        """One process, for so long, and killed then: nothing is written back."""
        store = await open_sqlite_polling(self._path, self.source.schema, self.source.name, self.desk)
        self.limiter = Limiter(LimiterRules.contract(self.max_rps), clock=self.clock, rng=Random(1))
        if self.saved is not None:
            self.limiter.restore(self.saved)
        fetcher = Fetcher(self.upstream, self.limiter, clock=self.clock, follow=False, retry=False)
        tools = PollingResources(self.source, fetcher, self.limiter, Memory(2**28), self.wrapped(store), self.desk)
        self.system = PollingSystem(tools, clock=self.clock, rng=Random(1))
        await self.system.open()
        for key, text in self.settings.items():
            await self.system.live.set(key, text)
        try:
            async with asyncio.timeout(seconds):
                await self.system.run()
        except TimeoutError:
            pass
        self.saved, self.status = self.limiter.save(), PollingWatch(self.system).report()
        await self.after(store)
        await store.close()

    async def after(self, store: PollingStore) -> None:
        """For whoever wants to look at what is stored."""

    def poll(self, seconds: float) -> None:
        """The same from the beginning of time on."""
        play(self.run(seconds))
