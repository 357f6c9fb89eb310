"""One part of a fleet's crawl that has a frontier, of pages or of a job: a copy of its ledger, and rows elsewhere."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from sanderling.clock import Clock
from sanderling.crawls.exchange import PartExchange
from sanderling.crawls.fleet_cookies import FleetCookies
from sanderling.crawls.fleet_log import PartLog, PendingParts, until_there
from sanderling.crawls.fleet_mail import FleetOutbox
from sanderling.crawls.fleet_open import OpenedRun, OpeningPart, PartOpener, SharedCrawl
from sanderling.crawls.folder import LedgerFolder
from sanderling.crawls.run import FrontierRun
from sanderling.engine.writer import WriterRules
from sanderling.fetch.attempts import LeasedSender
from sanderling.fetch.transport import Transport
from sanderling.outcome import Code
from sanderling.stores import frontier_file, frontier_tables
from sanderling.stores.durable import FolderError
from sanderling.stores.fleet import FleetCrawl
from sanderling.stores.frontier import Frontier
from sanderling.stores.frontier_file import FrontierMeta
from sanderling.stores.frontier_rows import End
from sanderling.stores.frontier_shared import SharedFrontier

if sys.version_info >= (3, 14):
    from compression.zstd import compress
else:
    from backports.zstd import compress

L = TypeVar("L", bound=SharedFrontier)
F = TypeVar("F", bound=LedgerFolder[Any])
R = TypeVar("R", bound=FrontierRun[Any, Any])

# A commit costs a server as much with one page as with fifty, and its rows are an object of their own: so what ended
# waits a while for others. What was found does not: others may wait for that. What waits when a machine dies is asked
# for again, so it is not long.
WRITING = WriterRules(every=0.5, hungry=0.25, gather=1.0, enough=100)
FEWEST_SLOTS = 8  # requests in flight of one part


def ledger_format() -> str:
    """What ledgers must agree in: their tables, and the numbers that reasons have in them."""
    return f"{frontier_tables.VERSION}.{frontier_file.key_of(' '.join(Code)).hex()[:8]}"


def create_ledger(path: Path, crawl: FleetCrawl) -> None:
    """Make the empty ledger that every copy of a part begins with."""
    frontier_file.create(path, FrontierMeta(plan=crawl.plan, started=crawl.started))


def pack_rows(rows: bytes) -> bytes:
    """Rows as they are in the object store."""
    return compress(rows, 3)


def messages_read(ledger: Frontier) -> Sequence[int]:
    """The messages of other parts that a ledger has with its next commit."""
    return [int(each) for each in msgspec.json.decode(ledger.inbox, type=dict[str, int])]


class FrontierPartOpener(PartOpener, Generic[L, F, R]):
    """Opens parts of a crawl with a frontier, each with a transport of its own. A system says what only it knows."""

    mail: Any  # the type of what parts send each other

    def __init__(
        self, folder: Path, shared: SharedCrawl, clock: Clock, make_transport: Callable[[], Transport[Any]]
    ) -> None:
        super().__init__(folder, shared, clock)
        self._make_transport = make_transport

    def create(self, path: Path) -> None:
        """Make the empty ledger that every copy begins with."""
        create_ledger(path, self.shared.crawl)

    # What the system says.

    def open_ledger(self, path: Path) -> L:
        """Open a copy of the ledger. Raises FolderError."""
        raise NotImplementedError

    def open_folder(self, part: OpeningPart, ledger: L, share: Callable[[PendingParts], None]) -> F:
        """Open the folder of a part, once `share` was told what waits for its commits."""
        raise NotImplementedError

    def make_run(self, part: OpeningPart, folder: F, transport: Transport[Any]) -> R:
        """What asks in a part, whose folder knows the other parts."""
        raise NotImplementedError

    def say(self, run: R) -> tuple[Callable[[], int], Callable[[], int]]:
        """How many items of a part are kept, and how many requests were sent for it."""
        raise NotImplementedError

    def failed(self, run: R) -> int:
        """How many items of a part have failed."""
        return run.counts[End.FAILED]

    # What is the same for all.

    async def open_run(self, part: OpeningPart) -> OpenedRun:
        """Open the folder of a part, and what runs in it."""
        folder, log = await part.executor(self._open_shared, part)
        part.undo.enter_context(folder)
        outbox = FleetOutbox(self.shared.fleet, part.held)
        folder.join(PartExchange(part.held.lease.part, self.worker.board, self.mail, outbox, part.inbox))
        transport = self._make_transport()
        leased = replace(transport, http=LeasedSender(transport.http, part.held.may_send))
        run = self.make_run(part, folder, leased)
        fetched, asked = self.say(run)
        failed = partial(self.failed, run)
        return OpenedRun(run, log, transport, fetched, lambda: run.waiting, asked, failed, run.take_rest)

    def slots(self, most: int) -> int:
        """Requests in flight of one part of those that we have, or will have, of so many in all."""
        return max(FEWEST_SLOTS, most // -(-self.shared.crawl.parts // self.worker.figures.workers))

    def _open_shared(self, part: OpeningPart) -> tuple[F, PartLog]:
        path, logs = part.path / self.ledger, list[PartLog]()
        try:
            ledger = self.open_ledger(path)
        except FolderError:
            path.unlink(missing_ok=True)  # the next copy is made anew
            raise

        def share(rows: PendingParts) -> None:
            logs.append(part.log(rows, pack_rows, partial(messages_read, ledger)))
            ledger.share(logs[0])

        try:
            number = part.held.lease.part
            cookies = partial(self.shared.fleet.server_of(number).cookies, number)
            kept = until_there(self.shared.fleet, part.held, cookies)
            folder = self.open_folder(part, ledger, share)
            folder.cookies = FleetCookies(kept, logs[0].cookies)
            self._reopen(ledger)
            return folder, logs[0]
        except BaseException:
            ledger.close()
            raise

    def _reopen(self, ledger: L) -> None:
        """Have wait again what a limit cut off, which may be another now; what failed, if somebody wants that once."""
        ledger.wall, wanted = self.clock.wall, self.worker.figures.retries
        if ledger.counts()[End.LEFT]:
            ledger.reopen(End.LEFT)
        if ledger.meta.retried < wanted:
            ledger.reopen(End.FAILED)
            ledger.note(retried=wanted)
