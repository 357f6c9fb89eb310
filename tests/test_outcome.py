import copy
import math
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.outcome import Category, Code, Outcome, Retry, code_of

DOCS = Path(__file__).parents[1] / "docs" / "outcomes.md"

# The table that crawled events come with, row by row: category, codes, retry.
EVENTS = (
    ("rate_limiting", "RATE_LIMITED AUTH_FAILED ACCESS_DENIED", "yes"),
    ("content", "CONTENT_REMOVED CONTENT_NOT_FOUND CONTENT_UNAVAILABLE", "no"),
    ("network", "NETWORK_ERROR TIMEOUT CONNECTION_REFUSED DNS_ERROR", "yes"),
    ("parsing", "PARSE_ERROR INVALID_URL INVALID_RESPONSE", "no"),
    ("media", "MEDIA_DOWNLOAD_FAILED MEDIA_TOO_LARGE MEDIA_FORMAT_ERROR", "no"),
    ("storage", "STORAGE_ERROR UPLOAD_FAILED DATABASE_ERROR", "yes"),
    ("generic", "UNKNOWN_ERROR INTERNAL_ERROR", "maybe"),
)
EVENT_CODES = [(name, category, retry) for category, names, retry in EVENTS for name in names.split()]

# The result lists of the other seeds: their name, our code, and the rules that seed needs of it.
#   ok: the record was got; retry: worth asking again; final: crossed off; host: counts against the host.
SEQUENCE = (
    ("Success", Code.OK, "ok final"),
    ("NonRaid", Code.SKIPPED, "ok final"),
    # Following ids asks three times for these two, in a lane of its own; in general the answer stands.
    ("NotFound", Code.CONTENT_NOT_FOUND, "final"),
    ("BadFormat", Code.INVALID_RESPONSE, "final"),
    # Not a failure: its owners have switched it off, and nobody is asked until it is back.
    ("SystemDisabled", Code.DEFERRED, ""),
    ("InsufficientPrivileges", Code.ACCESS_DENIED, "retry"),
    ("InternalError", Code.INTERNAL_ERROR, "retry"),
    ("DecodingError", Code.PARSE_ERROR, "final"),
    ("ExternalError", Code.NETWORK_ERROR, "retry host"),
    ("RateLimited", Code.RATE_LIMITED, "retry"),
)
REPOS = (
    ("success", Code.OK, "ok final"),
    ("not_found", Code.CONTENT_NOT_FOUND, "final"),
    ("deactivated", Code.CONTENT_UNAVAILABLE, "final"),
    ("takendown", Code.CONTENT_REMOVED, "final"),
    ("parse_error", Code.PARSE_ERROR, "final"),
    ("rate_limited", Code.RATE_LIMITED, "retry"),
    ("http_error", Code.HTTP_ERROR, ""),
    ("dns_error", Code.DNS_ERROR, "retry host"),
    ("unavailable", Code.HOST_UNAVAILABLE, "retry host"),
    ("connection_error", Code.NETWORK_ERROR, "retry host"),
    ("timeout", Code.TIMEOUT, "retry host"),
    # The original blames the host for this one too; then a bug of ours would block every host.
    ("unknown", Code.UNKNOWN_ERROR, "retry"),
    ("shutting down", Code.CANCELLED, ""),
)


def rules(outcome: Outcome) -> str:
    words = {"ok": outcome.ok, "retry": outcome.worth_retrying, "final": outcome.final, "host": outcome.blames_host}
    return " ".join(word for word, holds in words.items() if holds)


def test_the_events_have_21_codes() -> None:
    assert len(EVENT_CODES) == 21


@pytest.mark.parametrize(("name", "category", "retry"), EVENT_CODES)
def test_each_code_of_the_events_has_its_category_and_retry_rule(name: str, category: str, retry: str) -> None:
    code = Code[name]

    assert (code.category, code.retry) == (Category(category), Retry(retry))


def test_what_events_call_permanent_is_final() -> None:
    permanent = {Code[name] for name, _, retry in EVENT_CODES if retry == "no"}

    assert {code for code in Code if code.final and code.category} == permanent | {Code.TOO_LARGE, Code.BAD_ENCODING}


@pytest.mark.parametrize(("name", "code", "expected"), SEQUENCE + REPOS)
def test_the_results_of_sequence_and_repos_find_their_rules(name: str, code: Code, expected: str) -> None:
    assert rules(Outcome(code)) == expected, name


