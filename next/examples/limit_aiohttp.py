"""aiohttp at the pace that each host allows: python examples/limit_aiohttp.py URL…"""

import asyncio
import sys

import aiohttp
from yarl import URL

from sanderling.limit import Limiter

limiter = Limiter(max_rps=20)


async def fetch(session: aiohttp.ClientSession, url: URL) -> None:
    async with limiter.attempt(url.authority) as attempt, session.get(url) as response:
        attempt.report(response.status, response.headers)
        print(response.status, len(await response.read()), url)


async def main() -> None:
    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
        for url in sys.argv[1:]:
            group.create_task(fetch(session, URL(url)))


asyncio.run(main())
