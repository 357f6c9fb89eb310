import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import events_killed
import pytest
from fake_outbox import MemoryOutbox, MemoryTopic, message
from hypothesis import given, settings
from hypothesis import strategies as st
from killed import killed

from sanderling.clock import SystemClock
from sanderling.events.outbox import OutboxRules, OutboxSender
from sanderling.executor import in_threads
from sanderling.limit.backoff import BackoffRules
from sanderling.stores.analytics import AnalyticsError, OutboxMessage
from sanderling.stores.analytics_open import open_analytics
from sanderling.stores.queue import LARGEST_BODY, QueueError, open_queue
from sanderling.stores.topic import QueueTopic
from sanderling.testing.virtual import LoopClock, run_virtual

RETRY, RESULT, DATA = "crawl.retry", "analyze.result", "data.collected"


class Play:
    """A sender between an outbox and a topic, and what may happen to them, under virtual time."""

    def __init__(self, *keys: str, rules: OutboxRules | None = None) -> None:
        self.outbox = MemoryOutbox()
        self.topic = MemoryTopic(*keys)
        self.clock = LoopClock()
        self.rules = rules
        self.arrived: Counter[str] = Counter()
        self.sender = self.restart()

    def restart(self) -> OutboxSender:
        self.sender = OutboxSender(
            self.outbox,
            self.topic,
            self.clock,
            random.Random(1),
            self.rules,
            arrived=lambda key, count: self.arrived.update({key: count}),
        )
        return self.sender

    def run(self, act: Callable[[], Awaitable[None]]) -> None:
        async def main() -> None:
            async with asyncio.timeout(100_000), asyncio.TaskGroup() as group:
                running = group.create_task(self.sender.run())
                await act()
                self.sender.stop()
                await running

        run_virtual(main())


def numbered(count: int, key: str = RETRY) -> list[str]:
    return [f"{key} {number}" for number in range(count)]


def test_what_waits_is_sent_in_order_and_forgotten() -> None:
    play = Play(RETRY, rules=OutboxRules(batch=7))
    play.outbox.put(*(message(text) for text in numbered(50)))

    async def act() -> None:
        await asyncio.sleep(0.5)
        assert play.topic.texts == numbered(50)
        assert play.outbox.rows == {}

    play.run(act)
    assert play.sender.tally.sent == play.arrived == {RETRY: 50}
    assert (play.sender.tally.dropped, play.sender.tally.failures, play.sender.tally.trouble) == (0, 0, "")


def test_what_comes_later_is_seen_by_itself_and_at_once_if_somebody_wakes_it() -> None:
    play = Play(RETRY, rules=OutboxRules(every=10))

    async def act() -> None:
        await asyncio.sleep(3)
        play.outbox.put(message("one"))
        await asyncio.sleep(1)
        assert play.topic.texts == []
        play.sender.wake()
        await asyncio.sleep(0.01)
        assert play.topic.texts == ["one"]
        play.outbox.put(message("two"))
        await asyncio.sleep(10)
        assert play.topic.texts == ["one", "two"]

    play.run(act)


def test_who_wakes_it_while_it_looks_is_heard() -> None:
    play = Play(RETRY, rules=OutboxRules(every=1000))

    async def slow_waiting(after: int, most: int) -> list[OutboxMessage]:
        found = await waiting(after, most)
        await asyncio.sleep(1)
        return found

    waiting = play.outbox.waiting
    play.outbox.waiting = slow_waiting  # type: ignore[method-assign]

    async def act() -> None:
        await asyncio.sleep(0.5)  # it has found nothing, and does not know yet
        play.outbox.put(message("late"))
        play.sender.wake()
        await asyncio.sleep(5)
        assert play.topic.texts == ["late"]

    play.run(act)


