"""A crawl of pages as a function, for code that is not ours. The command and it go on with what the other began."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from sanderling.clock import SystemClock
from sanderling.engine.handover import HandOver
from sanderling.executor import in_threads
from sanderling.fetch.http import HttpRules
from sanderling.fetch.transport import connections_for, make_transport
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.pages.crawl import Crawl
from sanderling.pages.folder import CrawlFolder, Plan
from sanderling.pages.output import PAGES
from sanderling.pages.report import report_crawl
from sanderling.pages.rules import CrawlRules
from sanderling.pages.urls import normalise
from sanderling.stores.frontier_rows import End
from sanderling.stores.limiter_file import keep, recall
from sanderling.stores.status_file import write_status

MOST_RAW, MOST_DECODED = 16 * 2**20, 32 * 2**20  # bytes of a document
# Bytes that documents may hold at once until they are read: eight of the largest. A kilobyte can be packed so that it
# has as many, and 256 are asked for at once.
BODIES = 8 * MOST_DECODED


class Crawled(NamedTuple):
    """What came of a crawl. `rows` is a file with a line of JSON for each page."""

    complete: bool  # whether every URL that was found has its end
    fetched: int  # pages, those that were found unchanged included
    failed: int
    rows: Path


def http_rules(rps: float, contact: str | None = None) -> HttpRules:
    """How documents are read, of hosts that are asked so often."""
    per_host = connections_for(rps)
    return HttpRules(contact=contact, most_raw=MOST_RAW, most_decoded=MOST_DECODED, connections_per_host=per_host)


async def crawl_pages(  # noqa: PLR0913 - the flags of the command
    urls: Iterable[str],
    folder: str | Path,
    *,
    depth: int = 16,
    max_pages: int | None = None,
    rps: float = 8.0,
    contact: str | None = None,
    private: bool = False,
    hand_over: HandOver[bytes] | None = None,
) -> Crawled:
    """Crawl all of each host from these addresses on, into a folder, with a row for each page.

    Whoever is cancelled or killed loses nothing: called again, it goes on where it was, and, once all is done, fetches
    what has changed since. All rows also go to `hand_over`, before the folder takes note of them, such as those of
    `hand_to_events`. Raises ValueError for what is no address, FolderError if the folder is not to be had.
    """
    clock, path = SystemClock(), Path(folder)
    plan = Plan(tuple(dict.fromkeys(normalise(url) for url in urls)), (), depth)
    if not plan.seeds:
        raise ValueError("no addresses; expected one to begin with")
    limiter = Limiter(LimiterRules(pace=PaceRules.up_to(rps)))
    transport = make_transport(http_rules(rps, contact), limiter, BODIES, private=private)
    with (
        CrawlFolder.open(path, plan, resume=False, wall=clock.wall()) as held,
        ThreadPoolExecutor(1, "writer") as thread,
    ):
        recall(limiter, path)
        executor, started = in_threads(thread), clock.now()
        rules = CrawlRules(per_host=connections_for(rps), max_pages=max_pages)
        crawl = Crawl(held, transport, executor, rules=rules, clock=clock, hand_over=hand_over)
        async with transport.http:
            complete = await crawl.run()
        await executor(held.finish, clock.wall(), complete)
        await executor(write_status, path, report_crawl(crawl, clock.now() - started, running=False))
        await executor(keep, path, list(limiter.saving()))
        counts = crawl.counts
    fetched = counts[End.FETCHED] + counts[End.UNCHANGED]
    return Crawled(complete, fetched, counts[End.FAILED], path / PAGES)
