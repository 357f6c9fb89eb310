"""The loop: take a message, look it up, fetch its batch, have it read, store its rows, acknowledge it.

What happens to a message, and what comes of it:

| what is found | what comes of it |
|---|---|
| its format is switched off, or it is outside the canary | held: it stays in its queue; beyond a bound it is parked |
| no envelope of ours; a batch that nobody can read | dead letter, with the reason |
| its batch is stored already | acknowledged |
| its object is not there, or ends early | again after 1, 2, 4 … s; then dead letter |
| object store, database or broker are away | waited for, however long; nothing is blamed on it |
| its reader dies, or this process | again, alone; the third time dead letter |
| all else | its rows are stored in one transaction, then it is acknowledged |
"""

import asyncio
import hashlib
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from sanderling.clock import Clock
from sanderling.events.batches import MOST_PACKED
from sanderling.events.queues import DEAD, PARKED, Delivery, MessageQueue, light
from sanderling.events.store import EventStore, RowsRefused, StoreAway
from sanderling.events.work import Rows, WorkTask
from sanderling.files import Exit, FolderError, read_small
from sanderling.formats.envelope import Envelope, in_canary
from sanderling.observe.log import log
from sanderling.observe.report import Histogram
from sanderling.readers.pool import ReaderError, Readers
from sanderling.stores.broker import BrokerAway
from sanderling.stores.objects import ObjectMissing, Objects, ObjectsAway

T = TypeVar("T")

MOST_TRIES = 3  # of a message in whose work a process ended
MOST_HELD, MOST_HELD_BYTES = 20_000, 256 << 20  # of a queue, beyond which messages are parked
LARGEST_STEP = 500  # messages that are asked for at once while only held ones come
LOOK_SECONDS = 30.0  # between two looks at a queue that brings only what is switched off
MIXED_SECONDS = 600.0  # for which a queue counts as one that mixes formats
LONGEST_WAIT = 30.0  # between two tries of a service that is away
IN_HAND = 256 << 20  # bytes of all batches together, unpacked by estimate
UNPACKED = 8  # times as large as packed
MOST_CODES = 200  # labels of a metric
WINDOW = 600.0  # seconds over which rates are computed


class Stopping(Exception):  # noqa: N818 - it says why
    """The run ends, and what waits for a service is given back."""


@dataclass(frozen=True, slots=True)
class Modes:
    """Which messages are processed."""

    new: bool = True
    legacy: bool = True
    canary: float = 1.0  # the share of new ones

    def take(self, envelope: Envelope) -> bool:
        """Whether a message is processed."""
        if envelope.mode != "new":
            return self.legacy
        return self.new and in_canary(envelope.event_id, self.canary)


@dataclass(slots=True)
class EventFigures:
    """What a run has counted. Keys of several words are joined by commas, the platform first."""

    received: int = 0
    processed: Counter[str] = field(default_factory=Counter)
    dead: int = 0
    known: int = 0
    parked: int = 0
    items: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    categories: Counter[str] = field(default_factory=Counter)
    fetched: int = 0
    odd: int = 0
    unknown_projects: int = 0
    retried: int = 0
    took: Histogram = field(default_factory=Histogram)
    fetching: Histogram = field(default_factory=Histogram)
    reading: Histogram = field(default_factory=Histogram)
    object_errors: int = 0
    lately: deque[tuple[float, str, int, int, bool, bool]] = field(
        default_factory=deque
    )  # when, platform, good, failed

    def rates(self, now: float) -> dict[str, tuple[int, int]]:
        """By platform the items of the last ten minutes that are posts, and that failed."""
        while self.lately and self.lately[0][0] < now - WINDOW:
            self.lately.popleft()
        found: dict[str, tuple[int, int]] = {}
        for _, platform, good, failed, *_ in self.lately:
            before = found.get(platform, (0, 0))
            found[platform] = (before[0] + good, before[1] + failed)
        return found


