"""What waits for each host: a few URLs in memory, the rest in the frontier."""

import heapq
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from sanderling.engine.hosts import HostState
from sanderling.outcome import Outcome
from sanderling.pages.rules import CrawlRules
from sanderling.stores.frontier_rows import Queued


class Ask(NamedTuple):
    """A request to make: for a URL that waits, or for the robots.txt of an origin."""

    key: int | str  # the URL's id in the frontier; the origin
    url: str
    queued: Queued | None  # None for robots.txt


class Shut(NamedTuple):
    """An origin whose robots.txt is unavailable: since when, until when it is left alone, or for this whole run."""

    since: float
    until: float
    for_good: bool


@dataclass(slots=True, eq=False)
class PageHost(HostState):
    """What waits for one host."""

    waiting: int = 0  # URLs without an end, in memory, on disk and in flight
    on_disk: int = 0  # of those, in the frontier and not yet taken
    after: int = 0  # the last id that was taken
    loading: bool = False  # whether the frontier was asked for more
    learning: bool = False  # whether its robots.txt is being asked for: nothing else is meanwhile
    heeded: tuple[str, ...] = ()  # schemes whose robots.txt was taken notice of: its delay, and its sitemaps
    shut: dict[str, Shut] | None = None  # by origin
    withheld: int = 0  # URLs left waiting since the robots.txt of their origin was unavailable for too long
    forbidden: Outcome | None = None  # why our own guard lets nothing be asked there
    ready: deque[Queued] | None = None  # made when needed: most hosts of a wide crawl have a handful of URLs
    _later: list[tuple[float, int, Queued]] | None = None

    def put(self, urls: list[Queued], now: float, wall: float, longest: float) -> None:
        """Take in what came from the frontier, in its order; what failed in an earlier run when it is due."""
        for queued in urls:
            if queued.failures:
                self.recall(queued.id, queued.failures, now)
                # A clock that was wrong must not put anything off for longer than we ever do.
                self.put_off(queued, now + min(longest, max(0.0, queued.due - wall)))
            else:
                self.ready = self.ready or deque()
                self.ready.append(queued)
        if urls:
            self.after = urls[-1].id
            self.on_disk = max(0, self.on_disk - len(urls))

    def put_back(self, queued: Queued) -> None:
        """First in line again: it could not be asked for now. What has failed stays behind what has not."""
        if self.failures(queued.id):
            self.put_off(queued, 0.0)
            return
        self.ready = self.ready or deque()
        self.ready.appendleft(queued)

    def put_off(self, queued: Queued, until: float) -> None:
        """Not before `until`."""
        self._later = self._later or []
        heapq.heappush(self._later, (until, queued.id, queued))

    def pop_new(self) -> Queued | None:
        """The next that was never put off."""
        return self._popped(self.ready.popleft()) if self.ready else None

    def pop_last(self) -> Queued | None:
        """The last that was never put off, far away from what may be broken."""
        return self._popped(self.ready.pop()) if self.ready else None

    def pop_again(self, now: float) -> Queued | None:
        """The next that was put off and is due."""
        return heapq.heappop(self._later)[2] if self.has_again(now) and self._later else None

    def _popped(self, queued: Queued) -> Queued:
        self.ready = self.ready or None  # an empty one is three times as large as all the rest of a host
        return queued

    def has_again(self, now: float) -> bool:
        """Whether something that was put off is due."""
        return bool(self._later) and self._later is not None and self._later[0][0] <= now

    def due(self) -> float | None:
        """When there is next something to take; 0 if there is now, None if there is nothing in memory."""
        if self.ready:
            return 0.0
        return self._later[0][0] if self._later else None

    @property
    def fresh(self) -> int:
        """How many are in memory that were not put off."""
        return len(self.ready or ())

    @property
    def held(self) -> int:
        """How many are in memory."""
        return len(self.ready or ()) + len(self._later or ())

    @property
    def set_aside(self) -> int:
        """How many of its URLs are left to the next run."""
        return self.waiting if self.aside else self.withheld

    def shut_out(self, origin: str, now: float, rules: CrawlRules) -> bool:
        """The origin's robots.txt is unavailable, so nothing of it may be asked for; whether that is for good.

        The longer it lasts, the later it is asked for again. The same host may be well under its other scheme.
        """
        self.shut = self.shut or {}
        since = self.shut[origin].since if origin in self.shut else now
        known = origin.partition("://")[0] in self.heeded
        patience = rules.patience if known else min(rules.patience, rules.first_patience)
        self.shut[origin] = Shut(since, now + max(rules.again[0], (now - since) / 2), now - since > patience)
        return self.shut[origin].for_good

    def wait_for(self, origin: str, until: float, now: float) -> None:
        """Ask for the origin's robots.txt again then."""
        if until > now:
            since = self.shut[origin].since if self.shut and origin in self.shut else now
            self.shut = {**(self.shut or {}), origin: Shut(since, until, for_good=False)}

    def let_in(self, origin: str) -> None:
        """The origin's robots.txt is known."""
        if self.shut:
            self.shut.pop(origin, None)

    def withholds(self, queued: Queued, origin: str, now: float) -> bool:
        """Whether the URL must wait, here or in the frontier for good, since its origin is shut out."""
        shut = None if self.shut is None else self.shut.get(origin)
        if shut is None or (now >= shut.until and not shut.for_good):
            return False
        if shut.for_good:
            self.withheld += 1
        else:
            self.put_off(queued, shut.until)
        return True
