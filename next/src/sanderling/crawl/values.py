"""What may be written as JSON without being changed: records, and what requests carry along.

msgspec alone writes more than that: NaN as null, bytes as base64, sets as lists and keys of any kind as texts.
"""

from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Any
from uuid import UUID

import msgspec

# What is a text, a number or a word of JSON, or becomes one text as docs/crawl.md says.
_PLAIN = frozenset({str, int, bool, type(None), datetime, date, time, timedelta, UUID})
_NOT_JSON = (bytes, bytearray, memoryview, set, frozenset, msgspec.Raw)


class Selected:
    """What a selector found; it is no value, but what it says is one."""

    __slots__ = ()


def encode_value(value: object) -> bytes:
    """The value as JSON. Raises ValueError for what that would change, or what cannot be written, and says where."""
    try:
        if flaw := _flaw(value):
            raise ValueError(f"it{flaw}" if flaw.startswith(" ") else flaw.removeprefix("."))
        return msgspec.json.encode(value)
    except RecursionError:
        raise ValueError("it is nested too deeply, or in itself") from None
    except UnicodeEncodeError:
        raise ValueError("a text has half of a surrogate pair in it; expected characters") from None
    except (TypeError, OverflowError, msgspec.MsgspecError) as error:
        raise ValueError(str(error)) from None


def _flaw(value: object) -> str:
    """What in a value is no JSON, and where; empty if nothing is."""
    if type(value) in _PLAIN:
        return ""
    match value:
        case Enum():
            return _flaw(value.value)
        case float() | Decimal():
            return "" if isfinite(value) else f" is {value}; expected a number"
        case dict():
            for key, each in value.items():
                if not isinstance(key, str):
                    return f" has the key {key!r:.60}; expected a text"
                if type(each) not in _PLAIN and (flaw := _flaw(each)):
                    return f".{key}{flaw}"
            return ""
        case Selected():
            return " is what a selector found; expected what it says: was .text forgotten?"
        case list() | tuple():
            for at, each in enumerate(value):
                if type(each) not in _PLAIN and (flaw := _flaw(each)):
                    return f"[{at}]{flaw}"
            return ""
    if isinstance(value, _NOT_JSON):
        return f" is {type(value).__name__}; expected a text, a number, true, false, null, a list or a dict"
    for name in _fields_of(value):
        each = getattr(value, name, None)
        if each is not msgspec.UNSET and type(each) not in _PLAIN and (flaw := _flaw(each)):
            return f".{name}{flaw}"
    return ""


def _fields_of(value: Any) -> tuple[str, ...]:  # noqa: ANN401 - whatever a job yields
    if isinstance(value, msgspec.Struct):
        return value.__struct_fields__
    return tuple(each.name for each in fields(value)) if is_dataclass(value) else ()
