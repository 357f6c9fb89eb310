"""All items of an API by aiohttp, each until it comes: python examples/limit_items.py http://127.0.0.1:8080 400"""

import asyncio
import sys
from collections.abc import Iterator

import aiohttp
from yarl import URL

from sanderling.limit import CircuitOpen, Limiter

limiter = Limiter(max_rps=100, policy=sys.argv[3] if len(sys.argv) > 3 else "governor")


async def fetch(session: aiohttp.ClientSession, url: URL) -> None:
    for _ in range(20):
        try:
            async with limiter.attempt(url.authority) as attempt, session.get(url) as response:
                attempt.report(response.status, response.headers)
                if response.ok:
                    print(await response.text())
                    return
        except CircuitOpen:  # the host fails; a refusal alone opens no circuit
            await asyncio.sleep(5)


async def work(session: aiohttp.ClientSession, numbers: Iterator[int]) -> None:
    for number in numbers:
        await fetch(session, URL(f"{sys.argv[1]}/item/{number}"))


async def main() -> None:
    numbers = iter(range(int(sys.argv[2])))
    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
        for _ in range(32):
            group.create_task(work(session, numbers))


asyncio.run(main())
