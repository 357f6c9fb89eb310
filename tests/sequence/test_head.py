from math import inf, nan, pi, sin
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paced_world import FIRST, WALL, Crawl, Upstream

from sanderling.sequence.head import IN_A_ROW, LONGEST_WAIT, POINTS, Margin, MarginRules, SequenceHead


def taught(rate: float = 10.0, seconds: float = 300.0, lag: float = 5.0) -> SequenceHead:
    """A head that has seen an upstream as regular as a clock, up to WALL, each record `lag` after its completion."""
    head = SequenceHead()
    for step in range(int(rate * seconds) + 1):
        completed = WALL - seconds + step / rate
        head.seen(FIRST + step, completed, completed + lag)
    return head


# The line.


def test_before_anything_was_seen_nothing_is_known() -> None:
    head = SequenceHead()

    assert (head.newest, head.rate, head.due(FIRST), head.estimate(WALL)) == (None, None, None, None)


def test_a_few_records_are_no_line() -> None:
    head = SequenceHead()
    for step in range(5):
        head.seen(FIRST + step, WALL + step, WALL + step)

    assert head.rate is None
    assert head.due(FIRST + 5, WALL) is None
    assert head.newest == head.estimate(WALL) == FIRST + 4


def test_the_newest_is_the_highest_and_not_the_last() -> None:
    head = SequenceHead()

    for number in (FIRST, FIRST + 9, FIRST + 3):
        head.seen(number, WALL, WALL)

    assert head.newest == FIRST + 9


def test_an_id_is_due_at_its_time_and_a_margin() -> None:
    head = taught(rate=10.0)

    assert head.rate == pytest.approx(10)
    assert head.due(FIRST + 3000 + 50) == pytest.approx(WALL + 5 + 8)
    assert head.estimate(WALL + 28) == pytest.approx(FIRST + 3000 + 200, abs=1)


def test_what_is_due_now_is_what_is_estimated() -> None:
    head = taught()

    for seconds in (8, 30, 60):
        number = head.estimate(WALL + seconds)
        assert number is not None
        assert head.due(number, WALL + seconds) == pytest.approx(WALL + seconds, abs=0.2)


def test_the_estimate_is_never_below_what_was_seen() -> None:
    assert taught().estimate(WALL - 1000) == FIRST + 3000


@pytest.mark.parametrize("rate", [0.05, 0.5, 20.0, 500.0])
@pytest.mark.parametrize("scatter", [0.0, 5.0, 30.0])
def test_the_rate_is_learned_from_a_backlog_however_much_times_scatter(rate: float, scatter: float) -> None:
    rng, head = Random(5), SequenceHead()
    for step in range(int(min(max(600, rate * 900), 100_000))):
        head.seen(FIRST + step, WALL + step / rate + rng.gauss(0, scatter), WALL + 1e6)

    assert head.rate == pytest.approx(rate, rel=0.15)


def test_one_second_of_scattered_records_is_not_taken_for_a_line() -> None:
    rng, head = Random(5), SequenceHead()
    for step in range(60):
        head.seen(FIRST + step, WALL + step / 60 + rng.gauss(0, 30), WALL + 100)

    assert head.rate is None


def test_a_pause_does_not_count_as_slowness() -> None:
    head = SequenceHead()
    for step in range(12_000):
        pause = 600.0 if step > 6_000 else 0.0
        head.seen(FIRST + step, WALL + step / 20 + pause, WALL + 1e5)

    assert head.rate == pytest.approx(20, rel=0.05)
    assert head.due(FIRST + 12_020, WALL + 1e5) == pytest.approx(WALL + 601 + 600 + 8, abs=2)


def test_a_jump_over_300_000_ids_does_not_count_as_speed() -> None:
    head = SequenceHead()
    for step in range(12_000):
        jump = 300_000 if step > 11_000 else 0
        head.seen(FIRST + step + jump, WALL + step / 20, WALL + 1e5)

    assert head.rate == pytest.approx(20, rel=0.05)
    assert head.due(FIRST + 312_020, WALL + 1e5) == pytest.approx(WALL + 601 + 8, abs=2)


def test_the_rate_follows_the_day() -> None:
    head, time = SequenceHead(), 0.0
    rates = []
    for step in range(100_000):
        now = 10 + 4 * sin(2 * pi * time / 14_400)
        time += 1 / now
        head.seen(FIRST + step, WALL + time, WALL + time)
        if step % 5_000 == 4_999:
            rates.append((head.rate or 0) / now)

    assert all(0.85 < ratio < 1.15 for ratio in rates)


def test_its_memory_is_bounded() -> None:
    head = SequenceHead()
    for step in range(100_000):
        head.seen(FIRST + step, WALL + step / 50, WALL + step / 50)
        head.early(FIRST + step + 1_000_000)

    assert len(head._trail._points) <= POINTS
    assert len(head._trail._sample) <= 20
    assert len(head._doubted) <= 4096


