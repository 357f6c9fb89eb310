"""Where messages come from: queues of RabbitMQ, or of a SQLite file in the folder.

A message that was taken is ours until it is done, given back, parked or buried; a kill gives all of them back. Parked
and dead ones lie in durable queues beside the first, `NAME.parked` and `NAME.dead`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sanderling.clock import Clock
from sanderling.formats.envelope import Envelope
from sanderling.stores.sqlite_file import SqliteFile

if TYPE_CHECKING:
    from sanderling.stores.rabbitmq import QueueConsumer, QueuePublisher

FILE = "queue.db"
DEAD, PARKED = ".dead", ".parked"
LEGACY_QUEUE = "analytics_queue"
_APPLICATION = 0x45765175
_TABLE = """CREATE TABLE message (id INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT NOT NULL, body BLOB NOT NULL,
    file TEXT NOT NULL DEFAULT '', why TEXT NOT NULL DEFAULT '')"""
_INDEX = "CREATE INDEX message_queue ON message (queue, id)"
_LOOK_SECONDS = 0.1  # how often the file is looked at while it is empty
_LOOK_AGAIN = 30.0  # how often a queue is looked for


@dataclass(slots=True, eq=False)
class Delivery:
    """A message that was taken."""

    body: bytes
    file: str = ""  # it stands for a file that was named on the command line
    handle: Any = None  # as the queue knows it
    size: int = 0
    envelope: Envelope | None = None
    missing: int = 0  # how often its object was not there
    first_wall: float = 0.0


class MessageQueue(Protocol):
    """One queue."""

    name: str

    async def take(self, seconds: float) -> Delivery | None:
        """The next message; waits so long for it."""

    async def done(self, delivery: Delivery) -> None:
        """It is forgotten."""

    async def give_back(self, deliveries: Sequence[Delivery]) -> None:
        """They come again, in their place."""

    async def make_room(self, wanted: int) -> None:
        """Those that are held do not count: let so many more come."""

    async def rest(self) -> None:
        """Take no more until the next `take`."""

    async def move(self, delivery: Delivery, suffix: str, why: str) -> None:
        """Put it into the queue beside this one."""

    async def count(self, suffix: str = "") -> int:
        """The messages that wait, here or in a queue beside this one."""


class FileQueue:
    """A queue in the folder. Its messages are ours alone, so what is taken is only remembered here."""

    def __init__(self, file: SqliteFile, name: str, sleep: Any) -> None:  # noqa: ANN401 - a clock's
        self.name = name
        self._file = file
        self._sleep = sleep
        self._after = 0
        self._again: list[int] = []

    async def take(self, seconds: float) -> Delivery | None:
        """The next message."""
        waited = 0.0
        while (found := await self._file.call(self._next)) is None and waited < seconds:
            waited += _LOOK_SECONDS
            await self._sleep(_LOOK_SECONDS)
        return found

    def _next(self) -> Delivery | None:
        sql = "SELECT id, body, file FROM message WHERE queue = ?1 AND id > ?2 ORDER BY id LIMIT 1"
        if self._again:
            sql, values = (
                "SELECT id, body, file FROM message WHERE queue = ?1 AND id = ?2",
                (self.name, self._again.pop(0)),
            )
        else:
            values = (self.name, self._after)
        row = self._file.db.execute(sql, values).fetchone()
        if row is None:
            return None
        self._after = max(self._after, row[0])
        return Delivery(row[1], row[2], row[0], len(row[1]))

    async def done(self, delivery: Delivery) -> None:
        """It is forgotten."""
        await self._change("DELETE FROM message WHERE id = ?1", delivery.handle)

    async def give_back(self, deliveries: Sequence[Delivery]) -> None:
        """They come again, in their place."""
        self._again = sorted([*self._again, *(each.handle for each in deliveries)])

    async def make_room(self, wanted: int) -> None:
        """There is always room."""

    async def rest(self) -> None:
        """Nobody else waits for them."""

    async def move(self, delivery: Delivery, suffix: str, why: str) -> None:
        """Put it into the queue beside this one."""
        sql = "UPDATE message SET queue = queue || ?2, why = ?3 WHERE id = ?1"
        await self._change(sql, delivery.handle, suffix, why[:1000])

    async def count(self, suffix: str = "") -> int:
        """The messages that wait."""
        sql = "SELECT count(*) FROM message WHERE queue = ?1"
        return int(await self._file.call(lambda: self._file.db.execute(sql, (self.name + suffix,)).fetchone()[0]))

    async def _change(self, sql: str, *values: object) -> None:
        def work() -> None:
            with self._file.transaction() as db:
                db.execute(sql, values)

        await self._file.call(work)


async def open_queue_file(folder: Path) -> SqliteFile:
    """The file of a folder's queues, made if there is none."""
    file = SqliteFile(folder / FILE, _APPLICATION)
    await file.open()

    def make() -> None:
        if not file.db.execute("SELECT 1 FROM sqlite_schema").fetchone():
            with file.transaction() as db:
                for each in (_TABLE, _INDEX, f"PRAGMA application_id = {_APPLICATION}"):
                    db.execute(each)

    await file.call(make)
    return file


