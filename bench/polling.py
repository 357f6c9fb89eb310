"""Is 200 ms 200 ms, with a million targets and with too much to do? Our polling, beside APScheduler where it can do it.

Four parts: the cadence of one live target over a minute of real time, ours and APScheduler's in turns of ten seconds,
each asking the same server on loopback; a million targets in SQLite, selected and rescheduled; a hundred thousand of
them promoted at once; and the order under twice the load (`polling_order.py`).
"""

import asyncio
import logging
import resource
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from statistics import median

import aiohttp
import polling_order
import structlog
import uvloop
from aiohttp import web
from apscheduler.schedulers.asyncio import AsyncIOScheduler  # type: ignore[import-untyped]  # ships neither
from harness import Report, at_least, at_most
from polling_parts import EVENT, inserted, percentile, polling, source

from sanderling.clock import SystemClock
from sanderling.executor import in_threads
from sanderling.fetch.guard import GuardRules
from sanderling.fetch.http import Http, HttpRules
from sanderling.polling.adaptive import Adapter
from sanderling.polling.measures import PollingMeasures
from sanderling.polling.schedule import Schedule
from sanderling.polling.target_sync import TargetSync
from sanderling.stores.polling import Query
from sanderling.stores.polling_store import PollingStore
from sanderling.stores.sqlite_polling import open_sqlite_polling
from sanderling.testing import FakeClock

ROUNDS, TURN, EVERY = 6, 10.0, 0.2
TARGETS, INTERVAL = 1_000_000, 50.0  # so that 20,000 are due each second
STEP, STEPS = 0.2, 60  # seconds of the targets' time between turns, and how many are measured
PROMOTED = 100_000


# The cadence.


async def cadence(report: Report) -> None:
    """Ours and APScheduler's, in turns."""
    late: dict[str, list[float]] = {"ours": [], "apscheduler": []}
    async with AsyncExitStack() as stack:
        origin = await stack.enter_async_context(_Server())
        for _ in range(ROUNDS):
            late["ours"] += await _ours(origin)
            late["apscheduler"] += await _apscheduler(origin)
    wanted = round(ROUNDS * TURN / EVERY)
    for name, each in late.items():
        print(
            f"{name:12} {len(each)} of {wanted} runs, late by {median(each) * 1000:.2f} ms (median), "
            f"{percentile(each, 99) * 1000:.2f} ms (p99), {max(each) * 1000:.2f} ms (worst)"
        )
        report.figures |= {f"{name}_runs": len(each), f"{name}_p99_ms": percentile(each, 99) * 1000}
    ours, theirs = (percentile(late[name], 99) for name in ("ours", "apscheduler"))
    report.bars += [
        at_least("runs at 200 ms over 60 s", wanted, len(late["ours"])),
        at_most("lateness p99, ms", 10.0, ours * 1000),
        at_most("lateness p99, ours by APScheduler's", 1.0, ours / theirs),
    ]


class _Server:
    """A document on loopback that never changes."""

    async def __aenter__(self) -> str:
        app = web.Application()
        app.router.add_get("/live/{id}", self._answer)
        app.router.add_get("/ids/live", self._ids)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        return web.json_response({"id": request.match_info["id"]})

    async def _ids(self, _request: web.Request) -> web.Response:
        return web.json_response(["1"])


class _Listening:
    """Notes how late accelerated runs were, and passes everything on."""

    def __init__(self, measures: PollingMeasures, late: list[float]) -> None:
        self._measures = measures
        self._late = late

    def ran(self, kind: str, code: str, *, late: float, seconds: float, accelerated: bool) -> None:
        if accelerated:
            self._late.append(late)
        self._measures.ran(kind, code, late=late, seconds=seconds, accelerated=accelerated)

    def __getattr__(self, name: str) -> object:
        return getattr(self._measures, name)


