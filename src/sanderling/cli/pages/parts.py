"""`sanderling pages crawl` with `--processes`: a crawl in parts, which several processes share."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from sanderling.cli.command_error import CommandError
from sanderling.cli.loop import explain_end, run
from sanderling.cli.pages.crawl import PagesFlags, open_folder
from sanderling.cli.pages.summary import PageSummary, exit_with, summarise_ledgers, words
from sanderling.cli.part_runs import PartRun, run_parts
from sanderling.cli.processes import ProcessGroup, how_many, open_board, own_parts
from sanderling.cli.report_screen import Screen, fitting
from sanderling.cli.running import Ran, Shell, run_system
from sanderling.clock import Clock, SystemClock
from sanderling.crawls.exchange import PartExchange
from sanderling.crawls.parts import folders_of, number_of_parts, part_folder
from sanderling.engine.host_report import this_process
from sanderling.executor import in_threads
from sanderling.observe.report import Report
from sanderling.pages.crawl import Crawl
from sanderling.pages.earlier import LEDGER
from sanderling.pages.folder import CrawlFolder, CrawlPlan
from sanderling.pages.parts import begin_parts, finish_parts, parts_for
from sanderling.pages.report import PagesFacts, join_crawls, report_crawl
from sanderling.pages.rules import CrawlRules
from sanderling.stores.board import BoardField
from sanderling.stores.durable import FolderError, Lock
from sanderling.stores.frontier_rows import End, FoundUrl
from sanderling.stores.frontier_visits import VisitedFrontier
from sanderling.stores.status_file import read_status

FEWEST_SLOTS = 32  # requests in flight of one part, however many a process has


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
    if own := own_parts():
        _crawl_own_parts(out, own, flags, replace(flags.rules(), retry_cut=retry_cut))
        return
    processes, clock, screen = how_many(flags.processes), SystemClock(), fitting(json=as_json)
    with ExitStack() as stack:
        try:
            out.mkdir(parents=True, exist_ok=True)
            stack.callback(Lock(out / "lock").release)
            parts = parts_for(out, processes)
            resumed = begin_parts(out, plan, resume=resume, wall=clock.wall(), visits=flags.visits, reopen=reopen)
        except FolderError as error:
            raise CommandError(str(error), code=2) from None
        with explain_end(flags.again(out), (FolderError,)):
            ran = run(_run_group(out, parts, processes, flags, clock, screen))
            if ran.complete:
                finish_parts(out)
        summary = _summarise(out, ran, flags, resumed=resumed)
    screen.end([*words(summary), *ran.notes, *flags.without_parquet], summary.as_json())
    exit_with(summary, stopped=ran.stopped)


async def _run_group(
    out: Path, parts: int, processes: int, flags: PagesFlags, clock: Clock, screen: Screen
) -> Ran[Report[PagesFacts]]:
    started = clock.now()

    def report(*, running: bool = True) -> Report[PagesFacts]:
        """What the parts last said, as one."""
        kind = Report[PagesFacts]
        said = [each for path in folders_of(out) if (each := read_status(path, kind)) is not None]
        wall = clock.wall()
        return join_crawls(said, this_process(clock.now() - started, wall, running=running, paused=False))

    with ThreadPoolExecutor(1, "folder") as thread:
        group = ProcessGroup(out, parts, processes, clock, screen.note)
        shell = Shell(folder=out, options=flags.options, screen=screen, executor=in_threads(thread), report=report)
        return await run_system(group, shell)


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


def _crawl_own_parts(out: Path, own: list[int], flags: PagesFlags, rules: CrawlRules) -> None:
    """Crawl the parts of this process, until all parts have come to their end."""
    clock = SystemClock()
    rules = replace(rules, slots=max(FEWEST_SLOTS, rules.slots // len(own)))
    if rules.visits is not None and rules.visits.a_day is not None:
        rules = replace(rules, visits=replace(rules.visits, a_day=rules.visits.a_day / number_of_parts(out)))
    with ExitStack() as stack, explain_end(flags.again(out), (FolderError,)):
        board = open_board(out, number_of_parts(out))
        stack.callback(board.close)
        folders = []
        for part in own:
            opened = open_folder(part_folder(out, part), None, resume=True, clock=clock, visits=rules.visits)
            folder = stack.enter_context(opened)
            folder.join(PartExchange(out, part, board, FoundUrl, folder.ledger.meta))
            folders.append(folder)
        run(_run_own(out, folders, rules, flags, clock))


async def _run_own(out: Path, folders: list[CrawlFolder], rules: CrawlRules, flags: PagesFlags, clock: Clock) -> None:
    started, first = clock.now(), flags.network.transport(clock)
    async with AsyncExitStack() as stack:
        if first.renderer is not None:
            await stack.enter_async_context(first.renderer)
        runs = []
        for folder in folders:
            executor = in_threads(stack.enter_context(ThreadPoolExecutor(1, "folder")))
            feed = await stack.enter_async_context(flags.onward.pages(clock, lambda _: None))
            # Each has connections and a limiter of its own; memory and a browser are those of the process.
            transport = replace(flags.network.transport(clock), memory=first.memory, renderer=first.renderer)
            crawl = Crawl(folder, transport, executor, rules=rules, clock=clock, hand_over=feed)
            report = partial(_report, crawl, started)
            runs.append(PartRun(crawl, transport, executor, report, partial(_finish, folder, clock, flags)))
        await run_parts(out, runs, flags.options)


def _report(crawl: Crawl, started: float, *, running: bool = True) -> Report[PagesFacts]:
    return report_crawl(crawl, crawl.clock.now() - started, running=running)


# By position, since that is how a thread is handed its work.
def _finish(folder: CrawlFolder, clock: Clock, flags: PagesFlags, complete: bool) -> None:  # noqa: FBT001
    """Not finished before all parts are: the process that people see says so."""
    folder.finish(clock.wall(), False, flags.writes_parquet)  # noqa: FBT003
    if folder.others is not None:
        folder.others.board.put(folder.others.own, BoardField.COMPLETE, complete)
