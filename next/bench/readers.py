"""What a page costs: fetched and read in reader processes, in the main process and in all of them.

A *bare loop* is aiohttp that reads the bodies and does nothing with them. Both are measured in turns, and of several
rounds the cheapest counts, since other programs only make it dearer. Hosts have no pace here (`policy = none`).
"""

import asyncio
import resource
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter

import aiohttp
import msgspec
from bars import Bar, report
from readers_work import Found
from real_pages import real_page

from sanderling.clock import SystemClock, cpu_seconds
from sanderling.fetch import Client, HttpRequest, RequestOptions
from sanderling.readers.pool import Readers
from sanderling.readers.reader import ReaderLimits

QUICK = "--quick" in sys.argv
ROUNDS = 2 if QUICK else 4
AT_ONCE = 16
WORK = "readers_work:open_work"
LIMITS = ReaderLimits(host_cpu=1e9)
ITEMS = [{"id": number, "name": f"item {number} of the list", "price": number / 7} for number in range(15)]
PAGES = {
    "JSON of 1 KB": [msgspec.json.encode({"items": ITEMS, "after": 15})],
    **{f"HTML of {size} KB": [real_page(number, size * 1000).html for number in range(10)] for size in (1, 30, 100)},
}


async def serve() -> None:
    """Answer `/KIND/NUMBER` with that page, and print the port."""

    def answer(kind: str, body: bytes) -> bytes:
        type_ = "application/json" if kind.startswith("JSON") else "text/html"
        return f"HTTP/1.1 200 OK\r\nContent-Type: {type_}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body

    answers = [[answer(kind, body) for body in bodies] for kind, bodies in PAGES.items()]

    class Serving(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            self.transport = transport

        def data_received(self, data: bytes) -> None:
            _, kind, number = data.split(b" ", 2)[1].split(b"/")
            bodies = answers[int(kind)]
            self.transport.write(bodies[int(number) % len(bodies)])

    server = await asyncio.get_running_loop().create_server(Serving, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def all_at_once(act: Callable[[int], Awaitable[object]], count: int) -> None:
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            await act(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work())


async def main_cpu(act: Callable[[int], Awaitable[object]], count: int) -> float:
    """µs of this process an item."""
    await all_at_once(act, count // 10)
    before = cpu_seconds()
    await all_at_once(act, count)
    return (cpu_seconds() - before) / count * 1e6


@asynccontextmanager
async def pool() -> AsyncIterator[Readers]:
    async with Readers(WORK, b"", count=1, clock=SystemClock(), limits=LIMITS) as readers:
        yield readers


async def fetched(port: int) -> list[Bar]:
    bars = []
    for at, kind in enumerate(PAGES):
        urls = [f"http://127.0.0.1:{port}/{at}/{number}" for number in range(10)]
        count = 200 if QUICK else (2000, 1000, 400, 200)[at]
        head = b"json" if kind.startswith("JSON") else b"page"
        bare, whole, all_of_it = [], [], []
        options = RequestOptions(private=True, policy="none")
        async with aiohttp.ClientSession() as session, Client(options) as client, pool() as readers:

            async def ask(number: int, session: aiohttp.ClientSession = session, urls: list[str] = urls) -> None:
                async with session.get(urls[number % 10]) as response:
                    await response.read()

            async def crawl(
                number: int,
                client: Client = client,
                readers: Readers = readers,
                urls: list[str] = urls,
                head: bytes = head,
            ) -> None:
                response = await client.send(HttpRequest(urls[number % 10]))
                found = msgspec.msgpack.decode(await readers.run("127.0.0.1", head, response.body), type=Found)
                assert found.lines

            for _ in range(ROUNDS):
                bare.append(await main_cpu(ask, count))
                before, items = readers.report().cpu, readers.report().items
                whole.append(await main_cpu(crawl, count))
                facts = readers.report()
                all_of_it.append(whole[-1] + (facts.cpu - before) / (facts.items - items) * 1e6)
        is_json, is_large = at == 0, at == 3
        bars += [
            Bar(f"µs of a bare loop, {kind}", min(bare)),
            Bar(f"µs of the main process, {kind}", min(whole), 700 if is_large else None),
            Bar(f"µs of all processes, {kind}", min(all_of_it)),
            Bar(f"bare loops that all processes cost, {kind}", min(all_of_it) / min(bare), 3.5 if is_json else None),
        ]
    return bars


async def handed_over() -> list[Bar]:
    """Hand-over and result alone, and how busy one reader is kept."""
    pages = PAGES["HTML of 100 KB"]
    count = 100 if QUICK else 200
    main, busy, lengths = [], [], []
    async with pool() as readers:

        async def hand_over(number: int) -> None:
            answer = await readers.run("a.example", b"page", pages[number % len(pages)])
            lengths.append(len(answer))

        for _ in range(ROUNDS):
            cpu, began, used = cpu_seconds(), perf_counter(), readers.report().cpu
            await all_at_once(hand_over, count)
            main.append((cpu_seconds() - cpu) / count)
            seconds, reading = perf_counter() - began, (readers.report().cpu - used) / count
            busy.append(count / seconds * max(main[-1], reading))
    return [
        Bar("ms of the main process to hand over 100 KB and take the result", min(main) * 1e3, 0.15),
        Bar("bytes of such a result", sum(lengths) / len(lengths)),
        Bar("throughput with one reader, of what the busier process could do", max(busy), 0.85, least=True),
    ]


async def large() -> list[Bar]:
    """16 MiB as bytes and by a file: what it costs here, and the longest turn of the loop meanwhile."""
    bars = []
    path = Path("/tmp") / f"sanderling-bench-{perf_counter():.0f}"
    body = real_page(0, 1 << 20).html * 16
    for name, given in (("as bytes", body), ("by a file", path)):
        path.write_bytes(body)
        async with Readers(WORK, b"", count=1, clock=SystemClock(), limits=LIMITS) as readers:
            answer = asyncio.ensure_future(readers.run("a.example", b"page", given))
            longest, total, before = 0.0, 0.0, cpu_seconds()
            while not answer.done():
                await asyncio.sleep(0.001)
                now = cpu_seconds()
                longest, total, before = max(longest, now - before), total + now - before, now
            await answer
        bars.append(Bar(f"ms of the longest turn of the loop, 16 MiB {name}", longest * 1e3, 50))
        bars.append(Bar(f"ms of the main process, 16 MiB {name}", total * 1e3))
    path.unlink()
    return bars


async def memory() -> list[Bar]:
    """MB that a reader has to itself (its proportional share), fresh and after pages of 100 KB."""
    if sys.platform != "linux":
        return []
    bars = []
    async with pool() as readers:
        for when, count in (("fresh", 1), ("after 200 pages of 100 KB", 200)):
            for page in islice(cycle(PAGES["HTML of 1 KB" if count == 1 else "HTML of 100 KB"]), count):
                await readers.run("a.example", b"page", page)
            pid = int(await readers.run("a.example", b"pid", b""))
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()  # noqa: ASYNC240 - no file of a disk
            share = next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
            bars.append(Bar(f"MB of a reader, {when}", share / 1024))
    return bars


async def started() -> list[Bar]:
    """Seconds until a reader is ready, which is what a replacement takes, and its CPU."""
    seen, cpu = [], []
    for _ in range(ROUNDS):
        began, before = perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        async with pool():
            seen.append(perf_counter() - began)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return [Bar("ms until a reader is ready", min(seen) * 1e3), Bar("ms of its CPU", min(cpu) * 1e3)]


async def measure(port: int) -> list[Bar]:
    return await handed_over() + await large() + await memory() + await started() + await fetched(port)


def main() -> int:
    with subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        try:
            return report(asyncio.run(measure(int(server.stdout.readline()))))
        finally:
            server.kill()


if __name__ == "__main__":
    if "--serve" in sys.argv:
        asyncio.run(serve())
    raise SystemExit(main())
