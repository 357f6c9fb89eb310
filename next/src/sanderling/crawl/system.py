"""Crawls as a system: how one is opened, and what other commands ask about its folder."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from sanderling.clock import Clock, SystemClock
from sanderling.crawl.handler import CrawlHandler
from sanderling.crawl.options import AUTO, CrawlOptions, PagesOptions
from sanderling.crawl.pages import SITEMAP
from sanderling.crawl.repeats import Repeats
from sanderling.crawl.robots import RobotsRules
from sanderling.crawl.run import CrawlRun, Parts
from sanderling.crawl.scope import CrawlScope, ScopeRules, read_leave_out, read_seeds
from sanderling.crawl.sink import CrawlSink, CrawlState
from sanderling.crawl.source import CUT, CrawlSource, HostShares, Progress, Settled
from sanderling.crawl.work import PagesWork
from sanderling.engine.loop import Engine
from sanderling.engine.rules import BlameRules, EngineRules
from sanderling.fetch.client import Client
from sanderling.fetch.options import limiter_for
from sanderling.files import Exit, FolderError, FolderLock, make_folder, read_small, write_file
from sanderling.ids import UrlError, normalise_url, url_key
from sanderling.options import OptionError
from sanderling.outcome import Code
from sanderling.readers.automatic import automatic_count
from sanderling.readers.pool import Readers
from sanderling.records.answers import Shown, Task, Verified
from sanderling.records.rows import RowReader, RowWriter
from sanderling.stores import Batch, EndedUrl, FoundUrl, Ledger, QueuedUrl, RetryUrl, open_ledger
from sanderling.systems import check_edition

TASK_STATES = ("waiting", "failed", "refused", "left_out")
LEDGER = "crawl.db"
ROWS = {"pages": "pages", "jobs": "records"}  # by system, how its files of rows are called
# Options that bound a crawl. A larger one goes on with what the smaller one cut off.
BOUNDS = ("max-same-text", "max-per-host", "max-per-domain")


class CrawlNotes(msgspec.Struct):
    """What stands beside the ledger in `pages.json` or `job.json`: how the crawl was begun, for people and for us."""

    options: dict[str, Any]  # that were given, those of all runs so far
    starts: tuple[str, ...] = ()


def notes_path(folder: Path, system: str) -> Path:
    """Where the notes of a crawl are."""
    return folder / ("pages.json" if system == "pages" else "job.json")


@asynccontextmanager
async def open_run(options: CrawlOptions, clock: Clock) -> AsyncIterator[CrawlRun]:
    """Open the crawl in the folder, or begin it."""
    if not isinstance(options, PagesOptions):
        raise NotImplementedError
    make_folder(options.out)
    check_edition(options.out)
    with FolderLock(options.out):
        options, notes, before = _with_notes(options)
        async with AsyncExitStack() as stack:
            run = await _open_pages(stack, options, notes, before, clock)
            yield run


def _with_notes(options: PagesOptions) -> tuple[PagesOptions, CrawlNotes, CrawlNotes | None]:
    """The options with what an earlier run was given, all that is to be noted, and what was noted before."""
    path = notes_path(options.out, "pages")
    if notes_path(options.out, "jobs").exists():
        raise FolderError(f"{options.out} is the folder of a job", "choose another folder")
    before = _read_notes(path) if path.exists() else None
    kept = {name: value for name, value in options.given.items() if _is_noted(options, name)}
    starts = list(dict.fromkeys([*(before.starts if before else ()), *options.urls, *read_seeds(options.seeds)]))
    if not starts:
        raise OptionError("URL is missing; expected where to begin, as in https://example.org/")
    given: dict[str, Any] = {**(before.options if before else {}), **kept}
    notes = CrawlNotes(msgspec.to_builtins(given, enc_hook=str), tuple(starts))
    every: dict[str, Any] = {**given, **options.given}
    return PagesOptions(**every), notes, before


def _is_noted(options: CrawlOptions, name: str) -> bool:
    """Whether an option holds for later runs too; what concerns the folder, the screen or secrets is said each time."""
    each = options.fields[name]
    own = each.table in ("pages", "jobs", "crawl") or name in _OF_REQUESTS
    return own and not each.is_table and name not in ("out", "urls", "seeds", "readers")


_OF_REQUESTS = frozenset({"rps", "policy", "contact", "private", "timeout", "patience"})


def _read_notes(path: Path) -> CrawlNotes:
    try:
        return msgspec.json.decode(read_small(path, 1 << 30), type=CrawlNotes)
    except msgspec.DecodeError as error:
        raise FolderError(f"{path} is damaged: {error}", "restore it from a copy, or choose another folder") from None


async def _open_pages(
    stack: AsyncExitStack, options: PagesOptions, notes: CrawlNotes, before: CrawlNotes | None, clock: Clock
) -> CrawlRun:
    folder = options.out
    leave_out = read_leave_out(options.leave_out)
    hosts = [url.split("/", 3)[2] for url in notes.starts]
    try:
        rules = ScopeRules.of([*hosts, *options.allow], options.only, options.skip)
        scope = CrawlScope(rules)
    except ValueError as error:
        raise OptionError(f"--only or --skip: {error}") from None
    ledger = await stack.enter_async_context(open_ledger(folder / LEDGER, plan=options.plan(), clock=clock))
    if notes != before:
        write_file(notes_path(folder, "pages"), msgspec.json.format(msgspec.json.encode(notes)) + b"\n")
    state = msgspec.msgpack.decode(ledger.state, type=CrawlState) if ledger.state else CrawlState()
    scope.hosts.update(state.hosts)
    counts = await ledger.counts()
    await _raise_bounds(ledger, options, before, dict(counts.ends))
    rows = RowWriter(folder, ROWS["pages"], await ledger.row_files(), ledger.process)
    stack.callback(rows.close)
    limiter = limiter_for(options, clock=clock)
    client = await stack.enter_async_context(Client(options, limiter, clock=clock))
    work = PagesWork(rules, options.text, options.keep_noindex)
    count = automatic_count() if options.readers == AUTO else options.readers
    readers = await stack.enter_async_context(
        Readers("sanderling.crawl.work:open_work", msgspec.msgpack.encode(work), count=count, clock=clock)
    )
    robots = RobotsRules(client, clock)
    progress = Progress(
        fetched=sum(number for (end, _), number in counts.ends.items() if end in ("fetched", "unchanged")),
        most=options.max_pages,
    )
    repeats = Repeats(options.max_same_text, state.repeats)
    shares = HostShares(options.max_per_host, options.max_per_domain)

    def settle(item: QueuedUrl) -> Settled | None:
        if leave_out.names(item.url):
            return EndedUrl(item, "left_out", Code.SKIPPED, detail="--leave-out names it", requests=0)
        if item.function == SITEMAP or not item.depth:
            return None
        option = "max-same-text" if repeats.is_over(item.url) else shares.take(item.host)
        return RetryUrl(item, float("inf"), item.failures, option) if option else None

    handler = CrawlHandler(ledger, client, readers, robots, scope, leave_out, clock, max_depth=options.depth)
    handler.more_hosts = state.hosts
    sink = CrawlSink(ledger, rows, handler, client, robots, repeats, progress, shares, clock)
    source = CrawlSource(ledger, limiter, settle, progress, shares)
    engine = Engine(source, handler, sink, limiter, clock, EngineRules(blame=BlameRules(patience=options.patience)))
    parts = Parts(
        "pages", folder, ledger, limiter, readers, handler, sink, engine, progress, clock,
        lambda: [FoundUrl(url, url.split("/", 3)[2]) for url in notes.starts],
        {name: getattr(options, name.replace("-", "_")) for name in BOUNDS},
    )  # fmt: skip
    return CrawlRun(parts, counts)


async def _raise_bounds(
    ledger: Ledger, options: PagesOptions, before: CrawlNotes | None, ends: dict[tuple[str, str], int]
) -> None:
    """Make due what a bound cut off that is larger by now."""
    for name in BOUNDS:
        field = name.replace("-", "_")
        now = getattr(options, field)
        then = before.options.get(field, options.fields[field].default) if before is not None else now
        number = ends.get((CUT, name), 0)
        if number and now != then:
            await ledger.retry("waiting", code=name)
            await ledger.commit(Batch(tally={(CUT, name): -number}))


def _system_of(folder: Path) -> str:
    return "pages" if notes_path(folder, "pages").exists() else "jobs"


def _open_to_read(folder: Path) -> Ledger:
    if not (folder / LEDGER).exists():
        raise FolderError(f"nothing was collected in {folder} yet", "run its crawl again")
    return open_ledger(folder / LEDGER, plan={}, clock=SystemClock(), read_only=True)


def records(folder: Path) -> RowReader:
    """The rows of a crawl, as far as they count."""

    async def files() -> RowReader:
        async with _open_to_read(folder) as ledger:
            return RowReader(folder, ROWS[_system_of(folder)], await ledger.row_files())

    with ThreadPoolExecutor(1) as thread:  # the caller's may have an event loop
        return thread.submit(asyncio.run, files()).result()


async def show(folder: Path, key: str) -> Shown:
    """The rows of a URL, or what became of it."""
    try:
        url = normalise_url(key)
    except UrlError as error:
        raise OptionError(f"KEY: {error}") from None
    async with _open_to_read(folder) as ledger:
        state = await ledger.show(url.split("/", 3)[2], url_key(url))
        with RowReader(folder, ROWS[_system_of(folder)], await ledger.row_files()) as rows:
            lines = [line for entry in rows.find(url_key(url)) for line in entry.lines]
    if state is None or state.state == "stored":
        return Shown(lines, "it was fetched, and no record came of it" if state is not None and not lines else "")
    said = " ".join(filter(None, (state.state, state.code, state.detail)))
    return Shown(lines, said)


async def verify(folder: Path) -> Verified:
    """Compare the rows with the ledger."""
    async with _open_to_read(folder) as ledger:
        files = await ledger.row_files()
        with RowReader(folder, ROWS[_system_of(folder)], files) as rows:
            faults = list(rows.damage())
            found = await ledger.verify(rows.keys(ledger.run))
            counts = await ledger.counts()
            compared = {"addresses known": counts.known, "addresses that wait": counts.waiting, "rows": rows.count()}
    faults += [f"{fault.what}: {fault.count:,}, such as {fault.example}" for fault in found]
    return Verified(faults, compared)


async def tasks(folder: Path, state: str, host: str | None, code: str | None) -> AsyncIterator[Task]:
    """What is in a state."""
    async with _open_to_read(folder) as ledger:
        async for each in ledger.tasks(state, host=host, code=code):
            due = each.due or None
            yield Task(each.url, each.state, each.host, each.code, each.detail, due, each.requests)


async def count_tasks(folder: Path) -> dict[tuple[str, str], int]:
    """How many there are in each state, by code."""
    async with _open_to_read(folder) as ledger:
        counts = await ledger.counts()
    found = {(end, code): number for (end, code), number in counts.ends.items() if end in TASK_STATES}
    if counts.waiting:
        found["waiting", ""] = counts.waiting
    return found


async def retry(folder: Path, state: str, host: str | None, code: str | None) -> int:
    """Let what is in a state be tried again."""
    with FolderLock(folder):
        notes = _read_notes(notes_path(folder, _system_of(folder)))
        plan = PagesOptions(out=folder, **notes.options).plan()
        async with open_ledger(folder / LEDGER, plan=plan, clock=SystemClock()) as ledger:
            return await ledger.retry(state, host=host, code=code)


__all__ = ["TASK_STATES", "Exit", "count_tasks", "open_run", "records", "retry", "show", "tasks", "verify"]
