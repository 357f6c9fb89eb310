"""The formulas at every threshold. The expected numbers are worked out by hand beside each row."""

from math import isfinite, log10

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.events.analysis.impact import Impact, Risk, impact_of, is_kol, risk_of
from sanderling.events.analysis.sentiment import Label
from sanderling.events.posts import Author, Interaction

NEGATIVE, NEUTRAL, POSITIVE = Label


def impact(
    likes: int = 0, followers: int = 9, label: Label = NEUTRAL, platform: str = "tiktok", *, verified: bool = False
) -> Impact:
    """With 9 followers the reach is 1, so a like is a point of raw impact."""
    return impact_of(Interaction(likes=likes), Author(followers=followers, verified=verified), platform, label)


@pytest.mark.parametrize(
    ("counters", "engagement"),
    [
        ({}, 0),
        ({"views": 100}, 1),
        ({"likes": 1}, 1),
        ({"comments": 1}, 2),
        ({"saves": 1}, 3),
        ({"shares": 1}, 5),
        ({"views": 1000, "likes": 10, "comments": 10, "saves": 10, "shares": 10}, 120),
        ({"views": -1000, "likes": 7, "comments": -1, "saves": -5, "shares": -9}, 7),
    ],
)
def test_engagement_is_a_sum_of_counters_none_below_0(counters: dict[str, int], engagement: float) -> None:
    found = impact_of(Interaction(**counters), Author(followers=9), "tiktok", NEUTRAL)

    assert found.engagement == pytest.approx(engagement)


@pytest.mark.parametrize(
    ("followers", "verified", "reach"),
    [
        (0, False, 0),
        (0, True, 0),
        (-5, False, 0),
        (9, False, 1),
        (99, False, 2),
        (99, True, 2.4),
        (50_000, False, log10(50_001)),
    ],
)
def test_reach_is_the_size_of_the_audience_on_a_logarithmic_scale(followers: int, verified: bool, reach: float) -> None:  # noqa: FBT001 - a column of the table
    assert impact(1, followers, verified=verified).reach == pytest.approx(reach)


@pytest.mark.parametrize(
    ("platform", "factor"),
    [
        ("tiktok", 1.0),
        ("facebook", 1.2),
        ("youtube", 1.5),
        ("instagram", 1.1),
        ("threads", 1.0),
        ("", 1.0),
        ("YouTube", 1.5),
    ],
)
def test_the_platform_counts(platform: str, factor: float) -> None:
    assert impact(100, platform=platform).raw == pytest.approx(100 * factor)


@pytest.mark.parametrize(("label", "factor"), [(NEGATIVE, 1.5), (NEUTRAL, 1.0), (POSITIVE, 1.1)])
def test_the_mood_counts(label: Label, factor: float) -> None:
    assert impact(100, label=label).raw == pytest.approx(100 * factor)


@pytest.mark.parametrize(
    ("likes", "score"), [(0, 0), (1000, 1), (50_000, 50), (99_999, 99.999), (100_000, 100), (10**9, 100)]
)
def test_the_score_is_raw_impact_in_thousands_up_to_100(likes: int, score: float) -> None:
    assert impact(likes).score == pytest.approx(score)


def test_whom_nobody_follows_has_no_impact() -> None:
    found = impact(10**9, followers=0, label=NEGATIVE)

    assert (found.score, found.risk, found.viral) == (0, Risk.LOW, False)


@pytest.mark.parametrize(("likes", "viral"), [(69_999, False), (70_000, True), (70_001, True)])
def test_viral_is_from_70_on(likes: int, viral: bool) -> None:  # noqa: FBT001 - a column of the table
    assert impact(likes).viral is viral


@pytest.mark.parametrize(("followers", "kol"), [(49_999, False), (50_000, True)])
def test_a_kol_has_50000_followers(followers: int, kol: bool) -> None:  # noqa: FBT001 - a column of the table
    assert impact(1, followers).kol is kol
    assert is_kol(Author(followers=followers)) is kol


