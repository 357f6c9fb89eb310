"""Batches of a simulated crawler in real places, `sanderling events` on them, and what must be true afterwards."""

import asyncio
import sqlite3
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aio_pika
import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker
import obstore
from aiohttp import web
from command_line import here
from forked import Forked as Process
from forked import fork
from known_reports import published
from services.process import ask
from services.s3 import S3

from sanderling.clock import SystemClock
from sanderling.events.envelopes import read_envelope
from sanderling.events.report import EventsFacts
from sanderling.stores.analytics import OutboxMessage
from sanderling.stores.objects import open_objects
from sanderling.stores.queue import Binding, Dead, Depth, Letter, WholeQueue, open_queue
from sanderling.stores.rabbitmq import DELAYS
from sanderling.stores.rabbitmq_topic import RabbitmqTopic
from sanderling.worlds.social import Social
from sanderling.worlds.social_envelopes import BUCKET
from sanderling.worlds.social_truth import BatchFate, BatchTruth

QUEUE, ROUTING_KEY = "analytics.data.collected", "data.collected"
SECONDS = 300  # for whatever is waited for: the machine may be busy
POSTS = "SELECT coalesce(project_id, ''), platform, post_id, event_id FROM post_analytics"
ERRORS = "SELECT event_id, item_index, error_code FROM crawl_errors"
DONE = "SELECT event_id FROM processed_events"

Row = tuple[Any, ...]
Ask = Callable[[str], Awaitable[list[Row]]]


@dataclass(frozen=True, slots=True)
class Place:
    """Where it is all kept: in a folder, or at servers under names of our own."""

    out: Path
    database: str = ""  # of a server
    queue: str = ""
    objects: str = ""
    name: str = ""  # of the schema, the queue and the exchange
    bucket: str = BUCKET

    def flags(self) -> list[str]:
        """What to consume with."""
        given = ["--out", str(self.out), "--metrics-port", "0"]
        if self.objects:
            given += ["--objects", self.objects]
        if self.database:
            given += ["--database", f"{self.database}?schema={self.name}"]
        if self.queue:
            given += ["--queue", self.queue, "@queue-name", self.name, "@exchange", self.name]
        return given

    async def rows(self, question: str) -> list[Row]:
        """What the database says; nothing before there are tables."""
        async with self.asking() as ask:
            return await ask(question)

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[Ask]:
        """The same for whoever asks again and again: of a server over one connection, which is dear to make."""
        if not self.database:
            yield self._rows_here
            return
        db = await asyncpg.connect(self.database, server_settings={"search_path": self.name})

        async def ask(question: str) -> list[Row]:
            try:
                return [tuple(row) for row in await db.fetch(question)]
            except asyncpg.UndefinedTableError:
                return []

        try:
            yield ask
        finally:
            await db.close()

    async def _rows_here(self, question: str) -> list[Row]:
        if not (path := self.out / "events.db").exists():
            return []
        with closing(sqlite3.connect(path, timeout=300)) as db:
            try:
                return db.execute(question).fetchall()
            except sqlite3.OperationalError as error:
                if "no such table" not in str(error):
                    raise
                return []

    async def done(self) -> int:
        """How many batches are in the rows."""
        return len(await self.rows(DONE))

    @asynccontextmanager
    async def letters(self) -> AsyncIterator[WholeQueue]:
        """The queue."""
        binding = Binding(self.name or "unused", ROUTING_KEY)
        queue = open_queue(self.queue or f"sqlite:{self.out}", self.name or QUEUE, SystemClock(), binding=binding)
        try:
            yield queue
        finally:
            await queue.close()

    async def depth(self) -> Depth:
        """How many messages there are."""
        async with self.letters() as queue:
            return await queue.depth()

    async def dead(self) -> list[Dead]:
        """Those that were given up."""
        async with self.letters() as queue:
            return await queue.dead(10_000)

    async def put(self, social: Social, numbers: Iterable[int]) -> None:
        """The objects of batches."""
        objects = open_objects(self.objects or f"file:{self.out / 'objects'}")
        try:
            for number in numbers:
                batch = social.batch(number)
                if batch.body is not None:
                    _, _, key = batch.path.removeprefix("minio://").partition("/")
                    await objects.put(self.bucket, key, batch.body, plain(batch.metadata))
        finally:
            await objects.close()

    async def publish(self, bodies: Sequence[bytes]) -> None:
        """Messages as other programs send them, if that is to a server."""
        async with self.letters() as queue:
            if not self.queue:
                await queue.publish([Letter(uuid.uuid4().hex, body) for body in self.told(bodies)])
                return
            await queue.depth()  # which makes it
            async with self.crawler() as send:
                await send(bodies)

    @asynccontextmanager
    async def crawler(self) -> AsyncIterator[Callable[[Iterable[bytes]], Awaitable[None]]]:
        """What sends messages to the exchange of a server, where somebody waits for them."""
        topic = RabbitmqTopic(self.queue)

        async def send(bodies: Iterable[bytes]) -> None:
            told = self.told(bodies)
            sent = [OutboxMessage(exchange=self.name, routing_key=ROUTING_KEY, body=body) for body in told]
            assert not await topic.send(sent)

        try:
            yield send
        finally:
            await topic.close()

    def told(self, bodies: Iterable[bytes]) -> list[bytes]:
        """Messages with the bucket of the place."""
        return [body.replace(BUCKET.encode(), self.bucket.encode()) for body in bodies]

    def event_of(self, social: Social, number: int) -> str:
        """The id of the event, which is made from the message where that has none."""
        (told,) = self.told([social.envelope(number)])
        return social.truth(number).event_id or read_envelope(told).context.event_id


