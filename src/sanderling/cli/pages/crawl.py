"""`sanderling pages crawl`: crawl documents politely, with nothing lost."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from sanderling.cli.client import make_transport
from sanderling.cli.command_error import CommandError, not_opened
from sanderling.cli.command_line import SummaryAsJson, again
from sanderling.cli.config.file import hosts_in_force
from sanderling.cli.events.onward import NOWHERE, Onward
from sanderling.cli.flag_files import listing
from sanderling.cli.flags import SETTING, Patient
from sanderling.cli.fleet.flags import ALONE, FleetFlags
from sanderling.cli.limits import make_limiter
from sanderling.cli.loop import explain_end, run
from sanderling.cli.options import BOUNDED, Bounded, Options
from sanderling.cli.pages.summary import exit_with, summarise, words
from sanderling.cli.processes import ProcessCount, how_many, is_in_parts
from sanderling.cli.report_screen import Screen, fitting
from sanderling.cli.running import Ran, Shell, run_system
from sanderling.clock import Clock, SystemClock
from sanderling.crawls.kept import Keep
from sanderling.crawls.run import http_rules
from sanderling.crawls.session import LoginError
from sanderling.engine.handover import HandOverError
from sanderling.executor import in_threads
from sanderling.extras import missing
from sanderling.fetch.http import Http
from sanderling.fetch.render import Renderer, RenderError, RenderRules, make_renderer
from sanderling.fetch.transport import Transport, connections_for
from sanderling.limit import LimiterRules, PaceRules
from sanderling.observe.report import Report
from sanderling.pages.crawl import Crawl
from sanderling.pages.crawling import BODIES
from sanderling.pages.extract import READ_RULES, ReadRules
from sanderling.pages.files import MOST_DECODED, MOST_RAW, FileRules
from sanderling.pages.folder import CrawlFolder, CrawlPlan
from sanderling.pages.leave_out import ExcludedUrls
from sanderling.pages.parquet import have_parquet
from sanderling.pages.parts import reopen_left
from sanderling.pages.report import PagesFacts, report_crawl
from sanderling.pages.revisits import VisitRules
from sanderling.pages.rules import CrawlRules
from sanderling.pages.urls import CrawlScope, UrlError, normalise, read_seeds
from sanderling.stores.durable import FolderError
from sanderling.stores.frontier_rows import End
from sanderling.words import parse_size

NO_PARQUET = missing("pyarrow", "Parquet")
MEDIA = re.compile(r"[\w!#$&^.+*-]+/[\w!#$&^.+*-]+", re.ASCII)
RPS = 8.0  # to each host at most
SHOWN = 100  # hosts that a screen chooses from, four times a second


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class PagesNetwork(Patient):
    """How hosts are asked. A command takes one as `*, network: Network = USUAL`."""

    leave_out: Path | None = None
    """A file of URLs, beginnings of URLs and hosts that are never asked for, one per line."""

    max_per_host: Annotated[int | None, SETTING, Parameter(validator=Number(gte=1))] = None
    """Pages of one host at most; what is beyond is cut off, and counted."""

    max_per_domain: Annotated[int | None, SETTING, Parameter(validator=Number(gte=1))] = None
    """Pages at most of all hosts under one registered domain."""

    max_same_text: Annotated[int, SETTING, Parameter(validator=Number(gte=0))] = 200
    """Pages of known text at addresses that differ in digits, until these are cut off if few were new; 0: all."""

    render: Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)] = ()
    """Render pages in a browser: those with addresses like https://app.example/*, or auto: those empty without one."""

    screenshots: Annotated[bool, Parameter(negative=())] = False
    """Keep what rendered pages looked like, as screenshots/ID.png."""

    browser: str = ""
    """The browser's program, if it is not a Chromium or Chrome on the PATH."""

    files: str = "*/*"
    """Keep documents and media of these types as files, as in application/pdf,image/*; of others only a row."""

    max_file: str = "16MB"
    """How large such a file may be; of a larger one only a row is kept."""

    def file_rules(self) -> FileRules:
        """Which files are kept. Raises CommandError."""
        try:
            most = parse_size(self.max_file)
        except ValueError as error:
            raise CommandError(f"--max-file: {error}", code=2) from None
        types = tuple(each.strip().lower() for each in self.files.split(","))
        if wrong := [each for each in types if not MEDIA.fullmatch(each)]:
            raise CommandError(f"--files: {wrong[0]!r} is no type, expected application/pdf, image/* or */*", code=2)
        return FileRules(types, most)

    def transport(self, clock: Clock | None = None) -> Transport[Http]:
        """The client and the limiter that go with the flags. Raises CommandError."""
        most = self.most(RPS)
        limiter = make_limiter(LimiterRules(pace=PaceRules.up_to(most), strategy=self.pace), clock)
        rules = http_rules(most, None, MOST_RAW, MOST_DECODED)
        transport = make_transport(rules, limiter, BODIES, self.contact, private=self.private, clock=clock)
        return replace(transport, renderer=self._renderer(clock or SystemClock()))

    def _renderer(self, clock: Clock) -> Renderer | None:
        if not self.render and (self.screenshots or self.browser):
            raise CommandError("--screenshots and --browser are of use with --render only; try: --render auto", code=2)
        try:
            rules = RenderRules.of(self.render, screenshots=self.screenshots, browser=self.browser)
            return None if rules is None else make_renderer(rules, clock)
        except (ValueError, RenderError) as error:
            raise CommandError(f"--render: {error}" if isinstance(error, ValueError) else str(error), code=2) from None


