"""Opens a part of a fleet's crawl for a worker: what all systems do alike. A system says what only it knows."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sanderling.clock import Clock
from sanderling.crawls.fleet import FleetStores
from sanderling.crawls.fleet_copy import LedgerCopy
from sanderling.crawls.fleet_log import ObjectPlace, PartLog, PendingParts, until_there
from sanderling.crawls.fleet_mail import FleetInbox
from sanderling.crawls.fleet_orphans import OrphanSearch
from sanderling.crawls.fleet_part import FleetPart, PartRunning, PartStores, TakeRest, recall_limiter
from sanderling.crawls.fleet_worker import FleetWorker
from sanderling.executor import Executor, in_threads
from sanderling.fetch.transport import Transport
from sanderling.stores.durable import Lock, plainly
from sanderling.stores.fleet import FleetCrawl
from sanderling.stores.leases import HeldLease, LeaseLostError


@dataclass(frozen=True, slots=True)
class SharedCrawl:
    """What all workers of a crawl have in common."""

    fleet: FleetStores
    crawl: FleetCrawl
    place: ObjectPlace


@dataclass(slots=True)
class OpeningPart:
    """A part that becomes ours, with its ledger as the server knows it. Whoever opens it takes over the lock."""

    path: Path
    lock: Lock
    held: HeldLease
    inbox: FleetInbox
    executor: Executor
    shared: SharedCrawl
    undo: ExitStack  # of all that is opened with it

    def next_commit(self) -> int:
        """The number of its next commit."""
        return self.held.lease.head + 1

    def log(self, rows: PendingParts, pack: Callable[[bytes], bytes], read: Callable[[], Sequence[int]]) -> PartLog:
        """What shares its transactions; `read` says which messages its ledger has."""
        return PartLog(self.shared.fleet, self.held, self.shared.place, rows, pack, read)


async def _take_nothing() -> None:
    """Parts of some systems find nothing for each other."""


@dataclass(frozen=True, slots=True)
class OpenedRun:
    """What a system has made of a part."""

    run: PartRunning
    log: PartLog
    transport: Transport[Any]
    fetched: Callable[[], int]
    waiting: Callable[[], int]
    asked: Callable[[], int] = int
    failed: Callable[[], int] = int
    take_rest: TakeRest = _take_nothing
    is_resting: Callable[[], bool] = bool  # whether it waits for other parts, and asks nothing meanwhile


class PartOpener:
    """Opens parts below a folder, each with a copy of its ledger and a thread of its own."""

    worker: FleetWorker
    ledger = "ledger.db"  # the name of its file

    def __init__(self, folder: Path, shared: SharedCrawl, clock: Clock) -> None:
        self._folder = folder
        self.shared = shared
        self.clock = clock

    def make_thread(self, name: str) -> ThreadPoolExecutor:
        """What the ledger of a part is written in."""
        return ThreadPoolExecutor(1, name)

    def create(self, path: Path) -> None:
        """Make the empty ledger that every copy begins with: the same on every machine."""
        raise NotImplementedError

    async def open_run(self, part: OpeningPart) -> OpenedRun:
        """Open what runs in a part. The lock is of whatever is opened, once this returns."""
        raise NotImplementedError

    async def open(self, held: HeldLease) -> FleetPart:
        """The part of a lease."""
        fleet, number, place = self.shared.fleet, held.lease.part, self.shared.place
        path = self._folder / f"{number:04}"
        with plainly(path), ExitStack() as undo, ExitStack() as locked:
            path.mkdir(parents=True, exist_ok=True)
            lock = Lock(path / "lock")
            locked.callback(lock.release)
            thread = undo.enter_context(self.make_thread(f"part {number}"))
            executor = in_threads(thread)
            ask = partial(until_there, fleet, held, of="PostgreSQL or the object store")
            copy = LedgerCopy(path / self.ledger, fleet.server_of(number), number, place, self.create, ask)
            state = await executor(copy.bring_up)
            if state.head != held.lease.head:
                raise LeaseLostError(f"part {number} is not as it was when it became ours")
            orphans = OrphanSearch(fleet, held, place, self.clock)
            part = OpeningPart(path, lock, held, FleetInbox(), executor, self.shared, undo)
            opened = await self.open_run(part)
            # Who has lost the part closes it while its thread may be writing, and SQLite does not survive that.
            undo.callback(thread.shutdown)
            locked.pop_all()
            recall_limiter(opened.transport.limiter, state)
            opened.run.engine.may_ask = lambda: held.may_send() and not opened.is_resting()
            stores = PartStores(fleet, held, copy, opened.log, orphans)
            figures = opened.fetched, opened.waiting, opened.asked, opened.failed
            given = opened.run, opened.transport, *figures, opened.take_rest
            return FleetPart(stores, self.worker.board, part.inbox, *given, undo.pop_all())
