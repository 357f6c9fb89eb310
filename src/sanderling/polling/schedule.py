"""When is each target due? All that are in memory, on their grids, by host.

Everything here is arithmetic: times are seconds of a clock that only goes forward.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import count
from random import Random

from sanderling.polling.cadence import jitter, missed_runs, next_point, phase
from sanderling.polling.hosts import PolledHost, TargetQueue
from sanderling.polling.targets import ScheduledTarget

# The share of its interval by which a live run may end after the next point, and that one still counts: it begins then,
# late. Or an answer that takes a little longer than the cadence would halve it.
GRACE = 0.25
# A kind that is never active by itself is run so many times as often while somebody has it accelerated.
HASTE, FASTEST = 10, 0.2


class Schedule:
    """All targets in memory. `host_of` says at which host a target is asked for; `woken` are hosts with news."""

    def __init__(self, host_of: Callable[[ScheduledTarget], str], rng: Random) -> None:
        self.entries: dict[int, ScheduledTarget] = {}
        self.accelerated: dict[int, ScheduledTarget] = {}
        self.hosts: dict[str, PolledHost] = {}
        self.woken: dict[str, PolledHost] = {}  # at which something may be due sooner than was to be expected
        # Rows of an event's documents went along with another's, so often: what was read before is to be read again.
        self.epochs: Counter[str] = Counter()
        self.jitter = 0.0  # seconds at most, by the settings
        self.active: Mapping[str, float] = {}  # seconds between runs of what is accelerated, by kind, by the settings
        self._host_of = host_of
        self.rng = rng
        self._stamps = count(1)

    # Who is there.

    def add(self, entry: ScheduledTarget) -> None:
        """Take it in; it must not be there yet."""
        self.entries[entry.id] = entry
        entry.epoch = self.epochs[entry.event]
        self._settle(entry)
        self._place(entry, entry.at)

    def drop(self, entry: ScheduledTarget) -> None:
        """Forget it. What is running comes to its end."""
        entry.dropped = True
        entry.stamp = next(self._stamps)
        if self.entries.pop(entry.id, None) is not None:
            self._leave(entry.host)
        self.accelerated.pop(entry.id, None)

    def move(self, entry: ScheduledTarget, now: float) -> None:
        """It is another document by now, maybe at another host: make it due."""
        before = entry.host
        self._settle(entry)
        self._leave(before)
        if not entry.running:
            self._place(entry, entry.at)
        self.promote(entry, now)

    def _settle(self, entry: ScheduledTarget) -> None:
        entry.host = name = self._host_of(entry)
        if name not in self.hosts:
            self.hosts[name] = PolledHost(name)
        self.hosts[name].targets += 1

    def _leave(self, name: str) -> None:
        self.hosts[name].targets -= 1
        if not self.hosts[name].targets:
            del self.hosts[name]

    def upcoming(self) -> list[ScheduledTarget]:
        """The next ten or so to fall due."""
        lines = (line for host in self.hosts.values() for line in (host.live, host.usual))
        return [entry for _, _, entry in heapq.nsmallest(10, (item for line in lines for item in line.upcoming()))]

    @property
    def ready(self) -> int:
        """How many are due and wait, at most."""
        return sum(len(host.live) + len(host.usual) for host in self.hosts.values())

    # What becomes of them.

    def started(self, entry: ScheduledTarget) -> None:
        """It is under way, and nowhere in line."""
        if entry.epoch != (epoch := self.epochs[entry.event]):
            entry.forget()
            entry.epoch = epoch
        entry.running, entry.again = True, False
        entry.stamp = next(self._stamps)

    def finish(self, entry: ScheduledTarget, now: float, *, away: float = 0.0, at: float | None = None) -> int:
        """Plan its next run: at the next point of its grid that is `away` seconds from now or more, or `at` that time.

        Says how many runs were missed meanwhile; they are not made up for.
        """
        grace = GRACE * entry.interval if entry.live and not away else 0.0
        missed = missed_runs(entry.point, entry.interval, now - grace) if entry.at >= entry.point else 0
        entry.missed += missed
        entry.running = False
        if entry.until is not None and now >= entry.until:
            self._slow_down(entry, now)
        if not entry.dropped:
            self._plan(entry, now, away - grace, at)
        return missed

    def _plan(self, entry: ScheduledTarget, now: float, away: float, at: float | None) -> None:
        if entry.point <= now + max(0.0, away):
            entry.point = next_point(entry.point, entry.interval, max(entry.point, now + away))
        if entry.again:
            self._place(entry, now)
        else:
            self._place(entry, entry.point + jitter(entry.interval, self.jitter, self.rng) if at is None else at)

    def promote(self, entry: ScheduledTarget, now: float, least: float = 0.0) -> bool:
        """Make it due now, unless that was done in the last `least` seconds. Whether it makes a difference."""
        if now - entry.promoted < least or (entry.running and entry.again):
            return False
        if entry.running:
            entry.again = True
        elif entry.at > now:
            entry.at = now
            entry.stamp = next(self._stamps)
            self._line_of(entry).push(entry)
        else:
            return False  # it is in line already
        entry.promoted = now
        return True

    def active_seconds(self, entry: ScheduledTarget) -> float:
        """Seconds between its runs while it is accelerated."""
        return self.active.get(entry.kind, 0.0) or min(entry.usual, max(FASTEST, entry.usual / HASTE))

    def accelerate(self, entry: ScheduledTarget, interval: float, now: float, until: float) -> bool:
        """Run it now, and so often until then, in step with nobody. Whether that is new; else the lease is longer."""
        if entry.until is not None and entry.interval == interval:
            entry.until = max(entry.until, until)
            return False
        if entry.until is None:
            entry.home = entry.point
            self.accelerated[entry.id] = entry
        entry.until, entry.interval = until, interval
        entry.point = now + phase(entry.kind, entry.source_id) * interval
        self._replace(entry, now)
        return True

    def slow_down(self, entry: ScheduledTarget, now: float) -> bool:
        """End an acceleration; its usual grid is where it was. Whether there was one."""
        if entry.until is None:
            return False
        self._slow_down(entry, now)
        self._replace(entry, entry.point)
        return True

    def _slow_down(self, entry: ScheduledTarget, now: float) -> None:
        self.accelerated.pop(entry.id, None)
        entry.until, entry.interval = None, entry.usual
        entry.point = next_point(entry.home, entry.usual, now)

    def set_usual(self, entry: ScheduledTarget, interval: float, now: float) -> None:
        """Change its usual interval; the phase stays, and so does an acceleration."""
        if interval == entry.usual:
            return
        entry.usual = interval
        if entry.until is None:
            entry.interval = interval
            entry.point = next_point(entry.point, interval, now)
            if entry.at > now:
                self._replace(entry, entry.point)

    def replan(self, entry: ScheduledTarget, now: float, *, away: float = 0.0, at: float | None = None) -> None:
        """Plan its next run otherwise, unless it is under way: something is known of its last one by now."""
        if not entry.running and not entry.dropped and entry.at > (now if at is None else at):
            self._plan(entry, now, away, at)

    def reclass(self, entry: ScheduledTarget, weight: int, now: float) -> None:
        """Change its weight; one that stands in line stands in another."""
        entry.weight = weight
        if entry.at <= now:
            self._replace(entry, entry.at)

    def _replace(self, entry: ScheduledTarget, at: float) -> None:
        if not entry.running and not entry.dropped:
            self._place(entry, at)

    def _place(self, entry: ScheduledTarget, at: float) -> None:
        entry.at = at
        entry.stamp = next(self._stamps)
        self._line_of(entry).place(entry)

    def _line_of(self, entry: ScheduledTarget) -> TargetQueue:
        host = self.woken[entry.host] = self.hosts[entry.host]
        return host.live if entry.live else host.usual