def test_late_finds_do_not_bend_the_line() -> None:
    head = taught()
    before = head.due(FIRST + 4000, WALL)

    for step in range(0, 2000, 3):
        head.seen(FIRST + step, WALL + 9000, WALL)

    assert head.due(FIRST + 4000, WALL) == before


@pytest.mark.parametrize("times", [(nan, WALL), (WALL, nan), (inf, WALL)])
def test_a_time_that_is_none_is_refused(times: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="was completed at"):
        SequenceHead().seen(FIRST, *times)


# The margin.


def test_what_was_there_makes_the_margin_shrink_to_its_least() -> None:
    head = taught()

    for step in range(50_000):
        head.on_time(FIRST + 3000 + step % 50)

    assert head.margin == MarginRules().least


def test_what_came_later_than_asked_makes_it_grow_up_to_when_it_was_there() -> None:
    head = taught()
    for step in range(1, 400):
        (head.early if step % IN_A_ROW else head.on_time)(FIRST + 3000 + step)
    assert head.margin < MarginRules().first

    for step in range(1, 400):
        head.seen(FIRST + 3000 + step, WALL + step / 10, WALL + step / 10 + 21.0)

    assert head.margin == pytest.approx(21, abs=0.5)


def test_a_second_of_many_ids_counts_for_no_more_than_one_of_ten() -> None:
    """What was early is known seconds later. Until then, hundreds that were there would have taken too much off."""
    margins = []
    for rate in (1.0, 10.0, 100.0):
        margin = Margin(MarginRules())
        for _ in range(int(rate)):
            margin.there(1 / rate)
        margins.append(MarginRules().first - margin.seconds)

    assert margins[0] < margins[1] == pytest.approx(margins[2], rel=0.01)


def test_it_never_grows_beyond_its_most() -> None:
    head = taught()
    for step in range(1, 400):
        head.early(FIRST + 3000 + step)

    for step in range(1, 400):
        head.seen(FIRST + 3000 + step, WALL + step / 10, WALL + step / 10 + 500.0)

    assert head.margin == MarginRules().most


def test_ids_that_never_come_do_not_make_it_grow() -> None:
    head = taught()

    for step in range(1, 1000, IN_A_ROW + 1):
        for hole in range(IN_A_ROW):
            head.early(FIRST + 3000 + step + hole)
        head.on_time(FIRST + 3000 + step + IN_A_ROW)

    assert head.margin < MarginRules().first


def test_a_long_row_of_misses_makes_it_grow_though_none_of_them_is_ever_seen() -> None:
    """Records that come later than all tries for them: without this nothing would ever be learned."""
    head = taught()

    for step in range(1, 100):
        head.early(FIRST + 3000 + step)

    assert head.margin > 20


def test_a_row_that_was_a_hole_is_forgotten() -> None:
    head = taught()
    for step in range(1, 100):
        head.early(FIRST + 3000 + step)

    head.on_time(FIRST + 3100)

    assert head.margin == pytest.approx(MarginRules().first, abs=0.01)


def test_a_row_that_was_a_gap_is_forgotten() -> None:
    head = taught()
    for step in range(1, 150):
        head.early(FIRST + 3000 + step)

    head.resume(FIRST + 300_000, WALL + 60)

    assert head.margin == MarginRules().first


def test_after_a_wait_the_first_record_says_how_large_it_need_be() -> None:
    head = taught()
    for step in range(1, 150):
        head.early(FIRST + 3000 + step)
    assert head.margin > 40

    head.resume(FIRST + 3001, WALL + 600)
    head.seen(FIRST + 3001, WALL + 585, WALL + 600)

    assert head.margin == pytest.approx(15)