USUAL = PagesNetwork()


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class VisitFlags:
    """Whether and how often pages are visited again."""

    every: str | None = None
    """Go on, and visit each page again: auto, when it is likely to have changed; 1d, as often as that; 6h-14d, the
    former within these bounds (auto is 1h-30d)."""

    visits: Annotated[int | None, Parameter(validator=Number(gte=1))] = None
    """Second visits a day at most; by default as many as visit each page once a week on average."""

    def rules(self, max_pages: int | None) -> VisitRules | None:
        """How often pages are visited again; None if they are not. Raises CommandError."""
        if self.every is None:
            if self.visits is not None:
                raise CommandError("--visits says how many second visits are made a day: it needs --every auto", code=2)
            return None
        if max_pages is not None:
            raise CommandError("--every goes on without end: it cannot be had with --max-pages", code=2)
        try:
            return VisitRules.parse(self.every, self.visits)
        except ValueError as error:
            raise CommandError(f"--{error}", code=2) from None


ONCE = VisitFlags()


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class PagesReading:
    """How much of a page is read. What is cut off is said in the `detail` of its row."""

    max_html_bytes: Annotated[int, SETTING, Parameter(validator=Number(gte=1024))] = READ_RULES.html_bytes
    """Bytes of an HTML page to read at most."""

    max_tags: Annotated[int, SETTING, Parameter(validator=Number(gte=100))] = READ_RULES.tags
    """Tags of an HTML page to read at most."""

    max_links: Annotated[int, SETTING, Parameter(validator=Number(gte=1))] = READ_RULES.links
    """Links of an HTML page to keep and follow at most."""

    keep_noindex: Annotated[bool, SETTING] = False
    """Keep what pages say that ask not to be indexed."""

    def rules(self) -> ReadRules:
        """The rules that go with the settings."""
        return ReadRules(self.max_html_bytes, self.max_tags, self.max_links, self.keep_noindex)


WHOLE = PagesReading()


