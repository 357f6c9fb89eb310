"""What waits for each host, in memory and on disk, and how fast it may be asked. Pure."""

import heapq
from collections import deque
from dataclasses import dataclass

import msgspec

from sanderling.apis.atproto import AtprotoCategory
from sanderling.engine.hosts import HostState
from sanderling.stores.ports import Due

# Requests a second by size: a small host is often somebody's own machine, a large one is built for it.
SMALL, SMALL_RPS = 100, 2.0
LARGE, LARGE_RPS = 1000, 10.0
LEAST_RPS = 0.5
HALVE_EVERY, CLOSE_AFTER = 5, 10  # different repos that fail in a row


class RepoRequest(msgspec.Struct, frozen=True, gc=False):
    """A repo to ask for, at the address of its host."""

    key: str  # its DID
    url: str


class QueuedRepo(msgspec.Struct, frozen=True, gc=False):
    """A DID that waits: without a due time it comes from the directory, with one from the schedule on disk."""

    did: str
    url: str
    failures: int = 0
    due: int | None = None


@dataclass(slots=True, eq=False)
class RepoHost(HostState):
    """What is asked of one host. While it is set aside, what waits for it is on disk, all with one due time."""

    url: str = ""
    size: int = 0  # its DIDs that were met so far, in all pages and not only in the last
    cap: float = 0.0  # requests a second that the limiter was last told
    elsewhere: dict[str, str] | None = None  # DIDs whose address is spelled otherwise than `url`, and how
    reason: AtprotoCategory = AtprotoCategory.UNKNOWN  # why it was set aside
    group: int = 0  # the due time that stands on disk for what waits, Unix seconds
    due_at: int = 0  # when it is next asked how it is, in Unix seconds, if it was set aside
    stored: int = 0  # how many wait on disk, and not in memory
    unread: list[Due] | None = None  # where to go on reading those that waited while it was away
    loading: bool = False  # whether they are being read
    probe: str = ""  # one that is in memory as well, to find out how the host is
    ready: deque[str] | None = None  # made when needed: most hosts have a handful of repos
    later: list[tuple[float, str]] | None = None

    def rate(self, usual: float) -> float:
        """Requests a second that it may have, whatever more it would allow; `usual` for hosts of middle size."""
        rps = SMALL_RPS if self.size < SMALL else usual if self.size < LARGE else LARGE_RPS
        failing = len(self.streak or ())
        # One that is closed is probed at the limiter's pace, and has its own rate when it is back.
        halvings = 0 if failing >= CLOSE_AFTER else failing // HALVE_EVERY
        return max(min(rps, LEAST_RPS), rps / (1 << halvings))

    def is_hopeless(self, wait: float, patience: float, first_patience: float, longest_pace: float) -> bool:
        """See `HostState`. A host that refuses us exists, by 429 or by 503, so all our patience is for it."""
        if self.refuses:
            first_patience = patience
        return HostState.is_hopeless(self, wait, patience, first_patience, longest_pace)

    def begin_anew(self, now: float) -> None:
        """Nobody has asked it for a while, so all our patience is for it again."""
        if self.silent_since is not None:
            self.silent_since = self.stuck_since = now
        self.refused = None

    def ask(self, did: str) -> RepoRequest:
        """The request for a DID."""
        return RepoRequest(did, self.url if self.elsewhere is None else self.elsewhere.get(did, self.url))

    def put(self, did: str) -> None:
        """Let a DID wait, behind the others."""
        self.ready = self.ready or deque()
        self.ready.append(did)

    def put_off(self, did: str, until: float) -> None:
        """Not before `until`."""
        self.later = self.later or []
        heapq.heappush(self.later, (until, did))

    def pop_new(self) -> str | None:
        """The next that was never put off."""
        if not self.ready:
            return None
        did = self.ready.popleft()
        self.ready = self.ready or None  # an empty one is large
        return did

    def pop_last(self) -> str | None:
        """The last that was never put off, far away from what may be broken."""
        if not self.ready:
            return None
        did = self.ready.pop()
        self.ready = self.ready or None
        return did

    def pop_again(self, now: float) -> str | None:
        """The next that was put off and is due."""
        return heapq.heappop(self.later)[1] if self.has_again(now) and self.later else None

    def pop_all(self) -> list[str]:
        """Everything that waits in memory."""
        dids = [*(self.ready or ()), *(did for _, did in sorted(self.later or ()))]
        self.ready = self.later = None
        return dids

    def has_again(self, now: float) -> bool:
        """Whether something that was put off is due."""
        return bool(self.later) and self.later is not None and self.later[0][0] <= now

    @property
    def fresh(self) -> int:
        """How many wait in memory that were not put off."""
        return len(self.ready or ())

    @property
    def waiting(self) -> int:
        """How many wait, in memory and on disk."""
        return len(self.ready or ()) + len(self.later or ()) + self.stored
