"""Events in memory, under virtual time: what each store takes, and where it fails, is said beforehand."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from fake_events import analyser
from fake_objects import MemoryObjects
from fake_outbox import MemoryOutbox, MemoryTopic
from memory_queue import MemoryQueue

from sanderling.events.modes import LiveModes, Modes
from sanderling.events.rules import ConsumeRules
from sanderling.events.stations import Stations
from sanderling.events.system import EventsSystem
from sanderling.observe.alerts import Alert
from sanderling.stores.analytics import AnalyticsBatch, AnalyticsError, BatchResult, Processed
from sanderling.stores.objects import ObjectError, ObjectFault, StoredObject
from sanderling.stores.queue import Letter
from sanderling.testing.virtual import LoopClock

LOOKING, GETTING, KEEPING = 0.002, 0.02, 0.01  # seconds
PROJECT = "2f9d1c3e-8a41-4c55-9b1c-0d6a3a5f7c10"

Away = Callable[[str], str]  # what is asked of, and how it fails: "", "down" or "failed"


def _well(_what: str) -> str:
    return ""


class TimedObjects(MemoryObjects):
    """Takes its time, and always fails at some."""

    def __init__(self, clock: LoopClock) -> None:
        super().__init__()
        self.away: Away = _well
        self.bad: set[str] = set()  # keys for which it says 500
        self._clock = clock

    async def get(self, bucket: str, key: str, most: int) -> StoredObject:
        await self._clock.sleep(GETTING)
        if key in self.bad:
            raise ObjectError(f"{key}: 500 Internal Server Error", fault=ObjectFault.FAILED)
        self._fail()
        return await super().get(bucket, key, most)

    async def ping(self) -> None:
        self._fail()

    def _fail(self) -> None:
        if how := self.away("objects"):
            raise ObjectError(
                "the object store is away", fault=ObjectFault.DOWN if how == "down" else ObjectFault.FAILED
            )


class MemoryStore(MemoryOutbox):
    """Batches in a dict."""

    connections = 1

    def __init__(self, clock: LoopClock) -> None:
        super().__init__()
        self.kept: dict[str, float] = {}  # when, by event
        self.away: Away = _well
        self.bad: set[str] = set()  # events at which it fails
        self._clock = clock

    async def keep(self, batch: AnalyticsBatch) -> BatchResult:
        await self._clock.sleep(KEEPING)
        self._fail("rows")
        if batch.event_id in self.bad:
            raise AnalyticsError(f"{batch.event_id}: internal error", answered=True)
        new = batch.event_id not in self.kept
        self.kept.setdefault(batch.event_id, self._clock.now())
        return BatchResult(new)

    async def rehearse(self, batch: AnalyticsBatch) -> None:
        del batch
        await self._clock.sleep(KEEPING)
        self._fail("rows")

    async def processed(self, event_id: str) -> Processed | None:
        await self._clock.sleep(LOOKING)
        self._fail("lookups")
        return Processed(None, replayed=False) if event_id in self.kept else None

    async def ping(self) -> None:
        self._fail("lookups")

    def _fail(self, what: str) -> None:
        if how := self.away(what):
            raise AnalyticsError(f"{what} are away", answered=how == "failed")


class BlamedHouse:
    """`run` until all that was published has its end."""

    def __init__(self, rules: ConsumeRules | None = None) -> None:
        clock = self.clock = LoopClock()
        self.queue, self.objects, self.store = MemoryQueue(clock), TimedObjects(clock), MemoryStore(clock)
        self.alerts: list[Alert] = []
        modes = LiveModes(Path("nowhere"), Modes(), clock)
        at: Any = Stations(self.queue, self.objects, self.store, analyser(), modes, at_once)  # type: ignore[arg-type]
        self.system = EventsSystem(
            at, MemoryTopic("crawl.retry"), say=self.alerts.append, clock=clock, rng=Random(1), rules=rules
        )

    def put(self, name: str, body: bytes = b"[]") -> Letter:
        """An object, and the message about it."""
        self.objects.there[f"crawl-results/{name}"] = StoredObject(body, {}, "etag")
        return letter(name)

    async def run(self, letters: Sequence[Letter], *beside: Any) -> None:  # noqa: ANN401 - coroutines
        await self.queue.publish(letters)

        async def stop() -> None:
            while len(self.queue):
                await self.clock.sleep(0.05)
            self.system.stop()

        await self.system.run(stop(), *beside)

    def reasons(self) -> Mapping[str, str]:
        """Why messages were buried, by key."""
        return {key: dead.why for key, dead in self.queue.graves.items()}


async def at_once(work: Callable[..., Any], *args: object) -> Any:  # noqa: ANN401 - whatever it gives
    """A desk that does it here and now."""
    await asyncio.sleep(0)
    return work(*args)


def letter(name: str) -> Letter:
    payload = {"minio_path": f"crawl-results/{name}", "job_id": f"{PROJECT}-brand-0", "platform": "tiktok"}
    return Letter(name, json.dumps({"event_id": name, "payload": payload}).encode())
