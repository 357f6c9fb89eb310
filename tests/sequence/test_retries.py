"""When an id is asked again, and when it is given up: the numbers of the rules, and their bounds for any dice."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.apis.numbered import Status
from sanderling.sequence.retries import (
    DAY,
    HOUR,
    MINUTE,
    OFFLOAD,
    RAREST,
    Again,
    Reason,
    RetryRules,
    Tries,
    after,
    check_in,
    pause,
)

RULES = RetryRules()
SEEDS = st.integers(0, 2**32)


class Dice(Random):
    """Always the same throw."""

    def __init__(self, throw: float) -> None:
        super().__init__(0)
        self._throw = throw

    def random(self) -> float:
        return self._throw


LOW, HIGH = Dice(0.0), Dice(1 - 2**-53)


def ends(*answers: Status) -> Again | Reason | None:
    """What follows from the last of some answers for one id."""
    tries, follows = Tries(), None
    for answer in answers:
        follows = after(answer, tries, RULES, LOW)
    return follows


# Seconds between two attempts: 3.667 and up to 5.5 for each attempt so far.


@pytest.mark.parametrize(("index", "least", "most"), [(0, 3.667, 9.167), (1, 3.667, 14.667), (2, 3.667, 20.167)])
def test_the_pause_between_attempts_has_these_bounds(index: int, least: float, most: float) -> None:
    assert pause(RULES, index, LOW) == pytest.approx(least, abs=0.001)
    assert pause(RULES, index, HIGH) == pytest.approx(most, abs=0.001)


@given(index=st.integers(0, 20), seed=SEEDS)
def test_the_pause_never_leaves_its_bounds(index: int, seed: int) -> None:
    assert 5.5 * 2 / 3 <= pause(RULES, index, Random(seed)) < 5.5 * 2 / 3 + 5.5 * (index + 1)


@given(seed=SEEDS)
def test_a_missing_id_costs_four_requests_and_44_seconds_at_most(seed: int) -> None:
    tries, rng, waited, requests = Tries(), Random(seed), 0.0, 0
    while True:
        requests += 1
        follows = after(Status.NOT_FOUND, tries, RULES, rng)
        if not isinstance(follows, Again):
            break
        waited += follows.seconds

    assert (requests, follows) == (4, Reason.NOT_FOUND)
    assert 11 <= waited < 44.001


# What each answer leads to.


@pytest.mark.parametrize("status", [Status.SUCCESS, Status.SKIPPED])
def test_a_record_is_the_end_of_it_whatever_was_before(status: Status) -> None:
    assert ends(status) is None
    assert ends(*[Status.NOT_FOUND] * 3, *[Status.ERROR] * 2, status) is None


def test_the_fourth_404_is_the_last() -> None:
    assert isinstance(ends(*[Status.NOT_FOUND] * 3), Again)
    assert ends(*[Status.NOT_FOUND] * 4) is Reason.NOT_FOUND


@pytest.mark.parametrize(("status", "reason"), [(Status.ERROR, Reason.ERROR), (Status.BAD_FORMAT, Reason.BAD_FORMAT)])
def test_the_third_error_is_the_last(status: Status, reason: Reason) -> None:
    assert isinstance(ends(status, status), Again)
    assert ends(status, status, status) is reason


def test_errors_of_both_kinds_count_together_and_apart_from_404s() -> None:
    assert ends(Status.ERROR, Status.BAD_FORMAT, Status.ERROR) is Reason.ERROR
    assert ends(Status.ERROR, Status.ERROR, Status.BAD_FORMAT) is Reason.BAD_FORMAT
    assert isinstance(ends(*[Status.NOT_FOUND] * 3, Status.ERROR, Status.ERROR), Again)


def test_the_pause_grows_with_every_attempt_of_whatever_kind() -> None:
    tries = Tries()
    mixed = (Status.NOT_FOUND, Status.ERROR, Status.NOT_FOUND)
    follows = [after(status, tries, RULES, HIGH) for status in mixed]

    assert [each.seconds for each in follows if isinstance(each, Again)] == pytest.approx(
        [9.167, 14.667, 20.167], abs=0.001
    )


def test_malformed_answers_are_counted_for_the_next_question() -> None:
    tries = Tries()
    for status in (Status.BAD_FORMAT, Status.ERROR, Status.NOT_FOUND, Status.BAD_FORMAT):
        after(status, tries, RULES, LOW)

    assert tries.malformed == 2


def test_a_hidden_id_goes_to_the_retry_queue_at_once() -> None:
    assert ends(Status.HIDDEN) is Reason.HIDDEN


def test_an_api_that_is_off_counts_for_nothing() -> None:
    tries = Tries()
    for _ in range(100):
        assert after(Status.DISABLED, tries, RULES, LOW) == Again(45.0)

    assert tries == Tries()


def test_whoever_is_refused_a_fourth_time_goes_to_the_retry_queue() -> None:
    assert ends(*[Status.RATE_LIMITED] * 3) == Again(0.0)
    assert ends(*[Status.RATE_LIMITED] * 4) is Reason.RATE_LIMITED


def test_being_refused_uses_up_no_other_try() -> None:
    assert isinstance(ends(*[Status.RATE_LIMITED] * 3, *[Status.NOT_FOUND] * 3), Again)
    assert isinstance(ends(*[Status.RATE_LIMITED] * 3, *[Status.ERROR] * 2), Again)


@given(answers=st.lists(st.sampled_from(Status), max_size=30), seed=SEEDS)
def test_no_id_is_asked_for_ever_and_none_is_given_up_early(answers: list[Status], seed: int) -> None:
    tries, rng = Tries(), Random(seed)
    asked = [status for status in answers if status is not Status.DISABLED]
    lasting = [Status.SUCCESS, Status.SKIPPED, Status.HIDDEN]

    for number, status in enumerate(asked, 1):
        follows = after(status, tries, RULES, rng)
        seen = asked[:number]
        errors = seen.count(Status.ERROR) + seen.count(Status.BAD_FORMAT)
        spent = seen.count(Status.NOT_FOUND) > 3 or errors > 2 or seen.count(Status.RATE_LIMITED) > 3
        assert isinstance(follows, Again) == (status not in lasting and not spent)
        if not isinstance(follows, Again):
            break
        assert number <= 8


# From then on it is asked from disk.


@pytest.mark.parametrize("reason", [Reason.NOT_FOUND, Reason.ERROR, Reason.BAD_FORMAT, Reason.IMPORTED])
def test_the_first_check_is_after_15_seconds(reason: Reason) -> None:
    assert check_in(reason, 0, LOW) == check_in(reason, 0, HIGH) == 15


@pytest.mark.parametrize(
    ("tries", "least", "most"), [(1, 2, 7), (2, 8, 28), (3, 18, 63), (4, 32, 112), (5, 50, 175), (6, 72, 252)]
)
def test_the_next_six_checks_have_these_bounds(tries: int, least: float, most: float) -> None:
    """In whole seconds, of which the last is left out: 2-6, 8-26, 18-60, 32-108, 50-170, 72-246."""
    assert check_in(Reason.NOT_FOUND, tries, LOW) == least
    assert check_in(Reason.NOT_FOUND, tries, HIGH) == pytest.approx(most)
    assert most - tries == {1: 6, 2: 26, 3: 60, 4: 108, 5: 170, 6: 246}[tries]


@given(tries=st.integers(1, OFFLOAD), seed=SEEDS)
def test_a_check_within_minutes_never_leaves_its_bounds(tries: int, seed: int) -> None:
    assert 2 * tries**2 <= check_in(Reason.ERROR, tries, Random(seed)) < 7 * tries**2


def test_all_of_them_take_eleven_minutes_at_most() -> None:
    assert sum(check_in(Reason.NOT_FOUND, tries, HIGH) for tries in range(OFFLOAD + 1)) == pytest.approx(652)
    assert sum(check_in(Reason.NOT_FOUND, tries, LOW) for tries in range(OFFLOAD + 1)) == 197


def test_what_will_never_exist_is_asked_ever_more_rarely() -> None:
    later = [check_in(Reason.NOT_FOUND, OFFLOAD + 1 + times, LOW) for times in range(12)]

    assert later[:4] == [15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR]
    assert later == sorted(later)
    assert later[-1] == RAREST == 7 * DAY


def test_hidden_ids_are_asked_each_minute_at_first_and_each_hour_at_last() -> None:
    seconds = [check_in(Reason.HIDDEN, tries, HIGH) for tries in range(9)]

    assert seconds == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]


def test_what_was_refused_is_asked_again_within_minutes() -> None:
    assert [check_in(Reason.RATE_LIMITED, tries, HIGH) for tries in range(8)] == [5, 10, 20, 40, 80, 160, 300, 300]


def test_a_skipped_range_is_sampled_after_ten_minutes_and_ever_more_rarely() -> None:
    assert [check_in(Reason.GAP, tries, HIGH) for tries in (0, 1, 2, 50)] == [600, 1200, 2400, RAREST]


def test_what_is_known_to_be_alive_is_asked_at_once() -> None:
    assert check_in(Reason.ALIVE, 0, HIGH) == 0


@given(reason=st.sampled_from(Reason), tries=st.integers(0, 10**9), seed=SEEDS)
def test_however_often_it_was_in_vain_there_is_a_next_check_within_a_week(
    reason: Reason, tries: int, seed: int
) -> None:
    assert 0 <= check_in(reason, tries, Random(seed)) <= RAREST
