"""What an attempt with its report costs, of a known host and of a new one, with 10, 1,000 and 100,000 in memory.

Microseconds of CPU, the best of interleaved rounds; no attempt waits; hosts have their turns, as in a crawl. Beside it
what aiolimiter and pyrate-limiter take for a permit in the same rounds, with a bucket a host in a dict; neither learns,
so neither is told how it went.
`--quick` leaves out the 100,000.
"""

import asyncio
import gc
import sys
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator
from itertools import count, cycle
from random import Random
from typing import Any

from aiolimiter import AsyncLimiter
from bars import Bar, report
from pyrate_limiter import BucketFactory, InMemoryBucket, MonotonicClock, Rate, RateItem
from pyrate_limiter import Limiter as PyrateLimiter

from sanderling.limit import Limiter

HEADERS = (("content-type", "text/html"), ("date", "Wed, 21 Oct 2015 07:28:00 GMT"), ("server", "example"))
QUICK = "--quick" in sys.argv
SIZES = (10, 1000) if QUICK else (10, 1000, 100_000)
ROUNDS, ATTEMPTS = (5, 1000) if QUICK else (40, 2000)
FAST: dict[str, Any] = {"initial_rps": 1e5, "max_rps": 1e6, "token_bucket_capacity": 1e6}
Call = Callable[[str], Awaitable[object]]


def ours(policy: str, hosts: int) -> Call:
    limiter = Limiter(policy=policy, max_hosts=hosts, random=Random(1), **FAST)

    async def attempt(host: str) -> None:
        async with limiter.attempt(host) as attempt:
            attempt.report(200, HEADERS, latency=0.1)

    return attempt


def aiolimiter_s() -> Call:
    limiters: dict[str, AsyncLimiter] = {}

    async def attempt(host: str) -> None:
        limiter = limiters.get(host)
        if limiter is None:
            limiter = limiters[host] = AsyncLimiter(1e6, 1.0)
        async with limiter:
            pass

    return attempt


class Buckets(BucketFactory):
    """A bucket a host. A pyrate-limiter a host would start a thread for each."""

    def __init__(self) -> None:
        self.clock = MonotonicClock()
        self.hosts: dict[str, InMemoryBucket] = {}

    def wrap_item(self, name: str, weight: int = 1) -> RateItem:
        return RateItem(name, self.clock.now(), weight=weight)

    def get(self, item: RateItem) -> InMemoryBucket:
        bucket = self.hosts.get(item.name)
        if bucket is None:
            bucket = self.hosts[item.name] = InMemoryBucket([Rate(10**6, 1000)])
        return bucket


async def microseconds(call: Call, hosts: Iterator[str]) -> float:
    names = [next(hosts) for _ in range(ATTEMPTS)]
    began = time.thread_time()
    for name in names:
        await call(name)
    seconds = time.thread_time() - began
    return 1e6 * seconds / ATTEMPTS


async def measure() -> list[Bar]:
    cases: dict[tuple[str, str, int], tuple[Call, Iterator[str]]] = {}
    gc.disable()  # else it looks at all these hosts again and again
    for size in SIZES:
        names = [f"h{number}.example" for number in range(size)]
        for policy in ("governor", "aimd"):
            call, fresh = ours(policy, size), ours(policy, size)
            for name in names:
                await call(name)
                await fresh(name)
            cases[policy, "a known host", size] = call, cycle(names)
            if size == SIZES[-1]:  # what the processor's caches make of it; without a bar
                cases[policy, "a known host in random order", size] = call, cycle(Random(1).sample(names, size))
            cases[policy, "a new host", size] = fresh, (f"n{number}.example" for number in count())
    for what, call in (("aiolimiter", aiolimiter_s()), ("pyrate-limiter", PyrateLimiter(Buckets()).try_acquire_async)):
        cases[what, "a known host", 1000] = call, cycle([f"h{number}.example" for number in range(1000)])
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(ROUNDS):
        for case, (call, hosts) in cases.items():
            best[case] = min(best[case], await microseconds(call, hosts))
    gc.enable()
    most = {"a known host": 25.0, "a new host": 40.0}
    bars = [
        Bar(f"µs, {case[0]}, {case[1]} among {case[2]:,}", best[case], most.get(case[1]) if case[0] in FLAT else None)
        for case in cases
    ]
    for policy in FLAT:
        for kind in most:
            spread = [best[policy, kind, size] for size in SIZES]
            bars.append(
                Bar(f"times, {policy}, {kind}: the dearest size by the cheapest", max(spread) / min(spread), 1.2)
            )
    return bars


FLAT = ("governor", "aimd")


async def bytes_a_host(policy: str, hosts: int = 20_000) -> float:
    call = ours(policy, hosts)
    names = [f"h{number}.example" for number in range(hosts)]
    await call("first.example")
    tracemalloc.start()
    for name in names:
        await call(name)
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return kept / hosts


async def main() -> list[Bar]:
    bars = await measure()
    bars += [Bar(f"bytes a host, {policy}", await bytes_a_host(policy), 1500) for policy in FLAT]
    return bars


if __name__ == "__main__":
    sys.exit(report(asyncio.run(main())))
