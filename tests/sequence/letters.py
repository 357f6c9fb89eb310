"""A store in memory, which fails when it is told to, and workers between it and a queue."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from memory_queue import MemoryQueue

from sanderling.clock import Clock
from sanderling.engine.handover import HandOver
from sanderling.formats.instance import Message
from sanderling.sequence.store import StoreRules, StoreWorkers
from sanderling.stores.instances import (
    InsertResult,
    InstanceCounts,
    InstanceRows,
    InstancesError,
    InstancesFault,
    RawRow,
)
from sanderling.stores.queue import Letter
from sanderling.testing.virtual import LoopClock


@dataclass(slots=True)
class MemoryInstances:
    """Keeps rows in a dict. Refuses what is `refused`; fails with `faults`, one for each call, the first first."""

    clock: Clock
    seconds: float = 0.0  # that a batch takes
    refused: set[int] = field(default_factory=set)
    faults: list[InstancesFault | None] = field(default_factory=list)
    down_until: float = 0.0
    kept: dict[int, InstanceRows] = field(default_factory=dict)
    calls: list[tuple[float, int]] = field(default_factory=list)  # when, and how many instances

    async def keep(self, batch: Sequence[InstanceRows]) -> InsertResult:
        self.calls.append((self.clock.now(), len(batch)))
        await self.clock.sleep(self.seconds)
        if self.clock.now() < self.down_until:
            raise InstancesError("nobody answers", InstancesFault.DOWN)
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            raise InstancesError(f"for once it is {fault.value}", fault)
        ids = [rows.instance.instance_id for rows in batch]
        if self.refused & set(ids):
            raise InstancesError(f"refuses one of {len(ids)}", InstancesFault.REFUSED)
        new = {number: rows for number, rows in zip(ids, batch, strict=True) if number not in self.kept}
        self.kept |= new
        return InsertResult(len(new), len(batch) - len(new))

    async def latest(self) -> int | None:
        return max(self.kept, default=None)

    async def counts(self) -> InstanceCounts:
        return InstanceCounts(len(self.kept), 0, 0, 0, 0, 0)

    async def raw(self, instance_id: int) -> bytes | None:
        rows = self.kept.get(instance_id)
        return bytes(rows.raw.data) if rows and rows.raw else None

    async def close(self) -> None:
        pass


@dataclass(slots=True)
class MemoryRaw:
    """The same for what the API said."""

    clock: Clock
    down_until: float = 0.0
    kept: dict[int, bytes] = field(default_factory=dict)

    async def keep(self, batch: Sequence[RawRow]) -> None:
        if self.clock.now() < self.down_until:
            raise InstancesError("nobody answers here either", InstancesFault.DOWN)
        self.kept |= {row.instance_id: bytes(row.data) for row in batch}

    async def raw(self, instance_id: int) -> bytes | None:
        return self.kept.get(instance_id)

    async def close(self) -> None:
        pass


class Bench:
    """A queue, a store and workers between them, under virtual time."""

    def __init__(
        self, rules: StoreRules | None = None, *, raw: bool = False, hand_over: HandOver[Message] | None = None
    ) -> None:
        self.clock = LoopClock()
        self.queue = MemoryQueue(self.clock)
        self.store = MemoryInstances(self.clock)
        self.raw = MemoryRaw(self.clock) if raw else None
        self.workers = StoreWorkers(self.queue, self.store, self.raw, self.clock, rules, hand_over)
        self.tally = self.workers.tally

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.workers.run())
            yield
            self.workers.stop()
            await task

    async def until(self, condition: Callable[[], bool], seconds: float = 100_000.0) -> None:
        async with asyncio.timeout(seconds):
            while not condition():
                await self.clock.sleep(0.25)

    async def drain(self, letters: list[Letter]) -> None:
        """Store all of them, or bury them."""
        await self.queue.publish(letters)
        async with self.running():
            await self.until(lambda: not len(self.queue))
