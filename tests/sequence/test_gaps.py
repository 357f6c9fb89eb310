from dataclasses import replace
from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from probed_ids import Ids, behind_a_gap, with_holes

from sanderling.apis.numbered import LARGEST_ID
from sanderling.sequence.gaps import (
    NEAR,
    REACH,
    HeadWait,
    LifeAhead,
    LookKind,
    NothingAhead,
    WaitRules,
    look_ahead,
    suspects,
)
from sanderling.sequence.readings import PeriodReadings

LAST = 13_000_000_000
RATE = 60.0


@pytest.mark.parametrize(
    ("missing", "count", "suspicious"), [(0.81, 51, True), (0.8, 1000, False), (1.0, 50, False), (1.0, 51, True)]
)
def test_a_period_is_suspect_if_most_of_it_and_enough_was_not_found(
    missing: float, count: int, *, suspicious: bool
) -> None:
    readings = PeriodReadings(None, missing, 0.0, 0.0, count, 1000, 60.0)

    assert suspects(readings) is suspicious
    assert not suspects(replace(readings, missing=0.1))


# Looking ahead.


@pytest.mark.parametrize(
    ("gap", "width"),
    [
        (1_000_000, 100_000),  # halving from 5,000,000 down would never ask there
        (9_996, 50_000),
        (1_140, 60_000),
        (15_680, 700),
        (300_000, 2_400),
        (1, 600),
        (NEAR, 600),
        (NEAR + 1, 600),
        (4_000_000, 100_000),
    ],
)
def test_a_gap_is_found_to_its_last_id(gap: int, width: int) -> None:
    ids = behind_a_gap(LAST, gap, width)

    found = ids.answer(look_ahead(LAST, RATE, silent=width / RATE))

    assert found == LifeAhead(first=LAST + gap + 1, low=LAST + 1)
    assert len(ids.asked) <= 420


