"""Random plays: callers, cancellations, failures, evictions, restarts. Whatever happens, some things always hold.

Each of them is seen to break on a fault that is made by hand.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable
from itertools import pairwise
from math import inf
from random import Random
from typing import Any

import pytest

from sanderling.clock import FakeClock, LoopClock, run_virtual
from sanderling.limit import CircuitOpen, Limiter, LimitOptions, Permit
from sanderling.limit import limiter as limiter_module
from sanderling.limit import queue as queue_module
from sanderling.limit.breaker import Breaker
from sanderling.limit.bucket import Bucket
from sanderling.limit.memory import Memory
from sanderling.limit.queue import Queues
from sanderling.limit.scope import Scope
from sanderling.outcome import Code, Outcome

KEY = "key/maps"
PATHS: dict[str, tuple[str, ...]] = {"alone.example": (), "one.example": (KEY,), "two.example": (KEY,)}
CAPACITY = 3.0
OUTCOMES = [
    Outcome(Code.OK, 200), Outcome(Code.OK, 200), Outcome(Code.OK, 304), Outcome(Code.HTTP_ERROR, 404),
    Outcome(Code.RATE_LIMITED, 429), Outcome(Code.RATE_LIMITED, 429, retry_after=7.0),
    Outcome(Code.RATE_LIMITED, 503, retry_after=40.0), Outcome(Code.HOST_UNAVAILABLE, 500),
    Outcome(Code.HOST_UNAVAILABLE, 503), Outcome(Code.TIMEOUT), Outcome(Code.DNS_ERROR, sent=False),
    Outcome(Code.CANCELLED), Outcome(Code.REFUSED, sent=False),
]  # fmt: skip


class Broken(AssertionError):  # noqa: N818 - it is no error of the program
    """What always holds did not."""


def holds(what: str, *, if_: bool) -> None:
    if not if_:
        raise Broken(what)


class Game:
    """One random play, and the referee of it."""

    def __init__(self, seed: int, policy: str) -> None:
        self.random, self.policy = Random(seed), policy
        self.clock = LoopClock()
        self.orders: dict[str, float] = defaultdict(lambda: -inf)  # until when a host wants silence
        self.waiting: dict[str, deque[int]] = defaultdict(deque)
        self.callers: dict[int, asyncio.Task[None]] = {}
        self.out: list[Permit] = []
        self.limiter = self.new_limiter()

    def new_limiter(self) -> Limiter:
        self.granted = 0
        self.sent: dict[str, list[float]] = defaultdict(list)
        self.rates: dict[str, list[tuple[float, float]]] = defaultdict(list)  # since when, how much
        return Limiter(
            policy=self.policy, clock=self.clock, random=self.random, scopes={KEY: LimitOptions(max_rps=3.0)},
            initial_rps=2.0, max_rps=8.0, token_bucket_capacity=CAPACITY, open_state_duration=5.0,
            consecutive_fail_threshold=4, domain_state_ttl=10.0, max_hosts=2,
        )  # fmt: skip

    async def run(self, steps: int) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(steps):
                match self.random.choices("call end cancel sleep pause restart".split(), (30, 35, 5, 25, 2, 1))[0]:
                    case "call":
                        host = self.random.choice(list(PATHS))
                        self.callers[number] = group.create_task(self.call(number, host))
                    case "end" if self.out:
                        self.end(self.out.pop(self.random.randrange(len(self.out))), self.random.choice(OUTCOMES))
                    case "cancel" if any(self.waiting.values()):
                        self.cancel()
                    case "sleep":
                        await asyncio.sleep(self.random.expovariate(3.0))
                    case "pause":
                        for permit in [each for each in self.out if each.sent_at < self.clock.now() - 100]:
                            self.out.remove(permit)  # after ten minutes it would count as lost
                            self.end(permit, OUTCOMES[0])
                        await asyncio.sleep(self.random.choice((12.0, 90.0, 400.0)))
                        self.limiter.evict_idle()
                    case "restart":
                        await self.restart()
                    case _:
                        pass
                await self.look()
            await self.recover()

    async def call(self, number: int, host: str) -> None:
        self.waiting[host].append(number)
        try:
            permit = await self.limiter.acquire(host, *PATHS[host])
            holds("order", if_=self.waiting[host][0] == number)
            self.granted += 1
            for name in (host, *PATHS[host]):
                holds("Retry-After", if_=permit.sent_at >= self.orders[name] - 1e-5)
                self.sent[name].append(permit.sent_at)
                self.note_rate(name)
            self.out.append(permit)
        except CircuitOpen as error:
            holds("recovery", if_=error.until >= self.clock.now())
        finally:
            self.waiting[host].remove(number)
            self.callers.pop(number, None)

    def cancel(self) -> None:
        """Now, or at the instant at which it gets its permit."""
        host = self.random.choice([host for host, waiting in self.waiting.items() if waiting])
        first, *others = (self.callers[number] for number in self.waiting[host])
        if others and self.random.random() < 0.5:
            others[0].cancel()
        else:
            asyncio.get_running_loop().call_at(self.limiter.ready_at(host, *PATHS[host]), first.cancel)

    def end(self, permit: Permit, outcome: Outcome) -> None:
        path = (permit.host, *PATHS[permit.host])
        for name in path:
            self.note_rate(name)
        permit.report(outcome, latency=self.random.choice((0.1, 0.5, 3.0)))
        permit.report(Outcome(Code.RATE_LIMITED, 429, retry_after=1e6))  # only the first report counts
        if outcome.code in (Code.CANCELLED, Code.REFUSED):
            # Its time may be given to the next, if it was the last one.
            for name in path:
                if outcome.code is Code.REFUSED and permit.sent_at in self.sent[name]:
                    self.sent[name].remove(permit.sent_at)
        about = path[-1] if outcome.status == 429 or outcome.code is Code.RATE_LIMITED else path[0]
        if outcome.retry_after:
            self.orders[about] = max(self.orders[about], self.clock.now() + outcome.retry_after)
        for name in path:
            self.note_rate(name)

    def note_rate(self, name: str) -> None:
        self.rates[name].append((self.clock.now(), self.limiter._memory.find(name).rate))

    async def restart(self) -> None:
        for caller in [*self.callers.values()]:
            caller.cancel()
        while self.callers:
            await asyncio.sleep(0)
        for permit in self.out:
            permit.release()
        self.out.clear()
        self.look_at_bursts()
        saved = {host: self.limiter.saved(host) for host in (*PATHS, KEY)}
        await asyncio.sleep(self.random.choice((0.0, 2.0, 20.0)))
        self.limiter = self.new_limiter()
        for host, each in saved.items():
            if each is not None:
                self.limiter.restore(host, each)

    async def look(self) -> None:
        """Nobody waits who could go, and what is counted is what happened."""
        for _ in range(4):
            await asyncio.sleep(0)
        for host, waiting in self.waiting.items():
            ready = self.limiter.ready_at(host, *PATHS[host])
            holds("places", if_=not waiting or ready > self.clock.now())
        figures = {each.host: each for each in self.limiter.snapshot(9).hosts}
        for host in PATHS:
            out = sum(permit.host == host for permit in self.out)
            holds("leaks", if_=out == (figures[host].in_flight if host in figures else 0))
            holds("leaks", if_=len(self.waiting[host]) == (figures[host].waiting if host in figures else 0))

    def look_at_bursts(self) -> None:
        """In no stretch of time more than the capacity, and what the rate gives."""
        for name, instants in self.sent.items():
            if self.policy == "none" and name != KEY:
                continue
            shared, exact = name == KEY, self.policy == "aimd" and name != KEY
            depth = CAPACITY if exact else 1.0
            rates = [*self.rates[name], (inf, 0.0)]
            for first, start in enumerate(instants):
                given = 0.0
                most = 0.0
                pieces = iter(pairwise(rates))
                (since, rate), (until, _) = next(pieces)
                for last in range(first, len(instants)):
                    end = instants[last]
                    while until <= end:
                        given += rate * max(0.0, until - max(since, start))
                        (since, rate), (until, _) = next(pieces)
                        most = max(most, rate if until >= start else 0.0)
                    here = given + rate * max(0.0, end - max(since, start))
                    allowed = here if exact or shared else max(most, rate) * (end - start)
                    holds("rates", if_=last - first + 1 <= depth + allowed + 1e-6)

    async def recover(self) -> None:
        """All is well from now on: soon everybody is served, and nothing is left over."""
        end = self.clock.now() + 3000
        good = dict.fromkeys(PATHS, 0)
        while self.callers or self.out or min(good.values()) < 8 or any(map(self.limiter.is_open, PATHS)):
            holds("recovery", if_=self.clock.now() < end)
            while self.out:
                good[self.out[-1].host] += 1
                self.end(self.out.pop(), Outcome(Code.OK, 200))
            for host, scopes in PATHS.items():
                wanted = good[host] < 8 or self.limiter.is_open(host)
                if wanted and (permit := self.limiter.try_acquire(host, *scopes)):
                    self.granted += 1
                    self.out.append(permit)
            await asyncio.sleep(1.0)
        await self.look()
        holds("leaks", if_=all(scope.queue is None and scope.timer is None for scope in self.limiter._memory))
        self.look_at_bursts()


def play(seed: int, policy: str, steps: int = 250) -> None:
    async def main() -> None:
        await Game(seed, policy).run(steps)

    try:
        run_virtual(main())
    except* Broken as group:
        raise group.exceptions[0] from None


@pytest.mark.parametrize("policy", ["aimd", "governor", "fixed", "none"])
@pytest.mark.parametrize("seed", range(12))
def test_what_always_holds(seed: int, policy: str) -> None:
    play(seed, policy)


Faulty = Callable[..., object]


def served_last(waiter: Any) -> None:
    state = waiter.path[waiter.at]
    state.queue = state.queue or deque()
    state.queue.appendleft(waiter)


def refilled(bucket: Bucket, rate: float, depth: float, now: float) -> None:
    bucket.rate, bucket.depth, bucket.ready = rate, depth, now - (depth - 1) / rate


def shortened(scope: Scope, instant: float) -> None:
    scope.not_before = instant


def never(*_: object) -> bool:
    return False


def nothing(*_: object) -> None: ...


FAULTS: list[tuple[str, object, str, Faulty]] = [
    ("order", queue_module, "_enter", served_last),
    ("places", Queues, "_arm", nothing),
    ("places", Queues, "_leave", nothing),
    ("rates", Bucket, "take", nothing),
    ("rates", Bucket, "set_rate", refilled),
    ("leaks", Scope, "end", nothing),
    ("leaks", Limiter, "_put_back", nothing),
    ("Retry-After", Scope, "wait_until", shortened),
    ("Retry-After", Memory, "_keep", nothing),
    ("Retry-After", Scope, "restore", nothing),
    ("recovery", Breaker, "rest", never),
]


@pytest.mark.parametrize(("what", "of", "name", "fault"), FAULTS, ids=[f"{row[0]}: {row[2]}" for row in FAULTS])
def test_it_does_not_hold_with_a_fault(
    what: str, of: object, name: str, fault: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of, name, fault)

    broken = set()
    for seed in range(12):
        try:
            play(seed, "aimd")
        except Broken as error:
            broken.add(str(error))

    assert what in broken


def jumping_clock(seed: int) -> None:
    """The clock jumps back and ahead; what counts is the time that passed, and that a jump stops nobody."""
    random, clock = Random(seed), FakeClock()
    limiter = Limiter(policy="aimd", clock=clock, initial_rps=2.0, max_rps=2.0, min_rps=2.0, token_bucket_capacity=2.0)
    passed, order, sent = 0.0, 0.0, list[float]()
    for _ in range(400):
        match random.randrange(8):
            case 0:
                clock.jump_back(random.choice((0.3, 5.0, 1e5)))
            case 1:
                clock.set_wall(random.choice((0.0, 1e9, 4e9)))
            case 2 if order < passed:
                seconds = random.choice((0.5, 5.0))
                limiter.feedback("host.example", status=429, retry_after=seconds)
                order = passed + seconds
            case _:
                seconds = random.expovariate(4.0)
                clock.advance(seconds)
                passed += seconds
        while limiter.try_acquire("host.example"):
            sent.append(passed)
            holds("Retry-After", if_=passed >= order - 1e-6)
            for number, earlier in enumerate(reversed(sent), 1):
                holds("rates", if_=number <= 2 + 2 * (passed - earlier) + 1e-6)
    clock.advance(10)
    holds("recovery", if_=limiter.try_acquire("host.example") is not None)


@pytest.mark.parametrize("seed", range(20))
def test_a_clock_that_jumps_changes_nothing(seed: int) -> None:
    jumping_clock(seed)


def test_a_clock_that_is_not_held_steady_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limiter_module, "never_back", lambda now: now)

    with pytest.raises(Broken, match="recovery"):
        jumping_clock(0)