def test_a_backlog_teaches_nothing_about_the_margin() -> None:
    head = taught(lag=3600.0)

    for step in range(1, 1000):
        head.on_time(FIRST + step)
        head.early(FIRST + step)
        head.seen(FIRST + step, WALL, WALL + 3600)

    assert head.margin == MarginRules().first


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"least": 9.0}, "least 9.0, first 8.0, most 120.0"),
        ({"most": inf}, "do not decrease"),
        ({"early": 0.0}, "early 0.0"),
        ({"step": 1.0}, "step 1.0"),
    ],
)
def test_a_margin_that_cannot_be_is_refused(wrong: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        MarginRules(**wrong)


# At the head of an upstream.

WORLDS = {
    "calm": Upstream(),
    "exact": Upstream(scatter=0.0),
    "scattered": Upstream(scatter=10.0),
    "with holes": Upstream(holes=0.02),
    "slow to show": Upstream(delay=lambda _, rng: rng.uniform(20, 40)),
    "slower for a while": Upstream(delay=lambda time, rng: rng.uniform(1, 6) + (20 if 900 < time < 1200 else 0)),
    "with its days": Upstream(rate=lambda time: 10 + 4 * sin(2 * pi * time / 14_400)),
    "rare": Upstream(rate=lambda _: 1.0),
    "rare and slow to show": Upstream(rate=lambda _: 0.5, scatter=0.0, delay=lambda _, rng: rng.uniform(33, 38)),
}


@pytest.mark.parametrize("name", WORLDS)
def test_few_first_questions_come_too_early_and_records_are_young(name: str) -> None:
    crawl = Crawl().follow(WORLDS[name], end=2400)

    assert crawl.early(since=900) <= 0.03
    assert crawl.lag(0.5, since=900) <= (45 if "slow to show" in name else 32)
    assert crawl.longest_wait <= LONGEST_WAIT


def test_holes_cost_no_time() -> None:
    """If a hole counted as too early, two in a hundred would drive the margin to its most."""
    without, with_them = (Crawl().follow(WORLDS[name], end=2000) for name in ("calm", "with holes"))

    assert with_them.lag(0.5, since=500) < without.lag(0.5, since=500) + 2


@settings(max_examples=8)
@given(
    rate=st.floats(0.5, 12),
    scatter=st.floats(0, 15),
    delay=st.floats(0, 40),
    holes=st.floats(0, 0.1),
    backlog=st.floats(200, 600),
    seed=st.integers(0, 1000),
)
def test_whatever_the_upstream_the_crawl_keeps_up_and_asks_little_too_early(
    rate: float, scatter: float, delay: float, holes: float, backlog: float, seed: int
) -> None:
    upstream = Upstream(lambda _: rate, scatter, lambda _, rng: delay + rng.uniform(0, 5), holes, seed=seed)

    crawl = Crawl(most=3 * rate).follow(upstream, end=1800, backlog=backlog)

    assert crawl.lag(0.5, since=1200) <= delay + 5 * scatter + 30
    assert crawl.early(since=900) <= 0.08
    assert MarginRules().least <= crawl.head.margin <= MarginRules().most


# When the line is wrong.


def test_after_a_gap_a_new_line_begins_where_there_is_life() -> None:
    head = taught()

    head.resume(FIRST + 400_000, WALL + 500)

    assert head.newest == FIRST + 400_000
    assert head.rate == pytest.approx(10)
    assert head.due(FIRST + 400_000, WALL + 500) == pytest.approx(WALL + 500)
    assert head.due(FIRST + 400_010, WALL + 500) == pytest.approx(WALL + 501)


def test_the_first_record_after_that_says_where_the_line_is() -> None:
    head = taught()
    head.resume(FIRST + 400_000, WALL + 500)

    head.seen(FIRST + 400_000, WALL + 100, WALL + 500)

    assert head.due(FIRST + 400_010, WALL + 500) == pytest.approx(WALL + 100 + 1 + 8)


def test_before_any_rate_is_known_a_new_line_holds_nothing_back() -> None:
    head = SequenceHead()

    head.resume(FIRST, WALL)

    assert (head.newest, head.due(FIRST + 1, WALL)) == (FIRST, None)


def test_no_id_is_held_back_for_longer_than_a_minute() -> None:
    head = taught(rate=0.05, seconds=6000)
    far = FIRST + 10_000

    assert head.due(far, WALL) == WALL + LONGEST_WAIT
    assert head.due(far, WALL + 30) == WALL + LONGEST_WAIT
    assert head.due(far, WALL + LONGEST_WAIT) == WALL + LONGEST_WAIT
    assert head.due(far + 1, WALL + 61) == pytest.approx(WALL + 80, abs=2)  # the line is shifted: not another minute


def test_without_being_told_the_time_it_goes_by_the_last_record() -> None:
    head = taught(lag=5.0)

    assert head.due(FIRST + 100_000) == WALL + 5 + LONGEST_WAIT


def test_a_clock_that_goes_back_an_hour_costs_one_minute() -> None:
    crawl = Crawl(skew=lambda now: -3600.0 if now > 600 else 0.0).follow(WORLDS["calm"], end=1800)

    assert LONGEST_WAIT - 1 <= crawl.longest_wait <= LONGEST_WAIT + 1
    assert crawl.lag(0.9, since=900) <= LONGEST_WAIT + 15


def test_a_clock_that_is_set_right_again_costs_some_questions() -> None:
    crawl = Crawl(skew=lambda now: -3600.0 if 600 < now < 1200 else 0.0).follow(WORLDS["calm"], end=2400)

    assert crawl.early(since=1500) <= 0.03
    assert crawl.lag(0.5, since=1500) <= 15


def test_a_clock_that_jumps_ahead_holds_nothing_back() -> None:
    """Everything looks overdue then. What is not there yet is asked for again, as anything else."""
    crawl = Crawl(skew=lambda now: 3600.0 if now > 600 else 0.0).follow(Upstream(lambda _: 20.0), end=1200)

    assert crawl.lag(0.99, since=700) < 20


def test_a_clock_that_goes_back_during_a_wait_begins_it_anew() -> None:
    head = taught(rate=0.05, seconds=6000)
    far = FIRST + 10_000
    head.due(far, WALL)

    assert head.due(far, WALL - 5000) == WALL - 5000 + LONGEST_WAIT
