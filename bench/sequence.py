"""What does it cost to fetch, validate, queue and store a report, and does memory grow? The real command, on one core.

A simulated game on loopback, in a process of its own, serves reports of 8 to 80 KB, one in 25 of a raid, which is kept.
CPU is *marginal*: that of a long run less that of a short one, by the difference in ids, so that imports do not count.
Sides alternate; a ratio is the median of the ratios of each round. `--memory IDS` asks for so many ids and watches how
large the process gets; a million take some twenty minutes.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import aio_pika
import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker
from harness import Report, at_least, at_most
from processes import ROOT, Program, busy

from sanderling.stores.rabbitmq import DELAYS

COMMAND = str(Path(sys.executable).with_name("sanderling"))
POSTGRES, RABBITMQ = "postgresql://postgres@127.0.0.1/test", "amqp://guest:guest@127.0.0.1/"
SHORT, LONG = 4_000, 24_000  # ids
LIMIT = 400.0  # seconds for one run
ROUNDS = 3
WORKERS = 32
MEGABYTE = 2**20


@dataclass(frozen=True, slots=True)
class World:
    """Where the game is."""

    base: str
    first: int


@contextmanager
def game() -> Iterator[World]:
    """A game on loopback, on the first core."""
    with subprocess.Popen(  # noqa: S603 - our own command
        [COMMAND, "world", "game", "--preset", "fast", "--json"],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}),  # noqa: PLW1509 - one thread here
    ) as process:
        try:
            assert process.stdout is not None
            said = json.loads(process.stdout.readline())
            yield World(said["address"], said["first"])
        finally:
            process.kill()


def crawl(world: World, folder: Path, ids: int, *more: str, queue: str = "instance_store") -> Program:
    """The real command, as fast as it goes."""
    many = ("--workers", str(WORKERS), "--rps", "100000")
    where = ("--base", world.base, "--private", "--begin", str(world.first))
    until = ("--until", str(world.first + ids - 1))
    words = (COMMAND, "sequence", "crawl", *where, *until, *many, "--out", str(folder), "--json", *more)
    workers = {"SANDERLING_SEQUENCE_CRAWL_MIN_WORKERS": str(WORKERS), "SANDERLING_SEQUENCE_QUEUE_NAME": queue}
    return Program(words, {"NO_COLOR": "1", **workers})


def bare(world: World, _folder: Path, ids: int) -> Program:
    """Asking and nothing else."""
    script = str(ROOT / "bench" / "sequence_bare.py")
    return Program((sys.executable, script, world.base, str(world.first), str(ids)), {})


class Services:
    """With RabbitMQ, PostgreSQL, and ClickHouse's engine; `remove` what was left there."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def __call__(self, world: World, folder: Path, ids: int) -> Program:
        """The same command, with a queue and a schema of its own."""
        name = f"bench_{uuid.uuid4().hex[:8]}"
        self._names.append(name)
        return crawl(
            world, folder, ids,
            *("--queue", RABBITMQ),
            *("--rows", f"{POSTGRES}?schema={name}", "--raw", f"chdb:{folder}/raw"),
            queue=name,
        )  # fmt: skip

    async def remove(self) -> None:
        """Leave nothing behind."""
        db = await asyncpg.connect(POSTGRES)
        async with await aio_pika.connect(RABBITMQ) as connection:
            channel = await connection.channel()
            for name in self._names:
                await db.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")
                for each in ("", ".dead", *(f".later.{seconds:g}s" for seconds in DELAYS)):
                    await channel.queue_delete(f"{name}{each}", if_unused=False, if_empty=False)
        await db.close()


SIDES: dict[str, Callable[[World, Path, int], Program]] = {
    "fetch, parse, publish": lambda *run: crawl(*run, "--no-store"),
    "all, embedded": crawl,
    "bare aiohttp": bare,
}


def measure(world: World, folder: Path, side: str) -> tuple[float, float, int]:
    """CPU microseconds of an id, ids a second on the clock, and the largest size in bytes."""
    costs = []
    for ids in (SHORT, LONG):
        out = folder / uuid.uuid4().hex
        out.mkdir()
        costs.append(SIDES[side](world, out, ids).run(folder / "said", LIMIT))
    short, long = costs
    more = LONG - SHORT
    return (long.cpu - short.cpu) / more * 1e6, more / (long.wall - short.wall), long.peak


def compare(report: Report, rounds: int) -> None:
    """Every side, in turn."""
    found: dict[str, list[tuple[float, float, int]]] = {side: [] for side in SIDES}
    with game() as world, tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for side, runs in found.items():
                runs.append(measure(world, Path(folder), side))
                print(f"  {side:24}{runs[-1][0]:8.0f} us of CPU{runs[-1][1]:8.0f} a second", flush=True)
    for side, runs in found.items():
        cpu = median(run[0] for run in runs)
        ratio = median(run[0] / rival[0] for run, rival in zip(runs, found["bare aiohttp"], strict=True))
        print(
            f"{side:24}{cpu:8.0f} us{1e6 / cpu:10,.0f} a core second{ratio:8.2f} x bare{runs[0][2] / MEGABYTE:8.0f} MB"
        )
        report.figures |= {f"{side}: us": round(cpu, 1), f"{side}: x bare": round(ratio, 2)}
        if side != "bare aiohttp":
            report.figures[f"{side}: per core second"] = round(1e6 / cpu)
    cpu = median(run[0] for run in found["fetch, parse, publish"])
    report.bars.append(at_least("reports fetched, parsed and published per core second", 1000, 1e6 / cpu))


def watch_memory(report: Report, ids: int) -> None:
    """One long run, and how large it is on the way."""
    sizes: list[tuple[float, float]] = []
    with game() as world, tempfile.TemporaryDirectory() as folder:
        process = crawl(world, Path(folder) / "out", ids).start(Path(folder) / "said")
        began = time.monotonic()
        while process.poll() is None:
            time.sleep(2)
            status = Path(f"/proc/{process.pid}/status")
            lines = status.read_text().splitlines() if status.exists() else []
            size = next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0.0)
            if size:
                sizes.append((time.monotonic() - began, size))
        if process.returncode != 0:
            sys.exit(f"the crawl ended with {process.returncode}: {(Path(folder) / 'said').read_text()[-2000:]}")
    took = sizes[-1][0]
    early = max(size for at, size in sizes if at < took / 5)
    late = max(size for at, size in sizes if at > took * 4 / 5)
    print(f"{ids:,} ids in {took:.0f} s: {early:.0f} MB at most in the first fifth, {late:.0f} MB in the last")
    report.figures |= {"MB, first fifth": round(early), "MB, last fifth": round(late)}
    report.bars.append(at_most("memory of the last fifth, in those of the first", 1.15, late / early))


def main() -> None:
    """Measure, and say whether the bars are met."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--services", action="store_true")  # also with RabbitMQ, PostgreSQL and ClickHouse's engine
    parser.add_argument("--memory", type=int)  # ids to ask for, instead, while the memory is watched
    given, sys.argv[1:] = parser.parse_known_args()  # the harness reads the rest
    report = Report("sequence")
    busy()
    if given.memory:
        watch_memory(report, given.memory)
    elif given.services:
        SIDES["all, with services"] = services = Services()
        try:
            compare(report, given.rounds)
        finally:
            asyncio.run(services.remove())
    else:
        compare(report, given.rounds)
    report.finish()


if __name__ == "__main__":
    main()
