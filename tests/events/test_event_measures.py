"""What is counted of real batches: under names that are ours, in bounded memory, and read off in one piece."""

import asyncio
from collections.abc import Mapping
from typing import TypeVar

import msgspec
import pytest
from fake_events import GOOD, digested, error, legacy, mixed, post, process_a_little
from hypothesis import given
from hypothesis import strategies as st

from sanderling.events.measures import (
    PLATFORMS,
    RANGES,
    REASONS,
    EventMeasures,
    code_label,
    platform_label,
)
from sanderling.events.rows import ProcessedBatch
from sanderling.events.taxonomy import RULES
from sanderling.outcome import Category
from sanderling.testing import FakeClock


def kept(*several: ProcessedBatch) -> EventMeasures:
    seen = EventMeasures(FakeClock())
    for each in several:
        seen.kept(each)
    return seen


def rates(seen: EventMeasures) -> dict[str, float]:
    return {platform: share.percent for platform, share in seen.shares.items()}


K = TypeVar("K")


def occurred(counts: Mapping[K, int]) -> dict[K, int]:
    return {name: number for name, number in counts.items() if number}


# Messages.


def test_messages_are_in_hand_until_something_becomes_of_them() -> None:
    seen, active = EventMeasures(FakeClock()), []
    for say in (
        seen.received,
        seen.received,
        seen.received,
        lambda: seen.processed("tiktok", 1.0),
        seen.duplicate,
        seen.failed,
        seen.postponed,
    ):
        say()
        active.append(seen.active)

    assert active == [1, 2, 3, 2, 2, 1, 0]


def test_a_message_is_timed_by_itself_and_by_its_platform() -> None:
    seen = EventMeasures(FakeClock())
    for platform, seconds in (("tiktok", 0.3), ("tiktok", 12.0), ("elsewhere", 1.0), ("youtube", -5.0)):
        seen.processed(platform, seconds)

    counts = seen
    assert occurred(counts.done) == {"tiktok": 2, "other": 1, "youtube": 1}
    assert counts.event_seconds.total == pytest.approx(13.3)
    assert {name: found.total for name, found in counts.batch_seconds.items()} == pytest.approx(
        {"tiktok": 12.3, "other": 1.0, "youtube": 0.0}
    )


def test_what_went_out_is_counted_by_its_routing_key() -> None:
    seen = EventMeasures(FakeClock())
    seen.sent("crawl.retry")
    seen.sent("analyze.result", 3)
    seen.sent("x" * 99)

    assert seen.outgoing == {"crawl.retry": 1, "analyze.result": 3, "data.collected": 0, "other": 1}


def test_the_queue_is_connected_as_it_was_last() -> None:
    seen = EventMeasures(FakeClock())
    found = [seen.is_connected]  # nobody has asked it yet
    for ok in (True, False):
        seen.connected(ok=ok)
        found.append(seen.is_connected)

    assert found == [False, True, False]


# Times.


def test_each_stage_times_itself_also_while_others_do() -> None:
    clock = FakeClock()
    seen = EventMeasures(clock)
    with seen.fetching():
        clock.advance(1.0)
        with seen.fetching(), seen.parsing():
            clock.advance(0.25)
        with seen.analysing():
            clock.advance(0.5)

    counts = seen
    assert counts.fetch_seconds.total == pytest.approx(1.75 + 0.25)
    assert (counts.parse_seconds.total, counts.analysis_seconds.total) == (0.25, 0.5)
    assert counts.counted["fetched"] == 2


@pytest.mark.parametrize("failure", [ValueError, asyncio.CancelledError])
def test_a_stage_that_fails_is_not_timed_and_fails_on(failure: type[BaseException]) -> None:
    seen = EventMeasures(FakeClock())
    for stage in (seen.fetching, seen.parsing, seen.analysing):
        with pytest.raises(failure), stage():
            raise failure

    counts = seen
    assert counts.counted["fetched"] == 0
    for histogram in (counts.fetch_seconds, counts.parse_seconds, counts.analysis_seconds):
        assert sum(number for _, number in histogram.buckets) == 0


