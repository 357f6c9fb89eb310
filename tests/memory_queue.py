"""A queue in memory, which fails when it is told to."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any

from sanderling.clock import Clock
from sanderling.stores.queue import Dead, Delivery, Depth, Letter, QueueError


@dataclass(slots=True, eq=False)
class _Waiting:
    number: int
    letter: Letter
    tries: int = 0
    due: float = 0.0
    lease: int = 0  # the number of the delivery that has it


@dataclass(slots=True)
class MemoryQueue:
    """Letters by the time they are due. What was taken comes back when its lease is over."""

    clock: Clock
    lease_seconds: float = 600.0
    failures: int = 0  # how many of the next calls fail
    graves: dict[str, Dead] = field(default_factory=dict)
    delays: list[tuple[str, float]] = field(default_factory=list)  # of letters that came back
    deliveries: int = 0
    _letters: dict[int, _Waiting] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=count)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def _fail(self) -> None:
        if self.failures:
            self.failures -= 1
            raise QueueError("the queue is away")

    async def publish(self, letters: Sequence[Letter]) -> None:
        self._fail()
        self._letters |= {
            number: _Waiting(number, letter) for letter, number in zip(letters, self._numbers, strict=False)
        }
        self._news.set()

    async def take(self, most: int, wait: float) -> list[Delivery]:
        self._fail()
        deadline = self.clock.now() + wait
        while not (found := list(islice(self._due(), most))):
            left = deadline - self.clock.now()
            if left <= 0:
                return []
            self._news.clear()
            soonest = min((each.due - self.clock.now() for each in self._letters.values()), default=left)
            timer = self.clock.call_later(min(left, soonest), self._news.set)
            await self._news.wait()
            timer.cancel()
        return [self._deliver(each) for each in found]

    def _due(self) -> Iterator[_Waiting]:
        return (each for each in self._letters.values() if each.due <= self.clock.now())

    def _deliver(self, waiting: _Waiting) -> Delivery:
        self.deliveries += 1
        waiting.lease, waiting.due = self.deliveries, self.clock.now() + self.lease_seconds
        return Delivery(waiting.letter.key, waiting.letter.body, waiting.tries, (waiting, waiting.lease))

    def _ours(self, delivery: Delivery) -> _Waiting | None:
        self._fail()
        tag: Any = delivery.tag
        waiting: _Waiting = tag[0]
        return waiting if waiting.number in self._letters and waiting.lease == tag[1] else None

    async def done(self, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            if waiting := self._ours(delivery):
                del self._letters[waiting.number]

    async def later(self, delivery: Delivery, seconds: float, why: str, *, failed: bool = True) -> None:
        assert why
        if waiting := self._ours(delivery):
            waiting.tries, waiting.due, waiting.lease = waiting.tries + failed, self.clock.now() + seconds, 0
            self.delays.append((delivery.key, seconds))

    async def publish_dead(self, letter: Letter, why: str) -> None:
        self.graves[letter.key] = Dead(*letter, why, 0, self.clock.wall())

    async def bury(self, delivery: Delivery, why: str) -> None:
        if waiting := self._ours(delivery):
            del self._letters[waiting.number]
            self.graves[delivery.key] = Dead(delivery.key, delivery.body, why, waiting.tries, self.clock.wall())

    async def depth(self) -> Depth:
        self._fail()
        ready = len(list(self._due()))
        taken = sum(each.due > self.clock.now() and each.lease > 0 for each in self._letters.values())
        return Depth(ready, taken, len(self._letters) - ready - taken, len(self.graves))

    async def close(self) -> None:
        for each in self._letters.values():
            if each.lease:
                each.due = each.lease = 0

    def __len__(self) -> int:
        return len(self._letters)
