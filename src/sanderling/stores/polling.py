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

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, NamedTuple, Protocol

import msgspec

from sanderling.stores.documents import Document, Value

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


class ChangeLog(Protocol):
    """Changes, for whoever follows them; a PollingStore is one, and has the words for it."""

    async def changes(self, after: int, most: int) -> list[RowChange]: ...
    async def span(self) -> ChangeSpan: ...
    async def trim(self, keep: int) -> int: ...


class Positions(Protocol):
    """How far subscribers are; a PollingStore is one."""

    async def position(self, name: str) -> int | None: ...
    async def advance(self, name: str, seq: int) -> None: ...
