"""Ask for reports with nothing but aiohttp on uvloop, decode the envelope, throw it away: what asking costs.

python bench/sequence_bare.py BASE FIRST COUNT
"""

import asyncio
import sys
from itertools import count

import aiohttp
import msgspec
import uvloop

WORKERS = 32


class Envelope(msgspec.Struct):
    """What every answer is wrapped in."""

    ErrorCode: int
    Response: msgspec.Raw = msgspec.Raw(b"null")


async def main(base: str, first: int, number: int) -> None:
    """Ask for the ids from `first` on."""
    ids, decoder = count(first), msgspec.json.Decoder(Envelope)

    async def work(session: aiohttp.ClientSession) -> None:
        while (each := next(ids)) < first + number:
            async with session.get(f"{base}/Platform/Destiny2/Stats/PostGameCarnageReport/{each}/") as reply:
                decoder.decode(await reply.read())

    connector = aiohttp.TCPConnector(limit=WORKERS)
    async with aiohttp.ClientSession(connector=connector) as session, asyncio.TaskGroup() as group:
        for _ in range(WORKERS):
            group.create_task(work(session))


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
