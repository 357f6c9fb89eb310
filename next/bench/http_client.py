"""What does a request cost in CPU by our client, beside a bare aiohttp loop, httpx and requests?

1 KB of JSON from loopback, 32 requests under way, the body read and parsed. All clients take turns within one process,
so that noise meets them alike; figures are medians of ratios of neighbours. The server is another process.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from statistics import median

import aiohttp
import httpx
import requests
from bars import Bar, report

from sanderling.clock import cpu_seconds
from sanderling.fetch import Client, HttpRequest, RequestOptions
from sanderling.limit import Limiter

REQUESTS = 500 if "--quick" in sys.argv else 2000  # a turn
TURNS = 4 if "--quick" in sys.argv else 7
WORKERS = 32
BODY = json.dumps({"id": 7, "name": "a record", "text": "x" * 970}).encode()
RESPONSE = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nServer: bench\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
)


class Server(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(RESPONSE * data.count(b"\r\n\r\n"))


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


Get = Callable[[str], Awaitable[object]]


async def turn(get: Get, url: str, count: int) -> float:
    """CPU of so many requests, in µs each."""
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            assert await get(f"{url}{number}")

    began = cpu_seconds()
    async with asyncio.TaskGroup() as group:
        for _ in range(WORKERS):
            group.create_task(work())
    return (cpu_seconds() - began) / count * 1e6


async def measure(url: str) -> dict[str, list[float]]:
    options = RequestOptions(private=True, rps=1e6, policy="none")
    fast = Limiter(policy="governor", initial_rps=1e6, max_rps=1e6)
    with requests.Session() as session:
        async with (
            aiohttp.ClientSession() as bare,
            Client(options) as ours,
            Client(options, fast) as paced,
            httpx.AsyncClient(limits=httpx.Limits(max_connections=WORKERS)) as other,
        ):

            async def by_aiohttp(url: str) -> object:
                async with bare.get(url) as response:
                    return json.loads(await response.read())

            async def by_httpx(url: str) -> object:
                return json.loads((await other.get(url)).content)

            async def by_requests(url: str) -> object:
                return json.loads(session.get(url).content)

            async def by_ours(url: str) -> object:
                return json.loads((await ours.send(HttpRequest(url))).body)

            async def by_paced(url: str) -> object:
                return json.loads((await paced.send(HttpRequest(url))).body)

            clients = {
                "aiohttp": by_aiohttp,
                "sanderling without pacing": by_ours,
                "sanderling with the governor": by_paced,
                "httpx": by_httpx,
                "requests": by_requests,
            }
            for get in clients.values():  # connections, caches
                await turn(get, url, REQUESTS // 5)
            found: dict[str, list[float]] = {name: [] for name in clients}
            for _ in range(TURNS):
                for name, get in clients.items():
                    few = name in ("httpx", "requests")  # which take their time, and show the same
                    found[name].append(await turn(get, url, REQUESTS // 5 if few else REQUESTS))
    return found


def main() -> int:
    with subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        try:
            found = asyncio.run(measure(f"http://127.0.0.1:{int(server.stdout.readline())}/"))
        finally:
            server.kill()
    bare = found["aiohttp"]
    bars = [Bar("µs of CPU a request by a bare aiohttp loop", min(bare))]
    for name, costs in found.items():
        if name != "aiohttp":
            ratio = median(cost / base for cost, base in zip(costs, bare, strict=True))
            bars.append(Bar(f"bare aiohttp loops a request by {name}", ratio, 2.0 if "without" in name else None))
    return report(bars)


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        asyncio.run(serve())
    else:
        sys.exit(main())
