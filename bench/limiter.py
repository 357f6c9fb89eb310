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
from harness import Bar, Report, at_least, at_most

from sanderling.limit import Feedback, Limiter, LimiterRules, PaceRules
from sanderling.testing import FakeClock

ROUNDS = 7
AT_A_TIME = 5_000  # new hosts, that a round meets one after the other
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


class Meeting:
    """A limiter that meets one new host after the other, none of them twice.

    No time passes, so each that is let go is still owed silence, and something must be kept of it: the worst case.
    """

    def __init__(self, room: int, met: int) -> None:
        self._limiter = Limiter(LimiterRules(hosts=room), clock=FakeClock(1000.0))
        self._met = 0
        self.worst = 0.0  # seconds of CPU that the longest meeting took, of those after the first `met`
        self.meet(met)
        self.worst = 0.0

    def meet(self, count: int) -> float:
        """Seconds of CPU to meet so many more, each of which answers once."""
        hosts = [f"host{number}.example" for number in range(self._met, self._met + count)]
        self._met += count
        began = before = time.process_time()
        for host in hosts:
            permit = self._limiter.try_acquire(host)
            assert permit is not None
            self._limiter.feedback(permit, Feedback(200, 0.1))
            after = time.process_time()
            self.worst = max(self.worst, after - before)
            before = after
        return before - began


def meeting(room: int, met: int, report: Report) -> Bar:
    """How much longer it takes to meet a host after millions than after the first that found no room in memory."""
    gc.disable()  # it would stop now one side, now the other, and is not ours
    few, many = Meeting(room, room), Meeting(room, met)
    pairs = [(few.meet(AT_A_TIME), many.meet(AT_A_TIME)) for _ in range(2 * ROUNDS)]
    gc.enable()
    ratio = median(after / before for before, after in pairs)
    early, late = (median(times) / AT_A_TIME * 1e6 for times in zip(*pairs, strict=True))
    worst = many.worst * 1e3
    report.figures |= {f"meeting a host, room for {room}, microseconds": round(late, 1)}
    report.figures |= {f"longest step, room for {room}, ms": round(worst, 2)}
    print(
        f"meeting a host with room for {room:,}: {early:.1f} us after {room:,}, {late:.1f} us after {met:,};", end=" "
    )
    print(f"longest step {worst:.2f} ms of CPU")
    return at_most(f"meeting a host after {met:,} others, times as long as after {room:,}", 1.3, ratio)


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
        meeting(10_000, 3_000_000, report),
        meeting(MANY, 1_500_000, report),
    ]
    report.finish()


if __name__ == "__main__":
    asyncio.run(main())