@dataclass(frozen=True, slots=True, kw_only=True)
class PagesFlags:
    """The flags of a crawl, beside those that say what to crawl."""

    network: PagesNetwork = USUAL
    onward: Onward = NOWHERE
    options: Options = BOUNDED
    reading: PagesReading = WHOLE
    max_pages: int | None = None
    parquet: bool | None = None  # where nobody said, it is written if that is possible
    visiting: VisitFlags = ONCE
    processes: str = "1"
    sharing: FleetFlags = ALONE

    @property
    def visits(self) -> VisitRules | None:
        """Whether and how often pages are visited again. Raises CommandError."""
        return self.visiting.rules(self.max_pages)

    @property
    def writes_parquet(self) -> bool:
        """Whether Parquet is written at the end."""
        return have_parquet() if self.parquet is None else self.parquet

    @property
    def without_parquet(self) -> tuple[str, ...]:
        """Why Parquet is not written, though nobody said that it should not be."""
        return () if self.parquet is not None or have_parquet() else (f"No Parquet is written: {NO_PARQUET}",)

    def rules(self) -> CrawlRules:
        """The rules that go with the flags. Raises CommandError."""
        network = self.network
        listed = None if network.leave_out is None else listing("--leave-out", network.leave_out, ExcludedUrls.read)
        per_host = connections_for(network.most(RPS))
        return CrawlRules(
            per_host=per_host,
            max_pages=self.max_pages,
            patience=network.patience,
            leave_out=listed,
            visits=self.visits,
            files=network.file_rules(),
            reading=self.reading.rules(),
            max_per_host=network.max_per_host,
            max_per_domain=network.max_per_domain,
            max_same_text=network.max_same_text,
            hosts=hosts_in_force.get() or {},
        )

    def again(self, out: Path, *, limit: int | None = None) -> str:
        """The command that goes on with this crawl; what to crawl is in the folder."""
        flags = ["--no-parquet"] if self.parquet is False else []
        flags += [] if self.processes == "1" else ["--processes", self.processes]
        flags += [] if limit is None else ["--max-pages", str(limit)]
        return again(
            "pages crawl",
            "--resume",
            "--out",
            out,
            *flags,
            self.visiting,
            self.network,
            self.onward,
            self.options,
            self.sharing,
        )


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
            help="Also follow links to this HOST or HOST:PORT, or to *.example.org and all below it; repeatable.",
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
    keep: Annotated[
        Keep | None,
        Parameter(help="Keep pages as they came, too: html in files of bodies/, warc in archives of warc/."),
    ] = None,
    processes: ProcessCount = "1",
    sharing: FleetFlags = ALONE,
    json: SummaryAsJson = False,
    visiting: VisitFlags = ONCE,
    network: PagesNetwork = USUAL,
    onward: Onward = NOWHERE,
    options: Bounded = BOUNDED,
    reading: PagesReading = WHOLE,
) -> None:
    """Crawl what the flags say, into a folder."""
    onward.check()
    if parquet and not have_parquet():
        raise CommandError(f"--parquet: {NO_PARQUET}", code=2)
    plan = _plan(urls, seeds, allow, depth, keep)
    if plan is None and not resume:
        raise CommandError("no address given; try: sanderling pages crawl https://example.org/ --out example", code=2)
    flags = PagesFlags(
        network=network,
        onward=onward,
        options=options,
        max_pages=max_pages,
        parquet=parquet,
        visiting=visiting,
        reading=reading,
        processes=processes,
        sharing=sharing,
    )
    _run(out, plan, flags, resume=resume, as_json=json)


def _run(out: Path, plan: CrawlPlan | None, flags: PagesFlags, *, resume: bool, as_json: bool) -> None:
    """Crawl: with other machines, with other processes, or alone."""
    flags.sharing.check()
    if flags.sharing.fleet:
        from sanderling.cli.pages.fleet import run_worker_of  # noqa: PLC0415 - most crawls need none

        run_worker_of(out, plan, flags, as_json=as_json)
    elif how_many(flags.processes) > 1 or is_in_parts(out):
        from sanderling.cli.pages.parts import run_parts_of  # noqa: PLC0415 - most crawls need none

        run_parts_of(out, plan, flags, resume=resume, as_json=as_json)
    else:
        _run_alone(out, plan, flags, resume=resume, as_json=as_json)


