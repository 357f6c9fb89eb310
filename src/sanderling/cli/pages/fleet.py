"""`sanderling pages crawl` with `--fleet`: a worker of a crawl that several machines share."""

from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

from sanderling.cli.fleet.flags import FleetClock
from sanderling.cli.fleet.worker import FleetSystem, OpenedSystem, run_worker
from sanderling.cli.pages.crawl import PagesFlags
from sanderling.crawls.fleet_frontier import ledger_format
from sanderling.crawls.fleet_open import SharedCrawl
from sanderling.crawls.fleet_worker import FleetWorker
from sanderling.crawls.parts import COPIES
from sanderling.crawls.session import LoginError
from sanderling.engine.handover import HandOverError
from sanderling.fetch.render import RenderError
from sanderling.fetch.transport import share_memory
from sanderling.observe.report import Process, Report
from sanderling.pages.crawl import Crawl
from sanderling.pages.fleet import PagePartOpener
from sanderling.pages.folder import CrawlPlan, plan_differences
from sanderling.pages.report import PagesFacts, join_crawls, report_crawl
from sanderling.stores.fleet import CrawlView

if TYPE_CHECKING:
    from sanderling.events.handover import EventsHandOver


def run_worker_of(out: Path, plan: CrawlPlan | None, flags: PagesFlags, *, as_json: bool) -> None:
    """Work on the crawl of a fleet until nothing is left of it; exit with the code that says how it went."""
    run_worker(PagesFleet(out, plan, flags), flags.processes, as_json=as_json)


class PagesFleet(FleetSystem[Report[PagesFacts]]):
    """A crawl of pages, as its command was given."""

    name = "pages"
    known = (HandOverError, LoginError, RenderError)

    def __init__(self, out: Path, plan: CrawlPlan | None, flags: PagesFlags) -> None:
        super().__init__(out, flags.sharing, flags.options, flags.again(out))
        self._feed: EventsHandOver[bytes] | None = None
        self._plan = plan
        self._flags = flags

    @property
    def ledger(self) -> str:
        """The format of its ledgers."""
        return ledger_format()

    @property
    def plan(self) -> str | None:
        """What to crawl; None if no address was given."""
        return None if self._plan is None else msgspec.json.encode(self._plan).decode()

    def compare(self, plan: str) -> str:
        """What is different in a plan."""
        if self._plan is None:
            return ""
        different = plan_differences(self._plan, msgspec.json.decode(plan, type=CrawlPlan))
        return f"it has another plan: {different}" if different else ""

    def spent(self, view: CrawlView) -> tuple[str, ...]:
        """The limit of pages, if it is reached."""
        most = self._flags.max_pages
        return () if most is None or view.fetched < most else ("--max-pages",)

    def notes(self) -> tuple[str, ...]:
        """What went on to events."""
        return self._flags.onward.words(self._feed)

    async def open(
        self, shared: SharedCrawl, clock: FleetClock, stack: AsyncExitStack
    ) -> OpenedSystem[Report[PagesFacts]]:
        """Each part has connections and a limiter of its own; memory and a browser are those of the process."""
        network = self._flags.network
        first = network.transport(clock)
        if first.renderer is not None:
            await stack.enter_async_context(first.renderer)
        self._feed = await stack.enter_async_context(self._flags.onward.pages(clock, lambda _: None))
        opener = PagePartOpener(
            self.out / COPIES,
            shared,
            clock,
            lambda: replace(share_memory(network.transport(clock), first.memory), renderer=first.renderer),
            self._flags.rules(),
            self._feed,
        )
        return OpenedSystem(opener, _report)


def _report(worker: FleetWorker, process: Process) -> Report[PagesFacts]:
    seconds, running = process.seconds, process.running
    said = [report_crawl(cast("Crawl", part.run), seconds, running=running) for part in worker.parts]
    return join_crawls(said, process)
