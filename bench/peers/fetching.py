"""Fetch one address many times, with our client or with a bare loop over aiohttp, and print the CPU it took.

Usage: fetching.py ours|bare asyncio|uvloop URL REQUESTS IN_FLIGHT
"""

import asyncio
import gc
import itertools
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import aiohttp
import uvloop

from sanderling.fetch.attempts import Fetcher
from sanderling.fetch.guard import GuardRules
from sanderling.fetch.http import Http, HttpRules
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.task import Task

WARM = 500  # requests before it counts: connections, caches, the limiter's first look at the host
BOUNDLESS = LimiterRules(pace=PaceRules(initial_rps=1e6, max_rps=1e6, burst=1e6))
Fetch = Callable[[str], Awaitable[int]]


@asynccontextmanager
async def ours(in_flight: int) -> AsyncIterator[Fetch]:
    """Everything a fetch of ours does: guard, leave, request, caps, outcome, feedback."""
    rules = HttpRules(connections=in_flight, connections_per_host=in_flight)
    async with Http(rules, GuardRules(private=True, raw_addresses=True)) as http:
        fetcher = Fetcher(http, Limiter(BOUNDLESS))

        async def fetch(url: str) -> int:
            fetched = await fetcher.fetch(Task(url))
            return len(fetched.reply.body) if fetched.reply else 0

        yield fetch


@asynccontextmanager
async def bare(in_flight: int) -> AsyncIterator[Fetch]:
    """What one writes without us."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=in_flight)) as session:

        async def fetch(url: str) -> int:
            async with session.get(url) as response:
                return len(await response.read())

        yield fetch


async def fetch_all(fetch: Fetch, urls: Iterator[str], in_flight: int) -> int:
    """The bytes of all bodies."""
    total = 0

    async def worker() -> None:
        nonlocal total
        for url in urls:
            size = await fetch(url)  # on a line of its own: `total` must be read after the wait
            total += size

    async with asyncio.TaskGroup() as group:
        for _ in range(in_flight):
            group.create_task(worker())
    return total


async def main(side: str, base: str, requests: int, in_flight: int) -> float:
    """Microseconds of CPU for each request."""
    urls = (f"{base}?n={number}" for number in itertools.count())
    async with {"ours": ours, "bare": bare}[side](in_flight) as fetch:
        await fetch_all(fetch, itertools.islice(urls, WARM), in_flight)
        gc.collect()
        started = time.process_time()
        total = await fetch_all(fetch, itertools.islice(urls, requests), in_flight)
        cpu = time.process_time() - started
    if total != requests * 2048:
        sys.exit(f"{total} bytes came back, expected {requests * 2048}")
    return cpu / requests * 1e6


if __name__ == "__main__":
    side, loop, base, requests, in_flight = sys.argv[1:]
    run = uvloop.run if loop == "uvloop" else asyncio.run
    print(run(main(side, base, int(requests), int(in_flight))))
