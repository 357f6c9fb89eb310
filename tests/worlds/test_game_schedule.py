"""Which ids there are and when: the arithmetic against slow, obvious twins."""

from dataclasses import replace
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.worlds.game_schedule import GameSchedule, Hole, Piece, ScheduleRules, TimeSpan

FIRST, BEGAN = 16_000_000_000, 1_800_000_000.0
LAST = 900  # no schedule of these tests has more ids that matter
TIMES = st.floats(-20.0, 150.0, allow_nan=False)


@st.composite
def pieces(draw: st.DrawFn) -> tuple[Piece, ...]:
    made: list[Piece] = []
    at = draw(st.sampled_from((-10.0, 0.0)))
    for _ in range(draw(st.integers(1, 4))):
        seconds, rate = draw(st.sampled_from((0.3, 4.0, 11.5))), draw(st.sampled_from((0.7, 5.0, 33.3)))
        made.append(Piece(at, seconds, rate))
        at += seconds + draw(st.sampled_from((0.0, 2.5)))
    return (*made, Piece(at, inf, 3.0)) if draw(st.booleans()) else tuple(made)


@st.composite
def holds(draw: st.DrawFn) -> tuple[TimeSpan, ...]:
    made, at = [], draw(st.sampled_from((-5.0, 3.0)))
    for _ in range(draw(st.integers(0, 3))):
        made.append(TimeSpan(at, draw(st.sampled_from((1.0, 9.0)))))
        at = made[-1].end + draw(st.sampled_from((0.0, 4.0)))
    return tuple(made)


@st.composite
def holes(draw: st.DrawFn) -> tuple[Hole, ...]:
    made, at = [], FIRST + draw(st.integers(0, 40))
    for _ in range(draw(st.integers(0, 3))):
        made.append(Hole(at, draw(st.integers(1, 60)), draw(st.booleans())))
        at = made[-1].end + draw(st.integers(1, 50))
    return tuple(made)


@st.composite
def schedules(draw: st.DrawFn) -> GameSchedule:
    rules = ScheduleRules(
        first=FIRST,
        pieces=draw(pieces()),
        holds=draw(holds()),
        holes=draw(holes()),
        hole_every=draw(st.sampled_from((0, 1, 2, 7, 50))),
        delay=draw(st.sampled_from((0.0, 1.5))),
        spread=draw(st.sampled_from((0.0, 6.0))),
    )
    return GameSchedule(rules, seed=draw(st.integers(0, 5)), began=BEGAN)


def jumped(schedule: GameSchedule, number: int) -> bool:
    return any(hole.first <= number < hole.end for hole in schedule._rules.holes if hole.jumped)


@given(schedules(), TIMES)
def test_the_head_is_the_newest_that_is_born(schedule: GameSchedule, since: float) -> None:
    now = BEGAN + since

    head = schedule.head(now)

    assert schedule.born(head) <= now < schedule.born(head + 1)


@given(schedules())
def test_when_an_id_is_born_it_is_the_head(schedule: GameSchedule) -> None:
    numbers = [number for number in range(FIRST, FIRST + LAST) if not jumped(schedule, number)]
    born = [number for number in numbers if schedule.born(number) < inf]

    assert [schedule.head(schedule.born(number)) for number in born] == born


@given(schedules())
def test_births_are_in_order_and_inside_of_pieces(schedule: GameSchedule) -> None:
    times = [schedule.born(number) for number in range(FIRST - 1, FIRST + LAST)]

    assert times[0] == -inf
    assert all(earlier <= later for earlier, later in pairwise(times))
    for when in times[1:]:
        inside = [piece for piece in schedule._rules.pieces if 0 < when - BEGAN - piece.start < piece.seconds]
        assert when == inf or len(inside) == 1


@given(schedules(), TIMES, st.integers(-5, LAST), st.integers(-5, LAST))
def test_counting_and_listing_agree_with_asking_for_each(
    schedule: GameSchedule, since: float, low: int, high: int
) -> None:
    now, asked = BEGAN + since, range(FIRST + low, FIRST + high)
    exist = [number for number in asked if schedule.exists(number)]
    there = [number for number in exist if schedule.visible(number) <= now]

    assert schedule.existing(asked.start, asked.stop) == len(exist)
    assert list(schedule.ids(asked.start, asked.stop)) == exist
    assert schedule.live(asked.start, asked.stop, now) == len(there)
    assert list(schedule.ids(asked.start, asked.stop, now)) == there


@given(schedules(), TIMES)
def test_the_newest_is_the_highest_that_can_be_fetched(schedule: GameSchedule, since: float) -> None:
    there = list(schedule.ids(FIRST, FIRST + 5 * LAST, BEGAN + since))

    assert schedule.newest(BEGAN + since) == (there[-1] if there else None)


@given(schedules())
def test_an_id_is_visible_when_it_should_be_or_when_a_hold_ends(schedule: GameSchedule) -> None:
    rules = schedule._rules
    ends = {BEGAN + hold.end for hold in rules.holds}

    for number in schedule.ids(FIRST, FIRST + 200):
        waits = schedule.visible(number) - schedule.born(number)
        assert waits >= rules.delay
        assert waits <= rules.delay + rules.spread + 1e-6 or schedule.visible(number) in ends
        assert not any(hold.start < schedule.visible(number) - BEGAN < hold.end - 1e-6 for hold in rules.holds)


def plain(**changes: object) -> GameSchedule:
    rules = ScheduleRules(first=100, pieces=(Piece(0.0, inf, 10.0),), delay=0.0, spread=0.0)
    return GameSchedule(replace(rules, **changes), 1, 0.0)  # type: ignore[arg-type] # fields by name


