"""From the queue into the store: letters become rows, in batches, each of them once.

What can go wrong with a letter, and what becomes of it:

| | |
|---|---|
| no message of ours, or one that no table can hold | buried at once |
| the store refuses the batch | halved until those are alone that it refuses; they are buried, the others stored |
| others were at the same rows | back into the queue, for ever longer; after many tries buried |
| the store is not to be had | kept in hand until it is, and nothing more is taken: that is no letter's fault |

Buried is not lost: an operator sees the reason, and may have it tried again.

What the API said is stored first, where that is a store of its own, then the rows. Where somebody comes after us, it is
handed on. Then the letter is done. Whoever is killed in between does it again, and it comes to the same.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from sanderling.clock import Clock
from sanderling.engine.handover import HandOver
from sanderling.formats.instance import Message, decode
from sanderling.sequence.depth import DepthRules, Staff
from sanderling.sequence.rows import RowsError, rows_in
from sanderling.stores.instances import (
    InsertResult,
    InstanceRows,
    Instances,
    InstancesError,
    InstancesFault,
    RawInstances,
)
from sanderling.stores.queue import Delivery, Queue, QueueError


@dataclass(frozen=True, slots=True)
class StoreRules:
    """How much at once, and how patiently."""

    batch: int = 100  # letters of one transaction, some 70 KB each
    wait: float = 1.0  # seconds for a first letter, and so how long a worker may take to notice that it should stop
    gather: float = 0.5  # seconds for more of them: a commit costs as much for one as for fifty
    most_tries: int = 10
    first_delay: float = 1.0  # seconds, doubled with each try
    longest_delay: float = 1_800.0
    first_pause: float = 1.0  # the same while the store is not to be had
    longest_pause: float = 60.0
    depth: DepthRules = field(default_factory=DepthRules)

    def __post_init__(self) -> None:
        if min(self.batch, self.most_tries) < 1 or not (self.wait > 0 and self.gather >= 0):
            raise ValueError(f"{self}, expected a batch and tries from 1 up, some time to wait and none below 0")
        if not (0 < self.first_delay <= self.longest_delay and 0 < self.first_pause <= self.longest_pause):
            raise ValueError(f"{self}, expected delays and pauses above 0, the first no longer than the longest")

    def delay(self, tries: int) -> float:
        """Seconds until a letter comes back that has failed so many times."""
        return float(min(self.longest_delay, self.first_delay * 2 ** min(tries - 1, 60)))


@dataclass(slots=True)
class StoreTally:
    """What was done, for the metrics and for people."""

    stored: int = 0
    duplicates: int = 0
    buried: int = 0
    retried: int = 0
    workers: int = 0
    outages: int = 0
    trouble: str = ""  # why nothing is stored, while nothing is
    last_error: str = ""


class _Parcel(NamedTuple):
    delivery: Delivery
    rows: InstanceRows


class StoreWorkers:
    """`run` until `stop`, which lets each worker finish what it has in hand."""

    def __init__(
        self,
        queue: Queue,
        instances: Instances,
        raw: RawInstances | None,
        clock: Clock,
        rules: StoreRules | None = None,
        hand_over: HandOver[Message] | None = None,
    ) -> None:
        """Without `raw`, what the API said is stored with the rows."""
        self._queue = queue
        self._instances = instances
        self._raw = raw
        self._clock = clock
        self._rules = rules or StoreRules()
        self._hand_over = hand_over
        self._staff = Staff(self._rules.depth)
        self._stopping = False
        self._up = asyncio.Event()  # cleared while the store is not to be had
        self._up.set()
        self._pausing: set[asyncio.Event] = set()
        self._working: set[int] = set()
        self.tally = StoreTally()

    def __repr__(self) -> str:
        return f"<StoreWorkers {len(self._working)} of {self._staff.workers}, {self.tally}>"

    def stop(self) -> None:
        """Take nothing more. What cannot be stored now is left in the queue."""
        self._stopping = True
        self._up.set()
        for over in self._pausing:
            over.set()
        if self._hand_over is not None:
            self._hand_over.stop()

    async def run(self) -> None:
        """Store what comes, with as many workers as the depth of the queue calls for."""
        async with asyncio.TaskGroup() as group:
            while not self._stopping:
                for number in set(range(self._staff.workers)) - self._working:
                    self._working.add(number)
                    group.create_task(self._work(number))
                self.tally.workers = self._staff.workers
                await self._pause(self._rules.depth.every)
                if self._up.is_set():  # more workers do not help against an outage
                    self._staff.check(await self._depth(), self._clock.now())

    async def _depth(self) -> int | None:
        try:
            return (await self._queue.depth()).ready
        except QueueError as error:
            self.tally.last_error = str(error)
            return None

    async def _work(self, number: int) -> None:
        while not self._stopping and number < self._staff.workers:
            await self._up.wait()
            await self._store(await self._take())
        self._working.discard(number)

    async def _take(self) -> list[Delivery]:
        """Some letters, or none."""
        batch: list[Delivery] = []
        until = self._clock.now() + self._rules.wait
        try:
            while len(batch) < self._rules.batch and (left := until - self._clock.now()) > 0 and not self._stopping:
                some = await self._queue.take(self._rules.batch - len(batch), left)
                if not some:
                    break
                until = until if batch else self._clock.now() + self._rules.gather
                batch += some
        except QueueError as error:
            self.tally.last_error = str(error)
            if not batch:
                await self._pause(self._rules.first_pause)
        return batch

    async def _store(self, batch: Sequence[Delivery]) -> None:
        parcels: list[_Parcel] = []
        for delivery in batch:
            try:
                parcels.append(_Parcel(delivery, rows_in(delivery.key, delivery.body)))
            except RowsError as error:
                await self._bury(delivery, str(error))
        parts = [parcels] if parcels else []
        while parts:
            part = parts.pop()
            refusal = await self._keep(part)
            if refusal and refusal.fault is InstancesFault.REFUSED and len(part) > 1:
                middle = len(part) // 2
                parts += [part[middle:], part[:middle]]
            elif refusal:
                await self._give_back(part, refusal)

    async def _keep(self, part: Sequence[_Parcel]) -> InstancesError | None:
        """Store these, however long the store is not to be had; otherwise say why not. Nothing is stored by halves."""
        pause = self._rules.first_pause
        while True:
            try:
                kept = await self._insert([parcel.rows for parcel in part])
            except InstancesError as error:
                self._notice(error)
                if error.fault is not InstancesFault.DOWN or self._stopping:
                    return error
            else:
                break
            await self._pause(pause)
            pause = min(self._rules.longest_pause, 2 * pause)
        self._notice(None)
        self.tally.stored += kept.new
        self.tally.duplicates += kept.duplicates
        messages = [] if self._hand_over is None else [decode(each.delivery.body) for each in part]
        if self._hand_over is not None and not await self._hand_over.hand(messages):
            return None  # we stop, and what was taken and is not done comes again
        await self._say(partial(self._queue.done, [parcel.delivery for parcel in part]))
        return None

    async def _insert(self, batch: Sequence[InstanceRows]) -> InsertResult:
        if self._raw is None:
            return await self._instances.keep(batch)
        await self._raw.keep([rows.raw for rows in batch if rows.raw])
        return await self._instances.keep([rows._replace(raw=None) for rows in batch])

    def _notice(self, error: InstancesError | None) -> None:
        """Whether the store is to be had. Only those who have a batch in hand go on asking it, the others wait."""
        down = error is not None and error.fault is InstancesFault.DOWN
        self.tally.last_error = str(error or self.tally.last_error)
        self.tally.trouble = str(error) if down else ""
        if not down:
            self._up.set()
        elif self._up.is_set() and not self._stopping:
            self._up.clear()
            self.tally.outages += 1

    async def _give_back(self, part: Sequence[_Parcel], error: InstancesError) -> None:
        if error.fault is InstancesFault.DOWN:
            return  # we stop, and what was taken and is not done comes again
        for delivery, _ in part:
            tries = delivery.tries + 1
            if error.fault is InstancesFault.REFUSED:
                await self._bury(delivery, str(error))
            elif tries > self._rules.most_tries:
                await self._bury(delivery, f"not stored in {tries} tries: {error}")
            elif await self._say(partial(self._queue.later, delivery, self._rules.delay(tries), str(error))):
                self.tally.retried += 1

    async def _bury(self, delivery: Delivery, why: str) -> None:
        self.tally.last_error = f"letter {delivery.key}: {why}"
        if await self._say(partial(self._queue.bury, delivery, why)):
            self.tally.buried += 1

    async def _say(self, what: Callable[[], Awaitable[None]]) -> bool:
        """Tell the queue until it has heard, or until we stop: then the letter comes again, and does no harm."""
        pause = self._rules.first_pause
        while True:
            try:
                await what()
            except QueueError as error:
                self.tally.last_error = str(error)
            else:
                return True
            if self._stopping:
                return False
            await self._pause(pause)
            pause = min(self._rules.longest_pause, 2 * pause)

    async def _pause(self, seconds: float) -> None:
        """Return after so long, or when we are to stop."""
        over = asyncio.Event()
        timer = self._clock.call_later(seconds, over.set)
        self._pausing.add(over)
        try:
            if not self._stopping:
                await over.wait()
        finally:
            timer.cancel()
            self._pausing.discard(over)
