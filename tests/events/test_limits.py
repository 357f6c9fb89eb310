"""How much a batch may hold: what is too large is an error in its place, and costs only itself."""

import json
from pathlib import Path
from typing import Any

from event_house import awaited, house
from fake_events import digested, post
from hypothesis import given
from hypothesis import strategies as st

from sanderling.events.batches import SMALL, BatchLimits, bound_items, row_count, weight
from sanderling.events.items import Oversized
from sanderling.stores.queue import Letter
from sanderling.worlds.social import Social
from sanderling.worlds.social_plan import demo

LIMITS = BatchLimits(comments=10, rows=30)


@given(st.lists(st.none() | st.integers(0, 15), max_size=20))
def test_the_largest_items_are_errors_until_the_rest_fits(sizes: list[int | None]) -> None:
    items: list[object] = [5 if size is None else {"comments": [{}] * size} for size in sizes]

    bounded = bound_items(items, LIMITS)

    kept = [place for place, item in enumerate(bounded) if item is items[place]]
    gone = [place for place, item in enumerate(bounded) if isinstance(item, Oversized)]
    assert sorted(kept + gone) == [*range(len(items))]
    assert row_count(bounded) <= max(LIMITS.rows, len(items))
    assert all((sizes[place] or 0) <= LIMITS.comments for place in kept)
    # No more of them than must be, and none that is smaller than one that stays.
    assert not gone or min(sizes[place] or 0 for place in gone) >= max([sizes[place] or 0 for place in kept] or [0])
    needless = [place for place in gone if (sizes[place] or 0) <= LIMITS.comments]
    assert all(row_count(bounded) + (sizes[place] or 0) > LIMITS.rows for place in needless)


def test_an_item_that_is_too_large_is_an_error_with_its_id_and_the_numbers() -> None:
    large = post(permalink="https://x.example/1") | {"comments": [{}] * 11}
    done = digested(bound_items([large, post()], LIMITS))

    ((place, error),) = done.errors
    assert (place, error.content_id, error.permalink) == (0, "7000000000000000001", "https://x.example/1")
    assert (error.code, error.message) == (
        "INVALID_RESPONSE",
        "comments of item 0: found 11, expected at most 10 (max-comments)",
    )
    assert len(done.posts) == 1


def test_the_memory_of_a_document_is_estimated_by_its_marks() -> None:
    empty = b"[" + b"[]," * SMALL + b"0]"

    assert weight(b" " * len(empty)) < 10 * len(empty)
    assert weight(empty) > 64 * SMALL, "what its lists take"


@awaited
async def test_a_message_with_more_items_than_a_batch_may_have_is_buried(tmp_path: Path) -> None:
    async with house(tmp_path, Social(1, demo())) as here:
        many: dict[str, Any] = {"success": True, "payload": [0] * 10_001}
        await here.queue.publish([Letter("many", json.dumps(many).encode())])
        await here.consume()
        (dead,) = await here.queue.dead(10)
        assert dead.why == "found 10,001 items, expected at most 10,000"


def test_what_shall_be_fetched_again_is_asked_for_in_several_messages() -> None:
    failed: list[object] = [
        {"meta": {"id": f"{n}", "fetch_status": "error", "error_code": "TIMEOUT"}} for n in range(501)
    ]

    *retries, _ = digested(failed).batch.outbox

    told = [json.loads(each.body) for each in retries]
    assert [each["event_id"] for each in told] == ["retry-evt_abc123", "retry-evt_abc123-2"]
    assert [item["content_id"] for each in told for item in each["payload"]["items"]] == [f"{n}" for n in range(501)]
