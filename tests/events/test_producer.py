import asyncio
import random
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import events_killed
import msgspec
import pytest
from fake_objects import MemoryObjects
from fake_outbox import MemoryOutbox
from hypothesis import given, settings
from hypothesis import strategies as st
from killed import killed
from producer_items import FOLDER, JOB, UUID, item
from producer_play import JSON, Play, read_batch

from sanderling.events.batches import decode, size_notes
from sanderling.events.posts import Post
from sanderling.events.producer import LARGEST_ITEM, BatchSource, ItemError, SinkRules
from sanderling.executor import in_threads
from sanderling.stores.analytics import AnalyticsError
from sanderling.stores.analytics_open import open_analytics
from sanderling.stores.objects import ObjectError, ObjectFault, open_objects

if sys.version_info >= (3, 14):
    from compression.zstd import get_frame_info
else:
    from backports.zstd import get_frame_info


def test_a_batch_is_an_object_and_an_event_as_the_contract_has_them() -> None:
    play = Play()

    play.add(50)

    (said,) = play.outbox.rows.values()
    assert (said.exchange, said.routing_key, said.created_at) == ("smap.events", "data.collected", 1_800_000_000.0)
    event = msgspec.json.decode(said.body)
    assert event.pop("event_id").startswith("evt_")
    assert event == {
        "event_type": "data.collected",
        "timestamp": "2027-01-15T08:00:00Z",
        "payload": {
            "minio_path": f"{FOLDER}/batch_000.json",
            "project_id": UUID,
            "job_id": JOB,
            "platform": "tiktok",
            "batch_index": 0,
            "content_count": 50,
            "task_type": "research_and_crawl",
            "keyword": "VF8",
            "brand_name": "VinFast",
        },
    }
    body, metadata, _ = play.objects.there[f"{FOLDER}/batch_000.json"]
    plain = msgspec.json.encode([item(number) for number in range(50)])
    assert metadata == {
        "compressed": "true",
        "compression-algorithm": "zstd",
        "compression-level": "2",
        "original-size": str(len(plain)),
        "compressed-size": str(len(body)),
    }
    # Some readers unpack at one go, and need to know how much it will be.
    assert get_frame_info(body).decompressed_size == len(plain)


@pytest.mark.parametrize(("platform", "size"), [("tiktok", 50), ("youtube", 20), ("web", 50)])
def test_batches_have_the_size_that_is_usual_for_the_platform(platform: str, size: int) -> None:
    play = Play(BatchSource(platform=platform, job_id="proj_xyz-brand-0"))

    play.add(2 * size + 1)

    sizes = [event["payload"]["content_count"] for event in play.events()]
    assert sizes == [size, size, 1]
    assert [event["payload"]["batch_index"] for event in play.events()] == [0, 1, 2]
    assert play.paths() == [f"crawl-results/{platform}/proj_xyz/brand/batch_00{number}.json" for number in range(3)]
    assert not size_notes(size, platform, size)
    assert (play.sink.tally.items, play.sink.tally.batches) == (2 * size + 1, 3)


def test_what_was_added_is_safe_after_a_flush_and_a_full_batch_at_once() -> None:
    play = Play(rules=SinkRules(items=3))

    async def act() -> None:
        for number in range(4):
            await play.sink.add(item(number))
        assert len(play.outbox.rows) == 1
        await play.sink.flush()
        assert len(play.outbox.rows) == 2
        await play.sink.flush()
        assert len(play.outbox.rows) == 2

    play.run(act)


