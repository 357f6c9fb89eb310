"""`sanderling pages crawl`: crawl documents politely, with nothing lost."""

import asyncio
import shlex
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from functools import partial
from math import ceil
from pathlib import Path
from typing import Annotated, NamedTuple

from cyclopts import Parameter
from cyclopts.validators import Number

from sanderling.cli import CommandError
from sanderling.cli.loop import run, stoppable
from sanderling.cli.options import DEFAULT, Options, observed, showing
from sanderling.cli.pages_screen import Screen, fitting
from sanderling.cli.pages_summary import finishing, summarise
from sanderling.clock import Clock, SystemClock
from sanderling.fetch.guard import GuardRules
from sanderling.fetch.http import Http, HttpRules
from sanderling.flow.desk import desk_in
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.observe.metrics import TOP_HOSTS, LimiterMetrics, PagesMetrics
from sanderling.pages.crawl import Crawl, CrawlRules
from sanderling.pages.ends import End
from sanderling.pages.folder import CrawlFolder, Plan
from sanderling.pages.status import Status, keep_limiter, kept_limiter, publish, status
from sanderling.pages.urls import Scope, UrlError, normalise, read_seeds
from sanderling.stores.durable import FolderError

# Of one document; 256 of them may be in flight.
MOST_RAW, MOST_DECODED = 16 * 2**20, 32 * 2**20
SHOWN = 100  # hosts that a screen chooses from, four times a second
PUBLISH_EVERY = 2.0  # seconds that status.json may be old


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """How hosts are asked. A command takes one as `*, network: Network = USUAL`."""

    rps: Annotated[float, Parameter(validator=Number(gt=0, lte=1e6))] = 8.0
    """Requests a second to each host at most."""

    patience: Annotated[float, Parameter(validator=Number(gt=0))] = 600.0
    """Seconds to wait for a host that answers no more."""

    contact: str | None = None
    """Where a host's owner can reach you: https://… or mailto:…"""

    private: Annotated[bool, Parameter(negative=())] = False
    """Allow your own machine and network, which are refused otherwise."""

    @property
    def flags(self) -> Iterator[str]:
        """What to write on a command line to get the same again."""
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                yield f"--{field.name}"
                yield from () if value is True else (f"{value:g}" if isinstance(value, float) else value,)


USUAL = Network()


@dataclass(frozen=True, slots=True)
class Tools:
    """What a crawl is run with, beside its folder."""

    http: Http
    limiter: Limiter
    rules: CrawlRules
    parquet: bool


class Ran(NamedTuple):
    """How a run went: how it stood at its end, whether all is decided, and whether somebody stopped it."""

    last: Status
    complete: bool
    stopped: bool


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
    parquet: Annotated[bool, Parameter(help="Write Parquet files beside the JSON lines at the end.")] = True,
    json: Annotated[bool, Parameter(negative=(), help="Print the summary as JSON, and nothing else.")] = False,
    network: Network = USUAL,
    options: Options = DEFAULT,
) -> None:
    """Crawl what the flags say, into a folder."""
    plan = _plan(urls, seeds, allow, depth)
    if plan is None and not resume:
        raise CommandError("no address given; try: sanderling pages crawl https://example.org/ --out example", code=2)
    tools, clock = make_tools(network, max_pages=max_pages, parquet=parquet), SystemClock()
    with open_folder(out, plan, resume=resume, clock=clock) as folder:
        if resume:
            folder.ledger.reopen(End.LEFT)
        run_crawl(folder, tools, network, options, as_json=json)


def run_crawl(folder: CrawlFolder, tools: Tools, network: Network, options: Options, *, as_json: bool) -> None:
    """Crawl the folder to its end, show how it goes, and exit with the code that says how it went."""
    screen = fitting(json=as_json)
    with explained(folder.path, network):
        ran = run(crawl_folder(folder, tools, options, SystemClock(), screen))
    summary = summarise(folder, ran.last, complete=ran.complete, flags=network.flags)
    screen.end(summary)
    if ran.stopped:
        sys.exit(130)
    if summary.failed or not summary.seeds_fetched:
        sys.exit(1)


