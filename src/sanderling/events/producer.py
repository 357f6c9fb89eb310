"""Items of our own crawlers become batches, and each batch a message, as other crawlers send them.

    crawler --items--> BatchSink --batch--> object store
                                 --event--> outbox --> exchange

The object first, then the event, which is put into the outbox in a transaction; the outbox sees to the rest. Whoever
dies between the two leaves an object that nobody knows of. When the crawler hands the same items again, the same batch
is made of them, and it finds itself there: names and ids are made from the job, the place of the batch in it and what
the batch says, and from nothing else. So nothing has to be remembered.

| | |
|---|---|
| path | `BUCKET/PLATFORM/PROJECT/ENTITY/batch_000.json`; with `-DIGEST` before the dot if another batch is there |
| body | a JSON list, packed with zstd, and the metadata that say so |
| event | `data.collected`, version 2.0; its id is the same for the same batch of a job |

Tricky bits:

- No object is ever replaced by another: an event that is on its way may still speak of it. A crawl that begins anew
  with the same job, or one whose batches are cut otherwise, gets names with a digest. Two processes with one job that
  write a first batch in the same instant are not told apart; give each a job of its own.
- An item is safe once `flush` has returned; until then a crawler must be ready to hand it again. An item that is handed
  twice ends in one row.
- While the object store or the database is away, `add` and `flush` do not return. What they raise is final. If the
  rules have `tries`, a store that answers and fails each time is final as well.
"""

import asyncio
import hashlib
import random
import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from sanderling.clock import Clock
from sanderling.events.batches import SIZES
from sanderling.events.envelopes import EVENT_TYPE, EnvelopeError, read_envelope
from sanderling.events.job_ids import as_uuid, parse_job
from sanderling.events.rows import EVENTS_EXCHANGE
from sanderling.limit.backoff import BackoffRules, delay
from sanderling.observe import logs
from sanderling.stores.analytics import AnalyticsError, OutboxMessage
from sanderling.stores.objects import ObjectError, ObjectFault, Objects, steps_of

if sys.version_info >= (3, 14):
    from compression.zstd import compress
else:
    from backports.zstd import compress

T = TypeVar("T")

log = logs.get(__name__)

LEVEL = 2
USUAL_SIZE = 50
LARGEST_ITEM = 4 << 20
LONGEST_STEP = 60  # characters of a part of a path: 240 bytes at most, and a folder's name may have 255

_STEP = re.compile(r"[^\w-]+")


class ItemError(ValueError):
    """An item cannot be part of a batch, and never will."""


@dataclass(frozen=True, slots=True)
class BatchSource:
    """Whose batches they are, said with each. Without a project it is the one that the job's id names."""

    platform: str
    job_id: str
    project_id: str = ""
    brand_name: str = ""
    keyword: str = ""
    task_type: str = "research_and_crawl"
    bucket: str = "crawl-results"
    exchange: str = EVENTS_EXCHANGE
    routing_key: str = EVENT_TYPE

    def __post_init__(self) -> None:
        """Raises ValueError if whoever reads our messages would not read what is meant."""
        if why := _describe_misreading(self):
            raise ValueError(f"batches of the job {self.job_id[:80]!r}: {why}")

    @property
    def project(self) -> str:
        """The project, in the spelling of the rows."""
        return as_uuid(self.project_id) or self.project_id or parse_job(self.job_id).project or ""

    @property
    def folder(self) -> str:
        """Where the batches are, within the bucket."""
        job = parse_job(self.job_id)
        named = "_".join(part for part in (job.kind if job.kind != "other" else "", job.entity) if part)
        return "/".join(_step(part) for part in (self.platform, self.project, named or "brand"))


@dataclass(frozen=True, slots=True)
class SinkRules:
    """How large a batch is, and how long an item waits for it to become so."""

    items: int | None = None  # what is usual for the platform
    size: int = 8 << 20  # bytes of a batch once unpacked
    wait: float = 10.0  # seconds
    backoff: BackoffRules = field(default_factory=lambda: BackoffRules(base=0.5, longest=60.0))
    # Failures of a store that can be reached, or has no room, after which a batch is given up; None waits for ever.
    tries: int | None = None

    def __post_init__(self) -> None:
        if (self.items is not None and self.items < 1) or self.size < LARGEST_ITEM or not self.wait > 0:
            raise ValueError(
                f"{self}, expected items from 1 up, a size from {LARGEST_ITEM:,} up, and some time to wait"
            )