def test_large_items_make_small_batches() -> None:
    play = Play(rules=SinkRules(size=LARGEST_ITEM))
    large = "x" * (LARGEST_ITEM // 3)

    async def act() -> None:
        for number in range(7):
            await play.sink.add(item(number, description=large))
        await play.sink.flush()
        assert len(await play.consumed()) == 7

    play.run(act)
    assert [event["payload"]["content_count"] for event in play.events()] == [2, 2, 2, 1]


def test_no_item_waits_longer_than_the_rules_say() -> None:
    play = Play(rules=SinkRules(wait=10))

    async def act() -> None:
        async with asyncio.TaskGroup() as group:
            running = group.create_task(play.sink.run())
            await asyncio.sleep(5)
            await play.sink.add(item(1))
            await asyncio.sleep(4)
            await play.sink.add(item(2))
            await asyncio.sleep(5)
            assert play.outbox.rows == {}
            await asyncio.sleep(1.1)
            assert [event["payload"]["content_count"] for event in play.events()] == [2]
            await play.sink.add(item(3))
            play.sink.stop()
            await running
        assert [event["payload"]["content_count"] for event in play.events()] == [2, 1]

    play.run(act)


def test_those_who_add_at_once_make_whole_batches() -> None:
    play = Play(rules=SinkRules(items=5))
    play.outbox.fails = lambda: play.clock.now() < 3

    async def act() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(23):
                group.create_task(play.sink.add(item(number)))
        assert play.sink.tally.batches == 4
        await play.sink.flush()
        assert {post.id for post in await play.consumed() if isinstance(post, Post)} == {
            str(7_000_000_000_000_000_000 + number) for number in range(23)
        }

    play.run(act)
    assert [event["payload"]["content_count"] for event in play.events()] == [5, 5, 5, 5, 3]


# --- outages, and the end of a process ---


@pytest.mark.parametrize("away", ["objects", "outbox"])
def test_an_outage_is_waited_out(away: str) -> None:
    play = Play(rules=SinkRules(items=2))
    if away == "objects":
        play.objects.fails = lambda _: ObjectFault.DOWN if play.clock.now() < 1000 else None
    else:
        play.outbox.fails = lambda: play.clock.now() < 1000

    async def act() -> None:
        async with asyncio.TaskGroup() as group:
            adding = group.create_task(twice())
            await asyncio.sleep(500)
            assert not adding.done()
            assert play.sink.tally.trouble in ("objects: get is down", "the database is away")
            await asyncio.sleep(600)
            assert adding.done()
        assert play.sink.tally.trouble == ""
        assert 5 < play.sink.tally.failures < 100

    async def twice() -> None:
        for number in range(2):
            await play.sink.add(item(number))

    play.run(act)
    assert play.paths() == [f"{FOLDER}/batch_000.json"]


@pytest.mark.parametrize("fault", [ObjectFault.REFUSED, ObjectFault.UNUSABLE])
def test_what_will_never_be_taken_is_raised_and_the_items_stay(fault: ObjectFault) -> None:
    play = Play(rules=SinkRules(items=1))
    play.objects.fails = lambda what: fault if what == "put" else None

    async def act() -> None:
        with pytest.raises(ObjectError):
            await play.sink.add(item(1))
        play.objects.fails = lambda _: None
        await play.sink.flush()

    play.run(act)
    assert play.sink.tally.items == 1


def test_a_database_that_refuses_is_raised() -> None:
    class Refusing(MemoryOutbox):
        async def add(self, messages: object) -> None:
            raise AnalyticsError(f"no: {messages}", transient=False)

    play = Play(rules=SinkRules(items=1))
    play.outbox = Refusing()
    play.restart()

    async def act() -> None:
        with pytest.raises(AnalyticsError, match="no:"):
            await play.sink.add(item(1))

    play.run(act)


def test_a_batch_without_its_event_is_written_again_under_the_same_name() -> None:
    """The process dies after the object, and before the event; the crawler hands the items again."""
    play = Play(rules=SinkRules(items=3))
    play.outbox.fails = lambda: True

    async def hand() -> None:
        async with asyncio.timeout(300):
            for number in range(3):
                await play.sink.add(item(number))

    with pytest.raises(TimeoutError):
        play.run(hand)
    assert (len(play.objects.there), len(play.outbox.rows)) == (1, 0)
    play.outbox.fails = lambda: False
    play.restart()
    play.add(3)

    assert play.paths() == [f"{FOLDER}/batch_000.json"]
    assert len(play.objects.there) == 1


def test_a_batch_that_is_sent_again_is_the_same_event() -> None:
    play = Play(rules=SinkRules(items=3))
    play.add(7)
    first = play.events()

    play.restart()
    play.add(7)

    again = play.events()[3:]
    assert [event["event_id"] for event in again] == [event["event_id"] for event in first]
    assert len({event["event_id"] for event in first}) == 3
    assert play.paths()[3:] == play.paths()[:3]


def test_no_batch_takes_the_place_of_another() -> None:
    """A crawl that begins anew with the same job has other items in its first batch; the earlier may be wanted yet."""
    play = Play(rules=SinkRules(items=3))
    play.add(3)
    play.restart()
    play.add(3, first=100)
    play.restart()
    play.add(3, first=100)

    async def act() -> set[str]:
        return {post.id for post in await play.consumed() if isinstance(post, Post)}

    assert play.run(act) == {str(7_000_000_000_000_000_000 + number) for number in (0, 1, 2, 100, 101, 102)}
    plain, other, again = play.paths()
    assert plain == f"{FOLDER}/batch_000.json"
    assert other.startswith(f"{FOLDER}/batch_000-")
    assert again == other
    assert len({event["event_id"] for event in play.events()}) == 2


def test_other_batches_have_other_ids() -> None:
    ids = set()
    for job in (JOB, f"{UUID}-competitor-Misa-1"):
        play = Play(BatchSource(platform="tiktok", job_id=job), SinkRules(items=1))
        play.add(1)
        play.add(1)
        ids |= {event["event_id"] for event in play.events()}

    assert len(ids) == 4


def test_who_may_write_and_not_read_overwrites_nothing() -> None:
    play = Play(rules=SinkRules(items=1))
    play.objects.fails = lambda what: ObjectFault.REFUSED if what == "get" else None

    play.add(1)

    assert play.paths()[0].startswith(f"{FOLDER}/batch_000-")


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), loss=st.floats(0, 0.5), size=st.integers(1, 6))
def test_whatever_fails_and_whoever_dies_every_item_arrives(seed: int, loss: float, size: int) -> None:
    """A crawler that goes on from its last flush, with a sink that is killed now and then."""
    chance = random.Random(seed)
    play = Play(rules=SinkRules(items=size, wait=5))
    play.objects.fails = lambda _: ObjectFault.DOWN if chance.random() < loss else None
    play.outbox.fails = lambda: chance.random() < loss

    async def life(cursor: int) -> int:
        try:
            async with asyncio.timeout(chance.random() * 30):
                while cursor < 30:
                    step = chance.randrange(1, 8)
                    for number in range(cursor, min(30, cursor + step)):
                        await play.sink.add(item(number))
                    await play.sink.flush()
                    cursor = min(30, cursor + step)
        except TimeoutError:
            pass
        return cursor

    async def act() -> set[str]:
        cursor = 0
        while cursor < 30:
            play.restart()
            cursor = await life(cursor)
        play.objects.fails = lambda _: None
        return {post.id for post in await play.consumed() if isinstance(post, Post)}

    assert play.run(act) == {str(7_000_000_000_000_000_000 + number) for number in range(30)}
    assert len(set(play.objects.puts)) == len(play.objects.there)


