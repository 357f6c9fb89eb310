"""How often to ask for what, out of a budget of requests a second for all: more for what changes more. Pure.

The first idea, twice the requests for what changes twice as often, is worse than asking for everything equally often:
most of the budget goes to a few targets that are out of date again at once (Cho and Garcia-Molina, Effective page
refresh policies for web crawlers, 2003). The mean time that a change waits to be seen is least with a frequency in
proportion to the square root of the rate of changes, and that is what a target gets here. In the simulation of the
tests, with 200 targets and two requests a second, a change waits 26 seconds; with equal intervals it is 50, and in
proportion 55, with targets out of date for 105 seconds instead of 7.

How often something changes is estimated from how often a run found it changed. The bounds of intervals bind some
targets, and the budget is shared by the others. All that is kept of them is a histogram of roots, so a run costs the
same among ten targets and among a million.
"""

from math import exp, inf, isfinite, log, sqrt

from sanderling.polling.settings import OFF, PollingSettings
from sanderling.polling.targets import ScheduledTarget

DECAY = 0.97  # of counts, per run: what was seen 23 runs ago counts half
MOST_POLLS = 1 / (1 - DECAY)  # to which the count of runs grows
SHORTEST_GAP = 0.001  # seconds

# Roots of rates are told apart in steps of 5 %. At the ends of the scale are a change in 30 years and a thousand a
# second.
STEP = log(1.05)
LOWEST, HIGHEST = round(log(1e-9) / 2 / STEP), round(log(1e3) / 2 / STEP)
SCALE = tuple(exp(step * STEP) for step in range(LOWEST, HIGHEST + 1))
SOLVED = 1.001  # how well the budget is used, right after the shares are cut
DRIFT = 0.02  # of the budget, by which they may be off before they are cut anew


def counted(polls: float, hits: float, *, changed: bool) -> tuple[float, float]:
    """The counts of runs, and of those that found a change, after one more."""
    return polls * DECAY + 1, hits * DECAY + changed


def averaged(mean: float, gap: float, polls: float) -> float:
    """The mean gap between runs after one more, which `polls` counts already; each weighs as much as it counts."""
    return mean + (gap - mean) / max(1.0, polls)


def rate(polls: float, hits: float, gap: float) -> float:
    """Changes a second, by the counts of runs that were so many seconds apart on average.

    A run sees that something changed, not how often: the logarithm accounts for that. The halves make the answer finite
    if every run found a change, and more than 0 if none did. Without any run it is two changes in three gaps.
    """
    polls = min(MOST_POLLS, max(0.0, polls))
    unchanged = min(polls, max(0.0, polls - hits))
    return -log((unchanged + 0.5) / (polls + 1)) / max(SHORTEST_GAP, gap)


