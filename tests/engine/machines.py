"""One process over the disk of a world: the source, the handler and the sink of an engine, as its ports want them."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from heapq import heappop, heappush
from itertools import count
from math import inf
from random import Random
from typing import Any

import msgspec
from worlds import TRICKLE, Aside, Ended, Fault, Item, Key, Record, Request, StoreAwayError, Waits, World

from sanderling.engine.classes import Class
from sanderling.engine.hosts import HostState
from sanderling.engine.loop import Engine
from sanderling.engine.ports import Settled
from sanderling.engine.writer import Writer
from sanderling.fetch.classify import feedback, of_error, of_reply
from sanderling.limit import Limiter, Permit
from sanderling.outcome import Code, Outcome
from sanderling.task import Blame
from sanderling.testing import run_virtual

TIMEOUT, PROBE_TIMEOUT = 30.0, 10.0  # seconds until a request without an answer is given up, and a probe
FOREVER = 4 * 3600.0  # seconds: a run that takes longer has no end


class Place(HostState):
    """A host, and what waits for it."""

    __slots__ = ("queues",)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.queues: dict[Class, list[tuple[float, int, Item]]] = {}


class Memory:
    """The source."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._order = count()
        self.loading = True
        self.draining = False
        self.writer: Writer[Record, Item, frozenset[Key], list[Item]]
        self.places = {name: Place(name) for name in world.plans}
        self.open = {row.item.id for row in world.disk.waiting}
        self.out: dict[Key, Item] = {}
        self.failed_before: set[Key] = set()
        self.unwritten = self.unwritten_bytes = self.taken = 0
        for row in world.disk.waiting:
            if row.failures:
                self.places[row.item.host].recall(row.item.key, row.failures, world.clock.now())
                self.failed_before.add(row.item.id)
            self.queue(row.item, row.due)

    def queue(self, item: Item, due: float) -> None:
        """An item waits."""
        of = Class.AGAIN if item.id in self.failed_before else item.of
        heappush(self.places[item.host].queues.setdefault(of, []), (due, next(self._order), item))

    def classes(self, host: Place, now: float) -> list[Class]:
        """What is due."""
        return [of for of, queue in sorted(host.queues.items()) if queue and queue[0][0] <= now]

    def due(self, host: Place, now: float) -> float | None:  # noqa: ARG002 - the port's
        """When something is."""
        return min((queue[0][0] for queue in host.queues.values() if queue), default=None)

    def take(self, host: Place, of: Class, now: float) -> Item | None:
        """Hand out the first of a class."""
        queue = host.queues.get(of)
        if not queue or queue[0][0] > now:
            self._world.wrong.append(f"took {of.name} of {host.name}, where nothing of it is due")
            return None
        return self._hand_out(heappop(queue)[2])

    def take_untried(self, host: Place, now: float) -> Item | None:
        """Hand out what has not failed."""
        for of, queue in sorted(host.queues.items()):
            if of is not Class.AGAIN and queue and queue[0][0] <= now:
                return self._hand_out(heappop(queue)[2])
        return None

    def untried(self, host: str, now: float) -> int:
        """How much `take_untried` could hand out."""
        queues = self.places[host].queues.items()
        return sum(1 for of, queue in queues if of is not Class.AGAIN for due, _, _ in queue if due <= now)

    def _hand_out(self, item: Item) -> Item | None:
        if item.skip:
            self._end(item, Outcome(Code.SKIPPED))
            return None
        self.out[item.id] = item
        self.taken += 1
        return item

    def enough(self, inflight: int) -> bool:
        """Whether so many are wanted, and no more."""
        ended = len(self._world.disk.rows) - len(self.open)
        return ended + inflight >= self._world.rules.wanted

    def settled(self, host: Place, work: Item, settled: Settled[str], now: float) -> None:  # noqa: ARG002
        """The item has its end."""
        self._take_back(work, "settled")
        self._end(work, settled.outcome, settled.size)
        if settled.outcome.ok:
            for child in work.children:
                self.writer.find(child)

    def later(self, host: Place, work: Item, outcome: Outcome, due: float) -> None:
        """It has not failed."""
        self._take_back(work, "later")
        if due < self._world.clock.now() or outcome.ok:
            self._world.wrong.append(f"{work.id} is due again at {due} after {outcome}")
        if due == inf:
            self._world.left.add(work.id)
        self._wait(work, host.failures(work.key), due)

    def failed(self, host: Place, work: Item, outcome: Outcome, failures: int, due: float | None) -> None:  # noqa: ARG002
        """It has failed."""
        self._take_back(work, "failed")
        if outcome.ok or failures < 1:
            self._world.wrong.append(f"{work.id} has failed {failures} times, with {outcome}")
        if due is None:
            self._end(work, outcome)
            return
        self.failed_before.add(work.id)
        self._wait(work, failures, due)

    def leave(self, host: Place, outcome: Outcome, due: float) -> None:
        """A host is away, or still is."""
        self._world.dues.append((host.name, due))
        if host.aside:
            return
        self._world.asides.append((self._world.clock.now(), host.name))
        self._world.note("aside", host.name, outcome.code)
        self._add(Aside(host.name, outcome))

    def welcome(self, host: Place) -> None:
        """It is back."""
        self._world.welcomes.append((self._world.clock.now(), host.name))
        self._world.note("welcome", host.name)
        self._add(Aside(host.name, None))

    def drain(self) -> None:
        """What is found from now on is for the next process."""
        self.draining = True

    def written(self, result: list[Item]) -> list[Place]:
        """What was found may be asked for, unless we drain."""
        self.open.update(item.id for item in result)
        if self.draining:
            return []
        for item in result:
            self.queue(item, item.due)
        return [self.places[name] for name in dict.fromkeys(item.host for item in result)]

    def checkpoint(self) -> frozenset[Key]:
        """What has no end now."""
        return frozenset(self.open)

    def _take_back(self, item: Item, what: str) -> None:
        if self.out.pop(item.id, None) is None:
            self._world.wrong.append(f"{item.id} is {what}, and was not out")

    def _wait(self, item: Item, failures: int, due: float) -> None:
        if not failures:
            self.failed_before.discard(item.id)
        self._add(Waits(item.id, failures, due if due < inf else self._world.clock.now()))
        if due < inf:
            self.queue(item, due)

    def _end(self, item: Item, outcome: Outcome, size: int = 0) -> None:
        if item.id not in self.open:
            self._world.wrong.append(f"{item.id} ends twice")
        if item.id not in self._world.ever and not item.skip:
            self._world.wrong.append(f"{item.id} ends with {outcome}, and was never asked for")
        self.open.discard(item.id)
        self._world.note("ended", item.host, item.name, outcome.code)
        record = Ended(item.id, outcome, size)
        self._world.ends.append((self._world.clock.now(), record))
        self._add(record, size)

    def _add(self, record: Record, size: int = 0) -> None:
        if isinstance(record, Ended):
            self.unwritten += 1
            self.unwritten_bytes += size
            most = self._world.most
            most["ended"] = max(most["ended"], self.unwritten)
            most["ended bytes"] = max(most["ended bytes"], self.unwritten_bytes)
        self.writer.add(record, size)


