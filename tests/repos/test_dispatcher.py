"""Rates by size and by failures, blocks, and how far everything is settled."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.apis.atproto import Category
from sanderling.ids import Host
from sanderling.repos.dispatcher import BLOCK_AFTER, HostRepos, LowWater


def host(size: int = 0, failures: int = 0) -> HostRepos:
    made = HostRepos("https://host.example", Host("host.example"), failures=failures)
    made.feed(f"did:plc:{number}" for number in range(size))
    return made


@pytest.mark.parametrize(("size", "rps"), [(1, 2), (99, 2), (100, 5), (999, 5), (1000, 10), (50_000, 10)])
def test_the_rate_goes_by_size(size: int, rps: float) -> None:
    assert host(size).rate(usual=5) == rps


def test_the_size_counts_all_pages() -> None:
    """A page is spread over many hosts, so that a large one shows little of itself in each."""
    large = host(400)
    large.feed(str(number) for number in range(700))

    assert large.rate(usual=5) == 10


@pytest.mark.parametrize(("failures", "rps"), [(0, 10), (4, 10), (5, 5), (9, 5), (10, 10), (60, 10)])
def test_failures_halve_it_until_it_is_blocked(failures: int, rps: float) -> None:
    """One that is blocked is probed at the limiter's pace, and has its own rate when it is back."""
    assert host(1000, failures).rate(usual=5) == rps


@pytest.mark.parametrize(("usual", "rps"), [(0.2, 0.2), (0.8, 0.5)])
def test_there_is_a_floor_and_a_usual_rate_below_it_is_kept(usual: float, rps: float) -> None:
    assert host(500, failures=5).rate(usual) == rps


def test_ten_failures_in_a_row_block_it_and_a_success_restores_everything() -> None:
    made = host(1000)
    for _ in range(BLOCK_AFTER):
        assert not made.blocked
        made.failed(Category.TIMEOUT)
    assert made.blocked

    made.succeeded()
    assert (made.blocked, made.rate(usual=5), made.trouble) == (False, 10, None)


def test_a_new_pass_unblocks_it_and_remembers_that_it_failed() -> None:
    made = host(1000, failures=30)

    made.begin_pass()

    assert (made.blocked, made.rate(usual=5)) == (False, 5)


@given(st.integers(0, 10**6), st.lists(st.integers(0, 6), max_size=12))
def test_low_water_never_passes_what_is_not_settled(seed: int, sizes: list[int]) -> None:
    """Against the plain way: look at every DID in order, each time."""
    rng, water, number = Random(seed), LowWater(), 0
    pages: list[list[str]] = []
    for size in sizes:
        page = [f"{number + at:04}" for at in range(size + 1)]
        number += size + 1
        pages.append(page)
        water.begin(page[-1], page)
    waiting = [did for page in pages for did in page]
    rng.shuffle(waiting)

    settled: set[str] = set()
    cursor = ""
    for did in waiting:
        water.settle(did)
        settled.add(did)
        cursor = water.rise() or cursor
        done = [page[-1] for at, page in enumerate(pages) if all(settled.issuperset(each) for each in pages[: at + 1])]
        assert cursor == (done[-1] if done else "")
    assert len(water) == 0


def test_an_empty_page_is_settled_at_once() -> None:
    water = LowWater()
    water.begin("did:plc:z", [])

    assert water.rise() == "did:plc:z"
    assert water.rise() is None


def test_what_belongs_to_no_page_changes_nothing() -> None:
    water = LowWater()
    water.begin("b", ["a", "b"])
    water.settle("never")
    water.settle("a")
    water.settle("a")

    assert (water.rise(), len(water)) == (None, 1)


def test_who_fails_the_first_question_after_being_left_alone_is_blocked() -> None:
    made = host(1000)
    assert not made.failed(Category.TIMEOUT, asked_at=1, shut_at=2)
    assert not made.failed(Category.TIMEOUT, asked_at=1, shut_at=2), "that one was under way already"

    assert made.failed(Category.TIMEOUT, asked_at=3, shut_at=4)
    assert made.blocked


def test_an_answer_makes_up_for_having_been_left_alone() -> None:
    made = host(1000)
    made.failed(Category.TIMEOUT, asked_at=1, shut_at=2)
    made.succeeded()

    assert not made.failed(Category.TIMEOUT, asked_at=3)
