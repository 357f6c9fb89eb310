"""What a client of the stream of changes is told: first without a socket, then over one."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, cast

import aiohttp
import msgspec
import pytest
from looping import in_loop, virtual
from polling_house import FakeChanges, FakeControl, House, head, house, raw
from structlog.testing import capture_logs

from sanderling.polling.change_feed import ChangeFeed
from sanderling.stores.polling import Op, RowChange
from sanderling.testing.virtual import LoopClock
from sanderling.web.access import SAFE_HEADERS
from sanderling.web.polling_stream import LARGEST_PIECE, MOST, ChangeStream
from sanderling.web.polling_types import EventsQuery
from sanderling.web.stream import StreamRules, Streams

ALL = EventsQuery()


class Event:
    """An event, or what else a stream says, as a browser reads it."""

    def __init__(self, text: str) -> None:
        pairs = [line.partition(": ")[::2] for line in text.splitlines()]
        self.fields = {name: value for name, value in pairs if name}
        self.name = self.fields.get("event", "")
        self.id = int(self.fields["id"]) if "id" in self.fields else None
        self.data: Any = msgspec.json.decode(self.fields["data"]) if "data" in self.fields else None


def events(data: bytes) -> list[Event]:
    *whole, rest = data.decode().split("\n\n")
    assert rest == ""
    return [Event(text) for text in whole]


async def told(frames: AsyncGenerator[bytes, None], pieces: int) -> list[Event]:
    """The events of the first so many pieces."""
    return [each for _ in range(pieces) for each in events(await anext(frames))]


async def a_feed(number: int = 0, keep: int | None = None) -> tuple[ChangeFeed, FakeChanges]:
    store = FakeChanges()
    for _ in range(number):
        store.add()
    if keep is not None:
        await store.trim(keep)
    feed = ChangeFeed(store, LoopClock())
    await feed.open()
    return feed, store


@virtual
async def test_a_stream_begins_with_when_to_come_back_and_where_it_is() -> None:
    feed, _ = await a_feed(3)

    async with aclosing(ChangeStream(feed, None, ALL).frames()) as frames:
        first, second = await told(frames, 1)

    assert (first.fields, second.fields) == ({"retry": "1000"}, {"id": "3"})


@virtual
async def test_without_a_position_it_begins_with_what_comes() -> None:
    feed, store = await a_feed(3)

    async with aclosing(ChangeStream(feed, None, ALL).frames()) as frames:
        await told(frames, 1)
        feed.note([store.add(lap=4)])
        (change,) = await told(frames, 1)

    assert (change.id, change.name) == (4, "change")
    assert msgspec.convert(change.data, RowChange) == store.all[3]


@virtual
async def test_from_a_position_it_tells_all_that_came_after() -> None:
    feed, store = await a_feed(MOST + 20)

    async with aclosing(ChangeStream(feed, 5, ALL).frames()) as frames:
        await told(frames, 1)
        first = await told(frames, 1)
        second = await told(frames, 1)

    assert [change.id for change in first] == list(range(6, MOST + 6))
    assert [change.id for change in second] == list(range(MOST + 6, MOST + 21))
    assert len(store.all) == MOST + 20


@pytest.mark.parametrize("since", [0, 1, 6, 99, 2**63 - 1, -1])
@virtual
async def test_a_position_that_is_not_to_be_had_is_reset_to_the_newest(since: int) -> None:
    feed, store = await a_feed(5, keep=2)

    async with aclosing(ChangeStream(feed, since, ALL).frames()) as frames:
        await told(frames, 1)
        (reset,) = await told(frames, 1)
        feed.note([store.add()])
        (change,) = await told(frames, 1)

    assert (reset.name, reset.id, reset.data) == ("reset", 5, {"oldest": 4, "newest": 5})
    assert (change.name, change.id) == ("change", 6)


@virtual
async def test_a_client_that_falls_behind_what_is_kept_is_reset_too() -> None:
    feed, store = await a_feed(5)

    async with aclosing(ChangeStream(feed, 4, ALL).frames()) as frames:
        await told(frames, 2)
        for _ in range(3_000):
            feed.note([store.add()])
        await store.trim(10)
        (reset,) = await told(frames, 1)

    assert (reset.name, reset.id, reset.data) == ("reset", 3005, {"oldest": 2996, "newest": 3005})


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (EventsQuery(table="laps"), [1, 4, 5]),
        (EventsQuery(kind="race"), [1, 2, 4]),
        (EventsQuery(table="laps", kind="race"), [1, 4]),
        (EventsQuery(table="none"), [4]),
        (EventsQuery(), [1, 2, 3, 4, 5]),
    ],
)
@virtual
async def test_filters_leave_out_what_is_not_wanted_but_never_a_purge(query: EventsQuery, expected: list[int]) -> None:
    feed, store = await a_feed()
    told_of = ChangeStream(feed, None, query)

    async with aclosing(told_of.frames()) as frames:
        await told(frames, 1)
        store.add("laps", kind="race")
        store.add("races", kind="race")
        store.add("races", kind="results")
        store.add("", op=Op.PURGE, kind="")
        store.add("laps", kind="results")
        feed.note(store.all)
        found = await told(frames, 1)

    assert [change.id for change in found] == expected


@virtual
async def test_a_keep_alive_says_how_far_it_is_also_past_what_is_not_wanted() -> None:
    feed, store = await a_feed()
    told_of = ChangeStream(feed, None, EventsQuery(table="races"))

    async with aclosing(told_of.frames()) as frames:
        await told(frames, 1)
        feed.note([store.add("races"), store.add("laps")])
        await told(frames, 1)
        before = told_of.silent()
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(told(frames, 1))
            await asyncio.sleep(1)
            after = told_of.silent()
            waiting.cancel()

    # The piece may still be on its way when its client is lost; only when the next is asked for has it left.
    assert [events(each)[0].id for each in (before, after)] == [0, 2]


@virtual
async def test_large_changes_are_sent_in_pieces_and_each_is_counted_when_it_has_left() -> None:
    feed, store = await a_feed()
    told_of = ChangeStream(feed, None, ALL)

    positions, sizes = [], []
    async with aclosing(told_of.frames()) as frames:
        await told(frames, 1)
        feed.note([store.add(text="x" * 30_000) for _ in range(8)])
        for _ in range(3):
            sizes.append(len(await anext(frames)))
            positions.append(told_of.position)

    assert positions == [0, 3, 6]
    assert max(sizes) < LARGEST_PIECE + 31_000


@virtual
async def test_a_stream_ends_with_the_feed() -> None:
    feed, _ = await a_feed()

    async with aclosing(ChangeStream(feed, None, ALL).frames()) as frames:
        await told(frames, 1)
        feed.close()
        with pytest.raises(StopAsyncIteration):
            await anext(frames)


@asynccontextmanager
async def reading(
    opened: House, query: str = "", last: str | None = None
) -> AsyncIterator[tuple[aiohttp.ClientResponse, AsyncGenerator[Event, None]]]:
    """A stream, and its events as they come."""

    async def arriving(response: aiohttp.ClientResponse) -> AsyncGenerator[Event, None]:
        while text := (await response.content.readuntil(b"\n\n")).decode():
            yield Event(text)

    headers = {} if last is None else {"Last-Event-ID": last}
    async with opened.session.get(f"{opened.address.url}/events{query}", headers=headers) as response:
        yield response, arriving(response)


@in_loop
async def test_changes_arrive_over_a_socket() -> None:
    async with house() as opened, reading(opened) as (response, arriving):
        assert (response.status, response.headers["Content-Type"]) == (200, "text/event-stream")
        assert SAFE_HEADERS.items() <= response.headers.items()
        assert [(await anext(arriving)).fields for _ in range(2)] == [{"retry": "1000"}, {"id": "0"}]

        opened.control.tell(opened.control.store.add(name="Zoë\n\n"))
        change = await anext(arriving)

    assert (change.name, change.id) == ("change", 1)
    assert change.data["values"] == {"name": "Zoë\n\n"}


@pytest.mark.parametrize(
    ("query", "last", "expected"),
    [
        ("?since=1", None, [("change", 2), ("change", 3)]),
        ("?since=3", "1", [("change", 2), ("change", 3)]),
        ("?since=0", "", [("change", 1), ("change", 2), ("change", 3)]),
        ("", "2", [("change", 3)]),
        ("", "7", [("reset", 3)]),
        ("", "nonsense", [("reset", 3)]),
        ("", "-1", [("reset", 3)]),
        ("", "99999999999999999999999999", [("reset", 3)]),
        ("?since=1&table=races", None, [("change", 3)]),
    ],
)
@in_loop
async def test_a_client_comes_back_where_it_was(query: str, last: str | None, expected: list[tuple[str, int]]) -> None:
    async with house() as opened:
        store = opened.control.store
        opened.control.tell(store.add(), store.add(), store.add("races"))
        async with reading(opened, query, last) as (_, arriving):
            found = [event async for event in _first(arriving, len(expected))]

    assert [(event.name, event.id) for event in found] == expected


async def _first(arriving: AsyncGenerator[Event, None], number: int) -> AsyncIterator[Event]:
    while number:
        event = await anext(arriving)
        if event.name:
            number -= 1
            yield event


async def down_to(number: int, streams: Streams) -> None:
    """Wait until no more than so many are open."""
    reached = asyncio.Event()
    streams.counted = lambda count: reached.set() if count <= number else None
    if streams.count > number:
        await reached.wait()


@in_loop
async def test_there_are_only_so_many_streams_and_those_that_end_make_room() -> None:
    async with house(streams=StreamRules(most=3, alive=0.05)) as opened, reading(opened), reading(opened):
        async with reading(opened), reading(opened) as (too_many, _):
            assert (too_many.status, too_many.headers["Retry-After"]) == (503, "5")
        # The server learns that a client has gone when it next says something.
        await down_to(2, opened.streams)
        async with reading(opened) as (again, _):
            assert again.status == 200

    assert opened.streams.count == 0


@in_loop
async def test_a_client_that_does_not_read_holds_little_and_is_dropped() -> None:
    control = FakeControl()
    async with house(control, streams=StreamRules(patience=0.3)) as opened:
        async with reading(opened) as (response, arriving):
            await anext(arriving)
            assert response.connection is not None
            cast("asyncio.Transport", response.connection.transport).pause_reading()
            # Far more than sockets hold, so that the stream is stuck however large their buffers are.
            control.tell(*[control.store.add(text="x" * 100_000) for _ in range(300)])
            await down_to(0, opened.streams)
        # Another one is not held up.
        async with reading(opened, "?since=299") as (_, arriving):
            found = [event async for event in _first(arriving, 1)]

    assert [event.id for event in found] == [300]


class Broken(FakeControl):
    """Its feed has a mistake in it."""

    def __init__(self) -> None:
        super().__init__()
        self.feed = BrokenFeed(self.store, LoopClock())


class BrokenFeed(ChangeFeed):
    async def follow(self, after: int, most: int = 500) -> AsyncGenerator[list[RowChange], None]:
        async for batch in super().follow(after, most):
            yield batch
            raise ZeroDivisionError


@in_loop
async def test_a_mistake_of_ours_ends_a_stream_with_one_line_in_the_log_and_not_with_a_second_answer() -> None:
    control = Broken()
    async with house(control) as opened, asyncio.timeout(300):
        with capture_logs() as lines:
            control.tell(control.store.add())
            said = await raw(opened.address, head("GET /events?since=0 HTTP/1.1"))

    assert said.count(b"HTTP/1.1") == 1
    assert b"event: change" in said
    assert not said.endswith(b"0\r\n\r\n")  # so that nobody takes it for the end
    assert [line["event"] for line in lines if line["log_level"] != "debug"] == ["request_failed"]


@in_loop
async def test_closing_down_ends_all_streams_promptly() -> None:
    async with house() as opened, asyncio.timeout(300):
        answers = [await opened.session.get(f"{opened.address.url}/events") for _ in range(20)]
        opened.streams.close()
        bodies = [await answer.read() for answer in answers]

    assert [body.startswith(b"retry: 1000\n\n") for body in bodies] == [True] * 20
