"""A simulated crawler: any batch by its number, the same every time, and the truth about it."""

import tracemalloc
from collections import Counter
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sanderling.events.batches import decode
from sanderling.worlds.social import BEGAN, Social, SocialBatch
from sanderling.worlds.social_day import CODES, UNHEARD
from sanderling.worlds.social_envelopes import Version
from sanderling.worlds.social_hostile import Spoil, Twist
from sanderling.worlds.social_items import Spelling, post_id
from sanderling.worlds.social_market import MarketRules
from sanderling.worlds.social_plan import (
    MOST_DAYS,
    PRESETS,
    TREND,
    TRENDING,
    FormRules,
    SocialRules,
    day,
    demo,
    hostile,
)
from sanderling.worlds.social_truth import BatchFate, Totals

NUMBERS = st.integers(0, 10**7)
PLAIN = SocialRules(twists={}, shared=0.0)


def only(version: Version) -> SocialRules:
    return replace(PLAIN, forms=FormRules(versions={version: 1.0}))


@settings(max_examples=40)
@given(st.sampled_from(sorted(PRESETS)), NUMBERS, st.integers())
def test_any_batch_can_be_asked_for_and_is_the_same_every_time(preset: str, number: int, seed: int) -> None:
    one, other = Social(seed, PRESETS[preset]()), Social(seed, PRESETS[preset]())
    number %= MOST_DAYS * one.rules.batches

    other.batch(0)

    assert one.batch(number) == other.batch(number)


@settings(max_examples=40)
@given(st.sampled_from(sorted(PRESETS)), st.integers(0, 10**6))
def test_the_parts_of_a_batch_can_be_had_without_it(preset: str, number: int) -> None:
    social = Social(5, PRESETS[preset]())

    batch = social.batch(number)

    assert social.truth(number) == batch.truth
    assert social.envelope(number) == batch.envelope


def test_another_seed_gives_other_projects_posts_and_texts() -> None:
    one, other = Social(1, PLAIN).batch(0), Social(2, PLAIN).batch(0)

    assert one.truth.project != other.truth.project
    assert {item.id for item in one.truth.items}.isdisjoint(item.id for item in other.truth.items)


@pytest.mark.parametrize("number", [-1, MOST_DAYS * 2000])
def test_a_batch_that_is_never_sent_cannot_be_asked_for(number: int) -> None:
    with pytest.raises(ValueError, match=r"batch -?\d+, expected 0 to 72999999"):
        Social(1, day()).batch(number)


def test_the_last_batch_of_all_can_be_asked_for() -> None:
    social = Social(1, SocialRules(batches=1))

    assert social.batch(MOST_DAYS - 1).truth.sent_at == BEGAN + 86_400.0 * (MOST_DAYS - 1)


def test_batches_are_sent_evenly_over_the_day() -> None:
    social = Social(1, SocialRules(batches=100), began=50.0)

    assert social.sent_at(0) == 50.0
    assert social.sent_at(1) == 50.0 + 864.0
    assert social.sent_at(100) == 50.0 + 86_400.0
    assert social.truth(3).sent_at == 50.0 + 3 * 864.0


def test_no_two_messages_objects_or_posts_are_the_same() -> None:
    social = Social(1, replace(PLAIN, market=MarketRules(projects=7)))
    batches = [social.batch(number) for number in range(250)]

    events = [batch.truth.event_id for batch in batches if batch.truth.event_id]
    paths = [batch.path for batch in batches if batch.path]
    posts = [(batch.truth.platform, item.id) for batch in batches for item in batch.truth.items]
    for each in (events, paths, posts, [batch.envelope for batch in batches]):
        assert len(set(each)) == len(each) > 100


def test_a_batch_has_no_post_twice() -> None:
    social = Social(1, replace(PLAIN, shared=1.0))

    for number in range(20):
        ids = [item.id for item in social.truth(number).items]
        assert len(set(ids)) == len(ids)


@given(st.integers(0, 2**40), st.integers(0, 2**64 - 1))
def test_ids_of_the_one_platform_have_19_digits(number: int, salt: int) -> None:
    assert len(post_id("tiktok", number, salt)) == 19
    assert post_id("tiktok", number, salt).isdigit()
    assert len(post_id("youtube", number, salt)) == 11
    assert post_id("tiktok", number, salt) != post_id("tiktok", number + 1, salt)


