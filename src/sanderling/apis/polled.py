"""What a source of live documents must tell us: what to poll, how to ask, what a document says, and what is live.

Terms. A *kind* is a sort of document; a *target* is one document that is polled, known by its kind and its source id. A
document becomes rows of tables: see `stores/documents.py`.

A source is one file without I/O and without state. `trackside` is one, `json_source` is any JSON API that can be
described by addresses and a few paths.
"""

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from sanderling.stores.documents import Document, Schema, SourceRow
from sanderling.task import Reply, Task

LONGEST_INTERVAL = 366 * 86_400.0


@dataclass(frozen=True, slots=True)
class PolledKind:
    """A sort of document, and how often it is usually asked for."""

    name: str
    seconds: float
    active_seconds: float | None = None  # while the target is active; None if it never is
    priority: int = 0
    needs: tuple[str, ...] = ()  # kinds of which a document must have been stored before
    whole: bool = False  # refreshed with the whole: its interval is that of discovery, unless somebody sets another

    def __post_init__(self) -> None:
        for seconds in (self.seconds, self.active_seconds):
            if seconds is not None and not 0 < seconds <= LONGEST_INTERVAL:
                raise ValueError(f"interval of {self.name} is {seconds} seconds, expected more than 0, up to a year")


class TargetName(NamedTuple):
    """What a target is known by."""

    kind: str
    source_id: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """A target that should exist. `only`: the keys that are wanted of what the document lists; None for all."""

    kind: str
    source_id: str
    event: str
    only: tuple[str, ...] | None = None

    @property
    def name(self) -> TargetName:
        """What it is known by."""
        return TargetName(self.kind, self.source_id)


@dataclass(frozen=True, slots=True)
class Discovered:
    """What there is to poll now, and what was learned on the way. All other targets have become pointless.

    Not those of the kinds in `unread`: the list of them could not be read, so what is known of them stays.
    """

    event: str
    wanted: tuple[Wanted, ...]
    document: Document
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetActivity:
    """Which targets are live. Only those are asked more often: the current one may be over, or not have begun."""

    active: frozenset[TargetName] = frozenset()
    current: TargetName | None = None
    order: Mapping[TargetName, int] = field(default_factory=dict)  # when each has its turn, from 1; 0 if never


class PolledSource(Protocol):
    """One source."""

    @property
    def name(self) -> str:
        """What it is called in messages and metrics."""

    @property
    def schema(self) -> Schema:
        """The tables that its documents become."""

    @property
    def kinds(self) -> tuple[PolledKind, ...]:
        """The kinds of its targets."""

    @property
    def watched(self) -> tuple[str, ...]:
        """The tables whose rows say what is active."""

    def discover(self) -> Generator[Task, Reply, Discovered]:
        """Ask, be sent the replies, end with what there is to poll. Raises SourceError."""

    def task(self, wanted: Wanted) -> Task:
        """The question for a target. Raises SourceError for one that cannot be asked about."""

    def read(self, wanted: Wanted, reply: Reply) -> Document:
        """What a reply says. Raises SourceError and nothing else, whatever the reply."""

    def activity(self, event: str, rows: Iterable[SourceRow]) -> TargetActivity:
        """What is live, by the stored rows of the watched tables."""
