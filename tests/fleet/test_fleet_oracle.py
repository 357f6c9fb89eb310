"""The oracle by itself: against slow twins that say the same in fewer words, and on what must never turn it red."""

from collections import Counter
from itertools import combinations, pairwise

import pytest
from fleet_hosts import Entry
from fleet_oracle import (
    CLOSE,
    asked_again,
    forbidden,
    longest_silence,
    taken_over,
    too_early,
    too_fast,
    two_senders,
    uses,
    wrong_rows,
)
from hypothesis import given
from hypothesis import strategies as st

HOSTS = ("one", "two")
RATE = 2.0


def entry(asked: float, sender: str = "a", host: str = "one", *, took: float = 0.0, retry_after: int = 0) -> Entry:
    status = 429 if retry_after else 200
    return Entry(asked, asked + took, sender, host, f"/{asked}", status, retry_after)


@st.composite
def logs(draw: st.DrawFn) -> list[Entry]:
    """Requests at whole tenths of a second, each at a moment of its own, so that nothing depends on rounding."""
    moments = draw(st.lists(st.integers(0, 300), unique=True, max_size=25))
    return [
        entry(
            moment / 10,
            draw(st.sampled_from("abc")),
            draw(st.sampled_from(HOSTS)),
            took=draw(st.integers(1, 30)) / 10,
            retry_after=draw(st.sampled_from((0, 0, 0, 1, 3))),
        )
        for moment in moments
    ]


@st.composite
def turns(draw: st.DrawFn) -> list[Entry]:
    """A host that senders use one after the other: each ends before the next begins, and comes back after a silence."""
    now, found = 0.0, list[Entry]()
    for number in range(draw(st.integers(1, 5))):
        for _ in range(draw(st.integers(1, 5))):
            took = draw(st.floats(0.01, 2))
            found.append(entry(now, "ab"[number % 2], took=took))
            now += took + draw(st.floats(0.01, 3.9))
        now += 4.0
    return found


def spans(log: list[Entry], silence: float) -> list[tuple[str, float, float]]:
    """Each request of a sender, and each with the one before that ended last, if it was not silent between."""
    found = [(each.sender, each.asked, each.done) for each in log]
    for sender in {each.sender for each in log}:
        mine = sorted((each for each in log if each.sender == sender), key=lambda each: each.asked)
        for number, each in enumerate(mine[1:], 1):
            before = max(mine[:number], key=lambda other: other.done)
            if each.asked - before.done < silence:
                found.append((sender, before.asked, each.done))
    return found


@given(logs(), st.sampled_from((0.05, 2.0, 4.0)))
def test_two_senders_are_seen_exactly_where_something_of_two_overlaps(log: list[Entry], silence: float) -> None:
    overlap = any(
        one[0] != other[0] and max(one[1], other[1]) < min(one[2], other[2])
        for host in HOSTS
        for one, other in combinations(spans([each for each in log if each.host == host], silence), 2)
    )

    assert bool(two_senders(log, silence)) == overlap


@given(turns())
def test_senders_that_take_turns_are_never_two(log: list[Entry]) -> None:
    assert two_senders(log, 4.0) == []


def test_an_owner_that_asks_once_more_after_the_next_has_begun_is_a_second_sender() -> None:
    log = [entry(0.0, "a", took=0.1), entry(3.0, "b", took=0.1), entry(3.5, "a", took=0.1)]

    assert two_senders(log, 4.0) == ["one: a used it from 0.00 to 3.60, b from 3.00"]
    assert two_senders(log[:2], 4.0) == []


@given(logs())
def test_a_use_of_a_host_has_all_requests_of_its_sender_and_none_twice(log: list[Entry]) -> None:
    found = uses(log, 4.0)

    for each in log:
        covering = [use for use in found if use.sender == each.sender and use.begun <= each.asked <= use.ended]
        assert len(covering) == 1
    for sender in "abc":
        mine = [use for use in found if use.sender == sender]
        assert all(after.begun - before.ended >= 4.0 for before, after in pairwise(mine))


