"""What the values in a Trackside document are, and which columns each becomes.

Dates are `2026/05/03 9:04:05.6`: local time of the timing computer, which never says of which zone, so neither do we. A
date that begins with 0 (`0001/01/01 0:00:00`) is not set. Spans are `00:02:00`, `00:00:00.5000000` or `1.02:03:04`.
Both are kept as they came and as read. The GUID of zeros is none.

A value that is not what it should be is a ValueError here; the decoder adds where it was found.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache, lru_cache
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

import msgspec

from sanderling.stores.documents import Column, ColumnKind, SourceRow, SourceTable, Value

_GUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_ZERO = "00000000-0000-0000-0000-000000000000"
_DATE = re.compile(
    r"([0-9]{4})/([0-9]{1,2})/([0-9]{1,2}) ([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{0,7}))?", re.ASCII
)
_SPAN = re.compile(r"(-?)(?:([0-9]{1,8})\.)?([0-9]{1,2}):([0-5][0-9]):([0-5][0-9](?:\.[0-9]{1,7})?)", re.ASCII)

Integer = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
NULL = msgspec.Raw(b"null")


class Guid(str):
    """An id in lower case; "" if it is that of zeros."""

    __slots__ = ()

    @classmethod
    def read(cls, text: str) -> "Guid":
        """The id that a text is. Raises ValueError."""
        if not _GUID.fullmatch(text):
            raise ValueError(f"found {text!r:.60}, expected a GUID")
        return cls("" if text == _ZERO else text.lower())


class RecordKey(Guid):
    """The id of a record, which must have one."""

    __slots__ = ()

    @classmethod
    def read(cls, text: str) -> "RecordKey":
        """The id that a text is. Raises ValueError."""
        if not (key := Guid.read(text)):
            raise ValueError(f"found {_ZERO}, expected an id of its own")
        return cls(key)


class LocalDate(str):
    """A date as it came."""

    __slots__ = ()

    @classmethod
    def read(cls, text: str) -> "LocalDate":
        """The date that a text is. Raises ValueError."""
        moment = cls(text)
        moment.local()
        return moment

    def local(self) -> str | None:
        """The date in ISO 8601, without a zone; None if it is not set."""
        return _local(str(self))


# A race is read again and again while it is flown, and all but the last of its dates are those of the time before.
@lru_cache(maxsize=4096)
def _local(text: str) -> str | None:
    if not text:
        return None
    found = _DATE.fullmatch(text)
    if not found:
        raise ValueError(f"found {text!r:.60}, expected a date like 2026/05/03 9:04:05.678")
    if text.startswith("0"):
        return None
    *parts, fraction = found.groups()
    year, month, day, hour, minute, second = map(int, parts)
    try:
        whole = datetime(year, month, day, hour, minute, second).isoformat()  # noqa: DTZ001 - none is known
    except ValueError as error:
        raise ValueError(f"found {text!r:.60}, which is no date: {error}") from None
    return f"{whole}.{fraction.ljust(3, '0')}" if fraction else whole


class TracksideSpan(str):
    """A length of time as it came."""

    __slots__ = ()

    @classmethod
    def read(cls, text: str) -> "TracksideSpan":
        """The span that a text is. Raises ValueError."""
        span = cls(text)
        span.seconds()
        return span

    def seconds(self) -> float | None:
        """How long it is; None if it does not say."""
        if not self:
            return None
        found = _SPAN.fullmatch(self)
        if not found or int(found[3]) > 23:
            raise ValueError(f"found {str(self)!r:.60}, expected a span like 00:02:00.5")
        sign, days, hours, minutes, seconds = found.groups()
        total = int(days or 0) * 86_400 + int(hours) * 3600 + int(minutes) * 60 + float(seconds)
        return -total if sign else total


READ: Mapping[type, Callable[[str], object]] = {
    Guid: Guid.read,
    RecordKey: RecordKey.read,
    LocalDate: LocalDate.read,
    TracksideSpan: TracksideSpan.read,
}


def read_value(kind: type, value: object) -> object:
    """A value of one of the kinds above, for the decoder. Raises ValueError."""
    if not isinstance(value, str):
        # A ValueError, since to those the decoder adds where it was.
        raise ValueError(f"found a value of type {type(value).__name__}, expected a text")  # noqa: TRY004 - see above
    return READ[kind](value)


class TracksideRecord(msgspec.Struct, frozen=True, rename="pascal"):
    """What every object of a document has. All but the id may be null or not there."""

    id: RecordKey = msgspec.field(name="ID")
    external_id: Integer | None = msgspec.field(name="ExternalID", default=None)


class _Form(NamedTuple):
    """A column that a value becomes."""

    suffix: str
    kind: ColumnKind
    of: Callable[[Any], Value]


def clean(text: str | None) -> str | None:
    """A text without zero bytes, which PostgreSQL does not take; the prefix of a channel is one, and means none."""
    return text.replace("\0", "") or None if text and "\0" in text else text


def _json(raw: msgspec.Raw) -> str | None:
    text = str(memoryview(raw), "utf-8")
    return None if text == "null" else clean(text)


def _itself(value: Value) -> Value:
    return value


FORMS: Mapping[type, tuple[_Form, ...]] = {
    str: (_Form("", ColumnKind.TEXT, clean),),
    int: (_Form("", ColumnKind.INTEGER, _itself),),
    float: (_Form("", ColumnKind.REAL, _itself),),
    bool: (_Form("", ColumnKind.BOOLEAN, _itself),),
    msgspec.Raw: (_Form("", ColumnKind.TEXT, _json),),
    Guid: (_Form("", ColumnKind.TEXT, lambda guid: str(guid) or None),),
    LocalDate: (_Form("_text", ColumnKind.TEXT, str), _Form("_local", ColumnKind.TEXT, LocalDate.local)),
    TracksideSpan: (_Form("_text", ColumnKind.TEXT, str), _Form("_seconds", ColumnKind.REAL, TracksideSpan.seconds)),
}


@cache
def _forms(record: type[TracksideRecord]) -> tuple[tuple[str, str, _Form], ...]:
    """For every field that is a value and not a list: its name, and the name and form of a column that it becomes."""
    kinds = {name: (get_args(hint) or (hint,))[0] for name, hint in get_type_hints(record).items() if name != "id"}
    return tuple((name, name + form.suffix, form) for name, kind in kinds.items() for form in FORMS.get(kind, ()))


def table_of(name: str, record: type[TracksideRecord], *more: Column, **references: str) -> SourceTable:
    """The table of such records, after `more` columns; `references` says which fields refer to which tables."""
    columns = (Column(column, form.kind, references.get(field)) for field, column, form in _forms(record))
    return SourceTable(name, (*more, *columns))


def row_of(table: str, record: TracksideRecord, **more: Value) -> SourceRow:
    """The row of a record; `more` are columns that it has not, or that others know better."""
    values: dict[str, Value] = {}
    for field, column, form in _forms(type(record)):
        value = getattr(record, field)
        values[column] = None if value is None else form.of(value)
    return SourceRow(table, str(record.id), values | more)