BELOW_40, BELOW_60, BELOW_70 = 39.999, 59.999, 69.999


@pytest.mark.parametrize(
    ("score", "label", "kol", "risk"),
    [
        (100, NEGATIVE, True, Risk.CRITICAL),
        (70, NEGATIVE, True, Risk.CRITICAL),
        (70, NEGATIVE, False, Risk.HIGH),
        (BELOW_70, NEGATIVE, True, Risk.MEDIUM),
        (BELOW_70, NEGATIVE, False, Risk.MEDIUM),
        (40, NEGATIVE, True, Risk.MEDIUM),
        (BELOW_40, NEGATIVE, True, Risk.LOW),
        (100, NEUTRAL, True, Risk.MEDIUM),
        (60, NEUTRAL, False, Risk.MEDIUM),
        (BELOW_60, NEUTRAL, True, Risk.LOW),
        (100, POSITIVE, True, Risk.MEDIUM),
        (60, POSITIVE, False, Risk.MEDIUM),
        (BELOW_60, POSITIVE, True, Risk.LOW),
        (0, NEGATIVE, True, Risk.LOW),
    ],
)
def test_the_risk_of_a_post(score: float, label: Label, kol: bool, risk: Risk) -> None:  # noqa: FBT001 - a column of the table
    assert risk_of(score, label, kol=kol) is risk


def test_all_of_it_by_hand() -> None:
    """1,000 + 3,000 + 400 + 90 + 250 = 4,740; log10(12,001) x 1.2 = 4.895; x 1.5 x 1.5 = 52,206 of 100,000."""
    interaction = Interaction(views=100_000, likes=3000, comments=200, saves=30, shares=50)

    found = impact_of(interaction, Author(followers=12_000, verified=True), "youtube", NEGATIVE)

    assert found.engagement == pytest.approx(4740)
    assert found.score == pytest.approx(4740 * log10(12_001) * 1.2 * 1.5 * 1.5 / 1000)
    assert (found.risk, found.viral, found.kol) == (Risk.MEDIUM, False, False)


@pytest.mark.parametrize("number", [10**400, 2**63, -(10**400)])
def test_no_counter_is_too_large(number: int) -> None:
    counters = dict.fromkeys(("views", "likes", "comments", "saves", "shares"), number)

    found = impact_of(Interaction(**counters), Author(followers=number, verified=True), "youtube", NEGATIVE)

    assert isfinite(found.raw)
    assert found.score in {0.0, 100.0}


COUNTS = st.integers(-(10**6), 10**8)
INTERACTIONS = st.builds(Interaction, views=COUNTS, likes=COUNTS, comments=COUNTS, shares=COUNTS, saves=COUNTS)
RISKS = list(Risk)


@given(
    INTERACTIONS,
    COUNTS,
    st.booleans(),
    st.sampled_from(list(Label)),
    st.sampled_from(["views", "likes", "comments", "shares", "saves", "followers"]),
    st.integers(0, 10**9),
)
def test_more_of_anything_never_means_less(
    interaction: Interaction,
    followers: int,
    verified: bool,  # noqa: FBT001 - drawn
    label: Label,
    counter: str,
    more: int,
) -> None:
    counters = {name: getattr(interaction, name) for name in interaction.__struct_fields__} | {"followers": followers}
    raised = counters | {counter: counters[counter] + more}

    def found(numbers: dict[str, int]) -> Impact:
        author = Author(followers=numbers["followers"], verified=verified)
        others = {name: number for name, number in numbers.items() if name != "followers"}
        return impact_of(Interaction(**others), author, "facebook", label)

    before, after = found(counters), found(raised)

    assert 0 <= before.score <= after.score <= 100
    assert RISKS.index(before.risk) <= RISKS.index(after.risk)
    assert before.viral <= after.viral
    assert before.kol <= after.kol
