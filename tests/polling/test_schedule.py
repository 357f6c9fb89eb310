from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduled import entry, next_at, schedule, take

from sanderling.polling.cadence import next_point, phase
from sanderling.polling.schedule import Schedule
from sanderling.polling.targets import ScheduledTarget


def run(made: Schedule, each: ScheduledTarget, until: float, took: float = 0.0, **how: float) -> list[float]:
    """When it ran up to then, each run taking so long."""
    ran: list[float] = []
    while True:
        at = next_at(made)
        if at is None or at > until:
            return ran
        found = take(made, at)
        assert found is each
        ran.append(at)
        made.finish(each, at + took, **how)


def test_runs_lie_on_a_grid_however_long_they_take() -> None:
    each = entry(at=0.05, seconds=0.2)

    ran = run(schedule(each), each, 20.0, took=0.15)

    assert ran == pytest.approx([0.05 + 0.2 * number for number in range(100)])
    assert each.missed == 0


def test_a_slow_run_misses_what_fell_due_meanwhile_and_makes_up_for_nothing() -> None:
    each = entry(at=0.0, seconds=0.2)
    made = schedule(each)
    assert take(made, 0.0) is each

    missed = made.finish(each, 0.7)

    assert missed == each.missed == 3
    assert next_at(made) == pytest.approx(0.8)
    assert take(made, 0.75) is None


def test_what_is_running_is_nowhere_in_line() -> None:
    """The same target twice at a time is what a slow upstream would otherwise make of a fast cadence."""
    each = entry(at=0.0, seconds=0.2)
    made = schedule(each)

    assert take(made, 0.0) is each
    assert [take(made, now) for now in (0.2, 0.4, 5.0)] == [None, None, None]
    assert not made.promote(each, 5.0) or take(made, 5.0) is None


def test_a_promotion_runs_it_now_and_leaves_its_grid() -> None:
    each = entry(at=7.0)
    made = schedule(each)

    assert made.promote(each, 2.0)
    assert take(made, 2.0) is each
    made.finish(each, 2.1)

    assert next_at(made) == 7.0
    assert each.missed == 0


def test_promotions_are_one_however_many_there_are() -> None:
    each = entry(at=7.0)
    made = schedule(each)

    promoted = [made.promote(each, 2.0) for _ in range(100)]

    assert promoted == [True] + [False] * 99
    assert take(made, 2.0) is each
    assert take(made, 2.0) is None


def test_promotions_while_it_runs_make_one_more_run() -> None:
    each = entry(at=0.0)
    made = schedule(each)
    take(made, 0.0)

    assert [made.promote(each, 0.1) for _ in range(10)] == [True] + [False] * 9
    made.finish(each, 0.5)

    assert take(made, 0.5) is each
    made.finish(each, 0.6)
    assert take(made, 0.6) is None


def test_promotions_are_capped() -> None:
    each = entry(at=7.0)
    made = schedule(each)
    made.promote(each, 2.0, least=0.2)
    take(made, 2.0)
    made.finish(each, 2.05)

    assert not made.promote(each, 2.1, least=0.2)
    assert made.promote(each, 2.2, least=0.2)


def test_an_accelerated_target_runs_at_once_and_then_often() -> None:
    each = entry(at=7.0)
    made = schedule(each)

    assert made.accelerate(each, 0.2, 3.0, 33.0)

    first = 3.0 + 0.2 * phase(each.kind, each.source_id)
    assert run(made, each, 4.05, took=0.001) == pytest.approx([3.0, *(first + 0.2 * n for n in range(5))])
    assert list(made.accelerated) == [each.id]


@pytest.mark.parametrize(
    ("seconds", "took", "following", "missed"),
    [(0.2, 0.24, 0.2, 0), (0.2, 0.26, 0.4, 1), (0.2, 0.63, 0.6, 2), (1.0, 1.01, 2.0, 1)],
)
def test_a_live_run_that_ends_just_after_the_next_point_is_late_for_it_and_does_not_miss_it(
    seconds: float, took: float, following: float, missed: int
) -> None:
    each = entry(at=0.0, seconds=seconds)
    made = schedule(each)
    assert take(made, 0.0) is each

    assert made.finish(each, took) == missed
    assert next_at(made) == pytest.approx(following)


def test_targets_that_are_accelerated_together_do_not_run_together() -> None:
    """Or those at the end of the line would be late for their next point, and miss every second one."""
    made = schedule(*(entry(number, at=7.0) for number in range(20)))
    for each in made.entries.values():
        made.accelerate(each, 0.2, 3.0, 33.0)
    while (found := take(made, 3.0)) is not None:
        made.finish(found, 3.0)

    points = sorted(each.at for each in made.entries.values())

    assert points[0] > 3.0
    assert points[-1] - points[0] > 0.15
    assert len({round(point, 6) for point in points}) == 20


