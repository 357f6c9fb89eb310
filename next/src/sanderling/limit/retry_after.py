"""Retry-After, and the dates of HTTP: RFC 9110. What cannot be read is None; a malformed field is ignored."""

import re
from datetime import UTC, datetime, timedelta

from sanderling.limit.rules import LONGEST_WAIT

_SECONDS = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?")  # the RFC knows whole seconds; some servers send decimals
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH = f"(?P<month>{'|'.join(_MONTHS)})"
_TIME = "(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
# The weekday must be one but need not be right: to ignore a Retry-After for that would be to request early.
_DATES = (
    re.compile(f"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (?P<day>[0-9]{{2}}) {_MONTH} (?P<year>[0-9]{{4}}) {_TIME} GMT"),
    re.compile(
        f"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, (?P<day>[0-9]{{2}})-{_MONTH}-(?P<year>[0-9]{{2}}) {_TIME} GMT"
    ),
    re.compile(f"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {_MONTH} (?P<day>[0-9]{{2}}| [0-9]) {_TIME} (?P<year>[0-9]{{4}})"),
)


def retry_after(value: str | None, date: str | None, wall: float) -> float | None:
    """Seconds to wait by a Retry-After header: 0 for an instant in the past, at most a year.

    `date` is the Date header of that response: its clock is the one that the instant is measured by. `wall` is ours.
    """
    if value is None:
        return None
    text = value.strip(" \t")
    if _SECONDS.fullmatch(text):
        return min(float(text), LONGEST_WAIT)
    due = http_date(text, wall)
    if due is None:
        return None
    sent = http_date((date or "").strip(" \t"), wall)
    return min(max(0.0, due - (wall if sent is None else sent)), LONGEST_WAIT)


def http_date(text: str, wall: float) -> float | None:
    """Unix seconds of an HTTP date in one of its three forms; `wall`, now, settles years of two digits."""
    found = next(filter(None, (form.fullmatch(text) for form in _DATES)), None)
    if found is None:
        return None
    year = int(found["year"])
    if len(found["year"]) == 2:  # the last such year that is at most 50 years ahead
        latest = datetime.fromtimestamp(wall, UTC).year + 50
        year = latest - (latest - year) % 100
    second = int(found["second"])
    leap = second == 60  # allowed, but unknown to datetime
    try:
        moment = datetime(
            year,
            _MONTHS.index(found["month"]) + 1,
            int(found["day"]),
            int(found["hour"]),
            int(found["minute"]),
            second - leap,
            tzinfo=UTC,
        )
        return (moment + timedelta(seconds=leap)).timestamp()
    except (ValueError, OverflowError):
        return None
