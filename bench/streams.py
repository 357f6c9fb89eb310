"""Do the storers of `sequence` and the consumers of `events` grow with RabbitMQ? One process of each, and four.

The real commands on a real RabbitMQ and a real PostgreSQL, over the same letters, three sides in turn: one process,
four on one queue, and four *apart*, each with a queue and tables of its own, which share nothing but the machine. All
are started, warm and idle, then stopped (SIGSTOP); everything is published, and they are let go: so what counts is
work, and neither imports nor a publisher that is slower than those who take. CPU is that of our processes.

The bar is on the CPU of an item with four on one queue: at most 1.33 times that of four apart, so that four cores give
at least three times the items of one. It is not on that of one process alone: where there are fewer cores than
processes they take turns, and then an item costs more CPU of four apart as well. The ratio to one process, and how busy
the cores were, are figures beside it. The rows are counted in the end: each item is there, once.
"""

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import aio_pika
import aio_pika.exceptions
import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker
from events_parts import Supply, drop_queues, items_of, letters_of, put_objects, schema
from harness import Report, at_most
from processes import Program, busy
from sequence import COMMAND, POSTGRES, RABBITMQ

from sanderling.apis.bungie import Bungie
from sanderling.clock import SystemClock
from sanderling.fetch.classify import of_reply
from sanderling.stores.objects import open_objects
from sanderling.stores.queue import Letter, open_queue
from sanderling.task import Reply
from sanderling.worlds.game import BEGAN, ORIGIN, REPORT, Game
from sanderling.worlds.game_presets import fast
from sanderling.worlds.social_plan import TREND
from sanderling.worlds.social_truth import Totals

ROUNDS = 2
RECORDS, BATCHES = 2_400, 100  # of a run; a batch has 20 or 50 items
WARM_RECORDS, WARM_BATCHES = 800, 24  # before it
MOST = 1.33  # times the CPU of an item
LIMIT = 60.0  # seconds for one run
IDLE = 0.02  # of a core, below which a process waits for letters
SETTLE = 0.5  # seconds for what comes after the last row: letters that are done
CORES = os.cpu_count() or 1
TICKS = os.sysconf("SC_CLK_TCK")

# A record that was stored twice is a clear too many of each of its players.
COUNT_RECORDS = """SELECT (SELECT count(*) FROM instance) AS rows,
    (SELECT coalesce(sum(clears), 0)::bigint FROM player_stats)
    - (SELECT count(*) FROM instance_player JOIN instance USING (instance_id) WHERE finished) AS more"""
COUNT_ITEMS = """SELECT (SELECT count(*) FROM post_analytics) + (SELECT count(*) FROM crawl_errors) AS rows,
    (SELECT count(*) - count(DISTINCT event_id) FROM processed_events) AS more"""


class StreamCost(NamedTuple):
    """What a run took: seconds of our CPU and of the wall, how busy all cores were, and what the rows say."""

    items: int
    cpu: float
    wall: float
    cores: float
    lost: int
    double: int

    @property
    def each(self) -> float:
        """Microseconds of CPU of an item."""
        return self.cpu / self.items * 1e6


class Lot(NamedTuple):
    """What is published at once, and how many rows there must be when it was taken."""

    letters: Sequence[Letter]
    items: int
    rows: int


class Share(NamedTuple):
    """What goes through one queue: first what is for connections, statements and caches."""

    warm: Lot
    lot: Lot


@dataclass(frozen=True, slots=True)
class Stream:
    """Who takes letters, which, and how their rows are counted."""

    name: str
    command: Callable[[str, Path], Program]  # of a process, by the name of its queue and schema
    share: Callable[[int, int], Share]  # the first of four
    counts: str  # says how many `rows` there are, and how many were counted `more` than once


class Side(NamedTuple):
    """How many queues there are, and processes for each."""

    name: str
    queues: int
    processes: int


SIDES = ONE, FOUR, APART = Side("one", 1, 1), Side("four on one queue", 1, 4), Side("four apart", 4, 1)


# What is taken.


def raids(count: int) -> list[Letter]:
    """Reports of raids, as a crawl queues them."""
    game, api = Game(replace(fast(), raids=1.0), 1), Bungie(ORIGIN)
    letters: list[Letter] = []
    for number in islice(game.ids(game.first, game.first + 2 * count, BEGAN), count):
        found = game.ask(f"{REPORT}{number}/", BEGAN)
        reply = Reply(found.status, found.headers, found.body, ORIGIN, 0.0)
        read = api.read(number, reply, of_reply(reply.status, reply.headers, wall=BEGAN), BEGAN)
        assert read.message is not None, read.outcome.detail
        letters.append(Letter(str(number), read.message))
    return letters