def test_to_accelerate_again_renews_the_lease_and_moves_nothing() -> None:
    """Or each renewal would run the target once more, as a discovery every ten seconds would."""
    each = entry(at=7.0)
    made = schedule(each)
    made.accelerate(each, 0.2, 3.0, 33.0)
    run(made, each, 3.3)

    assert not made.accelerate(each, 0.2, 3.35, 63.0)
    assert each.until == 63.0
    assert not made.accelerate(each, 0.2, 3.35, 40.0)
    assert each.until == 63.0
    assert next_at(made) == pytest.approx(next_point(3.0 + 0.2 * phase(each.kind, each.source_id), 0.2, 3.3))


def test_an_acceleration_ends_by_itself_and_the_usual_grid_is_where_it_was() -> None:
    each = entry(at=7.0)
    made = schedule(each)
    made.accelerate(each, 0.2, 3.0, 5.0)

    ran = run(made, each, 30.0)

    assert [at for at in ran if at > 5.1] == pytest.approx([7.0, 17.0, 27.0])
    assert made.accelerated == {}
    assert each.interval == 10.0


def test_to_slow_down_goes_back_to_the_usual_grid() -> None:
    each = entry(at=7.0)
    made = schedule(each)
    made.accelerate(each, 0.2, 8.0, 100.0)
    run(made, each, 9.0)

    assert made.slow_down(each, 9.1)
    assert not made.slow_down(each, 9.1)

    assert next_at(made) == pytest.approx(17.0)


def test_a_target_slowed_down_while_it_runs_is_planned_when_it_is_back() -> None:
    each = entry(at=7.0)
    made = schedule(each)
    made.accelerate(each, 0.2, 8.0, 100.0)
    take(made, 8.0)

    made.slow_down(each, 8.1)
    assert next_at(made) is None
    made.finish(each, 8.2)

    assert next_at(made) == pytest.approx(17.0)


@pytest.mark.parametrize(("seconds", "following"), [(5.0, 7.0), (20.0, 7.0), (3.0, 4.0)])
def test_another_interval_keeps_the_phase(seconds: float, following: float) -> None:
    each = entry(at=7.0)
    made = schedule(each)

    made.set_usual(each, seconds, 3.5)

    assert next_at(made) == pytest.approx(following)


def test_another_interval_leaves_an_acceleration_alone() -> None:
    each = entry(at=7.0)
    made = schedule(each)
    made.accelerate(each, 0.2, 3.0, 33.0)
    run(made, each, 3.1)

    made.set_usual(each, 5.0, 3.15)

    assert next_at(made) == pytest.approx(next_point(3.0 + 0.2 * phase(each.kind, each.source_id), 0.2, 3.1))
    assert each.interval == 0.2
    made.slow_down(each, 3.3)
    assert next_at(made) == pytest.approx(7.0)


def test_who_stays_away_comes_back_on_the_grid_and_missed_nothing() -> None:
    each = entry(at=0.0, seconds=0.2)
    made = schedule(each)
    take(made, 0.0)

    assert made.finish(each, 0.1, away=3.0) == 0

    assert next_at(made) == pytest.approx(3.2)
    take(made, 3.2)
    made.finish(each, 3.21)
    assert each.missed == 0


def test_jitter_moves_a_run_and_not_its_grid() -> None:
    each = entry(at=0.0)
    made = schedule(each)
    made.jitter = 0.15

    ran = run(made, each, 1000.0, took=0.01)

    late = [at - 10.0 * number for number, at in enumerate(ran)]
    assert all(-1e-9 <= each <= 0.15 for each in late)
    assert len({round(each, 6) for each in late}) > 50
    assert each.missed == 0


def test_who_is_dropped_does_not_come_back() -> None:
    running, waiting, in_line = entry(1, 0.0), entry(2, 5.0), entry(3, 0.1)
    made = schedule(running, waiting, in_line)
    take(made, 0.0)
    made.hosts["host"].usual.due(0.2)

    for each in (running, waiting, in_line):
        made.drop(each)
    made.finish(running, 1.0)

    assert take(made, 100.0) is None
    assert next_at(made) is None
    assert made.entries == {}


# The order of those that are due.


def overload(made: Schedule, slot: float, seconds: float) -> Counter[int]:
    """Run one at a time, each taking a slot; how often each ran."""
    ran: Counter[int] = Counter()
    now = 0.0
    while now < seconds:
        found = take(made, now)
        now += slot
        if found is not None:
            ran[found.id] += 1
            made.finish(found, now)
    return ran


def test_the_later_one_of_a_class_comes_first() -> None:
    made = schedule(entry(1, 3.0), entry(2, 1.0), entry(3, 2.0))

    assert [each and each.id for each in (take(made, 5.0), take(made, 5.0), take(made, 5.0), take(made, 5.0))] == [
        2,
        3,
        1,
        None,
    ]


def test_an_overdue_crowd_does_not_hold_up_the_live_target() -> None:
    """By due time alone, the crowd of those that are late would go first, for ever."""
    made = schedule(*(entry(number, -5.0) for number in range(1, 1001)))
    live = entry(2000, 10.0)
    made.add(live)
    made.accelerate(live, 0.2, 0.0, 1e9)

    ran = overload(made, 0.06, 60.0)

    assert ran[2000] > 0.95 * 60 / 0.2


