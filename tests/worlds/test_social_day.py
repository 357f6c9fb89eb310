"""How a simulated day goes, and the draws that it is made of."""

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.outcome import Code
from sanderling.worlds.social_chance import Weights, perhaps, pick
from sanderling.worlds.social_day import (
    ANGRY,
    CALM,
    CODES,
    DAY,
    HOUR,
    THROTTLED,
    UNHEARD,
    Crisis,
    Day,
    DayRules,
    Throttling,
)
from sanderling.worlds.social_truth import Intent, Sentiment

LUCK = st.floats(0, 1, exclude_max=True)
USUAL = Day(DayRules())


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
    assert {mood.sentiment for mood in ANGRY} == {Sentiment.NEGATIVE}
    assert {mood.intent for mood in CALM} == set(Intent)
    assert {mood.sentiment for mood in CALM if mood.intent in (Intent.SPAM, Intent.SEEDING)} == {Sentiment.NEUTRAL}


@given(st.floats(0, 10 * DAY))
def test_every_day_is_like_the_first(since: float) -> None:
    assert USUAL.throttled(since) == pytest.approx(USUAL.throttled(since % DAY), abs=1e-6)
    assert 0 <= USUAL.angry(since, hit=False) <= USUAL.angry(since, hit=True) <= 0.9


def test_a_throttling_swells_and_fades() -> None:
    day = Day(DayRules(throttlings=(Throttling(2 * HOUR, 4 * HOUR, 0.5),), crises=()))

    shares = [day.throttled(hour * HOUR) for hour in (1, 2, 3, 4, 5, 6, 7)]

    assert shares == pytest.approx([0, 0, 0.3535, 0.5, 0.3535, 0, 0], abs=1e-3)
    assert day.angry(4 * HOUR, hit=True) == 0


def test_a_crisis_may_last_over_midnight() -> None:
    day = Day(DayRules(crises=(Crisis(22 * HOUR, 4 * HOUR, 1.0, 0.5),)))

    assert day.angry(24 * HOUR, hit=True) == pytest.approx(1.0)
    assert day.angry(0.5 * HOUR, hit=False) > 0.3
    assert day.angry(2.5 * HOUR, hit=True) == 0


def test_a_throttled_item_says_so() -> None:
    day, chance = Day(DayRules(errors=0.0, throttlings=(Throttling(0.0, DAY, 1.0),))), Random(2)

    codes = Counter(day.code(DAY / 2, chance) for _ in range(2000))

    assert set(codes) == set(THROTTLED)
    assert codes["RATE_LIMITED"] > 1700


def test_as_many_items_fail_as_the_rules_say() -> None:
    quiet = DayRules(errors=0.2, unheard=0.25, throttlings=(), codes={"TIMEOUT": 1.0})
    day, chance = Day(quiet), Random(3)

    codes = Counter(day.code(0.0, chance) for _ in range(10_000))

    assert codes[""] == pytest.approx(8000, rel=0.03)
    assert codes["TIMEOUT"] == pytest.approx(1500, rel=0.1)
    assert sum(codes[code] for code in UNHEARD) == pytest.approx(500, rel=0.15)


def test_nothing_fails_where_nothing_is_to_fail() -> None:
    day, chance = Day(DayRules(errors=0.0, throttlings=())), Random(4)

    assert {day.code(hour * HOUR, chance) for hour in range(24) for _ in range(50)} == {""}


def test_people_are_angry_in_a_crisis_and_more_so_of_the_brand() -> None:
    day, chance = Day(DayRules(crises=(Crisis(0.0, DAY, 1.0, 0.5),))), Random(5)

    hit = Counter(day.mood(DAY / 2, chance, hit=True).sentiment for _ in range(1000))
    other = Counter(day.mood(DAY / 2, chance, hit=False).sentiment for _ in range(1000))

    assert hit == {Sentiment.NEGATIVE: 1000}
    assert 500 < other[Sentiment.NEGATIVE] < 680


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"errors": 1.1}, "errors is 1.1, expected a share from 0 to 1"),
        ({"unheard": -0.1}, "unheard is -0.1, expected a share from 0 to 1"),
        ({"codes": {}}, "codes are none, expected weights of 0 or more, and one that is more"),
        ({"moods": {"calm": 0.0}}, "moods are calm 0, expected weights"),
        ({"throttlings": (Throttling(-1.0, 60.0, 0.5),)}, "Throttling from -1.0 for 60.0 s, expected to begin within"),
        ({"throttlings": (Throttling(0.0, 60.0, 2.0),)}, "share of Throttling is 2.0, expected a share"),
        ({"crises": (Crisis(DAY, 60.0, 0.5, 0.5),)}, "Crisis from 86400.0 for 60.0 s, expected to begin within a day"),
        ({"crises": (Crisis(0.0, 0.0, 0.5, 0.5),)}, "Crisis from 0.0 for 0.0 s"),
        ({"crises": (Crisis(0.0, 60.0, 0.5, -0.5),)}, "share of Crisis is -0.5, expected a share"),
    ],
)
def test_days_that_cannot_be_are_refused(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        DayRules(**change)
