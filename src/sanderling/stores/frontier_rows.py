"""What can become of a URL, and the values that go into a ledger and come out of it."""

import hashlib
import re
from enum import IntEnum
from typing import NamedTuple, Self

import msgspec

from sanderling.outcome import Outcome


class End(IntEnum):
    """What became of a URL."""

    WAITING = 0
    FETCHED = 1
    UNCHANGED = 2
    MOVED = 3
    REFUSED = 4
    FAILED = 5
    LEFT = 6
    LEFT_OUT = 7


KEPT = frozenset({End.FETCHED, End.UNCHANGED, End.MOVED})
UNFETCHED = frozenset({End.REFUSED, End.FAILED, End.LEFT_OUT})
REOPENABLE = UNFETCHED | {End.LEFT}

_SUFFIX = re.compile(r"(\.[\w+-]{1,16})?", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Found(NamedTuple):
    """A URL, as it was normalised, that the crawl may ask for."""

    url: str
    host: str
    depth: int


class Queued(NamedTuple):
    """A URL to ask for, with what an earlier crawl of this folder remembers of it."""

    id: int
    url: str
    host: str
    depth: int
    etag: str | None = None
    modified: str | None = None


class Body(msgspec.Struct, frozen=True):
    """A document that is kept as a file, named by its content."""

    sha256: str
    suffix: str  # with its dot, or empty
    data: bytes

    def __post_init__(self) -> None:
        # Both become a path, and the suffix is a stranger's idea.
        if not _SHA256.fullmatch(self.sha256) or not _SUFFIX.fullmatch(self.suffix):
            raise ValueError(
                f"body {self.sha256!r} with suffix {self.suffix!r}: expected 64 hex digits, and .pdf or so"
            )

    @classmethod
    def of(cls, data: bytes, suffix: str) -> Self:
        """The body that holds `data`."""
        return cls(hashlib.sha256(data).hexdigest(), suffix, data)

    @property
    def path(self) -> str:
        """Where it is kept, from the folder of the crawl."""
        return f"bodies/{self.sha256[:2]}/{self.sha256}{self.suffix}"


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one URL. `row` is its line in pages.jsonl, without the line break, if it is kept."""

    id: int
    url: str
    end: End
    outcome: Outcome
    depth: int
    row: bytes | None = None
    body: Body | None = None
    etag: str | None = None
    modified: str | None = None
    links: tuple[str, ...] = ()  # for the next crawl, should this page be unchanged then
    moved_to: str | None = None

    def __post_init__(self) -> None:
        if self.end not in KEPT and self.end not in UNFETCHED:
            raise ValueError(f"{self.url} is said to end {self.end.name}, expected what became of a URL")
        if (self.row is not None) != (self.end in KEPT):
            raise ValueError(
                f"{self.url} ended {self.end.name}: a row {'is missing' if self.row is None else 'came along'}"
            )
        if self.row is not None and b"\n" in self.row:
            raise ValueError(f"the row of {self.url} has a line break in it, expected one line")


class Failed(NamedTuple):
    """A URL that was not fetched, and why."""

    id: int
    url: str
    host: str
    depth: int
    end: End
    code: str
    status: int
    detail: str


class Aside(NamedTuple):
    """A host that did not answer, how many URLs wait for it, and why."""

    host: str
    waiting: int
    code: str
    status: int
    detail: str


class Robots(NamedTuple):
    """What an origin answered when it was asked for its robots.txt."""

    status: int
    body: bytes
    fetched_at: float
