"""Rates by size and by failures, and how long a host is waited for."""

import pytest

from sanderling.outcome import Code, Outcome
from sanderling.repos.hosts import RepoHost, RepoRequest


def host(size: int = 0, failures: int = 0) -> RepoHost:
    made = RepoHost("host.example", url="https://host.example", size=size)
    for number in range(failures):
        made.fail(str(number), 0.0)
    return made


@pytest.mark.parametrize(("size", "rps"), [(1, 2), (99, 2), (100, 5), (999, 5), (1000, 10), (50_000, 10)])
def test_the_rate_goes_by_size(size: int, rps: float) -> None:
    assert host(size).rate(usual=5) == rps


@pytest.mark.parametrize(("failures", "rps"), [(0, 10), (4, 10), (5, 5), (9, 5), (10, 10), (60, 10)])
def test_different_repos_that_fail_in_a_row_halve_it_until_the_host_is_closed(failures: int, rps: float) -> None:
    """One that is closed is probed at the limiter's pace, and has its own rate when it is back."""
    made = host(1000, failures)
    assert made.rate(usual=5) == rps

    made.answer(1.0)
    assert made.rate(usual=5) == 10


@pytest.mark.parametrize(("usual", "rps"), [(0.2, 0.2), (0.8, 0.5)])
def test_there_is_a_floor_and_a_usual_rate_below_it_is_kept(usual: float, rps: float) -> None:
    assert host(500, failures=5).rate(usual) == rps


@pytest.mark.parametrize(
    ("said", "after", "hopeless"),
    [
        *((Outcome(Code.RATE_LIMITED), 599, 0), (Outcome(Code.RATE_LIMITED), 601, 1)),
        *((Outcome(Code.HOST_UNAVAILABLE, 503), 599, 0), (Outcome(Code.HOST_UNAVAILABLE, 503), 601, 1)),
        *((Outcome(Code.HOST_UNAVAILABLE, 500), 14, 0), (Outcome(Code.HOST_UNAVAILABLE, 500), 16, 1)),
        *((Outcome(Code.TIMEOUT), 14, 0), (Outcome(Code.TIMEOUT), 16, 1)),
    ],
)
def test_a_host_that_never_answered_is_waited_for_if_it_refuses_us(said: Outcome, after: float, hopeless: int) -> None:
    made = host()
    for now in (0.0, after):
        made.note_failure(said, now)

    assert made.is_hopeless(0.0, 600.0, 15.0, 0.0) == hopeless


def test_a_rest_that_somebody_wanted_does_not_count() -> None:
    made = host()
    made.note_failure(Outcome(Code.RATE_LIMITED), 0.0)
    made.refuse("a", 0.0)
    made.begin_anew(5000.0)
    made.note_failure(Outcome(Code.RATE_LIMITED), 5500.0)

    assert not made.is_hopeless(0.0, 600.0, 15.0, 0.0)
    assert made.refuse("a", 5500.0).since == 5500.0


def test_what_failed_comes_behind_what_did_not_and_addresses_are_kept() -> None:
    made = host()
    made.elsewhere = {"c": "http://host.example"}
    made.put("a")
    made.put_off("b", 5.0)
    made.put("c")

    assert (made.waiting, made.has_again(4.0)) == (3, False)
    assert [made.pop_new(), made.pop_last(), made.pop_new()] == ["a", "c", None]
    assert (made.pop_again(4.0), made.pop_again(5.0), made.pop_again(6.0)) == (None, "b", None)
    assert (made.ask("a"), made.ask("c")) == (
        RepoRequest("a", "https://host.example"),
        RepoRequest("c", "http://host.example"),
    )
