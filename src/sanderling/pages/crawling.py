"""A crawl of pages as a function, for code that is not ours. The command and it go on with what the other began."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from sanderling.clock import SystemClock
from sanderling.crawls.kept import Keep
from sanderling.crawls.run import http_rules, run_to_end
from sanderling.crawls.session import HostPatterns, caps_of, host_table
from sanderling.engine.handover import HandOver
from sanderling.executor import Executor
from sanderling.fetch.render import RenderRules, make_renderer
from sanderling.fetch.transport import connections_for, make_transport
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.pages.crawl import Crawl
from sanderling.pages.files import MOST_DECODED, MOST_RAW
from sanderling.pages.folder import CrawlFolder, CrawlPlan
from sanderling.pages.output import PAGES
from sanderling.pages.report import report_crawl
from sanderling.pages.revisits import VisitRules
from sanderling.pages.rules import CrawlRules
from sanderling.pages.urls import normalise
from sanderling.stores.frontier_rows import End

# Bytes that documents may hold at once until they are read: eight of the largest. A kilobyte can be packed so that it
# has as many, and 256 are asked for at once.
BODIES = 8 * MOST_DECODED


class CrawlResult(NamedTuple):
    """What came of a crawl. `rows` is a file with a line of JSON for each page."""

    complete: bool  # whether every URL that was found has its end
    fetched: int  # pages, those that were found unchanged included, sitemaps not
    failed: int
    rows: Path


async def crawl_pages(  # noqa: PLR0913 - the flags of the command
    urls: Iterable[str],
    folder: str | Path,
    *,
    depth: int = 16,
    max_pages: int | None = None,
    rps: float = 8.0,
    contact: str | None = None,
    private: bool = False,
    hosts: HostPatterns | None = None,
    keep: Keep | None = None,
    render: Iterable[str] = (),
    every: str | None = None,
    visits: int | None = None,
    hand_over: HandOver[bytes] | None = None,
) -> CrawlResult:
    """Crawl all of each host from these addresses on, into a folder, with a row for each page.

    Whoever is cancelled or killed loses nothing: called again, it goes on where it was, and, once all is done, fetches
    what has changed since. With `keep`, pages are kept as they came, too: in files or in a WARC. All rows also go to
    `hand_over`, before the folder takes note of them, such as those of `hand_to_events`. `hosts` is what is set for
    some, by pattern: `{"*.example.org": HostSettings(...)}`. `render` is as that of the command. With `every`, as
    "auto", "1d" or "6h-14d", it does not end: each page is visited again when it is due, `visits` a day at most; cancel
    it. Raises ValueError for what is no address, FolderError if the folder is not to be had, LoginError if we are not
    let in, RenderError if there is no browser.
    """
    clock, path = SystemClock(), Path(folder)
    plan = CrawlPlan(tuple(dict.fromkeys(normalise(url) for url in urls)), (), depth, keep)
    if not plan.seeds:
        raise ValueError("no addresses; expected one to begin with")
    if every is None and visits is not None:
        raise ValueError("visits are a day's second visits: expected every, too")
    if every is not None and max_pages is not None:
        raise ValueError("every goes on without end, expected no max_pages")
    again = None if every is None else VisitRules.parse(every, visits)
    hosts = hosts or {}
    limiter = Limiter(LimiterRules(pace=PaceRules.up_to(rps), caps=caps_of(hosts)))
    asking = http_rules(rps, contact, MOST_RAW, MOST_DECODED, host_table(hosts))
    transport = make_transport(asking, limiter, BODIES, private=private)
    if (rendering := RenderRules.of(render)) is not None:
        transport = replace(transport, renderer=make_renderer(rendering, clock))
    rules = CrawlRules(per_host=connections_for(rps), max_pages=max_pages, hosts=hosts, visits=again)
    held = CrawlFolder.open(path, plan, resume=False, wall=clock.wall(), visits=again)

    def make(executor: Executor) -> Crawl:
        return Crawl(held, transport, executor, rules=rules, clock=clock, hand_over=hand_over)

    crawl, complete = await run_to_end(held, transport, clock, make, report_crawl)
    counts = crawl.counts
    fetched = counts[End.FETCHED] + counts[End.UNCHANGED] - crawl.source.sitemaps
    return CrawlResult(complete, fetched, counts[End.FAILED], path / PAGES)