def test_an_outage_is_waited_out_with_ever_longer_pauses() -> None:
    play = Play(RETRY, rules=OutboxRules(backoff=BackoffRules(base=0.5, longest=60)))
    play.topic.fails = lambda: play.clock.now() < 3600
    play.outbox.put(*(message(text) for text in numbered(3)))

    async def act() -> None:
        await asyncio.sleep(3000)
        assert play.sender.tally.trouble == "the broker is away"
        assert 3000 / 60 <= play.topic.calls < 200
        for _ in range(1000):
            play.sender.wake()  # does not make it hammer at the door
            await asyncio.sleep(0.001)
        assert play.topic.calls < 200
        await asyncio.sleep(800)
        assert play.topic.texts == numbered(3)
        assert play.sender.tally.trouble == ""

    play.run(act)
    assert play.sender.tally.failures == play.topic.calls - 1


def test_a_database_that_is_away_is_waited_out_too() -> None:
    play = Play(RETRY)
    play.outbox.put(*(message(text) for text in numbered(3)))
    play.outbox.fails = lambda: 5 < play.clock.now() < 500

    async def act() -> None:
        await asyncio.sleep(100)
        play.outbox.put(message("more"))
        assert play.sender.tally.trouble == "the database is away"
        await asyncio.sleep(500)

    play.run(act)
    assert play.topic.texts == [*numbered(3), "more"]


def test_while_another_sends_nothing_is_sent_and_a_second_after_it_is_gone_all_is() -> None:
    play = Play(RETRY)
    play.outbox.put(*(message(text) for text in numbered(3)))
    play.outbox.claimed = True

    async def act() -> None:
        await asyncio.sleep(100)
        assert (play.topic.texts, play.sender.tally.failures, play.sender.tally.trouble) == ([], 0, "")
        with pytest.raises(AnalyticsError, match="another process sends from the outbox, and was not done within 30 s"):
            await play.sender.send_waiting()
        play.outbox.claimed = False
        await asyncio.sleep(1)
        assert play.topic.texts == numbered(3)

    play.run(act)
    assert play.topic.texts == numbered(3)


def test_what_is_added_through_it_is_sent_at_once() -> None:
    play = Play(RETRY)

    async def act() -> None:
        await asyncio.sleep(10.5)
        await play.sender.add([message("late")])
        await asyncio.sleep(0.01)
        assert play.topic.texts == ["late"]

    play.run(act)


def test_what_may_not_have_arrived_is_sent_again() -> None:
    play = Play(RETRY, rules=OutboxRules(batch=2))
    play.outbox.put(*(message(text) for text in numbered(5)))
    times = iter([False, True, False, True])
    play.topic.forgets = lambda: next(times, False)

    async def act() -> None:
        await asyncio.sleep(100)

    play.run(act)
    assert list(dict.fromkeys(play.topic.texts)) == numbered(5)
    assert len(play.topic.texts) == 8
    assert play.sender.tally.sent == {RETRY: 5}


# --- for whom nobody waits ---


def test_news_that_nobody_waits_for_are_dropped() -> None:
    play = Play(RETRY)
    play.outbox.put(message("news", RESULT), message("retry"), message("news", RESULT))

    async def act() -> None:
        await asyncio.sleep(1)
        assert play.outbox.rows == {}

    play.run(act)
    assert play.topic.texts == ["retry"]
    assert (play.sender.tally.dropped, play.sender.tally.sent) == (2, {RETRY: 1})


def test_anything_else_stays_until_somebody_waits_for_it_and_holds_up_nobody() -> None:
    play = Play(RESULT, rules=OutboxRules(batch=3, again=30))
    play.outbox.put(*(message(text) for text in numbered(10)))
    play.outbox.put(message("news", RESULT))

    async def act() -> None:
        await asyncio.sleep(0.5)
        assert play.topic.texts == ["news"]
        assert play.sender.tally.trouble == "10 messages are left in the outbox: nobody waits for crawl.retry"
        play.outbox.put(message("more news", RESULT), message("crawl.retry 10"))
        await asyncio.sleep(2)
        assert play.topic.texts == ["news", "more news"]
        assert play.sender.tally.left == 11
        play.topic.keys.add(RETRY)
        await asyncio.sleep(31)
        assert play.topic.texts == ["news", "more news", *numbered(11)]
        assert (play.outbox.rows, play.sender.tally.left, play.sender.tally.trouble) == ({}, 0, "")

    play.run(act)