class IntervalShares:
    """The intervals of all adaptive targets, by the root of the rate at which each changes.

    Whoever polls adds every target once, and moves it when its rate is estimated anew. Together they are asked for
    `budget` times a second, unless the bounds of the intervals forbid it.
    """

    def __init__(self, budget: float, fastest: float, slowest: float) -> None:
        self._counts = [0] * len(SCALE)
        self._targets = 0
        self.tune(budget, fastest, slowest)

    def __repr__(self) -> str:
        return f"<IntervalShares: {self._targets} targets, {self.frequency:.3g} of {self._budget:g} requests a second>"

    def tune(self, budget: float, fastest: float, slowest: float) -> None:
        """Share that many requests a second, at intervals within these bounds."""
        if not (isfinite(budget) and budget >= 0 and 0 < fastest <= slowest < inf):
            found = f"budget {budget}, fastest {fastest}, slowest {slowest}"
            raise ValueError(f"{found}: expected a budget from 0 up, and intervals above 0 that do not decrease")
        self._budget = budget
        self._least, self._most = 1 / slowest, 1 / fastest
        self._cut(self._level())

    @property
    def frequency(self) -> float:
        """Requests a second of all targets, if each has the interval that it should."""
        self._settle()
        return self._frequency

    def add(self, root: float) -> None:
        """There is one more target."""
        self._put(_place(root))

    def remove(self, root: float) -> None:
        """There is one less. Raises ValueError if none was added or moved to that root."""
        self._take(_place(root))

    def move(self, before: float, after: float) -> None:
        """A target changes more, or less, than was thought. Raises ValueError if none was at that root."""
        old, new = _place(before), _place(after)
        if old != new:
            self._take(old)
            self._put(new)

    def interval(self, root: float) -> float:
        """Seconds between two runs of a target with that root."""
        self._settle()
        return 1 / self._shares[_place(root)]

    def _put(self, place: int) -> None:
        self._counts[place] += 1
        self._targets += 1
        self._frequency += self._shares[place]

    def _take(self, place: int) -> None:
        if not self._counts[place]:
            raise ValueError(f"no target has a root near {SCALE[place]:.3g}, expected one that was put there before")
        self._counts[place] -= 1
        self._targets -= 1
        self._frequency -= self._shares[place]

    def _settle(self) -> None:
        """Cut the shares anew if they add up to something else than the budget by now, and if that can be helped."""
        if abs(self._frequency - self._budget) > DRIFT * self._budget:
            level = self._level()
            if level != self._cut_at:
                self._cut(level)

    def _cut(self, level: float) -> None:
        self._cut_at = level
        self._shares = [self._share(level, value) for value in SCALE]
        self._frequency = self._sum(level)

    def _level(self) -> float:
        """What a root is multiplied with, so that the shares of all targets are the budget, or a little less."""
        if self._targets * self._least >= self._budget:
            return 0.0
        if self._targets * self._most <= self._budget:
            return inf
        low, high = self._least / SCALE[-1], self._most / SCALE[0]
        while high > low * SOLVED:
            middle = sqrt(low * high)
            low, high = (low, middle) if self._sum(middle) > self._budget else (middle, high)
        return low

    def _share(self, level: float, value: float) -> float:
        return min(self._most, max(self._least, level * value))

    def _sum(self, level: float) -> float:
        counted = zip(self._counts, SCALE, strict=True)
        return sum(count * self._share(level, value) for count, value in counted if count)


class Adapter:
    """Knows how often targets change. Those whose interval an admin has set, or that are live, are left alone."""

    def __init__(self) -> None:
        self._settings = OFF
        self._shares: IntervalShares | None = None  # None without a budget
        self._seen: dict[int, tuple[float, float]] = {}  # root of the rate, and mean gap

    def tune(self, settings: PollingSettings) -> None:
        """Share what the settings say."""
        before, self._settings = self._settings, settings
        if settings.budget <= 0:
            self._shares = None
            self._seen.clear()
        elif self._shares is None:
            self._shares = IntervalShares(settings.budget, settings.fastest, settings.slowest)
        elif settings != before:
            self._shares.tune(settings.budget, settings.fastest, settings.slowest)

    def ran(self, entry: ScheduledTarget, since: float, *, changed: bool) -> None:
        """Learn from a run, so many seconds after the one before."""
        if entry.fixed:
            self.forget(entry.id)
        if entry.fixed or entry.until is not None:
            return
        entry.polls, entry.hits = counted(entry.polls, entry.hits, changed=changed)
        if self._shares is None:
            return
        root, gap = self._seen.get(entry.id, (None, entry.usual))
        gap = averaged(gap, since, entry.polls)
        learned = sqrt(rate(entry.polls, entry.hits, gap))
        if root is None:
            self._shares.add(learned)
        else:
            self._shares.move(root, learned)
        self._seen[entry.id] = learned, gap

    def forget(self, number: int) -> None:
        """A target is no more, or not to be polled."""
        root, _ = self._seen.pop(number, (None, 0.0))
        if root is not None and self._shares is not None:
            self._shares.remove(root)

    def interval(self, entry: ScheduledTarget) -> float:
        """Seconds between its runs, unless it is accelerated."""
        seen = self._seen.get(entry.id)
        if self._shares is None or entry.fixed or seen is None:
            return entry.base
        return self._shares.interval(seen[0])


def _place(root: float) -> int:
    """Where on the scale a root is. What is no number counts as no change."""
    if not root > SCALE[0]:
        return 0
    return len(SCALE) - 1 if root >= SCALE[-1] else round(log(root) / STEP) - LOWEST
