"""The least a crawl can be: workers, a queue and a set in memory, over aiohttp. What this language costs."""

import asyncio
from typing import BinaryIO

import aiohttp
import work


async def crawl(seeds: list[str], rows: BinaryIO) -> None:
    """Fetch the seeds and all that they lead to, each once."""
    known = set(seeds)
    todo: asyncio.Queue[str] = asyncio.Queue()
    for url in seeds:
        todo.put_nowait(url)
    connector = aiohttp.TCPConnector(limit=work.IN_FLIGHT)

    async def worker(session: aiohttp.ClientSession) -> None:
        while True:
            url = await todo.get()
            async with session.get(url) as response:
                body = await response.read()
                row = work.read(url, response.status, response.headers.get("Content-Type", ""), body)
            work.write(rows, row)
            for link in work.onward(row):
                if link not in known:
                    known.add(link)
                    todo.put_nowait(link)
            todo.task_done()

    async with aiohttp.ClientSession(connector=connector) as session, asyncio.TaskGroup() as group:
        workers = [group.create_task(worker(session)) for _ in range(work.IN_FLIGHT)]
        await todo.join()
        for each in workers:
            each.cancel()


if __name__ == "__main__":
    options = work.arguments()
    with options.rows.open("wb") as rows:
        asyncio.run(crawl(work.seeds(options.seeds), rows))