async def put_into_file(file: SqliteFile, name: str, messages: Sequence[tuple[bytes, str]]) -> None:
    """Add messages (body, file) to a queue; on disk when this returns."""

    def work() -> None:
        with file.transaction() as db:
            db.executemany("INSERT INTO message (queue, body, file) VALUES (?1, ?2, ?3)",
                           [(name, *each) for each in messages])  # fmt: skip

    await file.call(work)


async def replay_in_file(file: SqliteFile, name: str, suffix: str) -> int:
    """Put the messages beside a queue back into it, in their order; how many."""

    def work() -> int:
        with file.transaction() as db:
            # New numbers: the run that is at work has passed the old ones.
            rows = db.execute(
                "SELECT body, file FROM message WHERE queue = ?1 ORDER BY id", (name + suffix,)
            ).fetchall()
            db.execute("DELETE FROM message WHERE queue = ?1", (name + suffix,))
            db.executemany(
                "INSERT INTO message (queue, body, file) VALUES (?1, ?2, ?3)", [(name, *row) for row in rows]
            )
            return len(rows)

    return await file.call(work)


class BrokerQueue:
    """A queue of RabbitMQ. `optional`: where there is none, it is looked for every half minute."""

    def __init__(self, consumer: "QueueConsumer", publisher: "QueuePublisher", clock: Clock, *, optional: bool) -> None:
        self.name = consumer.queue
        self._consumer = consumer
        self._publisher = publisher
        self._prefetch = consumer.prefetch
        self._clock = clock
        self._missing = optional
        self._look_at = 0.0

    async def take(self, seconds: float) -> Delivery | None:
        """The next message. Raises BrokerAway."""
        if self._missing:
            if self._clock.now() >= self._look_at:
                self._look_at = self._clock.now() + _LOOK_AGAIN
                self._missing = await self._publisher.count(self.name) is None
            if self._missing:
                await self._clock.sleep(min(seconds, 1.0))
                return None
        found = await self._consumer.take(1, seconds)
        return Delivery(found[0].body, "", found[0], len(found[0].body)) if found else None

    async def done(self, delivery: Delivery) -> None:
        """It is forgotten. Raises BrokerAway."""
        await self._consumer.done([delivery.handle])

    async def give_back(self, deliveries: Sequence[Delivery]) -> None:
        """They come again, in their place. Raises BrokerAway."""
        if deliveries:
            await self._consumer.give_back([each.handle for each in deliveries])

    async def make_room(self, wanted: int) -> None:
        """Those that are held do not count: a consumer that begins anew may take as many again. Raises BrokerAway."""
        await self._consumer.pause()
        self._consumer.prefetch = wanted

    async def rest(self) -> None:
        """Take no more until the next `take`. Raises BrokerAway."""
        await self._consumer.pause()
        self._consumer.prefetch = self._prefetch

    async def move(self, delivery: Delivery, suffix: str, why: str) -> None:
        """Put it into the queue beside this one: there first, then it is done here. Raises BrokerAway."""
        from sanderling.stores.rabbitmq import OutgoingMessage  # noqa: PLC0415 - an extra

        await self._publisher.publish(self.name + suffix, [OutgoingMessage(delivery.body, {"x-why": why[:1000]})])
        await self.done(delivery)

    async def count(self, suffix: str = "") -> int:
        """The messages that wait. Raises BrokerAway."""
        return await self._publisher.count(self.name + suffix) or 0


def light(delivery: Delivery) -> Delivery:
    """What has to be remembered of a message that is held: not its body."""
    if hasattr(delivery.handle, "taken"):
        delivery.handle.taken.body = b""
        delivery.handle = replace(delivery.handle, body=b"")
    delivery.body = b""
    return delivery