# --- items ---


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ([1, 2], "an item is a list, expected an object"),
        ("text", "an item is a str"),
        ({"a": object()}, "cannot be written as JSON"),
        ({"a": "\ud800"}, "cannot be written as JSON"),
        ({"a": "x" * LARGEST_ITEM}, "bytes, expected at most 4,194,304"),
        ({"a": 1 + (2 << 70)}, ""),
    ],
)
def test_what_cannot_be_an_item_is_refused_and_the_others_are_not(bad: Any, why: str) -> None:  # noqa: ANN401 - anything
    play = Play(rules=SinkRules(items=2))

    async def act() -> None:
        await play.sink.add(item(1))
        if why:
            with pytest.raises(ItemError, match=why):
                await play.sink.add(bad)
        await play.sink.add(item(2))
        assert len(await play.consumed()) == 2

    play.run(act)


def test_an_item_of_endless_depth_is_refused() -> None:
    deep: dict[str, object] = {}
    for _ in range(100_000):
        deep = {"a": deep}

    async def act() -> None:
        with pytest.raises(ItemError, match="cannot be written as JSON"):
            await play.sink.add(deep)

    play = Play()
    play.run(act)
    # Let it go level by level: to forget it at one go is more than Python's stack holds.
    while deep:
        deep = deep["a"]  # type: ignore[assignment]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.dictionaries(st.text(max_size=8), JSON, max_size=4), max_size=12), st.integers(1, 5))
def test_what_goes_into_batches_comes_out_of_them(items: list[dict[str, object]], size: int) -> None:
    play = Play(rules=SinkRules(items=size))

    async def act() -> list[object]:
        for each in items:
            await play.sink.add(each)
        await play.sink.flush()
        found: list[object] = []
        for path in play.paths():
            body, metadata, _ = play.objects.there[path]
            found += decode(body, metadata=metadata, key=path).items
        return found

    assert play.run(act) == items


