"""`sanderling demo`: one limiter learns three simulated hosts at once, before your eyes."""

import asyncio
from dataclasses import dataclass
from random import Random

import msgspec

from sanderling.cli.demos.limiter_screen import Frame, Screen, Told, fitting
from sanderling.cli.demos.limiter_summary import summarise
from sanderling.cli.options import Options, expose_limiter, observe
from sanderling.clock import ScaledClock, SystemClock
from sanderling.limit import Limiter
from sanderling.observe import logs
from sanderling.worlds.showcase import CALLERS, RULES, Exhibit, exhibits, keep_asking

# The hosts roll the same dice each time, so that what one person sees another can look for. The clock is real, so
# no two runs are quite the same.
SEED = 1
LOG_EVERY, BUSIEST = 10.0, 3  # seconds between two lines of the log, and hosts that fit on one

log = logs.get(__name__)


@dataclass(frozen=True, slots=True)
class Show:
    """What runs: hosts, the limiter that learns them, and for how many of the hosts' seconds."""

    hosts: tuple[Exhibit, ...]
    limiter: Limiter
    clock: ScaledClock
    seconds: float

    @property
    def elapsed(self) -> float:
        """The hosts' seconds that have passed."""
        return min(self.clock.now(), self.seconds)

    def frame(self) -> Frame:
        """What there is to see now."""
        return Frame(self.limiter.snapshot(), self.elapsed, self.seconds, self.clock.speed)

    def end(self, screen: Screen) -> None:
        """Say what came of it so far."""
        summary = summarise(self.hosts, self.limiter.snapshot(), self.elapsed, self.seconds)
        screen.end([Told(summary)], msgspec.to_builtins(summary))


SECONDS, SPEED = 40.0, 4.0  # how long, by the clock on the wall, and how many times as fast the hosts' time passes


def demo_limiter(seconds: float, speed: float, options: Options, *, as_json: bool) -> None:
    """Watch the limiter learn three hosts at once: a silent quota, a queueing server, and one that fails for a while.

    The hosts are simulated and nothing leaves this machine. Ctrl-C ends it early, with the summary so far.
    """
    rng, clock = Random(SEED), ScaledClock(speed)
    show = Show(exhibits(seconds * speed, rng), Limiter(RULES, clock=clock, rng=rng), clock, seconds * speed)
    screen = fitting(json=as_json)
    try:
        asyncio.run(_run(show, screen, options))
    except KeyboardInterrupt:
        show.end(screen)
        raise
    show.end(screen)


async def _run(show: Show, screen: Screen, options: Options) -> None:
    async with observe(options, expose_limiter(show.limiter), say=screen.note), asyncio.TaskGroup() as group:
        callers = [
            group.create_task(keep_asking(host, show.limiter, show.clock))
            for host in show.hosts
            for _ in range(CALLERS)
        ]
        if options.logs_snapshots:
            callers.append(group.create_task(_log_snapshots(show.limiter)))
        with screen:
            await _watch(show, screen)
        for caller in callers:
            caller.cancel()


async def _watch(show: Show, screen: Screen) -> None:
    """Show a frame every so often, the first at once and the last at the end."""
    screen.show(show.frame())
    while (left := show.seconds - show.elapsed) > 0:
        await show.clock.sleep(min(left, screen.every * show.clock.speed))
        screen.show(show.frame())


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
