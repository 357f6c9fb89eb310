"""Records into the queue, then the cursor to disk: in that order, through outages, crashes and any interleaving."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sequence_parts import WALL, MemoryQueue, body_of, desk

from sanderling.sequence.cursor import IdCursor, Position
from sanderling.sequence.retries import Missed, Reason
from sanderling.sequence.sink import LONGEST_PAUSE, RULES, SequenceSink, SequenceWriter
from sanderling.sequence.state import Fates, SequenceState
from sanderling.stores.durable import FolderError
from sanderling.stores.queue import QueueError
from sanderling.testing import LoopClock, run_virtual

T = TypeVar("T")
FIRST = 100
EVERY, ENDS, BYTES = RULES.every, RULES.items, RULES.bytes


@pytest.fixture
def state(tmp_path: Path) -> Iterator[SequenceState]:
    state = SequenceState(tmp_path / "sequence.db")
    yield state
    state.close()


def missed(low: int, high: int | None = None, reason: Reason = Reason.NOT_FOUND) -> Missed:
    return Missed(low, low if high is None else high, reason, WALL, WALL, 0, WALL + 15)


class Crawl:
    """The writer of a crawl that goes on where `state` says, over a queue."""

    def __init__(self, state: SequenceState, queue: MemoryQueue) -> None:
        saved = state.load()
        self.clock = LoopClock()
        self.state = state
        self.queue = queue
        position = saved.position if saved else Position(FIRST)
        self.cursor = IdCursor(position)
        self.sink = SequenceSink(state, queue, desk, self.clock, position)
        self.writer = SequenceWriter(self.sink, self.cursor, "numbers", self.clock)
        self.writes = 0

    def keep(self, count: int = 1) -> list[int]:
        """Take so many ids and keep their records."""
        numbers = [self.cursor.take() for _ in range(count)]
        for number in numbers:
            self.writer.keep(number, body_of(number))
        return numbers

    @property
    def position(self) -> Position | None:
        """What a restart would find."""
        saved = self.state.load()
        return saved.position if saved else None

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """While `write` runs; closed at the end."""

        def written(_: None) -> None:
            self.writes += 1

        async with asyncio.TaskGroup() as group:
            group.create_task(self.writer.run(written))
            yield
            self.writer.close()

    async def crash(self, *, after: float) -> None:
        """Write for so many seconds, and never again."""
        writing = asyncio.ensure_future(self.writer.run(lambda _: None))
        await asyncio.sleep(after)
        writing.cancel()
        await asyncio.wait([writing])


def play(state: SequenceState, script: Callable[[Crawl], Any], queue: MemoryQueue | None = None) -> Crawl:
    """Run the script with the writer of a crawl; what is left of it."""

    async def run() -> Crawl:
        crawl = Crawl(state, queue or MemoryQueue(LoopClock()))
        await script(crawl)
        return crawl

    return run_virtual(run())


def test_a_record_is_in_the_queue_before_the_cursor_passes_it(state: SequenceState) -> None:
    async def script(crawl: Crawl) -> None:
        crawl.queue.slow = 5.0
        async with crawl.writing():
            crawl.keep(3)
            await asyncio.sleep(EVERY + 4.9)
            assert (crawl.queue.published, crawl.position) == ([], None)
            await asyncio.sleep(0.2)
            assert crawl.queue.published == ["100", "101", "102"]
            assert crawl.position == Position(103)

    play(state, script)


def test_what_was_kept_is_what_the_queue_has(state: SequenceState) -> None:
    async def script(crawl: Crawl) -> None:
        async with crawl.writing():
            crawl.keep(2)

    crawl = play(state, script)

    assert crawl.queue.bodies() == {"100": b"record 100", "101": b"record 101"}
    assert (crawl.sink.published, crawl.sink.durable) == (2, Position(102))


def test_position_and_batch_are_of_one_moment(state: SequenceState) -> None:
    """What comes in while the queue takes the batch before is not in the position that goes with that batch."""

    async def script(crawl: Crawl) -> None:
        first, second = crawl.cursor.take(), crawl.cursor.take()
        crawl.queue.slow = 5.0
        async with crawl.writing():
            crawl.writer.keep(first, b"1")
            await asyncio.sleep(EVERY + 1)
            crawl.writer.keep(second, b"2")
            crawl.keep(1)
            await asyncio.sleep(4.1)
            assert crawl.queue.published == ["100"]
            assert crawl.position == Position(102, (101,))

    crawl = play(state, script)

    assert crawl.position == Position(103)
    assert crawl.queue.published == ["100", "101", "102"]


def test_missed_ids_and_the_cursor_move_together(state: SequenceState) -> None:
    async def script(crawl: Crawl) -> None:
        gone, there = crawl.cursor.take(), crawl.cursor.take()
        ranges = crawl.cursor.skip_to(5000)
        async with crawl.writing():
            crawl.writer.miss([missed(gone)])
            crawl.writer.miss([missed(low, high, Reason.GAP) for low, high in ranges])
            crawl.writer.skip(there)

    crawl = play(state, script)

    assert crawl.position == Position(5000)
    assert [(each.low, each.high, each.reason) for each in state.missed()] == [
        (100, 100, Reason.NOT_FOUND),
        (102, 4999, Reason.GAP),
    ]
    assert crawl.queue.published == []


def test_a_record_that_turns_up_is_missed_no_more(state: SequenceState) -> None:
    state.change(Fates(missed=[missed(10, 20, Reason.GAP)]))

    async def script(crawl: Crawl) -> None:
        async with crawl.writing():
            crawl.writer.keep(15, b"found")
            crawl.writer.skip(20)

    play(state, script)

    assert [(each.low, each.high) for each in state.missed()] == [(10, 14), (16, 19)]


def test_where_it_begins_is_written_and_nothing_more_while_nothing_happens(state: SequenceState) -> None:
    async def script(crawl: Crawl) -> None:
        async with crawl.writing():
            await asyncio.sleep(60)

    crawl = play(state, script)

    assert (crawl.position, crawl.writes) == (Position(FIRST), 1)


def test_many_ends_are_written_at_once_and_do_not_wait(state: SequenceState) -> None:
    async def script(crawl: Crawl) -> None:
        async with crawl.writing():
            await asyncio.sleep(0)
            for _ in range(ENDS):
                crawl.writer.skip(crawl.cursor.take())
            await asyncio.sleep(EVERY / 10)
            assert crawl.position == Position(FIRST + ENDS)

    play(state, script)


def test_many_bytes_are_written_at_once_and_do_not_wait(state: SequenceState) -> None:
    async def script(crawl: Crawl) -> None:
        async with crawl.writing():
            await asyncio.sleep(0)
            crawl.writer.keep(crawl.cursor.take(), bytes(BYTES))
            await asyncio.sleep(EVERY / 10)
            assert crawl.queue.published == ["100"]

    play(state, script)


# While the queue is not to be had.


def test_an_outage_holds_everything_and_loses_nothing(state: SequenceState) -> None:
    async def script(crawl: Crawl) -> None:
        crawl.queue.down = "no route to the broker"
        async with crawl.writing():
            crawl.keep(3)
            await asyncio.sleep(600)
            assert (crawl.position, crawl.sink.trouble) == (None, "no route to the broker")
            crawl.keep(2)
            crawl.queue.down = ""
            await asyncio.sleep(LONGEST_PAUSE + EVERY + 1)
            assert (crawl.position, crawl.sink.trouble) == (Position(105), "")

    crawl = play(state, script)

    assert crawl.queue.published == ["100", "101", "102", "103", "104"]
    assert crawl.sink.failures == crawl.queue.refused


def test_the_queue_is_not_asked_ever_faster(state: SequenceState) -> None:
    """After 0, 1, 3, 7, 15 and 31 seconds, and then every 30."""

    async def script(crawl: Crawl) -> None:
        crawl.queue.down = "closed"
        async with crawl.writing():
            crawl.keep(1)
            await asyncio.sleep(EVERY + 31.5)
            assert crawl.sink.failures == 6
            await asyncio.sleep(600)
            assert crawl.sink.failures == 26
            crawl.queue.down = ""

    play(state, script)


def test_a_close_during_an_outage_says_so_at_once_and_the_cursor_stays(state: SequenceState) -> None:
    async def script(crawl: Crawl) -> None:
        crawl.queue.down = "no route to the broker"
        with pytest.RaisesGroup(pytest.RaisesExc(QueueError, match="no route to the broker")):
            async with crawl.writing():
                crawl.keep(3)
                await asyncio.sleep(100)
                closed = crawl.clock.now()
        assert crawl.clock.now() == closed

    crawl = play(state, script)

    assert crawl.position is None
    again = Crawl(state, crawl.queue)
    assert again.cursor.peek() == FIRST


def test_an_outage_that_begins_with_the_close_says_so_too(state: SequenceState) -> None:
    async def script(crawl: Crawl) -> None:
        with pytest.RaisesGroup(pytest.RaisesExc(QueueError, match="gone")):
            async with crawl.writing():
                crawl.keep(1)
                await asyncio.sleep(EVERY + 1)
                crawl.keep(1)
                crawl.queue.down = "gone"

    crawl = play(state, script)

    assert crawl.position == Position(101)


def test_a_close_takes_what_came_in_during_the_last_write(state: SequenceState) -> None:
    async def script(crawl: Crawl) -> None:
        crawl.queue.slow = 2.0
        async with crawl.writing():
            crawl.keep(1)
            await asyncio.sleep(EVERY + 1)
            crawl.keep(1)

    crawl = play(state, script)

    assert (crawl.queue.published, crawl.position) == (["100", "101"], Position(102))


def test_too_many_bytes_that_wait_are_a_crowd_until_they_are_written(state: SequenceState) -> None:
    crowded: list[bool] = []

    async def script(crawl: Crawl) -> None:
        crawl.queue.down = "closed"
        async with crawl.writing():
            for _ in range(RULES.most_bytes // BYTES):
                crawl.writer.keep(crawl.cursor.take(), bytes(BYTES))
                await asyncio.sleep(1)  # some are with the writer, some are not
            crowded.append(crawl.writer.crowded)
            crawl.keep(1)
            crowded.append(crawl.writer.crowded)
            crawl.queue.down = ""
            writes = crawl.writes
            await asyncio.sleep(LONGEST_PAUSE + 1)
            crowded.append(crawl.writer.crowded)
            assert crawl.writes > writes  # and who gives out work was told

    play(state, script)

    assert crowded == [False, True, False]


def test_too_many_ids_that_wait_are_a_crowd_however_small(state: SequenceState) -> None:
    crowded: list[bool] = []

    async def script(crawl: Crawl) -> None:
        for _ in range(RULES.most_items):
            crawl.writer.skip(crawl.cursor.take())
        crowded.append(crawl.writer.crowded)
        crawl.writer.skip(crawl.cursor.take())
        crowded.append(crawl.writer.crowded)

    play(state, script)

    assert crowded == [False, True]


# Crashes.


class PowerCutError(Exception):
    """The end of the process."""


def test_a_crash_between_queue_and_cursor_queues_it_again_and_nothing_is_lost(state: SequenceState) -> None:
    async def cut(work: Callable[..., T], /, *args: Any) -> T:  # noqa: ANN401 - a desk
        del work, args
        raise PowerCutError

    async def dies(crawl: Crawl) -> None:
        crawl.sink.executor = cut
        crawl.keep(3)
        with pytest.raises(PowerCutError):
            await crawl.writer.run(lambda _: None)

    async def lives(crawl: Crawl) -> None:
        async with crawl.writing():
            assert crawl.keep(3) == [100, 101, 102]

    queue = MemoryQueue(LoopClock())
    crashed = play(state, dies, queue)
    assert (queue.published, crashed.position) == (["100", "101", "102"], None)

    again = play(state, lives, queue)
    assert again.queue.published == ["100", "101", "102"] * 2
    assert again.queue.bodies().keys() == {"100", "101", "102"}
    assert again.position == Position(103)


def test_a_disk_that_fails_is_not_passed_over(state: SequenceState) -> None:
    async def script(crawl: Crawl) -> None:
        with pytest.RaisesGroup(FolderError):
            async with crawl.writing():
                with closing(sqlite3.connect(state.path)) as vandal:
                    vandal.execute("DROP TABLE crawl")
                crawl.keep(1)

    play(state, script)


EVENTS = st.lists(
    st.tuples(st.sampled_from(["keep", "skip", "miss", "gap", "wait", "down", "up", "slow"]), st.floats(0.0, 3.0)),
    max_size=25,
)


async def _random_play(crawl: Crawl, events: list[tuple[str, float]], skipped: set[int], rng: Random) -> None:
    taken: list[int] = []
    for event, seconds in events:
        taken += [crawl.cursor.take() for _ in range(3)]
        number = taken.pop(rng.randrange(len(taken)))
        match event:
            case "keep":
                crawl.writer.keep(number, body_of(number))
            case "skip":
                skipped.add(number)
                crawl.writer.skip(number)
            case "miss":
                crawl.writer.miss([missed(number)])
            case "gap":
                ranges = crawl.cursor.skip_to(crawl.cursor.next + 7)
                crawl.writer.miss([missed(low, high, Reason.GAP) for low, high in ranges])
            case "slow":
                crawl.queue.slow = seconds
            case "down" | "up":
                crawl.queue.down = "away" if event == "down" else ""
        await asyncio.sleep(seconds)


@settings(max_examples=40)
@given(events=EVENTS, after=st.floats(0.0, 40.0), seed=st.integers(0, 99))
def test_whenever_it_crashes_every_id_that_the_cursor_has_passed_has_a_fate(
    tmp_path_factory: pytest.TempPathFactory, events: list[tuple[str, float]], after: float, seed: int
) -> None:
    state = SequenceState(tmp_path_factory.mktemp("sink") / "sequence.db")
    skipped: set[int] = set()

    async def script(crawl: Crawl) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(crawl.crash(after=after))
            await _random_play(crawl, events, skipped, Random(seed))

    crawl = play(state, script)

    position = crawl.position or Position(FIRST)
    missing = {number for each in state.missed() for number in range(each.low, each.high + 1)}
    fates = skipped | missing | {int(key) for key in crawl.queue.bodies()}
    assert set(range(FIRST, position.next)) - set(position.open) <= fates
    state.close()


# Whoever waits for all to be written.


def test_settled_returns_when_all_of_it_is_written(state: SequenceState) -> None:
    async def script(crawl: Crawl) -> None:
        crawl.queue.slow = 3.0
        async with crawl.writing():
            crawl.keep(1)
            await asyncio.sleep(EVERY + 1)
            crawl.keep(1)
            await crawl.writer.settled()
            assert crawl.position == Position(102)
            await crawl.writer.settled()

    play(state, script)


def test_waiting_for_what_came_in_does_not_mean_waiting_for_what_comes_in(state: SequenceState) -> None:
    async def main() -> float:
        crawl = Crawl(state, MemoryQueue(LoopClock()))
        crawl.queue.slow = 0.05

        async def more() -> None:
            while True:
                crawl.keep(1)
                await asyncio.sleep(0.01)

        async with crawl.writing(), asyncio.TaskGroup() as group:
            busy = group.create_task(more())
            await asyncio.sleep(1)
            began = crawl.clock.now()
            await crawl.writer.settled()
            busy.cancel()
            return crawl.clock.now() - began

    assert run_virtual(main()) < 1
