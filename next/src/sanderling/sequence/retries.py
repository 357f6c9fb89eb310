"""When an id is asked again that was missing, hidden or failed, and when that is over. Pure.

The first retries are the seed's, within half a minute: the newest records appear late. Then an id is *missed*: it is
tried six times more within ten minutes, and ever more rarely after that, since most of them never come to be.
"""

from enum import StrEnum
from random import Random

BASE = 5.5
RETRIES = {"not_found": 3, "error": 2, "bad_format": 2, "alive": 0, "imported": 0}
DISABLED = 45.0
OFFLOAD = 6  # tries of an id that is missed, before it is asked rarely
FIRST_OFFLOAD = 15.0
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
OLD = (15 * MINUTE, 7 * DAY)


class Reason(StrEnum):
    """Why an id has no record yet."""

    NOT_FOUND = "not_found"
    BAD_FORMAT = "bad_format"
    ERROR = "error"
    HIDDEN = "hidden"
    REFUSED = "refused"
    GAP = "gap"  # a range that was passed over; some of it is asked
    ALIVE = "alive"  # near an id of a gap that turned up: each is asked
    IMPORTED = "imported"


# Seconds until the first check, doubled by each in vain, and the most.
DOUBLING = {
    Reason.HIDDEN: (MINUTE, HOUR),
    Reason.REFUSED: (5.0, 5 * MINUTE),
    Reason.GAP: (10 * MINUTE, 7 * DAY),
}


def pause(index: int, random: Random) -> float:
    """Seconds between attempt `index`, counted from 0, and the next: seed 000's formula."""
    return BASE - BASE / 3 + random.random() * BASE * (index + 1)


def is_retried(reason: Reason, tries: int) -> bool:
    """Whether an id that failed `tries` times is still within its retries, and not missed yet."""
    return tries <= RETRIES.get(reason, -1)


def offload_tries(reason: Reason, tries: int) -> int:
    """How often an id was tried in vain since it is missed; 0 within its retries, and for what was never asked."""
    return max(0, tries - RETRIES[reason] - 1) if reason in RETRIES else 0


def check_in(reason: Reason, tries: int, random: Random) -> float:
    """Seconds until an id is asked again that was in vain `tries` times."""
    if reason in DOUBLING:
        first, most = DOUBLING[reason]
        return min(most, first * 2.0 ** min(max(0, tries - 1), 30))
    if is_retried(reason, tries):
        return pause(tries - 1, random)
    offload = offload_tries(reason, tries)
    if offload == 0:
        return FIRST_OFFLOAD
    if offload <= OFFLOAD:
        return offload * (2 * offload + random.random() * 5 * offload)
    first, most = OLD
    return min(most, first * 2.0 ** min(offload - OFFLOAD - 1, 30))