@contextmanager
def explained(out: Path, network: Network) -> Iterator[None]:
    """Say what ends a run from outside: a disk that is full, or a second Ctrl-C."""
    try:
        yield
    except FolderError as error:
        raise CommandError(str(error)) from None
    except ExceptionGroup as group:
        disk, rest = group.split(FolderError)
        if disk is None or rest is not None:
            raise
        raise CommandError(str(_first(disk))) from None
    except (asyncio.CancelledError, KeyboardInterrupt):
        again = shlex.join(["sanderling", "pages", "crawl", "--resume", "--out", str(out), *network.flags])
        raise CommandError(f"stopped at once; what was kept is safe. Go on with:\n\n    {again}\n", code=130) from None


def _first(group: BaseExceptionGroup[FolderError]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def crawl_folder(folder: CrawlFolder, tools: Tools, options: Options, clock: Clock, screen: Screen) -> Ran:
    """Crawl until all is decided or somebody stops it, and leave the folder as whole as it then can be."""
    limiter, started = tools.limiter, clock.wall()
    _recall(limiter, folder.path)
    with ThreadPoolExecutor(1, "books") as thread:
        desk = desk_in(thread)
        crawl = Crawl(folder, tools.http, limiter, rules=tools.rules, clock=clock, desk=desk)
        seen = partial(status, crawl, started, started, top=0)
        shows = showing(LimiterMetrics, partial(limiter.snapshot, TOP_HOSTS)), showing(PagesMetrics, seen)
        async with observed(options, *shows) as metrics, tools.http:
            if metrics:
                screen.note(f"metrics: {metrics}")
            with stoppable(crawl.stop, screen.note, lambda: finishing(crawl.inflight)) as stops, screen:
                complete = await _run_watched(crawl, screen, clock, started)
                last = status(crawl, started, clock.wall())
                screen.show(last)
            await desk(folder.finish, clock.wall(), complete, tools.parquet)
            await desk(_publish, folder.path, last, limiter.save())
    return Ran(last, complete, bool(stops))


async def _run_watched(crawl: Crawl, screen: Screen, clock: Clock, started: float) -> bool:
    """Run the crawl and show how it goes; whether it is complete."""
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(_watch(crawl, screen, clock, started))
        complete = await crawl.run()
        watching.cancel()
    return complete


def _recall(limiter: Limiter, folder: Path) -> None:
    """Take up what an earlier run learned of the hosts. Who asks us to stay away for an hour means the next run too."""
    kept = kept_limiter(folder)
    if kept is not None:
        with suppress(ValueError):  # written by another version: what it knew is learned again
            limiter.restore(kept)


async def _watch(crawl: Crawl, screen: Screen, clock: Clock, started: float) -> None:
    """Show how it goes, and tell other processes now and then, until cancelled."""
    published = clock.now()
    while True:
        screen.show(status(crawl, started, clock.wall(), top=SHOWN))
        if clock.now() - published >= PUBLISH_EVERY:
            published = clock.now()
            now = status(crawl, started, clock.wall())
            await crawl.books.ask(_publish, crawl.folder.path, now, crawl.limiter.save())
        await clock.sleep(screen.every)


def _publish(folder: Path, now: Status, limiter: bytes) -> None:
    publish(folder, now)
    keep_limiter(folder, limiter)


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
    network: Network, *, clock: Clock | None = None, max_pages: int | None = None, parquet: bool = True
) -> Tools:
    """The client, the limiter and the rules that go with the flags."""
    rps, private = network.rps, network.private
    per_host = min(64, max(8, ceil(rps)))
    try:
        http = HttpRules(
            contact=network.contact, most_raw=MOST_RAW, most_decoded=MOST_DECODED, connections_per_host=per_host
        )
    except ValueError as error:
        raise CommandError(f"--contact: {error}", code=2) from None
    pace = PaceRules.up_to(rps)
    return Tools(
        http=Http(http, GuardRules(private=private, raw_addresses=private), clock=clock),
        limiter=Limiter(LimiterRules(pace=pace), clock=clock),
        rules=CrawlRules(per_host=per_host, max_pages=max_pages, patience=network.patience),
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