def test_what_lies_there_is_counted_once_whatever_fails() -> None:
    play = Play(RETRY, rules=OutboxRules(batch=2))
    play.outbox.put(*(message(text, DATA) for text in numbered(4, DATA)))
    failures = iter([False, True, False])
    play.topic.fails = lambda: next(failures, False)

    async def act() -> None:
        await asyncio.sleep(0.5)
        assert play.sender.tally.left == 4
        # The next look begins behind those, leaves two more, and fails before its end.
        play.outbox.put(message("more", DATA), message("more", DATA), message("retry"), message("retry"))
        await asyncio.sleep(10)
        assert play.sender.tally.failures == 1
        assert (play.sender.tally.left, len(play.outbox.rows)) == (6, 6)

    play.run(act)


def test_what_lies_there_is_not_offered_all_the_time() -> None:
    """Of a key that nobody waits for, one batch is offered every half minute, however many there are."""
    play = Play(RESULT, rules=OutboxRules(batch=10, every=1, again=30))
    play.outbox.put(*(message(text) for text in numbered(1000)))

    async def act() -> None:
        await asyncio.sleep(300)
        assert play.topic.offered <= 10 * 11
        assert sum(after == 0 for after in play.outbox.looks) <= 11
        assert len(play.outbox.looks) < 11 * 101 + 300 + 1
        assert play.sender.tally.left == 1000

    play.run(act)


def test_the_same_key_elsewhere_is_another_matter() -> None:
    play = Play()
    play.outbox.put(message("a", DATA, "here"), message("b", DATA, "there"))

    async def act() -> None:
        await asyncio.sleep(0.5)
        assert play.topic.offered == 2
        assert play.sender.tally.trouble == "2 messages are left in the outbox: nobody waits for data.collected"

    play.run(act)


def test_a_message_that_nobody_could_take_stays_and_holds_up_nobody() -> None:
    play = Play(RETRY)
    play.outbox.put(message("x" * (LARGEST_BODY + 1)), message("fits"), message("addressed to nobody", ""))

    async def act() -> None:
        await asyncio.sleep(5)
        assert play.topic.texts == ["fits"]
        assert play.sender.tally.trouble.startswith("2 messages are left in the outbox: they are larger than")

    play.run(act)
    assert len(play.outbox.rows) == 2


def test_a_number_that_shows_up_late_is_not_passed_over() -> None:
    """A transaction that got its number first may commit last."""
    play = Play(RETRY, rules=OutboxRules(again=30))

    async def act() -> None:
        for left_lying in (False, True):
            early = play.outbox.reserve()
            play.outbox.put(message("second"))
            if left_lying:
                play.outbox.put(message("nobody's", DATA))
            await asyncio.sleep(5)
            play.outbox.commit(early, message("first"))
            await asyncio.sleep(31 if left_lying else 1.1)
            assert play.topic.texts == ["second", "first"]
            play.topic.got.clear()

    play.run(act)


# --- the end ---


def test_what_is_there_when_it_ends_still_goes_out() -> None:
    play = Play(RETRY, rules=OutboxRules(every=1000, batch=2))

    async def act() -> None:
        await asyncio.sleep(1)
        play.outbox.put(*(message(text) for text in numbered(9)))

    play.run(act)
    assert play.topic.texts == numbered(9)
    assert play.outbox.rows == {}


def test_an_end_during_an_outage_is_an_end() -> None:
    play = Play(RETRY)
    play.topic.fails = lambda: True
    play.outbox.put(message("waits"))

    async def act() -> None:
        await asyncio.sleep(1000)

    play.run(act)
    assert len(play.outbox.rows) == 1


def test_an_end_does_not_wait_for_a_broker_that_takes_for_ever() -> None:
    play = Play(RETRY, rules=OutboxRules(every=1000, flush=5))

    async def act() -> None:
        await asyncio.sleep(1)
        play.topic.send = for_ever  # type: ignore[method-assign, assignment]
        play.outbox.put(message("waits"))

    async def for_ever(_: object) -> None:
        await asyncio.sleep(1e9)

    play.run(act)
    assert len(play.outbox.rows) == 1