async def _ours(origin: str) -> list[float]:
    """How late each run of a turn was."""
    clock = SystemClock()
    late: list[float] = []
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        guard = GuardRules(private=True, raw_addresses=True)
        http = await stack.enter_async_context(Http(HttpRules(), guard, clock=clock))
        desk = in_threads(stack.enter_context(ThreadPoolExecutor(1, "disk")))  # as the command has it
        parts = polling(folder, source({"live": 10.0}, origin), http, clock, 100.0, desk)
        system = await stack.enter_async_context(parts)

        async def script() -> None:
            while not system.measures.runs:
                await clock.sleep(0.05)
            await clock.sleep(0.5)
            system.source.measures = system.keeper.measures = _Listening(system.measures, late)  # type: ignore[assignment]  # it stands where they do
            await system.tools.store.promote(Query(kind="live"), 3600.0)
            system.sync.poke()
            # The first run may come before, and the last must be over.
            await clock.sleep(TURN + EVERY)
            system.stop()

        await system.run(script())
    return late[: round(TURN / EVERY)]


async def _apscheduler(origin: str) -> list[float]:
    """The same by APScheduler, without a database."""
    late: list[float] = []
    began = 0.0
    async with aiohttp.ClientSession() as session:

        async def job() -> None:
            now = time.time()
            late.append((now - began) % EVERY)
            async with session.get(f"{origin}/live/1") as reply:
                await reply.json()

        scheduler = AsyncIOScheduler(timezone="UTC")
        scheduler.start()
        began = time.time() + 0.5
        scheduler.add_job(job, "interval", seconds=EVERY, start_date=_date(began), max_instances=1)
        await asyncio.sleep(0.5 + TURN - EVERY / 2)
        scheduler.shutdown(wait=False)
        await asyncio.sleep(0.1)
    # Of one that is early by a rounding error, nearly a whole interval is left.
    return [each if each < EVERY * 0.99 else 0.0 for each in late[: round(TURN / EVERY)]]


def _date(moment: float) -> object:
    from datetime import UTC, datetime  # noqa: PLC0415 - only here is a date wanted

    return datetime.fromtimestamp(moment, UTC)


# A million targets.


async def scale(report: Report) -> None:
    """Select and reschedule what is due of a million targets; then promote a tenth of them."""
    clock = FakeClock()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1, "disk") as disk:
        described = source({"many": INTERVAL})
        store = await open_sqlite_polling(Path(folder) / "polling.db", described.schema, EVENT, in_threads(disk))
        await _fill(store, clock)
        schedule = Schedule(lambda _: "host", Random(1))
        sync = TargetSync(store, schedule, Adapter(), PollingMeasures((), (), clock), clock, lambda: None)
        await _play(sync, schedule, clock, 15)  # until what is loaded and what is let go are in balance
        began, spent = time.perf_counter(), time.process_time()
        ran = await _play(sync, schedule, clock, STEPS)
        took, spent = time.perf_counter() - began, time.process_time() - spent
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rate = ran / took
        loaded = len(schedule.entries)
        print(f"{TARGETS:,} targets: {ran:,} selected and rescheduled in {took:.1f} s, {rate:,.0f} a second")
        print(f"{spent:.1f} s of CPU, {ran / spent:,.0f} a second of it")
        print(f"{loaded:,} of them in memory, {memory:,.0f} MB at most")
        await _promote(report, store, sync, schedule, clock)
        await store.close()
    report.figures |= {"rescheduled_a_second": rate, "megabytes": memory, "loaded": loaded}
    report.bars += [
        at_least("targets of a million selected and rescheduled a second", 20_000, rate),
        at_most("memory with a million targets, MB", 500, memory),
    ]


async def _fill(store: PollingStore, clock: FakeClock) -> None:
    """Make a million targets that are due evenly over their interval, as they are after their first run."""
    await store.claim(clock.wall())
    for first in range(0, TARGETS, 100_000):
        await store.apply(inserted("many", range(first, first + 100_000), INTERVAL), clock.wall())
    await _spread(store, clock)


