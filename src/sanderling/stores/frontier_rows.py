"""What can become of a URL, and the values that go into a frontier and come out of it."""

import hashlib
import re
from enum import IntEnum
from typing import Literal, NamedTuple, Self

import msgspec

from sanderling.outcome import Code, Outcome
from sanderling.task import Reply


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
PAGES = frozenset({End.FETCHED, End.UNCHANGED})
UNFETCHED = frozenset({End.REFUSED, End.FAILED, End.LEFT_OUT})
REOPENABLE = UNFETCHED | {End.LEFT}

# Whose fault it is that a URL was not fetched: its own, its host's, ours (a rule of robots.txt or of the guard, or
# somebody's wish); nobody's as long as it was not asked for.
Fault = Literal["item", "host", "us", ""]

_SUFFIX = re.compile(r"(\.[\w+-]{1,16})?", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}")


class FoundUrl(NamedTuple):
    """A URL, as it was normalised, that the crawl may ask for."""

    url: str
    host: str
    depth: int
    # What another part must know of the way to it; the ledger does not keep that.
    hops: int = 0  # redirects
    nested: int | None = None  # sitemaps, if it was named as one


class QueuedUrl(NamedTuple):
    """A URL to ask for, with what an earlier crawl remembers of it, and how often it failed in this one."""

    id: int
    url: str
    host: str
    depth: int
    etag: str | None = None
    modified: str | None = None
    failures: int = 0  # requests in a row
    due: float = 0.0  # seconds since 1970; 0 for what never failed

    @property
    def key(self) -> int:
        """What tells it from all others of its host."""
        return self.id


class RetryUrl(NamedTuple):
    """A URL that failed and goes on waiting: how many requests in a row, when it is due, and why it failed."""

    id: int
    url: str
    failures: int
    due: float  # seconds since 1970
    outcome: Outcome


class HostBacklog(NamedTuple):
    """A host with URLs that wait: how many, and how many pages of it are fetched."""

    id: int
    name: str
    waiting: int
    fetched: int
    due: float  # since when they wait, or when it is next worth asking, in seconds since 1970


class HostNote(NamedTuple):
    """A host was set aside for this reason until then; without a reason, it answers again."""

    host: str
    outcome: Outcome | None
    due: float = 0.0  # seconds since 1970


SCREENSHOTS = "screenshots"  # the folder of what pages looked like


class BodyFile(msgspec.Struct, frozen=True):
    """A document that is kept as a file, named by its content if it has no name of its own."""

    sha256: str
    suffix: str  # with its dot, or empty
    data: bytes
    name: str = ""
    source: str = ""  # the file that holds the data, if it is on disk already

    def __post_init__(self) -> None:
        # Both become a path, and the suffix is a stranger's idea.
        if not _SHA256.fullmatch(self.sha256) or not _SUFFIX.fullmatch(self.suffix):
            raise ValueError(
                f"body {self.sha256!r} with suffix {self.suffix!r}: expected 64 hex digits, and .pdf or so"
            )

    @classmethod
    def of(cls, data: bytes, suffix: str, name: str = "") -> Self:
        """The body that holds `data`."""
        return cls(hashlib.sha256(data).hexdigest(), suffix, data, name)

    @property
    def path(self) -> str:
        """Where it is kept, from the folder of the crawl."""
        return self.name or f"bodies/{self.sha256[:2]}/{self.sha256}{self.suffix}"


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one URL. `row` is its line in pages.jsonl, without the line break, if it is kept."""

    id: int
    url: str
    end: End
    outcome: Outcome
    depth: int
    row: bytes | None = None
    body: BodyFile | None = None
    raw: BodyFile | None = None  # the page as it came
    reply: Reply | None = None  # what is to be archived of it
    etag: str | None = None
    modified: str | None = None
    links: tuple[str, ...] = ()  # for the next crawl, should this page be unchanged then
    moved_to: str | None = None
    requests: int = 1  # for it that failed in a row, with this one

    def __post_init__(self) -> None:
        if self.end not in KEPT and self.end not in UNFETCHED:
            raise ValueError(f"{self.url} is said to end {self.end.name}, expected what became of a URL")
        if (self.row is not None) != (self.end in KEPT):
            raise ValueError(
                f"{self.url} ended {self.end.name}: a row {'is missing' if self.row is None else 'came along'}"
            )
        if self.row is not None and b"\n" in self.row:
            raise ValueError(f"the row of {self.url} has a line break in it, expected one line")

    @property
    def sent(self) -> int:
        """Requests that were sent for it; none for what we refused ourselves."""
        return 0 if self.outcome.code is Code.REFUSED else self.requests


class Failed(NamedTuple):
    """A URL that was not fetched, why, and whose fault that is."""

    id: int
    url: str
    host: str
    depth: int
    end: End
    code: str
    status: int
    detail: str
    requests: int = 0  # that were sent for it; 0 also where that is not known
    fault: Fault = "item"


class WaitingRow(NamedTuple):
    """A URL that waits, and whose fault that is: the reason is the host's if that was set aside, else its own."""

    id: int
    url: str
    host: str
    depth: int
    fault: Fault  # "host", "item", or "" if it was not asked for yet
    code: str
    status: int
    detail: str
    failures: int


class Aside(NamedTuple):
    """A host that did not answer, how many URLs wait for it, and why."""

    host: str
    waiting: int
    code: str
    status: int
    detail: str
    due: float = 0.0  # when it is next worth asking, in seconds since 1970; 0 if nobody said


class RobotsReply(NamedTuple):
    """What an origin answered when it was asked for its robots.txt."""

    status: int
    body: bytes
    fetched_at: float


def fault_of(end: End, code: str) -> Fault:
    """Whose fault it is that a URL was not fetched. What only its host is to blame for has no end, and waits."""
    return "us" if end is not End.FAILED or code == Code.REFUSED else "item"


def failed_as(ended: Ended, host: str) -> Failed:
    """What the frontier will say of what ended, before it does."""
    outcome, end = ended.outcome, ended.end
    why = str(outcome.code), outcome.status, as_text(outcome.detail)
    return Failed(ended.id, ended.url, host, ended.depth, end, *why, ended.sent, fault_of(end, outcome.code))


def as_text(detail: str) -> str:
    """The detail with whatever is no text replaced."""
    return detail.encode(errors="replace").decode()
