"""What may be written as JSON without being changed: records, what requests carry along, and the bodies of requests.

msgspec writes more than that: NaN as null, bytes as base64, sets as lists and keys of any kind as texts.
"""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Any
from uuid import UUID

import msgspec

from sanderling.jobs.elements import Elements, HtmlElement, XmlElement

# What is a text, a number or a word of JSON, or becomes one text in a documented way.
_PLAIN = frozenset({str, int, bool, type(None), datetime, date, time, timedelta, UUID})
_NOT_JSON = (bytes, bytearray, memoryview, set, frozenset, msgspec.Raw)


def encode(value: object) -> bytes:
    """The value as JSON. Raises ValueError for what would be changed by that or cannot be written."""
    try:
        if flaw := _flaw(value):
            raise ValueError(f"it{flaw}" if flaw.startswith(" ") else flaw.removeprefix("."))
        return msgspec.json.encode(value)
    except RecursionError:
        raise ValueError("it is nested too deeply, or in itself") from None
    except UnicodeEncodeError:
        raise ValueError("a text has half of a surrogate pair in it, expected characters") from None
    except (TypeError, msgspec.MsgspecError) as error:
        raise ValueError(str(error)) from None


def _flaw(value: object) -> str:
    """What in a value is no JSON, and where; "" if nothing is."""
    kind = type(value)
    if kind in _PLAIN:
        return ""
    if kind is dict:
        return _flaw_of_dict(value)  # type: ignore[arg-type] # its type was looked at
    if kind is list or kind is tuple:
        return _first_flaw((f"[{at}]", each) for at, each in enumerate(value) if type(each) not in _PLAIN)  # type: ignore[arg-type, var-annotated]
    if isinstance(value, float | Decimal):
        return "" if isfinite(value) else f" is {value}, expected a number"
    return _never_json(value) or _flaw_of_object(value)


def _never_json(value: object) -> str:
    if isinstance(value, _NOT_JSON):
        expected = "what JSON has: a text, a number, true, false, null, a list or a dict"
        return f" is {type(value).__name__}, expected {expected}"
    if isinstance(value, HtmlElement | XmlElement | Elements) and not _is_texts(value):
        return " is what a selector found, expected what it says: was .text forgotten?"
    return ""


def _flaw_of_dict(value: dict[Any, Any]) -> str:
    for key, each in value.items():
        if not isinstance(key, str):
            return f" has the key {key!r:.60}, expected a text"
        if type(each) not in _PLAIN and (flaw := _flaw(each)):
            return f".{key}{flaw}"
    return ""


def _flaw_of_object(value: object) -> str:
    """The same of what has JSON within: a struct, a dataclass, an enum, a subclass of a dict or a list."""
    if isinstance(value, Enum):
        return _flaw(value.value)
    if isinstance(value, dict):
        return _flaw_of_dict(value)
    if isinstance(value, list | tuple):
        return _flaw(list(value))
    if isinstance(value, msgspec.Struct):
        pairs = ((f".{name}", getattr(value, name)) for name in value.__struct_fields__)
        return _first_flaw((name, each) for name, each in pairs if each is not msgspec.UNSET)
    if is_dataclass(value) and not isinstance(value, type):
        return _first_flaw((f".{each.name}", getattr(value, each.name, None)) for each in fields(value))
    return ""


def _is_texts(found: object) -> bool:
    return isinstance(found, list) and all(isinstance(each, str) for each in found)


def _first_flaw(parts: Iterator[tuple[str, object]]) -> str:
    return next((f"{name}{flaw}" for name, each in parts if (flaw := _flaw(each))), "")
