#!/usr/bin/env python
"""Every page that front pages lead to, by the client and the limiter alone: all_pages.py RPS URL…"""

import asyncio
import re
import sys
from collections import deque
from urllib.parse import urljoin

from sanderling.fetch import Client, HttpRequest, RequestOptions

WORKERS = 32  # a host
TRIES = 50


async def collect(client: Client, front: str) -> None:
    """All pages of one host; what failed comes again after all others."""
    page = await client.send(HttpRequest(front))
    waiting = deque((urljoin(front, link), 1) for link in re.findall(r'href="([^"]+)"', page.body.decode()))

    async def work() -> None:
        while waiting:
            url, tries = waiting.popleft()
            got = await client.send(HttpRequest(url), item=url)
            if not got.outcome.ok and tries < TRIES:
                waiting.append((url, tries + bool(got.requests)))
            if not got.requests:  # the circuit is open
                await asyncio.sleep(got.outcome.retry_after or 1.0)

    async with asyncio.TaskGroup() as group:
        for _ in range(WORKERS):
            group.create_task(work())


async def main(rps: float, *fronts: str) -> None:
    async with Client(RequestOptions(private=True, rps=rps)) as client, asyncio.TaskGroup() as group:
        for front in fronts:
            group.create_task(collect(client, front))


asyncio.run(main(float(sys.argv[1]), *sys.argv[2:]))
