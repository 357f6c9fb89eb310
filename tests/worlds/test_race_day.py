"""What happens when on a simulated race day: everybody flies, some leave, some heats are flown again."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.worlds.race_day import LONG_AGO, NEVER, DayRules, RacePlan

SMALL = DayRules(pilots=5, late=1, removed=1, seats=2, rounds=2, aborted=1, first=2.0, heat=10.0, pause=5.0, lap=2.0)


@st.composite
def rules(draw: st.DrawFn) -> DayRules:
    """Small days of all kinds."""
    rounds, pilots = draw(st.integers(1, 3)), draw(st.integers(1, 8))
    removed = draw(st.integers(0, min(rounds, pilots - 1)))
    return DayRules(
        pilots=pilots,
        late=draw(st.integers(0, pilots - 1 - removed)) if rounds > 1 else 0,
        removed=removed,
        seats=draw(st.integers(1, 6)),
        rounds=rounds,
        aborted=draw(st.integers(0, rounds)),
        first=draw(st.floats(0, 20)),
        heat=draw(st.floats(1, 20)),
        pause=draw(st.floats(5, 20)),
        lap=draw(st.floats(0.5, 5)),
        invalid=draw(st.floats(0, 1)),
        corrected=draw(st.floats(0, 1)),
    )


@given(rules(), st.integers())
def test_a_day_is_the_same_for_the_same_seed(rules: DayRules, seed: int) -> None:
    assert RacePlan.make(seed, rules) == RacePlan.make(seed, rules)
    assert RacePlan.make(seed, rules) != RacePlan.make(seed + 1, rules)


@given(rules(), st.integers())
def test_heats_follow_each_other_and_are_made_before_they_start(rules: DayRules, seed: int) -> None:
    plan = RacePlan.make(seed, rules)

    ends = [0, *(heat.end for heat in plan.heats)]
    assert all(heat.made < heat.start < heat.end for heat in plan.heats)
    assert all(before <= heat.start for before, heat in zip(ends, plan.heats, strict=False))
    # In the order in which they count: by round, and by number within it.
    assert sorted(plan.heats, key=lambda heat: (heat.round, heat.number)) == plan.heats
    assert len({heat.id for heat in plan.heats}) == len(plan.heats)


@given(rules(), st.integers())
def test_everybody_who_is_there_flies_once_in_every_round_that_counts(rules: DayRules, seed: int) -> None:
    plan = RacePlan.make(seed, rules)

    for number, each in enumerate(plan.rounds):
        heats = [heat for heat in plan.heats if heat.round == number]
        last = heats[-1].start
        flown = [seat.pilot for heat in heats if not heat.aborted for seat in heat.flyers]
        stayed = {at for at, seat in enumerate(plan.seats) if plan.joins[at] <= each.made and last < seat.gone}
        assert len(flown) == len(set(flown))
        assert set(flown) >= stayed


@given(rules(), st.integers())
def test_as_many_leave_join_late_and_are_aborted_as_the_rules_say(rules: DayRules, seed: int) -> None:
    plan = RacePlan.make(seed, rules)

    assert sum(seat.gone < NEVER for seat in plan.seats) == rules.removed
    assert sum(at > LONG_AGO for at in plan.joins) == rules.late
    assert sum(heat.aborted for heat in plan.heats) == rules.aborted
    assert not [seat for heat in plan.heats for seat in heat.seats if heat.start <= seat.gone < NEVER]
    # Who leaves was to fly once more.
    assert {s.pilot for heat in plan.heats for s in heat.seats if s.gone < NEVER} == {
        seat.pilot for seat in plan.seats if seat.gone < NEVER
    }


@given(rules(), st.integers())
def test_laps_of_a_pilot_follow_each_other_from_the_holeshot_on(rules: DayRules, seed: int) -> None:
    for heat in RacePlan.make(seed, rules).heats:
        assert [each.at for each in heat.passes] == sorted(each.at for each in heat.passes)
        assert all(heat.start < each.at < heat.end for each in heat.passes)
        for seat in heat.flyers:
            laps = [each for each in heat.passes if each.seat == seat and each.lap_id]
            assert [each.lap for each in laps] == list(range(len(laps)))
            assert [each.since for each in laps] == [heat.start, *(each.at for each in laps)][: len(laps)]


def test_a_lap_that_is_struck_out_counts_until_then() -> None:
    plan = RacePlan.make(1, replace(SMALL, heat=60.0, corrected=1.0))

    struck = [each for heat in plan.heats for each in heat.passes if each.struck < NEVER]

    assert len(struck) > 20
    assert all(each.valid(each.struck - 1) and not each.valid(each.struck) for each in struck)


def test_about_a_third_of_the_detections_does_not_count() -> None:
    passes = [each for heat in RacePlan.make(1, DayRules()).heats for each in heat.passes]

    assert len(passes) > 2000
    assert sum(not each.counts for each in passes) / len(passes) == pytest.approx(1 / 3, abs=0.03)