class StoredBatch(NamedTuple):
    """A batch that was made."""

    event_id: str
    path: str
    number: int  # of the job's, from 0
    items: int


@dataclass(slots=True)
class SinkTally:
    """What was done."""

    items: int = 0  # that are safe
    batches: int = 0
    failures: int = 0
    trouble: str = ""  # why nothing goes on, while it does not


class AddsMessages(Protocol):
    """Where messages go that must go out: an outbox, or whoever sends from it."""

    async def add(self, messages: Sequence[OutboxMessage], /) -> None:
        """Return when they are durable. Raises AnalyticsError."""


class BatchSink:
    """`add` items, then `flush`. With `run` beside them, no item waits longer than the rules say."""

    def __init__(
        self,
        objects: Objects,
        outbox: AddsMessages,
        clock: Clock,
        rng: random.Random,
        source: BatchSource,
        rules: SinkRules | None = None,
    ) -> None:
        self.tally = SinkTally()
        self._objects = objects
        self._outbox = outbox
        self._clock = clock
        self._rng = rng
        self._source = source
        self._rules = rules or SinkRules()
        self._most = self._rules.items or SIZES.get(source.platform) or USUAL_SIZE
        self._waiting: list[bytes] = []
        self._size = 0
        self._since = 0.0  # when the first of them came
        self._next = 0
        self._turn = asyncio.Lock()
        self._news = asyncio.Event()
        self._stopping = False

    def __repr__(self) -> str:
        return f"<BatchSink of {self._source.job_id}, {len(self._waiting)} items wait, {self.tally}>"

    async def add(self, item: Mapping[str, object]) -> None:
        """Take an item; if that fills a batch, return when the batch is safe.

        Raises ItemError if it cannot be part of a batch; then it was not taken, and nothing else is any the worse.
        """
        written = _encode_item(item)
        if not self._waiting:
            self._since = self._clock.now()
            self._news.set()
        self._waiting.append(written)
        self._size += len(written)
        if self._full:
            await self._emit(whole=True)

    async def flush(self) -> None:
        """Return when all that was taken is safe: in the object store, and its event in the outbox."""
        while self._waiting:
            await self._emit(whole=False)

    def stop(self) -> None:
        """Have `run` flush and end."""
        self._stopping = True
        self._news.set()

    async def run(self) -> None:
        """See to it that no item waits for long; until told to stop."""
        while not self._stopping:
            self._news.clear()
            due = self._since + self._rules.wait
            if self._waiting and self._clock.now() >= due:
                await self._emit(whole=False)
                continue
            timer = self._clock.call_later(due - self._clock.now(), self._news.set) if self._waiting else None
            try:
                await self._news.wait()
            finally:
                if timer is not None:
                    timer.cancel()
        await self.flush()

    @property
    def _full(self) -> bool:
        return len(self._waiting) >= self._most or self._size >= self._rules.size

    def _first(self) -> list[bytes]:
        """The items of the next batch."""
        size, some = 0, self._waiting[: self._most]
        for place, written in enumerate(some):
            size += len(written)
            if size > self._rules.size:
                return some[:place]
        return some

    async def _emit(self, *, whole: bool) -> None:
        """Make a batch of the first items; nothing if a whole one is meant and somebody else has just made it."""
        async with self._turn:
            if not self._waiting or (whole and not self._full):
                return
            some = self._first()
            made = await self._stored(some, self._next)
            event = OutboxMessage(
                exchange=self._source.exchange,
                routing_key=self._source.routing_key,
                body=_event(self._source, made, self._clock.wall()),
                created_at=self._clock.wall(),
            )
            await self._retry(lambda: self._outbox.add([event]))
            # Only now: whoever was cancelled before this point has the same items before them.
            del self._waiting[: len(some)]
            self._size -= sum(map(len, some))
            self._since = self._clock.now()
            self._next += 1
            self.tally.items += len(some)
            self.tally.batches += 1

    async def _stored(self, some: Sequence[bytes], number: int) -> StoredBatch:
        """Put a batch into the store, where it may be already."""
        plain = b"[" + b",".join(some) + b"]"
        body = compress(plain, LEVEL)
        digest = _digest(self._source.job_id, number, plain)
        metadata = {
            "compressed": "true",
            "compression-algorithm": "zstd",
            "compression-level": str(LEVEL),
            "original-size": str(len(plain)),
            "compressed-size": str(len(body)),
        }
        bucket, name = self._source.bucket, f"{self._source.folder}/batch_{number:03}"
        key = f"{name}.json"
        if not await self._retry(lambda: self._ours(key, body)):
            key = f"{name}-{digest[:12]}.json"
        await self._retry(lambda: self._objects.put(bucket, key, body, metadata))
        return StoredBatch(f"evt_{digest}", f"{bucket}/{key}", number, len(some))

    async def _ours(self, key: str, body: bytes) -> bool:
        """Whether nothing is there, or this very batch."""
        try:
            return (await self._objects.get(self._source.bucket, key, len(body))).body == body
        except ObjectError as error:
            if error.unavailable:
                raise
            # Who may write and not read cannot know, and takes a name that only this batch has.
            return error.fault is ObjectFault.MISSING

    async def _retry(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer, as soon as the store is available."""
        failed = stayed = 0
        while True:
            try:
                found = await ask()
            except (AnalyticsError, ObjectError) as error:
                if not error.transient:
                    raise
                failed += 1
                stayed += error.stays
                if self._rules.tries is not None and stayed >= self._rules.tries:
                    raise error.given_up(stayed) from error
                self._note(str(error), failed)
            else:
                self.tally.trouble = ""
                return found
            await self._clock.sleep(delay(self._rules.backoff, failed, self._rng))

    def _note(self, why: str, failed: int) -> None:
        if failed.bit_count() == 1:  # the first, and then ever more rarely
            log.warning("batch_waits", job=self._source.job_id, why=why, failures=failed)
        self.tally.failures += 1
        self.tally.trouble = why


def _describe_misreading(source: BatchSource) -> str:
    """What would be read otherwise than it is meant; empty if nothing."""
    if not source.project:
        return "it names no project, and none is given"
    try:
        read = read_envelope(_event(source, StoredBatch("evt", f"{source.bucket}/key", 0, 1), 0.0))
    except EnvelopeError as error:
        return str(error)
    if read.notes:
        return "; ".join(read.notes)
    meant, found = (source.platform, source.project), (read.context.platform, read.context.project_id)
    if found != meant:
        return f"platform and project are {meant}, which would be read as {found}"
    try:
        steps_of(source.bucket, source.folder)
    except ObjectError as error:
        return str(error)
    return ""


def _step(name: str) -> str:
    return _STEP.sub("_", name)[:LONGEST_STEP]


def _digest(job_id: str, number: int, plain: bytes) -> str:
    """What a batch of a job is known by."""
    digest = hashlib.blake2b(f"{job_id}\0{number}\0".encode(), digest_size=16)
    digest.update(plain)
    return digest.hexdigest()


def _encode_item(item: Mapping[str, object]) -> bytes:
    try:
        written = msgspec.json.encode(item)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise ItemError(f"an item cannot be written as JSON: {error}") from None
    if not written.startswith(b"{"):
        raise ItemError(f"an item is a {type(item).__name__}, expected an object")
    if len(written) > LARGEST_ITEM:
        raise ItemError(f"an item has {len(written):,} bytes, expected at most {LARGEST_ITEM:,}")
    return written


def _event(source: BatchSource, made: StoredBatch, wall: float) -> bytes:
    """The message that a batch is there."""
    return msgspec.json.encode(
        {
            "event_id": made.event_id,
            "event_type": EVENT_TYPE,
            "timestamp": datetime.fromtimestamp(max(wall, 1.0), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "payload": {
                "minio_path": made.path,
                "project_id": source.project or None,
                "job_id": source.job_id,
                "platform": source.platform,
                "batch_index": made.number,
                "content_count": made.items,
                "task_type": source.task_type,
                "keyword": source.keyword,
                "brand_name": source.brand_name,
            },
        }
    )