def _run_alone(out: Path, plan: CrawlPlan | None, flags: PagesFlags, *, resume: bool, as_json: bool) -> None:
    transport, rules = flags.network.transport(), flags.rules()
    with open_folder(out, plan, resume=resume, clock=SystemClock(), visits=rules.visits) as folder:
        if resume:
            reopen_left(folder.ledger)
        run_crawl(folder, transport, rules, flags, as_json=as_json)


def run_crawl(
    folder: CrawlFolder, transport: Transport[Http], rules: CrawlRules, flags: PagesFlags, *, as_json: bool
) -> None:
    """Crawl the folder to its end, show how it goes, and exit with the code that says how it went."""
    screen = fitting(json=as_json)
    for line in flags.without_parquet:
        screen.note(line)
    with explain_end(flags.again(folder.path), (FolderError, HandOverError, LoginError, RenderError)):
        ran = run(crawl_folder(folder, transport, rules, flags, SystemClock(), screen))
    # A limit that is reached is left out.
    go_on = flags.again(folder.path, limit=None if folder.ledger.counts()[End.LEFT] else flags.max_pages)
    given = flags.network, flags.onward
    summary = summarise(folder, ran.last, complete=ran.complete, again=go_on, given=given)
    screen.end([*words(summary), *ran.notes, *flags.without_parquet], summary.as_json())
    exit_with(summary, stopped=ran.stopped)


async def crawl_folder(
    folder: CrawlFolder, transport: Transport[Http], rules: CrawlRules, flags: PagesFlags, clock: Clock, screen: Screen
) -> Ran[Report[PagesFacts]]:
    """Crawl until all is decided or somebody stops it, and leave the folder as whole as it then can be."""
    onward = flags.onward
    with ThreadPoolExecutor(1, "folder") as thread:
        executor = in_threads(thread)
        async with onward.pages(clock, screen.note) as feed:
            crawl = Crawl(folder, transport, executor, rules=rules, clock=clock, hand_over=feed)
            started = clock.now()

            def report(top: int = 1000, *, running: bool = True) -> Report[PagesFacts]:
                return report_crawl(crawl, clock.now() - started, top, running=running)

            shell = Shell(
                folder=folder.path,
                options=flags.options,
                screen=screen,
                executor=executor,
                report=report,
                brief=partial(report, SHOWN),
                transport=transport,
            )
            ran = await run_system(crawl, shell)
            await executor(folder.finish, clock.wall(), ran.complete, flags.writes_parquet)
    visited = () if folder.visiting is None else folder.visiting.words()
    return replace(ran, notes=(*visited, *onward.words(feed)))


def _plan(
    urls: tuple[str, ...], seeds: Path | None, allow: tuple[str, ...], depth: int, keep: Keep | None
) -> CrawlPlan | None:
    """What to crawl; None if no address was given."""
    try:
        first = [normalise(url) for url in urls]
        if seeds is not None:
            first += read_seeds(seeds.read_text(encoding="utf-8-sig"), str(seeds))
        plan = CrawlPlan(tuple(dict.fromkeys(first)), allow, depth, keep)
        CrawlScope.of(plan.seeds, plan.allow, plan.depth)
    except (UrlError, ValueError) as error:
        raise CommandError(str(error), code=2) from None
    except OSError as error:
        raise CommandError(f"--seeds: cannot read {seeds}: {error.strerror}", code=2) from None
    return plan if plan.seeds else None


def open_folder(
    out: Path, plan: CrawlPlan | None, *, resume: bool, clock: Clock, visits: VisitRules | None = None
) -> CrawlFolder:
    """The folder, to be worked in within a `with` block; a CommandError if it is not one to work in."""
    try:
        return CrawlFolder.open(out, plan, resume=resume, wall=clock.wall(), visits=visits)
    except FolderError as error:
        raise not_opened(error) from None
