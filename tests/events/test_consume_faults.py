"""What a consumer does when something it needs fails: it waits, takes nothing more, and blames no message for it."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import event_house
import pytest
from event_house import QUICK, House, awaited, house

from sanderling.clock import SystemClock
from sanderling.stores.analytics import AnalyticsBatch, AnalyticsError, BatchResult, OutboxMessage
from sanderling.stores.objects import ObjectError, ObjectFault, StoredObject
from sanderling.stores.queue import Delivery, Letter, QueueError
from sanderling.worlds.social import Social
from sanderling.worlds.social_plan import demo

ALONE = replace(QUICK, batches=1)
PROJECT = "2f9d1c3e-8a41-4c55-9b1c-0d6a3a5f7c10"


def missing(number: int) -> bytes:
    """A message about a batch that is not there."""
    job = f"{PROJECT}-brand-{number}"
    path = f"crawl-results/nothing/{number}.json"
    return json.dumps({"event_id": f"evt_{number}", "payload": {"minio_path": path, "job_id": job}}).encode()


def failing(
    method: Callable[..., Coroutine[Any, Any, Any]], error: Exception, times: int
) -> tuple[Callable[..., Coroutine[Any, Any, Any]], list[int]]:
    """The method, which fails so many times before it works; and how often it was called."""
    calls = [0]

    async def called(*args: object, **named: object) -> object:
        calls[0] += 1
        if calls[0] <= times:
            raise error
        return await method(*args, **named)

    return called, calls


async def batches(here: House) -> int:
    return int(here.rows("SELECT count(*) FROM processed_events")[0][0])


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(300):
        while not true():  # noqa: ASYNC110 - whatever it is
            await asyncio.sleep(0.01)


@awaited
async def test_a_store_that_comes_back_without_the_object_holds_up_nobody(tmp_path: Path) -> None:
    """Who asked in vain hears then that it is missing, and that is an answer: others may go on."""
    async with house(tmp_path, Social(1, demo()), ALONE) as here:
        await here.queue.publish([Letter("missing", missing(1))])
        await here.publish(0, 3)
        down = ObjectError("nobody answers", fault=ObjectFault.DOWN)
        here.objects.get, _ = failing(here.objects.get, down, 2)  # type: ignore[method-assign]

        await here.consume(30)

        assert await batches(here) == 3
        assert [each.key for each in await here.queue.dead(10)] == ["missing"]
        assert here.system.trouble == ""


@awaited
async def test_what_the_queue_did_not_hear_is_said_to_it_again(tmp_path: Path) -> None:
    """Otherwise the message would be ours, and in nobody's hands, for as long as we run."""
    async with house(tmp_path, Social(1, demo()), ALONE) as here:
        away = QueueError("no broker answers")
        here.queue.later, laters = failing(here.queue.later, away, 2)  # type: ignore[method-assign]
        here.queue.bury, burials = failing(here.queue.bury, away, 2)  # type: ignore[method-assign]
        here.queue.done, dones = failing(here.queue.done, away, 2)  # type: ignore[method-assign]
        await here.queue.publish([Letter("missing", missing(1))])
        await here.publish(0, 2)

        await here.consume(30)

        assert await batches(here) == 2
        (dead,) = await here.queue.dead(10)
        assert (dead.key, dead.tries) == ("missing", QUICK.most_tries)
        assert (laters, burials, dones) == ([QUICK.most_tries + 2], [3], [4])
        assert here.system.measures.counted["duplicate"] == 0


@awaited
async def test_a_queue_that_refuses_us_is_a_trouble_until_it_does_not(tmp_path: Path) -> None:
    async with house(tmp_path, Social(1, demo()), ALONE) as here:
        await here.publish(0, 3)
        refused = QueueError("user or password are wrong")
        here.queue.take, calls = failing(here.queue.take, refused, 4)  # type: ignore[method-assign]
        troubles: set[str] = set()

        async def watch() -> None:
            while True:
                troubles.add(here.system.trouble)
                await asyncio.sleep(0.005)

        async with asyncio.TaskGroup() as group:
            watching = group.create_task(watch())
            await here.consume(30)
            watching.cancel()

        assert troubles == {"", "user or password are wrong"}
        assert calls[0] > 4
        assert await batches(here) == 3


@awaited
async def test_a_database_that_lets_nobody_in_is_waited_for_and_no_message_is_buried(tmp_path: Path) -> None:
    """A password that was changed, or a table that somebody took away, is nothing that a message has done."""
    async with house(tmp_path, Social(1, demo())) as here:
        await here.publish(0, 5)
        shut = AnalyticsError("permission denied for table post_analytics", transient=False)
        here.store.keep, _ = failing(here.store.keep, shut, 7)  # type: ignore[method-assign]

        await here.consume(30)

        assert await batches(here) == 5
        assert (await here.queue.depth()).dead == 0