@given(logs(), st.sampled_from((0.0, 0.5, 1.0)))
def test_too_fast_is_any_window_with_more_than_its_length_allows(log: list[Entry], late: float) -> None:
    def fast(times: list[float]) -> bool:
        windows = combinations(enumerate(times), 2)
        return any(last - first > RATE * (end - begin + late) + 1e-6 for (first, begin), (last, end) in windows)

    expected = [host for host in HOSTS if fast(sorted(each.asked for each in log if each.host == host))]

    found = too_fast(log, dict.fromkeys(HOSTS, RATE), late)

    assert sorted(each.partition(":")[0] for each in found) == sorted(expected)


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 0.5)), min_size=1, max_size=40))
def test_a_sender_that_keeps_the_pace_on_a_busy_machine_is_never_too_fast(steps: list[tuple[float, float]]) -> None:
    leave, log = 0.0, list[Entry]()
    for pause, late in steps:
        log.append(entry(leave + late))
        leave += 1 / RATE + pause

    assert too_fast(log, {"one": RATE}, late=0.5) == []


def test_two_senders_that_each_keep_the_pace_are_too_fast_together() -> None:
    log = [entry(number / RATE + shift, sender) for number in range(10) for sender, shift in (("a", 0.0), ("b", 0.1))]

    (said,) = too_fast(log, {"one": RATE}, late=0.5)

    assert said.endswith("by a, b; allowed are 2 a second")


@given(logs(), st.sampled_from((0.0, 0.5)))
def test_too_early_is_whatever_comes_before_the_end_of_a_retry_after(log: list[Entry], late: float) -> None:
    expected = sum(
        refused.host == each.host
        and refused.done < each.asked < refused.done + refused.retry_after - CLOSE
        and (refused.sender != each.sender or each.asked > refused.done + late)
        for refused in log
        for each in log
        if refused.retry_after
    )

    assert len(too_early(log, late)) == expected


@pytest.mark.parametrize(
    ("asked", "sender", "early"),
    [(0.3, "a", 0), (0.3, "b", 1), (1.0, "a", 1), (2.9, "b", 1), (3.0, "a", 0), (3.2, "b", 0)],
)
def test_a_retry_after_binds_whoever_comes_next(asked: float, sender: str, early: int) -> None:
    log = [entry(0.0, "a", retry_after=3), entry(asked, sender)]

    assert len(too_early(log, late=0.5)) == early


def test_a_page_is_asked_again_if_it_was_answered_or_lost_before() -> None:
    asked = [("/a", 200), ("/a", 200), ("/b", 429), ("/b", 200), ("/c", 0), ("/c", 200), ("/robots.txt", 200)]
    log = [Entry(number, number, "a", "one", path, status) for number, (path, status) in enumerate(asked * 2)]

    assert asked_again(log[:7]) == {"one/a": 1, "one/c": 1}


def test_what_robots_txt_forbids_is_seen() -> None:
    log = [Entry(0, 0, "a", "one", "/closed", 200), entry(1.0)]

    assert forbidden(log) == ["one: a asked for /closed"]


def test_a_host_is_taken_over_when_another_sender_asks() -> None:
    log = [entry(0.0, "a", took=1.0), entry(2.0, "a"), entry(5.5, "b"), entry(5.0, "c", "two")]

    assert longest_silence(log, 1.0, 7.0) == 3.0
    assert taken_over(log, "a", 2.5) == {"one": 3.0}
    assert taken_over(log, "c", 2.5) == taken_over(log, "a", 6.0) == {}


@given(st.lists(st.sampled_from("abcdef")), st.sets(st.sampled_from("abcd")))
def test_rows_are_right_when_each_url_has_one(rows: list[str], expected: set[str]) -> None:
    assert (wrong_rows(expected, Counter(rows)) == []) == (sorted(rows) == sorted(expected))
