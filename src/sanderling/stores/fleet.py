"""What the machines of a fleet share of one crawl: its plan, its parts, what each has written, and what is on its way.

Terms. *Log*: the transactions of a part's ledger since its last snapshot, in order; whoever takes the part over makes
its own copy of the ledger from both. *Segment*: rows of a part in the object store; it counts once it is in a commit.
*MailReader*: what other parts have found for a part, until a commit of that part says that it has it. *Cookies* of a
part are in its commits, too: whoever has it next goes on with those that the last answers were asked with.

Nothing here crosses parts in one transaction, so parts may lie on several servers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import msgspec

from sanderling.stores.leases import Lease, Leases

FORMAT = 1
QUOTA_OVER = 60.0  # seconds for which nothing was booked of a quota that is forgotten
LATELY = 4  # leases, after which a worker that is not heard of is nobody's concern


class FleetCrawl(msgspec.Struct, frozen=True, kw_only=True):
    """A crawl that several machines share. Times are seconds since 1970."""

    name: str
    id: str  # of this crawl, and of no other of the same name
    system: str  # pages, repos or jobs
    plan: str  # JSON, for the system
    parts: int
    seconds: float  # of a lease
    ledger: str  # the format of the ledgers: whoever has another cannot take part
    objects: str  # where the segments are, without secrets
    started: float
    servers: int = 1
    done: bool = False  # nothing is left that anybody asks for
    retries: int = 0  # how often what had failed was to be asked for again
    format: int = FORMAT


class PartCommit(NamedTuple):
    """One transaction of a part's ledger."""

    lease: Lease  # its head is that before the commit
    token: str  # of this commit and no other
    body: bytes
    segment: str = ""  # the key of its rows in the object store, if it has any
    size: int = 0  # bytes of them
    read: Sequence[int] = ()  # messages of the inbox that it has
    cookies: Sequence[tuple[bytes, bytes]] = ()  # by key, those that are new or changed; empty ones are gone


class LoggedCommit(NamedTuple):
    """A commit as it is read back."""

    number: int
    token: str
    body: bytes


class Segment(NamedTuple):
    """Rows of a part."""

    number: int  # of the commit
    key: str
    size: int


class PartState(NamedTuple):
    """Where a part stands."""

    head: int
    snapshot: int  # the last commit that the snapshot has; 0 if there is none
    key: str  # of the snapshot in the object store
    limiter: bytes
    news: bytes
    token: str = ""  # of the commit that the snapshot ends with


class PartFigures(NamedTuple):
    """What a part says of itself for others."""

    part: int
    fetched: int  # what is kept: pages, repos, records
    waiting: int
    asked: int = 0  # requests, where somebody counts them
    failed: int = 0  # items whose end is a failure, by the rules of the system


class InboxMessage(NamedTuple):
    """What one part has found for another."""

    part: int  # that it is for
    id: int
    body: bytes


class Worker(NamedTuple):
    """A process of the fleet, as others see it."""

    name: str
    machine: str
    release: str
    parts: int
    seen: float  # seconds since it was last heard of
    draining: bool
    report: str  # JSON
    weight: int = 100  # as in WorkerPace
    late: float = 0.0


class WorkerPace(NamedTuple):
    """How well a worker keeps up with the parts that it has."""

    weight: int = 100  # its share of the parts, beside those of the others; 100 of one that keeps up
    late: float = 0.0  # of its time, in which what was to run waited


class Beat(NamedTuple):
    """What the server says to one who shows that it lives."""

    kept: Sequence[int]  # parts that are still ours
    workers: int  # that live and do not drain, ourselves among them unless we drain
    lacking: bool  # one of them has fewer parts than its share
    draining: bool  # somebody wants us to leave
    done: bool
    fetched: int  # by all parts together
    wall: float  # the server's time, in seconds since 1970
    asked: int = 0  # by all parts together
    weights: int = 100  # of these workers together
    late: float = 0.0  # those of the others, on average
    retries: int = 0  # how often what had failed was to be asked for again


class CrawlView(NamedTuple):
    """How much of a crawl is left."""

    busy: int  # parts that are not idle
    unread: int  # 1 if a message is on its way
    heads: int  # of all parts together; only ever more
    waiting: int  # items without an end, set aside among them
    fetched: int  # what is kept: pages, repos, records
    asked: int = 0  # requests, where somebody counts them
    failed: int = 0  # items whose end is a failure, by the rules of the system