def test_no_class_starves_beside_one_that_weighs_a_million() -> None:
    greedy = [entry(number, 0.0, seconds=0.05, set_priority=1_000_000) for number in range(1, 50)]
    others = [entry(100, 0.0, seconds=3600.0, set_priority=-5), entry(101, 0.0, seconds=10.0)]
    made = schedule(*greedy, *others)

    ran = overload(made, 0.1, 100.0)

    assert ran[100] >= 1
    assert ran[101] >= 9


@given(
    st.lists(st.tuples(st.sampled_from([1.0, 10.0, 60.0]), st.integers(-3, 100)), min_size=2, max_size=5), st.integers()
)
@settings(max_examples=30, deadline=None)
def test_each_class_that_waits_gets_a_tenth_of_the_runs(classes: list[tuple[float, int]], seed: int) -> None:
    """Whoever is always ready: every class has more to do than there are slots."""
    rng = Random(seed)
    made = schedule()
    kinds = {}
    for number, (seconds, weight) in enumerate(dict.fromkeys(classes)):
        for copy in range(100):
            each = entry(number * 1000 + copy, rng.uniform(-1000.0, 0.0), seconds=seconds, set_priority=weight)
            kinds[each.id] = each.group
            made.add(each)
    groups = set(kinds.values())

    ran: Counter[object] = Counter()
    for _ in range(100):
        found = take(made, 0.0)
        if found is None:
            break
        ran[kinds[found.id]] += 1

    assert all(ran[group] >= 9 for group in groups)


def test_what_needs_no_slot_is_what_is_live_only() -> None:
    usual, live = entry(1, -100.0), entry(2, 50.0)
    made = schedule(usual, live)
    made.accelerate(live, 0.2, 0.0, 30.0)

    assert take(made, 0.0, live=True) is live
    assert take(made, 0.0, live=True) is None
    assert take(made, 0.0) is usual


def test_a_target_that_is_set_to_less_than_a_second_is_live() -> None:
    usual, live = entry(1, -100.0, seconds=1.0), entry(2, 0.0, seconds=0.9)
    made = schedule(usual, live)

    assert take(made, 0.0, live=True) is live
    assert take(made, 0.0, live=True) is None


def test_another_weight_counts_at_once() -> None:
    one, other = entry(1, 0.0), entry(2, 0.0)
    made = schedule(one, other)
    made.hosts["host"].usual.due(1.0)

    made.reclass(other, 50, 1.0)

    assert take(made, 1.0) is other


def test_a_hundred_thousand_that_fall_due_at_once_are_sorted_in_bit_by_bit() -> None:
    made = schedule(*(entry(number, 0.0) for number in range(100_000)))
    live = entry(200_000, 1.0)
    made.add(live)
    made.accelerate(live, 0.2, 0.5, 30.0)

    host = made.hosts["host"]
    assert host.usual.due(1.0) == 1.0
    assert len(host.usual) == 500
    assert take(made, 1.0) is live
    for _ in range(300):
        host.usual.due(1.0)
    assert len(host.usual) == 100_000


def test_what_is_promoted_again_and_again_leaves_no_heap_of_places() -> None:
    each = entry(1, 3600.0, seconds=3600.0)
    made = schedule(each)
    for number in range(20_000):
        made.promote(each, float(number) * 0.1)
        take(made, float(number) * 0.1)
        made.finish(each, float(number) * 0.1 + 0.01)

    assert len(made.hosts["host"].usual._heap) < 3000


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_whatever_happens_every_target_is_in_one_place_and_comes_up_again(data: st.DataObject) -> None:
    entries = [
        entry(number, float(number) / 7, seconds=data.draw(st.sampled_from([0.2, 1.0, 10.0]))) for number in range(5)
    ]
    made = schedule(*entries)
    now, running = 0.0, []
    for _ in range(data.draw(st.integers(0, 60))):
        now += data.draw(st.floats(0, 3))
        each = data.draw(st.sampled_from(entries))
        match data.draw(st.integers(0, 6)):
            case 0 | 1:
                if (found := take(made, now)) is not None:
                    assert found not in running
                    running.append(found)
            case 2 if running:
                done = running.pop(data.draw(st.integers(0, len(running) - 1)))
                made.finish(done, now, away=data.draw(st.sampled_from([0.0, 5.0])))
            case 3:
                made.promote(each, now)
            case 4:
                made.accelerate(each, 0.2, now, now + data.draw(st.floats(0, 5)))
            case 5:
                made.slow_down(each, now)
            case _:
                made.set_usual(each, data.draw(st.sampled_from([0.2, 1.0, 10.0])), now)
    for each in running:
        made.finish(each, now)
    seen = set()
    for _ in entries:
        found = take(made, now + 100.0)
        assert found is not None
        seen.add(found.id)
    assert seen == {each.id for each in entries}
    assert take(made, now + 100.0) is None
