"""Whose repos are asked for, how fast, and how far all of it is done. Pure.

Terms. *Size* of a host: how many of its DIDs were seen so far, in all pages and not only in the last. *Blocked*: it
failed ten times in a row, or still after the limiter had left it alone; what waits for it is skipped and comes back
when it answers, or in a later pass, and one DID at a time is asked for to see whether it is well again. *Awaited*: it
is blocked, and answered before, for no longer than our patience ago. *Refusing*: the last thing it did was
to say "not now" (429, Retry-After). *Pass*: each host goes through its DIDs, then through those that failed, at a time
of its own. *Low water*: the DID up to which everything is settled.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

from sanderling.apis.atproto import Category
from sanderling.engine.turns import Turns
from sanderling.ids import Host

# Requests a second by size: a small host is often somebody's own machine, a large one is built for it.
SMALL, SMALL_RPS = 100, 2.0
LARGE, LARGE_RPS = 1000, 10.0
LEAST_RPS = 0.5
HALVE_EVERY, BLOCK_AFTER = 5, 10  # failures in a row


@dataclass(slots=True, eq=False)
class HostRepos:
    """What is asked of one host."""

    url: str
    name: Host
    size: int = 0
    asking: int = 0
    failures: int = 0  # in a row
    trouble: Category | None = None  # the last of them
    turn: float | None = None
    cap: float = 0.0  # requests a second that the limiter was last told
    shut_at: float = inf  # when the limiter last closed it, if it has not answered since
    refused_since: float | None = None  # the first refusal after the last answer
    answered: bool = False  # whether it ever has
    silent_since: float | None = None  # the first failure after the last answer
    failed_at: float = 0.0  # the last one
    passes: int = 1  # that it has begun
    dids: deque[str] = field(default_factory=deque)
    skipped: list[str] = field(default_factory=list)  # DIDs that are asked for when it answers again

    def feed(self, dids: Iterable[str]) -> None:
        """These wait from now on."""
        before = len(self.dids)
        self.dids.extend(dids)
        self.size += len(self.dids) - before

    def rate(self, usual: float) -> float:
        """Requests a second that it may have, whatever more it would allow; `usual` for hosts of middle size."""
        rps = SMALL_RPS if self.size < SMALL else usual if self.size < LARGE else LARGE_RPS
        # One that is blocked is probed at the limiter's pace, and has its own rate when it is back.
        halvings = 0 if self.blocked else self.failures // HALVE_EVERY
        return max(min(rps, LEAST_RPS), rps / (1 << halvings))

    @property
    def blocked(self) -> bool:
        """Whether it is left alone, but for a probe now and then."""
        return self.failures >= BLOCK_AFTER

    def is_awaited(self, patience: float) -> bool:
        """Whether it is away, and should be waited for."""
        silent = self.blocked and self.answered and self.silent_since is not None
        return silent and self.failed_at - (self.silent_since or 0.0) <= patience

    def may_begin(self, most: int) -> bool:
        """Whether it has come to the end of a pass, does not refuse us, and has another pass left of `most`."""
        return not self.dids and not self.asking and self.passes < most and self.refused_since is None

    def succeeded(self) -> None:
        """It answered, be it that there is no such repo."""
        self.failures, self.trouble, self.shut_at, self.refused_since = 0, None, inf, None
        self.answered, self.silent_since = True, None

    def put_back(self, did: str, *, refused_at: float | None) -> None:
        """Let a DID wait again: first of all if we did not ask for it, last if the host refused it.

        Else a DID that is refused for itself would keep all others back.
        """
        if refused_at is None:
            self.dids.appendleft(did)
            return
        self.dids.append(did)
        self.refused_since = refused_at if self.refused_since is None else self.refused_since

    def failed(
        self, category: Category, now: float = 0.0, *, asked_at: float = 0.0, shut_at: float | None = None
    ) -> bool:
        """It did not, or only with an error of its own; whether that blocks it, and nothing did before.

        `shut_at` is now if the limiter will not ask it for a while. Who fails the first question after that is blocked:
        else one with four repos that is gone for good would be waited for four times, each time for longer.
        """
        before, probe = self.blocked, asked_at > self.shut_at
        self.failures = max(self.failures + 1, BLOCK_AFTER if probe else 0)
        self.trouble, self.failed_at = category, now
        self.silent_since = now if self.silent_since is None else self.silent_since
        self.shut_at = self.shut_at if shut_at is None else shut_at
        return self.blocked and not before

    def begin_pass(self) -> None:
        """Once more: it is no longer blocked, and will be soon if it still fails."""
        self.passes += 1
        self.failures = min(self.failures, HALVE_EVERY)
        self.skipped.clear()  # they come back with all others that failed


class HostTurns:
    """Whose turn is it. Hosts that are blocked come first, so that their return is seen in time, but only so many."""

    def __init__(self, most_probes: int) -> None:
        self.probing = 0  # requests in flight at blocked hosts
        self._most = max(1, most_probes)
        self._work: Turns[HostRepos] = Turns()
        self._probes: Turns[HostRepos] = Turns()

    def __len__(self) -> int:
        return len(self._work) + len(self._probes)

    @property
    def _open(self) -> tuple[Turns[HostRepos], ...]:
        return (self._probes, self._work) if self.probing < self._most else (self._work,)

    def add(self, host: HostRepos, due: float) -> None:
        """Give the host its place, unless it has one."""
        (self._probes if host.blocked else self._work).add(host, due)

    def hasten(self, host: HostRepos, due: float) -> None:
        """Let a host that has a later place have this one."""
        for queue in (self._probes, self._work):
            queue.hasten(host, due)

    def next(self, now: float) -> HostRepos | None:
        """The host whose turn it is."""
        return next((host for queue in self._open if (host := queue.next(now)) is not None), None)

    def due(self) -> float | None:
        """When the next turn is."""
        return min((due for queue in self._open if (due := queue.due()) is not None), default=None)


@dataclass(slots=True, eq=False)
class _Page:
    last: str
    left: int


class LowWater:
    """How far everything is settled, page by page of the directory, whatever the order in which DIDs are."""

    def __init__(self) -> None:
        self._pages: deque[_Page] = deque()
        self._page_of: dict[str, _Page] = {}

    def __len__(self) -> int:
        return len(self._page_of)

    def begin(self, last: str, dids: Iterable[str]) -> None:
        """A page that ends with `last`; of it, these are still to be settled."""
        page = _Page(last, 0)
        for did in dids:
            page.left += 1
            self._page_of[did] = page
        self._pages.append(page)

    def settle(self, did: str) -> None:
        """The DID is archived, or its failure is noted. What belongs to no page is settled already."""
        page = self._page_of.pop(did, None)
        if page is not None:
            page.left -= 1

    def rise(self) -> str | None:
        """The DID up to which everything is settled now; None if that is no further than before."""
        risen = None
        while self._pages and self._pages[0].left == 0:
            risen = self._pages.popleft().last
        return risen