def test_the_same_posts_are_found_by_several_projects_and_say_the_same() -> None:
    social = Social(1, replace(PLAIN, shared=0.3, forms=FormRules(spellings={Spelling.GUIDE: 1.0})))
    found: dict[tuple[str, str], list[tuple[str | None, object, object]]] = {}
    for number in range(2 * TREND):
        batch = social.batch(number)
        for raw, item in zip(items_of(batch), batch.truth.items, strict=True):
            if item.shared and item.id:
                said = {part: raw[part] for part in ("content", "author", "comments")}
                found.setdefault((batch.truth.platform, item.id), []).append((batch.truth.project, item, said))

    several = [each for each in found.values() if len({project for project, *_ in each}) > 1]
    assert len(several) > 5
    assert all(each[1:] == first[1:] for first, *rest in several for each in rest)
    assert len(found) <= 2 * 2 * TRENDING


def items_of(batch: SocialBatch) -> list[Any]:
    """The items as they were written."""
    if batch.body is not None:
        return decode(batch.body, metadata=batch.metadata, key=batch.path).items
    message = msgspec.json.decode(batch.envelope)
    items: list[Any] = message.get("payload", [message])
    return items


@pytest.mark.parametrize("preset", PRESETS)
def test_totals_are_what_a_store_would_have_that_keeps_everything(preset: str) -> None:
    social = Social(2, PRESETS[preset]())
    truths = [social.truth(number) for number in range(3, 40)]

    totals = social.totals(3, 40)

    rows, posts, errors, codes = {}, set(), 0, Counter[str]()
    for truth in truths:
        for item in truth.items:
            if item.is_post:
                rows[truth.project, truth.platform, item.id] = item.mood
                posts.add((truth.platform, item.id))
            else:
                errors += 1
                codes[item.code] += 1
    assert totals.batches == 37
    assert totals.items == sum(len(truth.items) for truth in truths) > 500
    assert (totals.posts, totals.distinct_posts, totals.errors) == (len(rows), len(posts), errors)
    assert totals.codes == codes
    assert totals.fates == Counter(truth.fate for truth in truths)
    assert totals.sentiments == Counter(mood.sentiment for mood in rows.values() if mood)
    assert totals.intents == Counter(mood.intent for mood in rows.values() if mood)
    assert totals.platforms == Counter(platform for _, platform, _ in rows)
    assert totals.projects == Counter(project for project, *_ in rows)


def test_totals_keep_only_what_can_still_be_found_again() -> None:
    social, totals = Social(1, replace(PLAIN, shared=0.5)), Totals(TREND)

    sizes = set()
    for number in range(10 * TREND):
        totals.add(social.truth(number))
        sizes.add(len(totals._rows))

    assert max(sizes) <= 2 * TRENDING * (len(social.projects) + 1)
    assert totals.items > totals.posts > totals.distinct_posts


def test_nothing_is_kept_of_batches() -> None:
    social = Social(1, day())
    for number in range(30):
        social.batch(number)

    tracemalloc.start()
    try:
        for number in range(30, 60):
            social.batch(number)
        grown, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert grown < 150_000
    assert peak < 5_000_000


def test_deliveries_leave_none_out_and_bring_some_twice_and_in_another_order() -> None:
    social = Social(1, replace(PLAIN, again=0.2, mixed=8))

    deliveries = list(social.deliveries(100))

    first = [each.number for each in deliveries if not each.again]
    again = [each.number for each in deliveries if each.again]
    assert sorted(first) == list(range(100))
    assert first != sorted(first)
    assert len(set(again)) == len(again)
    assert 5 < len(again) < 40
    assert all(each.envelope == social.envelope(each.number) for each in deliveries)
    seen = set()
    for each in deliveries:
        assert each.again == (each.number in seen)
        seen.add(each.number)


