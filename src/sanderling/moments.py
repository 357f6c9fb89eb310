"""Reads the moments that strangers write, in whatever form: one reader for every system. Pure.

| form | examples |
|---|---|
| ISO 8601, RFC 3339 | `2026-11-16T10:00:00Z`, `2026-11-16 10:00:00.5+02:00`, `20261116T100000Z`, `2026-11-16` |
| the same with slashes | `2026/11/16 10:00:00` |
| RFC 2822, HTTP | `Mon, 16 Nov 2026 10:00:00 GMT`, `16 Nov 2026 10:00 +0200` |
| ctime, Ruby | `Mon Nov 16 10:00:00 2026`, `Mon Nov 16 10:00:00 +0000 2026` |
| Unix time | seconds, milli-, micro- or nanoseconds, as a number or as a text of its digits |

A moment that names no zone is of UTC, and a date is its midnight. Digits alone are Unix time and never a date. What is
ambiguous (`06/12/2025`) or before 1970 is no moment, nor is the zero that some write for none.
"""

import re
from datetime import UTC, datetime, timedelta, timezone

LONGEST = 64  # characters
# A number below is before 1973: rather a length of time, or a date without its dashes.
EARLIEST = 1e8
LATEST = 253_402_300_800  # the year 10000
# From where a number is too large for one unit, and how many of the next are a second. Each begins in 1973.
UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))

_NUMBER = re.compile(r"[0-9]{1,19}(?:\.[0-9]{1,19})?", re.ASCII)
_SLASHES = re.compile(r"([0-9]{4})/([0-9]{2})/([0-9]{2})(?![0-9/])", re.ASCII)
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAY = r"(?:(?:MON|TUE|WED|THU|FRI|SAT|SUN)[A-Z]{0,6}\.?,? +)?"
_DATE = rf"(?P<day>[0-9]{{1,2}}) +(?P<month>{'|'.join(_MONTHS)})[A-Z]{{0,6}} +(?P<year>[0-9]{{4}})"
_TURNED = rf"(?P<month>{'|'.join(_MONTHS)})[A-Z]{{0,6}} +(?P<day>[0-9]{{1,2}})"
_TIME = r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}))?"
_ZONE = r"(?: *(?:GMT|UTC|UT|Z|(?P<sign>[+-])(?P<hours>[0-9]{2}):?(?P<minutes>[0-9]{2})))?"
_NAMED = (
    re.compile(rf"{_DAY}{_DATE} +{_TIME}{_ZONE}(?: *\([A-Z ]+\))?", re.ASCII),
    re.compile(rf"{_DAY}{_TURNED} +{_TIME}{_ZONE} +(?P<year>[0-9]{{4}})", re.ASCII),
)


def moment(value: object) -> float | None:
    """The Unix seconds of the moment that a value is; None if it is none. Never raises."""
    if type(value) is not str:
        return _unix(value) if type(value) is int or type(value) is float else None
    # The usual spelling first: an item has a dozen of them.
    if value[4:5] == "-" and value[-1:] == "Z":
        return _iso(value)
    if len(value) > LONGEST:
        return None
    written = value.strip().upper()
    if _NUMBER.fullmatch(written):
        return _unix(float(written))
    for shape in _NAMED:
        if found := shape.fullmatch(written):
            return _named(found)
    # Go and Ruby write `2025-12-06 10:15:30 +0000 UTC`.
    return _iso(_SLASHES.sub(r"\1-\2-\3", written.removesuffix("UTC").removesuffix("GMT").rstrip()))


def _iso(written: str) -> float | None:
    try:
        found = datetime.fromisoformat(written)
    except ValueError:
        return None
    return _since(found if found.tzinfo else found.replace(tzinfo=UTC))


def _named(found: re.Match[str]) -> float | None:
    """The moment of a date that names its month. The weekday need not be right."""
    ahead = timedelta(hours=int(found["hours"] or 0), minutes=int(found["minutes"] or 0))
    day = int(found["year"]), _MONTHS.index(found["month"]) + 1, int(found["day"])
    time = int(found["hour"]), int(found["minute"]), int(found["second"] or 0)
    try:
        return _since(datetime(*day, *time, tzinfo=timezone(-ahead if found["sign"] == "-" else ahead)))
    except ValueError:
        return None


def _since(found: datetime) -> float | None:
    since = found.timestamp()
    return since if 0 < since < LATEST else None


def _unix(number: float) -> float | None:
    if not EARLIEST <= number < 1e20:
        return None
    for limit, per_second in UNITS:
        if number >= limit:
            return number / per_second
    return float(number)
