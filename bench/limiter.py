"""What does a permit cost? Our limiter beside aiolimiter, which knows one rate and neither hosts nor feedback.

Both sides in one run, alternating, in CPU time; the ratio of each pair, and of those the median.
"""

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Callable, Coroutine
from statistics import median

from aiolimiter import AsyncLimiter
from harness import Report, at_least, at_most

from sanderling.limit import Feedback, Limiter, LimiterRules, PaceRules
from sanderling.testing import FakeClock

ROUNDS = 7
CALLS = 300_000
MANY = 100_000
# No side ever waits: this measures the way through, not the queue.
BOUNDLESS = LimiterRules(pace=PaceRules(initial_rps=1e9, max_rps=1e9, burst=1e9), hosts=1_000_000)
Run = Callable[[], Coroutine[None, None, None]]


async def cpu(run: Run) -> float:
    """Seconds of CPU that `run` took."""
    gc.collect()
    started = time.process_time()
    await run()
    return time.process_time() - started


def sides(count: int) -> dict[str, Run]:  # noqa: C901 - four loops, spelt out so that nothing else is measured
    """The same number of calls over `count` hosts, for each side."""
    hosts = [f"host{i}.example" for i in range(count)]
    turns = range(CALLS // count)
    theirs = {host: AsyncLimiter(1e9, 1) for host in hosts}
    ours = Limiter(BOUNDLESS)
    answered = Limiter(BOUNDLESS)

    async def aiolimiter() -> None:
        for _ in turns:
            for host in hosts:
                await theirs[host].acquire()

    async def acquire() -> None:
        for _ in turns:
            for host in hosts:
                await ours.acquire(host)

    async def try_acquire() -> None:
        for _ in turns:
            for host in hosts:
                ours.try_acquire(host)

    async def with_feedback() -> None:
        for _ in turns:
            for host in hosts:
                permit = await answered.acquire(host)
                answered.feedback(permit, Feedback(status=200, latency=0.1))

    return {"aiolimiter": aiolimiter, "acquire": acquire, "try_acquire": try_acquire, "with feedback": with_feedback}


async def ratios(count: int, report: Report) -> dict[str, float]:
    """How many times as many calls per CPU second as aiolimiter, by the median of the rounds."""
    runs = sides(count)
    for run in runs.values():
        await run()  # first touch makes the hosts; what follows is steady
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            times[name].append(await cpu(run))
    calls = CALLS // count * count
    print(f"{count:,} host{'s' if count > 1 else ''}, nanoseconds of CPU per call and times aiolimiter's speed:")
    found = {}
    for name, taken in times.items():
        found[name] = median(theirs / ours for theirs, ours in zip(times["aiolimiter"], taken, strict=True))
        nanoseconds = median(taken) / calls * 1e9
        report.figures[f"{name}, {count} hosts, ns"] = round(nanoseconds)
        report.figures[f"{name}, {count} hosts, ratio"] = round(found[name], 2)
        print(f"  {name:14} {nanoseconds:6.0f} ns {found[name]:6.2f} x")
    return found


def memory() -> tuple[float, float]:
    """Bytes per host that was asked once, and per host with a hundred answers behind it."""
    clock, count = FakeClock(1000.0), 10_000
    hosts = [f"host{i}.example" for i in range(count)]
    gc.collect()
    tracemalloc.start()
    limiter = Limiter(clock=clock)
    before = tracemalloc.get_traced_memory()[0]
    for host in hosts:
        permit = limiter.try_acquire(host)
        assert permit is not None
        permit.release()
    gc.collect()
    idle = (tracemalloc.get_traced_memory()[0] - before) / count
    for turn in range(100):
        clock.advance(0.5)
        for index, host in enumerate(hosts):
            permit = limiter.try_acquire(host)
            assert permit is not None
            # No two alike, so that no float is shared between hosts and counted once.
            limiter.feedback(permit, Feedback(200, 0.1 + index * 1e-7 + turn * 1e-4))
    gc.collect()
    active = (tracemalloc.get_traced_memory()[0] - before) / count
    tracemalloc.stop()
    return idle, active


async def main() -> None:
    """Measure, print, judge."""
    report = Report("limiter")
    one = await ratios(1, report)
    many = await ratios(MANY, report)
    idle, active = memory()
    report.figures |= {"bytes per idle host": round(idle), "bytes per active host": round(active)}
    print(f"bytes per host: idle {idle:.0f}, active {active:.0f}")
    report.bars = [
        at_least("acquires per CPU second, times aiolimiter, 1 host", 1.3, one["acquire"]),
        at_least("acquires per CPU second, times aiolimiter, 100,000 hosts", 1.1, many["acquire"]),
        # A request costs a crawl some 240 microseconds: 2 for leave and learning are under a hundredth of it.
        at_least("with feedback, 1 host", 0.5, one["with feedback"]),
        at_least("with feedback, 100,000 hosts", 0.4, many["with feedback"]),
        at_most("bytes per idle host", 600, idle),
        at_most("bytes per active host", 1400, active),
    ]
    report.finish()


if __name__ == "__main__":
    asyncio.run(main())
