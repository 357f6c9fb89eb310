"""Where records go besides the folder: a database, raw JSON in ClickHouse, a queue of RabbitMQ.

Each is written before the folder's commit, so that a kill can only write again what is there.
"""

from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from sanderling.clock import Clock
from sanderling.files import ServiceAway
from sanderling.formats.handed import item_of
from sanderling.observe.log import log
from sanderling.records.handover import EventHandover, open_handover
from sanderling.sequence.database import RecordsDatabase, open_database
from sanderling.sequence.instances import read_report
from sanderling.sequence.options import LARGEST_ID, TargetOptions
from sanderling.sequence.store import KeptRecord, SequenceStore, key_of

if TYPE_CHECKING:
    from sanderling.stores.clickhouse import Clickhouse
    from sanderling.stores.rabbitmq import QueueConsumer, QueuePublisher

RETRY_BATCH = 100
LONGEST_PAUSE = 5.0  # seconds between two looks for a server that is away
RAW_TABLE = (
    "CREATE TABLE IF NOT EXISTS raw_instance (instance_id Int64, data String CODEC(ZSTD(3)), crawled DateTime64(6))"
    " ENGINE = ReplacingMergeTree(crawled) ORDER BY instance_id"
)


class RecordTarget(Protocol):
    """A place for records."""

    async def write(self, records: Sequence[KeptRecord]) -> None:
        """Have these records; some may be there already. Raises ServiceAway."""


class RawTarget:
    """The table `raw_instance` of ClickHouse, in which the later state of a record counts."""

    def __init__(self, clickhouse: "Clickhouse", clock: Clock) -> None:
        self._clickhouse, self._clock = clickhouse, clock

    async def write(self, records: Sequence[KeptRecord]) -> None:
        """Insert the JSON of records. Raises ServiceAway."""
        stored = [each for each in records if each.line]
        gone = [each.number for each in records if not each.line]
        if stored:
            columns: dict[str, Sequence[object]] = {
                "instance_id": [each.number for each in stored],
                "data": [each.line for each in stored],
                "crawled": [round(1e6 * self._clock.wall())] * len(stored),
            }
            await self._clickhouse.insert("raw_instance", columns)
        if gone:
            await self._clickhouse.execute(
                "DELETE FROM raw_instance WHERE instance_id IN {gone:Array(Int64)}", gone=gone
            )


class EventsTarget:
    """Batches of `events`. What was deleted is no post."""

    def __init__(self, handover: EventHandover) -> None:
        self._handover = handover

    async def write(self, records: Sequence[KeptRecord]) -> None:
        """Hand records on, each known by its id and its visit. Raises ServiceAway."""
        await self._handover.offer(
            [item_of(each.line, key_of(each.number), each.visit, 0, "api") for each in records if each.line]
        )


_NOTHING = msgspec.Raw()


class QueuedRecord(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A message of the queue. For the game `instance` and `pgcr` are as the original has them."""

    id: str = ""
    visit: int = 0
    deleted: bool = False
    record: msgspec.Raw = _NOTHING
    instance: Any = None
    pgcr: msgspec.Raw = _NOTHING


class QueueTarget:
    """The queue of records, which `sequence store` takes them from, and that of ids to be asked again."""

    def __init__(self, publisher: "QueuePublisher", options: TargetOptions, *, game: bool) -> None:
        self._publisher, self._options, self._game = publisher, options, game

    async def write(self, records: Sequence[KeptRecord]) -> None:
        """Publish records, with confirmation. Raises ServiceAway."""
        from sanderling.stores.rabbitmq import OutgoingMessage  # noqa: PLC0415 - an extra

        messages = [OutgoingMessage(msgspec.json.encode(self._message(each))) for each in records]
        await self._publisher.publish(self._options.store_queue, messages)

    def _message(self, each: KeptRecord) -> QueuedRecord:
        head = QueuedRecord(id=str(each.number), visit=each.visit, deleted=not each.line)
        if head.deleted:
            return head
        if not self._game:
            head.record = msgspec.Raw(each.line)
            return head
        head.pgcr = msgspec.Raw(each.line)
        with suppress(ValueError):  # `sequence store` finds it again, and says so
            head.instance = read_report(msgspec.json.decode(each.line))
        return head

    async def offer(self, ids: Sequence[tuple[int, float]]) -> None:
        """Publish ids, each with the time when it is asked again. Raises ServiceAway."""
        from sanderling.stores.rabbitmq import OutgoingMessage  # noqa: PLC0415

        messages = [OutgoingMessage(b"%d" % number, {"x-due": int(1000 * due)}, "text/plain") for number, due in ids]
        await self._publisher.publish(self._options.retry_queue, messages)


def read_message(body: bytes) -> tuple[KeptRecord, bool]:
    """The record of a message, and whether it is a report of the game. Raises ValueError for a broken message."""
    found = msgspec.json.decode(body, type=QueuedRecord)
    line = bytes(found.pgcr or found.record)
    if not line and not found.deleted:
        raise ValueError("found no record, expected `record` or `pgcr`")
    if not found.id and isinstance(found.instance, dict):  # the original's have no id of their own
        found.id = str(found.instance.get("instanceId"))
    if not (found.id.isascii() and found.id.isdigit() and int(found.id[:30]) <= LARGEST_ID):
        raise ValueError(f"id is {found.id[:30]!r}, expected a whole number below 2^63")
    return KeptRecord(int(found.id), line, found.visit), bool(found.pgcr)


class RetryQueue:
    """Takes back the ids of the retry queue: ours keep the time that stands in the folder, others are asked at once."""

    def __init__(self, consumer: "QueueConsumer", clock: Clock) -> None:
        self._consumer, self._clock = consumer, clock

    async def take_back(self, store: SequenceStore) -> None:
        """Do so for ever."""
        while True:
            try:
                messages = await self._consumer.take(RETRY_BATCH, 1.0)
                for each in messages:
                    text = each.body.strip(b'" \n')[:30]  # the original's older messages are JSON
                    if not (text.isdigit() and int(text) <= LARGEST_ID):
                        log.warning("no_id", say=f"{self._consumer.queue}: found {text!r}, expected an id")
                    elif "x-due" not in each.headers:
                        await store.retry(int(text), int(text), None)
                await self._consumer.done(messages)
            except ServiceAway as away:
                log.warning("away", say=f"{away}")
                await self._clock.sleep(LONGEST_PAUSE)


async def open_targets(
    stack: AsyncExitStack, options: TargetOptions, clock: Clock, *, game: bool
) -> tuple[list[RecordTarget], RecordsDatabase | None]:
    """Connect to all that are named. Raises FolderError, with exit code 75 if one is away."""
    targets: list[RecordTarget] = []
    database = None
    if options.queue:
        from sanderling.stores.rabbitmq import QueuePublisher  # noqa: PLC0415

        publisher = await stack.enter_async_context(QueuePublisher(options.queue))
        targets.append(QueueTarget(publisher, options, game=game))
    if options.database:
        opened = open_database(options.database, game=game, raw=not options.raw)
        database = await stack.enter_async_context(opened)
        targets.append(database)
    if options.raw:
        from sanderling.stores.clickhouse import Clickhouse  # noqa: PLC0415

        clickhouse = await stack.enter_async_context(Clickhouse(options.raw))
        await clickhouse.execute(RAW_TABLE)
        targets.append(RawTarget(clickhouse, clock))
    if (handover := open_handover(options, clock)) is not None:
        targets.append(EventsTarget(await stack.enter_async_context(handover)))
    return targets, database
