"""Where a simulated crawler puts its batches, what its messages say of them, and when things happened."""

import re
from collections.abc import Callable
from dataclasses import replace
from unicodedata import normalize

import msgspec
import pytest

from sanderling.events.batches import decode
from sanderling.events.envelopes import read_envelope
from sanderling.events.items import read_item
from sanderling.events.posts import Post
from sanderling.worlds.social import Social, SocialBatch
from sanderling.worlds.social_bodies import Packing, Shape
from sanderling.worlds.social_envelopes import LYING, Version
from sanderling.worlds.social_hostile import Spoil, Twist
from sanderling.worlds.social_market import MarketRules
from sanderling.worlds.social_plan import FormRules, SocialRules
from sanderling.worlds.social_truth import PostSentiment

EVENTS = (Version.EVENT_1_0, Version.EVENT_1_1, Version.EVENT_2_0)


def crawler(version: Version, packing: Packing = Packing.PLAIN, spoil: Spoil | None = None) -> Social:
    market = MarketRules(projects=5, longest=2, dry_runs=6)
    forms = FormRules(versions={version: 1.0}, packings={packing: 1.0}, shapes={Shape.LIST: 1.0})
    return Social(3, SocialRules(market=market, forms=forms, twists={}, spoils={spoil: 1.0} if spoil else {}))


def batches(world: Social, count: int = 40) -> list[SocialBatch]:
    return [world.batch(number) for number in range(count)]


def posts(batch: SocialBatch) -> list[Post]:
    envelope = read_envelope(batch.envelope)
    items = decode(batch.body or b"", metadata=batch.metadata, key=batch.path).items
    read = [read_item(raw, envelope.context, place) for place, raw in enumerate(items)]
    return [each for each in read if isinstance(each, Post)]


@pytest.mark.parametrize("version", [Version.EVENT_1_0, Version.EVENT_2_0])
def test_batches_lie_with_their_project_and_dry_runs_apart(version: Version) -> None:
    for batch in batches(crawler(version)):
        project = batch.truth.project
        if project is None and version is Version.EVENT_2_0:
            continue  # has no dry runs, and sends them as 1.1
        whose = rf"{re.escape(project)}/(brand|competitor_[^/]+)" if project else rf"dryrun/{batch.truth.job_id}"
        assert re.fullmatch(rf"crawl-results/{batch.truth.platform}/{whose}/batch_\d{{3}}\.json", batch.path)


@pytest.mark.parametrize("version", [Version.EVENT_1_1, Version.LEGACY])
def test_others_lie_with_their_day(version: Version) -> None:
    for batch in batches(crawler(version), 10):
        assert re.fullmatch(rf"crawl-results/{batch.truth.platform}/2027/01/15/evt_[0-9a-f]{{16}}\.json", batch.path)


def test_only_the_first_version_names_what_is_packed() -> None:
    endings = {
        (version, packing): {batch.path.rpartition(".")[2] for batch in batches(crawler(version, packing), 20)}
        for version in EVENTS
        for packing in (Packing.PLAIN, Packing.ZSTD)
    }

    packed = endings.pop((Version.EVENT_1_0, Packing.ZSTD))
    assert packed == {"zst"}
    assert set().union(*endings.values()) == {"json"}


def test_a_single_item_is_an_object_of_its_own_before_and_sometimes_today() -> None:
    legacy = [batch.body or b"" for batch in batches(crawler(Version.LEGACY), 6)]
    world = crawler(Version.EVENT_1_1)
    single = [number for number in range(400) if len(world.truth(number).items) == 1]
    today = [world.batch(number).body or b"" for number in single]

    assert {body[:1] for body in legacy} == {b"{"}
    assert {body[:1] for body in today} == {b"{", b"["}


def test_older_items_do_not_say_whether_they_were_fetched() -> None:
    stated = {
        version: {"fetch_status" in msgspec.json.decode(world.batch(0).body or world.envelope(0))["meta"]}
        for version in (Version.LEGACY, Version.INLINE)
        for world in [crawler(version)]
    }

    assert stated == {Version.LEGACY: {False}, Version.INLINE: {True}}


def test_a_wrong_number_of_items_is_a_wrong_number() -> None:
    counted = crawler(Version.EVENT_1_1, spoil=Spoil.WRONG_COUNT).batch(0)
    told = crawler(Version.EVENT_1_1, spoil=Spoil.WRONG_SIZE).batch(0)

    assert msgspec.json.decode(counted.body or b"")["count"] == len(counted.truth.items) + LYING
    assert read_envelope(counted.envelope).context.content_count == len(counted.truth.items)
    assert read_envelope(told.envelope).context.content_count == len(told.truth.items) + LYING


