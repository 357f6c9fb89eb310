"""Values as strangers write them, in one type each. What cannot be read is empty, 0 or None, and only ids ever raise.

| what | how it may be written |
|---|---|
| count | `1234`, `1234.0`, `"1234"`; below 0 is 0; `"1,2K"`, `true` and what 64 bits cannot hold are no counts |
| flag | `true`, `1`, `"true"`, `"True"`, `"1"`, `"yes"` are true, all else is false |
| id | a text, or a whole number of any length; never a fraction, since then its last digits are lost already |
| link | an address of http or https, or one that names no scheme: `javascript:` must never reach a page |
"""

import math
import re
from collections.abc import Sequence

LONGEST_ID = 128
LONGEST_NAME = 256  # characters of names, keywords and job ids; what is longer is cut
LONGEST_LINK = 2048
LONGEST_SPAN = 1e9  # seconds, which are 30 years
MOST = 2**63 - 1  # what the columns of databases hold

# Written by tools that export tables, where there was nothing.
NOTHING = frozenset({"NULL", "null", "None"})
TRUE = frozenset({"true", "1", "yes"})

KINDS = {int: "a very long number", list: "a list", dict: "an object"}

_PLATFORM = re.compile(r"[a-z0-9][a-z0-9_.-]{0,19}", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,19}(?:\.[0-9]{1,19})?", re.ASCII)
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.ASCII | re.IGNORECASE)
_EMPTY: dict[str, object] = {}


def members(value: object) -> dict[str, object]:
    """The members of an object; none, if the value is something else."""
    return value if isinstance(value, dict) else _EMPTY


def first(source: dict[str, object], names: Sequence[str]) -> object:
    """The first member of these names that is not null."""
    for name in names:
        value = source.get(name)
        if value is not None:
            return value
    return None


def text(value: object) -> str:
    """The text that a value is. Without zero bytes, which PostgreSQL does not take."""
    if type(value) is str:
        return value.replace("\0", "") if "\0" in value else value
    return str(value) if type(value) is int and -MOST <= value <= MOST else ""


def first_text(source: dict[str, object], names: Sequence[str]) -> str:
    """The first member of these names that is a text, and not an empty one."""
    for name in names:
        value = source.get(name)
        if value is not None and (found := text(value)):
            return found
    return ""


def first_name(source: dict[str, object], names: Sequence[str]) -> str:
    """The same for what people call things: without space around it, and cut if it is long."""
    return first_text(source, names).strip()[:LONGEST_NAME]


def count(value: object) -> int | None:
    """How many a value says there are; None if it does not say."""
    number = value
    if type(number) is str:
        digits = number.strip()
        # Far longer ones are no numbers to Python either, which then raises.
        number = int(digits) if len(digits) < 20 and digits.isascii() and digits.isdigit() else None
    elif type(number) is float:
        number = int(number) if math.isfinite(number) else None
    if type(number) is not int or number > MOST:
        return None
    return max(number, 0)


def first_count(source: dict[str, object], names: Sequence[str]) -> int | None:
    """The first member of these names that is a count."""
    for name in names:
        value = source.get(name)
        if value is not None and (found := count(value)) is not None:
            return found
    return None


def seconds(value: object) -> float | None:
    """The length of time that a value is; None if it is none."""
    if type(value) is str and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if (type(value) is int or type(value) is float) and 0 <= value <= LONGEST_SPAN:
        return float(value)
    return None


def flag(value: object) -> bool:
    """Whether a value means yes."""
    if type(value) is str:
        return value.strip().lower() in TRUE
    return value is True or (type(value) is int and value == 1)


def platform(value: object) -> str:
    """The name of a platform in lower case; empty if it is none. It may become a label, so it is a short word."""
    name = value.strip().lower() if type(value) is str and len(value) < 100 else ""
    return name if _PLATFORM.fullmatch(name) else ""


def link(value: object) -> str:
    """The address that a value is, empty if it is none or dangerous to click on."""
    address = value.strip() if type(value) is str else ""
    if len(address) > LONGEST_LINK or not address.isprintable():
        return ""
    scheme = _SCHEME.match(address)
    return address if not scheme or scheme[1].lower() in ("https", "http") else ""


def read_id(value: object) -> str:
    """The id that a value is. Raises ValueError with what was found."""
    if type(value) is str:
        found = value.strip()
    elif type(value) is int:
        # Compared before it is written: a number of thousands of digits cannot be.
        found = str(value) if abs(value) < 10**LONGEST_ID else "9" * (LONGEST_ID + 1)
    else:
        raise ValueError(f"found {shown(value)}")
    if not found or found in NOTHING:
        raise ValueError(f"found {shown(value)}")
    if len(found) > LONGEST_ID:
        raise ValueError(f"found more than {LONGEST_ID} characters")
    if not found.isprintable():
        raise ValueError(f"found {shown(value)}, in which a character cannot be printed")
    return found


def id_or(value: object, otherwise: str) -> str:
    """The id that a value is, or the other one."""
    try:
        return read_id(value)
    except ValueError:
        return otherwise


def shown(value: object) -> str:
    """A value in few words; of lists and objects only that they are some."""
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return repr(value[:60])
    if isinstance(value, float | bool) or (isinstance(value, int) and -MOST <= value <= MOST):
        return repr(value)
    return KINDS.get(type(value)) or f"a {type(value).__name__}"