def test_all_that_waits_can_be_sent_at_once_and_then_errors_are_raised() -> None:
    play = Play(RETRY, rules=OutboxRules(batch=2))
    play.outbox.put(*(message(text) for text in numbered(5)))

    async def main() -> None:
        assert await play.sender.send_waiting() == 5
        play.outbox.put(message("left", DATA))
        assert await play.sender.send_waiting() == 0
        play.topic.keys.add(DATA)
        assert await play.sender.send_waiting() == 1
        play.outbox.put(message("one more"))
        play.topic.fails = lambda: True
        with pytest.raises(QueueError):
            await play.sender.send_waiting()
        play.outbox.fails = lambda: True
        with pytest.raises(AnalyticsError):
            await play.sender.send_waiting()

    run_virtual(main())


@pytest.mark.parametrize("wrong", [{"batch": 0}, {"every": 0}, {"again": 0}, {"flush": -1}])
def test_rules_that_make_no_sense_are_a_mistake(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="expected a batch from 1 up"):
        OutboxRules(**wrong)  # type: ignore[arg-type]


# --- whatever happens ---


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    loss=st.floats(0, 0.6),
    keys=st.sets(st.sampled_from([RETRY, RESULT, DATA])),
    batch=st.integers(1, 9),
)
def test_whatever_fails_nothing_is_lost_and_each_key_keeps_its_order(
    seed: int, loss: float, keys: set[str], batch: int
) -> None:
    """The broker, its confirms and the database fail as they like, and the sender is killed now and then."""
    chance = random.Random(seed)
    play = Play(*keys, rules=OutboxRules(batch=batch, again=5))
    play.topic.fails = play.topic.forgets = play.outbox.fails = lambda: chance.random() < loss
    texts = {key: [f"{key} {number}" for number in range(15)] for key in (RETRY, RESULT, DATA)}

    async def main() -> None:
        waiting = [message(text, key) for key, some in texts.items() for text in some]
        while waiting:
            play.restart()
            async with asyncio.TaskGroup() as group:
                running = group.create_task(play.sender.run())
                for _ in range(chance.randrange(1, 12)):
                    play.outbox.put(*(waiting.pop(0) for _ in range(min(3, len(waiting)))))
                    await asyncio.sleep(chance.random() * 3)
                running.cancel()  # wherever it is
        play.topic.keys |= {RETRY, DATA}
        play.topic.fails = play.topic.forgets = play.outbox.fails = lambda: False
        play.restart()
        await play.sender.send_waiting()

    run_virtual(main())
    assert play.outbox.rows == {}
    first_seen = list(dict.fromkeys(play.topic.texts))
    for key in (RETRY, DATA, *(keys & {RESULT})):
        assert [text for text in first_seen if text.startswith(key)] == texts[key]


def test_who_is_killed_between_sending_and_forgetting_loses_nothing(tmp_path: Path) -> None:
    chance, added = random.Random(6), 0
    for life in range(3):
        lines = chance.randrange(2, 12)
        killed([events_killed.__file__, str(tmp_path), "send", str(life)], after=lines)
        added += lines

    async def after() -> tuple[set[str], int]:
        with ThreadPoolExecutor(1) as threads:
            outbox = await open_analytics(f"sqlite:{tmp_path}/events.db", in_threads(threads))
            queue = open_queue(f"sqlite:{tmp_path}", "letters", SystemClock())
            sender = OutboxSender(outbox, QueueTopic({RETRY: queue}), SystemClock(), random.Random(1))
            await sender.send_waiting()
            found = {each.body.decode() for each in await queue.take(100_000, 0)}
            depth = await outbox.depth()
            await queue.close()
            return found, depth

    found, depth = asyncio.run(after())
    assert depth == 0
    assert len(found) >= 5 * added  # each line that was said was added before
    for life in range(3):
        numbers = sorted({int(text.split()[1]) for text in found if text.startswith(f"{life} ")})
        assert numbers == list(range(len(numbers)))
        assert all(f"{life} {number} {place}" in found for number in numbers for place in range(5))
