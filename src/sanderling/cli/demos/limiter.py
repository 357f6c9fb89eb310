"""`sanderling demo limiter`: one limiter learns three simulated hosts at once, before your eyes.

The hosts are simulated and nothing leaves this machine. Ctrl-C ends it early, with the summary so far.
"""

import asyncio
import os
from collections.abc import Sequence
from random import Random

import msgspec

from sanderling.cli.demos.limiter_summary import describe, summarise
from sanderling.cli.options import Options, expose_limiter, observe
from sanderling.cli.report_screen import Screen, fitting
from sanderling.cli.watching import draw, run_beside
from sanderling.clock import ScaledClock, SystemClock
from sanderling.engine.host_report import EngineStanding, report_host
from sanderling.limit import Limiter
from sanderling.observe import logs
from sanderling.observe.report import Activity, Process, Report, WorkCounts
from sanderling.worlds.showcase import CALLERS, RULES, Exhibit, exhibits, keep_asking

# The hosts roll the same dice each time, so that what one person sees another can look for. The clock is real, so
# no two runs are quite the same.
SEED = 1

LOG_EVERY, BUSIEST = 10.0, 3  # seconds between two lines of the log, and hosts that fit on one

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
        beside.append(_log_snapshots(limiter))
    async with observe(options, expose_limiter(limiter), say=screen.note):
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
    hosts = tuple(report_host(view, view.waiting, lasting=True) for view in views)
    # None leave while the breaker is open, whatever the rate will be after it.
    rates = {view.host: 0.0 if view.state == "open" else view.rate for view in views}
    process = Process(pid=os.getpid(), started=0.0, wall=elapsed)
    return Report(
        system="limiter",
        doing=f"one limiter learns three hosts at once: {CALLERS} callers each, time {clock.speed:g}x as fast",
        process=process,
        troubles=EngineStanding(process, hosts).troubles,
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


async def _log_snapshots(limiter: Limiter) -> None:
    """Log a line about the limiter every few seconds, for those who watch logs, until cancelled."""
    clock = SystemClock()
    while True:
        await clock.sleep(LOG_EVERY)
        seen = limiter.snapshot(BUSIEST)
        log.info(
            "limiter_snapshot",
            requests=seen.requests,
            throttled=seen.throttled,
            denied=seen.denied,
            rejected=seen.rejected,
            retries=seen.retries,
            waited=round(seen.waited, 3),
            hosts=seen.hosts,
            open=seen.open,
            half_open=seen.half_open,
            # One text, not a field per host: a host may be called `event` or `level`.
            busiest=" ".join(f"{host.host}={host.rate:.2f}" for host in seen.top),
        )
