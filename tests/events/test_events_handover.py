"""What a crawl hands on becomes batches that are safe, or it is told that they are not."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

import msgspec
import pytest
from looping import virtual
from structlog.testing import capture_logs

from sanderling.engine.handover import HandOverError
from sanderling.events import handover
from sanderling.events.handover import GRACE, EventsHandOver, Outlet, read_page, read_report
from sanderling.events.outbox import OutboxSender
from sanderling.events.producer import LARGEST_ITEM, BatchSource
from sanderling.events.publish import LONGEST_LINE
from sanderling.formats.instance import Instance, Message
from sanderling.stores.analytics import AnalyticsError, OutboxMessage
from sanderling.stores.objects import ObjectError, ObjectFault, StoredObject
from sanderling.testing.virtual import LoopClock

T = TypeVar("T")
JOB = "spring-brand-0"


@dataclass(slots=True)
class Store:
    """Objects and an outbox in memory, which are away when they are told to be."""

    fault: ObjectFault | None = None
    database: bool = True
    objects: dict[str, bytes] = field(default_factory=dict)
    sent: list[dict[str, Any]] = field(default_factory=list)

    async def get(self, bucket: str, key: str, most: int) -> StoredObject:
        self._fail()
        if key not in self.objects:
            raise ObjectError(f"{bucket}/{key} is not there", fault=ObjectFault.MISSING)
        if len(self.objects[key]) > most:
            raise ObjectError(f"{key} is large", fault=ObjectFault.TOO_LARGE)
        return StoredObject(self.objects[key], {}, "1")

    async def put(self, bucket: str, key: str, body: bytes, metadata: Mapping[str, str]) -> None:
        assert bucket
        assert metadata
        self._fail()
        self.objects[key] = body

    async def add(self, messages: Sequence[OutboxMessage]) -> None:
        if not self.database:
            raise AnalyticsError("the database is away")
        self.sent += [msgspec.json.decode(each.body)["payload"] for each in messages]

    def _fail(self) -> None:
        if self.fault is not None:
            raise ObjectError(f"the objects are {self.fault.value}", fault=self.fault)

    @property
    def sizes(self) -> list[int]:
        return [each["content_count"] for each in self.sent]


async def inline(work: Callable[..., T], /, *args: Any) -> T:  # noqa: ANN401 - whatever `work` takes
    return work(*args)


def fed(store: Any, read: Any = read_page) -> EventsHandOver[Any]:  # noqa: ANN401 - it is half a store, which is all that is used
    clock = LoopClock()
    out = Outlet(store, OutboxSender(store, store, clock, Random(1)), clock)
    return EventsHandOver(out, lambda platform: BatchSource(platform, JOB), read, inline)


def row(number: int, **more: object) -> bytes:
    return msgspec.json.encode({"url": f"https://example.org/{number}", "outcome": "OK", "text": "words", **more})


def rows(count: int) -> list[bytes]:
    return [row(number) for number in range(count)]


def reports(count: int, api: str = "game") -> list[Message]:
    return [Message(str(number), api, 1.0, Instance(str(number)), msgspec.Raw(b"{}")) for number in range(count)]


@pytest.mark.parametrize(
    ("count", "sizes"), [(1, [1]), (50, [50]), (51, [26, 25]), (120, [40, 40, 40]), (500, [50] * 10)]
)
def test_batches_are_as_even_as_can_be(count: int, sizes: list[int]) -> None:
    store = Store()

    @virtual
    async def act() -> None:
        feed = fed(store)
        assert await feed.hand(rows(count))
        assert (feed.tally.items, feed.tally.batches) == (count, len(sizes))

    act()
    assert store.sizes == sizes


@virtual
async def test_what_says_nothing_new_is_left_out() -> None:
    store = Store()
    feed = fed(store)

    assert await feed.hand([row(1, outcome="NOT_MODIFIED"), row(2, outcome="SKIPPED")])

    assert (feed.tally.left_out, feed.tally.odd, store.sent) == (2, 0, [])


@virtual
async def test_what_is_no_item_is_counted_and_stops_nobody() -> None:
    store = Store()
    feed = fed(store)
    bad = [b"nonsense", b"[]", row(9, text="x" * LARGEST_ITEM), b" " * (LONGEST_LINE + 1)]

    with capture_logs() as logged:
        assert await feed.hand([row(1), *bad, row(2)])
        assert await feed.hand([b"nonsense", row(3)])
        await asyncio.sleep(61)
        assert await feed.hand([b"nonsense"])

    assert (feed.tally.odd, store.sizes) == (6, [2, 1])
    assert [(line["event"], line["so_far"]) for line in logged] == [("not_handed_on", 1), ("not_handed_on", 6)]
    assert feed.tally.last_odd.startswith("not JSON")


@virtual
async def test_reports_go_by_the_name_of_their_api() -> None:
    store, long = Store(), "a-name-of-an-api-that-is-too-long-for-it"
    feed = fed(store, read_report)

    assert await feed.hand([*reports(2), *reports(3, long)])

    assert [each["platform"] for each in store.sent] == ["game", "a-name-of-a-da3c141a"]
    assert store.sizes == [2, 3]


@virtual
async def test_there_are_never_more_than_some_sinks() -> None:
    store = Store()
    feed = fed(store, read_report)

    for number in range(3 * handover.MOST_SINKS):
        assert await feed.hand(reports(1, f"api-{number}"))

    assert (feed.tally.items, feed.tally.batches) == (len(store.sent), len(store.sent)) == (192, 192)


@pytest.mark.parametrize("what", ["objects", "database"])
def test_while_something_is_away_it_waits_and_says_so_ever_more_rarely(what: str) -> None:
    store = Store(database=False) if what == "database" else Store(fault=ObjectFault.DOWN)

    @virtual
    async def act() -> None:
        feed = fed(store)
        with capture_logs() as logged:
            async with asyncio.TaskGroup() as group:
                handing = group.create_task(feed.hand(rows(3)))
                await asyncio.sleep(500)
                assert not handing.done()
                assert feed.trouble
                store.fault, store.database = None, True
        assert handing.result()
        assert {line["event"] for line in logged} == {"batch_waits"}
        assert [line["failures"] for line in logged] == [2**n for n in range(len(logged))]
        assert (feed.trouble, feed.tally.items) == ("", 3)

    act()
    assert store.sizes == [3]


@virtual
async def test_who_is_to_stop_waits_a_little_and_is_told() -> None:
    store, loop = Store(fault=ObjectFault.DOWN), asyncio.get_running_loop()
    feed = fed(store)

    async with asyncio.TaskGroup() as group:
        handing = [group.create_task(feed.hand(rows(3))), group.create_task(feed.hand(rows(3)))]
        await asyncio.sleep(100)
        feed.stop()
    ended = loop.time()
    store.fault = None

    assert [each.result() for each in handing] == [False, False]
    assert ended == pytest.approx(100 + GRACE)
    assert not await feed.hand(rows(3)), "nor does anybody find out again"
    assert (loop.time(), store.sent) == (ended, [])


@virtual
async def test_who_is_to_stop_still_hands_on_what_can_be() -> None:
    store = Store()
    feed = fed(store)
    feed.stop()

    assert await feed.hand(rows(3))
    store.fault = ObjectFault.DOWN
    before = asyncio.get_running_loop().time()
    assert not await feed.hand(rows(3))

    assert asyncio.get_running_loop().time() == pytest.approx(before + GRACE)
    assert store.sizes == [3]


@virtual
async def test_what_will_never_go_well_is_an_error() -> None:
    feed = fed(Store(fault=ObjectFault.REFUSED))

    with pytest.raises(HandOverError, match="what was found does not go on to events: the objects are refused"):
        await feed.hand(rows(3))
