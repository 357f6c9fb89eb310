"""How a simulated day goes, and the draws that it is made of."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.outcome import Code
from sanderling.worlds.chance import Weights, perhaps, pick
from sanderling.worlds.social_day import (
    ANGRY,
    CALM,
    CODES,
    DAY,
    HOUR,
    THROTTLED,
    UNHEARD,
    Swell,
    angry,
    draw_code,
    draw_mood,
    throttled,
)
from sanderling.worlds.social_truth import PostIntent, PostSentiment

LUCK = st.floats(0, 1, exclude_max=True)


@given(st.dictionaries(st.integers(), st.floats(0, 100), min_size=1).filter(lambda each: sum(each.values()) > 0), LUCK)
def test_only_what_has_a_weight_is_drawn(weights: dict[int, float], luck: float) -> None:
    assert weights[Weights(weights).draw(luck)] > 0


def test_draws_follow_the_weights() -> None:
    weights = Weights({"rare": 1.0, "never": 0.0, "common": 3.0})

    assert [weights.draw(luck) for luck in (0.0, 0.249, 0.25, 0.999)] == ["rare", "rare", "common", "common"]


def test_rounding_does_not_lead_to_what_has_no_weight() -> None:
    assert Weights({"tiny": 5e-324, "never": 0.0}).draw(0.75) == "tiny"


def test_shares_leave_the_rest_to_nothing() -> None:
    shares = perhaps({"some": 0.25})

    assert [shares.draw(luck) for luck in (0.0, 0.249, 0.25, 0.999)] == ["some", "some", None, None]
    assert perhaps({}).draw(0.5) is None
    assert perhaps({"all": 1.0}).draw(0.999) == "all"


def test_each_is_as_likely_as_the_others() -> None:
    chance = Random(1)

    drawn = Counter(pick("abcd", chance) for _ in range(4000))

    assert all(850 < drawn[letter] < 1150 for letter in "abcd")


def test_all_codes_of_crawlers_can_happen() -> None:
    known = {code.value for code in Code}

    assert len(CODES) == 21
    assert set(CODES) < known
    assert set(THROTTLED) < set(CODES)
    assert not set(UNHEARD) & known


def test_anger_is_negative_and_advertising_neutral() -> None:
    assert {mood.sentiment for mood in ANGRY} == {PostSentiment.NEGATIVE}
    assert {mood.intent for mood in CALM} == set(PostIntent)
    assert {mood.sentiment for mood in CALM if mood.intent in (PostIntent.SPAM, PostIntent.SEEDING)} == {
        PostSentiment.NEUTRAL
    }


@given(st.floats(0, 10 * DAY))
def test_every_day_is_like_the_first(since: float) -> None:
    assert throttled(since) == pytest.approx(throttled(since % DAY), abs=1e-6)
    assert 0 <= angry(since, hit=False) <= angry(since, hit=True) <= 0.9


def test_what_comes_swells_and_fades_also_over_midnight() -> None:
    night = Swell(22 * HOUR, 4 * HOUR)

    assert [night.strength(hour * HOUR) for hour in (21, 22, 23, 24, 25, 26, 27)] == pytest.approx(
        [0, 0, 0.707, 1, 0.707, 0, 0], abs=1e-3
    )


def test_items_are_refused_in_a_throttling_and_fail_as_usual_otherwise() -> None:
    chance = Random(2)
    noon, quiet = ([draw_code(hour * HOUR, chance) for _ in range(5000)] for hour in (10.5, 3))

    refused = Counter(code for code in noon if code in THROTTLED)
    assert refused.total() == pytest.approx(0.6 * 5000, rel=0.1)
    assert refused["RATE_LIMITED"] > 0.85 * refused.total()
    assert sum(code != "" for code in quiet) == pytest.approx(0.06 * 5000, rel=0.2)
    assert set(quiet) & set(UNHEARD)


def test_people_are_angry_in_a_crisis_and_more_so_of_the_brand() -> None:
    chance = Random(5)
    hit, other = (
        Counter(draw_mood(17.5 * HOUR, chance, hit=hit).sentiment for _ in range(1000)) for hit in (True, False)
    )

    assert hit[PostSentiment.NEGATIVE] > 880
    assert 450 < other[PostSentiment.NEGATIVE] < 640