def plain(metadata: dict[str, str]) -> dict[str, str]:
    """Metadata as a client takes them."""
    return {name.removeprefix("x-amz-meta-"): value for name, value in metadata.items()}


# Servers.


async def place_at(out: Path, postgres: str, rabbitmq: str, s3: S3) -> Place:
    """Names of our own at servers."""
    name = f"sanderling_{uuid.uuid4().hex}"
    bucket = name.replace("_", "-")
    host = urlsplit(s3.endpoint).netloc
    objects = f"s3+http://{s3.access_key_id}:{s3.secret_access_key}@{host}"
    status, said = await asyncio.to_thread(ask, "PUT", s3.signed("PUT", bucket), 30)
    assert status == 200, said
    return Place(out, postgres, rabbitmq, objects, name, bucket)


@asynccontextmanager
async def own_place(out: Path, postgres: str, rabbitmq: str, s3: S3) -> AsyncIterator[Place]:
    """The same at servers that may be somebody's, until the end of the test."""
    place = await place_at(out, postgres, rabbitmq, s3)
    try:
        yield place
    finally:
        await _removed(place, s3)


async def _removed(place: Place, s3: S3) -> None:
    """Leave nothing behind."""
    db = await asyncpg.connect(place.database)
    await db.execute(f"DROP SCHEMA IF EXISTS {place.name} CASCADE")
    await db.close()
    later = (f"{place.name}.later.{seconds:g}s" for seconds in DELAYS)
    async with asyncio.timeout(300), await aio_pika.connect(place.queue) as connection:
        channel = await connection.channel()
        for each in (place.name, f"{place.name}.dead", *later):
            await channel.queue_delete(each, if_unused=False, if_empty=False)
        await channel.exchange_delete(place.name)
    await asyncio.to_thread(_emptied, place.bucket, s3)


def _emptied(bucket: str, s3: S3) -> None:
    store = S3(s3.endpoint, bucket, s3.access_key_id, s3.secret_access_key, s3.region).store()
    for some in obstore.list(store):
        obstore.delete(store, [each["path"] for each in some])
    ask("DELETE", s3.signed("DELETE", bucket), 30)  # type: ignore[arg-type] # it can do that, too


# What must be true.


class Wanted(NamedTuple):
    """What must be in the rows."""

    posts: dict[Row, set[str]]  # by project, platform and id: the events of which one brought it
    errors: Counter[Row]  # event, place and code
    events: set[str]


def wanted(place: Place, social: Social, numbers: Iterable[int]) -> Wanted:
    """What the crawler knows of these batches."""
    found = Wanted({}, Counter(), set())
    for number in numbers:
        truth = social.truth(number)
        if truth.fate is BatchFate.READ:
            _add(found, truth, place.event_of(social, number))
    return found


def _add(found: Wanted, truth: BatchTruth, event: str) -> None:
    found.events.add(event)
    for index, item in enumerate(truth.items):
        if item.is_post:
            found.posts.setdefault((truth.project or "", truth.platform, item.id), set()).add(event)
        else:
            found.errors[event, index, item.code] += 1


