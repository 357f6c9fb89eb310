"""The loop with everything around it in memory, on virtual time."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from sanderling.clock import LoopClock
from sanderling.events.consume import Consumer, Modes
from sanderling.events.queues import Delivery
from sanderling.events.store import RowsRefused, StoreAway
from sanderling.events.work import BUILT_IN, Rows, WorkOptions
from sanderling.formats.envelope import QUEUE
from sanderling.readers.pool import Readers
from sanderling.stores.broker import BrokerAway
from sanderling.stores.objects import ObjectMissing, ObjectsAway

PROJECT = "fc5d5ffb-36cc-4c8d-a288-f5215af7fb80"
JOB = f"{PROJECT}-brand-0"


def item(one: str = "1", **meta: object) -> dict[str, Any]:
    return {
        "meta": {"id": one, "platform": "TIKTOK", "fetch_status": "success", **meta},
        "content": {"text": "great phone"},
    }


def inline(one: str = "1", **meta: object) -> bytes:
    return json.dumps(item(one, job_id=JOB, **meta)).encode()


def event(number: int, **payload: object) -> bytes:
    said = {"minio_path": f"bucket/{number}.json", "job_id": JOB, "platform": "tiktok", **payload}
    return json.dumps({"event_id": f"evt_{number}", "payload": said}).encode()


class MemoryQueue:
    """A queue as RabbitMQ has them: at most `room` messages are taken and not done."""

    def __init__(self, clock: LoopClock, room: int, name: str = QUEUE) -> None:
        self.name, self.room, self.away = name, room, False
        self.waiting: list[bytes] = []
        self.taken: list[Delivery] = []
        self.ended: list[bytes] = []
        self.beside: dict[str, list[bytes]] = {}
        self.whys: list[str] = []
        self.takes = 0
        self._clock, self._uncounted, self._most = clock, 0, 0

    async def take(self, seconds: float) -> Delivery | None:
        self.takes += 1
        until = self._clock.now() + seconds
        while not self.waiting or len(self.taken) - self._uncounted >= max(self.room, self._most):
            self._check()
            if self._clock.now() >= until:
                return None
            await self._clock.sleep(0.05)
        self._check()
        body = self.waiting.pop(0)
        delivery = Delivery(body, "", body, len(body))
        self.taken.append(delivery)
        return delivery

    def _check(self) -> None:
        if self.away:
            self.waiting = [each.handle for each in self.taken] + self.waiting
            self.taken, self._uncounted = [], 0
            raise BrokerAway("nobody answers")

    async def done(self, delivery: Delivery) -> None:
        self._check()
        self.taken.remove(delivery)
        self.ended.append(delivery.handle)

    async def give_back(self, deliveries: Sequence[Delivery]) -> None:
        self.waiting = [each.handle for each in deliveries] + self.waiting
        for each in deliveries:
            self.taken.remove(each)

    async def make_room(self, wanted: int) -> None:
        self._uncounted, self._most = len(self.taken), wanted

    async def rest(self, deliveries: Sequence[Delivery]) -> None:
        self._uncounted = self._most = 0
        await self.give_back(deliveries)

    async def move(self, delivery: Delivery, suffix: str, why: str) -> None:
        self.beside.setdefault(suffix, []).append(delivery.body)
        self.whys.append(why)
        await self.done(delivery)

    async def count(self, suffix: str = "") -> int:
        return len(self.beside.get(suffix, [])) if suffix else len(self.waiting)


@dataclass
class MemoryStore:
    """A database; `away` and `refuses` are its faults."""

    clock: LoopClock
    batches: dict[str, Rows] = field(default_factory=dict)
    tries: dict[str, int] = field(default_factory=dict)
    away: bool = False
    refuses: bool = False
    slow: float = 0.0
    at_once: int = 0
    most_at_once: int = 0

    def _check(self) -> None:
        if self.away:
            raise StoreAway("no database")

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def begin(self, message: str, wall: float) -> int:
        self._check()
        self.tries[message] = self.tries.get(message, 0) + 1
        return self.tries[message]

    async def end(self, message: str) -> None:
        self._check()
        self.tries.pop(message, None)

    async def known(self, identity: str) -> bool:
        self._check()
        return identity in self.batches

    async def keep(self, message: str, rows: Rows, wall: float) -> bool:
        self._check()
        if self.refuses:
            raise RowsRefused("too wide")
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await self.clock.sleep(self.slow)
        self.at_once -= 1
        assert rows.envelope is not None
        new = rows.envelope.identity not in self.batches
        self.batches[rows.envelope.identity] = rows
        self.tries.pop(message, None)
        return new

    async def read(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        self._check()
        found = self.batches.get(str(values[0]))
        return [] if found is None or found.envelope is None else [(PROJECT, found.envelope.job_id, 1, 0)]

    @property
    def ids(self) -> list[str]:
        return sorted(row[0] for rows in self.batches.values() for row in rows.posts)


@dataclass
class MemoryObjects:
    """A store of objects."""

    there: dict[str, bytes] = field(default_factory=dict)
    away: bool = False
    looks: list[str] = field(default_factory=list)

    async def size(self, bucket: str, key: str) -> int:
        self.looks.append(key)
        if self.away:
            raise ObjectsAway("no store")
        if f"{bucket}/{key}" not in self.there:
            raise ObjectMissing(f"{bucket}/{key} is not there")
        return len(self.there[f"{bucket}/{key}"])

    async def get(self, bucket: str, key: str) -> bytes:
        if self.away:
            raise ObjectsAway("no store")
        return self.there[f"{bucket}/{key}"]

    async def check(self) -> None: ...


@dataclass
class Play:
    """All of it."""

    clock: LoopClock
    queue: MemoryQueue
    store: MemoryStore
    objects: MemoryObjects
    readers: Readers
    consumer: Consumer
    told: list[bytes]


def make_consumer(*, tells: bool = False, modes: Modes = Modes(), workers: int = 2, **more: Any) -> Play:  # noqa: B008
    clock = LoopClock()
    queue = MemoryQueue(clock, workers)
    store, objects, told = MemoryStore(clock), MemoryObjects(), list[bytes]()
    argument = msgspec.msgpack.encode(WorkOptions(BUILT_IN, ".", False))
    readers = Readers("sanderling.events.work:open_work", argument, count=0, clock=clock)

    async def tell(body: bytes) -> None:
        told.append(body)

    consumer = Consumer(
        [queue], store, objects, readers, clock, modes=modes, workers=workers, publish=tell if tells else None,
        **{"drain": True, **more},
    )  # fmt: skip
    return Play(clock, queue, store, objects, readers, consumer, told)
