"""Our HTTP API against Litestar: one list of 100 targets, asked for by ten clients, in alternating rounds.

Litestar is no dependency of ours: `pip install --target FOLDER litestar uvicorn httptools`, then
`python bench/web_rival.py FOLDER`. Its side has no access check, no log line and no limits; ours has all of them.
"""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import aiohttp
import msgspec
import uvloop

from sanderling.clock import SystemClock
from sanderling.observe import logs
from sanderling.stores.polling import PollingTarget

ROUNDS, REQUESTS, CLIENTS = 6, 1_500, 10
SIDES = {"ours": 8761, "litestar": 8762}
WALL = 1_800_000_000.0
TARGETS = [
    PollingTarget(id=n, kind="race", source_id=f"r{n}", event="e1", seconds=10.0, next_due=WALL + n) for n in range(200)
]


class Control:
    """As much of polling as the list of targets needs."""

    feed = None

    async def targets(self, query: Any) -> list[PollingTarget]:  # noqa: ANN401 - the same for both sides
        """The first of them."""
        return TARGETS[: query.most]


async def ours(port: int) -> None:
    """Serve our API."""
    from sanderling.web.polling_api import polling_app  # noqa: PLC0415 - what is imported is part of the start
    from sanderling.web.serve import serving  # noqa: PLC0415
    from sanderling.web.stream import Streams  # noqa: PLC0415

    logs.configure(None, "warning")  # as the commands do
    clock = SystemClock()
    control: Any = Control()
    async with serving(polling_app(control, clock, Streams(clock), ()), "127.0.0.1", port, None):
        await asyncio.sleep(600)


def litestar(port: int) -> None:
    """Serve the same list with Litestar and uvicorn."""
    import uvicorn  # type: ignore[import-not-found] # noqa: PLC0415
    from litestar import Litestar, get  # type: ignore[import-not-found] # noqa: PLC0415
    from litestar.params import Parameter  # type: ignore[import-not-found] # noqa: PLC0415

    from sanderling.stores.polling import Query  # noqa: PLC0415
    from sanderling.web.polling_types import TargetPage, cursor_of, target_view  # noqa: PLC0415

    @get("/health")  # type: ignore[untyped-decorator]
    async def health() -> dict[str, bool]:
        return {"ok": True}

    @get("/targets")  # type: ignore[untyped-decorator]
    async def targets(kind: str | None = None, limit: Annotated[int, Parameter(ge=1, le=1000)] = 100) -> msgspec.Struct:
        found = await Control().targets(Query(kind=kind, most=limit + 1))
        page = found[:limit]
        return TargetPage(targets=tuple(target_view(each, WALL) for each in page), next=cursor_of(page[-1]))

    app = Litestar([health, targets])
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", access_log=False, loop="uvloop")


async def ask(port: int, path: str, number: int) -> float:
    """Ask so many times with all clients; how many were answered a second."""
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:

        async def client() -> None:
            for _ in range(number // CLIENTS):
                async with session.get(path) as response:
                    response.raise_for_status()
                    await response.read()

        started = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(CLIENTS):
                group.create_task(client())
        return number / (time.perf_counter() - started)


def cpu(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def started(side: str, folder: str) -> tuple[subprocess.Popen[bytes], float, float]:
    """A server that answers; the seconds and the CPU seconds until then."""
    environment = {**os.environ, "PYTHONPATH": f"{os.environ.get('PYTHONPATH', '')}:{folder}"}
    begun = time.perf_counter()
    process = subprocess.Popen([sys.executable, __file__, "serve", side], env=environment)  # noqa: ASYNC220, S603
    for _ in range(2_000):
        answered = False
        try:
            await ask(SIDES[side], "/health", CLIENTS)
            answered = True
        except* aiohttp.ClientError:
            await asyncio.sleep(0.01)
        if answered:
            return process, time.perf_counter() - begun, cpu(process.pid)
    raise RuntimeError(f"{side} does not answer")


async def compare(folder: str) -> None:
    """Print both sides, the best of all rounds."""
    servers = {side: await started(side, folder) for side in SIDES}
    try:
        for path in ("/health", "/targets?kind=race&limit=100"):
            rates: dict[str, list[float]] = {side: [] for side in SIDES}
            costs: dict[str, list[float]] = {side: [] for side in SIDES}
            for _ in range(ROUNDS):
                for side, (process, _, _) in servers.items():
                    before = cpu(process.pid)
                    rates[side].append(await ask(SIDES[side], path, REQUESTS))
                    costs[side].append((cpu(process.pid) - before) / REQUESTS * 1e6)
            for side in SIDES:
                print(f"{side:9} {path:30} {max(rates[side]):7.0f}/s {min(costs[side]):6.0f} us of CPU a request")
        for side, (_, seconds, spent) in servers.items():
            print(f"{side:9} answers {seconds:.2f} s after its start, with {spent:.2f} s of CPU")
    finally:
        for process, _, _ in servers.values():
            process.terminate()
            process.wait(10)


if __name__ == "__main__":
    if sys.argv[1] == "serve" and sys.argv[2] == "ours":
        uvloop.run(ours(SIDES["ours"]))
    elif sys.argv[1] == "serve":
        litestar(SIDES["litestar"])
    else:
        uvloop.run(compare(sys.argv[1]))
