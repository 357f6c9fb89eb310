"""Targets in memory, and one request for each. Times are seconds of a clock that only goes forward."""

import asyncio
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import msgspec

from sanderling.polling.cadence import bucket
from sanderling.stores.polling import PollingTarget

# Seconds between runs, below which a target is live whoever set that: nobody asks so often for what can wait.
LIVE_BELOW = 1.0

ClassKey = tuple[int, int]  # about how long their intervals are, and their weight


class ScheduledTarget(msgspec.Struct, eq=False, gc=False, kw_only=True):
    """A target in memory: what it is, when it is due, and what to write back."""

    id: int
    kind: str
    source_id: str
    event: str
    only: tuple[str, ...] | None
    base: float  # seconds between runs, as discovery or an admin says
    usual: float  # the same as it is, while it is not accelerated: it may adapt
    weight: int
    fixed: bool  # whether an admin has set the interval
    # On the clock.
    interval: float
    point: float  # the next point of its grid
    at: float  # when it is due: there, or otherwise
    home: float = 0.0  # a point of its usual grid, while it is accelerated
    until: float | None = None  # the end of the acceleration
    promoted: float = -inf  # when it was last made due
    ran: float | None = None  # when it last came to its end, since it is in memory
    late: float = 0.0  # seconds, of its last run
    took: float = 0.0  # seconds, the last time it was served, or cut off; 0 before that
    # Where it is.
    host: str = ""  # at which it is asked for
    stamp: int = 0  # its place in a line is the one with this number
    running: bool = False
    again: bool = False  # to be run once more as soon as it is back
    dropped: bool = False
    # What came of it.
    runs: int
    missed: int
    failures: int
    asked: float | None
    fetched: float | None
    status: str
    etag: str
    modified: str
    digest: bytes
    raw: bytes = b""  # of the body as it came
    epoch: int = 0  # of its event, in which all of these were true
    polls: float
    hits: float

    @classmethod
    def of(cls, target: PollingTarget) -> "ScheduledTarget":
        """A target. When it is due is for others to say."""
        interval = target.interval
        return cls(
            id=target.id,
            kind=target.kind,
            source_id=target.source_id,
            event=target.event,
            only=target.only,
            base=interval,
            usual=interval,
            weight=target.weight,
            fixed=target.set_seconds is not None,
            interval=interval,
            point=inf,
            at=inf,
            runs=target.runs,
            missed=target.missed,
            failures=target.failures,
            asked=target.asked,
            fetched=target.fetched,
            status=target.status,
            etag=target.etag,
            modified=target.modified,
            digest=target.digest,
            polls=target.polls,
            hits=target.hits,
        )

    def forget(self) -> None:
        """Read the document again, whatever it says."""
        self.etag = self.modified = ""
        self.digest = self.raw = b""

    @property
    def live(self) -> bool:
        """Whether its cadence is there to be kept: it is accelerated, or asked for more than once a second anyway."""
        return self.until is not None or self.interval < LIVE_BELOW

    @property
    def group(self) -> ClassKey:
        """Which targets it is like."""
        return bucket(self.interval), self.weight


class PollResult(NamedTuple):
    """How a run ended, as it is stored with the target."""

    status: str
    ok: bool = True
    failed: bool = False  # the target's own failure, and not the host's, ours, or a parent's
    changes: int = 0
    waits: bool = False  # for a row that another document has


@dataclass(slots=True, eq=False)
class PollRun:
    """One request for a target. What comes of it may come after the target's next run was planned."""

    entry: ScheduledTarget
    began: float
    live: bool
    late: float  # seconds after it was due
    asked: list[asyncio.Future[PollResult]]  # whoever wants to know how it went
    over: bool = False  # the next run is planned
    since: float = 0.0  # seconds from the end of the run before to that of this one

    @property
    def key(self) -> int:
        """Which target it is."""
        return self.entry.id

    def tell(self, result: PollResult) -> None:
        """Tell whoever asked."""
        for future in self.asked:
            if not future.done():
                future.set_result(result)
