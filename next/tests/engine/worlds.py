"""A world for the engine on virtual time: hosts with faults, a disk that survives a crash, and what happened, in order.

It keeps to `engine.ports`, and notes in `wrong` what must never be.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from math import inf
from random import Random
from typing import Any

from sanderling.clock import LoopClock, run_virtual
from sanderling.engine.blame import Verdict
from sanderling.engine.host_locks import HostLocks
from sanderling.engine.loop import Engine
from sanderling.engine.ports import Done, Handled, Parked
from sanderling.engine.rules import EngineRules
from sanderling.limit import Limiter, LimitOptions
from sanderling.limit.permit import Permit
from sanderling.outcome import Code, Outcome
from sanderling.stores import HostWork, Taken

TIMEOUT, PROBE_TIMEOUT = 30.0, 10.0


class Fault(Enum):
    """How a host responds: the outcome, and after how many seconds beyond its latency."""

    GOOD = Outcome(Code.OK, 200), 0.0
    MISSING = Outcome(Code.CONTENT_NOT_FOUND, 404), 0.0
    SLOW = Outcome(Code.OK, 200), 20.0
    HANG = Outcome(Code.TIMEOUT), TIMEOUT
    TARPIT = Outcome(Code.TIMEOUT, 200), 60.0  # a byte now and then
    RESET = Outcome(Code.CONNECTION_RESET), 0.0
    CUT = Outcome(Code.TRUNCATED, 200), 0.0
    ERROR = Outcome(Code.HOST_UNAVAILABLE, 503), 0.0
    REFUSED = Outcome(Code.RATE_LIMITED, 429), 0.0
    WAIT = Outcome(Code.RATE_LIMITED, 429, retry_after=20.0), 0.0
    UNREACHED = Outcome(Code.CONNECTION_REFUSED, sent=False), 0.0
    ROBOTS = Outcome(Code.HOST_UNAVAILABLE, 500), 0.1  # of a document of the host's own


OUTAGES = (Fault.HANG, Fault.RESET, Fault.ERROR, Fault.UNREACHED, Fault.ROBOTS)
BAD = (Fault.HANG, Fault.TARPIT, Fault.RESET, Fault.CUT, Fault.ERROR)  # of items


class RealisticClock(LoopClock):
    """Whoever reads it later reads more, as with a real clock. It notices who turns in circles."""

    reads = 0

    def now(self) -> float:
        self.reads += 1
        if self.reads > 2_000_000:
            raise SystemExit(f"the time is {super().now()}, and nothing comes to an end")
        return super().now() + 1e-10 * self.reads


@dataclass(frozen=True)
class Item:
    host: str
    key: str
    kind: str = "new"
    failures: int = 0
    due: float = 0.0
    fault: Fault = Fault.GOOD
    finds: tuple["Item", ...] = ()


@dataclass(frozen=True)
class Spell:
    """What a host does for a while, to a share of its requests."""

    fault: Fault
    start: float = 0.0
    end: float = inf
    share: float = 1.0


@dataclass
class Sent:
    item: Item
    at: float
    ended: float = inf
    outcome: Outcome | None = None


@dataclass
class World:
    """Hosts, with their latency and spells; the disk; and what happened."""

    items: Iterable[Item]
    spells: Mapping[str, tuple[Spell, ...]] = field(default_factory=dict)
    latency: float = 0.1
    rps: float | None = 8.0  # of every host, from the start; None: a limiter as users have it
    rules: EngineRules = field(default_factory=EngineRules)
    write_takes: float = 0.004
    away: tuple[float, float] = (inf, inf)  # when the store is not there
    wanted: float = inf
    seed: int = 0

    def __post_init__(self) -> None:
        self.clock = RealisticClock()
        self.random = Random(self.seed)
        self.by_host: dict[str, dict[str, Item]] = defaultdict(dict)
        self.known: set[tuple[str, str]] = set()
        self.ends: dict[tuple[str, str], Outcome] = {}
        self.ended_at: dict[tuple[str, str], float] = {}
        self.parked: dict[str, float] = {}  # until when
        self.parks: list[tuple[float, str, float | None]] = []
        self.sent: list[Sent] = []
        self.writes: list[tuple[float, int]] = []
        self.wrong: list[str] = []
        self.find(self.items)

    def find(self, items: Iterable[Item]) -> set[str]:
        new = [each for each in items if (each.host, each.key) not in self.known]
        for each in new:
            self.known.add((each.host, each.key))
            self.by_host[each.host][each.key] = each
        return {each.host for each in new}

    @property
    def waiting(self) -> list[Item]:
        return [item for items in self.by_host.values() for item in items.values()]

    def at(self, host: str) -> list[Sent]:
        return [each for each in self.sent if each.item.host == host]

    def asked(self, key: str) -> list[Sent]:
        return [each for each in self.sent if each.item.key == key]

    def last_end(self, *, host: str) -> float:
        return max(at for (name, _), at in self.ended_at.items() if name == host)

    def decide(self, item: Item) -> Fault:
        now = self.clock.now()
        for spell in self.spells.get(item.host, ()):
            if spell.start <= now < spell.end and (spell.share >= 1 or self.random.random() < spell.share):
                return spell.fault
        return item.fault

    async def store(self) -> None:
        """Wait for the store, as a ledger waits for its server."""
        if self.away[0] <= self.clock.now() < self.away[1]:
            await self.clock.sleep(self.away[1] - self.clock.now())


class Machine:
    """One process over a world: source, handler and sink of its engine."""

    def __init__(self, world: World, locks: HostLocks | None = None) -> None:
        self.world = world
        options = LimitOptions() if world.rps is None else LimitOptions(initial_rps=world.rps, max_rps=world.rps)
        self.limiter = Limiter(options, clock=world.clock, random=Random(world.seed))
        self.engine = Engine(self, self.handle, self, self.limiter, world.clock, world.rules, locks)
        self.taken: dict[str, set[str]] = defaultdict(set)
        self.held: set[str] = set()
        self.position = -1.0, ""  # behind the last host that was handed out
        self.calls = 0
        self.leased = True
        self.counted = len(world.ends)

    # The source.

    async def hosts(self, limit: int) -> Sequence[HostWork]:
        await self.world.store()
        self.calls += 1
        now, found = self.world.clock.now(), []
        for name, items in self.world.by_host.items():
            until = self.world.parked.get(name)
            due = min((each.due for each in items.values()), default=inf) if until is None else until
            if name not in self.held and due < inf and (until is None or until <= now):
                found.append((due, name, HostWork(name, max(0.0, due - now), parked=until is not None)))
        found.sort(key=lambda each: (each[:2] <= self.position, each))  # behind the last, and round again
        found = found[:limit]
        self.position = found[-1][:2] if len(found) == limit else (-1.0, "")
        self.held.update(name for _, name, _ in found)
        return [work for _, _, work in found]

    async def take(self, host: str, limit: int) -> Taken:
        await self.world.store()
        self.calls += 1
        if host not in self.held:
            self.world.wrong.append(f"{host} is not held")
        now = self.world.clock.now()
        waiting = [each for each in self.world.by_host[host].values() if each.key not in self.taken[host]]
        due = sorted((each for each in waiting if each.due <= now), key=lambda each: each.due)
        of_kind: dict[str, int] = defaultdict(int)
        items = []
        for each in due:
            of_kind[each.kind] += 1
            if of_kind[each.kind] <= limit:
                items.append(each)
        self.taken[host].update(each.key for each in items)
        rest = [each.due for each in waiting if each.key not in self.taken[host] and each.due < inf]
        return Taken(items, max(0.0, min(rest) - now) if rest else None)

    def probe(self, host: str) -> Item | None:
        return None

    def release(self, host: str) -> None:
        self.held.discard(host)
        self.taken.pop(host, None)

    def enough(self, pending: int) -> bool:
        return len(self.world.ends) - self.counted + pending >= self.world.wanted

    def may_send(self) -> bool:
        return self.leased

    # The handler.

    async def handle(self, item: Item, permit: Permit) -> Handled:
        world = self.world
        sent = Sent(item, world.clock.now())
        world.sent.append(sent)
        if not self.leased:
            world.wrong.append(f"{item.key} was sent without a lease")
        fault = world.decide(item)
        outcome, takes = fault.value
        longest = PROBE_TIMEOUT if permit.probe else inf
        await asyncio.sleep(min(longest, world.latency + takes))
        sent.ended, sent.outcome = world.clock.now(), outcome
        of_host = fault is Fault.ROBOTS
        permit.report(outcome, latency=sent.ended - sent.at, item=item.key, of_host=of_host)
        return Handled(outcome, item.finds if outcome.ok else (), size=1000, of_host=of_host)

    # The sink.

    async def write(self, batch: Sequence[Done], parked: Sequence[Parked]) -> Sequence[str]:
        world = self.world
        await asyncio.sleep(world.write_takes)
        await world.store()
        now, found = world.clock.now(), set[str]()
        world.writes.append((now, len(batch)))
        for done in batch:
            item, verdict = done.item, done.judgement.verdict
            key = (item.host, item.key)
            self.taken[item.host].discard(item.key)
            if world.by_host[item.host].pop(item.key, None) is None:
                world.wrong.append(f"{key} ended twice")
            if verdict in (Verdict.END, Verdict.FAIL):
                world.ends[key], world.ended_at[key] = done.handled.outcome, now
                found |= world.find(done.handled.result)
            else:
                failures, due = done.judgement.failures, now + done.judgement.wait
                world.by_host[item.host][item.key] = replace(item, failures=failures, due=due)
        for each in parked:
            world.parks.append((now, each.host, each.wait))
            if each.wait is None:
                world.parked.pop(each.host, None)
            else:
                world.parked[each.host] = now + each.wait
        woken = [host for host in found if host not in world.parked]
        self.held.update(woken)
        return woken


Drive = Callable[[Machine], Coroutine[Any, Any, object]]


async def run(world: World, drive: Drive | None = None, locks: HostLocks | None = None) -> Machine:
    """One process, to its end."""
    machine = Machine(world, locks)
    async with asyncio.TaskGroup() as group:
        beside = group.create_task(drive(machine)) if drive is not None else None
        await machine.engine.run()
        if beside is not None:
            beside.cancel()
    return machine


def play(world: World, drive: Drive | None = None) -> Machine:
    """The same on virtual time; what must never be is an error."""

    async def main() -> Machine:
        async with asyncio.timeout(1e6):
            return await run(world, drive)

    machine = run_virtual(main())
    assert not world.wrong
    return machine


def items(host: str, number: int, name: str = "i", **more: Any) -> list[Item]:
    return [Item(host, f"{name}{n}", **more) for n in range(number)]
