"""Which column a field of a record becomes, and what that column can hold.

The kind of a column is that of its values so far. It only ever widens: whole numbers to fractions, these to numbers
of any size, and whatever has nothing else in common to JSON. No value is ever rounded to fit.
"""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from sanderling.formats.exact_json import encode_exact

MOST = 1000  # columns; PostgreSQL has 1,600 at most, SQLite 2,000
# The column for the fields beyond them, as one JSON object; a field that JSON can spell, and nobody does.
MORE, MORE_FIELD = "_more", "\0more"
NO_FIELD = "\0"  # the same, for records without any field
LONGEST = 63  # bytes of a name, as PostgreSQL has it
# Beyond these no type of number holds it, though JSON does.
LARGEST_EXPONENT = 10_000
SAFE, LARGE = 2**53, 2**63


class ValueKind(StrEnum):
    """What all values of a column are."""

    NULL = "null"  # so far there is none
    BOOLEAN = "boolean"
    SMALL = "small"  # whole numbers that a float holds as well
    INTEGER = "integer"  # of 64 bits
    FLOAT = "float"
    DIGITS = "digits"  # numbers that neither of both holds, with all their digits
    TEXT = "text"
    JSON = "json"  # objects, lists, and whatever is mixed


NUMBERS = {ValueKind.SMALL, ValueKind.INTEGER, ValueKind.FLOAT, ValueKind.DIGITS}
WIDER = {
    frozenset({ValueKind.SMALL, ValueKind.INTEGER}): ValueKind.INTEGER,
    frozenset({ValueKind.SMALL, ValueKind.FLOAT}): ValueKind.FLOAT,
}


def kind_of(value: object) -> ValueKind:  # noqa: PLR0911 - a table
    """The kind of a value that `decode_exact` gave."""
    match value:
        case None:
            return ValueKind.NULL
        case bool():
            return ValueKind.BOOLEAN
        case int():
            size = abs(value)
            return (
                ValueKind.SMALL if size <= SAFE else ValueKind.INTEGER if -LARGE <= value < LARGE else ValueKind.DIGITS
            )
        case float():
            return ValueKind.FLOAT
        case Decimal():
            return ValueKind.DIGITS if abs(value.adjusted()) <= LARGEST_EXPONENT else ValueKind.JSON
        case str():
            return ValueKind.TEXT
    return ValueKind.JSON


def widen(one: ValueKind, other: ValueKind) -> ValueKind:
    """The kind that holds the values of both."""
    if one is other or other is ValueKind.NULL:
        return one
    if one is ValueKind.NULL:
        return other
    if one in NUMBERS and other in NUMBERS:
        return WIDER.get(frozenset({one, other}), ValueKind.DIGITS)
    return ValueKind.JSON


def cell_of(value: object, kind: ValueKind) -> Any:  # noqa: ANN401 - what a column of that kind holds
    """The value as a column of this kind holds it."""
    if value is None:
        return None
    if kind is ValueKind.FLOAT:
        return float(value)  # type: ignore[arg-type]  # its kind says so
    if kind in (ValueKind.DIGITS, ValueKind.JSON):
        return encode_exact(value).decode()
    return value


class StoredColumn(msgspec.Struct, frozen=True, array_like=True):
    """A column as a mark keeps it."""

    field: str
    name: str
    kind: ValueKind


class Widened(NamedTuple):
    """A column that must hold more from now on."""

    name: str
    before: ValueKind
    now: ValueKind


class ColumnChanges(NamedTuple):
    """What some records need that was not there before."""

    added: list[StoredColumn]
    widened: list[Widened]


class Columns:
    """The columns of a target, in their order."""

    def __init__(self, stored: Iterable[StoredColumn] = (), longest: int = LONGEST) -> None:
        self._columns = {each.field: each for each in stored}
        self._names = {each.name.lower() for each in self._columns.values()}
        self._longest = longest

    @property
    def stored(self) -> tuple[StoredColumn, ...]:
        """All of them."""
        return tuple(self._columns.values())

    def learn(self, records: Sequence[dict[str, object]]) -> ColumnChanges:
        """Make room for these records: what is added, and what is widened."""
        kinds: dict[str, ValueKind] = {}
        for record in records:
            for field, value in record.items():
                kinds[field] = widen(kinds.get(field, ValueKind.NULL), kind_of(value))
        learned = ColumnChanges([], [])
        for field, kind in kinds.items():
            known = self._columns.get(field)
            if known is None:
                self._add(field, kind, learned)
            elif (now := widen(known.kind, kind)) is not known.kind:
                self._columns[field] = msgspec.structs.replace(known, kind=now)
                learned.widened.append(Widened(known.name, known.kind, now))
        if records and not self._columns:
            self._add(NO_FIELD, ValueKind.NULL, learned)  # no table has rows without columns
        return learned

    def _add(self, field: str, kind: ValueKind, learned: ColumnChanges) -> None:
        if MORE_FIELD in self._columns:
            return
        column = StoredColumn(field, self._name(field), kind)
        if len(self._columns) >= MOST:
            column = StoredColumn(MORE_FIELD, self._name(MORE), ValueKind.JSON)
        self._columns[column.field] = column
        self._names.add(column.name.lower())
        learned.added.append(column)

    def _name(self, field: str) -> str:
        """A name that no other column has, whatever strangers call their fields."""
        plain = field.replace("\0", "\N{REPLACEMENT CHARACTER}") or "_"
        name, number = _cut(plain, self._longest), 1
        while name.lower() in self._names:
            number += 1
            name = f"{_cut(plain, self._longest - len(str(number)) - 1)}_{number}"
        return name

    def rows(self, records: Iterable[dict[str, object]]) -> Iterator[list[Any]]:
        """The cells of records that were learned from, in the order of the columns."""
        columns = [(each.field, each.kind) for each in self._columns.values() if each.field != MORE_FIELD]
        full = MORE_FIELD in self._columns
        for record in records:
            cells = [cell_of(record.get(field), kind) for field, kind in columns]
            if full:
                more = {field: value for field, value in record.items() if field not in self._columns}
                cells.append(cell_of(more or None, ValueKind.JSON))
            yield cells


def _cut(name: str, size: int) -> str:
    return name.encode()[:size].decode(errors="ignore")
