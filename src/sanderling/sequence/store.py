"""From the queue into the store: letters become rows, in batches, each of them once.

What can go wrong with a letter, and what becomes of it:

| | |
|---|---|
| no message of ours, or one that no table can hold | buried at once |
| the store refuses the batch | halved until those are alone that it refuses; they are buried, the others stored |
| others were at the same rows | back into the queue, for ever longer; after many tries buried |
| the store is not to be had | kept in hand until it is, and nothing more is taken: that is no letter's fault |

How many workers store depends on how many letters wait for them.

Buried is not lost: an operator sees the reason, and may have it tried again.

What the API said is stored first, where that is a store of its own, then the rows. Where somebody comes after us, it is
handed on. Then the letter is done. Whoever is killed in between does it again, and it comes to the same.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from sanderling.clock import Clock, Pauses
from sanderling.engine.handover import HandOver
from sanderling.formats.instance import Message, decode
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
class DepthRules:
    """When there are more workers or fewer. A check is one look at the queue."""

    least: int = 1  # never none: a queue that nobody empties would look like one that nobody fills
    most: int = 16
    start: int = 4
    above: int = 1_000  # letters that call for more workers, if seen at so many checks in a row
    checks_up: int = 2
    below: int = 100  # and those for which fewer will do
    checks_down: int = 3
    share_up: float = 0.2  # of the workers, by how many there are more; at least one
    share_down: float = 0.1
    largest_step: int = 10
    every: float = 300.0  # seconds between checks
    cooldown: float = 120.0  # seconds after a change without another: its effect must show first

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.start <= self.most:
            raise ValueError(
                f"{self.least} to {self.most} workers, {self.start} at the start; expected 1 ≤ these in order"
            )
        if not 0 <= self.below <= self.above:
            raise ValueError(
                f"fewer workers below {self.below} letters, more above {self.above}; expected them in order"
            )
        if min(self.checks_up, self.checks_down, self.largest_step) < 1 or min(self.share_up, self.share_down) < 0:
            raise ValueError(f"{self}, expected checks and steps from 1 up, and shares from 0 up")
        if not (self.every > 0 and self.cooldown >= 0):
            raise ValueError(f"a check every {self.every} s and a rest of {self.cooldown} s; expected more than none")


class WorkerCount:
    """How many `workers` there should be. Between the two depths nothing changes, and earlier checks are forgotten."""

    def __init__(self, rules: DepthRules) -> None:
        self._rules = rules
        self.workers = rules.start
        self._seen: tuple[int, float] | None = None  # the depth last read, and when
        self._high = self._low = 0  # checks in a row
        self._changed = float("-inf")

    def __repr__(self) -> str:
        return f"<Staff {self.workers} workers, {self._high} checks high, {self._low} low>"

    def check(self, depth: int | None, now: float) -> int:
        """Look at the queue, and say how many workers there should be; None if its depth could not be read."""
        known = self._known(depth, now)
        self._high = self._high + 1 if known is not None and known > self._rules.above else 0
        self._low = self._low + 1 if known is not None and known < self._rules.below else 0
        wanted = self._wanted()
        if wanted != self.workers and now - self._changed >= self._rules.cooldown:
            self.workers, self._changed = wanted, now
            self._high = self._low = 0
        return self.workers

    def _known(self, depth: int | None, now: float) -> int | None:
        """The depth, or for a while the one before; then nobody knows, and nothing changes."""
        if depth is not None:
            self._seen = depth, now
        elif self._seen and now - self._seen[1] >= 2 * self._rules.every:
            self._seen = None
        return self._seen[0] if self._seen else None

    def _wanted(self) -> int:
        rules = self._rules
        if self._high >= rules.checks_up:
            return min(rules.most, self.workers + self._step(rules.share_up))
        if self._low >= rules.checks_down:
            return max(rules.least, self.workers - self._step(rules.share_down))
        return self.workers

    def _step(self, share: float) -> int:
        return min(self._rules.largest_step, max(1, int(self.workers * share)))


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
        self._staff = WorkerCount(self._rules.depth)
        self._pauses = Pauses(clock)
        self._up = asyncio.Event()  # cleared while the store is not to be had
        self._up.set()
        self._working: set[int] = set()
        self.tally = StoreTally()

    def __repr__(self) -> str:
        return f"<StoreWorkers {len(self._working)} of {self._staff.workers}, {self.tally}>"

    def stop(self) -> None:
        """Take nothing more. What cannot be stored now is left in the queue."""
        self._pauses.stop()
        self._up.set()
        if self._hand_over is not None:
            self._hand_over.stop()

    async def run(self) -> None:
        """Store what comes, with as many workers as the depth of the queue calls for."""
        async with asyncio.TaskGroup() as group:
            while not self._pauses.stopped:
                for number in set(range(self._staff.workers)) - self._working:
                    self._working.add(number)
                    group.create_task(self._work(number))
                self.tally.workers = self._staff.workers
                await self._pauses.sleep(self._rules.depth.every)
                if self._up.is_set():  # more workers do not help against an outage
                    self._staff.check(await self._depth(), self._clock.now())

    async def _depth(self) -> int | None:
        try:
            return (await self._queue.depth()).ready
        except QueueError as error:
            self.tally.last_error = str(error)
            return None

    async def _work(self, number: int) -> None:
        while not self._pauses.stopped and number < self._staff.workers:
            await self._up.wait()
            await self._store(await self._take())
        self._working.discard(number)

    async def _take(self) -> list[Delivery]:
        """Some letters, or none."""
        batch: list[Delivery] = []
        until = self._clock.now() + self._rules.wait
        try:
            while (
                len(batch) < self._rules.batch and (left := until - self._clock.now()) > 0 and not self._pauses.stopped
            ):
                some = await self._queue.take(self._rules.batch - len(batch), left)
                if not some:
                    break
                until = until if batch else self._clock.now() + self._rules.gather
                batch += some
        except QueueError as error:
            self.tally.last_error = str(error)
            if not batch:
                await self._pauses.sleep(self._rules.first_pause)
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
                if error.fault is not InstancesFault.DOWN or self._pauses.stopped:
                    return error
            else:
                break
            await self._pauses.sleep(pause)
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
        elif self._up.is_set() and not self._pauses.stopped:
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
            if self._pauses.stopped:
                return False
            await self._pauses.sleep(pause)
            pause = min(self._rules.longest_pause, 2 * pause)
