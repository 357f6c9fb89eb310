"""`sanderling pages crawl`: crawl documents politely, with nothing lost."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path
from typing import Annotated, NamedTuple

from cyclopts import Parameter
from cyclopts.validators import Number

from sanderling.cli import CommandError
from sanderling.cli.client import client
from sanderling.cli.command_line import SummaryAsJson, again
from sanderling.cli.events.onward import NOWHERE, Onward
from sanderling.cli.flag_files import listing
from sanderling.cli.limits import Law, make_limiter
from sanderling.cli.loop import ending, finishing, run, stoppable
from sanderling.cli.options import BOUNDED, Bounded, Options, beside, disk_room, observed, pace_of, showing
from sanderling.cli.pages.screen import Screen, fitting
from sanderling.cli.pages.summary import summarise, words
from sanderling.cli.watching import drawn, kept, obey, told, watched
from sanderling.clock import Clock, SystemClock
from sanderling.engine.handover import HandOverError
from sanderling.extras import missing
from sanderling.fetch.http import Http, HttpRules
from sanderling.flow.desk import Desk, desk_in
from sanderling.flow.memory import Memory
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.observe.metrics import PagesMetrics
from sanderling.pages.crawl import Crawl, Hands
from sanderling.pages.crawling import BODIES, MOST_DECODED, MOST_RAW
from sanderling.pages.folder import CrawlFolder, Plan
from sanderling.pages.leave_out import LeaveOut
from sanderling.pages.parquet import have_parquet
from sanderling.pages.rules import CrawlRules
from sanderling.pages.status import Status, status
from sanderling.pages.urls import Scope, UrlError, normalise, read_seeds
from sanderling.stores.durable import FolderError
from sanderling.stores.frontier_rows import End
from sanderling.stores.limiter_file import keep, recall
from sanderling.stores.status_file import write_status

NO_PARQUET = missing("pyarrow", "Parquet")
UNFINISHED = 3  # the exit code if URLs still wait: their hosts did not answer, or the crawl was drained
SHOWN = 100  # hosts that a screen chooses from, four times a second


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """How hosts are asked. A command takes one as `*, network: Network = USUAL`."""

    rps: Annotated[float, Parameter(validator=Number(gt=0, lte=1e6))] = 8.0
    """Requests a second to each host at most."""

    pace: Law = "governor"
    """How the pace of a host is found: governor learns what it allows; aimd is the plain law, to compare with."""

    patience: Annotated[float, Parameter(validator=Number(gt=0))] = 600.0
    """Seconds to wait for a host that answers no more."""

    leave_out: Path | None = None
    """A file of URLs, beginnings of URLs and hosts that are never asked for, one per line."""

    contact: str | None = None
    """Where a host's owner can reach you: https://… or mailto:…"""

    private: Annotated[bool, Parameter(negative=())] = False
    """Allow your own machine and network, which are refused otherwise."""


USUAL = Network()


@dataclass(frozen=True, slots=True)
class Tools:
    """What a crawl is run with, beside its folder."""

    http: Http
    memory: Memory
    limiter: Limiter
    rules: CrawlRules
    parquet: bool | None = None  # where nobody said, it is written if that is possible

    @property
    def writes_parquet(self) -> bool:
        """Whether Parquet is written at the end."""
        return have_parquet() if self.parquet is None else self.parquet

    @property
    def without_parquet(self) -> str:
        """Why Parquet is not written, though nobody said that it should not be; empty if it is."""
        return "" if self.parquet is not None or have_parquet() else f"No Parquet is written: {NO_PARQUET}"


class Ran(NamedTuple):
    """How a run went: how it stood at its end, whether all is decided, whether somebody stopped it, what went on."""

    last: Status
    complete: bool
    stopped: bool
    onward: tuple[str, ...] = ()


def crawl(  # noqa: PLR0913 - a flag each
    *urls: Annotated[str, Parameter(help="Where to begin; all of each host is followed from there.")],
    out: Annotated[Path, Parameter(help="The folder that everything is kept in; made if it is not there.")],
    seeds: Annotated[Path | None, Parameter(help="A file with more addresses to begin with, one per line.")] = None,
    depth: Annotated[
        int, Parameter(validator=Number(gte=0, lte=1000), help="Links to follow from the first addresses at most.")
    ] = 16,
    max_pages: Annotated[
        int | None, Parameter(validator=Number(gte=1), help="Pages to fetch at most; the rest is left for --resume.")
    ] = None,
    allow: Annotated[
        tuple[str, ...],
        Parameter(
            help="Also follow links to this host, or to *.example.org and all below it; may be repeated.",
            negative=(),
            show_default=False,
        ),
    ] = (),
    resume: Annotated[
        bool, Parameter(negative=(), help="Go on with what the folder holds; the addresses need not be given again.")
    ] = False,
    parquet: Annotated[
        bool | None,
        Parameter(help="Write Parquet files beside the JSON lines at the end; by default if pyarrow is installed."),
    ] = None,
    json: SummaryAsJson = False,
    network: Network = USUAL,
    onward: Onward = NOWHERE,
    options: Bounded = BOUNDED,
) -> None:
    """Crawl what the flags say, into a folder."""
    onward.check()
    if parquet and not have_parquet():
        raise CommandError(f"--parquet: {NO_PARQUET}", code=2)
    plan = _plan(urls, seeds, allow, depth)
    if plan is None and not resume:
        raise CommandError("no address given; try: sanderling pages crawl https://example.org/ --out example", code=2)
    tools, clock = make_tools(network, max_pages=max_pages, parquet=parquet), SystemClock()
    with open_folder(out, plan, resume=resume, clock=clock) as folder:
        if resume:
            folder.ledger.reopen(End.LEFT)
        run_crawl(folder, tools, network, options, as_json=json, onward=onward)


