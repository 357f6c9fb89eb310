"""What a crawl of repos asks of the store that remembers how far it came."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class ProgressError(Exception):
    """The store cannot be used, or not now. The message says what was found and what to do."""


class Finished(NamedTuple):
    """A repo that is durable in a segment."""

    did: str
    size: int  # bytes of its block


class Unfinished(NamedTuple):
    """A repo that was not archived, and why.

    `permanent`: it is never asked for again. With a `due` time it is scheduled; without, the next walk of the directory
    comes by it.
    """

    did: str
    category: str
    permanent: bool
    failures: int = 0  # requests for it that failed in a row
    due: int | None = None  # Unix seconds


class Due(NamedTuple):
    """A DID that is scheduled. In this order they are read."""

    due: int  # Unix seconds
    failures: int  # requests for it that failed in a row, 99 at most
    did: str


class HostAside(NamedTuple):
    """A host that did not answer, why, and when it may be asked next; without a category, it answers again."""

    host: str
    category: str
    due: int  # Unix seconds, above 0


MOST_FAILURES = 99  # in a row, that are told apart
FIRST = Due(0, 0, "")  # before all others


@dataclass(frozen=True, slots=True)
class ProgressView:
    """How far a crawl is."""

    cursor: str
    completed: int  # archived, or failed for good
    failed: dict[str, int]  # by category, for good or not; none is 0
    segment: int  # 0 before the first
    total_crawled: int  # archived
    bytes_written: int
    scheduled: int = 0  # DIDs that have a due time
    due: int | None = None  # the first of these
    hosts_aside: int = 0


class RepoProgress(Protocol):
    """Which DIDs are complete, which are due when, and where the crawl stands. All methods raise ProgressError.

    A DID is archived, failed in one category, or not known. Once archived it stays so; once failed for good, only an
    archive changes that; and a transient failure is replaced by whatever comes next. No call reads more rows than it
    returns, or is given, whatever is scheduled.
    """

    def cursor(self) -> str:
        """All DIDs up to this one were seen to; "" at the start."""

    def pending(self, dids: Sequence[str]) -> list[str]:
        """Of these, in their order, those that are neither complete nor scheduled."""

    def due(self, after: Due, until: int, limit: int) -> list[Due]:
        """The first that are scheduled after `after` and until then, in their order."""

    def last_due(self) -> int:
        """The last due time of all; 0 if nothing is scheduled."""

    def record(
        self,
        done: Sequence[Finished],
        failed: Sequence[Unfinished],
        *,
        cursor: str | None,
        segment: int,
        hosts: Sequence[HostAside] = (),
    ) -> None:
        """Keep all of it or nothing; it may be said twice. Without a `cursor` the old one stays."""

    def aside(self, limit: int) -> list[HostAside]:
        """Hosts that did not answer, those that are due first."""

    def aside_of(self, host: str) -> HostAside | None:
        """What is noted of a host; None if it is not set aside."""

    def clear_aside(self) -> None:
        """Every host may be asked again."""

    def view(self) -> ProgressView:
        """How far it is, counted."""

    def reasons(self, dids: Sequence[str]) -> dict[str, str]:
        """The category of each of these that has one: those that are not archived."""

    def release(self, dids: Sequence[str]) -> None:
        """Another progress has these from now on: they are not known here any more; it may be said twice."""

    def forget(self, dids: Sequence[str]) -> None:
        """Know nothing of these any more, as if they had never been asked for; it may be said twice."""

    def reset(self) -> None:
        """Forget everything."""
