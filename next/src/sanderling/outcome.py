"""Outcome: how a request ended, in one value that limiter, engine, metrics and error tables all read.

A `Code` names what happened. Its `category` is one of the seven of seed 002, and None where nothing went wrong.
`retry` says whether another request soon could end differently; `final` says that no later request ever will, so the
item is done. `Retry.NO` without `final` means: not in this run, perhaps in a later one.
"""

import math
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Self


class Category(StrEnum):
    """The part of the work that failed."""

    RATE_LIMITING = "rate_limiting"
    CONTENT = "content"
    NETWORK = "network"
    PARSING = "parsing"
    MEDIA = "media"
    STORAGE = "storage"
    GENERIC = "generic"


class Retry(Enum):
    """Whether another request soon could end differently."""

    YES = "yes"
    ONCE = "once"  # if the second try fails too, a person has to look
    NO = "no"

    def allows(self, attempt: int) -> bool:
        """Whether to try again after `attempt` attempts that ended like this."""
        return self is Retry.YES or (self is Retry.ONCE and attempt < 2)


FINAL, OPEN = True, False


class Code(StrEnum):
    """What happened. `docs/outcomes.md` shows the same table, and a test compares the two."""

    category: Category | None
    retry: Retry
    final: bool
    ok: bool  # the request did what it was sent for

    def __new__(cls, name: str, category: Category | None, retry: Retry, final: bool) -> Self:  # noqa: FBT001 - rows
        """Make the row a string, so that it is stored, logged and used as a label as it is."""
        code = str.__new__(cls, name)
        code._value_ = name
        code.category = category
        code.retry = retry
        code.final = final
        code.ok = name in ("OK", "NOT_MODIFIED", "SKIPPED")
        return code

    # The 21 codes of seed 002, under its names.
    RATE_LIMITED = "RATE_LIMITED", Category.RATE_LIMITING, Retry.YES, OPEN
    AUTH_FAILED = "AUTH_FAILED", Category.RATE_LIMITING, Retry.YES, OPEN
    ACCESS_DENIED = "ACCESS_DENIED", Category.RATE_LIMITING, Retry.YES, OPEN
    CONTENT_REMOVED = "CONTENT_REMOVED", Category.CONTENT, Retry.NO, FINAL
    CONTENT_NOT_FOUND = "CONTENT_NOT_FOUND", Category.CONTENT, Retry.NO, FINAL
    CONTENT_UNAVAILABLE = "CONTENT_UNAVAILABLE", Category.CONTENT, Retry.NO, FINAL
    NETWORK_ERROR = "NETWORK_ERROR", Category.NETWORK, Retry.YES, OPEN
    TIMEOUT = "TIMEOUT", Category.NETWORK, Retry.YES, OPEN
    CONNECTION_REFUSED = "CONNECTION_REFUSED", Category.NETWORK, Retry.YES, OPEN
    DNS_ERROR = "DNS_ERROR", Category.NETWORK, Retry.YES, OPEN
    PARSE_ERROR = "PARSE_ERROR", Category.PARSING, Retry.NO, FINAL
    INVALID_URL = "INVALID_URL", Category.PARSING, Retry.NO, FINAL
    INVALID_RESPONSE = "INVALID_RESPONSE", Category.PARSING, Retry.NO, FINAL
    MEDIA_DOWNLOAD_FAILED = "MEDIA_DOWNLOAD_FAILED", Category.MEDIA, Retry.NO, FINAL
    MEDIA_TOO_LARGE = "MEDIA_TOO_LARGE", Category.MEDIA, Retry.NO, FINAL
    MEDIA_FORMAT_ERROR = "MEDIA_FORMAT_ERROR", Category.MEDIA, Retry.NO, FINAL
    STORAGE_ERROR = "STORAGE_ERROR", Category.STORAGE, Retry.YES, OPEN
    UPLOAD_FAILED = "UPLOAD_FAILED", Category.STORAGE, Retry.YES, OPEN
    DATABASE_ERROR = "DATABASE_ERROR", Category.STORAGE, Retry.YES, OPEN
    UNKNOWN_ERROR = "UNKNOWN_ERROR", Category.GENERIC, Retry.ONCE, OPEN
    INTERNAL_ERROR = "INTERNAL_ERROR", Category.GENERIC, Retry.ONCE, OPEN

    # Nothing went wrong, or nothing was sent.
    OK = "OK", None, Retry.NO, FINAL
    NOT_MODIFIED = "NOT_MODIFIED", None, Retry.NO, FINAL
    SKIPPED = "SKIPPED", None, Retry.NO, FINAL  # fetched, but not of a kind that is wanted
    DEFERRED = "DEFERRED", None, Retry.NO, OPEN  # neither an attempt nor a failure: scheduled for a known time
    CANCELLED = "CANCELLED", None, Retry.NO, OPEN  # by ourselves, so it teaches nothing about the host
    REFUSED = "REFUSED", None, Retry.NO, FINAL  # by our address guard or by robots.txt; nothing was sent

    # Failures for which seed 002 has no name.
    HOST_UNAVAILABLE = "HOST_UNAVAILABLE", Category.NETWORK, Retry.YES, OPEN
    TLS_ERROR = "TLS_ERROR", Category.NETWORK, Retry.YES, OPEN
    CONNECTION_RESET = "CONNECTION_RESET", Category.NETWORK, Retry.YES, OPEN
    # A body that ended early is the network's fault. Under parsing it would be final, and the record lost.
    TRUNCATED = "TRUNCATED", Category.NETWORK, Retry.YES, OPEN
    TOO_LARGE = "TOO_LARGE", Category.PARSING, Retry.NO, FINAL
    BAD_ENCODING = "BAD_ENCODING", Category.PARSING, Retry.NO, FINAL
    # The same request gets the same response until someone repairs the request or the host.
    HTTP_ERROR = "HTTP_ERROR", Category.GENERIC, Retry.NO, OPEN
    REDIRECT_LOOP = "REDIRECT_LOOP", Category.GENERIC, Retry.NO, OPEN


def code_named(name: str) -> Code:
    """The code with that name; UNKNOWN_ERROR for any other, since events of other crawlers carry some."""
    return Code.__members__.get(name, Code.UNKNOWN_ERROR)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one request ended, with the hints that came with the response. Times are in seconds."""

    code: Code
    status: int = 0  # the HTTP status; 0 without a response
    detail: str = ""
    retry_after: float | None = None
    lag: float | None = None  # the record's age when it was fetched; negative if the host's clock is ahead
    sent: bool = True  # False: failed before the request was sent (DNS, connect, TLS), so the item is not at fault

    def __post_init__(self) -> None:
        if self.status != 0 and not 100 <= self.status <= 999:
            raise ValueError(f"status of {self.code} is {self.status}, expected 0 or three digits")
        if self.retry_after is not None and not 0 <= self.retry_after < math.inf:
            raise ValueError(f"retry_after of {self.code} is {self.retry_after}, expected seconds from 0 up")

    @property
    def ok(self) -> bool:
        """Whether the request did what it was sent for."""
        return self.code.ok

    @property
    def category(self) -> Category | None:
        """The part of the work that failed; None where nothing did."""
        return self.code.category

    @property
    def worth_retrying(self) -> bool:
        """Whether another request soon could end differently; `code.retry.allows` says how often to try."""
        return self.code.retry is not Retry.NO

    @property
    def final(self) -> bool:
        """Whether no later request will end differently."""
        return self.code.final

    @property
    def blames_host(self) -> bool:
        """Whether this counts against the host's health. A host that says 404 or 429 is alive."""
        return self.code.category is Category.NETWORK
