"""What follows from the codes of failed items."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.events.taxonomy import ACTIONS, RULES, UNKNOWN, ErrorAction, ErrorRule, classify
from sanderling.outcome import Category, Code, Retry

# The table of the events: category, its codes, whether to retry, what to do.
TABLE = [
    (Category.RATE_LIMITING, "RATE_LIMITED AUTH_FAILED ACCESS_DENIED", Retry.YES, "retry"),
    (Category.CONTENT, "CONTENT_REMOVED CONTENT_NOT_FOUND CONTENT_UNAVAILABLE", Retry.NO, "skip"),
    (Category.NETWORK, "NETWORK_ERROR TIMEOUT CONNECTION_REFUSED DNS_ERROR", Retry.YES, "retry"),
    (Category.PARSING, "PARSE_ERROR INVALID_URL INVALID_RESPONSE", Retry.NO, "alert"),
    (Category.MEDIA, "MEDIA_DOWNLOAD_FAILED MEDIA_TOO_LARGE MEDIA_FORMAT_ERROR", Retry.NO, "metadata_only"),
    (Category.STORAGE, "STORAGE_ERROR UPLOAD_FAILED DATABASE_ERROR", Retry.YES, "retry_then_alert"),
    (Category.GENERIC, "UNKNOWN_ERROR INTERNAL_ERROR", Retry.MAYBE, "investigate"),
]
CASES = [(code, category, retry, action) for category, codes, retry, action in TABLE for code in codes.split()]


def test_there_are_21_codes() -> None:
    assert len({code for code, *_ in CASES}) == 21


@pytest.mark.parametrize(("code", "category", "retry", "action"), CASES)
def test_each_code_has_its_rule(code: str, category: Category, retry: Retry, action: str) -> None:
    assert classify(code) == ErrorRule(category, retry, ErrorAction(action))


@pytest.mark.parametrize(
    ("code", "like"),
    [
        ("BLOCKED", "ACCESS_DENIED"),
        ("INVALID_KEYWORD", "INVALID_URL"),
        ("SEARCH_FAILED", "UNKNOWN_ERROR"),
        ("CRAWL_PARTIAL", "UNKNOWN_ERROR"),
        (" rate-limited ", "RATE_LIMITED"),
        ("Content Removed", "CONTENT_REMOVED"),
        ("blocked", "BLOCKED"),
    ],
)
def test_a_code_by_another_name_means_the_same(code: str, like: str) -> None:
    assert classify(code) == classify(like)


def test_a_permanent_limit_is_not_tried_again() -> None:
    assert classify("RATE_LIMITED_PERMANENT") == ErrorRule(Category.RATE_LIMITING, Retry.NO, ErrorAction.ALERT)


@pytest.mark.parametrize(
    "code", ["", "SOMETHING_NEW", "NULL", "\0", "OK", "SKIPPED", "DEFERRED", "CANCELLED", "REFUSED"]
)
def test_a_code_that_explains_no_failure_is_generic(code: str) -> None:
    assert classify(code) == UNKNOWN == ErrorRule(Category.GENERIC, Retry.MAYBE, ErrorAction.INVESTIGATE)


@pytest.mark.parametrize("code", [code for code in Code if code.category])
def test_category_and_retry_are_those_of_the_outcome(code: Code) -> None:
    rule = classify(code)

    assert (rule.category, rule.retry) == (code.category, code.retry)
    assert RULES[code.value].action is ACTIONS[rule.category]


@given(st.text(max_size=80))
def test_any_text_has_a_rule(code: str) -> None:
    assert classify(code).action in ErrorAction
