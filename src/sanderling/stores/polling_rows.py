"""What a document changes in the rows that are stored; what of it can be stored at all; changes as JSON. Pure.

The order of changes is that in which rows can be written one by one, with every reference holding all the while: what
is new, parents first; what differs, which may move from a parent that goes; what goes, children first.
"""

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from math import isfinite
from typing import NamedTuple

import msgspec

from sanderling.outcome import Code
from sanderling.stores.documents import (
    Document,
    Parent,
    Schema,
    SourceError,
    SourceRow,
    SourceTable,
    Value,
    source_error,
)
from sanderling.stores.polling import Field, Op, PolledDocument, PollingStoreError, RowChange

# What tables of a source must not be called: the first are the store's own, the others a database's.
TAKEN = ("polling_", "sqlite_")
# The longest key in bytes, as UTF-8: of what is longer some database cannot make an index.
LONGEST_KEY = 2500
LARGEST, SMALLEST = 2**63 - 1, -(2**63)
# Bytes of changes that are read at once, but for the last of them: each has a whole row, which may be large.
LARGEST_PAGE = 16 << 20
# Edits that are taken at once. The others are taken next time, those noted first before the later ones.
MOST_EDITS = 10_000
# What an admin may set, in words.
FIELDS: Mapping[Field, str] = {
    "enabled": "yes or no",
    "set_seconds": "more than 0 seconds, less than 10,000,000,000",
    "set_priority": "an integer of 64 bits",
}
LONGEST_SECONDS = (
    1e10  # that anything is put off or takes: centuries, and far from where sums of times lose their digits
)

PackedChange = tuple[int, float, str, str, str, str, str, str, str, str]
_VALUES = msgspec.json.Decoder(dict[str, str | int | float | bool | None])
_FIELDS = msgspec.json.Decoder(tuple[str, ...])


class Update(NamedTuple):
    """A row as it should be, and its columns that differ."""

    row: SourceRow
    fields: tuple[str, ...]


class Difference(NamedTuple):
    """What to do so that the rows are as a document says; in this order."""

    insert: tuple[SourceRow, ...]  # parents before children
    update: tuple[Update, ...]
    delete: tuple[Parent, ...]  # without those that refer to them


class KeyQuery(NamedTuple):
    """The question which rows of a table have one of these keys in a column."""

    table: str
    column: str
    keys: frozenset[str]


def difference(
    document: Document, stored: Mapping[Parent, Mapping[str, Value]], there: Sequence[Collection[str]]
) -> Difference:
    """What differs. `stored`: those of its rows that are there; `there`: for each of its Wholes, the keys there now.

    Raises SourceError if it says of a row both that it is there and that it is not.
    """
    listed = {Parent(row.table, row.key): row for row in document.rows}
    insert, update = [], []
    for place, row in listed.items():
        before = stored.get(place)
        if before is None:
            insert.append(row)
        elif not _are_alike(before, row.values):
            update.append(
                Update(row, tuple(name for name, value in row.values.items() if differs(before[name], value)))
            )
    _check_wholes(document)
    wholes = zip(document.whole, there, strict=True)
    leave = [Parent(whole.table, key) for whole, keys in wholes for key in sorted(set(keys) - whole.keys)]
    # One that is listed has moved to another parent.
    return Difference(tuple(insert), tuple(update), tuple(dict.fromkeys(each for each in leave if each not in listed)))


def differs(one: Value, other: Value) -> bool:
    """Whether these are two values. Numbers are the same if they are equal; yes and no are no numbers."""
    return one != other or isinstance(one, bool) is not isinstance(other, bool)


def _are_alike(before: Mapping[str, Value], now: Mapping[str, Value]) -> bool:
    """Whether no value differs. Nearly always so, and then nothing need be looked at one by one."""
    if before == now and list(map(type, before.values())) == list(map(type, now.values())):
        return True
    return not any(differs(before[name], value) for name, value in now.items())


def _check_wholes(document: Document) -> None:
    children = {(whole.table, whole.column, whole.parent): whole.keys for whole in document.whole}
    columns: dict[str, set[str]] = {}
    for whole in document.whole:
        columns.setdefault(whole.table, set()).add(whole.column)
    for row in document.rows:
        for column in columns.get(row.table, ()):
            parent = row.values[column]
            if isinstance(parent, str) and row.key not in children.get((row.table, column, parent), (row.key,)):
                raise _contradiction(Parent(row.table, row.key))


def cascade(
    tables: Sequence[SourceTable], delete: Iterable[Parent]
) -> Generator[KeyQuery, Collection[str], list[Parent]]:
    """Ask who refers to what is deleted, be sent the keys; end with all that goes, children before parents.

    `tables` are in order, parents first. What is new and what differs must be written by then: a row may have moved
    away from a parent that goes.
    """
    going: dict[str, set[str]] = {}
    for each in delete:
        going.setdefault(each.table, set()).add(each.key)
    for table in tables:
        for column in table.columns:
            if keys := going.get(column.references or ""):
                found = yield KeyQuery(table.name, column.name, frozenset(keys))
                going.setdefault(table.name, set()).update(found)
    return [Parent(table.name, key) for table in reversed(tables) for key in sorted(going.get(table.name, ()))]


def check_going(document: Document, going: Iterable[Parent]) -> None:
    """Raises SourceError if something goes that the document itself has: it would never come to rest."""
    kept = {Parent(row.table, row.key) for row in document.rows}
    for each in going:
        if each in kept:
            raise _contradiction(each)


def _contradiction(row: Parent) -> SourceError:
    said = f"{row.table} {row.key[:60]!r} is in the document, and is gone by what the document leaves out"
    return source_error(Code.INVALID_RESPONSE, said)


