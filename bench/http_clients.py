"""What a fetch costs with aiohttp, with its connections alone as `fetch/wire.py` has it, and with pyreqwest.

Usage: http_clients.py [FETCHES]. A client may only come in if it connects to the very address that the guard checked,
and never sends a request twice by itself. docs/why/http-client.md has the decision. pyreqwest is no dependency of ours:
pip install pyreqwest.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from time import process_time

import aiohttp
import uvloop
from pyreqwest.client import ClientBuilder  # type: ignore[import-not-found] # no dependency

from sanderling.fetch.http import Http, HttpRules
from sanderling.fetch.transport import guard_for
from sanderling.task import Task

BODY = b"x" * 10_000
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nContent-Type: text/html\r\n\r\n" % len(BODY) + BODY
TOGETHER = 16
ROUNDS = 3
TRIALS = 100
CLIENTS = 50
Fetch = Callable[[str], Awaitable[int]]


class Answers(asyncio.Protocol):
    """Answers each request at once, on a connection that stays open."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody has come."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Requests, whole: they are short."""
        self._transport.write(ANSWER * data.count(b"\r\n\r\n"))  # type: ignore[attr-defined]


class HangsUp(asyncio.Protocol):
    """Answers the first request of each connection, and cuts the connection at the second."""

    seen = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody has come."""
        self._transport, self._asked = transport, 0

    def data_received(self, _data: bytes) -> None:
        """A request."""
        HangsUp.seen += 1
        self._asked += 1
        if self._asked == 1:
            self._transport.write(ANSWER)  # type: ignore[attr-defined]
        else:
            self._transport.abort()  # type: ignore[attr-defined]


def serve(port: int) -> None:
    """In a process of its own: its CPU is not the client's."""

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Answers, "127.0.0.1", port)
        async with asyncio.timeout(300):
            await server.serve_forever()

    uvloop.run(main())


async def fetch_all(fetch: Fetch, url: str, number: int) -> float:
    """Microseconds of CPU for each of so many fetches."""
    started = process_time()

    async def some() -> None:
        for _ in range(number // TOGETHER):
            if await fetch(url) != len(BODY):
                raise RuntimeError("a body of another length")

    async with asyncio.TaskGroup() as group:
        for _ in range(TOGETHER):
            group.create_task(some())
    return 1e6 * (process_time() - started) / number


async def resent(fetch: Fetch) -> tuple[int, int]:
    """How many requests a server has seen that cuts each second one off, and how many of the fetches failed."""
    HangsUp.seen = failed = 0
    server = await asyncio.get_running_loop().create_server(HangsUp, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        for _ in range(TRIALS):
            try:
                await fetch(url)
            except Exception:  # noqa: BLE001 - of whichever client
                failed += 1
    return HangsUp.seen, failed


def build_clients() -> float:
    """Milliseconds of CPU for a client that knows the address of one host: there is no other way to say it."""
    started = process_time()
    for number in range(CLIENTS):
        ClientBuilder().resolve(f"host{number}.example", "203.0.113.7", 443).build()
    return 1e3 * (process_time() - started) / CLIENTS


async def measure(number: int, port: int) -> None:
    """Print what each of them needs, and does."""
    url = f"http://127.0.0.1:{port}/"
    connector = aiohttp.TCPConnector(limit=TOGETHER)
    builder = ClientBuilder().timeout(timedelta(seconds=30)).max_connections(TOGETHER).follow_redirects(enable=False)
    rules = HttpRules(connections_per_host=TOGETHER)
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        Http(rules, guard_for(private=True)) as http,
        builder.build() as client,
    ):
        session._retry_connection = False  # noqa: SLF001 - it would send twice

        async def by_aiohttp(url: str) -> int:
            async with session.get(url) as response:
                return len(await response.read())

        async def by_pyreqwest(url: str) -> int:
            response = await client.get(url).build().send()
            return len(await response.bytes())

        async def by_ours(url: str) -> int:
            return len((await http.send(Task(url))).body)

        ways: dict[str, Fetch] = {"aiohttp": by_aiohttp, "ours": by_ours, "pyreqwest": by_pyreqwest}
        for name, fetch in ways.items():
            await fetch_all(fetch, url, number // 10)
            best = min([await fetch_all(fetch, url, number) for _ in range(ROUNDS)])
            print(f"{name:10} {best:6.1f} us of CPU for a fetch of {len(BODY):,} bytes, {TOGETHER} at once")
        for name, fetch in ways.items():
            seen, failed = await resent(fetch)
            print(f"{name:10} {seen} requests sent for {TRIALS} fetches, of which {failed} failed")
    hooks = [name for name in dir(ClientBuilder) if "resol" in name or "connector" in name or "retry" in name]
    print(f"pyreqwest: what a client is told of addresses and of repeating is {', '.join(hooks) or 'nothing'}")
    print(f"pyreqwest: {build_clients():.1f} ms of CPU to build a client")


if __name__ == "__main__":
    fetches = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    with ProcessPoolExecutor(1) as pool:
        pool.submit(serve, 8971)
        uvloop.run(asyncio.wait_for(measure(fetches, 8971), 240))
        for process in list(pool._processes.values()):  # noqa: SLF001 - ours, and it serves for ever
            process.terminate()
