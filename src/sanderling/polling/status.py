"""How polling stands, for whoever looks: the screen, the dashboard, and other processes through status.json."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from sanderling.limit import HostView
from sanderling.polling.measures import Late
from sanderling.stores.polling import RowChange, StoredTargetCounts
from sanderling.stores.process_identity import ProcessIdentity
from sanderling.stores.status_file import read_status

# As many as are shown of each; a status is written every second, however many targets there are.
MOST_ACCELERATED, MOST_RECENT, MOST_NEXT = 20, 20, 10
LONGEST_KEY = 100  # characters; keys are the upstream's

ByTwo = dict[str, dict[str, int]]


class TargetCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many targets there are. A target may be counted under several of these."""

    all: int = 0  # that are not gone
    paused: int = 0  # by an admin
    due: int = 0  # now
    accelerated: int = 0  # now
    failing: int = 0  # whose last run went wrong
    gone: int = 0  # that discovery does not list any more

    @classmethod
    def of(cls, counts: StoredTargetCounts) -> "TargetCounts":
        """As the database has counted them."""
        return cls(
            all=counts.targets,
            paused=counts.paused,
            due=counts.due,
            accelerated=counts.accelerated,
            failing=counts.failing,
            gone=counts.gone,
        )


class AcceleratedStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A target that is asked more often for now. Times are seconds."""

    kind: str
    source_id: str
    interval: float  # between two runs
    left: float  # until the acceleration ends, unless it is renewed
    late: float  # between due and start, of its last run


class NextStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A target that is soon to run. Times are seconds."""

    kind: str
    source_id: str
    due: float  # from now; below 0 if it waits for a slot
    interval: float  # between two runs
    status: str  # how its last run ended, in words; empty before the first


class ChangeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A row that came, changed or went."""

    seq: int
    at: float  # Unix seconds
    op: str
    table: str  # empty for a purge, as is the key
    key: str  # cut where it is long
    fields: tuple[str, ...]  # of an update: the columns that differ

    @classmethod
    def of(cls, change: RowChange) -> "ChangeStatus":
        """That of a change."""
        return cls(
            seq=change.seq,
            at=change.at,
            op=change.op.value,
            table=change.table,
            key=change.key if len(change.key) <= LONGEST_KEY else f"{change.key[: LONGEST_KEY - 1]}…",
            fields=change.fields,
        )


class SubscriberStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One who is sent the changes."""

    name: str
    position: int  # the number of the last change it has
    behind: int  # changes it does not have yet
    trouble: str  # why nothing can be sent, while nothing can; empty otherwise


class PollingStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Polling as it stands. Counts are those of this process; times are Unix seconds unless they say otherwise."""

    running: bool  # as far as it could say: one that was killed did not
    pid: int
    wall: float
    started: float
    source: str  # what its API is called
    host: str
    enabled: bool  # whether it polls at all, by the settings
    event: str  # the one that is polled; empty before the first discovery
    current: str = ""  # kind and id of the target to look at: the one that is live, or the next one
    targets: TargetCounts
    discovered: float | None  # when a discovery last went well; None if none has
    discovery_trouble: str  # why the last one failed; empty if it went well
    runs: ByTwo  # by kind and outcome code
    errors: ByTwo  # those of them that went wrong, by kind and category
    changes: ByTwo  # rows, by table and op
    missed: dict[str, int]  # runs that should have been and were not, by kind
    rate: float  # runs a second lately
    late: dict[str, Late]  # seconds between due and start lately, by pace: accelerated, usual; absent without runs
    inflight: int  # runs under way
    slots: int  # runs that may be under way
    ready: int  # targets that are due and wait for a slot
    loaded: int  # targets in memory
    pending: int  # targets that ran and are not written back yet
    newest: int  # the number of the newest change; 0 before the first
    followers: int  # of the event stream
    subscribers: tuple[SubscriberStatus, ...]
    store_trouble: str  # why the database is not to be had, while it is not; empty otherwise
    problems: tuple[str, ...]  # of the settings, and odd values in documents, in words
    limiter: HostView | None  # what the limiter knows of the host; None before the first request
    accelerated: tuple[AcceleratedStatus, ...]  # MOST_ACCELERATED of them at most
    recent: tuple[ChangeStatus, ...]  # the last MOST_RECENT changes, oldest first
    next: tuple[NextStatus, ...]  # the MOST_NEXT targets that are due first, in that order
    classes: dict[str, int] = {}  # requests, by class of work: what is live, and what is not
    disk_trouble: str = ""  # why it paused itself, while it does: its disk has no room
    process: ProcessIdentity | None = None  # by which its end is known at once, on the same machine
    system: str = "polling"

    @property
    def seconds(self) -> float:
        """How long this process has polled so far."""
        return self.wall - self.started

    @property
    def ran(self) -> int:
        """Runs, however they ended."""
        return _total(self.runs)

    @property
    def failed(self) -> int:
        """Runs that went wrong."""
        return _total(self.errors)

    @property
    def changed(self) -> int:
        """Rows that came, changed or went."""
        return _total(self.changes)

    @property
    def doing(self) -> str:
        """What it is at, in a few words."""
        if self.store_trouble:
            return "waiting for the database"
        if self.disk_trouble:
            return "paused: the disk has no room"
        if not self.enabled:
            return "paused: nothing is polled until somebody resumes it"
        if not self.targets.all:
            return "looking for what to poll"
        if self.targets.paused == self.targets.all:
            return "all targets are paused"
        live = self.targets.accelerated
        return f"polling, {live} of them live" if live else "polling"


def by_two(counts: Mapping[tuple[str, str], int]) -> ByTwo:
    """The same counts as a status has them: by the first label, and within it by the second."""
    nested: ByTwo = {}
    for (first, second), number in counts.items():
        nested.setdefault(first, {})[second] = number
    return nested


def recently(changes: Sequence[RowChange]) -> tuple[ChangeStatus, ...]:
    """The last of these, as a status has them; given and returned oldest first."""
    return tuple(ChangeStatus.of(change) for change in changes[-MOST_RECENT:])


def _total(counts: ByTwo) -> int:
    return sum(number for several in counts.values() for number in several.values())


def published(folder: Path) -> PollingStatus | None:
    """The status that was last written in this folder; None if there is none that can be read."""
    return read_status(folder, PollingStatus)
