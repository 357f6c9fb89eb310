"""What waits for each host: a few URLs in memory, the rest in the ledger. Whose turn it is, `flow.turns` says."""

import heapq
from collections import deque
from dataclasses import dataclass

from sanderling.outcome import Code, Outcome
from sanderling.pages.ends import Queued


@dataclass(slots=True, eq=False)
class HostQueue:
    """What waits for one host: a few URLs in memory, the rest in the ledger."""

    name: str
    on_disk: int = 0  # in the ledger and not yet taken
    after: int = 0  # the last id that was taken
    asking: int = 0  # requests in flight, but for its robots.txt
    turn: float | None = None  # when its turn is, if it has its place among them
    loading: bool = False  # whether the ledger was asked for more
    closed: bool = False  # for now: while its robots.txt is being asked for, or while it is given up
    heeded: tuple[str, ...] = ()  # schemes whose robots.txt was taken notice of: its delay, and its sitemaps
    tries: dict[int, tuple[int, float]] | None = None  # by id, of what has failed: how often, and since when
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
        """First in line again: it could not be asked for now."""
        self._ready = self._ready or deque()
        self._ready.appendleft(queued)

    def put_off(self, queued: Queued, until: float) -> None:
        """Not before `until`, and then before the others."""
        self._later = self._later or []
        heapq.heappush(self._later, (until, queued.id, queued))

    def take(self, now: float) -> Queued | None:
        """The next to ask for; None if none is due."""
        if self._later and self._later[0][0] <= now:
            return heapq.heappop(self._later)[2]
        if not self._ready:
            return None
        queued = self._ready.popleft()
        self._ready = self._ready or None  # an empty one is three times as large as all the rest of a host
        return queued

    def due(self) -> float | None:
        """When there is next something to take; 0 if there is now, None if there is nothing at all."""
        if self._ready:
            return 0.0
        return self._later[0][0] if self._later else None

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

    def tried(self, queued: Queued, now: float) -> int:
        """Count a try that failed; how many that makes."""
        self.tries = self.tries or {}
        number, since = self.tries.get(queued.id, (0, now))
        self.tries[queued.id] = (number + 1, since)
        return number + 1

    def blames(self, queued: Queued) -> bool:
        """Whether a URL that fails is itself to blame, and not the host.

        It is if others were answered since it first failed, or if nothing else is left by which to tell.
        """
        since = (self.tries or {})[queued.id][1]
        return (self.answered is not None and self.answered > since) or not (self._ready or self.on_disk)

    def ended(self, queued: Queued) -> None:
        """The URL is decided."""
        if self.tries:
            self.tries.pop(queued.id, None)

    def spoke(self, now: float) -> None:
        """A good answer: it is alive."""
        self.answered, self.silent_since, self.trouble = now, None, None

    def failed(self, outcome: Outcome, now: float) -> None:
        """An answer that was none. That we hold back ourselves is no news of the host."""
        if outcome.code is not Code.DEFERRED or self.trouble is None:
            self.trouble = outcome
        self.failed_at = now
        if self.silent_since is None:
            self.silent_since = now