class BookedTime(NamedTuple):
    """A stretch of a quota's time that is one worker's. By the server's clock, in seconds since 1970."""

    start: float
    quiet: float  # nobody may send before, whatever was booked


class FleetStore(Leases, Protocol):
    """One server, which has some parts of the crawl. All methods raise LeasesAwayError, and LeasesError."""

    name: str

    async def begin(self, crawl: FleetCrawl, parts: Sequence[int]) -> FleetCrawl:
        """The crawl of this name, made as given if there is none: with these of its parts, if it is on several servers.

        From now on, as from `find` on, we speak of this crawl, and of no other that has its name later.
        """

    async def find(self, name: str) -> FleetCrawl | None:
        """The crawl of this name."""

    async def beat(
        self,
        leases: Sequence[Lease],
        figures: Sequence[PartFigures],
        report: str,
        parts: int,
        pace: WorkerPace = WorkerPace(),  # noqa: B008 - which never changes
    ) -> Beat:
        """Show that we live, and begin our leases anew; we have so many `parts`, on all servers."""

    async def commit(self, commit: PartCommit) -> None:
        """Keep it, all or nothing. Raises LeaseLostError if the part is not ours or it is not the next commit.

        After LeasesAwayError ask `is_committed`.
        """

    async def is_committed(self, commit: PartCommit) -> bool:
        """Whether it was kept."""

    async def send(self, to: Sequence[tuple[int, bytes]]) -> None:
        """Keep messages for parts of this server."""

    async def receive(self, parts: Sequence[int], taken: Sequence[int], most: int) -> list[InboxMessage]:
        """Messages for these parts, without those that were taken; the oldest first."""

    async def state(self, part: int) -> PartState:
        """Where a part stands."""

    async def log(self, part: int, after: int, most: int) -> list[LoggedCommit]:
        """The commits behind one, in order."""

    async def cookies(self, part: int) -> list[bytes]:
        """The cookies that a part has by its commits."""

    async def keep_snapshot(self, lease: Lease, number: int, token: str, key: str) -> None:
        """The log up to a commit is in the object `key`. Raises LeaseLostError."""

    async def keep_limiter(self, lease: Lease, saved: bytes | None, news: bytes) -> None:
        """Keep what the limiter of a part knows, and what it learned since. Not ours any more: nothing is kept."""

    async def say_idle(self, lease: Lease, figures: PartFigures, *, idle: bool) -> bool:
        """The part has nothing to do unless somebody finds something for it, or has again; whether that is noted.

        It is not if the part has written something since, or a message waits for it. Its next commit makes it busy.
        """

    async def view(self) -> CrawlView:
        """How much is left, all of one moment."""

    async def end(self, *, done: bool) -> None:
        """Nothing is left; or somebody goes on with what was set aside."""

    async def retry(self, number: int) -> None:
        """Have what failed asked for again, for this time the `number`; if that was said before, nothing changes.

        Whoever has a part hears it with the next beat.
        """

    async def segments(self, part: int, after: int) -> list[Segment]:
        """The segments of a part behind a commit, in order."""

    async def unnamed(self, lease: Lease, objects: Sequence[tuple[int, str]]) -> list[str]:
        """Those of these objects that no commit of the part has, and that are not its snapshot; none if it is not ours.

        An object is given by its key, and the number of the commit that would have it.
        """

    async def agreed(self, name: str) -> str:
        """What all workers of the crawl have agreed on under a name; "" for nothing yet."""

    async def agree(self, name: str, value: str) -> str:
        """What all workers have agreed on: the value of whoever came first."""

    async def book(self, quota: str, seconds: float) -> BookedTime:
        """Have the next stretch of so many seconds that nobody has of a quota that hosts of several parts share.

        Who books has quotas forgotten that are over, with its beats.
        """

    async def hush(self, quota: str, until: float) -> None:
        """Nobody may draw on the quota before then, and what is booked later begins then."""

    async def leave(self) -> None:
        """We end: nobody counts on us any more."""

    async def workers(self) -> list[Worker]:
        """All that were heard of lately."""

    async def drain(self, worker: str | None) -> int:
        """Have a worker leave, or all of them; how many were told."""

    async def forget(self) -> None:
        """Know nothing of the crawl any more."""

    async def close(self) -> None:
        """Let go."""


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """Who works here."""

    name: str  # that no other process ever has
    machine: str
    release: str
