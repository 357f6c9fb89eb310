"""Machines that share a crawl of a small web under virtual time, with all that can happen to them."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, Self, TypeVar, cast

import msgspec
from fake_objects import MemoryObjects
from small_web import Web, page, web
from turns import ManyTurns, TurnCaller, TurnPool, rest

from sanderling.crawls.fleet import DirectStoreCaller, FleetStores
from sanderling.crawls.fleet_copy import LedgerCopy
from sanderling.crawls.fleet_frontier import ledger_format
from sanderling.crawls.fleet_log import ObjectPlace
from sanderling.crawls.fleet_open import PartOpener, SharedCrawl
from sanderling.crawls.fleet_part import FleetPart
from sanderling.crawls.fleet_pull import PulledPart
from sanderling.crawls.fleet_worker import FleetWorker
from sanderling.crawls.parts import part_of
from sanderling.fetch.attempts import Sends
from sanderling.fetch.transport import Transport
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.limit.memory import Memory
from sanderling.pages.fleet import PagePartOpener
from sanderling.pages.folder import CrawlPlan
from sanderling.pages.rules import CrawlRules
from sanderling.stores.fleet import FleetCrawl, FleetStore, WorkerIdentity
from sanderling.stores.fleet_memory import FleetMemory, MemoryFleet
from sanderling.stores.leases import HeldLease, LeasesAwayError
from sanderling.stores.objects import ObjectFault
from sanderling.task import Reply, Task
from sanderling.testing import LoopClock

if sys.version_info >= (3, 14):
    from compression.zstd import decompress
else:
    from backports.zstd import decompress

T = TypeVar("T")

START, PARTS, LEASE = "http://start.example/", 8, 6.0
HOSTS, PAGES = 16, 6


def shore() -> Web:
    """Hosts that lead to each other, half of all links."""
    site = web(**{START: page(*(f"http://h{number}.example/" for number in range(3)))})
    for host in range(HOSTS):
        for number in range(PAGES):
            path = f"/{number}" if number else "/"
            inside = [f"/{(number * 2 + step) % PAGES or ''}" for step in (1, 2)]
            across = [f"http://h{(host * 5 + number + step) % HOSTS}.example{path}" for step in (1, 2)]
            site.answers[f"http://h{host}.example{path}"] = [page(*inside, *across)]
    site.latency = 0.4
    return site


class ThreadsClock(LoopClock):
    """The clock of the loop that runs now, for threads too."""

    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()

    def now(self) -> float:
        return self._loop.time()


class KilledError(Exception):
    """The machine is gone: nothing that it does has any effect."""


class Asked(NamedTuple):
    """A request, by the host's own log."""

    machine: str
    host: str
    url: str
    begun: float
    ended: float
    owner: str  # who had the part of the host then, by its server


@dataclass(slots=True)
class Link:
    """The way of a machine to everything outside."""

    chance: Random
    cut: bool = False  # to the servers
    lossy: float = 0.0  # how many answers of servers are lost, after they did what was asked
    killed: bool = False

    def check(self) -> None:
        if self.killed:
            raise KilledError
        if self.cut:
            raise LeasesAwayError("the way to it is cut")


class LinkedServer:
    """A server at the other end of a link, and sometimes away for everybody."""

    def __init__(self, server: MemoryFleet, link: Link, is_away: Callable[[], bool]) -> None:
        self._server, self._link, self._is_away = server, link, is_away

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the server has
        method = getattr(self._server, name)
        if not callable(method):
            return method

        async def ask(*args: Any, **more: Any) -> Any:  # noqa: ANN401 - as the method
            self._link.check()
            if self._is_away():
                raise LeasesAwayError("it is away")
            found = await method(*args, **more)
            if self._link.chance.random() < self._link.lossy:
                raise LeasesAwayError("its answer was lost")
            self._link.check()
            return found

        return ask


class LinkedWeb:
    """The web as one machine sees it."""

    def __init__(self, world: "FleetWorld", machine: str, link: Link) -> None:
        self._world, self._machine, self._link = world, machine, link

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def send(self, task: Task) -> Reply:
        if self._link.killed:
            raise KilledError
        begun, host = self._world.clock.now(), task.url.split("/")[2]
        owner = self._world.owner_of(host)
        try:
            return await self._world.web.send(task)
        finally:
            self._world.asked.append(Asked(self._machine, host, task.url, begun, self._world.clock.now(), owner))


