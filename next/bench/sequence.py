"""What an id costs: ids per CPU second of the whole path, and CPU an id beside a bare loop on the same client.

    bench/sequence.py [--json] [--quick]

A server on loopback, in a process of its own, has every id; the folder is on disk, each commit synced. The bare loop
sends the same requests by the same library (aiohttp) with as many connections, decodes the JSON, and stores nothing.
"""

import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
from bars import Bar, report

from sanderling.clock import SystemClock
from sanderling.sequence.opening import open_run
from sanderling.sequence.options import SequenceOptions

IDS = 2_000 if "--quick" in sys.argv else 10_000
WORKERS = 25
SERVER = """
from aiohttp import web
async def answer(request):
    number = request.match_info["id"]
    return web.Response(body=b'{"id": %s, "name": "%s", "lines": [1, 2, 3]}' % (number.encode(), b"x" * 400),
                        content_type="application/json")
app = web.Application()
app.router.add_get("/{id}", answer)
web.run_app(app, host="127.0.0.1", port=PORT, print=lambda *_: print("ready", flush=True), access_log=None)
"""


async def follow(url: str) -> float:
    """CPU seconds of this process."""
    with tempfile.TemporaryDirectory() as folder:
        options = SequenceOptions(
            api=url + "{id}", id="id", out=Path(folder), begin=1, until=IDS, private=True, policy="none",
            workers=WORKERS, max_workers=WORKERS,
        )  # fmt: skip
        async with open_run(options, SystemClock()) as run:
            begun = time.process_time()
            await run.run()
            spent = time.process_time() - begun
            assert run.figures.stored == IDS
    return spent


async def loop(url: str) -> float:
    """The same without us."""
    numbers = iter(range(1, IDS + 1))
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def work() -> None:
            for number in numbers:
                async with session.get(f"{url}{number}") as response:
                    json.loads(await response.read())

        begun = time.process_time()
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(work())
        return time.process_time() - begun


async def main(url: str) -> list[Bar]:
    bare = min([await loop(url) for _ in range(2)])
    ours = min([await follow(url) for _ in range(2)])
    return [
        Bar("ids per CPU second", IDS / ours, 1_000, least=True),
        Bar("CPU an id, µs", 1e6 * ours / IDS),
        Bar("CPU an id of a bare loop, µs", 1e6 * bare / IDS),
        Bar("times a bare loop", ours / bare, 3.0),
    ]


if __name__ == "__main__":
    import uvloop

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-c", f"PORT = {port}\n{SERVER}"], stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        server.stdout.readline()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            bars = runner.run(main(f"http://127.0.0.1:{port}/"))
    finally:
        server.terminate()
        server.wait()
    sys.exit(report(bars))