class Sink:
    """Writes to the disk, unless its process is dead."""

    def __init__(self, world: World, memory: Memory) -> None:
        self._world = world
        self._memory = memory
        self._stopped = asyncio.Event()
        self.dead = False

    async def write(self, ended: Sequence[Record], found: Sequence[Item], checkpoint: frozenset[Key]) -> list[Item]:
        """Half of the time before the disk has it, half until we know."""
        world, store = self._world, self._world.rules.store
        world.writes.append((world.clock.now(), list(ended)))
        world.note("write", len(ended), len(found), len(checkpoint))
        await asyncio.sleep(store.takes / 2)
        start, end = store.away
        if start <= world.clock.now() < end:
            await self._wait(end - world.clock.now())
        if self.dead:
            raise StoreAwayError
        new = [item for item in dict.fromkeys(found) if item.id not in world.disk.rows]
        world.disk.commit(ended, found, checkpoint)
        sizes = [record.size for record in ended if isinstance(record, Ended)]
        self._memory.unwritten -= len(sizes)
        self._memory.unwritten_bytes -= sum(sizes)
        await asyncio.sleep(store.takes / 2)
        return new

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopped.wait()
        except TimeoutError:
            return
        raise StoreAwayError

    def stop(self) -> None:
        """Wait no longer for a store that is away."""
        self._stopped.set()


