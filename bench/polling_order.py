"""Whose turn is it, with twice as much to do as can be done? Our order, and three that are in use, on one slot.

A live target is due every 200 ms, 230 others every 10 s and 300 every 60 s; each run takes 60 ms, so that 16.7 a second
can be done. All of it is virtual time: ours is the real system, the others are simulated in a few lines each. Ours
needs no slot for what is live.
"""

import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from polling_parts import Upstream, gaps, polling, source

from sanderling.stores.polling import Query
from sanderling.testing import LoopClock, run_virtual

TOOK = 0.06
LIVE, FAST, SLOW = 1, 230, 300
INTERVALS = {"live": 0.2, "fast": 10.0, "slow": 60.0}
SECONDS = 600.0
SETTLED = 120.0  # seconds until everything is as late as it gets


@dataclass(slots=True)
class Job:
    """A target of the orders that are simulated."""

    kind: str
    due: float
    priority: int
    times: list[float]


@dataclass(frozen=True, slots=True)
class Waits:
    """How long targets waited between two runs, in seconds: by kind, the median and the worst."""

    live: tuple[float, float]
    fast: tuple[float, float]
    slow: tuple[float, float]


def jobs() -> list[Job]:
    """All targets, spread over their intervals."""
    counts = {"live": LIVE, "fast": FAST, "slow": SLOW}
    return [
        Job(kind, INTERVALS[kind] * number / count, 100 if kind == "live" else 0, [])
        for kind, count in counts.items()
        for number in range(count)
    ]


def simulate(order: Callable[[Job, float], float], tick: float = 0.0) -> Waits:
    """Run on one slot whatever comes first in the order; with a tick, only then is looked."""
    every, now = jobs(), 0.0
    while now < SECONDS:
        due = [job for job in every if job.due <= now]
        if not due:
            now = min(job.due for job in every)
            continue
        job = min(due, key=lambda each: order(each, now))
        job.times.append(now)
        now += TOOK
        if tick:
            now = -(-now // tick) * tick
        job.due = now + INTERVALS[job.kind]
    return waits({f"{job.kind}/{number}": job.times for number, job in enumerate(every)})


def waits(times: dict[str, list[float]]) -> Waits:
    """The same of all targets, once things have settled."""
    found: dict[str, list[float]] = {kind: [] for kind in INTERVALS}
    for name, ran in times.items():
        settled = [at for at in ran if at > SETTLED]
        # One that never ran has waited all the time.
        found[name.partition("/")[0]] += gaps(settled) or [SECONDS - SETTLED]
    return Waits(**{kind: (median(each), max(each)) for kind, each in found.items()})


def by_due(job: Job, _now: float) -> float:
    """Whoever is due first; priority decides between equals."""
    return job.due


def by_priority(job: Job, now: float) -> float:
    """The most important first."""
    return -job.priority * 1e9 + job.due - now


def by_deadline(job: Job, _now: float) -> float:
    """Whoever's next run is due first."""
    return job.due + INTERVALS[job.kind]


def ours() -> Waits:
    """The same by the real system."""

    async def main() -> Waits:
        clock = LoopClock()
        upstream = Upstream(clock, TOOK, {"live": LIVE, "fast": FAST, "slow": SLOW})
        with tempfile.TemporaryDirectory() as folder:
            async with polling(Path(folder), source(INTERVALS), upstream, clock, 1000.0) as system:
                await system.live.set("scheduler.concurrency", "1")
                await system.live.set("scheduler.liveIdleMs", "200")

                async def script() -> None:
                    await asyncio.sleep(5.0)
                    await system.tools.store.promote(Query(kind="live"), 86_400.0)
                    await asyncio.sleep(SECONDS)
                    system.stop()

                await system.run(script())
        return waits({path[1:]: times for path, times in upstream.times.items() if not path.startswith("/ids/")})

    return run_virtual(main())


def main() -> dict[str, Waits]:
    """All orders, and ours."""
    found = {
        "by due time, every 200 ms": simulate(by_due, 0.2),
        "by priority, every 200 ms": simulate(by_priority, 0.2),
        "by deadline": simulate(by_deadline),
        "ours": ours(),
    }
    demand = LIVE / INTERVALS["live"] + FAST / INTERVALS["fast"] + SLOW / INTERVALS["slow"]
    print(f"{demand:.1f} runs a second are due, {1 / TOOK:.1f} can be made; seconds between runs, median / worst")
    print(f"{'':28} {'live, 0.2':>17} {'230 of 10':>17} {'300 of 60':>17}")
    for name, each in found.items():
        cells = (f"{middle:.3f} / {worst:7.3f}" for middle, worst in (each.live, each.fast, each.slow))
        print(f"{name:28} {' '.join(f'{cell:>17}' for cell in cells)}")
    return found


if __name__ == "__main__":
    main()
