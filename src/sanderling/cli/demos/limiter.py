"""`sanderling demo limiter`: one limiter learns three simulated hosts at once, before your eyes.

The hosts are simulated and nothing leaves this machine. Ctrl-C ends it early, with the summary so far.
"""

import asyncio
import os
from collections.abc import Sequence
from functools import partial
from random import Random

import msgspec

from sanderling.cli.demos.limiter_summary import describe, summarise
from sanderling.cli.options import Options, expose, observe
from sanderling.cli.report_screen import Screen, fitting
from sanderling.cli.watching import draw, run_beside
from sanderling.clock import ScaledClock, SystemClock
from sanderling.engine.host_report import HostStatus, report_host
from sanderling.limit import Limiter
from sanderling.observe import logs
from sanderling.observe.metrics import TOP_HOSTS, LimiterMetrics
from sanderling.observe.report import Activity, Process, Report, WorkCounts, host_troubles
from sanderling.observe.snapshots import log_snapshots
from sanderling.worlds.showcase import CALLERS, RULES, Exhibit, exhibits, keep_asking

# The hosts roll the same dice each time, so that what one person sees another can look for. The clock is real, so
# no two runs are quite the same.
SEED = 1

log = logs.get(__name__)


class LimiterFacts(msgspec.Struct, frozen=True):
    """Nothing that is not in every report."""


def run(options: Options, *, as_json: bool, seconds: float = 40.0, speed: float = 4.0) -> None:
    """Watch the limiter learn three hosts at once: a silent quota, a queueing server, and one that fails for a while.

    It takes so many seconds by the clock on the wall; the hosts' time passes so many times as fast.
    """
    rng, clock, until = Random(SEED), ScaledClock(speed), seconds * speed
    hosts, limiter, screen = exhibits(until, rng), Limiter(RULES, clock=clock, rng=rng), fitting(json=as_json)
    try:
        asyncio.run(_run(hosts, limiter, clock, until, screen, options))
    finally:
        summary = summarise(hosts, limiter.snapshot(), min(clock.now(), until), until)
        screen.end(describe(summary), msgspec.to_builtins(summary))


async def _run(
    hosts: Sequence[Exhibit], limiter: Limiter, clock: ScaledClock, until: float, screen: Screen, options: Options
) -> None:
    beside = [keep_asking(host, limiter, clock) for host in hosts for _ in range(CALLERS)]
    if options.logs_snapshots:
        beside.append(log_snapshots(limiter.snapshot, log, SystemClock()))
    take = partial(limiter.snapshot, TOP_HOSTS)
    async with observe(options, expose(LimiterMetrics, take), say=screen.note):
        with screen:
            await run_beside(
                clock.sleep(until - clock.now()),
                *beside,
                draw(screen, lambda: make_report(limiter, clock, until)),
            )
            screen.show(make_report(limiter, clock, until))


def make_report(limiter: Limiter, clock: ScaledClock, until: float) -> Report[LimiterFacts]:
    """What there is to see now. Times are the hosts' seconds."""
    snapshot, elapsed = limiter.snapshot(), min(clock.now(), until)
    views = sorted(snapshot.top, key=lambda view: view.host)
    hosts = tuple(report_host(HostStatus(view, view.waiting, None), lasting=True) for view in views)
    # None leave while the breaker is open, whatever the rate will be after it.
    rates = {view.host: 0.0 if view.state == "open" else view.rate for view in views}
    return Report(
        system="limiter",
        doing=f"one limiter learns three hosts at once: {CALLERS} callers each, time {clock.speed:g}x as fast",
        process=Process(pid=os.getpid(), started=0.0, wall=elapsed),
        troubles=tuple(host_troubles(hosts)),
        time_left=(until - elapsed) / clock.speed,
        work=WorkCounts(
            asked=snapshot.requests,
            refused=snapshot.rejected,
            kept=snapshot.requests - snapshot.rejected,
            failed=0,
            waiting=sum(view.waiting for view in views),
        ),
        hosts=hosts,
        hosts_known=len(hosts),
        numbers=(("had to wait", f"{snapshot.throttled:,}"), ("turned away", f"{snapshot.denied:,}")),
        activity=tuple(
            Activity(label=host.removesuffix(".example"), value=rate, text=f"{rate:.1f} a second")
            for host, rate in rates.items()
        ),
        facts=LimiterFacts(),
    )