# Batches.


def test_each_item_is_counted_once_by_its_own_platform() -> None:
    counts = kept(mixed())

    assert occurred(counts.items) == {("tiktok", "success"): 4, ("youtube", "success"): 1, ("tiktok", "error"): 3}
    assert occurred(counts.codes) == {
        ("RATE_LIMITED", "tiktok"): 1,
        ("other", "tiktok"): 1,
        ("INVALID_RESPONSE", "tiktok"): 1,
    }
    assert occurred(counts.categories) == {
        ("rate_limiting", "tiktok"): 1,
        ("generic", "tiktok"): 1,
        ("parsing", "tiktok"): 1,
    }


@pytest.mark.parametrize(
    ("items", "status"),
    [
        ([post(), post()], "success"),
        ([post(), error("TIMEOUT")], "partial"),
        ([error("TIMEOUT"), 7], "failed"),
        ([], "empty"),
    ],
)
def test_a_batch_is_counted_by_how_many_of_its_items_are_posts(items: list[object], status: str) -> None:
    assert occurred(kept(digested(items)).batches) == {("tiktok", status): 1}


def test_a_batch_is_counted_by_the_format_of_its_message() -> None:
    old = legacy([post()], {"data_ref": {"bucket": "b", "path": "p"}, "platform": "facebook"})
    inline = legacy([post()], {"meta": {"id": "1", "platform": "instagram"}})

    counts = kept(mixed(), mixed(), old, inline)

    assert counts.modes == {"new": 2, "legacy": 1, "inline": 1}
    assert {platform for platform, _ in occurred(counts.batches)} == {"tiktok", "facebook", "instagram"}


def test_sentiments_are_those_of_posts_that_were_analysed_and_the_others_are_skipped() -> None:
    counts = kept(mixed())

    assert occurred(counts.sentiments) == {
        ("POSITIVE", "tiktok"): 1,
        ("POSITIVE", "youtube"): 1,
        ("NEGATIVE", "tiktok"): 1,
        ("NEUTRAL", "tiktok"): 1,
    }
    assert occurred(counts.skipped) == {"too short": 1}


def test_every_reason_to_skip_a_post_has_its_name() -> None:
    batch = digested([post("ok"), post(f"{GOOD} vay tiền nhanh")])
    reasons = {analysis.skipped for analysis in batch.analyses}

    assert reasons == {"too short", "spam keyword"}
    assert {*occurred(kept(batch).skipped)} == reasons


def test_a_reason_that_somebody_has_made_up_is_one_of_others() -> None:
    batch = digested([post("ok"), post("ok")])
    made_up = [msgspec.structs.replace(each, skipped=f"family {place}") for place, each in enumerate(batch.analyses)]

    assert occurred(kept(batch._replace(analyses=made_up)).skipped) == {"other": 2}


# Rates.


def test_rates_are_in_percent_of_each_platforms_items() -> None:
    youtube = digested([post(platform="youtube")] * 3 + [error("TIMEOUT", platform="youtube")])

    assert rates(kept(mixed(), youtube)) == pytest.approx({"tiktok": 100 * 4 / 7, "youtube": 80.0})


def test_an_empty_batch_does_not_change_a_rate() -> None:
    assert rates(kept(digested([]))) == {}
    assert rates(kept(digested([post(), 7]), digested([]))) == {"tiktok": 50.0}


def test_a_rate_forgets_what_is_long_ago() -> None:
    bad, good = digested([error("TIMEOUT")] * 50), digested([post()] * 50)

    assert rates(kept(*[bad] * 20, *[good] * 10)) == {"tiktok": 50.0}
    assert rates(kept(*[bad] * 20, *[good] * 20)) == {"tiktok": 100.0}


# Names of strangers.


