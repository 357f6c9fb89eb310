"""A bare loop over aiohttp: 64 requests at a time, JSON read, a line written. `python bare_loop.py SEEDS ROWS`."""

import asyncio
import json
import sys

import aiohttp
import uvloop

SEEDS, ROWS = sys.argv[1:]


async def main():
    urls = iter([line.strip() for line in open(SEEDS)])
    with open(ROWS, "w") as rows:

        async def worker(session):
            for url in urls:
                async with session.get(url) as reply:
                    body = await reply.read()
                rows.write(json.dumps({"url": url, "json": json.loads(body)}) + "\n")

        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=64)) as session:
            await asyncio.gather(*(worker(session) for _ in range(64)))


uvloop.run(main())
