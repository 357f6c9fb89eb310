"""What goes into a ledger and comes out of it: URLs that were found, wait, and have ended; hosts; files of rows.

Times are in seconds since 1970. A URL that is due at 0 is due at once, one that is due at `inf` is set aside for a run
that asks for it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from math import inf
from typing import Any

import msgspec

from sanderling.ids import url_key

# The classes of work, stored as their place in this tuple: append only.
KINDS = ("new", "again", "visit", "live", "missed", "probe")
KIND_NUMBER = {kind: number for number, kind in enumerate(KINDS)}
VISIT = KIND_NUMBER["visit"]
# A host's queue is sorted by `turn`: minus the priority of what is due at once, else milliseconds since 1970.
SET_ASIDE = 1 << 62
_PRIORITIES = 1 << 32  # priorities lie below, due times above (they passed it in February 1970)


def turn_of(priority: int, due: float) -> int:
    """The place of a URL in its host's queue, among those of its kind."""
    if not due:
        return -max(1 - _PRIORITIES, min(priority, _PRIORITIES - 1))
    return SET_ASIDE if due == inf else max(_PRIORITIES, round(due * 1000))


def due_of(turn: int) -> float:
    """When what has this place in the queue is due."""
    return 0.0 if turn < _PRIORITIES else inf if turn >= SET_ASIDE else turn / 1000


def host_number(host: str) -> int:
    """The number of a host in every table: 63 bits of its name's hash, so that no process has to ask for it."""
    return int.from_bytes(blake2b(host.encode(), digest_size=8).digest()) >> 1


class FoundUrl(msgspec.Struct, frozen=True, gc=False):
    """A URL to request. `key` tells it from all others; by default it is that of the URL."""

    url: str
    host: str
    key: bytes = b""
    depth: int = 0
    kind: str = "new"
    priority: int = 0
    due: float = 0.0  # inf: a bound cut it off, and `code` says which
    function: str = ""
    data: bytes = b""
    code: str = ""


class PageMemory(msgspec.Struct, frozen=True, gc=False):
    """What the next request for a page has to know about the last one."""

    key: bytes
    etag: str = ""
    modified: str = ""
    digest: bytes = b""
    seen: float = 0.0
    interval: float = 0.0  # seconds between visits


class QueuedUrl(msgspec.Struct, frozen=True, gc=False):
    """A URL that waits."""

    id: int
    host: str
    url: str
    key: bytes
    depth: int
    kind: str
    priority: int
    turn: int
    failures: int  # in a row
    function: str
    data: bytes
    code: str  # of its last failure, or of the bound that cut it off
    memory: PageMemory | None = None

    @property
    def due(self) -> float:
        """When it may be requested."""
        return due_of(self.turn)


class StoredUrl(msgspec.Struct, frozen=True, gc=False):
    """A URL whose key has an entry beside the rows of this run, be it of no rows at all."""

    item: QueuedUrl
    code: str = "OK"
    end: str = "fetched"
    visit_at: float | None = None  # it waits for its next visit


class EndedUrl(msgspec.Struct, frozen=True, gc=False):
    """A URL that ended without such an entry: failed, refused, left out, moved (`detail` says where to)."""

    item: QueuedUrl
    end: str
    code: str
    status: int = 0
    detail: str = ""
    requests: int = 1


class RetryUrl(msgspec.Struct, frozen=True, gc=False):
    """A URL that waits again, for a reason."""

    item: QueuedUrl
    due: float
    failures: int
    code: str = ""


@dataclass(frozen=True, slots=True)
class HostNote:
    """What was learned about a host; None leaves what is stored."""

    host: str
    parked: float | None = None  # until when; 0: it answers again
    note: bytes | None = None
    good: str | None = None
    pace: bytes | None = None
    robots: bytes | None = None
    cookies: bytes | None = None


@dataclass(frozen=True, slots=True)
class HostWork:
    """A host with work on disk."""

    name: str
    wait: float = 0.0  # seconds until its first URL is due
    good: str | None = None  # a URL that it answered well: what it is probed with
    stored: int = 0  # its pages in this run
    parked: bool = False
    note: bytes = b""
    pace: bytes | None = None


@dataclass(frozen=True, slots=True)
class Taken:
    """URLs to request now, and seconds until the next one of their host is due; None if no other waits."""

    items: Sequence[Any]  # QueuedUrl, from a ledger
    next_wait: float | None


@dataclass(frozen=True, slots=True)
class RowFile:
    """How far the rows of a process count in a file of the folder; what is behind `length` is cut off."""

    process: int
    file: str
    length: int
    rows: int
    crc: int


@dataclass(frozen=True, slots=True)
class Batch:
    """What is stored at once or not at all. The rows it counts on have to be on disk before."""

    stored: Sequence[StoredUrl] = ()
    ended: Sequence[EndedUrl] = ()
    again: Sequence[RetryUrl] = ()
    found: Sequence[FoundUrl] = ()
    hosts: Sequence[HostNote] = ()
    memory: Sequence[PageMemory] = ()
    files: Sequence[RowFile] = ()
    tally: Mapping[tuple[str, str], int] = field(default_factory=dict)  # counts of the crawl's own
    state: bytes | None = None

    def items(self) -> list[QueuedUrl]:
        """All that was taken and is not in hand any more."""
        again = [each.item for each in self.again]
        return [each.item for each in self.stored] + [each.item for each in self.ended] + again


@dataclass(frozen=True, slots=True)
class Counts:
    """How many URLs there are, and how many came to each end."""

    known: int
    waiting: int
    ends: Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class HostCount:
    """How many URLs wait for a host, when it is due, and what was noted about it."""

    host: str
    waiting: int
    due: float | None
    note: bytes


@dataclass(frozen=True, slots=True)
class UrlState:
    """What the ledger knows about one URL. `state` is waiting, stored, forgotten, or how it ended."""

    state: str
    host: str = ""
    url: str = ""
    key: bytes = b""
    depth: int = 0
    code: str = ""
    status: int = 0
    detail: str = ""
    requests: int = 0
    function: str = ""
    priority: int = 0
    data: bytes = b""
    due: float = 0.0


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How many URLs were removed, and the keys of those that are being requested, to be forgotten afterwards."""

    count: int
    busy: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Fault:
    """A contradiction that `verify` found, how often, and one example."""

    what: str
    count: int
    example: str = ""


def first_of_each(found: Sequence[FoundUrl]) -> dict[bytes, FoundUrl]:
    """What was found, each once, by key. Links repeat: half of them within one commit."""
    urls: dict[str, FoundUrl] = {}
    own: dict[bytes, FoundUrl] = {}
    for each in found:
        if each.key:
            own.setdefault(each.key, each)
        else:
            urls.setdefault(each.url, each)
    for url, each in urls.items():
        own.setdefault(url_key(url), each)
    return own
