"""What each stage of a batch costs, one after the other: microseconds of CPU for an item."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from events_parts import ANALYSER, Place, Supply, items_of, put_objects

from sanderling.clock import SystemClock
from sanderling.events.analysis.analyse import Analysis
from sanderling.events.batches import decode, read_path
from sanderling.events.envelopes import Envelope, EventEnvelope, read_envelope
from sanderling.events.rows import (
    Arrival,
    SortedItems,
    Times,
    comment_rows,
    error_rows,
    post_rows,
    process_batch,
    sort_items,
)
from sanderling.stores.objects import StoredObject
from sanderling.worlds.social import SocialBatch

T = TypeVar("T")
MOST = 64 * 2**20  # bytes of an object
ROUNDS = 3


class Stage(NamedTuple):
    """A batch on its way, one stage after the other."""

    batch: SocialBatch
    envelope: Envelope
    fetched: StoredObject


class _Costs:
    """CPU microseconds for an item, the least of some rounds."""

    def __init__(self, items: int) -> None:
        self._items = items
        self.found: dict[str, float] = {}

    def add(self, name: str, seconds: float) -> None:
        each = seconds / self._items * 1e6
        self.found[name] = min(each, self.found.get(name, each))

    def timed(self, name: str, work: Callable[[], T]) -> T:
        began = time.process_time()
        made = work()
        self.add(name, time.process_time() - began)
        return made


async def stages(supply: Supply, places: dict[str, Place], batches: int) -> dict[str, float]:
    """The cost of each stage, by name; the last is once for each place."""
    some = supply.some(batches)
    costs = _Costs(items_of(some))
    at = next(iter(places.values()))
    await put_objects(at.objects, some)
    for _ in range(ROUNDS):
        began = time.process_time()
        on_way = [await _fetched(at, batch) for batch in some]
        costs.add("fetch", time.process_time() - began)
        _made(costs, on_way)
    clock = SystemClock()
    for name, each in places.items():
        digested = [
            process_batch(way.envelope, _items(way), ANALYSER, Arrival(clock.wall(), way.batch.envelope), clock)
            for way in on_way
        ]
        began = time.process_time()
        for done in digested:
            await each.store.keep(done.batch)
        costs.add(f"keep, {name}", time.process_time() - began)
    return costs.found


async def _fetched(at: Place, batch: SocialBatch) -> Stage:
    envelope = read_envelope(batch.envelope)
    assert isinstance(envelope, EventEnvelope)
    path = read_path(envelope.path)
    return Stage(batch, envelope, await at.objects.get(path.bucket, path.key, MOST))


def _items(way: Stage) -> list[object]:
    return decode(way.fetched.body, metadata=way.fetched.metadata, key=way.batch.path).items


def _made(costs: _Costs, on_way: Sequence[Stage]) -> None:
    items = costs.timed("decode", lambda: [_items(way) for way in on_way])
    read: list[SortedItems] = costs.timed(
        "read",
        lambda: [
            sort_items(each, way.envelope.context, way.envelope.default_status)
            for each, way in zip(items, on_way, strict=True)
        ],
    )
    analysed: list[list[Analysis]] = costs.timed("analyse", lambda: [ANALYSER.analyse_all(each.posts) for each in read])
    times = Times(0.0, 0)

    def rows() -> None:
        for way, each, analyses in zip(on_way, read, analysed, strict=True):
            post_rows(each.posts, analyses, way.envelope.context, times)
            comment_rows(each.posts, analyses)
            error_rows(each.errors, way.envelope.context, 0.0)

    costs.timed("rows", rows)
