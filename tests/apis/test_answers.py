"""What replies mean, declared."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.apis.answers import Answers
from sanderling.apis.conditions import JsonReply
from sanderling.engine.blame import Standing, standing_of
from sanderling.fetch.classify import of_reply
from sanderling.outcome import Code, Outcome
from sanderling.task import Headers, Reply

WALL = 1_800_000_000.0
ANSWERS = Answers(
    refused='error.code = 17 or error.message contains "rate limit"',
    missing="data = null and not error",
    error="error",
    seconds="error.wait",
    message="error.message",
)


def read(answers: Answers, said: object, status: int = 200, headers: Headers = ()) -> Outcome:
    body = said if isinstance(said, bytes) else json.dumps(said).encode()
    reply = Reply(status, headers, body, "https://a.example/", 0.1)
    return answers.read(JsonReply(reply), of_reply(status, headers, wall=WALL), WALL)


@pytest.mark.parametrize(
    ("said", "code", "standing"),
    [
        ({"data": 1}, Code.OK, Standing.ANSWERED),
        ({"error": {"message": "rate limit"}}, Code.RATE_LIMITED, Standing.REFUSED),
        ({"error": {"code": 17}, "data": 1}, Code.RATE_LIMITED, Standing.REFUSED),
        ({"error": {"code": 18}, "data": 1}, Code.HOST_UNAVAILABLE, Standing.FAILED),
        ({"data": None}, Code.CONTENT_NOT_FOUND, Standing.ANSWERED),
        ({}, Code.CONTENT_NOT_FOUND, Standing.ANSWERED),
        (b"<html>busy</html>", Code.HOST_UNAVAILABLE, Standing.FAILED),
        (b"", Code.HOST_UNAVAILABLE, Standing.FAILED),
        (b'{"data": NaN}', Code.HOST_UNAVAILABLE, Standing.FAILED),
    ],
)
def test_a_200_means_what_is_declared(said: object, code: Code, standing: Standing) -> None:
    outcome = read(ANSWERS, said)

    assert (outcome.code, outcome.status, standing_of(outcome)) == (code, 200, standing)


def test_what_is_not_declared_means_what_its_status_says() -> None:
    for status in (200, 404, 429, 500, 999):
        general = of_reply(status, (), wall=WALL)
        assert read(Answers(), b"x", status) == general
        assert read(Answers(missing="gone"), b"<html>", status) == general
        assert read(Answers(refused="status = 420"), b"<html>", status) == general
    assert read(Answers(refused="status = 420 or header.x-slow exists"), b"", 420).code is Code.RATE_LIMITED
    assert read(Answers(missing="status = 500"), b"", 500).code is Code.CONTENT_NOT_FOUND
    assert read(Answers(error="status = 404"), b"", 404).code is Code.HOST_UNAVAILABLE


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (30, 30.0),
        (1.5, 1.5),
        ("12", 12.0),
        (WALL + 60, 60.0),
        ((WALL + 60) * 1000, 60.0),
        ("2027-01-15T08:01:00Z", 60.0),
        (WALL - 60, 0.0),
        (10**400, 7.0),
        (-5, 7.0),
        ("soon", 7.0),
        (None, 7.0),
        (True, 7.0),
        ({}, 7.0),
    ],
)
def test_a_refusal_lasts_as_long_as_it_says(value: object, seconds: float) -> None:
    outcome = read(ANSWERS, {"error": {"code": 17, "wait": value}}, headers=(("Retry-After", "7"),))

    assert outcome.retry_after == pytest.approx(seconds)


def test_how_long_may_be_in_a_header() -> None:
    answers = Answers(refused="status = 200", seconds="header.x-reset")

    assert read(answers, {}, headers=(("X-Reset", "90"),)).retry_after == 90.0


def test_the_reason_is_told_without_secrets_and_short() -> None:
    said = read(ANSWERS, {"error": {"message": "bad api_key=hunter2 " + "x" * 900}})

    assert said.detail.startswith("bad api_key=*** x")
    assert len(said.detail) == 200
    assert read(ANSWERS, {"error": {"code": 18}}).detail == "error"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"error": "a ="}, "error: 'a =', at character 4: found the end, expected a number"),
        ({"missing": "("}, "missing: "),
        ({"refused": "x", "seconds": "a b"}, "seconds: 'a b', at character 2"),
        ({"message": "status.x"}, "message: "),
        ({"seconds": "a"}, "seconds is there without refused, expected both"),
    ],
)
def test_what_is_no_condition_is_refused(settings: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - compared below
        Answers(**settings)

    assert why in str(refused.value)


@given(st.binary() | st.text().map(lambda text: json.dumps({"error": {"wait": text}}).encode()), st.integers(100, 999))
def test_no_reply_makes_it_raise(body: bytes, status: int) -> None:
    assert isinstance(read(ANSWERS, body, status), Outcome)
