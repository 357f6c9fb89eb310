"""Polling as a system: its runs, and what other commands ask about a folder."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, closing
from hashlib import blake2b
from pathlib import Path
from random import Random

import msgspec

from sanderling.clock import Clock, SystemClock
from sanderling.fetch.client import Client
from sanderling.files import Exit, FolderError, FolderLock, make_folder, write_file
from sanderling.ids import host_of
from sanderling.limit import Limiter
from sanderling.observe.alerts import Alert, Alerts, open_alerts
from sanderling.observe.control import Control, ControlRequest
from sanderling.observe.log import log
from sanderling.observe.report import Report
from sanderling.polling.api import Api
from sanderling.polling.database import Database, PostgresDatabase, SqliteDatabase
from sanderling.polling.documents import JsonDocuments, read_documents
from sanderling.polling.feed import Feed
from sanderling.polling.options import PollingOptions
from sanderling.polling.report import make_report
from sanderling.polling.scheduler import Scheduler
from sanderling.polling.settings import Settings, parse_pairs, typed_rows
from sanderling.polling.store import Store, seconds_of
from sanderling.polling.tables import BOOLEANS, RECORDS
from sanderling.polling.upstream import PolledUpstream, Requests, Trackside
from sanderling.records.answers import Shown, Task, Verified
from sanderling.records.rows import RowReader, RowWriter
from sanderling.redact import Secret
from sanderling.serving import Access, Streams, own_token, serve
from sanderling.serving.access import is_loopback
from sanderling.stores import RowFile
from sanderling.systems import check_edition

DATABASE = "polling.db"
NOTES = "polling.json"
TASK_STATES = ("due", "waiting", "failing", "paused", "gone")
ALERT_SECONDS = 60.0  # that an upstream is away before somebody is told


class PollingNotes(msgspec.Struct):
    """What stands beside the database: what is polled, for people and for other commands."""

    url: str
    database: str = ""  # env:NAME or file:PATH of PostgreSQL, where it is no file in the folder
    schema: str = ""


class PollingRun:
    """A run, as the shell sees it."""

    def __init__(self, options: PollingOptions, scheduler: Scheduler, feed: Feed, alerts: Alerts, clock: Clock) -> None:
        self.url = ""  # of the API
        self._options = options
        self._scheduler = scheduler
        self._feed = feed
        self._alerts = alerts
        self._clock = clock
        self._targets = 0
        self._away_since: float | None = None
        self._told = False

    async def run(self) -> Exit:
        """Poll until it is stopped, or once."""
        if self._options.once:
            await self._scheduler.run_once()
            self._targets = len(await self._scheduler.store.targets())
            failing = any(each.failures for each in await self._scheduler.store.targets())
            return Exit.FAILED if failing or self._scheduler.away else Exit.DONE
        async with asyncio.TaskGroup() as group:
            beside = [group.create_task(self._feed.work()), group.create_task(self._watch())]
            if self._options.duration is not None:
                self._clock.call_later(self._options.duration, self.stop)
            try:
                await self._scheduler.run()
            finally:
                for each in beside:
                    each.cancel()
        return Exit.DONE

    async def _watch(self) -> None:
        while True:
            self._targets = sum(each.is_there for each in await self._scheduler.store.targets())
            away, now = self._scheduler.away, self._clock.now()
            if not away:
                if self._told:
                    self._alerts.post(Alert("The upstream is back", self._options.url))
                self._away_since, self._told = None, False
            elif self._away_since is None:
                self._away_since = now
            elif now - self._away_since > ALERT_SECONDS and not self._told:
                self._told = True
                self._alerts.post(Alert("The upstream cannot be polled", f"{self._options.url}: {away}"))
            await self._clock.sleep(2.0)

    def stop(self) -> None:
        """Begin nothing new."""
        self._scheduler.stop()

    def control(self, wanted: Control) -> None:
        """Do as is wanted from now on."""
        self._scheduler.pause(paused=wanted.paused or _host(self._options.url) in wanted.blocked)
        if wanted.draining:
            self.stop()

    async def carry_out(self, request: ControlRequest) -> str:
        """Retry what the words name: poll it next."""
        if request.action != "retry":
            return f"polling cannot {request.action}"
        state = request.words[0] if request.words else ""
        number = 0
        for each in await self._scheduler.store.targets():
            if _state(each.enabled, each.gone_at, each.failures, each.next_due_at, self._clock.wall()) == state:
                number += await self._scheduler.promote(*each.key)
        return f"{number:,} are polled next"

    def report(self, *, running: bool = True) -> Report:
        """All that is shown."""
        options = self._options
        return make_report(
            self._scheduler, self._feed, _host(options.url), self.url, str(options.out), self._clock.now(),
            targets=self._targets, running=running,
        )  # fmt: skip


@asynccontextmanager
async def open_run(options: PollingOptions, clock: Clock) -> AsyncIterator[PollingRun]:
    """Open what is polled into the folder, or begin it."""
    make_folder(options.out)
    check_edition(options.out)
    token = options.token.reveal() if options.token else ""
    public = not is_loopback(options.bind)
    if public and not token:
        raise FolderError(
            f"others can reach {options.bind}, and there is no token", "set --token env:NAME, or serve at 127.0.0.1"
        )
    with FolderLock(options.out):
        async with AsyncExitStack() as stack:
            upstream: PolledUpstream = Trackside(options.url)
            if options.documents is not None:
                upstream = JsonDocuments(read_documents(options.documents))
            database: Database
            if options.database is not None:
                database = PostgresDatabase(options.database.reveal(), options.schema, clock)
            else:
                database = SqliteDatabase(options.out / DATABASE)
            await database.open()
            stack.push_async_callback(database.close)
            notes = PollingNotes(options.url, str(options.database or ""), options.schema)
            write_file(options.out / NOTES, msgspec.json.encode(notes) + b"\n")
            store = Store(database, clock)
            await store.set_settings(Settings().rows(), only_new=True)
            await store.set_settings(typed_rows(options))
            client = await stack.enter_async_context(Client(options, Limiter(policy="none", clock=clock), clock=clock))
            if options.rps is not None:
                for url in upstream.urls():
                    client.limiter.set_cap(host_of(url), options.rps)
            scheduler = Scheduler(
                store, upstream, Requests(client, clock), clock, Random(), next_race=options.next_race
            )
            feed = Feed(store, clock)
            await feed.start()
            alerts = await stack.enter_async_context(open_alerts(options, clock))
            run = PollingRun(options, scheduler, feed, alerts, clock)
            if not options.once:
                if not token:
                    token = own_token(options.out)
                    log.info("token", say=f"The admin's token is in {options.out / 'admin.token'}.")
                follower = options.follower_token.reveal() if options.follower_token else ""
                access = Access(clock, token, follower, options.origin, public=public)
                streams = Streams()
                run.url = await stack.enter_async_context(
                    serve("Sanderling polling", Api(scheduler, feed, streams).routes(), access, streams,
                          bind=options.bind, port=options.port, troubles=lambda: run.report().troubles)
                )  # fmt: skip
            yield run


def _host(url: str) -> str:
    return host_of(url) if url else "documents"


def _state(enabled: bool, gone: str | None, failures: int, due: str, wall: float) -> str:  # noqa: FBT001 - a row
    if gone is not None:
        return "gone"
    if not enabled:
        return "paused"
    if failures:
        return "failing"
    return "due" if seconds_of(due) <= wall else "waiting"


@asynccontextmanager
async def _opened(folder: Path, *, read_only: bool = True) -> AsyncIterator[Database]:
    """What was polled, beside its scheduler."""
    notes = msgspec.json.decode((folder / NOTES).read_bytes(), type=PollingNotes)
    database: Database
    if notes.database:
        database = PostgresDatabase(Secret(notes.database).reveal(), notes.schema, SystemClock(), beside=True)
    elif (folder / DATABASE).exists():
        database = SqliteDatabase(folder / DATABASE, read_only=read_only)
    else:
        raise FolderError(f"nothing was polled into {folder} yet", "run polling there")
    await database.open()
    try:
        yield database
    finally:
        await database.close()


async def _lines(database: Database, key: str = "") -> AsyncIterator[tuple[str, str, bytes]]:
    """Table, key and line of each record."""
    for table, columns in RECORDS.items():
        names = ["sourceId", *(each.name for each in columns), "lastUpdated"]
        lists = {each.name for each in columns if each.kind in ("list", "json")}
        listed = ", ".join(f'"{name}"' for name in names)
        where = ' WHERE "sourceId" = $1' if key else ""
        for row in await database.read(f'SELECT {listed} FROM "{table}"{where}', *((key,) if key else ())):
            content = {
                name: bool(value) if name in BOOLEANS[table] and value is not None
                else msgspec.Raw(value.encode()) if name in lists and value is not None else value
                for name, value in zip(names, row, strict=True)
            }  # fmt: skip
            yield table, row[0], msgspec.json.encode({"table": table, **content})


class PolledRows(RowReader):
    """The records as they are now, in rows of a folder that goes with this."""

    def __init__(self, folder: Path) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="sanderling-polling-")
        place = Path(self._temporary.name)
        # In a thread of its own no event loop runs.
        with ThreadPoolExecutor(1) as thread:
            counted = thread.submit(asyncio.run, self._write(folder, place)).result()
        super().__init__(place, "records", counted)

    async def _write(self, folder: Path, place: Path) -> list[RowFile]:
        with closing(RowWriter(place, "records", ())) as writer:
            async with _opened(folder) as database:
                async for table, key, line in _lines(database):
                    writer.append(blake2b(f"{table} {key}".encode(), digest_size=16).digest(), [line], 1)
            return writer.write()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._temporary.cleanup()


def records(folder: Path) -> RowReader:
    """All records as they are now."""
    return PolledRows(folder)


async def show(folder: Path, key: str) -> Shown:
    """The records with this id, and how its polls went."""
    async with _opened(folder) as database:
        lines = [line async for _, _, line in _lines(database, key)]
        rows = await database.read(
            'SELECT "type", "lastStatus", "lastFetchedAt" FROM ingest_targets WHERE "sourceId" = $1', key
        )
    return Shown(
        lines, "; ".join(f"{kind}: {status or 'not polled yet'} {at or ''}".strip() for kind, status, at in rows)
    )


async def verify(folder: Path) -> Verified:
    """Compare the log of changes with its position, and the database with itself."""
    faults = []
    async with _opened(folder) as database:
        if isinstance(database, SqliteDatabase):
            faults = [text for (text,) in await database.read("PRAGMA integrity_check") if text != "ok"]
        ((first, last, number),) = await database.read('SELECT min("position"), max("position"), count(*) FROM changes')
        ((position,),) = await database.read('SELECT "position" FROM stream')
        if number and (last != position or last - first + 1 != number):
            faults.append(
                f"the log of changes has {number:,} from {first:,} to {last:,}, and its position is {position:,}"
            )
        counts = {table: (await database.read(f'SELECT count(*) FROM "{table}"'))[0][0] for table in RECORDS}
    return Verified(faults, {"changes in the log": number, **{table: each for table, each in counts.items() if each}})


async def _tasks(folder: Path) -> list[Task]:
    wall = SystemClock().wall()
    host = _host(msgspec.json.decode((folder / NOTES).read_bytes(), type=PollingNotes).url)
    sql = """SELECT "type", "sourceId", "enabled", "goneAt", "failures", "nextDueAt", "lastStatus", "intervalMs"
        FROM ingest_targets ORDER BY 6"""
    async with _opened(folder) as database:
        return [
            Task(f"{kind}/{source_id}", _state(bool(enabled), gone, failures, due, wall), host,
                 "FAILED" if failures else "", f"every {interval} ms; {status or 'not polled yet'}", seconds_of(due))
            for kind, source_id, enabled, gone, failures, due, status, interval in await database.read(sql)
        ]  # fmt: skip


async def tasks(folder: Path, state: str, host: str | None, code: str | None) -> AsyncIterator[Task]:
    """The targets in a state."""
    for task in await _tasks(folder):
        if task.state == state and host in (None, task.host) and code in (None, task.code):
            yield task


async def count_tasks(folder: Path) -> dict[tuple[str, str], int]:
    """How many targets are in each state."""
    counts: dict[tuple[str, str], int] = {}
    for task in await _tasks(folder):
        counts[task.state, task.code] = counts.get((task.state, task.code), 0) + 1
    return counts


async def retry(folder: Path, state: str, host: str | None, code: str | None) -> int:
    """Make targets due for the next run."""
    keys = [tuple(task.key.split("/", 1)) async for task in tasks(folder, state, host, code)]
    with FolderLock(folder):
        async with _opened(folder, read_only=False) as database:
            await Store(database, SystemClock()).promote([(kind, source_id) for kind, source_id in keys])
    return len(keys)


async def change_settings(folder: Path, pairs: tuple[str, ...]) -> dict[str, str]:
    """Write settings, which a run heeds at once; all that there are. Raises OptionError."""
    rows = parse_pairs(pairs)
    async with _opened(folder, read_only=False) as database:
        store = Store(database, SystemClock())
        if rows:
            await store.set_settings(rows)
        return await store.settings()