@pytest.mark.parametrize("version", EVENTS)
def test_an_event_says_what_its_version_says(version: Version) -> None:
    world = crawler(version)
    told = [read_envelope(world.envelope(number)).context for number in range(30)]
    truths = [world.truth(number) for number in range(30)]

    first = version is Version.EVENT_1_0
    assert all(bool(context.total_batches) == first for context in told)
    assert all(bool(context.keyword) != first for context in told)
    assert all((truth.brand in context.keyword) != first for context, truth in zip(told, truths, strict=True))
    named = {context.brand_name == truth.brand for context, truth in zip(told, truths, strict=True) if truth.project}
    assert named == {version is Version.EVENT_2_0}
    kinds = {(context.task_type, truth.project is None) for context, truth in zip(told, truths, strict=True)}
    assert kinds == ({("", False), ("", True)} if first else {("research_and_crawl", False), ("dryrun_keyword", True)})


TEXTS: dict[Twist, Callable[[Post], bool]] = {
    Twist.EMPTY: lambda post: not (post.text or post.transcription or post.comments or post.hashtags),
    Twist.EMOJI: lambda post: bool(post.text) and not any(letter.isalnum() for letter in post.text),
    Twist.LONG: lambda post: len(post.text) == 100_000,
    Twist.HUGE: lambda post: len(post.text) == 1_000_000,
    Twist.LEFTWARD: lambda post: "\u202e" in post.text and "\u05e9" in post.text,
    Twist.COMBINING: lambda post: normalize("NFC", post.text) != post.text and "\u0489" * 2 not in post.text,
    Twist.HALF: lambda post: post.text.endswith("\ufffd"),
}


@pytest.mark.parametrize("twist", TEXTS)
def test_odd_texts_are_as_odd_as_they_are_called(twist: Twist) -> None:
    plain = crawler(Version.EVENT_1_1)
    share = 0.05 if twist is Twist.HUGE else 0.5
    world = Social(3, replace(plain.rules, shared=0.0, twists={twist: share}))

    twisted = {draft.id for draft in world._planner.plan(0).drafts if draft.twist is twist}
    found = {post.id: TEXTS[twist](post) for post in posts(world.batch(0))}

    assert twisted
    assert {name for name, odd in found.items() if odd} == twisted


def test_a_zero_character_is_written_as_an_escape() -> None:
    plain = crawler(Version.EVENT_1_1)

    body = Social(3, replace(plain.rules, twists={Twist.ZERO: 1.0})).batch(0).body or b""

    assert rb"\u0000" in body
    assert rb"\u0000" not in (plain.batch(0).body or b"")


def test_dry_runs_are_not_sent_in_the_version_that_has_none() -> None:
    world = crawler(Version.EVENT_2_0)
    dry = [number for number in range(60) if world.truth(number).project is None]

    messages = [read_envelope(world.envelope(number)) for number in dry]

    assert len(dry) >= 3
    assert {(each.mode, each.notes, each.context.brand_name) for each in messages} == {("new", (), "")}


def test_another_event_is_none_of_ours() -> None:
    message = msgspec.json.decode(crawler(Version.EVENT_1_1, spoil=Spoil.OTHER_EVENT).envelope(0))

    assert message["event_type"] == "project.created"
    assert set(message["payload"]) == {"project_id", "brand_name"}


def test_things_happen_one_after_the_other() -> None:
    for batch in batches(crawler(Version.EVENT_1_1), 12):
        for post in posts(batch):
            assert post.published_at is not None
            assert post.crawled_at is not None
            assert batch.truth.sent_at - 86_400 < post.published_at < post.crawled_at <= batch.truth.sent_at
            moments = [comment.created_at or 0.0 for comment in post.comments]
            assert all(post.published_at <= moment <= batch.truth.sent_at for moment in moments)
            assert len({comment.id for comment in post.comments}) == len(post.comments)


def test_what_is_said_in_anger_is_seen_by_more() -> None:
    views: dict[PostSentiment, list[int]] = {each: [] for each in PostSentiment}
    world = Social(1, replace(SocialRules(), twists={}))
    for number in range(150):
        for item in world.truth(number).items:
            if item.mood and item.followers:
                views[item.mood.sentiment].append(item.counters.views * 1000 // item.followers)

    typical = {sentiment: sorted(each)[len(each) // 2] for sentiment, each in views.items()}
    assert typical[PostSentiment.NEGATIVE] > 3 * typical[PostSentiment.POSITIVE] > 0


def test_one_platform_does_not_tell_what_was_shared_or_saved() -> None:
    world = crawler(Version.EVENT_1_1)
    counters: dict[str, list[tuple[int, ...]]] = {"tiktok": [], "youtube": []}
    for number in range(20):
        truth = world.truth(number)
        counters[truth.platform] += [item.counters[3:] for item in truth.items]

    assert set(counters["youtube"]) == {(0, 0)}
    assert max(counters["tiktok"]) > (1000, 100)