class Room:
    """What all batches in hand share, bytes or turns, first come first served."""

    def __init__(self, whole: int) -> None:
        self.free = self._whole = whole
        self._waiting: deque[tuple[int, asyncio.Event]] = deque()

    @asynccontextmanager
    async def take(self, wanted: int) -> AsyncIterator[None]:
        """Have so many; more than there are at all is all of them."""
        wanted = min(wanted, self._whole)
        if self._waiting or wanted > self.free:
            turn = asyncio.Event()
            self._waiting.append((wanted, turn))
            try:
                await turn.wait()
            except BaseException:
                if turn.is_set():
                    self.free += wanted
                else:
                    self._waiting.remove((wanted, turn))
                self._let_in()
                raise
        else:
            self.free -= wanted
        try:
            yield
        finally:
            self.free += wanted
            self._let_in()

    def _let_in(self) -> None:
        while self._waiting and self._waiting[0][0] <= self.free:
            wanted, turn = self._waiting.popleft()
            self.free -= wanted
            turn.set()


class Feeding:
    """One queue, and what is held of it."""

    def __init__(self, queue: MessageQueue, step: int) -> None:
        self.queue = queue
        self.held: list[Delivery] = []
        self.first_step = self.step = step  # messages that may come before room is made for more
        self.since_room = 0  # held since then
        self.later: list[tuple[float, Delivery]] = []  # whose objects were not there, and when they come again
        self.mixed_until = 0.0
        self.resting = -1  # its messages when it was found to bring only what is switched off; -1: it is consumed
        self.counts: Mapping[str, int] = {}  # of the queue and of those beside it

    @property
    def held_bytes(self) -> int:
        """Of the messages that are held."""
        return sum(each.size for each in self.held)


