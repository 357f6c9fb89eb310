"""When an id is asked again, when the main lane gives it up, and what is missed then: ranges of ids, and why.

The main lane is patient for half a minute: the newest records appear late. What it gives up is missed, and asked again
from disk: within minutes at first, then ever more rarely, since most of it will never exist.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from random import Random
from typing import Self

from sanderling.apis.numbered import Status


class Reason(StrEnum):
    """Why an id is missed."""

    NOT_FOUND = "not_found"
    BAD_FORMAT = "bad_format"
    ERROR = "error"
    HIDDEN = "hidden"  # these two are the retry queue: there is a record, and we are not shown it now
    RATE_LIMITED = "rate_limited"
    GAP = "gap"  # skipped as part of a range, few of which were asked
    ALIVE = "alive"  # part of a skipped range in which something was found: each id is asked
    IMPORTED = "imported"


@dataclass(frozen=True, slots=True)
class RetryRules:
    """Times in seconds."""

    base: float = 5.5
    not_found: int = 3  # how often each is asked again
    errors: int = 2
    refusals: int = 3
    disabled: float = 45.0


@dataclass(slots=True)
class Tries:
    """What an id has been through in the main lane."""

    answered: bool = False  # whatever the answer was
    asked: int = 0  # without those that were refused, or told that the API is switched off
    not_found: int = 0
    errors: int = 0
    malformed: int = 0
    refused: int = 0


@dataclass(order=True, slots=True)
class NewId:
    """An id of the main lane, and when it is due again."""

    due: float
    number: int
    tries: Tries = field(default_factory=Tries, compare=False)

    @property
    def key(self) -> int:
        """What tells it from all others."""
        return self.number

    @property
    def attempt(self) -> int:
        """How often it was asked in these words: others after an answer that was malformed."""
        return self.tries.malformed + 1

    @property
    def decided(self) -> bool:
        """Whether nobody but its source decides about asking again."""
        return False


@dataclass(frozen=True, slots=True)
class Again:
    """Ask once more after so many seconds."""

    seconds: float


def pause(rules: RetryRules, index: int, rng: Random) -> float:
    """Seconds between attempt `index`, counted from 0, and the next one."""
    return rules.base * 2 / 3 + rng.random() * rules.base * (index + 1)


def after(status: Status, tries: Tries, rules: RetryRules, rng: Random) -> Again | Reason | None:
    """What follows from an answer: another try, a reason to give up, or nothing, for the id has its record.

    Being refused is the limiter's lesson and not yet the id's fate: it waits where it is, for as long as the host says,
    and only an id that is refused over and over goes elsewhere.
    """
    if status in (Status.SUCCESS, Status.SKIPPED):
        return None
    if status is Status.HIDDEN:
        return Reason.HIDDEN
    if status is Status.DISABLED:  # the API's doing; the id has not been tried
        return Again(rules.disabled)
    if status is Status.RATE_LIMITED:
        tries.refused += 1
        return Again(0.0) if tries.refused <= rules.refusals else Reason.RATE_LIMITED
    tries.asked += 1
    if status is Status.NOT_FOUND:
        tries.not_found += 1
        spent = tries.not_found > rules.not_found
    else:
        tries.errors += 1
        tries.malformed += status is Status.BAD_FORMAT
        spent = tries.errors > rules.errors
    return Reason(status.value) if spent else Again(pause(rules, tries.asked - 1, rng))


MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
OFFLOAD = 6  # tries within minutes; who is still missing then is given up as unresolved
WARN_AT = 3
FIRST = 15.0  # seconds until the first of these
RAREST = 7 * DAY
# Seconds until the first check, doubled by each that is in vain, and the most.
DOUBLING = {
    Reason.HIDDEN: (MINUTE, HOUR),
    Reason.RATE_LIMITED: (5.0, 5 * MINUTE),
    Reason.GAP: (10 * MINUTE, RAREST),
}
OLD = (15 * MINUTE, RAREST)


def check_in(reason: Reason, tries: int, rng: Random) -> float:
    """Seconds until a missed id, or range, is asked again that was in vain `tries` times since it was missed."""
    if reason in DOUBLING:
        return _doubled(*DOUBLING[reason], tries)
    if tries == 0:
        return 0.0 if reason is Reason.ALIVE else FIRST
    if tries <= OFFLOAD:
        return tries * (2 * tries + rng.random() * 5 * tries)
    return _doubled(*OLD, tries - OFFLOAD - 1)


def _doubled(first: float, most: float, times: int) -> float:
    return min(most, first * 2.0 ** min(times, 30))


@dataclass(frozen=True, slots=True)
class Missed:
    """A range of ids, both ends included, that share a fate. Times are Unix seconds."""

    low: int
    high: int
    reason: Reason
    first_seen: float
    last_seen: float
    tries: int  # in vain, since it was missed
    next_check: float

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high:
            raise ValueError(f"missed ids from {self.low} to {self.high}; expected them to ascend from 0")

    def __len__(self) -> int:
        return self.high - self.low + 1

    def without(self, low: int, high: int) -> list[Self]:
        """What is left of it when that range is taken out."""
        left = [replace(self, high=low - 1)] if self.low < low else []
        return [*left, replace(self, low=high + 1)] if high < self.high else left

    def joins(self, other: Self) -> bool:
        """Whether `other`, which begins behind it, may as well be one with it.

        Both are old: an id that is still asked one by one has times of its own.
        """
        alike = self.reason is other.reason and self.old and other.old
        return alike and self.high + 1 == other.low

    def join(self, other: Self) -> Self:
        """Both as one: asked when the earlier would be, as rarely as the rarer."""
        return replace(
            self,
            high=other.high,
            first_seen=min(self.first_seen, other.first_seen),
            last_seen=max(self.last_seen, other.last_seen),
            tries=max(self.tries, other.tries),
            next_check=min(self.next_check, other.next_check),
        )

    @property
    def old(self) -> bool:
        """Whether asking it one by one is over."""
        return self.reason is Reason.GAP or self.tries > OFFLOAD
