"""What the codes of failed items mean, and what to do about each.

Category and retry are those of `outcome.py`, under the same names. What follows is the action, one per category:

| category | action |
|---|---|
| rate_limiting, network | retry, with backoff |
| storage | retry, and alert if it persists |
| content | skip: it is gone |
| parsing | alert: a crawler or we must be repaired |
| media | metadata_only: the text is there, the picture is not |
| generic | investigate |

Crawlers also have codes for whole tasks, and names that nobody has told us. The former are read as the code that they
come closest to; the latter are generic.
"""

from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from sanderling.outcome import Category, Code, Retry, code_of


class ErrorAction(StrEnum):
    """What is to be done about a failed item."""

    RETRY = "retry"
    RETRY_THEN_ALERT = "retry_then_alert"
    SKIP = "skip"
    METADATA_ONLY = "metadata_only"
    ALERT = "alert"
    INVESTIGATE = "investigate"


class ErrorRule(NamedTuple):
    """What follows from a code."""

    category: Category
    retry: Retry
    action: ErrorAction


ACTIONS = MappingProxyType(
    {
        Category.RATE_LIMITING: ErrorAction.RETRY,
        Category.CONTENT: ErrorAction.SKIP,
        Category.NETWORK: ErrorAction.RETRY,
        Category.PARSING: ErrorAction.ALERT,
        Category.MEDIA: ErrorAction.METADATA_ONLY,
        Category.STORAGE: ErrorAction.RETRY_THEN_ALERT,
        Category.GENERIC: ErrorAction.INVESTIGATE,
    }
)

# The codes of tasks, where they are not those of items.
ALIASES = MappingProxyType(
    {
        "BLOCKED": Code.ACCESS_DENIED,
        "INVALID_KEYWORD": Code.INVALID_URL,  # the question was wrong, and will be the next time
        "SEARCH_FAILED": Code.UNKNOWN_ERROR,  # it does not say why
        "CRAWL_PARTIAL": Code.UNKNOWN_ERROR,  # some of it came; what did not has codes of its own
    }
)

# A limit that time does not lift: the account is spent, and asking again makes it worse.
PERMANENT = MappingProxyType({"RATE_LIMITED_PERMANENT": ErrorRule(Category.RATE_LIMITING, Retry.NO, ErrorAction.ALERT)})


def rule_of(code: Code) -> ErrorRule:
    """What follows from one of our codes. One that is no failure, said of a failed item, means nothing to us."""
    known = code if code.category else Code.UNKNOWN_ERROR
    category = known.category or Category.GENERIC
    return ErrorRule(category, known.retry, ACTIONS[category])


RULES = MappingProxyType(
    {code.value: rule_of(code) for code in Code}
    | {name: rule_of(code) for name, code in ALIASES.items()}
    | dict(PERMANENT)
)
UNKNOWN = rule_of(code_of(""))


def classify(code: str) -> ErrorRule:
    """What follows from a code, however it is spelled: `rate-limited` is RATE_LIMITED. Generic, if nobody knows it."""
    known = RULES.get(code)
    return known or RULES.get(code.strip().upper().replace("-", "_").replace(" ", "_"), UNKNOWN)