class Consumer:
    """Takes messages from queues, and makes rows of them."""

    def __init__(
        self,
        queues: Sequence[MessageQueue],
        store: EventStore,
        objects: Objects,
        readers: Readers,
        clock: Clock,
        *,
        modes: Modes = Modes(),
        workers: int = 5,
        prefetch: int = 1,
        missing_tries: int = 5,
        drain: bool = False,
        publish: Callable[[bytes], Awaitable[None]] | None = None,
    ) -> None:
        self.figures = EventFigures()
        self.feedings = [Feeding(queue, workers * prefetch) for queue in queues]
        self.troubles: dict[str, str] = {}
        self.away_since: dict[str, float] = {}
        self.in_hand = 0
        self._store, self._objects, self._readers, self._clock = store, objects, readers, clock
        self._modes, self._workers, self._missing_tries, self._drain = modes, workers, missing_tries, drain
        self._publish = publish
        self._encoder, self._decoder = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(Rows)
        self._inbox: asyncio.Queue[tuple[Feeding, Delivery]] = asyncio.Queue(workers)
        self._turns, self._room = Room(workers), Room(IN_HAND)
        self._stopping = asyncio.Event()
        self._running = asyncio.Event()
        self._running.set()

    def stop(self) -> None:
        """Take nothing more; what is in hand ends first."""
        self._stopping.set()

    def pause(self, *, paused: bool) -> None:
        """Take nothing for a while."""
        (self._running.clear if paused else self._running.set)()

    async def run(self) -> Exit:
        """Work until it is stopped; with `drain`, until the queues are empty. WAITING if something is left."""
        async with asyncio.TaskGroup() as group:
            workers = [group.create_task(self._work()) for _ in range(self._workers)]
            feeds = [group.create_task(self._feed(each)) for each in self.feedings]
            await asyncio.wait(feeds)
            await self._inbox.join()
            for each in workers:
                each.cancel()
            left = any(each.held or each.later for each in self.feedings)
            for feeding in self.feedings:
                with suppress(BrokerAway):
                    await self._release(feeding)
        return Exit.WAITING if left and self._drain else Exit.DONE

    # Feeding.

    async def _feed(self, feeding: Feeding) -> None:
        """Hand the messages of a queue to the workers, and hold those that are not wanted."""
        pause = 1.0
        while not self._stopping.is_set():
            await self._running.wait()
            try:
                if not await self._feed_one(feeding):
                    return
                self._well(feeding.queue.name)
                pause = 1.0
            except BrokerAway as error:
                self._bad(feeding.queue.name, str(error))
                feeding.held, feeding.later = [], []  # they come again
                feeding.since_room = 0
                await self._sleep(pause)
                pause = min(2 * pause, LONGEST_WAIT)

    async def _feed_one(self, feeding: Feeding) -> bool:
        """The next step with a queue; False if it is drained."""
        queue, now = feeding.queue, self._clock.now
        if feeding.resting >= 0:
            await self._sleep(LOOK_SECONDS)
            if not self._stopping.is_set() and await queue.count() != feeding.resting:
                feeding.resting = -1
            return True
        for due, again in [each for each in feeding.later if each[0] <= now()]:
            feeding.later.remove((due, again))
            await self._hand_over(feeding, again)
        delivery = await queue.take(0.2 if self._drain or feeding.later else 2.0)
        if delivery is None:
            if feeding.held and now() > feeding.mixed_until and not self._drain:
                await self._rest(feeding)
            return not self._drain or bool(self.in_hand or feeding.later)
        self.figures.received += 1
        delivery.first_wall = self._clock.wall()
        if delivery.file:
            await self._hand_over(feeding, delivery)
            return True
        try:
            rows = await self._ask(WorkTask(self._clock.wall()), delivery.body)
        except ReaderError as error:
            rows = Rows(refused=f"its reader ended ({error.reason}: {error.detail[-300:]})")
        if rows.envelope is None:
            await self._bury(feeding, delivery, rows.refused)
            return True
        delivery.envelope = rows.envelope
        if self._modes.take(rows.envelope):
            feeding.mixed_until = now() + MIXED_SECONDS
            feeding.step = feeding.first_step
            await self._hand_over(feeding, delivery)
        else:
            await self._hold(feeding, delivery)
        return True

    async def _hand_over(self, feeding: Feeding, delivery: Delivery) -> None:
        self.in_hand += 1
        await self._inbox.put((feeding, delivery))

    async def _hold(self, feeding: Feeding, delivery: Delivery) -> None:
        """Leave a message in its queue, unacknowledged; one too many is parked beside it."""
        full = len(feeding.held) >= MOST_HELD or feeding.held_bytes + delivery.size > MOST_HELD_BYTES
        if full and self._clock.now() > feeding.mixed_until:
            feeding.held.append(light(delivery))
            await self._rest(feeding)
            return
        if full:
            await feeding.queue.move(delivery, PARKED, "its format is switched off")
            self.figures.parked += 1
            return
        feeding.held.append(light(delivery))
        await self._make_room(feeding)

    async def _make_room(self, feeding: Feeding) -> None:
        """A message that waits does not keep others from coming."""
        feeding.since_room += 1
        if feeding.since_room >= feeding.step:
            feeding.step = min(2 * feeding.step, LARGEST_STEP)
            feeding.since_room = 0
            await feeding.queue.make_room(feeding.step)

    async def _rest(self, feeding: Feeding) -> None:
        """Give back what is held, and look again when something has changed in the queue."""
        await self._release(feeding)
        feeding.since_room, feeding.step = 0, feeding.first_step
        before, count = -1, 0
        while count != before and not self._stopping.is_set():  # what was given back is counted a little later
            await self._sleep(1.0)
            before, count = count, await feeding.queue.count()
        feeding.resting = count

    async def _release(self, feeding: Feeding) -> None:
        held = [*feeding.held, *(delivery for _, delivery in feeding.later)]
        feeding.held, feeding.later = [], []
        await feeding.queue.rest(held)

    # Working.

    async def _work(self) -> None:
        while True:
            feeding, delivery = await self._inbox.get()
            try:
                await self._process(feeding, delivery)
            except Stopping:
                await feeding.queue.give_back([delivery])
            except BrokerAway as error:
                self._bad(feeding.queue.name, str(error))  # it comes again, and is known by then
            finally:
                self.in_hand -= 1
                self._inbox.task_done()

    async def _process(self, feeding: Feeding, delivery: Delivery) -> None:
        """What the table in the module's docstring says."""
        began = self._clock.now()
        message = hashlib.blake2b(delivery.body + delivery.file.encode(), digest_size=16).hexdigest()
        why = "this process ended"
        while True:
            tries = await self._patiently("database", lambda: self._store.begin(message, self._clock.wall()))
            if tries > MOST_TRIES:
                await self._bury(feeding, delivery, f"{why}, {MOST_TRIES} times")
                await self._patiently("database", lambda: self._store.end(message))  # it may be mended and come back
                return
            async with self._turns.take(1 if tries == 1 else self._workers):  # after a crash alone
                try:
                    rows = await self._rows_of(delivery)
                except ReaderError as error:
                    if error.reason == "start":
                        raise FolderError(f"no reader can be started: {error.detail[-300:]}", "", Exit.LATER) from None
                    why = f"its reader ended ({error.reason}: {error.detail[-300:]})"
                    self.figures.retried += 1
                    continue
                except Stopping:
                    with suppress(StoreAway):
                        await self._store.end(message)
                    raise
                if rows is None:
                    if delivery.envelope is not None:
                        await self._tell(delivery.envelope.identity)
                    self.figures.known += 1
                    await self._patiently("database", lambda: self._store.end(message))
                    await feeding.queue.done(delivery)
                elif rows.early and delivery.missing + 1 < self._missing_tries:
                    await self._patiently("database", lambda: self._store.end(message))
                    delivery.missing += 1
                    feeding.later.append((self._clock.now() + 2 ** (delivery.missing - 1), delivery))
                    await self._make_room(feeding)
                elif rows.refused:
                    await self._patiently("database", lambda: self._store.end(message))
                    await self._bury(feeding, delivery, rows.refused)
                else:
                    await self._keep(feeding, delivery, message, rows, began)
                return

    async def _rows_of(self, delivery: Delivery) -> Rows | None:
        """The rows of a batch, or why there are none; None if they are stored already. Raises ReaderError, Stopping."""
        envelope, wall = delivery.envelope, self._clock.wall()
        if envelope is None:
            body = await asyncio.to_thread(read_small, Path(delivery.file), MOST_PACKED)
            return await self._unless_known(await self._ask(WorkTask(wall, is_file=True), body))
        if await self._patiently("database", lambda: self._store.known(envelope.identity)):
            return None
        if envelope.mode == "inline":
            return await self._ask(WorkTask(wall, envelope), delivery.body)
        began = self._clock.now()
        try:
            size = await self._patiently("objects", lambda: self._objects.size(envelope.bucket, envelope.key))
            if size > MOST_PACKED:
                return Rows(refused=f"the object has {size:,} bytes, expected at most {MOST_PACKED:,}")
            async with self._room.take(size * UNPACKED):
                body = await self._patiently("objects", lambda: self._objects.get(envelope.bucket, envelope.key))
                self.figures.fetched += 1
                self.figures.fetching.add(self._clock.now() - began)
                return await self._ask(WorkTask(wall, envelope), body)
        except ObjectMissing as error:
            return Rows(refused=str(error), early=True)

    async def _unless_known(self, rows: Rows) -> Rows | None:
        identity = rows.envelope.identity if rows.envelope else ""
        known = await self._patiently("database", lambda: self._store.known(identity))
        return None if known else rows

    async def _ask(self, task: WorkTask, body: bytes) -> Rows:
        began = self._clock.now()
        answer = await self._readers.run("events", self._encoder.encode(task), body)
        self.figures.reading.add(self._clock.now() - began)
        return self._decoder.decode(answer)

    async def _keep(self, feeding: Feeding, delivery: Delivery, message: str, rows: Rows, began: float) -> None:
        """Store the rows of a batch, say so where it is wanted, and acknowledge."""
        envelope, wall, figures = rows.envelope, self._clock.wall(), self.figures
        assert envelope is not None  # noqa: S101 - rows have one
        try:
            new = await self._patiently("database", lambda: self._store.keep(message, rows, wall))
        except RowsRefused as error:
            await self._bury(feeding, delivery, f"the database refuses its rows: {error}")
            return
        succeeded, failed = (sum(each[place] for each in rows.counts.values()) for place in (0, 1))
        await self._tell(envelope.identity)
        await feeding.queue.done(delivery)
        took = self._clock.now() - began
        if not new:
            figures.known += 1
            return
        figures.took.add(took)
        figures.processed[envelope.platform or "unknown"] += 1
        figures.unknown_projects += rows.unknown_projects
        for platform, (good, bad) in rows.counts.items():
            figures.items[f"{platform or 'unknown'},success"] += good
            figures.items[f"{platform or 'unknown'},error"] += bad
        self._count_errors(rows)
        if envelope.notes:
            figures.odd += 1
            log.warning(
                "batch_is_odd", event_id=envelope.event_id, job=envelope.job_id, notes="; ".join(envelope.notes)
            )
        log.info("batch", event_id=envelope.event_id, job=envelope.job_id, platform=envelope.platform,
                 success=succeeded, errors=failed, seconds=round(took, 3))  # fmt: skip

    async def _tell(self, identity: str) -> None:
        """Publish what became of a batch, also when it comes again: the process may have ended before it was told."""
        publish = self._publish
        if publish is None:
            return
        sql = "SELECT project_id, job_id, posts, errors FROM processed_events WHERE identity = $1"
        for project, job, good, bad in await self._patiently("database", lambda: self._store.read(sql, identity)):
            if project:  # a dry run was ordered by nobody
                result = {"project_id": project, "job_id": job, "task_type": "analyze_result",
                          "batch_size": good + bad, "success_count": good, "error_count": bad}  # fmt: skip
                said = msgspec.json.encode(result)
                await self._patiently("broker", lambda: publish(said))  # noqa: B023 - there is one row

    def _count_errors(self, rows: Rows) -> None:
        figures, now = self.figures, self._clock.now()
        kinds: dict[str, set[str]] = {}
        for row in rows.errors:
            platform, code, category = row[3] or "unknown", row[4], row[5]
            key = f"{platform},{code}"
            # Strangers make codes up; a metric cannot have as many labels.
            figures.codes[key if key in figures.codes or len(figures.codes) < MOST_CODES else f"{platform},OTHER"] += 1
            figures.categories[f"{platform},{category}"] += 1
            kinds.setdefault(platform, set()).add(category)
        for platform, (good, bad) in rows.counts.items():
            found = kinds.get(platform or "unknown", ())
            figures.lately.append((now, platform or "unknown", good, bad, "parsing" in found, "storage" in found))

    async def _bury(self, feeding: Feeding, delivery: Delivery, why: str) -> None:
        await feeding.queue.move(delivery, DEAD, why)
        self.figures.dead += 1
        if delivery.envelope is None or "reader" not in why:
            self.figures.lately.append((self._clock.now(), "unknown", 0, 0, True, False))
        log.warning("dead_letter", queue=feeding.queue.name, why=why)

    # Services that are away.

    async def _patiently(self, service: str, action: Callable[[], Awaitable[T]]) -> T:
        """The answer of a service, whenever it comes. Raises Stopping."""
        pause = 0.5
        while True:
            try:
                answer = await action()
            except (StoreAway, ObjectsAway, BrokerAway) as error:
                self._bad(service, str(error))
                self.figures.object_errors += service == "objects"
                await self._sleep(pause)
                pause = min(2 * pause, LONGEST_WAIT)
                if self._stopping.is_set():
                    raise Stopping from None
            else:
                self._well(service)
                return answer

    def _bad(self, service: str, trouble: str) -> None:
        if service not in self.troubles:
            log.warning("away", service=service, trouble=trouble)
        self.troubles[service] = trouble
        self.away_since.setdefault(service, self._clock.now())

    def _well(self, service: str) -> None:
        if self.troubles.pop(service, None) is not None:
            log.info("back", service=service)
            self.away_since.pop(service, None)

    async def _sleep(self, seconds: float) -> None:
        """Wait, or until it is to stop."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