def test_deliveries_are_mixed_among_a_few_only() -> None:
    social = Social(1, replace(PLAIN, again=0.0, mixed=8))

    numbers = [each.number for each in social.deliveries(60)]

    assert all(place // 8 == number // 8 for place, number in enumerate(numbers))
    assert [each.number for each in social.deliveries(60)] == numbers


def test_deliveries_keep_the_order_if_nothing_is_to_be_mixed() -> None:
    social = Social(1, replace(PLAIN, again=0.0, mixed=1))

    assert [each.number for each in social.deliveries(30)] == list(range(30))
    assert list(social.deliveries(0)) == []


def test_everything_may_come_twice() -> None:
    social = Social(1, replace(PLAIN, again=1.0, mixed=4))

    assert Counter(each.number for each in social.deliveries(10)) == Counter([*range(10), *range(10)])


def test_a_day_has_a_throttling_and_a_crisis() -> None:
    social = Social(4, replace(demo(), batches=240))
    failed, negative, items, posts = (Counter[int]() for _ in range(4))
    for number in range(240):
        truth = social.truth(number)
        hour = int((truth.sent_at - BEGAN) // 3600)
        items[hour] += len(truth.items)
        for item in truth.items:
            failed[hour] += not item.is_post
            posts[hour] += item.is_post
            negative[hour] += item.mood is not None and item.mood.sentiment == "NEGATIVE"

    def share(part: Counter[int], whole: Counter[int], hours: range) -> float:
        return sum(part[hour] for hour in hours) / sum(whole[hour] for hour in hours)

    assert share(failed, items, range(10, 11)) > 0.35
    assert share(failed, items, range(9)) < 0.12
    assert share(failed, items, range(13, 24)) < 0.12
    assert share(negative, posts, range(16, 19)) > 0.4
    assert share(negative, posts, range(14)) < 0.25
    assert share(negative, posts, range(21, 24)) < 0.25


def test_a_crisis_is_that_of_the_first_projects_brand() -> None:
    social = Social(4, PLAIN)
    brand = social.projects[0].brand.name
    moods: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    for number in range(1400, 1500):  # the height of it
        truth = social.truth(number)
        moods[truth.brand == brand].update(item.mood.sentiment for item in truth.items if item.mood)

    shares = {hit: found["NEGATIVE"] / found.total() for hit, found in moods.items()}
    assert shares[True] > 0.8
    assert shares[False] < 0.65


def test_a_day_fails_in_all_ways_that_are_known_and_in_some_that_are_not() -> None:
    codes = Social(1, day()).totals(0, 600).codes

    assert set(CODES) <= set(codes)
    assert len(CODES) == 21
    assert set(codes) & set(UNHEARD)
    assert set(codes) <= {*CODES, *UNHEARD}


def test_a_hostile_day_has_everything_that_can_be_odd() -> None:
    social = Social(1, hostile())
    plans = [social._planner.plan(number) for number in range(400)]

    assert {plan.spoil for plan in plans} == {None, *Spoil}
    assert {draft.twist for plan in plans for draft in plan.drafts} == {None, *Twist}
    assert {plan.version for plan in plans} == set(Version)
    assert set(social.totals(0, 400).fates) == set(BatchFate)


@pytest.mark.parametrize(
    ("preset", "batches", "least", "most"), [("demo", 40, 700, 1500), ("day", 2000, 45_000, 70_000)]
)
def test_presets_are_of_the_size_that_they_say(preset: str, batches: int, least: int, most: int) -> None:
    social = Social(1, PRESETS[preset]())

    step = max(1, batches // 200)
    items = sum(len(social.truth(number).items) for number in range(0, batches, step)) * step
    assert social.rules.batches == batches
    assert least < items < most


@pytest.mark.parametrize("version", [Version.LEGACY, Version.INLINE])
def test_what_comes_alone_is_one_post(version: Version) -> None:
    social = Social(1, only(version))

    assert all(len(social.truth(number).items) == 1 for number in range(50))
    assert social.totals(0, 50).errors == 0


def test_a_job_keeps_to_one_version() -> None:
    social = Social(1, day())
    kinds: dict[tuple[str, str], set[Version]] = {}
    for number in range(300):
        plan = social._planner.plan(number)
        kinds.setdefault((plan.run.job_id, plan.run.job.platform), set()).add(plan.version)

    assert all(len(each) == 1 for each in kinds.values())
    assert len({version for each in kinds.values() for version in each}) > 3


def test_its_repr_says_how_large_it_is() -> None:
    assert repr(Social(1, demo())) == "<Social of 3 projects, 40 batches a day>"
