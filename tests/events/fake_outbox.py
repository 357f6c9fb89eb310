"""An outbox and a topic in memory, which fail when they are told to."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import msgspec

from sanderling.stores.analytics import AnalyticsError, OutboxMessage
from sanderling.stores.queue import QueueError

Fails = Callable[[], bool]


def message(text: str, key: str = "crawl.retry", exchange: str = "smap.events") -> OutboxMessage:
    return OutboxMessage(exchange=exchange, routing_key=key, body=text.encode())


def never() -> bool:
    return False


class MemoryOutbox:
    """Keeps messages as a database does: in the order of numbers, some of which may show up late."""

    def __init__(self) -> None:
        self.rows: dict[int, OutboxMessage] = {}
        self.looks: list[int] = []  # after which numbers
        self.fails: Fails = never
        self.claimed = False
        self._next = 1

    def reserve(self) -> int:
        """A number that somebody has, and has not committed yet."""
        number, self._next = self._next, self._next + 1
        return number

    def commit(self, number: int, said: OutboxMessage) -> None:
        self.rows[number] = msgspec.structs.replace(said, number=number)

    def put(self, *messages: OutboxMessage) -> None:
        for each in messages:
            self.commit(self.reserve(), each)

    @asynccontextmanager
    async def claim(self) -> AsyncIterator[bool]:
        self._maybe_fail()
        ours, self.claimed = not self.claimed, True
        try:
            yield ours
        finally:
            self.claimed = self.claimed and not ours

    async def add(self, messages: Sequence[OutboxMessage]) -> None:
        self._maybe_fail()
        self.put(*messages)

    async def waiting(self, after: int, most: int) -> list[OutboxMessage]:
        self._maybe_fail()
        self.looks.append(after)
        return [self.rows[number] for number in sorted(self.rows) if number > after][:most]

    async def sent(self, numbers: Sequence[int]) -> None:
        self._maybe_fail()
        for number in numbers:
            self.rows.pop(number, None)

    async def depth(self) -> int:
        return len(self.rows)

    def _maybe_fail(self) -> None:
        if self.fails():
            raise AnalyticsError("the database is away")


class MemoryTopic:
    """Keeps what it was sent, under keys for which somebody waits."""

    def __init__(self, *keys: str) -> None:
        self.keys = set(keys)
        self.got: list[OutboxMessage] = []
        self.calls = 0
        self.offered = 0
        self.fails: Fails = never  # before anything has arrived
        self.forgets: Fails = never  # to confirm what has

    async def send(self, messages: Sequence[OutboxMessage]) -> list[OutboxMessage]:
        self.calls += 1
        self.offered += len(messages)
        if self.fails():
            raise QueueError("the broker is away")
        self.got += [each for each in messages if each.routing_key in self.keys]
        if self.forgets():
            raise QueueError("the broker went away")
        return [each for each in messages if each.routing_key not in self.keys]

    async def close(self) -> None:
        pass

    @property
    def texts(self) -> list[str]:
        return [each.body.decode() for each in self.got]
