"""Opens a crawl: what it is made of, from what people set, what its folder says, and the job that they wrote."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from sanderling.clock import Clock
from sanderling.crawl.archive import KeptArchive
from sanderling.crawl.forget import forget, read_journal
from sanderling.crawl.functions import Functions, load_job, starts_of
from sanderling.crawl.handler import CrawlHandler, found_url
from sanderling.crawl.job import Job, JobError
from sanderling.crawl.keep import Keeper
from sanderling.crawl.options import CrawlOptions, JobOptions, PagesOptions
from sanderling.crawl.render import RenderRules, open_renderer
from sanderling.crawl.repeats import Repeats
from sanderling.crawl.request import Request
from sanderling.crawl.robots import RobotsRules
from sanderling.crawl.run import CrawlRun, Parts, RoomBound
from sanderling.crawl.scope import CrawlScope, LeaveOut, ScopeRules, UrlPattern, lines_of, read_seeds
from sanderling.crawl.session import JobSession
from sanderling.crawl.sink import CrawlSink, CrawlState
from sanderling.crawl.source import CUT, GONE, CrawlSource, HostShares, Progress
from sanderling.crawl.watchdog import Watchdog
from sanderling.crawl.work import PageRules, Work
from sanderling.engine.host_locks import HostLocks
from sanderling.engine.loop import Engine
from sanderling.engine.rules import BlameRules, EngineRules, RetryRule
from sanderling.fetch.client import Client
from sanderling.fetch.guard import is_own
from sanderling.fetch.options import limiter_for
from sanderling.files import FolderError, FolderLock, make_folder, read_small, remove_drafts, write_file
from sanderling.ids import UrlError, host_of
from sanderling.limit import Limiter
from sanderling.options import OptionError
from sanderling.outcome import Outcome
from sanderling.readers.automatic import reader_count
from sanderling.readers.pool import ReaderError, Readers
from sanderling.records.handover import open_handover
from sanderling.records.rows import RowReader, RowWriter
from sanderling.redact import Secret
from sanderling.stores import Batch, FoundUrl, Ledger, open_ledger
from sanderling.systems import check_edition

LEDGER = "crawl.db"
ROWS = {"pages": "pages", "jobs": "records"}  # by system, how its files of rows are called
# Options that bound a crawl. A larger one goes on with what the smaller one cut off.
BOUNDS = ("max-same-text", "max-per-host", "max-per-domain")
_OF_REQUESTS = frozenset({"rps", "policy", "contact", "private", "timeout", "patience"})
_EACH_TIME = frozenset({"out", "urls", "seeds", "readers", "file", "try_"})


class CrawlNotes(msgspec.Struct):
    """What stands beside the ledger in `pages.json` or `job.json`: how the crawl was begun, for people and for us."""

    options: dict[str, Any]  # that were given, those of all runs so far
    plan: dict[str, Any]
    starts: tuple[str, ...] = ()
    excluded: str = ""  # a digest of what is left out, and of the hosts that belong


@dataclass(frozen=True, slots=True)
class CrawlPlan:
    """What is to be crawled: by a job, which for `pages crawl` has no functions."""

    system: str
    options: CrawlOptions
    functions: Functions
    work: Work  # for readers
    values: dict[str, Any]  # by which a folder is known to be this crawl's
    starts: tuple[str, ...]
    begin: Callable[[bool], Sequence[FoundUrl]]  # where it begins; what is new of that, if the run has begun
    renders: RenderRules


def notes_path(folder: Path, system: str) -> Path:
    """Where the notes of a crawl are."""
    return folder / ("pages.json" if system == "pages" else "job.json")


def read_notes(path: Path) -> CrawlNotes:
    """What an earlier run has noted. Raises FolderError."""
    try:
        return msgspec.json.decode(read_small(path, 1 << 30), type=CrawlNotes)
    except msgspec.DecodeError as error:
        raise FolderError(f"{path} is damaged: {error}", "restore it from a copy, or choose another folder") from None


def ledger_of(
    folder: Path, notes: CrawlNotes, clock: Clock, *, read_only: bool = False, kinds: Sequence[str] = ("new", "again")
) -> Ledger:
    """The ledger of a crawl, in its folder or in the database that its notes name."""
    store = notes.options.get("store")
    if not store:
        return open_ledger(folder / LEDGER, plan=notes.plan, clock=clock, kinds=kinds, read_only=read_only)
    url = Secret(store).reveal() if store.startswith(("env:", "file:")) else store
    if not url.startswith(("postgres://", "postgresql://")):
        raise OptionError("--store: found another text; expected postgresql://HOST/DATABASE")
    name = notes.options.get("name") or folder.resolve().name
    return open_ledger(url, name=name, plan=notes.plan, clock=clock, kinds=kinds, read_only=read_only)


@asynccontextmanager
async def open_run(options: CrawlOptions, clock: Clock, job: Job | None = None) -> AsyncIterator[CrawlRun]:
    """Open the crawl in the folder, or begin it. A `job` that is at hand is not read from its file."""
    if isinstance(options, JobOptions):
        system, source = "jobs", read_small(options.file, 16 << 20)
        # In a thread of its own no event loop runs, so that what the file does is as in a reader.
        job = job or await asyncio.to_thread(load_job, source, options.file)
    else:
        system, source = "pages", b""
    make_folder(options.out)
    check_edition(options.out)
    with FolderLock(options.out):
        remove_drafts(options.out, clock.wall())
        other = notes_path(options.out, "pages" if system == "jobs" else "jobs")
        if other.exists():
            raise FolderError(f"{options.out} is the folder of another kind of crawl", "choose another folder")
        path = notes_path(options.out, system)
        before = read_notes(path) if path.exists() else None
        given = {**(before.options if before is not None else {}), **options.given}
        file = given.get("leave_out")
        left_out = lines_of(Path(file)) if file is not None else []
        leave_out = LeaveOut(left_out, str(file)) if left_out else None
        if isinstance(options, PagesOptions):
            wanted = _pages(PagesOptions(**given), before.starts if before is not None else ())
        elif isinstance(options, JobOptions) and job is not None:
            given = given if given.get("rps") or job.rps is None else {**given, "rps": job.rps}
            wanted = _job(JobOptions(**given), job, source, is_new=before is None)
        else:
            raise TypeError(type(options).__name__)
        excluded = "\n".join([*left_out, "", *sorted(wanted.work.scope.hosts), *wanted.work.scope.below])
        digest = blake2b(excluded.encode(), digest_size=8).hexdigest()
        notes = CrawlNotes(_noted(wanted.options), wanted.values, wanted.starts, digest)
        async with AsyncExitStack() as stack:
            yield await _open(stack, wanted, notes, before, leave_out, clock)


def _noted(options: CrawlOptions) -> dict[str, Any]:
    """Options that hold for later runs too; what concerns the folder, the screen or secrets is said each time."""
    kept = {}
    for name, value in options.given.items():
        each = options.fields[name]
        own = each.table in ("pages", "jobs", "crawl") or name in _OF_REQUESTS
        if own and not each.is_table and name not in _EACH_TIME:
            kept[name] = msgspec.to_builtins(value, enc_hook=str)
    return kept


def _pages(options: PagesOptions, before: tuple[str, ...]) -> CrawlPlan:
    starts = tuple(dict.fromkeys([*before, *options.urls, *read_seeds(options.seeds)]))
    if not starts:
        raise OptionError("URL is missing; expected where to begin, as in https://example.org/")
    hosts = [url.split("/", 3)[2] for url in starts]
    if not options.private and all(map(is_own, starts)):
        raise OptionError(f"URL: {starts[0]} is on your own machine or network; --private requests such addresses too")
    rules = ScopeRules.of([*hosts, *options.allow], options.only, options.skip)
    job = Job("pages", start=starts, robots=True, sitemaps=options.depth > 0, conditional=True)
    renders = RenderRules(options.render)
    return CrawlPlan(
        "pages", options, Functions(job, rules, {}, ""),
        Work(rules, PageRules(options.text, options.keep_noindex, options.depth, renders.auto)), options.plan(), starts,
        lambda _: [FoundUrl(url, url.split("/", 3)[2]) for url in starts], renders,
    )  # fmt: skip


def _job(options: JobOptions, job: Job, source: bytes, *, is_new: bool) -> CrawlPlan:
    job.check()
    arguments = job.arguments_with(options.set)
    hosts = _hosts_of(job)
    if not options.private and options.from_ is None and all(is_own(f"https://{host}/") for host in hosts):
        raise OptionError(f"{hosts[0]} is on your own machine or network; --private requests such addresses too")
    only = options.only or tuple(each.text for each in job.only)
    rules = ScopeRules.of(hosts, only, (*(each.text for each in job.skip), *options.skip))
    functions = Functions(job, rules, arguments, str(options.file))
    seeds = read_seeds(options.seeds)
    # What it begins with is wrong or right before anything is requested; it is asked once for each run.
    first = [found_url(each, 0, each.priority) for each in starts_of(functions, seeds)] if is_new else []

    def begin(begun: bool) -> Sequence[FoundUrl]:  # noqa: FBT001 - as its caller says it
        if begun and not seeds:
            return ()
        more = starts_of(functions, seeds, only_more=begun)
        return (not begun and first) or [found_url(each, 0, each.priority) for each in more]

    typed = {name: list(vars(options)[name]) for name in ("only", "skip") if vars(options)[name]}
    return CrawlPlan(
        "jobs", options, functions, Work(rules, None, source, str(options.file), arguments),
        {"job": job.name, "arguments": arguments, **typed}, (), begin,
        RenderRules(functions=[name for name, each in job.functions.items() if each.render]),
    )  # fmt: skip


def _least(*bounds: int | None) -> int | None:
    return min((each for each in bounds if each is not None), default=None)


def _hosts_of(job: Job) -> list[str]:
    """The hosts that a job may request: its own, or those of what it starts with. Raises JobError."""
    if job.hosts:
        return list(job.hosts)
    if callable(job.first):
        raise JobError(f"{job.name} has a function as start, and no hosts; expected hosts=(…) that may be requested")
    every = [job.first] if isinstance(job.first, str | Request) else list(job.first)
    job.first = every
    try:
        hosts = [host_of(each.url if isinstance(each, Request) else each) for each in every]
    except (UrlError, TypeError, AttributeError) as error:
        raise JobError(f"start of {job.name}: {error}") from None
    if not hosts:
        raise JobError(f"start of {job.name} is empty; expected an address to begin with")
    return list(dict.fromkeys(hosts))


async def _open(
    stack: AsyncExitStack, wanted: CrawlPlan, notes: CrawlNotes, before: CrawlNotes | None, leave_out: LeaveOut | None,
    clock: Clock,
) -> CrawlRun:  # fmt: skip
    options, functions, job = wanted.options, wanted.functions, wanted.functions.job
    pages = options if isinstance(options, PagesOptions) else None
    folder, name, notes_file = options.out, ROWS[wanted.system], notes_path(options.out, wanted.system)
    every = options.every
    kinds = ("new", "again", "visit") if every is not None else ("new", "again")
    ledger = await stack.enter_async_context(ledger_of(folder, notes, clock, kinds=kinds))
    if notes != before:
        write_file(notes_file, msgspec.json.format(msgspec.json.encode(notes)) + b"\n")
    if (half := read_journal(folder)) is not None:
        await forget(folder, name, notes_file, ledger, half)
    state = msgspec.msgpack.decode(ledger.state, type=CrawlState) if ledger.state else CrawlState()
    scope = CrawlScope(wanted.work.scope, state.hosts)
    if before is not None:
        await _take_up(ledger, options, notes, before)
    counts = await ledger.counts()
    files = await ledger.row_files()
    rows = RowWriter(folder, name, files, ledger.process)
    stack.callback(rows.close)
    types, max_file = (pages.files, pages.max_file) if pages is not None else ((), 0)
    keeper = Keeper(folder, options.keep, types, max_file, files, name, ledger.process)
    stack.callback(keeper.close)
    old_rows = stack.enter_context(RowReader(folder, name, files)) if pages is not None and files else None
    archive = None
    if isinstance(options, JobOptions) and options.from_ is not None:
        archive = await asyncio.to_thread(KeptArchive, options.from_)
        stack.callback(archive.close)
    limiter = limiter_for(options, clock=clock) if archive is None else Limiter(policy="none", clock=clock)
    client = await stack.enter_async_context(Client(options, limiter, clock=clock))
    count = reader_count(options.readers)
    work = msgspec.msgpack.encode(wanted.work)
    closes = bool(job.closers)
    pool = Readers("sanderling.crawl.work:open_work", work, count=count, clock=clock, closes=closes)
    try:
        readers = await stack.enter_async_context(pool)
    except ReaderError as error:
        _, is_job, why = error.detail.rpartition("JobError: ")
        if not is_job:
            raise
        # It runs in this process: most often it reads what readers are not given, since it may hold passwords.
        raise JobError(f"{why}, in a reader, which has no variables of yours; give it arguments by --set") from None
    robots = RobotsRules(client, clock) if archive is None and job.robots else None
    renderer = None
    if options.screenshots and not wanted.renders:
        raise OptionError("--screenshots: no page is rendered; say which with --render, or render=True in the job")
    if wanted.renders and archive is None:

        def may(url: str) -> bool:
            """Whether a page that is rendered may request an address; what robots.txt is not known of it may."""
            known = robots.now(url) if robots is not None else None
            named = leave_out is not None and leave_out.names(url)
            return not named and (known is None or known.decide(url).allowed)

        renderer = await stack.enter_async_context(open_renderer(options, client, clock, may))
    session = None
    if job.auth is not None and archive is None:
        session = JobSession(job.auth, scope.has_host, client, clock)
    watchdog = None
    if isinstance(options, JobOptions) and (job.before_each or any(each.is_async for each in job.functions.values())):
        watchdog = Watchdog(folder, options.file)
        stack.callback(watchdog.close)
        if count:  # what the functions that run in this process need is opened here too
            for opener in job.openers:
                opener()
            stack.callback(functions.close)
    tried = options.try_ if isinstance(options, JobOptions) else None
    counted = ("fetched", "unchanged") if pages is not None else ("requests",)
    progress = Progress(
        fetched=sum(number for (end, _), number in counts.ends.items() if end in counted),
        records=sum(each.rows for each in files if each.file.endswith(".jsonl")),
        most=pages.max_pages if pages is not None else _least(job.max_requests, tried),
        most_records=job.max_records,
        of_requests=pages is None,
    )
    repeats = Repeats(pages.max_same_text if pages is not None else 0, state.repeats)
    shares = HostShares(options.max_per_host, options.max_per_domain)
    shares.learn(counts.ends)
    handler = CrawlHandler(
        functions, ledger, client, readers, robots, scope, clock, keeper=keeper, pages=wanted.work.pages,
        first=[UrlPattern(text) for text in pages.first] if pages is not None else (), archive=archive,
        revisits=every is not None, old_rows=old_rows, session=session, more_hosts=state.hosts,
        renders=wanted.renders, renderer=renderer,
    )  # fmt: skip
    if (handover := open_handover(options, clock)) is not None:
        await stack.enter_async_context(handover)
    sink = CrawlSink(ledger, rows, handler, client, robots, repeats, progress, shares, clock, keeper, every, handover)
    source = CrawlSource(ledger, limiter, job, scope, leave_out, watchdog, repeats, shares, progress, clock)
    rules = EngineRules(blame=BlameRules(patience=options.patience))
    if options.policy == "aimd":
        rules = EngineRules(blame=None, retry=_retry_rule(limiter))
    locks = HostLocks(folder.resolve().parent)  # crawls beside each other never share a host
    engine = Engine(source, handler, sink, limiter, clock, rules, locks)
    bounds = {each: vars(options).get(each.replace("-", "_")) for each in BOUNDS}
    room = RoomBound(folder, options.max_disk, clock) if options.max_disk is not None else None
    parts = Parts(
        wanted.system, folder, name, notes_file, ledger, limiter, readers, handler, sink, keeper,
        room, engine, progress, shares, clock, wanted.begin, bounds,
    )  # fmt: skip
    return CrawlRun(parts, counts, state.begun)


def _retry_rule(limiter: Limiter) -> RetryRule:
    """Retries as seed 003 has them."""

    def retry(host: str, failures: int, outcome: Outcome) -> float | None:
        error = None if outcome.status else outcome.code
        return limiter.plan_retry(host, failures, status=outcome.status, error=error)

    return retry


async def _take_up(ledger: Ledger, options: CrawlOptions, notes: CrawlNotes, before: CrawlNotes) -> None:
    """Make due what waited for another bound, another job or another list."""
    counts = await ledger.counts()
    for name in (*BOUNDS, GONE):
        field = name.replace("-", "_")
        number = counts.ends.get((CUT, name), 0)
        then = before.options.get(field, options.fields[field].default) if field in options.fields else None
        if number and (name == GONE or vars(options)[field] != then):
            await ledger.retry("waiting", code=name)
            await ledger.commit(Batch(tally={(CUT, name): -number}))
    if before.excluded != notes.excluded:
        await ledger.retry("left_out")


def check_file(job: Job) -> Path:
    """The file that a job was made in, which readers run too. Raises JobError."""
    made = next(iter(job.functions.values())).function if job.functions else None
    file = inspect.getsourcefile(made) if made is not None else None
    if file is None or not Path(file).is_file():
        raise JobError(f"the functions of {job.name} are in no file; write them into one, or make them async")
    return Path(file)
