"""What waits for each host: a few URLs in memory, the rest in the ledger. Whose turn it is, `flow.turns` says."""

import asyncio
import heapq
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from sanderling.outcome import Code, Outcome
from sanderling.pages.robots import LONGEST_DELAY
from sanderling.pages.rules import CrawlRules
from sanderling.stores.frontier_rows import Queued

# Failed URLs that are due and held back behind what has not failed; with more, they come first, or memory would fill.
MOST_BEHIND = 256
MOST_STRIKES = 5  # as many as make the limiter close a host


class Tries(NamedTuple):
    """How often a URL has failed, since when, and whether the last time took long."""

    number: int
    since: float
    slow: bool


class Shut(NamedTuple):
    """An origin whose robots.txt is not to be had: since when, until when it is left alone, or for this whole run."""

    since: float
    until: float
    for_good: bool


class Flight(NamedTuple):
    """A request that is out: since when, for what, and what ends it."""

    since: float
    url: str
    limit: asyncio.Timeout


@dataclass(slots=True, eq=False)
class HostQueue:
    """What waits for one host: a few URLs in memory, the rest in the ledger."""

    name: str
    on_disk: int = 0  # in the ledger and not yet taken
    after: int = 0  # the last id that was taken
    asking: int = 0  # requests in flight, but for its robots.txt
    flights: dict[int, Flight] | None = None  # by id, of those requests
    turn: float | None = None  # when its turn is, if it has its place among them
    loading: bool = False  # whether the ledger was asked for more
    closed: bool = False  # for now: while its robots.txt is being asked for, or while it is given up
    heeded: tuple[str, ...] = ()  # schemes whose robots.txt was taken notice of: its delay, and its sitemaps
    tries: dict[int, Tries] | None = None  # by id, of what has failed
    good: str | None = None  # a URL that was answered well in this run: by it a closed host is probed
    trusted: bool = False  # it answered that URL while others failed: those are to blame, and not the host
    strikes: int = 0  # URLs that failed for the first time, without a good answer in between
    shut: dict[str, Shut] | None = None  # by origin
    aside: int = 0  # URLs left waiting in the ledger for the next run
    given_up: bool = False  # for this run, and all that waits for it
    answered: float | None = None  # when it last gave a good answer
    silent_since: float | None = None  # when it began to fail without a good answer in between
    failed_at: float = 0.0  # the last time
    trouble: Outcome | None = None  # the last thing it said instead of a good answer
    _ready: deque[Queued] | None = None  # made when needed: most hosts of a wide crawl have a handful of URLs
    _later: list[tuple[float, int, Queued]] | None = None

    def put(self, urls: list[Queued]) -> None:
        """Take in what came from the ledger, in its order."""
        if urls:
            self._ready = self._ready or deque()
            self._ready.extend(urls)
            self.after = urls[-1].id
            self.on_disk = max(0, self.on_disk - len(urls))

    def put_back(self, queued: Queued) -> None:
        """First in line again: it could not be asked for now. What has failed stays behind what has not."""
        if self.has_failed(queued):
            self.put_off(queued, 0.0)
            return
        self._ready = self._ready or deque()
        self._ready.appendleft(queued)

    def put_off(self, queued: Queued, until: float) -> None:
        """Not before `until`, and then behind what was never put off."""
        self._later = self._later or []
        heapq.heappush(self._later, (until, queued.id, queued))

    def take(self, now: float, *, probe: bool = False) -> Queued | None:
        """The next to ask for; None if none is due. A probe comes from the far end, away from what may be broken."""
        due = self._later and self._later[0][0] <= now
        if self._later and due and (not self._ready or len(self._later) >= MOST_BEHIND):
            return heapq.heappop(self._later)[2]
        if not self._ready:
            return None
        queued = self._ready.pop() if probe else self._ready.popleft()
        self._ready = self._ready or None  # an empty one is three times as large as all the rest of a host
        return queued

    def due(self) -> float | None:
        """When there is next something to take; 0 if there is now, None if there is nothing at all."""
        if self._ready:
            return 0.0
        return self._later[0][0] if self._later else None

    @property
    def fresh(self) -> int:
        """How many are in memory that were not put off."""
        return len(self._ready or ())

    @property
    def held(self) -> int:
        """How many are in memory."""
        return len(self._ready or ()) + len(self._later or ())

    @property
    def done(self) -> bool:
        """Whether nothing is left to ask of it, and nothing is being asked."""
        return not (self._ready or self._later or self.on_disk or self.asking or self.loading or self.closed)

    def drop(self) -> None:
        """Forget all that waits: the host was given up."""
        self._ready = self._later = self.tries = None
        self.on_disk = 0

    def set_aside(self) -> None:
        """Leave all that waits to the next run."""
        self.aside += self.held + self.on_disk
        self.given_up = True
        self.drop()

    def tried(self, queued: Queued, now: float, *, slow: bool = False) -> int:
        """Count a try that failed; how many that makes."""
        self.tries = self.tries or {}
        number, since, _ = self.tries.get(queued.id, (0, now, slow))
        self.tries[queued.id] = Tries(number + 1, since, slow)
        return number + 1

    def has_failed(self, queued: Queued) -> bool:
        """Whether the URL was asked for in vain."""
        return self.tries is not None and queued.id in self.tries

    def blames(self, queued: Queued) -> bool:
        """Whether a URL that fails is itself to blame, and not the host.

        It is if others were answered since it first failed, or if nothing else is left by which to tell.
        """
        since = (self.tries or {})[queued.id].since
        return (self.answered is not None and self.answered > since) or not (self._ready or self.on_disk)

    def ended(self, queued: Queued) -> None:
        """The URL is decided."""
        if self.tries:
            self.tries.pop(queued.id, None)

    def spoke(self, now: float) -> None:
        """A good answer: it is alive."""
        self.strikes = 0
        self.answered, self.silent_since, self.trouble = now, None, None

    @property
    def doubtful(self) -> bool:
        """Whether a host that is trusted should prove once more that it is well."""
        return self.trusted and self.strikes >= MOST_STRIKES

    def probed(self, outcome: Outcome, now: float) -> None:
        """What came of asking for what was answered well before. It is no new answer, so the silence goes on."""
        self.trusted = outcome.ok
        if outcome.ok:
            self.answered = now
        else:
            self.good = None
            self.failed(outcome, now)

    def failed(self, outcome: Outcome, now: float) -> None:
        """An answer that was none. That we hold back ourselves is no news of the host."""
        if outcome.code is not Code.DEFERRED or self.trouble is None:
            self.trouble = outcome
        self.failed_at = now
        if self.silent_since is None:
            self.silent_since = now

    def shut_out(self, origin: str, now: float, rules: CrawlRules) -> bool:
        """The origin's robots.txt is not to be had, so nothing of it may be asked for; whether that is for good.

        The longer it lasts, the later it is asked for again. The same host may be well under its other scheme.
        """
        self.shut = self.shut or {}
        since = self.shut[origin].since if origin in self.shut else now
        known = origin.partition("://")[0] in self.heeded
        patience = rules.patience if known else min(rules.patience, rules.first_patience)
        self.shut[origin] = Shut(since, now + max(rules.again[0], (now - since) / 2), now - since > patience)
        return self.shut[origin].for_good

    def let_in(self, origin: str) -> None:
        """The origin's robots.txt is known."""
        if self.shut:
            self.shut.pop(origin, None)

    def withholds(self, queued: Queued, origin: str, now: float) -> bool:
        """Whether the URL may not be asked for, as its origin is shut out: it waits here, or in the ledger for good."""
        shut = None if self.shut is None else self.shut.get(origin)
        if shut is None or (now >= shut.until and not shut.for_good):
            return False
        if shut.for_good:
            self.aside += 1
        else:
            self.put_off(queued, shut.until)
        return True

    def hopeless(self, wait: float, rules: CrawlRules) -> bool:
        """Whether it failed for as long as we are prepared to wait, or wants us to `wait` for longer than that.

        What counts is when it last failed, so that a host that was left alone for long is asked once more before.
        """
        if self.silent_since is None:
            # It may have said so in an earlier run. A delay that robots.txt asks for is none of this.
            return wait > max(rules.patience, LONGEST_DELAY)
        patience = min(rules.patience, rules.first_patience) if self.answered is None else rules.patience
        return self.failed_at - self.silent_since > patience or wait > rules.patience
