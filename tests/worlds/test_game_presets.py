"""The ready-made games have in store what they say."""

from itertools import pairwise
from math import inf

import pytest

from sanderling.worlds.game import BEGAN, SETTINGS, Game
from sanderling.worlds.game_presets import LOST, PRESETS, SOON, backlog, bursts, demo, gap, lost, pause, slow, steady

FIRST = 16_000_000_000


@pytest.mark.parametrize("name", PRESETS)
def test_each_begins_with_history_enough_to_start_behind_the_head(name: str) -> None:
    game = Game(PRESETS[name](), 1)

    assert game.live(FIRST, FIRST + 10**8, BEGAN) > 10_000
    assert game.ask(SETTINGS, BEGAN).status == 200


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("rate", [1.0, 10.0, 600.0])
def test_each_can_be_had_at_another_rate(name: str, rate: float) -> None:
    game = Game(PRESETS[name](rate=rate).faster(3.0), 1)

    hours = game.live(FIRST, FIRST + 10**9, BEGAN + 40_000.0) - game.live(FIRST, FIRST + 10**9, BEGAN + 36_000.0)
    assert hours == pytest.approx(3600.0 * rate * 3, rel=0.3)


def test_a_day_has_more_by_day_than_by_night_and_as_much_as_it_should() -> None:
    game = Game(steady(), 1)

    births = [game.head(BEGAN + 3600.0 * (hour + 1)) - game.head(BEGAN + 3600.0 * hour) for hour in range(24)]

    assert sum(births) == pytest.approx(24 * 3600 * 60, rel=0.01)
    assert max(births) > 1.15 * 3600 * 60
    assert min(births) < 0.85 * 3600 * 60


def test_a_gap_is_jumped_at_once() -> None:
    game = Game(gap(300_000), 1)

    before, after = game.head(BEGAN + SOON - 0.1), game.head(BEGAN + SOON + 0.1)

    assert 300_000 <= after - before < 300_020
    assert game.existing(before + 1, after) < 20


def test_a_pause_has_no_births_and_ends() -> None:
    game = Game(pause(1200.0), 1)

    heads = [game.head(BEGAN + SOON + since) for since in (-1.0, 0.0, 1199.0, 1201.0)]

    assert heads[0] + 60 == heads[1] == heads[2] == heads[3] - 60


def test_bursts_are_5_to_40_minutes_apart_and_leave_nothing_out() -> None:
    game = Game(bursts(), 1)
    live = [game.live(FIRST, FIRST + 10**8, BEGAN + second) for second in range(0, 20_000, 50)]

    steps = [at for at in range(1, len(live)) if live[at] > live[at - 1]]
    apart = [50 * (later - earlier) for earlier, later in pairwise(steps)]

    assert len(apart) > 8
    assert all(250 <= seconds <= 2450 for seconds in apart)
    assert live[-1] > game.head(BEGAN + 20_000.0 - 2500.0) * 0.998 - FIRST


def test_lost_blocks_have_the_sizes_of_real_ones() -> None:
    game = Game(lost(), 1)

    assert [hole.size for hole in game.rules.schedule.holes] == list(LOST) == [1140, 9996, 15_680]
    for hole in game.rules.schedule.holes:
        assert game.existing(hole.first, hole.end) == 0
        assert game.existing(hole.end, hole.end + 1000) >= 998


def test_slow_hours_and_backlogs_come_with_a_quota_that_allows_to_catch_up() -> None:
    assert (slow().weather.quota, backlog().weather.quota, steady().weather.quota) == (150.0, 150.0, inf)
    assert Game(backlog(7200.0), 1).head(BEGAN) - FIRST == pytest.approx(7200 * 60, abs=2)


def test_the_demo_has_a_little_of_everything_within_two_minutes() -> None:
    rules = demo()
    game = Game(rules, 1)

    assert game.head(BEGAN + 40.5) == game.head(BEGAN + 59.5) < game.head(BEGAN + 60.5) - 1140
    assert [hole.size for hole in rules.schedule.holes] == [9996, 1140]
    hidden = [number for number in game.ids(FIRST, FIRST + 40_000) if game.hidden(number, BEGAN + 60.0)]
    assert len(hidden) > 50
    assert not any(game.hidden(number, BEGAN + 115.0) for number in hidden)
    assert rules.weather.maintenance[0].end < 120.0