def sequence_stream() -> Stream:
    """Records into the tables of `sequence`."""

    def command(name: str, folder: Path) -> Program:
        where = ("--queue", RABBITMQ, "--rows", f"{POSTGRES}?schema={name}", "--out", str(folder / name))
        env = {"SANDERLING_SEQUENCE_QUEUE_NAME": name}
        return Program((COMMAND, "sequence", "store", *where, "--json"), env, CORES)

    letters = raids(WARM_RECORDS + RECORDS)

    def share(number: int, of: int) -> Share:
        warm, rest = letters[number:WARM_RECORDS:of], letters[WARM_RECORDS + number :: of]
        return Share(Lot(warm, len(warm), len(warm)), Lot(rest, len(rest), len(warm) + len(rest)))

    return Stream("sequence", command, share, COUNT_RECORDS)


async def events_stream(folder: Path) -> Stream:
    """Batches into the tables of `events`."""
    batches = Supply().some(WARM_BATCHES + BATCHES)
    objects = open_objects(f"file:{folder}/objects")
    await put_objects(objects, batches)
    await objects.close()

    def command(name: str, folder: Path) -> Program:
        where = ("--queue", RABBITMQ, "--database", f"{POSTGRES}?schema={name}", "--objects", f"file:{folder}/objects")
        env = {"SANDERLING_EVENTS_QUEUE_NAME": name, "SANDERLING_EVENTS_EXCHANGE": name}
        return Program((COMMAND, "events", "consume", *where, "--out", str(folder / name), "--json"), env, CORES)

    def share(number: int, of: int) -> Share:
        totals, lots = Totals(TREND), []
        for some in (batches[number:WARM_BATCHES:of], batches[WARM_BATCHES + number :: of]):
            for batch in some:
                totals.add(batch.truth)
            lots.append(Lot(letters_of(some), items_of(some), totals.posts + totals.errors))
        return Share(*lots)

    return Stream("events", command, share, COUNT_ITEMS)


# How it is measured.


