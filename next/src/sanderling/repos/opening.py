"""Opens an archive: what it is made of, from what people set and what its folder says."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from hashlib import blake2b
from pathlib import Path

import msgspec

from sanderling.clock import Clock
from sanderling.engine.host_locks import HostLocks
from sanderling.engine.loop import Engine
from sanderling.engine.rules import BlameRules, EngineRules, RetryRule
from sanderling.fetch.client import Client
from sanderling.fetch.options import limiter_for
from sanderling.files import FolderError, FolderLock, make_folder, write_file
from sanderling.formats.segments import SegmentEnd, Segments, segment_number, segments_in
from sanderling.limit import Limiter
from sanderling.observe.alerts import open_alerts
from sanderling.outcome import Outcome
from sanderling.readers.automatic import reader_count
from sanderling.readers.pool import Readers
from sanderling.records.rows import RowWriter
from sanderling.repos.atproto import PERMANENT, RepoCategory
from sanderling.repos.away import Servers
from sanderling.repos.directory import Directory, open_directory
from sanderling.repos.feed import DirectoryFeed, RepoSource, RepoState
from sanderling.repos.figures import RepoFigures
from sanderling.repos.handler import RepoHandler
from sanderling.repos.leave_out import RepoLeaveOut
from sanderling.repos.notes import LEDGER, NOTES, RepoNotes, ledger_of, own_files, read_notes
from sanderling.repos.options import ReposOptions
from sanderling.repos.paces import BLOCK_AT, HostPaces
from sanderling.repos.redis_progress import ArchivedRepo, RedisProgress, open_redis
from sanderling.repos.run import ArchiveParts, ReposRun
from sanderling.repos.sink import FAILED, LEFT_OUT, TOMBSTONES, RepoSink
from sanderling.repos.work import BlockWork, reader_limits
from sanderling.stores import Batch, Ledger, RowFile
from sanderling.systems import check_edition

MOST_HOSTS = 1 << 20  # whose accounts are counted when an archive is taken up
NEVER = 1e9  # seconds
TRANSIENT = tuple(
    category for category in RepoCategory if category not in PERMANENT and category is not RepoCategory.MOVED
)


def directory_of(options: ReposOptions) -> Directory:
    """The directory that was named. Raises OptionError."""
    if options.clickhouse_address is not None:
        from sanderling.repos.clickhouse_directory import ClickhouseDirectory  # noqa: PLC0415 - an extra

        return ClickhouseDirectory(*options.clickhouse, private=options.private)
    return open_directory(options.directory, options.did_file, options.out, private=options.private)


@asynccontextmanager
async def open_run(options: ReposOptions, clock: Clock) -> AsyncIterator[ReposRun]:
    """Open the archive in the folder, or begin it."""
    if options.resume and not (options.out / NOTES).exists():
        raise FolderError(f"{options.out} has no archive to resume", "leave out --resume to begin one")
    left_out = RepoLeaveOut.read(options.leave_out, options.skip_pds)
    async with AsyncExitStack() as stack:
        # What is wrong with a server or a list is said before anything is made.
        redis = await stack.enter_async_context(open_redis(options.redis_address)) if options.redis_address else None
        directory = directory_of(options)
        await stack.enter_async_context(directory)
        make_folder(options.out)
        check_edition(options.out)
        stack.enter_context(FolderLock(options.out))
        yield await _open(stack, options, left_out, directory, redis, clock)


async def _open(
    stack: AsyncExitStack, options: ReposOptions, left_out: RepoLeaveOut, directory: Directory,
    redis: RedisProgress | None, clock: Clock,
) -> ReposRun:  # fmt: skip
    folder = options.out
    before = read_notes(folder) if (folder / NOTES).exists() else None
    ledger_at = before.ledger if before is not None and options.ledger is None else str(options.ledger or "")
    name = options.name or (before.name if before is not None else "") or folder.resolve().name
    redis_at = options.redis_address or (before.redis if before is not None else "")
    notes = RepoNotes(options.plan(), directory.place, ledger_at, name, redis_at)
    ledger = await stack.enter_async_context(ledger_of(folder, notes, clock))
    notes.processes = tuple(dict.fromkeys([*(before.processes if before is not None else ()), ledger.process]))
    if notes != before:
        write_file(folder / NOTES, msgspec.json.format(msgspec.json.encode(notes)) + b"\n")
    segments, rows = await open_segments(folder, options.segment_size, ledger, clock, redis)
    stack.callback(segments.abandon)  # after an error; a run that ends finishes its segment itself
    state = await _begin(options, ledger, segments, left_out, directory)
    tombstones = RowWriter(folder, TOMBSTONES, await ledger.row_files(), ledger.process)
    stack.callback(tombstones.close)
    limiter = limiter_for(options, clock=clock)
    client = await stack.enter_async_context(Client(options, limiter, clock=clock))
    work = BlockWork(options.zstd_level, options.cids, not options.no_verify, options.max_repo_size)
    readers = await stack.enter_async_context(
        Readers(
            "sanderling.repos.work:open_work",
            msgspec.msgpack.encode(work),
            count=reader_count(options.readers),
            clock=clock,
            limits=reader_limits(options.max_repo_size),
        )
    )
    alerts = await stack.enter_async_context(open_alerts(options, clock))
    figures = RepoFigures()
    servers = Servers(clock)
    blocks = options.patience == 0
    paces = HostPaces(limiter, options.default_pds_rps, blocks=blocks, counts_429=blocks and options.block_on_429)
    paces.meet({each.host: each.waiting for each in await ledger.waiting_by_host(MOST_HOSTS)})
    handler = RepoHandler(client, readers, paces, figures, left_out, clock, options.max_repo_size)
    feed = DirectoryFeed(directory, ledger, state, redis, left_out, paces, figures, servers, clock, options.page_size)
    source = RepoSource(ledger, feed, handler, limiter, paces, figures, servers)
    sink = RepoSink(ledger, segments, tombstones, directory, redis, client, figures, servers, clock, rows)
    blame = BlameRules(row=BLOCK_AT, patience=options.patience)
    if blocks:
        blame = BlameRules(row=BLOCK_AT, own_row=BLOCK_AT, patience=NEVER, first_patience=NEVER)
    rules = EngineRules(slots=options.workers, blame=blame)
    if options.policy == "aimd":
        rules = EngineRules(slots=options.workers, blame=None, retry=_retry_rule(limiter))
    locks = HostLocks(folder.resolve().parent)  # crawls beside each other never share a host
    engine = Engine(source, handler, sink, limiter, clock, rules, locks)
    parts = ArchiveParts(
        folder, options, ledger, directory, feed, segments, sink, redis, limiter, paces, readers, engine, figures,
        servers, alerts, clock,
    )  # fmt: skip
    return ReposRun(parts, await ledger.counts())


def _retry_rule(limiter: Limiter) -> RetryRule:
    """Retries as seed 003 has them."""

    def retry(host: str, failures: int, outcome: Outcome) -> float | None:
        error = None if outcome.status else outcome.code
        return limiter.plan_retry(host, failures, status=outcome.status, error=error)

    return retry


async def open_segments(
    folder: Path, size: int, ledger: Ledger, clock: Clock, redis: RedisProgress | None = None
) -> tuple[Segments, int]:
    """The segments as far as they count, and how many repos are in the last."""
    own = [each for each in await own_files(folder, ledger) if each.file.endswith(".rca")]
    last = max(own, key=lambda each: segment_number(Path(each.file)), default=RowFile(0, "", 0, 0, 0))
    durable: SegmentEnd | None = SegmentEnd(segment_number(Path(last.file)) if last.file else 0, last.length, last.crc)
    is_lost = not ledger.state and bool(segments_in(folder))
    if is_lost and redis is None:
        raise FolderError(
            f"{folder} has segments, and nothing says which accounts are in them: {LEDGER} is not there",
            "restore it from a copy, choose another folder, or name the Redis that knows them",
        )
    if is_lost:
        durable = None
    segments = Segments(folder, size=size, now=lambda: round(clock.wall() * 1e6), durable=durable)
    if redis is not None and segments.found:
        await redis.record([ArchivedRepo(did, 0) for did in segments.found])
    return segments, last.rows


async def _begin(
    options: ReposOptions, ledger: Ledger, segments: Segments, left_out: RepoLeaveOut, directory: Directory
) -> RepoState:
    """Where this run begins: where the one before was stopped, or with the directory's first page again."""
    state = msgspec.msgpack.decode(ledger.state, type=RepoState) if ledger.state else RepoState()
    listed = "\n".join([directory.place, *sorted(left_out.dids), *sorted(left_out.hosts)])
    excluded = blake2b(listed.encode(), digest_size=8).hexdigest()
    if state.ended and options.refresh:
        await ledger.new_run()
        state = RepoState(first_segment=segments.number + 1, looked=False)
    elif state.ended:
        # What failed for now is tried again, and so is what a list named that may name it no more.
        ends = (await ledger.counts()).ends
        for category in TRANSIENT:
            if ends.get((FAILED, category)):
                await ledger.retry(FAILED, code=category)
        await ledger.retry("waiting")
        state = RepoState(first_segment=state.first_segment, looked=False)
    if excluded != state.excluded:
        await ledger.retry(LEFT_OUT)
        state.cursor, state.fed, state.excluded = "", False, excluded
    await ledger.commit(Batch(state=msgspec.msgpack.encode(state)))
    return state
