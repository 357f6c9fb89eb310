"""A part that is closed while its thread still works, as one is that another machine has taken."""

import asyncio
import threading
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from fake_objects import MemoryObjects

from sanderling.clock import SystemClock
from sanderling.crawls.fleet import DirectStoreCaller, FleetStores
from sanderling.crawls.fleet_frontier import ledger_format
from sanderling.crawls.fleet_log import ObjectPlace
from sanderling.crawls.fleet_open import SharedCrawl
from sanderling.crawls.fleet_worker import FleetWorker
from sanderling.fetch.transport import Transport
from sanderling.limit import Limiter
from sanderling.limit.memory import Memory
from sanderling.pages.fleet import PagePartOpener
from sanderling.pages.folder import CrawlPlan
from sanderling.pages.rules import CrawlRules
from sanderling.stores.fleet import FleetCrawl, WorkerIdentity
from sanderling.stores.fleet_memory import FleetMemory, MemoryFleet
from sanderling.stores.leases import HeldLease

LATE = 0.3  # seconds that the thread gives whoever closes the ledger too early


def test_the_ledger_of_a_part_is_closed_after_its_thread_has_ended(tmp_path: Path) -> None:
    """SQLite ends the process if a connection is closed in the middle of a statement."""
    done: list[str] = []
    closed = threading.Event()

    async def main() -> None:
        opener, held = await opener_of(tmp_path)
        part = await opener.open(held)
        ledger: Any = part.run.folder.ledger  # type: ignore[attr-defined]  # of pages
        close = ledger.close

        def note_closed() -> None:
            done.append("closed")
            closed.set()
            close()

        def work() -> None:
            closed.wait(LATE)
            done.append("worked")

        ledger.close = note_closed
        async with asyncio.TaskGroup() as group:
            group.create_task(part.run._executor(work))  # type: ignore[attr-defined]
            await asyncio.sleep(0)
            group.create_task(asyncio.to_thread(part.stack.close))

    asyncio.run(main())

    assert done == ["worked", "closed"]


async def opener_of(folder: Path) -> tuple[PagePartOpener, HeldLease]:
    clock = SystemClock()
    server = MemoryFleet(FleetMemory(clock.wall), "web", WorkerIdentity("one", "m", "1"))
    fleet = FleetStores([server], DirectStoreCaller())
    plan = CrawlPlan(("http://a.example/",), ("a.example",), 2)
    crawl = await fleet.begin(
        FleetCrawl(
            name="web",
            id="1",
            system="pages",
            plan=msgspec.json.encode(plan).decode(),
            parts=1,
            seconds=30.0,
            ledger=ledger_format(),
            objects="memory",
            started=1_800_000_000.0,
        )
    )

    def transport() -> Transport[Any]:
        return Transport(object(), Limiter(clock=clock, rng=Random(1)), Memory(2**30))

    shared = SharedCrawl(fleet, crawl, ObjectPlace(MemoryObjects(), "rows", "web/"))
    opener = PagePartOpener(folder, shared, clock, transport, CrawlRules())
    opener.worker = FleetWorker(fleet, crawl, clock, clock.boot, opener.open)
    (lease,) = await fleet.acquire(1, [])
    return opener, HeldLease(lease, crawl.seconds, clock.boot, clock.boot())
