"""Retry-After, and the dates of HTTP: RFC 9110. What cannot be read is None; a malformed field is ignored."""

import re
from calendar import timegm
from email.utils import parsedate_tz

from sanderling.limit.rules import LONGEST_WAIT

_SECONDS = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?")  # the RFC knows whole seconds; some servers send decimals
LONGEST_DATE = 64  # characters


def retry_after(value: str | None, date: str | None, wall: float) -> float | None:
    """Seconds to wait by a Retry-After header: 0 for an instant in the past, at most a year.

    `date` is the Date header of that response: its clock is the one that the instant is measured by. `wall` is ours.
    """
    if value is None:
        return None
    text = value.strip(" \t")
    if _SECONDS.fullmatch(text):
        return min(float(text), LONGEST_WAIT)
    due = http_date(text)
    if due is None:
        return None
    sent = http_date(date or "")
    return min(max(0.0, due - (wall if sent is None else sent)), LONGEST_WAIT)


def http_date(text: str) -> float | None:
    """Unix seconds of a date in one of HTTP's three forms, or near to one: to ignore it would be to request early."""
    parts = parsedate_tz(text) if len(text) <= LONGEST_DATE else None
    if parts is None:
        return None
    year, *others, zone = parts[0], *parts[1:6], parts[9]
    try:
        return float(timegm((min(year, 9999), *others)) - (zone or 0))
    except (ValueError, OverflowError):
        return None
