"""The house as it lives: looked at every second, and told to everyone who watches."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import msgspec

from sanderling.clock import Clock
from sanderling.observe.rates import Rates, Run
from sanderling.stores.durable import FolderError
from sanderling.web.house import Found, HouseReader
from sanderling.web.house_asking import Asking
from sanderling.web.house_facts import System, Track
from sanderling.web.house_history import EVERY
from sanderling.web.house_hosts import HostPage, HostRow, HostsQuery, page, requests_of, rows_of
from sanderling.web.house_past import Past, PastQuery, PastShown
from sanderling.web.problems import ProblemError, problem
from sanderling.web.stream import event

WATCHED = 15.0  # seconds after somebody last looked, until nothing is asked for any more that costs something
MOST_NAMED = 10  # systems in a message


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """All of it, as it is sent."""

    wall: float
    home: str
    version: str
    secured: bool  # whether data and actions need the token
    systems: Sequence[System]


class Seen(NamedTuple):
    """One look."""

    wall: float
    now: float
    found: dict[str, Found]
    systems: tuple[System, ...]


class Live:
    """`async with Live(...) as live`: looks every second from then on, and once before."""

    def __init__(self, home: Path, asking: Asking, clock: Clock, version: str, *, secured: bool) -> None:
        self.seen = Seen(clock.wall(), clock.now(), {}, ())
        self.asking = asking
        self.past: Past | None = None  # where what was is kept, if somebody wants that
        self._reader = HouseReader(home)
        self._clock = clock
        name = home.absolute().name or str(home)
        self._about = (name.encode("utf-8", "backslashreplace").decode(), version, secured)
        self._tick: tuple[Seen, bytes] | None = None
        self._tracks: dict[str, Track] = {}
        self._asked: dict[str, Rates] = {}
        self._rows: dict[str, tuple[Found, bool, list[HostRow]]] = {}
        self._news = asyncio.Event()
        self._watched = float("-inf")
        self._group = asyncio.TaskGroup()
        self._tasks: list[asyncio.Task[None]] = []

    def __repr__(self) -> str:
        return f"<Live {self._reader.home}: {len(self.seen.systems)} systems>"

    async def __aenter__(self) -> Self:
        await self.look()
        await self._group.__aenter__()
        self._tasks = [self._group.create_task(each) for each in (self._look_on(), self._ask_on())]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Look no more; what ended us is not the group's concern, and comes out as it was."""
        for task in self._tasks:
            task.cancel()
        await self._group.__aexit__(None, None, None)

    async def look(self) -> None:
        """Look now."""
        found = await asyncio.to_thread(self._reader.read)
        now, wall = self._clock.now(), round(self._clock.wall(), 3)
        by_name = {each.name: each for each in found}
        self._tracks = {name: self._tracks.get(name) or Track() for name in by_name}
        self._count(found)
        systems = [self._tracks[each.name].take(each, now, wall, self.asking.known(each.name)) for each in found]
        ordered = sorted(systems, key=lambda each: (not each.running, each.name))
        self.seen = Seen(wall, now, by_name, tuple(ordered))
        news, self._news = self._news, asyncio.Event()
        news.set()
        if self.past is not None:
            await self.past.take(wall, ((each.name, each.points or {}) for each in ordered))

    def _count(self, found: Sequence[Found]) -> None:
        """Count the requests to each host, whoever looks: a rate needs what was a few seconds ago."""
        self._asked = {each.name: self._asked.get(each.name) or Rates() for each in found}
        for each in found:
            if each.process is not None:
                run = Run(each.process.pid, each.process.started)
                self._asked[each.name].take(run, each.process.wall, requests_of(each))

    async def _look_on(self) -> None:
        while True:
            await self._clock.sleep(EVERY)
            await self.look()

    async def _ask_on(self) -> None:
        while True:
            if self._clock.now() - self._watched < WATCHED:
                await self.asking.ask(self.seen.found.values())
            await self._clock.sleep(EVERY)

    def found(self, name: str) -> Found:
        """The system of that name. Raises ProblemError."""
        if name not in self.seen.found:
            raise self._missing(name)
        return self.seen.found[name]

    def _missing(self, name: str) -> ProblemError:
        names = [f"{each!a:.60}" for each in self.seen.found]
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        there = f"there are {', '.join(names[:MOST_NAMED])}{more}" if names else "there are none in this home yet"
        return problem(404, f"there is no system {name!a:.100}; {there}")

    def house(self) -> bytes:
        """All of it, with what was."""
        self._watched = self._clock.now()
        wall = self.seen.wall
        systems = [
            msgspec.structs.replace(each, points=msgspec.UNSET, history=self._tracks[each.name].history(wall))
            for each in self.seen.systems
        ]
        return self._encoded(systems)

    def tick(self) -> bytes:
        """All of it, with the newest points of what was."""
        if self._tick is None or self._tick[0] is not self.seen:
            self._tick = self.seen, self._encoded(self.seen.systems)  # once, however many watch
        return self._tick[1]

    def _encoded(self, systems: Sequence[System]) -> bytes:
        home, version, secured = self._about
        wall = self.seen.wall
        return msgspec.json.encode(Shown(wall=wall, home=home, version=version, secured=secured, systems=systems))

    @property
    def position(self) -> int:
        """Of a stream: when it was last looked."""
        return int(self.seen.wall)

    async def told(self) -> AsyncGenerator[bytes, None]:
        """For a stream: the house, and then every second what is new."""
        yield event("house", self.house(), self.position)
        while True:
            await self._news.wait()
            self._watched = self._clock.now()
            yield event("tick", self.tick(), self.position)

    async def was(self, query: PastQuery) -> PastShown:
        """What was of a system. Raises ProblemError."""
        self.found(query.system)
        past = self.past or Past(self._reader.home)
        try:
            return await asyncio.to_thread(past.read, query, self.seen.wall)
        except FolderError as error:
            raise problem(503, str(error)) from None

    def hosts(self, query: HostsQuery) -> HostPage:
        """The hosts of a system, or of all. Raises ProblemError."""
        wanted = self.seen.found.values() if query.system is None else (self.found(query.system),)
        return page([row for each in wanted for row in self.rows_of(each)], query)

    def rows_of(self, found: Found) -> list[HostRow]:
        """Made once for every status, since there may be ten thousand."""
        known, running = self._rows.get(found.name), found.running(self.seen.wall)
        if known is None or known[0] is not found or known[1] != running:
            self._rows = {name: each for name, each in self._rows.items() if name in self.seen.found}
            asked = self._asked[found.name].rate if running else _nothing
            known = self._rows[found.name] = (found, running, rows_of(found, asked))
        return known[2]


def _nothing(_host: str) -> float:
    """What a system asks of a host when it does not run."""
    return 0.0