async def proven(place: Place, social: Social, numbers: Sequence[int]) -> None:
    """Every item of every batch that can be read is in one of the two tables, once, and nothing else is."""
    truth = wanted(place, social, numbers)
    rows = [(tuple(key), event) for *key, event in await place.rows(POSTS)]
    posts, errors = Counter(key for key, _ in rows), Counter(await place.rows(ERRORS))
    assert {key for key, count in posts.items() if count > 1} == set(), "posts that are there twice"
    assert set(truth.posts) - set(posts) == set(), "posts that are lost"
    assert set(posts) - set(truth.posts) == set(), "posts of nobody"
    assert {key for key, event in rows if event not in truth.posts[key]} == set(), "posts of another batch"
    assert truth.errors - errors == Counter(), "errors that are lost"
    assert errors - truth.errors == Counter(), "errors of nobody, or there twice"
    events = Counter(event for (event,) in await place.rows(DONE))
    assert events == Counter(truth.events)


# Processes.


async def begin(place: Place, *more: str) -> Process:
    """A process that consumes; what it says besides is in `said`."""
    place.out.mkdir(parents=True, exist_ok=True)
    with (place.out / "said.log").open("ab") as log:
        return await fork("events", "consume", *place.flags(), "--json", *more, stderr=log.fileno())


@asynccontextmanager
async def consuming(place: Place, *more: str) -> AsyncIterator[Process]:
    """The same, for as long as it is wanted."""
    process = await begin(place, *more)
    try:
        yield process
    except BaseException as error:
        error.add_note(f"the consumer ended with {process.returncode} and said: {said(place)[-4000:]}")
        raise
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def drain(place: Place, *more: str) -> None:
    """Consume all that there is."""
    done = await here("events", "consume", *place.flags(), "--drain", *more)
    assert done.code == 0, done.err


def said(place: Place) -> str:
    """What processes of the place have said so far, to whoever looks."""
    return (place.out / "said.log").read_text()


async def ended(process: Process, seconds: float = SECONDS) -> int:
    """How it ends by itself."""
    async with asyncio.timeout(seconds):
        await process.communicate()
    return process.returncode or 0


async def until(true: Callable[[], object], process: Process) -> None:
    """Return when that is so, if the process is there all the time."""
    async with asyncio.timeout(SECONDS):
        while not true():
            assert process.returncode is None, f"it has ended with {process.returncode}"
            await asyncio.sleep(0.05)


async def until_done(place: Place, batches: int, process: Process) -> None:
    """Return when so many batches are in the rows."""
    async with asyncio.timeout(SECONDS), place.asking() as ask:
        while len(await ask(DONE)) < batches:
            assert process.returncode is None, f"it has ended with {process.returncode}"
            await asyncio.sleep(0.03)


async def status_with(place: Place, holds: Callable[[EventsFacts], object], process: Process) -> EventsFacts:
    """The first status.json of this process of which that holds."""
    found: list[EventsFacts] = []

    def look() -> bool:
        report = published(place.out)
        if report is not None and report.process.pid == process.pid and holds(report.facts):
            found.append(report.facts)
        return bool(found)

    await until(look, process)
    return found[0]


# A store that is slow, or lies.


class HeldObjects:
    """An S3 server, as far as it is needed: it answers when it is told to."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}  # by bucket and key
        self.metadata: dict[str, dict[str, str]] = {}
        self.sizes: dict[str, int] = {}  # of those that are much larger than one would like
        self.asked: Counter[str] = Counter()
        self.given = 0  # bytes of those
        self.may = asyncio.Event()
        self.may.set()

    def put(self, social: Social, numbers: Iterable[int]) -> None:
        """The objects of batches."""
        for number in numbers:
            batch = social.batch(number)
            if batch.body is not None:
                path = batch.path.removeprefix("minio://")
                self.bodies[path], self.metadata[path] = batch.body, plain(batch.metadata)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Its URL."""
        app = web.Application()
        app.router.add_get("/{path:.*}", self._get, allow_head=False)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            yield f"s3+http://key:secret@127.0.0.1:{runner.addresses[0][1]}"
        finally:
            self.may.set()
            await runner.cleanup()

    async def _get(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        self.asked[path] += 1
        stamp = {"Last-Modified": "Fri, 01 Jan 2027 00:00:00 GMT", "ETag": '"1"'}
        if path in self.sizes:
            return await self._endless(request, path, stamp)
        if path not in self.bodies:
            return web.Response(status=404, text="<Error><Code>NoSuchKey</Code></Error>")
        await self.may.wait()
        headers = {f"x-amz-meta-{name}": value for name, value in self.metadata[path].items()}
        return web.Response(body=self.bodies[path], headers=stamp | headers)

    async def _endless(self, request: web.Request, path: str, stamp: dict[str, str]) -> web.StreamResponse:
        response = web.StreamResponse(headers=stamp | {"Content-Length": str(self.sizes[path])})
        await response.prepare(request)
        for _ in range(self.sizes[path] >> 16):
            await response.write(b"[" * (1 << 16))
            self.given += 1 << 16
        return response