class TakesTurns(PartOpener):
    """Opens parts whose threads take turns, and which may take a while to close."""

    closing = 0.0  # seconds

    def make_thread(self, name: str) -> TurnPool:
        del name
        return TurnPool()

    async def open(self, held: HeldLease) -> FleetPart:
        part = await super().open(held)
        part.stack.callback(lambda: rest(self.closing))
        return part


class TurnOpener(TakesTurns, PagePartOpener):
    """Opens parts of a crawl of pages."""


@dataclass(slots=True)
class Machine:
    """One worker."""

    name: str
    link: Link
    worker: FleetWorker
    opener: TakesTurns
    task: "asyncio.Task[bool]"
    leaves: bool = False
    jumped: list[float] = field(default_factory=lambda: [0.0])  # seconds that its boot clock is ahead

    def leave(self) -> None:
        """In order."""
        self.leaves = True
        self.worker.stop()

    def kill(self) -> None:
        """Nothing is closed in order, and nobody is told."""
        self.link.killed = True
        self.task.cancel()

    @property
    def runs(self) -> bool:
        return not self.task.done()


class FleetWorld:
    """All machines, the servers between them, and the web. A subclass has another system than pages."""

    system = "pages"

    def __init__(self, folder: Path, chance: Random, servers: int = 1) -> None:
        self.folder, self.chance = folder, chance
        self.clock, self.web, self.objects = ThreadsClock(), self.make_web(), MemoryObjects()
        self.memories = [FleetMemory(self.clock.wall) for _ in range(servers)]
        self.away = [False] * servers
        self.objects.fails = lambda _: ObjectFault.DOWN if self.objects_down else None
        self.objects_down = False
        self.rps = 0.5  # requests a second to a host
        self.rules = CrawlRules(max_same_text=0)
        self.asked: list[Asked] = []
        self.machines: list[Machine] = []
        self._numbers = count()
        self.crawl = FleetCrawl(
            name="shore",
            id="1",
            system=self.system,
            plan=msgspec.json.encode(self.make_plan()).decode(),
            parts=PARTS,
            seconds=LEASE,
            ledger=ledger_format(),
            objects="memory",
            started=1_800_000_000.0,
            servers=servers,
        )

    def make_web(self) -> Sends:
        """What is crawled."""
        return shore()

    def make_plan(self) -> msgspec.Struct:
        """What all machines agree in."""
        return CrawlPlan((START,), ("*.example",), 16)

    def make_opener(self, folder: Path, shared: SharedCrawl, transport: Callable[[], Transport[Any]]) -> TakesTurns:
        """What opens the parts of one machine."""
        return TurnOpener(folder, shared, self.clock, transport, self.rules)

    def unpack(self, body: bytes) -> bytes:
        """The rows of an object."""
        return body

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """All machines are gone afterwards."""
        asyncio.get_running_loop().set_default_executor(ManyTurns())
        try:
            yield self
        finally:
            for each in self.machines:
                each.kill()
            for each in self.machines:
                with suppress(BaseException):
                    await each.task

    async def join(self, *, speed: float = 1.0) -> Machine:
        """One more machine."""
        name, link = f"m{next(self._numbers)}", Link(Random(self.chance.random()))
        identity, jumped = WorkerIdentity(name, name, "1.0"), [0.0]
        began = self.chance.uniform(0, 1e6)
        linked = [
            LinkedServer(MemoryFleet(memory, "shore", identity), link, lambda which=which: self.away[which])  # type: ignore[misc]
            for which, memory in enumerate(self.memories)
        ]
        fleet = FleetStores([cast("FleetStore", each) for each in linked], TurnCaller())
        place = ObjectPlace(cast("Any", _LinkedObjects(self.objects, link)), "rows", "shore/")
        crawl = await self._begun(fleet)
        shared = SharedCrawl(fleet, crawl, place)
        opens = self.make_opener(self.folder / name, shared, lambda: self._transport(name, link))
        worker = FleetWorker(fleet, crawl, self.clock, lambda: began + speed * self.clock.now() + jumped[0], opens.open)
        opens.worker = worker
        machine = Machine(name, link, worker, opens, asyncio.create_task(worker.run()), jumped=jumped)
        self.machines.append(machine)
        return machine

    async def _begun(self, fleet: FleetStores) -> FleetCrawl:
        while True:
            with suppress(LeasesAwayError):
                return await fleet.begin(self.crawl)
            await asyncio.sleep(0.5)

    def _transport(self, name: str, link: Link) -> Transport[Any]:
        limiter = Limiter(
            LimiterRules(pace=PaceRules(initial_rps=self.rps, min_rps=min(self.rps, 0.25), max_rps=self.rps)),
            clock=self.clock,
            rng=Random(1),
        )
        return Transport(LinkedWeb(self, name, link), limiter, Memory(2**30))

    async def until_done(self, seconds: float) -> None:
        """All that run come to their end by themselves."""
        async with asyncio.timeout(seconds):
            await asyncio.wait([each.task for each in self.machines])
        for each in self.machines:
            if not each.link.killed:
                each.task.result()

    @property
    def running_machines(self) -> list[Machine]:
        return [each for each in self.machines if each.runs and not (each.link.killed or each.leaves)]

    # What came of it.

    async def rows(self) -> list[dict[str, Any]]:
        """All rows that are in commits."""
        found = []
        for part in range(PARTS):
            memory = self.memories[part % len(self.memories)]
            server = MemoryFleet(memory, "shore", WorkerIdentity("reader", "", ""))
            await server.find("shore")
            for each in await server.segments(part, 0):
                body = decompress(self.objects.there[f"rows/shore/{each.key}"].body)
                assert len(body) == each.size
                found += [json.loads(line) for line in self.unpack(body).splitlines()]
        return found

    async def brought(self, folder: Path, ledger: str, create: Callable[[Path, FleetCrawl], None]) -> list[PulledPart]:
        """All parts in folders of their own, each with its ledger as far as it is."""
        parts, place = [], ObjectPlace(cast("Any", self.objects), "rows", "shore/")
        for part in range(PARTS):
            memory = self.memories[part % len(self.memories)]
            server = cast("FleetStore", MemoryFleet(memory, "shore", WorkerIdentity("reader", "", "")))
            await server.find("shore")
            path = folder / f"{part:04}"
            LedgerCopy(path / ledger, server, part, place, lambda new: create(new, self.crawl), _ask).bring_up()
            parts.append(PulledPart(path, part, server, place))
        return parts

    def owner_of(self, host: str) -> str:
        """Who has the part of a host; nobody if it is empty."""
        part = part_of(host, PARTS)
        leases = self.memories[part % len(self.memories)].crawls["shore"].leases
        return next(each.holder for each in leases.holders() if each.part == part)

    def trespasses(self) -> list[Asked]:
        """Requests of machines whose part was somebody else's already."""
        return [each for each in self.asked if each.owner not in ("", each.machine)]

    def two_senders(self) -> list[tuple[Asked, Asked]]:
        """Requests of two machines to one host at a time, by the host's own log."""
        found, last = [], dict[str, Asked]()
        for each in sorted(self.asked, key=lambda one: one.begun):
            before = last.get(each.host)
            if before is not None and before.machine != each.machine and each.begun < before.ended:
                found.append((before, each))
            if before is None or each.ended > before.ended or before.machine != each.machine:
                last[each.host] = each
        return found

    def shares(self) -> dict[str, int]:
        """How many parts each machine has, by the servers."""
        counted = dict.fromkeys((each.name for each in self.running_machines), 0)
        for memory in self.memories:
            for each in memory.crawls["shore"].leases.holders():
                if each.holder in counted:
                    counted[each.holder] += 1
        return counted


def _ask(ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
    return DirectStoreCaller().wait_for(ask())


class _LinkedObjects:
    """The object store at the other end of a link."""

    def __init__(self, objects: MemoryObjects, link: Link) -> None:
        self._objects, self._link = objects, link

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a store has
        if self._link.killed:
            raise KilledError
        return getattr(self._objects, name)
