"""`sanderling pages crawl --processes N`: a crawl in parts, which several processes share."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from sanderling.cli.command_error import CommandError
from sanderling.cli.loop import explain_end, run
from sanderling.cli.pages.crawl import PagesFlags, exit_with, open_folder, reopen_left
from sanderling.cli.pages.summary import PageSummary, summarise_ledgers, words
from sanderling.cli.part_runs import PartRun, run_parts
from sanderling.cli.processes import ProcessGroup, open_board
from sanderling.cli.report_screen import Screen, fitting
from sanderling.cli.running import Ran, Shell, run_system
from sanderling.clock import Clock, SystemClock
from sanderling.crawls.exchange import PartExchange
from sanderling.crawls.parts import folders_of, make_parts, number_of_parts, part_folder
from sanderling.engine.host_report import this_process
from sanderling.executor import in_threads
from sanderling.observe.report import Report
from sanderling.pages.crawl import Crawl
from sanderling.pages.earlier import LEDGER
from sanderling.pages.folder import CrawlFolder, CrawlPlan, FolderState
from sanderling.pages.report import PagesFacts, join_crawls, report_crawl
from sanderling.pages.rules import CrawlRules
from sanderling.stores.durable import FolderError, Lock, check_empty
from sanderling.stores.frontier_rows import FoundUrl
from sanderling.stores.frontier_visits import VisitedFrontier
from sanderling.stores.status_file import read_status

FEWEST_SLOTS = 32  # requests in flight of one part, however many a process has


# What people start.


def crawl_in_parts(
    out: Path, plan: CrawlPlan | None, processes: int, flags: PagesFlags, *, resume: bool, as_json: bool
) -> None:
    """Crawl with several processes, show how it goes, and exit with the code that says how it went."""
    clock, screen = SystemClock(), fitting(json=as_json)
    with ExitStack() as stack:
        try:
            out.mkdir(parents=True, exist_ok=True)
            stack.callback(Lock(out / "lock").release)
            parts = number_of_parts(out) or _begin(out, processes)
        except FolderError as error:
            raise CommandError(str(error), code=2) from None
        resumed = _open_once(out, parts, plan, flags, resume=resume, clock=clock)
        with explain_end(flags.again(out), (FolderError,)):
            ran = run(_run_group(out, parts, processes, flags, clock, screen))
        summary = _summarise(out, ran, flags, resumed=resumed)
    screen.end([*words(summary), *ran.notes, *flags.without_parquet], summary.as_json())
    exit_with(summary, stopped=ran.stopped)


def _begin(out: Path, processes: int) -> int:
    """Make the folder of a crawl in parts; how many."""
    if (out / LEDGER).exists():
        raise FolderError(f"{out} was begun by one process, and is not in parts. Go on without --processes")
    check_empty(out)
    return make_parts(out, processes)


def _open_once(out: Path, parts: int, plan: CrawlPlan | None, flags: PagesFlags, *, resume: bool, clock: Clock) -> bool:
    """Begin the run in every part, so that the processes only go on with it; whether there was one before."""
    resumed = False
    for part in range(parts):
        folder = part_folder(out, part)
        here = resume and (folder / LEDGER).exists()
        with open_folder(folder, plan, resume=here, clock=clock, visits=flags.visits) as opened:
            resumed |= opened.state is FolderState.RESUMED
            if resume:
                reopen_left(opened)
    return resumed


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
            complete=all(each.meta.finished for each in ledgers),
            resumed=resumed,
            again=flags.again(out),
            given=(flags.network, flags.onward),
        )


# What they are.


def crawl_own_parts(out: Path, own: list[int], flags: PagesFlags) -> None:
    """Crawl the parts of this process, until all parts have come to their end."""
    clock, rules = SystemClock(), flags.rules()
    rules = replace(rules, slots=max(FEWEST_SLOTS, rules.slots // len(own)))
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
    started = clock.now()
    async with AsyncExitStack() as stack:
        runs = []
        for folder in folders:
            executor = in_threads(stack.enter_context(ThreadPoolExecutor(1, "folder")))
            feed = await stack.enter_async_context(flags.onward.pages(clock, lambda _: None))
            transport = flags.network.transport(clock)
            crawl = Crawl(folder, transport, executor, rules=rules, clock=clock, hand_over=feed)
            report = partial(_report, crawl, started)
            runs.append(PartRun(crawl, transport, executor, report, partial(_finish, folder, clock, flags)))
        await run_parts(out, runs, flags.options)


def _report(crawl: Crawl, started: float, *, running: bool = True) -> Report[PagesFacts]:
    return report_crawl(crawl, crawl.clock.now() - started, running=running)


# By position, since that is how a thread is handed its work.
def _finish(folder: CrawlFolder, clock: Clock, flags: PagesFlags, complete: bool) -> None:  # noqa: FBT001
    folder.finish(clock.wall(), complete, flags.writes_parquet)
