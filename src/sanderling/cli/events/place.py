"""Where `events` keeps what it has: the flags that its commands share, and how each of these places is opened.

A place may be a file on this machine or a server. Its URL may hold a password, so it may also come from the
environment, and no message shows more of it than `shown` leaves.
"""

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from sanderling.cli.command_error import CommandError
from sanderling.cli.flags import SETTING
from sanderling.cli.letters import QueueFlags
from sanderling.cli.reach import Say, reached
from sanderling.clock import Clock
from sanderling.events.envelopes import EVENT_TYPE
from sanderling.events.outbox import DATABASE, OBJECTS, QUEUE, open_outgoing
from sanderling.events.rows import EVENTS_EXCHANGE
from sanderling.executor import in_threads
from sanderling.stores.analytics import AnalyticsError
from sanderling.stores.analytics_open import open_analytics
from sanderling.stores.analytics_store import AnalyticsStore
from sanderling.stores.durable import FolderError, plainly
from sanderling.stores.objects import ObjectError, WholeObjects, open_objects
from sanderling.stores.queue import Binding, QueueError, WholeQueue
from sanderling.stores.topic import Topic
from sanderling.words import printable

ROWS_FILE = DATABASE
KNOWN = (FolderError, QueueError, AnalyticsError, ObjectError)  # what may be wrong with these places


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class EventsFolder:
    """The folder. A command takes one as `*, folder: Folder = USUAL`."""

    out: Annotated[Path, Parameter(name="--out")] = Path("events")
    """The folder for all that is kept on this machine."""

    def made(self) -> Path:
        """The folder, which is there now. Raises FolderError."""
        with plainly(self.out):
            self.out.mkdir(parents=True, exist_ok=True)
        return self.out


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class EventsDatabase:
    """The database. A command takes one as `*, rows: Rows = OWN_ROWS`."""

    database: Annotated[str | None, Parameter(env_var="SANDERLING_EVENTS_DATABASE")] = None
    """Where rows are: sqlite:PATH or postgresql://…; by default events.db in the folder."""

    def url(self, folder: EventsFolder) -> str:
        """Its URL."""
        return self.database or f"sqlite:{folder.out / DATABASE}"

    def there(self, folder: EventsFolder) -> bool:
        """Whether there is one, as far as that can be known without making it: a server may have it."""
        kind, _, path = self.url(folder).partition(":")
        return kind != "sqlite" or Path(path).is_file()

    @asynccontextmanager
    async def opened(
        self, folder: EventsFolder, say: Say | None = None, *, writers: int = 6, readers: int = 4
    ) -> AsyncIterator[AnalyticsStore]:
        """The database, reached. With `say`, a server is given a while to come up. Raises CommandError."""
        with ThreadPoolExecutor(4, "rows") as threads:
            reach = partial(open_analytics, self.url(folder), in_threads(threads), writers=writers, readers=readers)
            store = await reached("--database", self.database, reach, say)
            try:
                yield store
            finally:
                await store.close()


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class EventsObjects:
    """The object store. A command takes one as `*, bodies: Bodies = OWN_BODIES`."""

    objects: Annotated[str | None, Parameter(env_var="SANDERLING_EVENTS_OBJECTS")] = None
    """Where batches are: file:FOLDER, s3+http://key:secret@host:9000 or s3:; by default objects in the folder."""

    bucket: Annotated[str, SETTING] = "crawl-results"
    """The bucket for batches, and of a path that names none."""

    @asynccontextmanager
    async def opened(self, folder: EventsFolder, say: Say | None = None) -> AsyncIterator[WholeObjects]:
        """The object store, which answers. Raises CommandError."""
        try:
            objects = open_objects(self.objects or f"file:{folder.out / OBJECTS}")
        except (ObjectError, FolderError) as error:
            raise CommandError(printable(f"--objects: {error}" if self.objects else str(error)), code=2) from None
        try:
            await reached("--objects", self.objects, objects.ping, say)
            yield objects
        finally:
            await objects.close()


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class EventsQueue(QueueFlags):
    """The queue. A command takes one as `*, letters: Letters = OWN_LETTERS`."""

    queue: Annotated[str | None, Parameter(env_var="SANDERLING_EVENTS_QUEUE")] = None
    """Where the queue is: sqlite:FOLDER or amqp://…; by default a file in the folder."""

    queue_name: Annotated[str, SETTING] = QUEUE
    """What it is called there."""

    exchange: Annotated[str, SETTING] = EVENTS_EXCHANGE
    """The topic exchange that crawlers publish to; a server only."""

    routing_key: Annotated[str, SETTING] = EVENT_TYPE
    """Under which routing key they do."""

    @property
    def binding(self) -> Binding:
        """What else is put into it, at a server."""
        return Binding(self.exchange, self.routing_key)

    @asynccontextmanager
    async def topic(self, folder: EventsFolder, clock: Clock, incoming: WholeQueue) -> AsyncIterator[Topic]:
        """Where messages go out: exchanges of the server, or queues of ours. Raises CommandError."""
        opened = open_outgoing(
            self.url(folder),
            self.routing_key,
            incoming,
            lambda name: replace(self, queue_name=name).open_queue(folder, clock),
        )
        async with opened as topic:
            yield topic


USUAL, OWN_ROWS, OWN_BODIES, OWN_LETTERS = EventsFolder(), EventsDatabase(), EventsObjects(), EventsQueue()
