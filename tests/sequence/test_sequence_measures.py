"""What a crawl counts: by status and attempt, in bounded memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sequence_parts import answer

from sanderling.apis.numbered import NumberedAnswer, Status
from sanderling.outcome import Code, Outcome
from sanderling.sequence.measures import MOST_ATTEMPTS, MOST_NAMES, SequenceMeasures


def named(name: str, status: Status = Status.ERROR) -> NumberedAnswer:
    return NumberedAnswer(status, Outcome(Code.HTTP_ERROR), error=name)


def test_answers_are_counted_by_status_and_attempt() -> None:
    measures = SequenceMeasures()
    for attempt in (1, 2, 2):
        measures.answer(Status.NOT_FOUND, attempt, None)
    measures.answer(Status.SUCCESS, 3, 12.0)

    assert measures.answers == {("not_found", "1"): 1, ("not_found", "2"): 2, ("success", "3"): 1}
    assert measures.by_status() == {"not_found": 3, "success": 1}


@given(attempts=st.lists(st.integers(1, 10**6), max_size=50))
def test_attempts_beyond_the_usual_are_one_label(attempts: list[int]) -> None:
    measures = SequenceMeasures()
    for attempt in attempts:
        measures.answer(Status.ERROR, attempt, None)

    assert {attempt for _, attempt in measures.answers} <= {*map(str, range(1, MOST_ATTEMPTS + 1)), "more"}
    assert measures.by_status() == ({"error": len(attempts)} if attempts else {})


@pytest.mark.parametrize(
    ("status", "lag", "counted"),
    [
        (Status.SUCCESS, 12.0, True),
        (Status.SKIPPED, 0.0, True),
        (Status.SUCCESS, None, False),
        (Status.SUCCESS, -3.0, False),
        (Status.NOT_FOUND, 12.0, False),
        (Status.HIDDEN, 0.0, False),
        (Status.DISABLED, 0.0, False),
    ],
)
def test_only_records_have_a_lag_and_none_from_the_future(status: Status, lag: float | None, counted: bool) -> None:  # noqa: FBT001 - a column of the table
    measures = SequenceMeasures()
    measures.answer(status, 1, lag)

    assert bool(measures.lags) == counted
    assert measures.by_status() == {status.value: 1}


def test_requests_are_timed_by_the_apis_own_name_and_else_by_status() -> None:
    measures = SequenceMeasures()
    measures.request(named("DestinyThrottled"), 0.2)
    measures.request(named("DestinyThrottled"), 0.4)
    measures.request(named("", Status.SUCCESS), 0.1)

    assert {name: sum(count for _, count in seconds.buckets) for name, seconds in measures.requests.items()} == {
        "DestinyThrottled": 2,
        "success": 1,
    }


def test_a_host_cannot_fill_our_memory_with_names() -> None:
    measures = SequenceMeasures()
    for number in range(1000):
        measures.request(named(f"error {number}"), 0.1)
    measures.request(named("error 3"), 0.1)

    assert len(measures.requests) <= MOST_NAMES + 1
    assert "other" in measures.requests
    assert sum(count for seconds in measures.requests.values() for _, count in seconds.buckets) == 1001
    assert sum(count for _, count in measures.requests["error 3"].buckets) == 2


def test_the_latency_is_the_mean_since_it_was_last_asked_for() -> None:
    measures = SequenceMeasures()
    assert measures.latency() is None
    measures.request(answer(Status.SUCCESS), 0.2)
    measures.request(answer(Status.NOT_FOUND), 0.4)

    assert measures.latency() == pytest.approx(0.3)
    assert measures.latency() is None
