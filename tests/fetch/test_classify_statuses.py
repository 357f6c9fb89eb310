"""What a reply means by its status and its headers, and whether to retry soon."""

from email.utils import formatdate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy

from sanderling.fetch.classify import LONGEST_DETAIL, of_reply, retry_soon
from sanderling.outcome import Code, Outcome

NOON = 1_700_000_000.0


def reply(status: int, **headers: str) -> Outcome:
    return of_reply(status, {name.replace("_", "-"): value for name, value in headers.items()}, wall=NOON)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (200, Code.OK),
        (204, Code.OK),
        (206, Code.OK),
        (299, Code.OK),
        (304, Code.NOT_MODIFIED),
        (300, Code.HTTP_ERROR),
        (302, Code.HTTP_ERROR),
        (400, Code.HTTP_ERROR),
        (401, Code.AUTH_FAILED),
        (403, Code.ACCESS_DENIED),
        (404, Code.CONTENT_NOT_FOUND),
        (405, Code.HTTP_ERROR),
        (408, Code.TIMEOUT),
        (410, Code.CONTENT_REMOVED),
        (413, Code.HTTP_ERROR),
        (414, Code.HTTP_ERROR),
        (425, Code.TIMEOUT),
        (429, Code.RATE_LIMITED),
        (431, Code.HTTP_ERROR),
        (451, Code.CONTENT_UNAVAILABLE),
        (500, Code.HOST_UNAVAILABLE),
        (502, Code.HOST_UNAVAILABLE),
        (503, Code.HOST_UNAVAILABLE),
        (504, Code.HOST_UNAVAILABLE),
        (529, Code.HOST_UNAVAILABLE),
        (599, Code.HOST_UNAVAILABLE),
        (101, Code.INVALID_RESPONSE),
    ],
)
def test_a_status_has_a_meaning(status: int, code: Code) -> None:
    assert reply(status) == Outcome(code, status)


@pytest.mark.parametrize("status", [0, 99, 600, 999, 1000, -1])
def test_a_status_that_is_none_is_told_in_words(status: int) -> None:
    assert reply(status) == Outcome(Code.INVALID_RESPONSE, 0, f"status {status}")


def test_the_seeds_transient_statuses_are_retried_soon_and_its_permanent_ones_not() -> None:
    assert [status for status in (408, 425, 429, 500, 502, 503, 504) if not retry_soon(reply(status))] == []
    assert [status for status in (400, 401, 403, 404, 410, 413, 451) if retry_soon(reply(status))] == []


def test_what_was_denied_may_be_asked_for_again_but_not_within_seconds() -> None:
    denied = reply(401), reply(403), Outcome(Code.ACCESS_DENIED, 200)

    assert all(outcome.worth_retrying and not outcome.final for outcome in denied)
    assert not any(retry_soon(outcome) for outcome in denied)


@given(st.sampled_from(Code))
def test_all_else_is_retried_soon_if_it_is_worth_retrying(code: Code) -> None:
    denied = code in (Code.AUTH_FAILED, Code.ACCESS_DENIED)

    assert retry_soon(Outcome(code)) == (Outcome(code).worth_retrying and not denied)


@pytest.mark.parametrize("status", [429, 503, 529])
def test_a_refusal_with_a_time_is_the_host_steering_us(status: int) -> None:
    assert reply(status, Retry_After="30") == Outcome(Code.RATE_LIMITED, status, retry_after=30.0)
    assert reply(status, Retry_After="0") == Outcome(Code.RATE_LIMITED, status, retry_after=0.0)


def test_a_retry_after_that_cannot_be_read_is_none() -> None:
    assert reply(503, Retry_After="soon") == Outcome(Code.HOST_UNAVAILABLE, 503)


@pytest.mark.parametrize("status", [200, 301, 403, 404, 500])
def test_a_retry_after_is_kept_whatever_the_status(status: int) -> None:
    assert reply(status, Retry_After="7") == Outcome(reply(status).code, status, retry_after=7.0)


def test_a_retry_after_is_measured_by_the_clock_of_the_host() -> None:
    behind = NOON - 3600

    found = reply(429, date=formatdate(behind, usegmt=True), retry_after=formatdate(behind + 20, usegmt=True))

    assert found.retry_after == 20.0


HEADERS = [("X", "1"), ("retry-after", "5"), ("RETRY-AFTER", "9"), ("Retry-After", "soon")]


@pytest.mark.parametrize("headers", [HEADERS, tuple(HEADERS), iter(HEADERS), CIMultiDictProxy(CIMultiDict(HEADERS))])
def test_headers_come_in_any_shape_and_the_longest_wait_counts(headers: list[tuple[str, str]]) -> None:
    assert of_reply(429, headers, wall=NOON).retry_after == 9.0


@given(st.integers(), st.lists(st.tuples(st.sampled_from(["Retry-After", "date", "X"]), st.text())))
@example(10**300, [])
def test_any_reply_has_an_outcome(status: int, headers: list[tuple[str, str]]) -> None:
    outcome = of_reply(status, headers, wall=NOON)

    assert outcome.ok == (200 <= status <= 299 or status == 304)
    assert len(outcome.detail) <= LONGEST_DETAIL
