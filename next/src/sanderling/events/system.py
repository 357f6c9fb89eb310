"""Events as a system: its runs, and what other commands ask about a folder."""

import asyncio
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from hashlib import blake2b
from pathlib import Path

import msgspec

from sanderling.clock import Clock
from sanderling.events.api import PostsApi
from sanderling.events.consume import Consumer, Modes
from sanderling.events.options import EventsOptions
from sanderling.events.queues import (
    DEAD,
    LEGACY_QUEUE,
    PARKED,
    BrokerQueue,
    FileQueue,
    MessageQueue,
)
from sanderling.events.report import make_report
from sanderling.events.store import EventStore, PostgresEvents, SqliteEvents
from sanderling.events.tables import ERRORS, POSTS, as_object
from sanderling.events.watch import Watch
from sanderling.events.work import WorkOptions, load_pipeline
from sanderling.files import Exit, FolderError, FolderLock, make_folder, write_file
from sanderling.formats.envelope import EXCHANGE, KEY, QUEUE
from sanderling.observe.alerts import open_alerts
from sanderling.observe.control import Control, ControlRequest
from sanderling.observe.log import log
from sanderling.observe.report import Report
from sanderling.options import OptionError
from sanderling.readers.automatic import reader_count
from sanderling.readers.pool import Readers
from sanderling.readers.reader import ReaderLimits
from sanderling.records.answers import Shown, Task, Verified
from sanderling.records.rows import RowReader, RowWriter
from sanderling.serving import Access, Streams, own_token, serve
from sanderling.serving.access import is_loopback
from sanderling.stores import RowFile
from sanderling.stores.objects import open_objects
from sanderling.stores.queue_file import FILE, QueueFile
from sanderling.systems import check_edition

DATABASE = "events.db"
NOTES = "events.json"
RESULTS, RESULT_KEY = "results.inbound", "analyze.result"
TASK_STATES = ("retryable", "failed", "parked", "dead")
# A batch of ten thousand items takes seconds, and a queue is no host with a budget.
_LIMITS = ReaderLimits(cpu=30.0, answer=64 << 20, host_cpu=1e15)


class EventsNotes(msgspec.Struct):
    """What stands in the folder for other commands."""

    queues: list[str]
    broker: bool = False
    database: bool = False


class EventsRun:
    """A run, as the shell sees it."""

    def __init__(
        self, options: EventsOptions, consumer: Consumer, readers: Readers, watch: Watch, clock: Clock
    ) -> None:
        self.api = ""
        self._options, self._consumer, self._readers = options, consumer, readers
        self._watch, self._clock = watch, clock

    async def run(self) -> Exit:
        """Consume until it is stopped, or until there is nothing left."""
        if self._options.duration is not None:
            self._clock.call_later(self._options.duration, self.stop)
        async with asyncio.TaskGroup() as group:
            beside = group.create_task(self._watch.work())
            try:
                return await self._consumer.run()
            finally:
                beside.cancel()
                await self._watch.look()

    def stop(self) -> None:
        """Take nothing new."""
        self._consumer.stop()

    def control(self, wanted: Control) -> None:
        """Do as is wanted from now on."""
        self._consumer.pause(paused=wanted.paused)
        if wanted.draining:
            self.stop()

    async def carry_out(self, request: ControlRequest) -> str:
        """Nothing can be asked of a run but what every run does."""
        return f"events cannot {request.action}: publish the messages again, or see events replay"

    def report(self, *, running: bool = True) -> Report:
        """All that is shown."""
        now = self._clock.now()
        return make_report(self._consumer, self._options, self._readers.report(), self.api, now, running=running)