def run_crawl(
    folder: CrawlFolder, tools: Tools, network: Network, options: Options, *, as_json: bool, onward: Onward = NOWHERE
) -> None:
    """Crawl the folder to its end, show how it goes, and exit with the code that says how it went."""
    screen = fitting(json=as_json)
    if tools.without_parquet:
        screen.note(tools.without_parquet)
    with ending(_again(folder, tools, network, onward, options), (FolderError, HandOverError)):
        ran = run(crawl_folder(folder, tools, options, SystemClock(), screen, onward))
    go_on = _again(folder, tools, network, onward, options)
    summary = summarise(folder, ran.last, complete=ran.complete, again=go_on, given=(network, onward))
    notes = [tools.without_parquet] if tools.without_parquet else []
    screen.end([*words(summary), *ran.onward, *notes], summary.as_json())
    if ran.stopped:
        sys.exit(130)
    if summary.waiting:
        sys.exit(UNFINISHED)
    if summary.failed or not summary.seeds_fetched:
        sys.exit(1)


def _again(folder: CrawlFolder, tools: Tools, *given: object) -> str:
    """The command that goes on with this crawl; what to crawl is in the folder. A limit that is reached is left out."""
    limit = None if folder.ledger.counts()[End.LEFT] else tools.rules.max_pages
    flags = [*(["--no-parquet"] if tools.parquet is False else []), *([] if limit is None else ["--max-pages", limit])]
    return again("pages crawl", "--resume", "--out", folder.path, *flags, *given)


async def crawl_folder(
    folder: CrawlFolder, tools: Tools, options: Options, clock: Clock, screen: Screen, onward: Onward = NOWHERE
) -> Ran:
    """Crawl until all is decided or somebody stops it, and leave the folder as whole as it then can be."""
    recall(tools.limiter, folder.path)
    with ThreadPoolExecutor(1, "folder") as thread:
        desk = desk_in(thread)
        async with onward.pages(clock, screen.note) as feed:
            hands = Hands(desk, tools.memory, feed)
            crawl = Crawl(folder, tools.http, tools.limiter, rules=tools.rules, clock=clock, hands=hands)
            ran = await _run(crawl, tools, options, screen, desk, crawl.stop)
            await desk(folder.finish, clock.wall(), ran.complete, tools.writes_parquet)
            await desk(write_status, folder.path, ran.last)
            await desk(keep, folder.path, list(tools.limiter.saving()))
    return ran._replace(onward=onward.words(feed))


async def _run(
    crawl: Crawl, tools: Tools, options: Options, screen: Screen, desk: Desk, stop: Callable[[], None]
) -> Ran:
    """Run the crawl, and show how it goes, until it ends or somebody stops it."""
    started, path, clock = crawl.clock.now(), crawl.folder.path, crawl.clock

    def now(top: int = 1000) -> Status:
        return status(crawl, clock.now() - started, top)

    async with (
        observed(options, pace_of(crawl.limiter), showing(PagesMetrics, partial(now, 0)), say=screen.note),
        beside(options, path, screen.note),
        tools.http,
    ):
        with stoppable(stop, screen.note, lambda: finishing(crawl.inflight)) as stops, screen:
            complete = await watched(
                crawl.run(),
                drawn(screen, partial(now, SHOWN)),
                told(path, now, desk),
                kept(crawl.limiter, path, desk),
                obey(path, crawl.control, screen.note, disk_room(options, path)),
            )
            last = status(crawl, clock.now() - started, running=False)
            screen.show(last)
    return Ran(last, complete, bool(stops))


def _plan(urls: tuple[str, ...], seeds: Path | None, allow: tuple[str, ...], depth: int) -> Plan | None:
    """What to crawl; None if no address was given."""
    try:
        first = [normalise(url) for url in urls]
        if seeds is not None:
            first += read_seeds(seeds.read_text(encoding="utf-8-sig"), str(seeds))
        plan = Plan(tuple(dict.fromkeys(first)), allow, depth)
        Scope.of(plan.seeds, plan.allow, plan.depth)
    except (UrlError, ValueError) as error:
        raise CommandError(str(error), code=2) from None
    except OSError as error:
        raise CommandError(f"--seeds: cannot read {seeds}: {error.strerror}", code=2) from None
    return plan if plan.seeds else None


def make_tools(
    network: Network, *, clock: Clock | None = None, max_pages: int | None = None, parquet: bool | None = None
) -> Tools:
    """The client, the limiter and the rules that go with the flags."""
    per_host = min(64, max(8, ceil(network.rps)))
    rules = HttpRules(most_raw=MOST_RAW, most_decoded=MOST_DECODED, connections_per_host=per_host)
    listed = None if network.leave_out is None else listing("--leave-out", network.leave_out, LeaveOut.read)
    memory = Memory(BODIES)
    return Tools(
        http=client(rules, network.contact, private=network.private, clock=clock, memory=memory),
        memory=memory,
        limiter=make_limiter(LimiterRules(pace=PaceRules.up_to(network.rps), strategy=network.pace), clock),
        rules=CrawlRules(per_host=per_host, max_pages=max_pages, patience=network.patience, leave_out=listed),
        parquet=parquet,
    )


@contextmanager
def open_folder(out: Path, plan: Plan | None, *, resume: bool, clock: Clock) -> Iterator[CrawlFolder]:
    """The folder, for as long as it is worked in; a CommandError if it is not one to work in."""
    try:
        folder = CrawlFolder.open(out, plan, resume=resume, wall=clock.wall())
    except FolderError as error:
        raise CommandError(str(error), code=2) from None
    with folder:
        yield folder
