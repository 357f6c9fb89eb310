"""The columns of CSV, Parquet and tables: one for each field of the records. No value is ever rounded."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from enum import Enum, auto
from typing import Any

import msgspec

MOST = 1000  # columns; SQLite has 2,000 at most
REST = "_more"  # the column of all fields beyond
_EXACT = 2**53  # integers up to here are exact as doubles

encode_json = msgspec.json.Encoder(decimal_format="number").encode


class ValueKind(Enum):
    """What the values of a column have in common."""

    NOTHING = auto()  # null
    TRUTH = auto()
    INTEGER = auto()  # of 64 bits
    DOUBLE = auto()
    DIGITS = auto()  # numbers that no double holds
    TEXT = auto()
    JSON = auto()  # objects and lists, and texts among numbers


_NUMBERS = (ValueKind.INTEGER, ValueKind.DOUBLE, ValueKind.DIGITS)  # each holds what those before it hold


def as_double(number: Decimal) -> float | None:
    """The double that is written with the same digits, if there is one."""
    double = float(number)
    return double if Decimal(repr(double)) == number else None


class Column:
    """One field, and of what kind its values are."""

    def __init__(self, name: str, field: str) -> None:
        self.name = name  # as a database takes it
        self.field = field
        self.kind = ValueKind.NOTHING
        self._is_exact = True  # all integers so far are exact as doubles

    def learn(self, value: object) -> None:
        """Widen the kind so that it holds the value."""
        if value is None:
            return
        kind = self._kind_of(value)
        if self.kind in (ValueKind.NOTHING, kind):
            self.kind = kind
        elif self.kind in _NUMBERS and kind in _NUMBERS:
            self.kind = max(self.kind, kind, key=_NUMBERS.index)
        else:
            self.kind = ValueKind.JSON
        if self.kind is ValueKind.DOUBLE and not self._is_exact:
            self.kind = ValueKind.DIGITS

    def _kind_of(self, value: object) -> ValueKind:
        match value:
            case bool():
                return ValueKind.TRUTH
            case int():
                self._is_exact &= abs(value) <= _EXACT
                return ValueKind.INTEGER if -(2**63) <= value < 2**63 else ValueKind.DIGITS
            case Decimal():
                return ValueKind.DIGITS if as_double(value) is None else ValueKind.DOUBLE
            case str():
                return ValueKind.TEXT
        return ValueKind.JSON

    def fit(self, value: object) -> bool | int | float | str | None:
        """The value as the column's kind holds it."""
        match self.kind:
            case ValueKind.JSON if value is not None:
                return encode_json(value).decode()
            case ValueKind.DIGITS if value is not None:
                return str(value)
            case ValueKind.DOUBLE if value is not None:
                return float(value)  # type: ignore[arg-type] # a number
        return value  # type: ignore[return-value] # a value of that kind


def plain(value: object) -> bool | int | float | str | None:
    """The value for a column that takes every kind: numbers that no double holds and what is nested are texts."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if -(2**63) <= value < 2**63 else str(value)
        case Decimal():
            double = as_double(value)
            return str(value) if double is None else double
    return encode_json(value).decode()


class Columns:
    """The columns of a table, in the order in which their fields were met."""

    def __init__(self, fields: Iterable[str] = ()) -> None:
        self.by_field: dict[str, Column] = {}
        self.rest: Column | None = None
        self._names: set[str] = {REST}
        for field in fields:
            self._add(field)

    def __iter__(self) -> Iterator[Column]:
        yield from self.by_field.values()
        if self.rest is not None:
            yield self.rest

    def learn(self, record: Mapping[str, Any], *, kinds: bool) -> bool:
        """Take in the fields of a record, and with `kinds` those of its values; whether a column is new."""
        known = len(self.by_field), self.rest
        for field in record:
            if field not in self.by_field:
                self._add(field)
        if kinds:
            for column, value in zip(self, self.row(record), strict=True):
                column.learn(value)
        return known != (len(self.by_field), self.rest)

    def row(self, record: Mapping[str, Any]) -> list[Any]:
        """The values of a record in the order of the columns."""
        values = [record.get(field) for field in self.by_field]
        if self.rest is not None:
            values.append({field: value for field, value in record.items() if field not in self.by_field} or None)
        return values

    def _add(self, field: str) -> None:
        if len(self.by_field) == MOST:
            self.rest = self.rest or Column(REST, REST)
            return
        name, number = field or "_", 1
        # SQLite takes ID and id for the same.
        while name.casefold() in self._names:
            number += 1
            name = f"{field}_{number}"
        self._names.add(name.casefold())
        self.by_field[field] = Column(name, field)
