"""What slow answers, outages, an absent store and one bad target cost a cadence. `bench/poisoned.py` has the whole."""

from pathlib import Path

import pytest
from bad_upstream import AFTER, BAD_TARGETS, BEGIN, OUTAGES, beside_bad_target, climb, through_outage, without_store
from live_polling import LIVE_FROM

INTERVAL = 0.2


def test_latency_that_climbs_leaves_the_cadence_where_an_answer_takes_less(tmp_path: Path) -> None:
    run, longest = climb(tmp_path, 2.0, 10.0, live=2, interval=INTERVAL)

    assert longest <= 1.0
    assert run.back_after(BEGIN + 20.0, BEGIN + 30.0) <= INTERVAL + AFTER


@pytest.mark.parametrize("kind", OUTAGES)
def test_after_an_outage_the_cadence_is_back(tmp_path: Path, kind: str) -> None:
    run = through_outage(tmp_path, kind, 60.0, live=2, interval=INTERVAL)

    assert run.back_after(BEGIN + 60.0, run.until) <= INTERVAL + AFTER
    assert run.asked(BEGIN + 20.0, BEGIN + 60.0) <= 1.3 * 40.0


@pytest.mark.parametrize("takes", [0.0, 30.0])
def test_polls_go_on_without_a_store_and_it_has_the_newest_afterwards(tmp_path: Path, takes: float) -> None:
    run = without_store(tmp_path, 25.0, takes, live=2, interval=INTERVAL)

    assert run.worst_gap(BEGIN, run.until) <= 2.0
    assert not run.stale()


@pytest.mark.parametrize("kind", BAD_TARGETS)
def test_a_target_that_always_fails_makes_no_other_late(tmp_path: Path, kind: str) -> None:
    run = beside_bad_target(tmp_path, kind, live=20, interval=1.0, seconds=18.0)

    assert run.worst_gap(LIVE_FROM, run.until, without="live0") <= 2.0