@asynccontextmanager
async def open_run(options: EventsOptions, clock: Clock) -> AsyncIterator[EventsRun]:
    """Open what the options name."""
    make_folder(options.out)
    check_edition(options.out)
    try:
        load_pipeline(options.pipeline, str(Path.cwd()))
    except ValueError as error:
        raise OptionError(f"--pipeline: {error}") from None
    async with AsyncExitStack() as stack:
        stack.enter_context(FolderLock(options.out))
        store: EventStore
        if options.database is not None:
            url = options.database.reveal()
            store = PostgresEvents(url, clock, options.database_pool_size, options.database_max_overflow)
        else:
            store = SqliteEvents(options.out / DATABASE)
        await store.open()
        stack.push_async_callback(store.close)
        objects = open_objects(options.objects, options.out)
        await objects.check()
        queues, publish = await _open_queues(options, clock, stack)
        notes = EventsNotes([each.name for each in queues], options.broker is not None, options.database is not None)
        write_file(options.out / NOTES, msgspec.json.encode(notes) + b"\n")
        count = reader_count(options.readers)
        argument = WorkOptions(options.pipeline, str(Path.cwd()), options.job_ids == "seed")
        readers = await stack.enter_async_context(
            Readers("sanderling.events.work:open_work", msgspec.msgpack.encode(argument), count=count, clock=clock,
                    limits=_LIMITS)
        )  # fmt: skip
        consumer = Consumer(
            queues, store, objects, readers, clock,
            modes=Modes(options.new_mode, options.legacy_mode, options.canary), workers=options.workers,
            prefetch=options.prefetch, missing_tries=options.tries, drain=options.drain or bool(options.files),
            publish=publish,
        )  # fmt: skip
        alerts = await stack.enter_async_context(open_alerts(options, clock))
        if options.metrics_port:
            say = f"Metrics are at http://{options.metrics_bind}:{options.metrics_port}/metrics."
            log.info("metrics", say=f"{say} For other machines add: --metrics-bind 0.0.0.0")
        run = EventsRun(options, consumer, readers, Watch(consumer, alerts, clock), clock)
        if options.port is not None:
            run.api = await _serve(options, consumer, store, clock, stack)
        yield run


async def _serve(
    options: EventsOptions, consumer: Consumer, store: EventStore, clock: Clock, stack: AsyncExitStack
) -> str:
    """Serve the API; its address."""
    token = options.token.reveal() if options.token else ""
    public = not is_loopback(options.api_bind)
    if public and not token:
        raise FolderError(
            f"others can reach {options.api_bind}, and there is no token",
            "set --token env:NAME, or serve at 127.0.0.1",
        )
    if not token:
        token = own_token(options.out)
    reads = store
    if options.database is not None:
        reads = PostgresEvents(options.database.reveal(), clock, options.async_database_pool_size, 0)
        await reads.open()
        stack.push_async_callback(reads.close)
    api = PostsApi(reads, clock, consumer.troubles, postgres=options.database is not None)
    follower = options.follower_token.reveal() if options.follower_token else ""
    assert options.port is not None  # noqa: S101 - it is asked for
    return await stack.enter_async_context(
        serve("Sanderling events", api.routes(), Access(clock, token, follower, public=public), Streams(),
              bind=options.api_bind, port=options.port, troubles=lambda: list(consumer.troubles.values()))
    )  # fmt: skip


async def _open_queues(
    options: EventsOptions, clock: Clock, stack: AsyncExitStack
) -> tuple[list[MessageQueue], Callable[[bytes], Awaitable[None]] | None]:
    names = options.queue_name or (QUEUE, LEGACY_QUEUE)
    if options.broker is None:
        if options.results:
            raise OptionError("--results needs --broker")
        file = await stack.enter_async_context(QueueFile(options.out))
        if options.files:
            for path in options.files:
                if not path.is_file():
                    raise OptionError(f"FILE: {path} is no file")
            await file.put(names[0], files=options.files)
        return [FileQueue(file, name, clock) for name in names], None
    from sanderling.stores.rabbitmq import OutgoingMessage, QueueConsumer, QueuePublisher  # noqa: PLC0415 - an extra

    if options.files:
        raise OptionError("FILE and --broker: files go with a folder alone")
    url = options.broker.reveal()
    publisher = await stack.enter_async_context(QueuePublisher(url))
    queues: list[MessageQueue] = []
    for name in names:
        if options.bind and await publisher.count(name) is not None:
            await publisher.declare(EXCHANGE, name, KEY)
        exchange = EXCHANGE if name == QUEUE or options.bind else ""
        consumer = QueueConsumer(url, name, options.workers * options.prefetch, exchange, KEY)
        await stack.enter_async_context(consumer)
        optional = name == LEGACY_QUEUE and not options.queue_name
        queues.append(BrokerQueue(consumer, publisher, clock, optional=optional))
    if not options.results:
        return queues, None
    await publisher.declare(RESULTS)

    async def publish(result: bytes) -> None:
        await publisher.publish(RESULT_KEY, [OutgoingMessage(result)], RESULTS)

    return queues, publish


def _open_to_read(folder: Path, name: str = DATABASE) -> sqlite3.Connection:
    path = folder / name
    if not path.exists():
        raise FolderError(f"the rows of {folder} are in PostgreSQL", "read them there, or by the API")
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=10)


