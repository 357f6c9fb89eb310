"""What hosts that refuse, are dead or fail half cost the others. `bench/poisoned.py` has the same at full size."""

from pathlib import Path

import pytest
from bad_fleet import DEAD, REFUSED, BadRun, crawl_case

from sanderling.apis.atproto import PERMANENT, AtprotoCategory

SEED = 3
ABOUT = 12  # repos of a good host: a second that some wait for their first slot is little beside them
WHOLE = 1800.0  # seconds


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> float:
    """When the last repo of the good hosts has come where there are no others."""
    return crawl_case(tmp_path_factory.mktemp("alone"), SEED, "none", ABOUT).last_good


def held(run: BadRun, alone: float, spare: float = 0.0) -> None:
    """What holds whatever the bad hosts are like; `spare` seconds more count in a crawl that takes three."""
    assert run.last_good <= 1.1 * alone + spare
    assert run.seconds <= WHOLE
    assert not run.missing
    assert not run.twice


def test_a_host_that_refuses_for_ever_costs_only_its_own_repos(tmp_path: Path, alone: float) -> None:
    run = crawl_case(tmp_path, SEED, "429, Retry-After: 60", ABOUT)

    held(run, alone)
    assert run.listed[AtprotoCategory.RATE_LIMITED] == REFUSED
    assert run.due == REFUSED, "and the next run asks for them"
    assert run.impatient == 0


def test_dead_hosts_hold_up_nobody_and_nothing_of_theirs_is_lost(tmp_path: Path, alone: float) -> None:
    run = crawl_case(tmp_path, SEED, "dead", ABOUT)

    held(run, alone, spare=1.0)  # a host without a slot is looked at again after a second
    assert set(run.listed) - set(PERMANENT) <= set(DEAD), "nobody has the reason of another"
    assert not crawl_case(tmp_path, SEED, "dead", ABOUT, well=True).missing, "the next run has all of it"


def test_hosts_that_fail_half_of_their_requests_are_archived(tmp_path: Path, alone: float) -> None:
    run = crawl_case(tmp_path, SEED, "half", ABOUT)

    held(run, alone)
    assert not set(run.listed) - set(PERMANENT)