async def _spread(store: PollingStore, clock: FakeClock) -> None:
    database = store._db  # type: ignore[attr-defined]  # noqa: SLF001 - there is no other way to have run already
    database.execute(
        "UPDATE polling_targets SET runs = 1, next_due = ? + (id * 7919 % 1000000) * ? / 1000000.0",
        (clock.wall(), INTERVAL),
    )
    database.execute("DELETE FROM polling_edits")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


async def _play(sync: TargetSync, schedule: Schedule, clock: FakeClock, steps: int) -> int:
    """Run what is due, as if it took no time; how many."""
    async with asyncio.TaskGroup() as group:
        ran = await _steps(sync, schedule, clock, steps, group)
    while sync.pending:
        await sync.turn()
    return ran


async def _steps(sync: TargetSync, schedule: Schedule, clock: FakeClock, steps: int, group: asyncio.TaskGroup) -> int:
    ran = 0
    for _ in range(steps):
        clock.advance(STEP)
        turning = group.create_task(sync.turn())  # the disk has a thread of its own, as in the command
        await asyncio.sleep(0)
        now = clock.now()
        host = schedule.hosts.get("host")
        while host is not None and (entry := host.usual.pick(now)) is not None:
            schedule.started(entry)
            entry.runs += 1
            entry.status = "ok"
            schedule.finish(entry, now)
            sync.note(entry)
            ran += 1
        await turning
    return ran


async def _promote(report: Report, store: PollingStore, sync: TargetSync, schedule: Schedule, clock: FakeClock) -> None:
    """A hundred thousand at once: how long it takes to say which is next, in memory and in the database."""
    database = store._db  # type: ignore[attr-defined]  # noqa: SLF001 - a promotion of some of a kind
    database.execute("UPDATE polling_targets SET promote = 0 WHERE id <= ?", (PROMOTED,))
    began = time.perf_counter()
    await sync.turn()
    now = clock.now()
    line, waiting = schedule.hosts["host"].usual, -1
    while line.due(now) <= now and waiting < len(line):
        waiting = len(line)
    heard = time.perf_counter() - began
    picks = []
    for _ in range(2000):
        began = time.perf_counter()
        line.pick(now)
        picks.append(time.perf_counter() - began)
    queries = []
    for _ in range(200):
        began = time.perf_counter()
        await store.due((0.0, 0), clock.wall() + 1, 10)
        queries.append(time.perf_counter() - began)
    print(
        f"{waiting:,} due at once, heard in {heard:.1f} s; the next one in {max(picks) * 1e6:.0f} us at worst, "
        f"the next ten from the database in {median(queries) * 1e6:.0f} us"
    )
    report.figures |= {"pick_us": median(picks) * 1e6, "query_us": median(queries) * 1e6}
    report.bars += [
        at_most("selection among 100,000 promoted, ms", 1.0, percentile(picks, 99) * 1000),
        at_most("the same from the database, ms", 1.0, median(queries) * 1000),
    ]


# Too much to do.


def overload(report: Report) -> None:
    """The order of those that are due."""
    found = polling_order.main()["ours"]
    report.figures |= {"live_median_ms": found.live[0] * 1000, "live_worst_ms": found.live[1] * 1000}
    report.bars += [
        at_most("live target under twice the load, ms between runs, median", 205, found.live[0] * 1000),
        at_most("the same, worst", 250, found.live[1] * 1000),
        at_most("any other, worst wait in intervals", 3.0, max(found.fast[1] / 10, found.slow[1] / 60)),
    ]


def main() -> None:
    """Exit code 1 if a bar falls short."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    report = Report("polling")
    uvloop.run(cadence(report))
    overload(report)
    asyncio.run(scale(report))
    report.finish()


if __name__ == "__main__":
    main()
