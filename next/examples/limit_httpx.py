"""httpx at the pace that each host allows: python examples/limit_httpx.py URL…"""

import asyncio
import sys

import httpx

from sanderling.limit import Limiter

limiter = Limiter(max_rps=20)


async def fetch(client: httpx.AsyncClient, url: httpx.URL) -> None:
    async with limiter.attempt(url.netloc.decode()) as attempt:
        try:
            response = await client.get(url)
        except httpx.TransportError as error:  # no OSError, which would be noticed by itself
            attempt.report(error=error)
            raise
        attempt.report(response.status_code, response.headers)
        print(response.status_code, len(response.content), url)


async def main() -> None:
    async with httpx.AsyncClient() as client, asyncio.TaskGroup() as group:
        for url in sys.argv[1:]:
            group.create_task(fetch(client, httpx.URL(url)))


asyncio.run(main())
