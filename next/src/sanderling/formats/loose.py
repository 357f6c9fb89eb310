"""Values as strangers write them, each read as one type. What cannot be read is empty or None; only ids raise.

A count may be `1234`, `1234.0` or `"1234"`, and below 0 is 0. A time may be ISO 8601, RFC 2822 or Unix time. A link is
one of http or https: `javascript:` must never reach a page. Zero bytes, which PostgreSQL refuses, are taken out.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

LONGEST_ID = 128
MOST = 2**63 - 1  # what databases hold
_YEAR_10000 = 253_402_300_800
# A number below is before 1973: rather a length of time. Above, units are milli-, micro- and nanoseconds.
_EARLIEST, _UNITS = 1e8, ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
_NOTHING = frozenset({"NULL", "null", "None"})  # as tools that export tables write it
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_PLATFORM = re.compile(r"[a-z0-9][a-z0-9_.-]{0,19}", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,19}(?:\.[0-9]{1,9})?", re.ASCII)
# Pairs of surrogates and other escapes are matched so that they are passed over; half a pair is replaced.
_HALF = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)

Members = Mapping[str, Any]


def read_json(body: bytes) -> tuple[object, bool]:
    """The value, and whether it is strict JSON: NaN, control characters and halves of emoji are forgiven.

    Raises ValueError.
    """
    try:
        return msgspec.json.decode(body), True
    except _UNREADABLE as error:
        strict = error
    text = _HALF.sub(lambda found: "\\ufffd" if found[1] else found[0], body.decode("utf-8-sig", "replace"))
    try:
        return json.loads(text, strict=False, parse_constant=lambda _: None), False
    except (ValueError, RecursionError):
        raise ValueError(f"{len(body):,} bytes that are no JSON: {strict}") from None


def members(value: object) -> Members:
    """The members of an object; none if it is something else."""
    return value if isinstance(value, dict) else {}


def first(places: Iterable[Members], *names: str) -> object:
    """The first member with one of these names that is not null."""
    for place in places:
        for name in names:
            if (value := place.get(name)) is not None:
                return value
    return None


def text(value: object, most: int | None = None) -> str:
    """The text that a value is."""
    if isinstance(value, str):
        return value.replace("\0", "")[:most]
    return str(value) if type(value) is int and abs(value) <= MOST else ""


def name(value: object, most: int = 200) -> str:
    """What people call something: without space around it."""
    return text(value).strip()[:most]


def count(value: object) -> int | None:
    """How many a value says there are; None if it does not say."""
    number: object = value
    if isinstance(value, str):
        digits = value.strip()
        number = int(digits) if len(digits) < 20 and digits.isascii() and digits.isdigit() else None
    elif isinstance(value, float):
        number = int(value) if math.isfinite(value) else None
    return max(number, 0) if type(number) is int and number <= MOST else None


def first_count(places: Iterable[Members], *names: str) -> int:
    """The first member with one of these names that is a count; 0 if there is none."""
    for place in places:
        for each in names:
            if (found := count(place.get(each))) is not None:
                return found
    return 0


def flag(value: object) -> bool:
    """Whether a value means yes."""
    return value.strip().lower() in ("true", "1", "yes") if isinstance(value, str) else value in (True, 1)


def platform(value: object) -> str:
    """The name of a platform in lower case; empty if it is none. It becomes a label, so it is a short word."""
    found = value.strip().lower() if isinstance(value, str) and len(value) < 100 else ""
    return found if _PLATFORM.fullmatch(found) else ""


def link(value: object) -> str:
    """The address that a value is; empty if it is none, or dangerous to click on."""
    address = value.strip() if isinstance(value, str) else ""
    if len(address) > 2048 or not address.isprintable():
        return ""
    scheme, colon, _ = address.partition(":")
    return address if not colon or not scheme.isalnum() or scheme.lower() in ("http", "https") else ""


def read_id(value: object) -> str:
    """The id that a value is. Raises ValueError with what was found."""
    if isinstance(value, str):
        found = value.strip()
    elif type(value) is int and abs(value) <= MOST:
        found = str(value)
    else:
        raise ValueError(f"found {shown(value)}")
    if not found or found in _NOTHING:
        raise ValueError(f"found {shown(value)}")
    if len(found) > LONGEST_ID:
        raise ValueError(f"found {len(found):,} characters")
    if not found.isprintable():
        raise ValueError(f"found {shown(value)}, in which a character cannot be printed")
    return found


def id_or(value: object, otherwise: str) -> str:
    """The id that a value is, or the other one."""
    try:
        return read_id(value)
    except ValueError:
        return otherwise


def moment(value: object) -> float | None:
    """Seconds since 1970 of the time that a value is; None if it is none. Without a zone it is UTC."""
    if isinstance(value, str):
        written = value.strip()
        if len(written) > 64:
            return None
        if _NUMBER.fullmatch(written):
            return _unix(float(written))
        # Go and Ruby write `2025-12-06 10:15:30 +0000 UTC`.
        for read in (datetime.fromisoformat, parsedate_to_datetime):
            try:
                found = read(written.removesuffix("UTC").rstrip())
                seconds = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
            except (ValueError, TypeError, IndexError, OverflowError):
                continue
            return seconds if 0 < seconds < _YEAR_10000 else None
        return None
    return _unix(float(value)) if type(value) in (int, float) and abs(value) < 1e20 else None  # type: ignore[arg-type]


def _unix(number: float) -> float | None:
    number /= next((unit for least, unit in _UNITS if number >= least), 1.0)
    return number if _EARLIEST <= number < _YEAR_10000 else None


def shown(value: object) -> str:
    """A value in few words; of lists and objects only that they are some."""
    match value:
        case None:
            return "nothing"
        case str():
            return repr(value[:60])
        case bool() | float():
            return repr(value)
        case int():
            return repr(value) if abs(value) <= MOST else "a very long number"
    return "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else "something else"