def changes_of(told: PolledDocument, found: Difference, going: Iterable[Parent], first: int) -> list[RowChange]:
    """The changes, numbered from `first`. `going` is all that goes, children before parents."""
    made: list[tuple[Op, str, str, Mapping[str, Value], tuple[str, ...]]] = []
    made += ((Op.INSERT, row.table, row.key, dict(row.values), ()) for row in found.insert)
    made += ((Op.UPDATE, row.table, row.key, dict(row.values), fields) for row, fields in found.update)
    made += ((Op.DELETE, each.table, each.key, {}, ()) for each in going)
    return [
        RowChange(
            seq=seq,
            at=told.at,
            op=op,
            table=table,
            key=key,
            values=values,
            fields=fields,
            kind=told.kind,
            source_id=told.source_id,
            event=told.event,
        )
        for seq, (op, table, key, values, fields) in enumerate(made, first)
    ]


def packed(change: RowChange) -> PackedChange:
    """A change as a database holds it: values and fields are JSON, all else is as it is, in order."""
    values, fields = (msgspec.json.encode(each).decode() for each in (change.values, change.fields))
    told = (change.kind, change.source_id, change.event)
    return (change.seq, change.at, change.op.value, change.table, change.key, values, fields, *told)


def unpacked(row: PackedChange) -> RowChange:
    """The change that was packed. Raises PollingStoreError if it is none any more."""
    seq, at, op, table, key, values, fields, kind, source_id, event = row
    try:
        return RowChange(
            seq=seq,
            at=at,
            op=Op(op),
            table=table,
            key=key,
            values=_VALUES.decode(values),
            fields=_FIELDS.decode(fields),
            kind=kind,
            source_id=source_id,
            event=event,
        )
    except (ValueError, TypeError, msgspec.MsgspecError) as error:
        raise PollingStoreError(f"change {seq} is damaged: {error}", transient=False) from None


def check_names(schema: Schema) -> None:
    """Raises PollingStoreError if a table of the source has the name of one of ours."""
    for table in schema.tables:
        if table.name.startswith(TAKEN):
            said = f"the source has a table {table.name}, expected none that begins with {' or '.join(TAKEN)}"
            raise PollingStoreError(said, transient=False)


def check_document(document: Document) -> None:
    """Raises SourceError (INVALID_RESPONSE) for what not every database can hold."""
    for row in document.rows:
        _check_key(row.key, f"a key of {row.table}")
        for name, value in row.values.items():
            # What is printable has neither of the two things that are wrong with texts.
            if value is None or (type(value) is str and value.isprintable()):
                continue
            if fault := _fault(value):
                raise source_error(Code.INVALID_RESPONSE, f"{row.table}.{name} of {row.key[:60]!r} {fault}")
    for whole in document.whole:
        _check_key(whole.parent, f"a parent of {whole.table}")
        for key in whole.keys:
            _check_key(key, f"a key of {whole.table}")


def _check_key(key: str, what: str) -> None:
    if 0 < len(key) <= LONGEST_KEY // 4 and key.isprintable():
        return
    fault = _fault(key) or ("is empty" if not key else "")
    if not fault and len(key) > LONGEST_KEY // 4 and (size := len(key.encode())) > LONGEST_KEY:
        fault = f"has {size} bytes, expected at most {LONGEST_KEY}"
    if fault:
        raise source_error(Code.INVALID_RESPONSE, f"{what}, {key[:60]!r}, {fault}")


def _fault(value: Value) -> str:
    """What is wrong with a value; nothing if it can be stored."""
    if isinstance(value, str):
        return "" if is_text(value) else "has a NUL or half a character in it, which cannot be stored"
    if isinstance(value, int):
        return "" if SMALLEST <= value <= LARGEST else "is a number of more than 64 bits"
    return "" if value is None or isfinite(value) else f"is {value}, expected a finite number"


def is_text(text: str) -> bool:
    """Whether every database can hold it: no NUL, and no half of a surrogate pair."""
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def legible(text: str) -> str:
    """The text, with a mark in place of what cannot be stored."""
    return text if is_text(text) else text.encode(errors="replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def validator(text: str) -> str:
    """An ETag or a date as it came; nothing if it cannot be stored, since another one would not be known upstream."""
    return text if is_text(text) else ""


def checked_fields(fields: Mapping[Field, bool | float | int | None]) -> dict[Field, bool | float | int | None]:
    """What an admin sets, as it is stored; None for `enabled` means yes. Raises ValueError for what cannot be set."""
    for name, value in fields.items():
        if name not in FIELDS:
            raise ValueError(f"an admin cannot set {name!r:.60}, expected one of {', '.join(FIELDS)}")
        if not _may_be(name, value):
            raise ValueError(f"{name} cannot be {value!r:.60}, expected {FIELDS[name]}")
    return {name: True if name == "enabled" and value is None else value for name, value in fields.items()}


def _may_be(name: Field, value: object) -> bool:
    if value is None or name == "enabled":
        return value is None or isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if name == "set_seconds":
        return isinstance(value, int | float) and 0 < value < LONGEST_SECONDS
    return isinstance(value, int) and SMALLEST <= value <= LARGEST


def checked_seconds(seconds: float) -> float:
    """How long an acceleration lasts. Raises ValueError for what is no such time."""
    if not 0 <= seconds < LONGEST_SECONDS:
        raise ValueError(
            f"cannot accelerate for {seconds} seconds, expected 0 or more, and less than {LONGEST_SECONDS:,.0f}"
        )
    return float(seconds)
