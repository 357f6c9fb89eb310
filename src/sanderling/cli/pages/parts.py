"""`sanderling pages crawl` with `--processes`: a crawl in parts, which several processes share."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from sanderling.cli.pages.crawl import PagesFlags, open_folder
from sanderling.cli.pages.summary import PageSummary, exit_with, summarise_ledgers, words
from sanderling.cli.part_runs import FEWEST_SLOTS, PartedCrawl, PartRun, report_part, share_transport
from sanderling.cli.processes import how_many, open_domains, own_parts
from sanderling.cli.report_screen import fitting
from sanderling.cli.running import Ran
from sanderling.clock import Clock, SystemClock
from sanderling.crawls.errands import PageMail
from sanderling.crawls.part_folders import BegunParts
from sanderling.crawls.part_quotas import PartCounts
from sanderling.crawls.parts import folders_of, number_of_parts
from sanderling.crawls.session import LoginError
from sanderling.engine.handover import HandOverError
from sanderling.fetch.render import RenderError
from sanderling.observe.report import Report
from sanderling.pages.budgets import count_domains
from sanderling.pages.crawl import Crawl
from sanderling.pages.earlier import LEDGER
from sanderling.pages.folder import CrawlFolder, CrawlPlan
from sanderling.pages.parts import begin_parts
from sanderling.pages.report import PagesFacts, join_crawls, report_crawl
from sanderling.pages.rules import CrawlRules
from sanderling.pages.split import PagesSplit
from sanderling.stores.durable import FolderError
from sanderling.stores.frontier_rows import End
from sanderling.stores.frontier_visits import VisitedFrontier


def run_parts_of(  # noqa: PLR0913 - what the commands have
    out: Path,
    plan: CrawlPlan | None,
    flags: PagesFlags,
    *,
    resume: bool,
    as_json: bool,
    reopen: End | None = None,
    retry_cut: bool = False,
) -> None:
    """Crawl with several processes, or be one of them; exit with the code that says how it went.

    What came to the end `reopen` is asked for again, and what budgets cut off if `retry_cut`.
    """
    known = (FolderError, HandOverError, LoginError, RenderError)
    crawl = PartedCrawl(
        out=out, ledger=LEDGER, split=PagesSplit(), options=flags.options, go_on=flags.again(out), known=known
    )
    if own := own_parts():
        rules = _rules_of_part(replace(flags.rules(), retry_cut=retry_cut), number_of_parts(out), len(own))
        crawl.follow(own, partial(_open_part, rules), PageMail, partial(_make_runs, rules, flags))
        return
    screen = fitting(json=as_json)

    def begin() -> BegunParts:
        visits = flags.visits
        begun = begin_parts(out, plan, resume=resume, wall=SystemClock().wall(), visits=visits, reopen=reopen)
        if flags.network.max_per_domain:
            _count_domains(out)
        return begun

    with crawl.lead(how_many(flags.processes), begin, Report[PagesFacts], join_crawls, screen) as (begun, ran):
        summary = _summarise(out, ran, flags, resumed=begun.resumed)
    screen.end([*words(summary), *ran.notes, *flags.without_parquet], summary.as_json())
    exit_with(summary, stopped=ran.stopped)


def _count_domains(out: Path) -> None:
    """Say how many pages of each domain all parts have before they begin."""
    with closing(open_domains(out, make=True)) as table:
        for path in folders_of(out):
            with closing(VisitedFrontier(path / LEDGER)) as ledger:
                count_domains(PartCounts(table), ledger.fetched())


def _summarise(out: Path, ran: Ran[Report[PagesFacts]], flags: PagesFlags, *, resumed: bool) -> PageSummary:
    with ExitStack() as stack:
        ledgers = [stack.enter_context(closing(VisitedFrontier(path / LEDGER))) for path in folders_of(out)]
        return summarise_ledgers(
            out,
            ledgers,
            ran.last,
            complete=ran.complete,
            resumed=resumed,
            again=flags.again(out),
            given=(flags.network, flags.onward),
        )


def _rules_of_part(rules: CrawlRules, parts: int, own: int) -> CrawlRules:
    """What one part may do, of so many, where a process has so many of them."""
    rules = replace(rules, slots=max(FEWEST_SLOTS, rules.slots // own))
    if rules.visits is not None and rules.visits.a_day is not None:
        rules = replace(rules, visits=replace(rules.visits, a_day=rules.visits.a_day / parts))
    return rules


def _open_part(rules: CrawlRules, path: Path) -> CrawlFolder:
    return open_folder(path, None, resume=True, clock=SystemClock(), visits=rules.visits)


@asynccontextmanager
async def _make_runs(
    rules: CrawlRules, flags: PagesFlags, folders: Sequence[CrawlFolder]
) -> AsyncIterator[list[PartRun]]:
    clock = SystemClock()
    started, runs = clock.now(), []
    async with AsyncExitStack() as stack:
        each_part = await stack.enter_async_context(share_transport(folders, lambda: flags.network.transport(clock)))
        if rules.max_per_domain:
            domains = PartCounts(stack.enter_context(closing(open_domains(folders[0].root))))
            rules = replace(rules, domains=domains)
        for folder, transport, executor in each_part:
            feed = await stack.enter_async_context(flags.onward.pages(clock, lambda _: None))
            crawl = Crawl(folder, transport, executor, rules=rules, clock=clock, hand_over=feed)
            report = report_part(report_crawl, crawl, clock, started)
            runs.append(PartRun(crawl, transport, executor, report, partial(_finish, folder, clock, flags)))
        yield runs


def _finish(folder: CrawlFolder, clock: Clock, flags: PagesFlags) -> None:
    folder.finish(clock.wall(), False, flags.writes_parquet)  # noqa: FBT003 - by position, as elsewhere