@pytest.mark.parametrize(
    ("platform", "items", "found"),
    [
        ("tiktok", 50, None),
        ("tiktok", 0, ("tiktok", "50", "0")),
        ("tiktok", 49, ("tiktok", "50", "20-49")),
        ("tiktok", 51, ("tiktok", "50", "50-99")),
        ("tiktok", 10**9, ("tiktok", "50", "100+")),
        ("youtube", 20, None),
        ("youtube", 1, ("youtube", "20", "1-9")),
        ("youtube", 19, ("youtube", "20", "10-19")),
        ("facebook", 3, None),
        ("elsewhere", 3, None),
    ],
)
def test_an_odd_batch_has_an_unusual_size_if_there_is_a_usual_one(
    platform: str, items: int, found: tuple[str, str, str] | None
) -> None:
    seen = EventMeasures(FakeClock())
    seen.odd(platform, items)

    assert occurred(seen.noted) == {platform_label(platform): 1}
    assert seen.mismatches == ({} if found is None else {found: 1})


@pytest.mark.parametrize(
    ("code", "label"),
    [
        ("RATE_LIMITED", "RATE_LIMITED"),
        (" rate-limited ", "RATE_LIMITED"),
        ("dns error", "DNS_ERROR"),
        ("RATE_LIMITED_PERMANENT", "RATE_LIMITED_PERMANENT"),
        ("BLOCKED", "BLOCKED"),
        ("", "other"),
        ("whatever", "other"),
    ],
)
def test_a_code_that_we_know_is_a_label_however_it_is_spelled(code: str, label: str) -> None:
    assert code_label(code) == label


def items() -> st.SearchStrategy[list[object]]:
    names = st.text(max_size=6) | st.sampled_from(["tiktok", "TikTok", "TIMEOUT", "PARSE_ERROR"])
    item = st.builds(lambda code, platform: error(code, platform=platform), names, names) | st.integers()
    return st.lists(item | st.builds(lambda name: post("x", platform=name), names), max_size=8)


@given(st.lists(items(), max_size=4), st.text(max_size=8), st.integers(0, 200))
def test_names_of_strangers_are_one_label_and_no_item_is_lost(
    batches: list[list[object]], name: str, number: int
) -> None:
    seen = EventMeasures(FakeClock())
    for each in batches:
        seen.kept(digested(each, platform=name))
        seen.processed(name, 1.0)
        seen.odd(name, number)

    counts = seen
    platforms = {
        *counts.done,
        *counts.noted,
        *counts.batch_seconds,
        *counts.shares,
        *(each for each, _ in counts.items),
        *(each for each, _ in counts.batches),
        *(each for _, each in counts.codes),
        *(each for _, each in counts.categories),
        *(each for _, each in counts.sentiments),
    }
    assert platforms <= {*PLATFORMS}
    assert {code for code, _ in counts.codes} <= {*RULES, "other"}
    assert {category for category, _ in counts.categories} == {each.value for each in Category}
    assert {*counts.skipped} == {*REASONS}
    assert {size for _, _, size in counts.mismatches} <= {*RANGES}
    assert sum(counts.items.values()) == sum(map(len, batches))
    errors = sum(number for (_, status), number in counts.items.items() if status == "error")
    assert sum(counts.codes.values()) == sum(counts.categories.values()) == errors
    assert sum(counts.sentiments.values()) + sum(counts.skipped.values()) == sum(map(len, batches)) - errors


def test_what_is_watched_for_rising_begins_at_zero() -> None:
    counts = EventMeasures(FakeClock())

    assert counts.done == dict.fromkeys(PLATFORMS, 0)
    assert len(counts.items) == 2 * len(PLATFORMS)
    assert len(counts.categories) == len(Category) * len(PLATFORMS)
    assert len(counts.batches) == 4 * len(PLATFORMS)


def test_what_was_handed_out_does_not_change_any_more() -> None:
    seen = EventMeasures(FakeClock())
    process_a_little(seen, FakeClock())
    before, again = tuple(seen.metrics()), msgspec.json.encode(tuple(seen.metrics()))
    process_a_little(seen, FakeClock())

    assert msgspec.json.encode(before) == again != msgspec.json.encode(tuple(seen.metrics()))
