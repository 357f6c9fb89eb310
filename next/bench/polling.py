"""Polling at 200 ms: runs, lateness, what 5,000 idle targets cost; beside APScheduler, if it is there, and a loop.

bench/polling.py [--json] [--quick]
"""

import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from random import Random

from bars import Bar, report

from sanderling.clock import SystemClock
from sanderling.fetch.messages import Headers, HttpResponse
from sanderling.outcome import Code, Outcome
from sanderling.polling.database import SqliteDatabase, Statement
from sanderling.polling.scheduler import Scheduler
from sanderling.polling.store import Store
from sanderling.polling.upstream import Requests, Trackside

SECONDS = 10.0 if "--quick" in sys.argv else 60.0
EVERY, IDLE, TOOK = 0.2, 5000, 0.01
RACE = (
    b'[{"ID":"race","Valid":true,"Round":"r","RaceNumber":1,"Start":"2026/05/01 9:00:01","Detections":[%s],"Laps":[]}]'
)


class Memory(Requests):
    """An upstream that answers in 10 ms; the live race has another pass each time."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    async def get(self, url: str, headers: Headers = ()) -> HttpResponse:  # noqa: ARG002 - as Requests
        body = b"[]"
        if "/race/" in url:
            self.asked.append(time.monotonic())
            passes = (b'{"ID":"d%d","LapNumber":1,"Valid":true}' % number for number in range(len(self.asked) % 100))
            body = RACE % b",".join(passes)
        await asyncio.sleep(TOOK)
        return HttpResponse(Outcome(Code.OK, 200), url, 1, 200, body=body)

    def ready_at(self, url: str) -> float:  # noqa: ARG002 - as Requests
        return 0.0


class SlowDisk(SqliteDatabase):
    """Each commit takes 200 ms more."""

    async def write(self, wanted: Sequence[Statement], *, by_hand: bool = False) -> None:
        await asyncio.sleep(0.2)
        await super().write(wanted, by_hand=by_hand)


async def sanderling(*, idle: int = 0, slow: bool = False, seconds: float = SECONDS) -> tuple[list[float], float]:
    """When the live race was requested, and the CPU used in a second."""
    with tempfile.TemporaryDirectory() as folder:
        database = (SlowDisk if slow else SqliteDatabase)(Path(folder) / "polling.db")
        await database.open()
        clock, requests = SystemClock(), Memory()
        store = Store(database, clock)
        wanted: list[Statement] = [
            ('INSERT INTO events ("sourceId", "isCurrent") VALUES ($1, $2)', [("event", True)]),
            ('INSERT INTO races ("sourceId", "event", "valid", "start") VALUES ($1, $2, $3, $4)',
             [("race", "event", True, "2026/05/01 9:00:01")]),
        ]  # fmt: skip
        await database.write(wanted)
        wall = clock.wall()
        await store.add_targets([(("race", "race"), "event", 5000, wall, 0)])
        # At 5 s each they are always overdue: the worker has all that it may take.
        await store.add_targets((("race", f"idle{each}"), "event", 5000, wall, 0) for each in range(idle))
        upstream = Trackside("http://localhost:8080")
        upstream.base = ""  # no discovery: its targets are there
        upstream.targets = dict  # type: ignore[method-assign]
        scheduler = Scheduler(store, upstream, requests, clock, Random(1), next_race="idle")
        running = asyncio.create_task(scheduler.run())
        await asyncio.sleep(2)
        requests.asked.clear()
        cpu = _cpu()
        await asyncio.sleep(seconds)
        used = (_cpu() - cpu) / seconds
        scheduler.stop()
        await running
        await database.close()
        return requests.asked, used


async def bare(seconds: float) -> list[float]:
    """What a person writes first: poll, then sleep."""
    asked, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        asked.append(time.monotonic())
        await asyncio.sleep(TOOK)
        await asyncio.sleep(EVERY)
    return asked


async def apscheduler(seconds: float) -> list[float]:
    """The same by APScheduler; nothing where it is not installed."""
    if find_spec("apscheduler") is None:
        return []
    kind = import_module("apscheduler.schedulers.asyncio").AsyncIOScheduler
    asked: list[float] = []

    async def poll() -> None:
        asked.append(time.monotonic())
        await asyncio.sleep(TOOK)

    scheduler = kind()
    scheduler.add_job(poll, "interval", seconds=EVERY)
    scheduler.start()
    await asyncio.sleep(seconds)
    scheduler.shutdown(wait=False)
    return asked


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def share(asked: list[float]) -> float:
    """Of the runs that fit between the first and the last, those that there were."""
    return (len(asked) - 1) / max(1, round((asked[-1] - asked[0]) / EVERY))


def late(asked: list[float]) -> float:
    """How late 99 % were at most against their own grid, in milliseconds."""
    begun = min(at - EVERY * number for number, at in enumerate(asked))
    each = sorted(at - EVERY * number - begun for number, at in enumerate(asked))
    return each[len(each) * 99 // 100] * 1000


async def measure() -> list[Bar]:
    asked, _ = await sanderling()
    bars = [
        Bar("share of runs at 200 ms", share(asked), 0.995, least=True),
        Bar("late at p99, ms", late(asked), 30),
    ]
    part = min(SECONDS, 15.0)
    asked, _ = await sanderling(slow=True, seconds=part)
    bars += [
        Bar("share of runs, commits of 200 ms", share(asked), 0.985, least=True),
        Bar("late at p99, commits of 200 ms, ms", late(asked), 30),
    ]
    _, alone = await sanderling(seconds=part)
    asked, beside = await sanderling(idle=IDLE, seconds=part)
    bars += [
        Bar("share of runs beside 5,000 idle targets", share(asked), 0.985, least=True),
        Bar("CPU of 5,000 idle targets, share of a core", beside - alone, 0.10),
        Bar("CPU of the live race alone, share of a core", alone),
        Bar("bare loop: share of runs", share(await bare(part))),
    ]
    if peer := await apscheduler(part):
        bars.append(Bar("APScheduler: share of runs", share(peer)))
        bars.append(Bar("APScheduler: late at p99, ms", late(peer)))
    return bars


if __name__ == "__main__":
    sys.exit(report(asyncio.run(measure())))
