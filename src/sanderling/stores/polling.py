"""What `polling` asks of a database: targets and when they are due, the rows of documents, what changed, settings.

Terms. A *target* is one document that is polled, known by its kind and its source id. What it says becomes *rows* of
the source's tables (`documents.py`), and every row that came, changed or went is a *change* with a number of its own.

Who writes which columns of a target, so that nobody undoes what another one did:

| who | columns |
|---|---|
| discovery | `kind` `source_id` `event` `only` `seconds` `priority` `gone` |
| an admin, also by hand in SQL | `enabled` `set_seconds` `set_priority` `promote` |
| whoever polls: one process, see `claim` | all others |

Tricky bits:

- Whatever discovery or an admin writes is noted as an edit, by triggers; `take_edits` is how whoever polls learns of
  it. What it writes itself is not.
- So is a row of the source that somebody edits by hand: upstream is right, so the documents that may have brought it
  are due, and read again whatever their digests.
- Rows, changes and the digest of a document are written in one transaction: after a crash it is all there, or the
  document is read again.
- Numbers of changes only grow, in the order of commits, also after a purge. One writer makes them.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Literal, NamedTuple, Protocol

import msgspec

from sanderling.stores.documents import Document, SourceRow, Value

VERSION = 1  # of the tables
EXPECTED = "expected sqlite:PATH or postgresql://user@host:5432/database"
# A target that is due later than its interval allows was written under another clock. A pause after failures, or while
# a host is closed, is shorter than this.
LONGEST_PAUSE = 300.0


class PollingStoreError(Exception):
    """The database cannot be used, or not now; nothing was written. The message says where, and what was found."""

    def __init__(self, message: str, *, transient: bool = True) -> None:
        super().__init__(message)
        self.transient = transient  # whether the same may go well later


class PollingTarget(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A target as it is stored. Times are Unix seconds, None for never."""

    id: int
    kind: str
    source_id: str
    event: str
    only: tuple[str, ...] | None = None  # the keys that are wanted of what the document lists; None for all
    # By discovery.
    seconds: float  # between two runs, as a rule; 0 while its kind is switched off
    priority: int = 0
    gone: float | None = None  # since when discovery does not list it any more
    # By an admin.
    enabled: bool = True
    set_seconds: float | None = None
    set_priority: int | None = None
    promote: float | None = None  # asked for: run now, and be accelerated for so many seconds
    # By whoever polls.
    next_due: float
    until: float | None = None  # when an acceleration ends by itself
    runs: int = 0
    missed: int = 0  # runs that should have been and were not
    failures: int = 0  # in a row
    asked: float | None = None  # last run, however it went
    fetched: float | None = None  # last time it went well
    changed: float | None = None  # last time something was different
    status: str = ""
    etag: str = ""
    modified: str = ""  # Last-Modified, as it came
    digest: bytes = b""  # of the canonical document; empty if it is to be read again whatever it says
    polls: float = 0.0  # decayed counts of runs, and of those that found a change
    hits: float = 0.0

    @property
    def interval(self) -> float:
        """Seconds between two runs, unless accelerated; 0 for none at all."""
        return self.seconds if self.set_seconds is None else self.set_seconds

    @property
    def weight(self) -> int:
        """The priority that counts."""
        return self.priority if self.set_priority is None else self.set_priority

    @property
    def wanted(self) -> bool:
        """Whether it is polled at all."""
        return self.enabled and self.gone is None and self.interval > 0


class WantedTarget(NamedTuple):
    """A target as discovery wants it."""

    kind: str
    source_id: str
    event: str
    only: tuple[str, ...] | None
    seconds: float
    priority: int


class KnownTarget(NamedTuple):
    """A target as far as discovery is concerned."""

    id: int
    found: WantedTarget
    gone: float | None


class Reconciliation(NamedTuple):
    """What discovery changes. A target that is `gone` keeps what an admin set, and has it when it comes back."""

    insert: tuple[WantedTarget, ...] = ()
    update: tuple[tuple[int, WantedTarget], ...] = ()  # also of those that were gone and are back
    gone: tuple[int, ...] = ()
    delete: tuple[int, ...] = ()  # gone for long


class TargetRun(NamedTuple):
    """What is written back after a run: the new values of the columns of that name."""

    id: int
    next_due: float
    until: float | None
    runs: int
    missed: int
    failures: int
    asked: float | None
    fetched: float | None
    status: str
    polls: float
    hits: float


class Edits(NamedTuple):
    """What others changed: targets as they are now, with `promote` as it was asked for; and ids that are no more."""

    targets: tuple[PollingTarget, ...] = ()
    deleted: tuple[int, ...] = ()


