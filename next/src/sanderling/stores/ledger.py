"""The ledger: what is known, what waits, what has ended, and how far the rows count.

    async with open_ledger(folder / "crawl.db", plan={"depth": 3}, clock=SystemClock()) as ledger:
        hosts = await ledger.commit(Batch(found=[FoundUrl("https://example.org/", "example.org")]))
        taken = await ledger.take("example.org", 50)
        …                                                      # request them; write their rows and sync those
        await ledger.commit(Batch(stored=…, found=…, files=rows))
        ledger.release("example.org")                          # nothing of it is in hand any more

A commit is one transaction. What was taken and is in no commit waits again after a kill.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

import msgspec

from sanderling.files import Exit, FolderError
from sanderling.stores.rows import is_whole
from sanderling.stores.work import (
    Batch,
    Counts,
    Fault,
    Forgotten,
    HostCount,
    HostWork,
    RowFile,
    Taken,
    UrlState,
)

FORMAT = 4  # of the tables, in both databases
Plan = Mapping[str, Any]


class PlanError(FolderError):
    """The ledger is of a crawl with another plan."""

    def __init__(self, place: str, differences: Mapping[str, tuple[Any, Any]]) -> None:
        shown = ", ".join(f"{name}={was!r}, not {now!r}" for name, (was, now) in differences.items())
        super().__init__(f"{place} is a crawl with {shown}", "use the same options, or choose another folder")
        self.differences = differences


class Fenced(FolderError):  # noqa: N818 - what happened to us
    """Other processes took us for dead, and have our hosts by now."""

    def __init__(self, place: str) -> None:
        advice = "nothing that was stored is lost; run the same command again"
        super().__init__(f"this process did not reach {place} for too long and lost its hosts", advice, Exit.LATER)


class Ledger(Protocol):
    """Both ledgers: SQLite for one process, PostgreSQL for any number."""

    run: int  # its number, from 1 up
    finished: bool  # the run has ended, and nothing was left but what is set aside
    process: int  # ours; 0 where there is but one
    state: bytes  # what the crawl notes about itself

    @property
    def away(self) -> str:
        """Why the database cannot be reached now, which is waited for; empty: it can."""

    def hurry(self) -> None:
        """The run is to end: wait for the database for seconds only."""

    async def __aenter__(self) -> Self:
        """Open or create it. Raises FolderError before anything is changed."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it, and let others have our hosts."""

    async def new_run(self) -> None:
        """Crawl a finished crawl again: forget which URLs are known, keep what the next requests have to know."""

    async def row_files(self) -> list[RowFile]:
        """How far the rows of each process count."""

    async def hosts(self, limit: int) -> list[HostWork]:
        """Hosts that are due and not held, the earliest first. They are held from now until `release`."""

    async def others_work(self) -> bool:
        """Whether other processes have URLs in hand, which may lead to some for us, and are ours when those end."""

    async def take(self, host: str, limit: int) -> Taken:
        """URLs of a held host that are due and not taken, at most `limit` of each kind."""

    def release(self, host: str) -> None:
        """Hold this host no longer; what was taken of it waits again."""

    def may_send(self) -> bool:
        """Whether requests may leave: not when half of our lease is over."""

    async def commit(self, batch: Batch) -> list[str]:
        """Store a batch; the hosts of ours that have new work, which are held from now."""

    async def woken(self) -> list[str]:
        """Wait until another process found URLs of hosts that we hold; with one process, for ever."""

    async def finish(self) -> bool:
        """End the run if nothing waits that is not set aside."""

    async def documents(self, host: str) -> tuple[bytes, bytes]:
        """What is stored of a host's robots.txt and cookies."""

    async def counts(self) -> Counts:
        """How many URLs there are; costs the same however many."""

    async def waiting_by_host(self, limit: int) -> list[HostCount]:
        """The hosts for which most URLs wait."""

    def tasks(self, state: str, *, host: str | None = None, code: str | None = None) -> AsyncIterator[UrlState]:
        """The URLs that wait, or those that ended like this."""

    async def retry(self, end: str, *, host: str | None = None, code: str | None = None) -> int:
        """Let URLs that ended like this wait again; "waiting" makes due what waits for later. How many."""

    async def visit_now(self, changed: Mapping[str, float]) -> list[str]:
        """Make the next visits due of pages that have changed since they were seen, at hosts that are held: those."""

    async def forget(self, urls: Iterable[tuple[str, bytes]]) -> Forgotten:
        """Remove URLs, each given by host and key, and never take them up again; without a key all of the host."""

    async def show(self, host: str, key: bytes) -> UrlState | None:
        """What is known about one URL."""

    async def verify(self, keys: Iterable[bytes]) -> list[Fault]:
        """Compare everything with everything; `keys` are those beside the rows of this run, of all processes."""


def encode_plan(plan: Plan) -> bytes:
    """A plan as it is stored."""
    return msgspec.json.encode(plan, order="deterministic")


def check_crawl(place: str, row: Sequence[Any] | None) -> None:
    """Raise FolderError unless the row of `crawl` is of this format and as it was written."""
    found = row[0] if row else None
    if found != FORMAT:
        raise FolderError(
            f"{place} is a ledger of format {found}, and this release reads format {FORMAT}",
            "use the release that wrote it, or choose another place",
        )
    if not is_whole(row or ()):
        raise FolderError(f"{place} is damaged (its row in `crawl`)", "restore it from a copy, or choose another place")


def check_plan(place: str, stored: bytes, plan: Plan) -> None:
    """Raise PlanError unless the crawl was begun with this plan."""
    before, now = msgspec.json.decode(stored), msgspec.json.decode(encode_plan(plan))
    if before != now:
        names = [*before, *(name for name in now if name not in before)]
        differences = {name: (before.get(name), now.get(name)) for name in names}
        raise PlanError(place, {name: pair for name, pair in differences.items() if pair[0] != pair[1]})
