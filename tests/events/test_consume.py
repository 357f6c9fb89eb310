"""Batches of a simulated crawler, consumed into a real database: every item ends in one row, once."""

import asyncio
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from event_house import QUICK, House, awaited, everything, house

from sanderling.events.modes import Modes, write_modes
from sanderling.stores.analytics import AnalyticsBatch, AnalyticsError, BatchResult
from sanderling.stores.objects import ObjectError, ObjectFault, StoredObject
from sanderling.stores.queue import Letter
from sanderling.worlds.social import Social
from sanderling.worlds.social_hostile import Spoil
from sanderling.worlds.social_plan import demo, hostile
from sanderling.worlds.social_truth import BatchFate


def posts_of(here: House) -> Counter[tuple[Any, ...]]:
    return Counter(here.rows("SELECT project_id, platform, post_id FROM post_analytics"))


def errors_of(here: House) -> Counter[tuple[Any, ...]]:
    return Counter(here.rows("SELECT event_id, item_index FROM crawl_errors"))


def check(here: House, first: int, end: int) -> None:
    """Every item of every batch that can be read is in one of the two tables, once."""
    posts, errors = posts_of(here), errors_of(here)
    totals = here.social.totals(first, end)
    assert set(posts.values()) <= {1}
    assert set(errors.values()) <= {1}
    assert (len(posts), len(errors)) == (totals.posts, totals.errors)
    codes: Counter[str] = Counter(dict(here.rows("SELECT error_code, count(*) FROM crawl_errors GROUP BY error_code")))
    assert codes == totals.codes
    platforms = dict(here.rows("SELECT platform, count(*) FROM post_analytics GROUP BY platform"))
    assert platforms == dict(totals.platforms)
    projects = dict(here.rows("SELECT project_id, count(*) FROM post_analytics GROUP BY project_id"))
    assert projects == dict(totals.projects)


@awaited
async def test_a_day_of_batches_is_all_in_the_rows_and_each_message_once(tmp_path: Path) -> None:
    async with house(tmp_path, Social(1, demo())) as here:
        await here.publish(0, 40, again=True)
        await here.consume()
        check(here, 0, 40)
        assert here.system.measures.counted["duplicate"] == 40
        depth = await here.queue.depth()
        assert (depth.ready, depth.dead) == (0, 0)
        told = [json.loads(body) for body in await everything(here.results)]
        assert sum(each["success_count"] + each["error_count"] for each in told) == sum(
            len(here.social.truth(number).items) for number in range(40) if here.social.truth(number).project
        )
        assert all(each["task_type"] == "analyze_result" for each in told)
        # What may be had later is asked of the crawler once more, though each message came twice.
        asked = [json.loads(body) for body in await everything(here.retries)]
        again = Counter(item["error_code"] for each in asked for item in each["payload"]["items"])
        stored: Counter[str] = Counter(
            dict(here.rows("SELECT error_code, count(*) FROM crawl_errors GROUP BY error_code"))
        )
        assert again["RATE_LIMITED"] == stored["RATE_LIMITED"] > 0
        assert "CONTENT_REMOVED" not in again


@awaited
async def test_a_hostile_day_loses_nothing_that_can_be_read(tmp_path: Path) -> None:
    """Bombs, depth, truncated frames, missing objects, messages that are none, duplicates, another order."""
    # More than half of the batches are spoiled: with this seed the first fifty have every way in which one can be.
    social, batches = Social(9, replace(hostile(), spoils=dict.fromkeys(Spoil, 0.035))), range(50)
    async with house(tmp_path, social) as here:
        for number in batches:
            await here.put(number)
        letters = [Letter(f"{place}", delivery.envelope) for place, delivery in enumerate(social.deliveries(50))]
        await here.queue.publish(letters)
        await here.consume(120.0)
        check(here, 0, 50)
        dead = Counter(social.truth(number).fate for number in batches)
        assert 0 < dead[BatchFate.READ] < 40
        lost = {
            social.truth(number).event_id or str(number)
            for number in batches
            if social.truth(number).fate is not BatchFate.READ
        }
        buried = await here.queue.dead(1000)
        assert len(buried) >= len(lost)
        assert all(each.why for each in buried)
        assert here.alerts, "somebody is told"