def test_a_rate_makes_so_many_ids() -> None:
    schedule = plain(pieces=(Piece(0.0, 10.0, 60.0), Piece(30.0, 10.0, 6.0)))

    heads = [schedule.head(now) - 99 for now in (-1.0, 0.0, 5.0, 10.0, 30.0, 35.0, 40.0, 1e6)]

    assert heads == [0, 0, 300, 600, 600, 630, 660, 660]
    assert (schedule.exists(759), schedule.exists(760), schedule.born(760)) == (True, False, inf)


def test_short_pieces_lose_no_fraction_of_an_id() -> None:
    schedule = plain(pieces=tuple(Piece(at / 10, 0.1, 6.0) for at in range(1000)))

    assert schedule.head(1000.0) - 99 == pytest.approx(600, abs=1)


def test_the_counter_jumps_a_hole_in_no_time_and_a_lost_block_takes_its_time() -> None:
    jumping = plain(holes=(Hole(150, 1000),))
    losing = plain(holes=(Hole(150, 1000, jumped=False),))

    assert [jumping.head(now) for now in (4.99, 5.1, 6.0)] == [149, 1150, 1159]
    assert [losing.head(now) for now in (4.99, 5.1, 105.0)] == [149, 150, 1149]
    assert (jumping.existing(100, 1200), losing.existing(100, 1200)) == (100, 100)


def test_a_hold_keeps_ids_back_and_lets_them_go_at_once() -> None:
    schedule = plain(holds=(TimeSpan(5.0, 10.0), TimeSpan(15.0, 10.0)))

    assert [schedule.live(100, 10_000, now) for now in (4.99, 5.0, 14.9, 15.0, 24.9, 25.0)] == [
        50,
        50,
        50,
        150,
        150,
        250,
    ]


def test_ids_near_the_head_are_out_of_order() -> None:
    schedule = plain(delay=1.0, spread=3.0)

    times = [schedule.visible(number) for number in range(100, 400)]

    assert times != sorted(times)
    assert 0.9 < min(when - schedule.born(100 + at) for at, when in enumerate(times)) < 1.2
    assert 3.8 < max(when - schedule.born(100 + at) for at, when in enumerate(times)) < 4.1


def test_one_id_in_so_many_is_missing_and_not_always_in_the_same_place() -> None:
    schedule = plain(hole_every=10)
    missing = [number for number in range(100, 1100) if not schedule.exists(number)]

    assert len(missing) == 100
    assert {number // 10 for number in missing} == set(range(10, 110))
    assert len({number % 10 for number in missing}) == 10


def test_another_seed_is_another_schedule_and_the_same_is_the_same() -> None:
    rules = ScheduleRules(hole_every=10)

    def missing(seed: int) -> list[int]:
        schedule = GameSchedule(rules, seed, BEGAN)
        return [number for number in range(FIRST, FIRST + 300) if not schedule.exists(number)]

    assert missing(1) == missing(1) != missing(2)


def test_millions_of_ids_are_counted_at_once() -> None:
    holes = (Hole(FIRST + 1_000_000, 300_000), Hole(FIRST + 5_000_000, 10_000, jumped=False))
    schedule = GameSchedule(ScheduleRules(pieces=(Piece(0.0, inf, 3000.0),), holes=holes, hole_every=1000), 1, BEGAN)

    assert schedule.existing(FIRST, FIRST + 10**9) == (10**9 - 310_000) * 999 // 1000
    assert schedule.live(FIRST, FIRST + 10**9, BEGAN + 10**5) == pytest.approx(10**5 * 3000 * 0.999, rel=1e-3)


def test_faster_is_the_same_in_a_fraction_of_the_time() -> None:
    rules = ScheduleRules(holds=(TimeSpan(10.0, 20.0),), hole_every=7)
    slow, fast = GameSchedule(rules, 1, 0.0), GameSchedule(rules.faster(10.0), 1, 0.0)

    for now in (-100.0, 5.0, 15.0, 29.0, 31.0, 500.0):
        assert fast.head(now / 10) == pytest.approx(slow.head(now), abs=1)
        assert fast.live(FIRST, FIRST + 10**6, now / 10) == pytest.approx(slow.live(FIRST, FIRST + 10**6, now), abs=1)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"pieces": ()}, "pieces is empty"),
        ({"pieces": (Piece(0.0, 5.0, 1.0), Piece(4.0, 5.0, 1.0))}, "pieces: one begins at 4.0 before"),
        ({"pieces": (Piece(0.0, inf, 1.0), Piece(9.0, 5.0, 1.0))}, "pieces: one begins at 9.0 before"),
        ({"pieces": (Piece(0.0, 0.0, 1.0),)}, "expected seconds above 0"),
        ({"pieces": (Piece(0.0, 1.0, 1e6),)}, "up to 100000"),
        ({"pieces": (Piece(0.0, 1.0, float("nan")),)}, "a rate above 0"),
        ({"holds": (TimeSpan(0.0, inf),)}, "to end"),
        ({"holds": (TimeSpan(0.0, 5.0), TimeSpan(4.0, 5.0))}, "holds: one begins at 4.0"),
        ({"holes": (Hole(FIRST, 0),)}, "to have ids"),
        ({"holes": (Hole(FIRST - 1, 9),)}, "none below"),
        ({"holes": (Hole(FIRST, 5), Hole(FIRST + 5, 5))}, "holes: one begins at 16,000,000,005"),
        ({"delay": -1.0}, "delay -1.0"),
        ({"hole_every": -1}, "hole_every -1"),
    ],
)
def test_a_schedule_that_cannot_be_says_why(changes: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ScheduleRules(**changes)  # type: ignore[arg-type] # fields by name
