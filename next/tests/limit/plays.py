"""Workers who request hosts through a limiter for a while, on virtual time."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from hosts import Host, Reply

from sanderling.clock import LoopClock, run_virtual
from sanderling.limit import CircuitOpen, Limiter
from sanderling.limit.permit import outcome_of


@dataclass
class Alternating:
    """Says its refusals in turn as a 429 and as a 503."""

    host: Host
    refusals: int = 0

    def request(self, now: float) -> Reply:
        reply = self.host.request(now)
        if reply.status != 429:
            return reply
        self.refusals += 1
        return reply._replace(status=(429, 503)[self.refusals % 2])


@dataclass
class Played:
    """What came of it, by host: the responses, and when its circuit was seen to open and to close."""

    responses: dict[str, list[tuple[float, int]]]
    opened: dict[str, list[float]] = field(default_factory=dict)
    closed: dict[str, list[float]] = field(default_factory=dict)

    def success(self, name: str, since: float) -> float:
        """The share of good responses to what was sent from then on."""
        statuses = [status for sent, status in self.responses[name] if sent >= since]
        return statuses.count(200) / len(statuses)


def play(
    hosts: Mapping[str, Host],
    seconds: float,
    *,
    policy: str,
    workers: int = 16,
    every: float | None = None,
    seed: int = 1,
    **fields: object,
) -> Played:
    """So many workers a host ask for permits, each again when its response is there, or one each `every` seconds."""
    played = Played({name: [] for name in hosts}, {name: [] for name in hosts}, {name: [] for name in hosts})

    async def request(limiter: Limiter, clock: LoopClock, name: str) -> None:
        was_open = limiter.is_open(name)
        try:
            permit = await limiter.acquire(name)
        except CircuitOpen as error:
            await clock.sleep(max(0.001, error.until - clock.now()))
            return
        sent, wall = clock.now(), clock.wall()
        reply = hosts[name].request(sent)
        await clock.sleep(min(reply.latency, 30.0))
        outcome = outcome_of(reply.status, reply.headers, reply.error or None, reply.retry_after, wall)
        permit.report(outcome, latency=clock.now() - sent)
        played.responses[name].append((sent, reply.status))
        if limiter.is_open(name) != was_open:
            (played.closed if was_open else played.opened)[name].append(clock.now())

    async def work(limiter: Limiter, clock: LoopClock, name: str) -> None:
        while clock.now() < seconds:
            await request(limiter, clock, name)

    async def main() -> None:
        clock = LoopClock()
        limiter = Limiter(None, clock=clock, policy=policy, random=Random(seed), hosts=None, scopes=None, **fields)
        async with asyncio.TaskGroup() as group:
            if every is None:
                for name in [*hosts] * workers:
                    group.create_task(work(limiter, clock, name))
            else:
                for number in range(int(seconds / every)):
                    for name in hosts:
                        group.create_task(request(limiter, clock, name))
                    await clock.sleep((number + 1) * every - clock.now())

    run_virtual(main())
    return played