class Asker:
    """The handler."""

    def __init__(self, world: World, memory: Memory, limiter: Limiter) -> None:
        self._world = world
        self._memory = memory
        self._limiter = limiter
        self._out: dict[Key, Request] = {}

    async def __call__(self, work: Item, permit: Permit, blame: Blame) -> Settled[str]:
        """Ask as `fetch.attempts` does."""
        world, now = self._world, self._world.clock.now()
        request = Request(work, now, permit.probe, blame.of_host, blame.failures, self._memory.untried(work.host, now))
        self._send(request, permit)
        try:
            outcome = await self._answer(request)
        except OSError as error:
            outcome = of_error(error)
        finally:
            self._out.pop(work.id, None)
            world.flying[work.host].remove(request)
        request.outcome, request.ended = outcome, world.clock.now()
        of_host, unsent = request.fault is Fault.OWN, request.fault is Fault.UNREACHED
        blame = blame._replace(of_host=True) if of_host else blame
        lesson = feedback(outcome, request.ended - request.at)
        self._limiter.feedback(permit, msgspec.structs.replace(lesson, blame=blame, unsent=unsent))
        if outcome.retry_after:
            world.quiet[work.host] = (request.ended, request.ended + outcome.retry_after)
        flawed = request.fault is Fault.FLAWED
        if flawed:
            request.outcome = outcome = Outcome(Code.HTTP_ERROR, 200, "is something else")
        world.note("answer", work.host, work.name, outcome.code)
        return Settled(outcome, work.name, size=work.size if outcome.ok else 0, flawed=flawed, of_host=of_host)

    def received(self, work: Item) -> int | None:
        """Bytes so far."""
        return self._out[work.id].received if work.id in self._out else 0

    def _send(self, request: Request, permit: Permit) -> None:
        """Write down that a request leaves, and what is wrong with that."""
        world, item = self._world, request.item
        if not permit.live or permit.host != item.host:
            world.wrong.append(f"{item.id} was sent with {permit!r}")
        asked, until = world.quiet.get(item.host, (inf, -inf))
        if asked < request.at < until - 1e-9:
            world.wrong.append(f"{item.id} was sent at {request.at}, though asked for quiet until {until}")
        if item.id in self._out:
            world.wrong.append(f"{item.id} was sent twice at a time")
        request.fault = world.decide(item)
        world.sent.append(request)
        world.ever.add(item.id)
        world.note("sent", item.host, item.name, "probe" if request.probe else "")
        self._out[item.id] = request
        world.flying[item.host].append(request)
        world.most["host"] = max(world.most["host"], len(world.flying[item.host]))
        world.most["all"] = max(world.most["all"], sum(map(len, world.flying.values())))

    async def _answer(self, request: Request) -> Outcome:
        item, fault, chance = request.item, request.fault, self._world.chance[request.item.host]
        latency = self._world.plans[item.host].latency * (0.5 + chance.random())
        if fault is Fault.HANG:
            await asyncio.sleep(PROBE_TIMEOUT if request.probe else TIMEOUT)
            raise TimeoutError
        if fault in (Fault.TRICKLE, Fault.SILENT):
            latency = item.size / TRICKLE
        elif fault is Fault.SLOW:
            latency = 3 + 20 * chance.random()
        await asyncio.sleep(latency)
        match fault:
            case Fault.CUT:
                raise ConnectionResetError
            case Fault.UNREACHED:
                raise ConnectionRefusedError
        status = {Fault.ERROR: 500, Fault.OWN: 500, Fault.AWAY: 503, Fault.MISSING: 404}
        status |= dict.fromkeys((Fault.BUSY, Fault.BUSY_FOR), 429)
        headers = {"Retry-After": "20"} if fault is Fault.BUSY_FOR else {}
        return of_reply(status.get(fault, 200), headers, wall=self._world.clock.wall())


class Machine:
    """One process. `crash` ends it as a power cut would."""

    def __init__(self, world: World) -> None:
        rules = world.rules
        self.world = world
        self.limiter = Limiter(rules.limits, clock=world.clock, rng=Random(f"{world.seed}/limiter"))
        if world.saved is not None:
            self.limiter.restore(world.saved)
        for plan in world.plans.values():
            self.limiter.cap(plan.name, plan.cap, "a test")
        self.memory = Memory(world)
        self.sink = Sink(world, self.memory)
        self.writer = Writer(self.sink, self.memory.checkpoint, world.clock, rules.writer)
        self.memory.writer = self.writer
        self.asker = Asker(world, self.memory, self.limiter)
        self.engine = Engine(self.memory, self.asker, self.writer, self.limiter, world.clock, rules.engine)

    async def run(self, *beside: Coroutine[Any, Any, object]) -> None:
        """Until it ends."""
        async with asyncio.timeout(FOREVER):
            await self.engine.run(self._load(), *beside)

    async def _load(self) -> None:
        """What is on disk may be asked for."""
        self.memory.loading = False
        self.engine.wake(place for place in self.memory.places.values() if place.queues)

    async def run_until_crash(self) -> None:
        """The same for one that may be dead before."""
        with suppress(ExceptionGroup):
            await self.run()

    async def crash(self, running: "asyncio.Task[None]") -> None:
        """Nothing of what it does from now on is seen by anybody."""
        self.sink.dead = True
        self.world.quiet.clear()  # what a limiter has learned is lost with it
        running.cancel()
        await asyncio.wait([running])


def play(world: World, drive: Callable[[Machine], Coroutine[Any, Any, object]] | None = None) -> Machine:
    """Run one process in a world to its end; `drive` runs beside it."""

    async def main() -> Machine:
        machine = Machine(world)
        try:
            await machine.run(*([drive(machine)] if drive else []))
        except TimeoutError:
            world.wrong.append("the run has no end")
        world.clock_at_end = world.clock.now()
        return machine

    return run_virtual(main())
