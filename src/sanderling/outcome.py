"""Everything that can happen to a request, and what follows from each.

Terms. A `Code` names what happened; its `category` says which part of the road went wrong, and is None where nothing
did; its `retry` says whether asking again soon could go otherwise; `final` says that nothing more will ever come of
asking, so the task may be crossed off. `retry` NO without `final` means: not now, but a later run may ask again.

These are the general rules. A lane that knows its upstream may be more patient (sequential ids ask three times for
what is not found, since the newest records appear late); it decides so itself, and the rules here stay.
"""

import math
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Self


class Category(StrEnum):
    """Which part of the road went wrong."""

    RATE_LIMITING = "rate_limiting"
    CONTENT = "content"
    NETWORK = "network"
    PARSING = "parsing"
    MEDIA = "media"
    STORAGE = "storage"
    GENERIC = "generic"


class Retry(Enum):
    """Whether asking again soon could go otherwise."""

    YES = "yes"
    MAYBE = "maybe"  # worth exactly one more try; if that fails too, someone has to look
    NO = "no"

    def allows(self, attempt: int) -> bool:
        """Whether another attempt is worth making after `attempt` of them ended like this."""
        return self is Retry.YES or (self is Retry.MAYBE and attempt < 2)


# Words for the last column of the table below.
FINAL, OPEN = True, False


class Code(StrEnum):
    """What happened: one row per code. `docs/outcomes.md` shows the same table, and a test compares the two."""

    category: Category | None
    retry: Retry
    final: bool
    ok: bool  # whether the request did what it was sent for

    # A bare bool is fine here: the callers are rows of a table.
    def __new__(cls, name: str, category: Category | None, retry: Retry, final: bool) -> Self:  # noqa: FBT001
        """Make the row a string, so that it can be stored, logged and used as a label as it is."""
        code = str.__new__(cls, name)
        code._value_ = name
        code.category = category
        code.retry = retry
        code.final = final
        code.ok = name in ("OK", "NOT_MODIFIED", "SKIPPED")
        return code

    # The 21 codes that crawler events carry, under their names there.
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
    UNKNOWN_ERROR = "UNKNOWN_ERROR", Category.GENERIC, Retry.MAYBE, OPEN
    INTERNAL_ERROR = "INTERNAL_ERROR", Category.GENERIC, Retry.MAYBE, OPEN

    # Ours: nothing went wrong, or nothing was asked.
    OK = "OK", None, Retry.NO, FINAL
    NOT_MODIFIED = "NOT_MODIFIED", None, Retry.NO, FINAL
    SKIPPED = "SKIPPED", None, Retry.NO, FINAL  # fetched, and not of the kind that is wanted
    # A deferral is neither an attempt nor a failure: its time is known, so it is scheduled and not retried.
    DEFERRED = "DEFERRED", None, Retry.NO, OPEN
    CANCELLED = "CANCELLED", None, Retry.NO, OPEN  # by ourselves, so it teaches nothing about the host
    REFUSED = "REFUSED", None, Retry.NO, FINAL  # by our own guard, or by robots.txt; nothing was sent

    # Ours: failures for which the events have no name.
    HOST_UNAVAILABLE = "HOST_UNAVAILABLE", Category.NETWORK, Retry.YES, OPEN
    TLS_ERROR = "TLS_ERROR", Category.NETWORK, Retry.YES, OPEN
    CONNECTION_RESET = "CONNECTION_RESET", Category.NETWORK, Retry.YES, OPEN
    # A body that ended early is the network's doing. Filed under parsing it would be final, and the record lost.
    TRUNCATED = "TRUNCATED", Category.NETWORK, Retry.YES, OPEN
    TOO_LARGE = "TOO_LARGE", Category.PARSING, Retry.NO, FINAL
    BAD_ENCODING = "BAD_ENCODING", Category.PARSING, Retry.NO, FINAL
    # The same question gets the same answer, until someone repairs the request or the host: not soon, not never.
    HTTP_ERROR = "HTTP_ERROR", Category.GENERIC, Retry.NO, OPEN
    REDIRECT_LOOP = "REDIRECT_LOOP", Category.GENERIC, Retry.NO, OPEN

    @property
    def blames_host(self) -> bool:
        """Whether this counts against the health of the host.

        A host that says 404 or 429 is alive and has answered. An error without a name may be our own bug, and must
        not block every host at once.
        """
        return self.category is Category.NETWORK


def code_of(name: str) -> Code:
    """The code of that name; UNKNOWN_ERROR for names we do not know, since other people's events carry some."""
    return Code.__members__.get(name, Code.UNKNOWN_ERROR)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one request ended, with the hints that came along. Times are in seconds."""

    code: Code
    status: int = 0  # the HTTP status; 0 where there was no answer
    detail: str = ""
    retry_after: float | None = None  # how long the host asked us to stay away
    lag: float | None = None  # how old the record was when we saw it; below 0 if the host's clock is ahead
    # Nothing was sent (DNS, connect, TLS), so the item cannot be what is wrong. Follows from the rest, more or less.
    unsent: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if self.status != 0 and not 100 <= self.status <= 599:
            raise ValueError(f"status of {self.code} is {self.status}, expected 0 or 100 to 599")
        if self.retry_after is not None and not 0 <= self.retry_after < math.inf:
            raise ValueError(f"retry_after of {self.code} is {self.retry_after}, expected seconds from 0 up")

    @property
    def ok(self) -> bool:
        """Whether the request did what it was sent for."""
        return self.code.ok

    @property
    def category(self) -> Category | None:
        """Which part of the road went wrong; None where nothing did."""
        return self.code.category

    @property
    def worth_retrying(self) -> bool:
        """Whether asking again soon could go otherwise; `code.retry.allows` says how often."""
        return self.code.retry is not Retry.NO

    @property
    def final(self) -> bool:
        """Whether nothing more will ever come of asking again."""
        return self.code.final

    @property
    def blames_host(self) -> bool:
        """Whether this counts against the health of the host."""
        return self.code.blames_host