@pytest.mark.parametrize(
    ("given_source", "why"),
    [
        ({"platform": "tiktok", "job_id": UUID}, "it names no project, and none is given"),
        ({"platform": "tiktok", "job_id": "north-star-coca-cola-0"}, "it names no project"),
        ({"platform": "tiktok", "job_id": "", "project_id": UUID}, "job_id is ''"),
        ({"platform": "tiktok", "job_id": "job", "project_id": "Name"}, "project_id is 'Name', expected a UUID"),
        ({"platform": "TikTok", "job_id": JOB}, "are .'TikTok', .*which would be read as .'tiktok', "),
        ({"platform": "no such word", "job_id": JOB}, "platform is 'no such word'"),
        ({"platform": "tiktok", "job_id": JOB, "project_id": UUID.replace("f", "0")}, "but the job"),
        ({"platform": "tiktok", "job_id": JOB, "keyword": "k" * 300}, "keyword is"),
        ({"platform": "tiktok", "job_id": JOB, "bucket": "../up"}, "has no bucket that could exist"),
    ],
)
def test_a_source_that_would_be_read_otherwise_is_a_mistake(given_source: Mapping[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=f"batches of the job .*{why}"):
        BatchSource(**given_source)


@pytest.mark.parametrize(
    ("given_source", "folder"),
    [
        (BatchSource(platform="tiktok", job_id="proj_xyz-brand-0"), "tiktok/proj_xyz/brand"),
        (BatchSource(platform="web", job_id="job", project_id=UUID.upper()), f"web/{UUID}/brand"),
        (BatchSource(platform="tiktok", job_id=f"{UUID}-competitor-A/B & co-3"), f"tiktok/{UUID}/competitor_A_B_co"),
        (
            BatchSource(platform="tiktok", job_id=f"{UUID}-competitor-{'é' * 100}-3"),
            f"tiktok/{UUID}/competitor_{'é' * 49}",
        ),
        (BatchSource(platform="tiktok", job_id=f"{UUID}-../..-3"), f"tiktok/{UUID}/_"),
    ],
)
def test_a_path_says_whose_the_batch_is_and_leads_nowhere_else(given_source: BatchSource, folder: str) -> None:
    assert given_source.folder == folder


@pytest.mark.parametrize("wrong", [{"items": 0}, {"size": 1}, {"wait": 0}])
def test_rules_that_make_no_sense_are_a_mistake(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="expected items from 1 up"):
        SinkRules(**wrong)  # type: ignore[arg-type]


def test_who_is_killed_has_lost_nothing_that_was_safe(tmp_path: Path) -> None:
    chance, safe = random.Random(2), 0
    for _ in range(3):
        rounds = chance.randrange(1, 6)
        killed([events_killed.__file__, str(tmp_path), "crawl", str(safe)], after=rounds)
        safe += 10 * rounds

    async def after() -> set[str]:
        found: set[str] = set()
        with ThreadPoolExecutor(1) as threads:
            outbox = await open_analytics(f"sqlite:{tmp_path}/events.db", in_threads(threads))
            objects = open_objects(f"file:{tmp_path}/objects")
            for message in await outbox.waiting(0, 10_000):
                found |= {each.id for each in await read_batch(objects, message) if isinstance(each, Post)}
            await objects.close()
            await outbox.close()
        return found

    assert asyncio.run(after()) >= {str(7_000_000_000_000_000_000 + number) for number in range(safe)}


class Failing(MemoryObjects):
    """A store that always fails so."""

    def __init__(self, error: ObjectError) -> None:
        super().__init__()
        self.error = error
        self.asked = 0

    async def put(self, bucket: str, key: str, body: bytes, metadata: Mapping[str, str]) -> None:
        del bucket, key, body, metadata
        self.asked += 1
        raise self.error


@pytest.mark.parametrize(
    "error",
    [
        ObjectError("status 500: out of luck", fault=ObjectFault.FAILED),
        ObjectError("there is no such bucket", fault=ObjectFault.MISSING),
        ObjectError("No space left on device", fault=ObjectFault.DOWN, full=True),
    ],
)
def test_what_a_store_always_fails_at_is_given_up_with_its_words(error: ObjectError) -> None:
    play = Play(rules=SinkRules(tries=8))
    play.objects = objects = Failing(error)
    play.restart()

    with pytest.raises(ObjectError, match=f"{error}; after 8 tries"):
        play.add(1)

    assert objects.asked == 8
    assert play.outbox.rows == {}


def test_a_store_that_cannot_be_reached_is_waited_for() -> None:
    play = Play(rules=SinkRules(tries=8))
    play.objects = objects = Failing(ObjectError("nobody there", fault=ObjectFault.DOWN))
    play.restart()

    with pytest.raises(TimeoutError):
        play.add(1)

    assert objects.asked > 1000