@awaited
async def test_while_one_thing_is_away_nothing_more_is_taken_though_all_else_works(tmp_path: Path) -> None:
    """Not even messages that have no need of it: it would be known of none how it stands."""
    async with house(tmp_path, Social(1, demo()), replace(QUICK, batches=2)) as here:
        bodies = {number: here.social.batch(number).body for number in range(200)}
        (stored, *_), inline = ([n for n in bodies if bodies[n]], [n for n in bodies if bodies[n] is None])
        assert len(inline) > 4
        get, gone, asked = here.objects.get, asyncio.Event(), [0]

        async def down(bucket: str, key: str, most: int) -> StoredObject:
            asked[0] += 1
            if not gone.is_set():
                raise ObjectError("nobody answers", fault=ObjectFault.DOWN)
            return await get(bucket, key, most)

        here.objects.get = down  # type: ignore[method-assign]
        await here.publish(stored, stored + 1)

        async def back() -> None:
            await until(lambda: asked[0])
            await here.queue.publish([Letter(f"{number}", here.social.envelope(number)) for number in inline])
            await until(lambda: asked[0] > 8)
            # The other one may have been asking for a message just then.
            assert here.system.measures.counted["received"] <= 2
            assert here.system.trouble == "nobody answers"
            gone.set()

        async with asyncio.TaskGroup() as group:
            group.create_task(back())
            await here.consume(30)
        assert await batches(here) == 1 + len(inline)


class SetBack(SystemClock):
    """A clock whose wall somebody sets back."""

    back = 0.0

    def wall(self) -> float:
        """Seconds since 1970, as it says."""
        return SystemClock.wall() - self.back


def test_a_wall_clock_that_is_set_back_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for the queue, in which something waits and something is taken, nor for the rows."""
    clock = SetBack()
    monkeypatch.setattr(event_house, "SystemClock", lambda: clock)

    async def main() -> None:
        async with house(tmp_path, Social(1, demo()), replace(QUICK, first_delay=0.2, most_tries=1)) as here:
            await here.queue.publish([Letter("missing", missing(1))])
            await here.publish(0, 20, again=True)

            async def set_back() -> None:
                await until(lambda: sum(here.system.measures.modes.values()) >= 5)
                clock.back = 3600.0

            async with asyncio.TaskGroup() as group:
                group.create_task(set_back())
                await here.consume(60)
            assert await batches(here) == 20
            found = here.rows("SELECT project_id, platform, post_id FROM post_analytics")
            assert len(found) == len(set(found)) == here.social.totals(0, 20).posts
            assert here.rows("SELECT count(*) FROM crawl_errors") == [(here.social.totals(0, 20).errors,)]
            ((spread,),) = here.rows("SELECT max(processed_at) - min(processed_at) FROM processed_events")
            assert spread > 3000, "some before, some after"
            assert (await here.queue.depth()).dead == 1

    asyncio.run(main())


async def stopped_when(here: House, true: Callable[[], object]) -> None:
    """Run, and stop as soon as that is so."""

    async def stop() -> None:
        await until(true)
        here.system.stop()

    async with asyncio.timeout(300):
        await here.system.run(stop())


@awaited
async def test_to_stop_during_an_outage_counts_as_no_try_of_the_message(tmp_path: Path) -> None:
    async with house(tmp_path, Social(1, demo())) as here:
        await here.publish(0, 1)

        async def down(_batch: AnalyticsBatch) -> BatchResult:
            raise AnalyticsError("the server is gone")

        here.store.keep = down  # type: ignore[method-assign, assignment]
        await stopped_when(here, lambda: here.system.trouble)
        counts = here.system.measures.counted
        assert (counts["received"], counts["postponed"], counts["failed"]) == (1, 1, 0)
    async with house(tmp_path, Social(1, demo())) as again:
        (found,) = await again.queue.take(1, 1.0)
        assert found.tries == 0


@awaited
async def test_to_stop_while_something_is_buried_during_an_outage_leaves_it_in_the_queue(tmp_path: Path) -> None:
    async with house(tmp_path, Social(1, demo()), replace(ALONE, most_tries=0)) as here:
        await here.queue.publish([Letter("missing", missing(1))])

        async def down(_messages: Sequence[OutboxMessage]) -> None:
            raise AnalyticsError("the server is gone")

        here.store.add = down  # type: ignore[method-assign, assignment]
        await stopped_when(here, lambda: here.system.trouble)
        counts = here.system.measures.counted
        assert (counts["postponed"], counts["failed"]) == (1, 0)
        assert not here.alerts, "it is not buried"
    async with house(tmp_path, Social(1, demo())) as again:
        found: list[Delivery] = await again.queue.take(1, 1.0)
        assert [each.key for each in found] == ["missing"]