@contextmanager
def _reading(folder: Path, name: str = DATABASE) -> Iterator[sqlite3.Connection]:
    with closing(_open_to_read(folder, name)) as db:
        yield db


def _lines(db: sqlite3.Connection, table: str, where: str = "", *values: object) -> Iterator[tuple[str, bytes]]:
    """The id and the line of each row of a table."""
    names = [each.name for each in (POSTS if table == "post_analytics" else ERRORS)]
    for row in db.execute(f"SELECT {', '.join(names)} FROM {table} {where}", values):
        yield str(row[0]), msgspec.json.encode({"table": table, **as_object(names, row)})


class EventRows(RowReader):
    """The posts as they are now, in rows of a folder that goes with this."""

    def __init__(self, folder: Path) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="sanderling-events-")
        place = Path(self._temporary.name)
        writer = RowWriter(place, "records", ())
        with _reading(folder) as db:
            for key, line in _lines(db, "post_analytics"):
                writer.append(blake2b(key.encode(), digest_size=16).digest(), [line], 1)
        counted: list[RowFile] = writer.write()
        writer.close()
        super().__init__(place, "records", counted)

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._temporary.cleanup()


def records(folder: Path) -> RowReader:
    """All posts as they are now."""
    return EventRows(folder)


async def show(folder: Path, key: str) -> Shown:
    """A post by its id, and the errors of its items."""
    with _reading(folder) as db:
        lines = [line for _, line in _lines(db, "post_analytics", "WHERE id = ?1", key)]
        errors = [line for _, line in _lines(db, "crawl_errors", "WHERE content_id = ?1 ORDER BY created_at", key)]
    return Shown([*lines, *errors], f"{len(errors)} of its items failed" if errors else "")


async def verify(folder: Path) -> Verified:
    """Compare the tables with each other."""
    with _reading(folder) as db:
        faults = [text for (text,) in db.execute("PRAGMA integrity_check") if text != "ok"]
        counts = {table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                  for table in ("post_analytics", "crawl_errors", "processed_events")}  # fmt: skip
        lost = db.execute(
            "SELECT count(*) FROM crawl_errors e WHERE event_id IS NOT NULL AND NOT EXISTS"
            " (SELECT 1 FROM processed_events p WHERE p.event_id = e.event_id)"
        ).fetchone()[0]
        if lost:
            faults.append(f"{lost:,} errors are of events that are not known")
    return Verified(faults, counts)


def _tasks(folder: Path, state: str) -> Iterator[Task]:
    if state in ("retryable", "failed"):
        where = "WHERE retryable = 1" if state == "retryable" else ""
        sql = f"SELECT content_id, platform, error_code, error_message, permalink FROM crawl_errors {where}"
        with _reading(folder) as db:
            for key, platform, code, message, link in db.execute(sql):
                yield Task(key, state, platform, code, "; ".join(filter(None, (message, link))))
        return
    if not (folder / FILE).exists():
        raise FolderError(f"the queues of {folder} are in RabbitMQ", "see events replay --help")
    with _reading(folder, FILE) as db:
        suffix = PARKED if state == "parked" else DEAD
        for number, queue, why in db.execute("SELECT id, queue, why FROM message WHERE queue LIKE ?1", (f"%{suffix}",)):
            yield Task(f"{queue}/{number}", state, "", "", why)


async def tasks(folder: Path, state: str, host: str | None, code: str | None) -> AsyncIterator[Task]:
    """Items and messages in a state; the host is the platform."""
    for task in _tasks(folder, state):
        if host in (None, task.host) and code in (None, task.code):
            yield task


async def count_tasks(folder: Path) -> dict[tuple[str, str], int]:
    """How many there are in each state."""
    counts: dict[tuple[str, str], int] = {}
    for state in TASK_STATES:
        if state in ("parked", "dead") and not (folder / FILE).exists():
            continue
        for task in _tasks(folder, state):
            counts[state, task.code] = counts.get((state, task.code), 0) + 1
    return counts


async def retry(folder: Path, state: str, host: str | None, code: str | None) -> int:  # noqa: ARG001 - the protocol's
    """What failed is fetched again by its crawler; its messages come by `events replay`."""
    raise FolderError("an item is fetched again by its crawler, and a message comes again by events replay",
                      f"give the list to it: sanderling tasks {folder} retryable --json")  # fmt: skip


async def forget(folder: Path, *_: object) -> int:
    """Nothing here is requested again."""
    raise FolderError(f"the rows of {folder} are of others' crawls", "delete them from post_analytics and crawl_errors")