class Lane:
    """A queue, a schema, and the processes between them."""

    def __init__(self, stream: Stream, share: Share, processes: int) -> None:
        self.name = f"bench_streams_{uuid.uuid4().hex[:8]}"
        self.share = share
        self.pids: list[int] = []
        self._stream, self._processes = stream, processes
        self._queue = open_queue(RABBITMQ, self.name, SystemClock())
        self._db: Any = None

    @asynccontextmanager
    async def opened(self, folder: Path) -> AsyncIterator["Lane"]:
        """Everything, begun; nothing of it is left in the end."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(drop, self.name)
            stack.push_async_callback(self._queue.close)
            await stack.enter_async_context(schema(POSTGRES, self.name))
            self._db = await asyncpg.connect(f"{POSTGRES}?options=-csearch_path%3D{self.name}")
            stack.push_async_callback(self._db.close)
            program = self._stream.command(self.name, folder)
            self.pids += await stack.enter_async_context(started(program, self._processes, folder / self.name))
            yield self

    async def publish(self, lot: Lot) -> None:
        """Put these into the queue."""
        await self._queue.publish(lot.letters)

    async def idle(self) -> bool:
        """Whether all processes take from the queue and have nothing to do."""
        if await consumers(self.name) < len(self.pids):
            return False
        before = [cpu_of(pid) for pid in self.pids]
        await asyncio.sleep(0.5)
        return all(cpu_of(pid) - was <= IDLE for pid, was in zip(self.pids, before, strict=True))

    async def stored(self, lot: Lot) -> bool:
        """Whether its rows are there."""
        return bool((await self._db.fetchrow(self._stream.counts))["rows"] >= lot.rows)

    async def faults(self) -> tuple[int, int]:
        """How many rows too few there are, and how many too many."""
        found = await self._db.fetchrow(self._stream.counts)
        more = found["rows"] - self.share.lot.rows
        return max(0, -more), max(0, more) + abs(found["more"])


async def measure(stream: Stream, side: Side, folder: Path) -> StreamCost:
    """Let the processes take all letters."""
    async with asyncio.timeout(LIMIT), AsyncExitStack() as stack:
        lanes = [Lane(stream, stream.share(at, side.queues), side.processes) for at in range(side.queues)]
        for lane in lanes:
            await stack.enter_async_context(lane.opened(folder))
        pids = [pid for lane in lanes for pid in lane.pids]
        await each_of(lane.idle for lane in lanes)
        for lane in lanes:
            await lane.publish(lane.share.warm)
        await each_of(partial(lane.stored, lane.share.warm) for lane in lanes)
        await each_of(lane.idle for lane in lanes)
        signal_all(pids, signal.SIGSTOP)
        for lane in lanes:
            await lane.publish(lane.share.lot)
        cpu, wall, cores = sum(map(cpu_of, pids)), time.monotonic(), machine()
        signal_all(pids, signal.SIGCONT)
        await each_of(partial(lane.stored, lane.share.lot) for lane in lanes)
        took, used = time.monotonic() - wall, machine()
        await asyncio.sleep(SETTLE)
        cpu = sum(map(cpu_of, pids)) - cpu
        faults = [await lane.faults() for lane in lanes]
    lost, double = (sum(kind) for kind in zip(*faults, strict=True))
    items = sum(lane.share.lot.items for lane in lanes)
    return StreamCost(items, cpu, took, (used[0] - cores[0]) / (used[1] - cores[1]), lost, double)


@asynccontextmanager
async def started(program: Program, processes: int, said: Path) -> AsyncIterator[list[int]]:
    """So many of them; they end with a signal, and well."""
    running = [program.start(said.with_suffix(f".{number}")) for number in range(processes)]
    try:
        yield [each.pid for each in running]
    finally:
        for each in running:
            each.send_signal(signal.SIGCONT)
            each.terminate()
        for each in running:
            await asyncio.to_thread(each.wait, 30)


async def each_of(asked: Iterable[Callable[[], Awaitable[bool]]]) -> None:
    """Return when all were true once."""
    for ask in asked:
        while not await ask():  # noqa: ASYNC110 - others have no event for us
            await asyncio.sleep(0.05)


def signal_all(pids: Sequence[int], number: signal.Signals) -> None:
    """Send a signal to processes of ours."""
    for pid in pids:
        os.kill(pid, number)


async def drop(name: str) -> None:
    """Remove a queue, those beside it, and an exchange of that name."""
    await drop_queues(RABBITMQ, [name])
    async with await aio_pika.connect(RABBITMQ) as connection:
        await (await connection.channel()).exchange_delete(name)


async def consumers(name: str) -> int:
    """How many take from a queue; nobody, if there is none yet."""
    async with await aio_pika.connect(RABBITMQ) as connection:
        channel = await connection.channel()
        try:
            found = await channel.declare_queue(name, passive=True)
        except aio_pika.exceptions.ChannelNotFoundEntity:
            return 0
        return found.declaration_result.consumer_count or 0


def cpu_of(pid: int) -> float:
    """Seconds that a process has used, all threads of it."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def machine() -> tuple[float, float]:
    """Ticks of all cores: those that were used, and all."""
    ticks = [int(each) for each in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


# What is said of it.


async def compare(report: Report, stream: Stream, folder: Path, rounds: int) -> None:
    """Each side in turn."""
    costs: dict[Side, list[StreamCost]] = {side: [] for side in SIDES}
    for _ in range(rounds):
        for side, runs in costs.items():
            runs.append(cost := await measure(stream, side, folder))
            print(
                f"  {stream.name:9}{side.name:18}{cost.each:6.0f} us of CPU an item,"
                f"{cost.items / cost.wall:6,.0f} a second, cores{cost.cores:5.0%} busy",
                flush=True,
            )
    for side, runs in costs.items():
        what = f"{stream.name}, {side.name}"
        report.figures |= {
            f"{what}: us of CPU an item": round(median(run.each for run in runs), 1),
            f"{what}: items a second": round(median(run.items / run.wall for run in runs)),
            f"{what}: cores busy": round(median(run.cores for run in runs), 2),
        }
    apart, alone = (
        median(four.each / other.each for four, other in zip(costs[FOUR], costs[side], strict=True))
        for side in (APART, ONE)
    )
    report.figures |= {
        f"{stream.name}: CPU of an item, of that of one": round(alone, 3),
        f"{stream.name}: items of four cores, of one": round(4 / apart, 2),
    }
    report.bars.append(at_most(f"{stream.name}: CPU of an item, four on one queue, of four apart", MOST, apart))
    for what in ("lost", "double"):
        count = sum(getattr(run, what) for runs in costs.values() for run in runs)
        report.bars.append(at_most(f"{stream.name}: {what}", 0, count))


async def compare_all(report: Report, rounds: int) -> None:
    """Both."""
    with tempfile.TemporaryDirectory() as folder:
        await compare(report, sequence_stream(), Path(folder), rounds)
        await compare(report, await events_stream(Path(folder)), Path(folder), rounds)


def main() -> None:
    """Measure, and say whether the bars are met."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given, sys.argv[1:] = parser.parse_known_args()  # the harness reads the rest
    report = Report("streams")
    report.figures["load"] = busy()
    asyncio.run(compare_all(report, given.rounds))
    report.finish()


if __name__ == "__main__":
    main()
