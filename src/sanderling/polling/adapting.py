"""Give each target the interval that its changes call for, while there is a budget for that."""

from math import sqrt

from sanderling.polling.adaptive import Shares, averaged, counted, rate
from sanderling.polling.entries import Entry
from sanderling.polling.settings import OFF, PollingSettings


class Adapter:
    """Knows how often targets change. Those whose interval an admin has set, or that are live, are left alone."""

    def __init__(self) -> None:
        self._settings = OFF
        self._shares: Shares | None = None  # None without a budget
        self._seen: dict[int, tuple[float, float]] = {}  # root of the rate, and mean gap

    def tune(self, settings: PollingSettings) -> None:
        """Share what the settings say."""
        before, self._settings = self._settings, settings
        if settings.budget <= 0:
            self._shares = None
            self._seen.clear()
        elif self._shares is None:
            self._shares = Shares(settings.budget, settings.fastest, settings.slowest)
        elif settings != before:
            self._shares.tune(settings.budget, settings.fastest, settings.slowest)

    def ran(self, entry: Entry, since: float, *, changed: bool) -> None:
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

    def interval(self, entry: Entry) -> float:
        """Seconds between its runs, unless it is accelerated."""
        seen = self._seen.get(entry.id)
        if self._shares is None or entry.fixed or seen is None:
            return entry.base
        return self._shares.interval(seen[0])
