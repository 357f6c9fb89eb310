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
    """A repo that was not to be had, and why; `permanent` if no later pass need ask."""

    did: str
    category: str
    permanent: bool


@dataclass(frozen=True, slots=True)
class ProgressView:
    """How far a crawl is."""

    cursor: str
    completed: int  # archived, or failed for good
    failed: dict[str, int]  # by category, for good or not; none is 0
    segment: int  # 0 before the first
    total_crawled: int  # archived
    bytes_written: int


class Progress(Protocol):
    """Which DIDs are complete, which failed, and where the crawl stands. All methods raise ProgressError.

    A DID is archived, failed in one category, or not known. Once archived it stays so; once failed for good, only an
    archive changes that; and a transient failure is replaced by whatever comes next.
    """

    def cursor(self) -> str:
        """All DIDs up to this one were seen to; "" at the start."""

    def pending(self, dids: Sequence[str]) -> list[str]:
        """Of these, in their order, those that are not complete."""

    def record(
        self, done: Sequence[Finished], failed: Sequence[Unfinished], *, cursor: str | None, segment: int
    ) -> None:
        """Keep all of it or nothing; it may be said twice. Without a `cursor` the old one stays."""

    def failed(self, categories: Sequence[str], after: str, limit: int) -> list[tuple[str, str]]:
        """DIDs after `after` that failed in one of these, but not for good, and their category; by DID, bytewise."""

    def view(self) -> ProgressView:
        """How far it is, counted."""

    def reset(self) -> None:
        """Forget everything."""