def test_the_results_of_sequence_and_repos_are_whole_and_kept_apart() -> None:
    for results, size in ((SEQUENCE, 10), (REPOS, 13)):
        codes = [code for _, code, _ in results]

        assert len(set(codes)) == len(codes) == size


@pytest.mark.parametrize("code", Code)
def test_a_code_is_its_own_name(code: Code) -> None:
    """So it can be stored, logged and used as a label as it is."""
    assert str(code) == code.name == code.value


@pytest.mark.parametrize("code", Code)
def test_no_code_contradicts_itself(code: Code) -> None:
    assert not (code.final and code.retry is not Retry.NO)
    assert not (code.ok and (code.category or not code.final))
    assert code.category or not code.blames_host
    # What is worth another try has gone wrong somewhere.
    assert code.category or code.retry is Retry.NO


def test_ok_means_the_request_did_what_it_was_sent_for() -> None:
    assert {code for code in Code if code.ok} == {Code.OK, Code.NOT_MODIFIED, Code.SKIPPED}


def test_a_deferral_is_neither_an_attempt_nor_a_failure() -> None:
    outcome = Outcome(Code.DEFERRED, retry_after=30)

    assert rules(outcome) == ""
    assert outcome.category is None


def test_a_refusal_is_final_and_nobodys_fault() -> None:
    assert rules(Outcome(Code.REFUSED)) == "final"


def test_a_truncated_body_is_retried_and_a_wrong_one_is_not() -> None:
    assert rules(Outcome(Code.TRUNCATED, status=200)) == "retry host"
    assert rules(Outcome(Code.PARSE_ERROR, status=200)) == "final"


def test_maybe_is_worth_exactly_one_more_try() -> None:
    assert [Retry.MAYBE.allows(attempt) for attempt in (1, 2, 3)] == [True, False, False]
    assert [Retry.YES.allows(attempt) for attempt in (1, 2, 3)] == [True, True, True]
    assert [Retry.NO.allows(attempt) for attempt in (1, 2, 3)] == [False, False, False]


@pytest.mark.parametrize("code", Code)
def test_a_code_is_found_by_its_name(code: Code) -> None:
    assert code_of(code.name) is code


@given(st.text())
def test_any_other_name_is_an_unknown_error(name: str) -> None:
    assert code_of(name) is Code.__members__.get(name, Code.UNKNOWN_ERROR)
    assert code_of(f"{name}?") is Code.UNKNOWN_ERROR


@pytest.mark.parametrize("status", [-1, 1, 99, 600, 999])
def test_a_status_that_is_none_is_refused(status: int) -> None:
    with pytest.raises(ValueError, match=f"status of HTTP_ERROR is {status}"):
        Outcome(Code.HTTP_ERROR, status=status)


@pytest.mark.parametrize("status", [0, 100, 599])
def test_the_ends_of_the_range_are_statuses(status: int) -> None:
    assert Outcome(Code.HTTP_ERROR, status=status).status == status


@pytest.mark.parametrize("seconds", [-0.1, math.inf, math.nan])
def test_a_retry_after_nobody_can_wait_for_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="retry_after of RATE_LIMITED"):
        Outcome(Code.RATE_LIMITED, retry_after=seconds)


def test_a_record_from_a_host_whose_clock_is_ahead_has_a_lag_below_zero() -> None:
    assert Outcome(Code.OK, lag=-2.0).lag == -2.0


def test_an_outcome_survives_copying_and_pickling() -> None:
    outcome = Outcome(Code.RATE_LIMITED, status=429, detail="slow down", retry_after=2.5)

    assert copy.deepcopy(outcome) == outcome
    # The bytes are our own.
    assert pickle.loads(pickle.dumps(outcome)) == outcome  # noqa: S301


def documented() -> dict[str, list[str]]:
    rows = [line.strip("|").split("|") for line in DOCS.read_text().splitlines() if line.startswith("| `")]
    return {row[0].strip(" `"): [cell.strip() for cell in row[1:]] for row in rows}


def said(code: Code) -> list[str]:
    yes = {True: "yes", False: "no"}
    origin = "events" if code.name in {name for name, _, _ in EVENT_CODES} else "ours"
    return [code.category or "none", code.retry.value, yes[code.final], yes[code.blames_host], origin]


def test_the_docs_have_the_same_rows_in_the_same_order() -> None:
    assert list(documented()) == [code.name for code in Code]


@pytest.mark.parametrize("code", Code)
def test_the_docs_say_what_the_code_does(code: Code) -> None:
    *rules, when = documented()[code.name]

    assert rules == said(code)
    assert when
