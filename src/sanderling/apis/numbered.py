"""What an API of ever-growing ids must tell us: how to ask for an id, and what the answer means.

An API is one file that has these few functions, without I/O and without state. `bungie` is one, `json_ids` is any JSON
API that can be described by a URL and a few paths.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from sanderling.outcome import Code, Outcome
from sanderling.task import Reply, Task

LARGEST_ID = 2**63 - 1


class Status(StrEnum):
    """What an id came to. The label of metrics, and what the retry rules go by."""

    SUCCESS = "success"
    SKIPPED = "skipped"  # there, and not of the kind that is kept
    NOT_FOUND = "not_found"
    DISABLED = "disabled"  # the API is switched off
    HIDDEN = "hidden"  # there, and not shown to anyone for now
    BAD_FORMAT = "bad_format"
    ERROR = "error"
    RATE_LIMITED = "rate_limited"

    @property
    def exists(self) -> bool:
        """Whether it proves that there is something under the id."""
        return self in (Status.SUCCESS, Status.SKIPPED, Status.HIDDEN, Status.BAD_FORMAT)


@dataclass(frozen=True, slots=True)
class NumberedAnswer:
    """What came of asking for an id. `outcome.lag` is how old the record was, in seconds."""

    status: Status
    outcome: Outcome
    error: str = ""  # the API's own name for it, for metrics; few of them, "" where it has none
    message: bytes = b""  # on success: what the queue carries, see `formats/instance.py`


class NumberedApi(Protocol):
    """One API."""

    @property
    def name(self) -> str:
        """What it is called in messages and metrics."""

    def task(self, number: int, attempt: int) -> Task:
        """The question for an id; `attempt` counts from 1 those whose answer was malformed."""

    def read(self, number: int, reply: Reply, general: Outcome, wall: float) -> NumberedAnswer:
        """What a reply means, that of any status; `general` is what status and headers mean. Never raises."""

    def availability(self) -> Task | None:
        """The question whether the API is switched on; None if it cannot be asked."""

    def available(self, reply: Reply) -> bool | None:
        """What the answer to that means; None if it does not say."""


# What there is to say of an id when there was no reply to read.
BY_CODE = {
    Code.RATE_LIMITED: Status.RATE_LIMITED,
    Code.DEFERRED: Status.RATE_LIMITED,
    Code.TOO_LARGE: Status.BAD_FORMAT,
}


def unanswered(outcome: Outcome) -> NumberedAnswer:
    """What came of an id whose question was not answered, or by a body that was refused."""
    return NumberedAnswer(BY_CODE.get(outcome.code, Status.ERROR), outcome, error=outcome.code.value)
