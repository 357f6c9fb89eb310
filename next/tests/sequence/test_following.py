"""Whole runs in virtual time: each record once, at the head, through outages, over gaps."""

from pathlib import Path

import pytest
from sequence.plays import play
from sequence_ids import IdWorld

from sanderling.files import Exit


def test_each_record_once_and_each_hole_decided(tmp_path: Path) -> None:
    played = play(tmp_path, 900, lambda clock: IdWorld(clock, back=600, holes=0.05), until=1_500)

    assert played.exit is Exit.DONE
    assert played.counts == dict.fromkeys((n for n in range(1000, 1501) if played.world.seen(n) < 1e9), 1)
    assert sum(played.run.missed_counts.values()) == 501 - len(played.counts)


def test_an_id_that_is_refused_for_ever_holds_up_no_other(tmp_path: Path) -> None:
    played = play(tmp_path, 900, lambda clock: IdWorld(clock, back=400, rates=((0, 0),), refused=0.01))

    refused = {n for n in range(1000, 1400) if played.world.chance(n, "refused") < 0.01}
    assert refused
    assert set(played.counts) == set(range(1000, 1400)) - refused


def test_without_a_pace_nothing_spins(tmp_path: Path) -> None:
    played = play(tmp_path, 120, lambda clock: IdWorld(clock, back=3000), until=3_900, policy="none")

    assert len(played.counts) == 2901
    assert played.run.workers == 250


def test_at_a_slow_head_few_requests_are_in_vain(tmp_path: Path) -> None:
    played = play(tmp_path, 3600, lambda clock: IdWorld(clock, back=20, rates=((0, 0.25),), stamps=False))

    lags = played.lags(after=60)
    assert played.world.said["none"] <= played.world.said["ok"] / 3
    assert lags[int(len(lags) * 0.95)] <= 20
    assert set(played.counts) >= played.world.due(3600 - 30)


@pytest.mark.parametrize("kind", ["503", "refused", "200", "hang"])
def test_an_outage_costs_little_and_loses_nothing(tmp_path: Path, kind: str) -> None:
    played = play(tmp_path, 1000, lambda clock: IdWorld(clock, rates=((0, 3),), troubles=((100, 700, kind),)))

    assert sum(said == kind for _, _, said in played.world.asked) <= 60
    assert set(played.counts) >= played.world.due(980)
    assert max(at for number, at in played.world.stored_at.items() if played.world.seen(number) < 700) <= 850


def test_gaps_that_repeat_are_learned(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        3600,
        lambda clock: IdWorld(clock, back=2_000, block=(400, 200_000), latency=3.0, rates=((0, 0.1),), stamps=False),
    )

    assert len(played.counts) >= 2_000
    assert played.run.walk.passed >= 4


def test_no_run_between_two_gaps_is_passed_over(tmp_path: Path) -> None:
    played = play(tmp_path, 400, lambda clock: IdWorld(clock, back=1500, block=(150, 3500), rates=((0, 1),)), rps=100)

    assert set(played.counts) >= played.world.due(350)
    assert set(played.run.state.gaps) == {3500}


def test_with_a_head_address_nothing_is_guessed(tmp_path: Path) -> None:
    played = play(
        tmp_path, 4500, lambda clock: IdWorld(clock, back=2000, rates=((0, 4), (600, 0), (4200, 4)), head=True, seed=5)
    )

    assert sum(600 < at < 4200 for at, _, _ in played.world.asked) <= 400
    first = played.world.number(2000 + 2400)
    assert played.world.stored_at[first] - played.world.seen(first) <= 10
    assert played.world.said["none"] <= played.world.said["ok"] / 10
    assert set(played.counts) >= played.world.due(4450)


def test_a_head_that_stops_costs_little_and_is_met_again(tmp_path: Path) -> None:
    played = play(
        tmp_path, 5400, lambda clock: IdWorld(clock, back=2000, rates=((0, 4), (600, 0), (4200, 4)), stamps=False)
    )

    assert sum(600 < at < 4200 for at, _, _ in played.world.asked) <= 1500
    first = played.world.number(2000 + 2400)
    assert min(played.world.stored_at[each] - played.world.seen(each) for each in range(first, first + 3)) <= 10
    assert set(played.counts) >= played.world.due(5350)


def test_a_head_ten_times_as_fast(tmp_path: Path) -> None:
    played = play(
        tmp_path, 1500, lambda clock: IdWorld(clock, back=20, rates=((0, 2), (600, 20), (1200, 2)), stamps=False)
    )

    assert max(played.lags(after=590)) <= 60