@given(
    st.integers(0, LARGEST_ID // 2), st.integers(1, 3_000_000), st.floats(0.01, 2000), st.floats(0.1, 7200), st.data()
)
def test_a_live_stretch_as_wide_as_what_was_made_since_is_never_stepped_over(
    last: int, gap: int, rate: float, silent: float, data: st.DataObject
) -> None:
    made = max(2, int(rate * silent))
    gap = min(gap, NEAR + 250 * max(1, min(made // 2, REACH // 256)))  # beyond that a later look must find it
    ids = behind_a_gap(last, gap, data.draw(st.integers(made, 2 * made)))

    assert ids.answer(look_ahead(last, rate, silent)) == LifeAhead(last + gap + 1, last + 1)


@given(st.integers(0, LARGEST_ID), st.floats(0, 5000), st.floats(0, 1e6))
def test_at_the_head_there_is_nothing_and_no_gap_is_claimed(last: int, rate: float, silent: float) -> None:
    ids = Ids(lambda number: number <= last)

    found = ids.answer(look_ahead(last, rate, silent))

    assert isinstance(found, NothingAhead)
    assert last <= found.reach <= LARGEST_ID
    assert len(ids.asked) <= 340


def test_a_head_that_flickers_costs_few_questions_and_hardly_an_id() -> None:
    """Some id came before its neighbours: that is no gap, and nothing beyond it is asked about."""
    ids = Ids(lambda number: number <= LAST or number == LAST + 7)

    assert ids.answer(look_ahead(LAST, RATE, silent=10)) == LifeAhead(LAST + 7, LAST + 1)
    assert max(ids.asked) <= LAST + NEAR


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("gap", "width"), [(300_000, 40_000), (9_996, 50_000), (1_000_000, 100_000)])
def test_holes_in_what_is_alive_hide_neither_it_nor_its_beginning(gap: int, width: int, seed: int) -> None:
    solid = behind_a_gap(LAST, gap, width)
    ids = with_holes(solid, 0.02, seed)
    first = next(number for number in range(LAST + gap + 1, LAST + gap + 100) if ids.exists(number))

    assert ids.answer(look_ahead(LAST, RATE, silent=width / RATE)) == LifeAhead(first, LAST + 1)


@given(st.integers(1, 50_000), st.floats(0.0, 0.5), st.integers(0, 1000))
def test_what_is_found_exists_and_everything_asked_below_it_does_not(gap: int, share: float, seed: int) -> None:
    ids = with_holes(behind_a_gap(LAST, gap, 20_000), share, seed)

    found = ids.answer(look_ahead(LAST, RATE, silent=300))

    if isinstance(found, LifeAhead):
        assert ids.exists(found.first)
        assert not any(ids.exists(number) for number in ids.asked if LAST < number < found.first)


def test_a_short_gap_before_a_long_backlog_is_found_and_not_the_far_end_of_it() -> None:
    """An hour behind, even steps are 19,531 ids wide; the gap is 2,500, with a live stretch of 3,000 behind it."""
    first = LAST + 2_501
    later = first + 3_000 + 200_000  # and behind another gap, all the rest
    ids = Ids(lambda number: number <= LAST or first <= number < first + 3_000 or later <= number < later + 200_000)

    assert ids.answer(look_ahead(LAST, RATE, silent=3600)) == LifeAhead(first, LAST + 1)


def test_stretches_narrower_than_the_steps_can_be_missed_and_that_is_known() -> None:
    """Of what was made since, two narrow pieces are all there is: the nearer one lies between two steps."""
    ids = Ids(lambda number: number <= LAST or 200_100 <= number - LAST < 200_200 or 400_000 <= number - LAST < 430_000)

    found = ids.answer(look_ahead(LAST, RATE, silent=600))

    assert found == LifeAhead(LAST + 400_000, LAST + 1)  # all below is recorded as missed, and sampled again later


def test_after_a_long_pause_steps_are_no_wider_than_the_reach_needs() -> None:
    """Two hours of silence suggest 432,000 new ids. But it was a pause, and then a jump: there are 20,000."""
    ids = behind_a_gap(LAST, 300_000, 20_000)

    assert ids.answer(look_ahead(LAST, RATE, silent=7200)) == LifeAhead(LAST + 300_001, LAST + 1)


def test_a_gap_of_300_000_ids_is_found_by_a_few_looks_with_at_most_1500_questions() -> None:
    """The upstream jumps at second 0. We notice 10 s later, find nothing, and look again as a wait does."""
    asked, now = 0, 10.0
    waiting = HeadWait(now)
    while now < 600:
        ids = behind_a_gap(LAST, 300_000, int(RATE * now))
        found = ids.answer(look_ahead(LAST, RATE, silent=now))
        asked += len(ids.asked)
        if isinstance(found, LifeAhead):
            break
        waiting.looked(LookKind.FAR, now)
        while True:
            now, look = waiting.next_look()
            if look is LookKind.FAR:
                break
            asked += NEAR
            waiting.looked(look, now)

    assert found == LifeAhead(LAST + 300_001, LAST + 1)
    assert now <= 100
    assert asked <= 1_500


def test_the_end_of_all_ids_is_not_passed() -> None:
    assert Ids(lambda _: False).answer(look_ahead(LARGEST_ID - 3, RATE, 60)) == NothingAhead(LARGEST_ID)
    with pytest.raises(StopIteration) as end:
        next(look_ahead(LARGEST_ID, RATE, 60))
    assert end.value.value == NothingAhead(LARGEST_ID)


def test_nothing_is_looked_for_beyond_the_reach() -> None:
    ids = behind_a_gap(LAST, REACH, 1_000_000)

    assert isinstance(ids.answer(look_ahead(LAST, RATE, silent=100_000)), NothingAhead)
    assert isinstance(ids.answer(look_ahead(LAST, RATE, silent=100_000, reach=2 * REACH)), LifeAhead)


def test_as_many_answers_as_questions_are_wanted() -> None:
    search = look_ahead(LAST, RATE, 60)
    next(search)

    with pytest.raises(ValueError, match="argument 2 is shorter"):
        search.send([False])


@pytest.mark.parametrize(("rate", "silent"), [(nan, 1.0), (60.0, nan), (-1.0, 5.0)])
def test_a_rate_or_time_that_cannot_be_is_refused(rate: float, silent: float) -> None:
    with pytest.raises(ValueError, match="expected ids a second and seconds"):
        next(look_ahead(LAST, rate, silent))


def test_a_clock_that_went_back_makes_the_smallest_steps() -> None:
    ids = behind_a_gap(LAST, 100, 10)

    assert ids.answer(look_ahead(LAST, RATE, silent=-50)) == LifeAhead(LAST + 101, LAST + 1)


# Waiting.


def looks(waiting: HeadWait, until: float) -> list[tuple[float, LookKind]]:
    """All looks, in vain, of a wait until then."""
    made = []
    while waiting.next_look()[0] <= until:
        at, look = waiting.next_look()
        made.append((at, look))
        waiting.looked(look, at)
    return made


def test_the_next_ids_are_looked_at_ever_more_rarely() -> None:
    near = [at for at, look in looks(HeadWait(100.0), 130.0) if look is LookKind.NEAR]

    assert near == pytest.approx([102, 105, 109.5, 116.25, 126.375])


def test_far_ahead_is_looked_ever_more_rarely() -> None:
    far = [at for at, look in looks(HeadWait(0.0), 700.0) if look is LookKind.FAR]

    assert far == [30, 90, 210, 330, 450, 570, 690]


def test_a_look_far_ahead_does_for_the_next_ids_too() -> None:
    waiting = HeadWait(0.0, WaitRules(near=10, rarest_near=10, far=10, rarest_far=20))

    assert waiting.next_look() == (10.0, LookKind.FAR)
    waiting.looked(LookKind.FAR, 12.0)
    assert waiting.next_look() == (22.0, LookKind.NEAR)


def test_a_pause_of_20_minutes_costs_a_hundred_looks() -> None:
    made = looks(HeadWait(0.0), 1200.0)

    assert sum(look is LookKind.FAR for _, look in made) <= 12
    assert len(made) <= 100


def test_a_wait_of_three_quarters_of_an_hour_is_told_once() -> None:
    waiting = HeadWait(1000.0)

    assert not waiting.runaway(1000.0 + 2699)
    assert waiting.runaway(1000.0 + 2700)
    assert not waiting.runaway(1000.0 + 9000)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"near": 0.0}, "near 0.0, rarest_near 15.0"),
        ({"near": 20.0}, "do not decrease"),
        ({"far": 200.0}, "far 200.0, rarest_far 120.0"),
        ({"runaway": 0.0}, "runaway is 0.0"),
    ],
)
def test_times_that_contradict_each_other_are_refused(wrong: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        WaitRules(**wrong)