class Op(StrEnum):
    """What became of a row."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    PURGE = "purge"  # of everything: table and key are empty


class RowChange(msgspec.Struct, frozen=True, kw_only=True):
    """A row that came, changed or went. `values` is the whole row as it is now, empty for one that went."""

    seq: int
    at: float
    op: Op
    table: str
    key: str
    values: Mapping[str, Value] = {}
    fields: tuple[str, ...] = ()  # of an update: the columns that differ
    kind: str = ""  # the target that said so
    source_id: str = ""
    event: str = ""


class PolledDocument(NamedTuple):
    """A document, and by what it is known again."""

    kind: str
    source_id: str
    event: str
    document: Document
    at: float
    etag: str = ""
    modified: str = ""
    digest: bytes = b""


class ChangeSpan(NamedTuple):
    """The first change that is still there, and the number of the last there ever was; 0 if there are none."""

    oldest: int
    newest: int


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """Which targets to list; those that are due first come first. None means: no matter."""

    kind: str | None = None
    source_id: str | None = None
    event: str | None = None
    enabled: bool | None = None
    gone: bool | None = False
    due_before: float | None = None
    accelerated_at: float | None = None  # only those whose acceleration ends after that time
    after: tuple[float, int] | None = None  # next_due and id of the last one of the page before
    most: int = 100


class StoredTargetCounts(NamedTuple):
    """How many targets there are."""

    targets: int  # that are not gone
    paused: int
    due: int
    accelerated: int
    failing: int
    gone: int


Field = Literal["enabled", "set_seconds", "set_priority"]


class Targets(Protocol):
    """Targets, for whoever polls. All methods of all of these raise PollingStoreError."""

    async def due(self, after: tuple[float, int], until: float, most: int) -> list[PollingTarget]:
        """Those that are wanted and due behind `after` (next_due and id) and up to `until`, in that order."""

    async def find(self, kind: str, source_id: str) -> PollingTarget | None:
        """The one of that name."""

    async def write(self, runs: Sequence[TargetRun]) -> None:
        """Write these back, in one transaction; those that are no more are passed over."""

    async def take_edits(self, wall: float) -> Edits:
        """The next edits, of some thousand targets at most; none if there are no more.

        Promotions that are taken become due times, durably.
        """


class Discovery(Protocol):
    """Targets, for whoever says which there should be."""

    async def known(self) -> list[KnownTarget]:
        """All of them, those that are gone too."""

    async def apply(self, plan: Reconciliation, wall: float) -> None:
        """Do so in one transaction. New ones are due at `wall`; if `only` changed, it is due then, and read again."""

    async def fetched(self) -> set[tuple[str, str]]:
        """Event and kind of all targets that went well at least once."""


class Documents(Protocol):
    """The rows."""

    async def keep(self, told: PolledDocument) -> list[RowChange]:
        """Store what differs, and who said so: all of it or nothing. Gives the changes in order.

        Raises SourceError (`documents.waiting`) if a row that it needs is not there. Rows that go take along those that
        refer to them, and then all other targets of the event are read again, whatever their digests. Harmless if the
        target is no more.
        """

    async def rows(self, table: str, *, event: str | None = None, after: str = "", most: int = 1000) -> list[SourceRow]:
        """Rows of a table behind a key, in the order of keys; of one event, if the table has such a column."""

    async def purge(self, wall: float) -> dict[str, int]:
        """Remove all rows and all targets; settings stay. Gives how many, by table, and under "targets"."""


class Changes(Protocol):
    """What changed."""

    async def changes(self, after: int, most: int) -> list[RowChange]:
        """The next ones after a number, in order; fewer at once if they are large, and none only if there are none."""

    async def span(self) -> ChangeSpan:
        """From where to where they go."""

    async def trim(self, keep: int) -> int:
        """Forget all but the last so many; say how many went."""


class Control(Protocol):
    """Targets, for people."""

    async def list(self, query: Query) -> list[PollingTarget]:
        """A page of them."""

    async def change(self, kind: str, source_id: str, fields: Mapping[Field, bool | float | int | None]) -> bool:
        """Set what an admin may set; None goes back to what discovery says. Whether there is such a target."""

    async def promote(self, query: Query, seconds: float) -> int:
        """Ask for these to be run now, and accelerated for so many seconds. Paused ones are passed over. How many."""

    async def count(self, wall: float) -> StoredTargetCounts:
        """How many there are."""


class Settings(Protocol):
    """Texts by key, as people wrote them."""

    async def settings(self) -> dict[str, str]:
        """All of them."""

    async def set(self, key: str, value: str | None) -> None:
        """Write one; None removes it."""


class Positions(Protocol):
    """How far subscribers are."""

    async def position(self, name: str) -> int | None:
        """The number of the last change it has; None if it is new."""

    async def advance(self, name: str, seq: int) -> None:
        """Note that it has all up to there."""


class PollingStore(Targets, Discovery, Documents, Changes, Control, Settings, Positions, Protocol):
    """All of it, in one database."""

    async def claim(self, wall: float) -> None:
        """Be the one who polls, until `close`. Raises PollingStoreError (not transient) if another process is.

        Targets that are due later than max(interval, LONGEST_PAUSE) from now are due now: their clock was another.
        """

    async def shift(self, seconds: float) -> None:
        """Move all due times and ends of acceleration: the wall clock was set."""

    async def close(self) -> None:
        """Let go."""
