"""What a simulated crawler writes is read as it says: by `events`, item by item, in every version and spelling."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from sanderling.events.batches import BatchError, decode, read_path, read_reference
from sanderling.events.envelopes import EnvelopeError, EventEnvelope, LegacyEnvelope, read_envelope
from sanderling.events.items import read_item, read_result
from sanderling.events.posts import Context, Interaction, Post
from sanderling.worlds.social import Social, SocialBatch
from sanderling.worlds.social_bodies import Packing, Shape
from sanderling.worlds.social_day import NOTHING_MEANT
from sanderling.worlds.social_envelopes import Version
from sanderling.worlds.social_hostile import REFUSED, STRUCTURAL, TEXTUAL, VIRAL, Spoil, Twist
from sanderling.worlds.social_items import Spelling
from sanderling.worlds.social_market import MarketRules
from sanderling.worlds.social_plan import PRESETS, FormRules, SocialRules
from sanderling.worlds.social_truth import NO_COUNTERS, BatchFate, BatchTruth, ItemTruth

SMALL = SocialRules(market=MarketRules(projects=5, longest=2), twists={}, shared=0.0)
SHARES = {Twist.HUGE: 0.05, Twist.LONG: 0.1, Twist.DEEP: 0.1}  # of those that take their time
EVENTS = (Version.EVENT_1_0, Version.EVENT_1_1, Version.EVENT_2_0)


def social(**changes: Any) -> Social:  # noqa: ANN401 - rules of any kind
    """A small one, with one kind of each form."""
    kinds = {name: changes.pop(name) for name in ("versions", "spellings", "shapes", "packings") if name in changes}
    forms: dict[str, Any] = {name: {kind: 1.0} for name, kind in kinds.items()}
    return Social(7, replace(SMALL, forms=FormRules(**forms), **changes))


def read(batch: SocialBatch) -> tuple[BatchFate, Context | None, list[object], str]:
    """What became of a batch: its fate, its context, its items as they came, and what they are if they do not say."""
    try:
        envelope = read_envelope(batch.envelope)
    except EnvelopeError:
        return BatchFate.REFUSED, None, [], ""
    if isinstance(envelope, EventEnvelope):
        place = read_path(envelope.path)
    elif isinstance(envelope, LegacyEnvelope):
        place = read_reference(envelope.bucket, envelope.path)
    else:
        items, notes = read_result(envelope.item)
        assert not notes
        return BatchFate.READ, envelope.context, items, envelope.default_status
    assert batch.path == f"{place.bucket}/{place.key}"
    if batch.body is None:
        return BatchFate.MISSING, envelope.context, [], ""
    try:
        items = decode(batch.body, metadata=batch.metadata, key=place.key).items
    except BatchError:
        return BatchFate.UNREADABLE, envelope.context, [], ""
    return BatchFate.READ, envelope.context, items, envelope.default_status


def differences(batch: SocialBatch) -> Iterator[str]:
    """Where what was read is not what should be."""
    truth = batch.truth
    fate, context, items, status = read(batch)
    if fate is not truth.fate or len(items) != len(truth.items):
        yield f"{truth.number}: {fate} with {len(items)} items, expected {truth.fate} with {len(truth.items)}"
        return
    if context is None:
        return
    if fate is not BatchFate.REFUSED and not agrees(context, truth):
        yield f"{truth.number}: {context}, expected {truth.job_id} of {truth.project} on {truth.platform}"
    for place, (raw, item) in enumerate(zip(items, truth.items, strict=True)):
        found = read_item(raw, context, place, status)
        if not same(found, item, truth):
            yield f"{truth.number}: item {place} is {str(found)[:200]}, expected {item}"


def agrees(context: Context, truth: BatchTruth) -> bool:
    event = context.event_id == truth.event_id or not truth.event_id
    sent = context.sent_at in (truth.sent_at, None)
    same_job = (context.job_id, context.project_id) == (truth.job_id, truth.project)
    return event and sent and same_job and context.platform == truth.platform


def same(found: object, item: ItemTruth, truth: BatchTruth) -> bool:
    if isinstance(found, Post):
        counters = Interaction(**item.counters._asdict())
        ids = (found.id, found.platform) == (item.id, truth.platform)
        return item.is_post and ids and found.interaction == counters and found.author.followers == item.followers
    code, said, content = (getattr(found, name) for name in ("code", "message", "content_id"))
    return code == item.code and item.message in said and item.id in (content, None)


def check(world: Social, count: int) -> int:
    """Read some batches; how many items there were."""
    batches = [world.batch(number) for number in range(count)]
    found = [problem for batch in batches for problem in differences(batch)]
    assert not found, "\n".join(found[:5])
    return sum(len(batch.truth.items) for batch in batches)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_read_as_it_says(preset: str) -> None:
    assert check(Social(1, PRESETS[preset]()), 40) > 300


def test_a_hostile_day_is_read_as_it_says() -> None:
    assert check(Social(3, PRESETS["hostile"]()), 80) > 1000


@pytest.mark.parametrize("spelling", Spelling)
@pytest.mark.parametrize("version", Version)
def test_every_version_carries_every_spelling(version: Version, spelling: Spelling) -> None:
    assert check(social(versions=version, spellings=spelling), 5) >= 5


@pytest.mark.parametrize("spelling", Spelling)
@pytest.mark.parametrize("twist", Twist)
def test_every_twist_ends_as_it_should_in_every_spelling(twist: Twist, spelling: Spelling) -> None:
    share = SHARES.get(twist, 0.3)
    world = social(versions=Version.EVENT_1_1, spellings=spelling, twists={twist: share})

    check(world, 3)

    drafts = [draft for number in range(3) for draft in world._planner.plan(number).drafts]
    assert sum(draft.twist is twist for draft in drafts) >= 2


@pytest.mark.parametrize("shape", Shape)
@pytest.mark.parametrize("twist", sorted(STRUCTURAL))
def test_what_cannot_be_read_does_not_spoil_its_batch(twist: Twist, shape: Shape) -> None:
    world = social(versions=Version.EVENT_1_0, shapes=shape, twists={twist: SHARES.get(twist, 1.0)})

    check(world, 3)

    truths = [world.truth(number) for number in range(3)]
    assert all(truth.fate is BatchFate.READ for truth in truths)
    assert {item.is_post for truth in truths for item in truth.items} == {True, False}


@pytest.mark.parametrize("twist", sorted(TEXTUAL))
@pytest.mark.parametrize("version", [Version.LEGACY, Version.INLINE, Version.RESULT])
def test_what_comes_alone_may_have_an_odd_text(version: Version, twist: Twist) -> None:
    check(social(versions=version, twists={twist: 1.0}), 4)


@pytest.mark.parametrize("spoil", Spoil)
@pytest.mark.parametrize("version", EVENTS)
def test_every_spoil_ends_as_it_should_in_every_version(version: Version, spoil: Spoil) -> None:
    check(social(versions=version, spoils={spoil: 1.0}), 2)


@pytest.mark.parametrize("spoil", Spoil)
@pytest.mark.parametrize("packing", Packing)
def test_every_spoil_ends_as_it_should_however_it_is_packed(packing: Packing, spoil: Spoil) -> None:
    check(social(packings=packing, spoils={spoil: 1.0}), 2)


def test_what_is_spoilt_has_no_items_and_what_is_odd_has_all() -> None:
    for spoil in Spoil:
        world = social(versions=Version.EVENT_1_0, spoils={spoil: 1.0})
        truths = [world.truth(number) for number in range(3)]
        assert {bool(truth.items) for truth in truths} == {truths[0].fate is BatchFate.READ}


@pytest.mark.parametrize("version", [Version.LEGACY, Version.INLINE, Version.RESULT])
def test_only_events_are_spoilt(version: Version) -> None:
    world = social(versions=version, spoils=dict.fromkeys(REFUSED, 1 / 3))

    assert {world.truth(number).fate for number in range(10)} == {BatchFate.READ}


@pytest.mark.parametrize("version", EVENTS)
def test_events_are_recognised_by_their_version(version: Version) -> None:
    world = social(versions=version)

    for number in range(8):
        batch = world.batch(number)
        envelope = read_envelope(batch.envelope)
        assert isinstance(envelope, EventEnvelope)
        assert not envelope.notes
        dry = batch.truth.project is None
        expected = Version.EVENT_1_1 if dry and version is Version.EVENT_2_0 else version
        assert f"event_{envelope.version}" == expected
        assert envelope.context.content_count == len(batch.truth.items)
        assert envelope.path.startswith("minio://") == (expected is Version.EVENT_2_0)


def test_batches_are_counted_from_1_in_the_first_version_and_from_0_later() -> None:
    lowest = {}
    for version in EVENTS:
        world = social(versions=version)
        indexes = [msgspec.json.decode(world.envelope(n))["payload"]["batch_index"] for n in range(60)]
        lowest[version] = min(indexes)

    assert lowest == {Version.EVENT_1_0: 1, Version.EVENT_1_1: 0, Version.EVENT_2_0: 0}


def test_what_is_fetched_but_empty_has_no_counters_and_means_nothing() -> None:
    world = social(versions=Version.EVENT_1_1, twists={Twist.NULL_CONTENT: 1.0})

    (*posts,) = (item for item in world.truth(0).items if item.is_post)
    assert posts
    assert {(item.counters, item.followers, item.mood) for item in posts} == {(NO_COUNTERS, 0, NOTHING_MEANT)}


def test_ids_may_be_numbers_and_counters_beyond_32_bits() -> None:
    numbers = social(versions=Version.INLINE, twists={Twist.NUMBER_ID: 1.0})
    world = social(versions=Version.EVENT_2_0, packings=Packing.PLAIN, shapes=Shape.LIST, twists={Twist.NUMBER_ID: 1.0})
    viral = social(versions=Version.LEGACY, twists={Twist.VIRAL: 1.0})

    tiktok = next(n for n in range(20) if world.truth(n).platform == "tiktok" and len(world.truth(n).items) > 1)
    raw = msgspec.json.decode(world.batch(tiktok).body or b"")
    assert any(type(item["meta"]["id"]) is int for item in raw)
    assert all(str(item["meta"]["id"]) == true.id for item, true in zip(raw, world.truth(tiktok).items, strict=True))
    assert type(msgspec.json.decode(numbers.envelope(0))["meta"]["id"]) is str
    assert viral.truth(0).items[0].counters.views == VIRAL > 2**31
