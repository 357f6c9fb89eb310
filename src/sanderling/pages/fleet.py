"""One part of a fleet's crawl of pages: a copy of its ledger, and rows that go to the object store."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sanderling.clock import Clock
from sanderling.crawls.errands import PageMail
from sanderling.crawls.fleet_archive import SharedArchive
from sanderling.crawls.fleet_frontier import WRITING, FrontierPartOpener
from sanderling.crawls.fleet_log import PendingParts, PendingRows
from sanderling.crawls.fleet_open import OpeningPart, SharedCrawl
from sanderling.crawls.folder import plan_of
from sanderling.engine.handover import HandOver
from sanderling.fetch.transport import Transport
from sanderling.pages.crawl import Crawl
from sanderling.pages.earlier import LEDGER
from sanderling.pages.folder import CrawlFolder, CrawlPlan
from sanderling.pages.output import PageRows
from sanderling.pages.revisits import VisitRules
from sanderling.pages.rules import CrawlRules
from sanderling.stores.durable import Lock
from sanderling.stores.frontier_rows import End, Ended
from sanderling.stores.frontier_visits import VisitedFrontier


class SharedRows(PageRows):
    """The rows of a part, which wait for the commit that has them."""

    def __init__(self, folder: Path, pending: PendingRows) -> None:  # no file: so not that of the other rows
        self._folder = folder
        self.archive = pending.archive
        self.pending = pending
        self.length = pending.length

    def write(self, ended: Sequence[Ended]) -> int:
        """Have bodies, captures and rows kept with the next commit; where the rows end."""
        self.pending.keep_files(body for each in ended for body in (each.body, each.raw) if body is not None)
        self.length = self.pending.archive_and_append(ended)
        return self.length

    def cut(self, length: int) -> None:
        """The commit was not made."""
        self.pending.cut(length)
        self.length = length

    def close(self) -> None:
        """Nothing is open."""


class SharedCrawlFolder(CrawlFolder):
    """A folder whose ledger is a copy, and whose rows are elsewhere."""

    def __init__(
        self, path: Path, lock: Lock, ledger: VisitedFrontier, visits: VisitRules | None, wall: float, rows: SharedRows
    ) -> None:
        self._rows = rows
        super().__init__(path, lock, ledger, visits, wall)

    def _reconciled(self) -> SharedRows:
        return self._rows


class PartHandOver:
    """The hand-over of a worker, as one of its parts has it: a part that goes to others does not stop it."""

    def __init__(self, of: HandOver[bytes], is_leaving: Callable[[], bool]) -> None:
        self.hand = of.hand
        self._of = of
        self._is_leaving = is_leaving

    def stop(self) -> None:
        """The part is to end; the worker, too, if it leaves."""
        if self._is_leaving():
            self._of.stop()


class PagePartOpener(FrontierPartOpener[VisitedFrontier, SharedCrawlFolder, Crawl]):
    """Opens parts of a crawl of pages, each with a transport of its own."""

    ledger = LEDGER
    mail = PageMail

    def __init__(
        self,
        folder: Path,
        shared: SharedCrawl,
        clock: Clock,
        make_transport: Callable[[], Transport[Any]],
        rules: CrawlRules,
        hand_over: HandOver[bytes] | None = None,
    ) -> None:
        """The parts of a worker have one `hand_over`."""
        super().__init__(folder, shared, clock, make_transport)
        self._hand_over = hand_over
        visits = rules.visits
        if visits is not None and visits.a_day is not None:
            visits = replace(visits, a_day=visits.a_day / shared.crawl.parts)
        self._rules = replace(rules, visits=visits, writing=rules.writing or WRITING)

    def open_ledger(self, path: Path) -> VisitedFrontier:
        """Open a copy of the ledger. Raises FolderError."""
        return VisitedFrontier(path)

    def open_folder(
        self, part: OpeningPart, ledger: VisitedFrontier, share: Callable[[PendingParts], None]
    ) -> SharedCrawlFolder:
        """Open the folder of a part."""
        keeps_warc = plan_of(ledger.meta, part.path / LEDGER, CrawlPlan).keep == "warc"
        pending = PendingRows(ledger.meta.watermark, SharedArchive(part.next_commit) if keeps_warc else None)
        share(pending)
        rows = SharedRows(part.path, pending)
        return SharedCrawlFolder(part.path, part.lock, ledger, self._rules.visits, self.clock.wall(), rows)

    def make_run(self, part: OpeningPart, folder: SharedCrawlFolder, transport: Transport[Any]) -> Crawl:
        """The crawl of a part."""
        rules = replace(self._rules, slots=self.slots(self._rules.slots))
        feed = None if self._hand_over is None else PartHandOver(self._hand_over, lambda: self.worker.leaving)
        return Crawl(folder, transport, part.executor, rules=rules, clock=self.clock, hand_over=feed)

    def say(self, run: Crawl) -> tuple[Callable[[], int], Callable[[], int]]:
        """How many pages are kept; nobody counts requests."""
        return (lambda: run.counts[End.FETCHED] + run.counts[End.UNCHANGED]), int


def finish_pulled(folder: Path, wall: float, complete: bool) -> None:  # noqa: FBT001 - by a table
    """Leave a part that was pulled as the folder of a crawl whose run has come to its end."""
    with CrawlFolder.open(folder, None, resume=True, wall=wall, whatever=True) as opened:
        opened.finish(wall, complete)