@awaited
async def test_a_format_that_is_switched_off_waits_and_is_not_lost(tmp_path: Path) -> None:
    async with house(tmp_path, Social(1, demo())) as here:
        write_modes(tmp_path, Modes(new=False))
        here.system.stations.modes.look()
        await here.publish(0, 20)

        async def switch() -> None:
            await asyncio.sleep(1.0)
            assert not here.rows("SELECT 1 FROM processed_events WHERE mode = 'new'")
            write_modes(tmp_path, Modes())

        async with asyncio.TaskGroup() as group:
            group.create_task(switch())
            await here.consume()
        check(here, 0, 20)
        assert (await here.queue.depth()).dead == 0


@awaited
async def test_a_canary_takes_its_share_and_the_rest_waits(tmp_path: Path) -> None:
    async with house(tmp_path, Social(1, demo())) as here:
        here.system.stations.modes.now = Modes(canary=0.5)
        await here.publish(0, 30)

        async def widen() -> None:
            while here.system.measures.counted["received"] < 75:  # noqa: ASYNC110 - those that wait come again
                await asyncio.sleep(0.02)
            new = here.rows("SELECT count(*) FROM processed_events WHERE mode = 'new'")[0][0]
            assert 4 < new < 23
            write_modes(tmp_path, Modes())

        async with asyncio.TaskGroup() as group:
            group.create_task(widen())
            await here.consume()
        check(here, 0, 30)


@awaited
async def test_an_object_store_that_is_down_stops_everything_and_it_goes_on_by_itself(tmp_path: Path) -> None:
    async with house(tmp_path, Social(1, demo())) as here:
        await here.publish(0, 10)
        get, failed = here.objects.get, 0

        async def down(bucket: str, key: str, most: int) -> StoredObject:
            nonlocal failed
            failed += 1
            if failed < 10:
                raise ObjectError("nobody answers", fault=ObjectFault.DOWN)
            return await get(bucket, key, most)

        here.objects.get = down  # type: ignore[method-assign]
        await here.consume()
        check(here, 0, 10)
        assert (await here.queue.depth()).dead == 0


@awaited
async def test_a_database_that_is_down_stops_everything_and_it_goes_on_by_itself(tmp_path: Path) -> None:
    async with house(tmp_path, Social(1, demo())) as here:
        await here.publish(0, 10)
        keep, failed = here.store.keep, 0

        async def down(batch: AnalyticsBatch) -> BatchResult:
            nonlocal failed
            failed += 1
            if failed < 10:
                raise AnalyticsError("the server is starting up")
            return await keep(batch)

        here.store.keep = down  # type: ignore[method-assign]
        await here.consume()
        check(here, 0, 10)
        assert (await here.queue.depth()).dead == 0


@awaited
async def test_to_stop_during_an_outage_leaves_the_messages_to_others(tmp_path: Path) -> None:
    async with house(tmp_path, Social(1, demo())) as here:
        await here.publish(0, 6)

        async def down(_batch: AnalyticsBatch) -> BatchResult:
            raise AnalyticsError("the server is gone")

        keep = here.store.keep
        here.store.keep = down  # type: ignore[method-assign, assignment]

        async def stop() -> None:
            await asyncio.sleep(0.5)
            here.system.stop()

        async with asyncio.timeout(300):
            await here.system.run(stop())
        here.store.keep = keep  # type: ignore[method-assign]
        assert not posts_of(here)
    async with house(tmp_path, Social(1, demo())) as again:
        await again.consume()
        check(again, 0, 6)


@awaited
async def test_a_batch_that_comes_late_is_waited_for(tmp_path: Path) -> None:
    rules = replace(QUICK, first_delay=0.2, longest_delay=0.2, most_tries=50)
    async with house(tmp_path, Social(1, demo()), rules) as here:
        await here.queue.publish([Letter("early", here.social.envelope(0))])

        async def put() -> None:
            await asyncio.sleep(0.5)
            await here.put(0)

        async with asyncio.TaskGroup() as group:
            group.create_task(put())
            await here.consume()
        check(here, 0, 1)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"event_type": "project.created", "payload": {}}', b"\xff" * 100])
@awaited
async def test_a_message_that_is_none_is_buried_with_a_reason(tmp_path: Path, body: bytes) -> None:
    async with house(tmp_path, Social(1, demo())) as here:
        await here.queue.publish([Letter("poison", body)])
        await here.publish(0, 2)
        await here.consume()
        check(here, 0, 2)
        (dead,) = await here.queue.dead(10)
        assert dead.why.startswith("message")
