"""Read what can be read of a JSON document in which single values are odd, and note what those are.

A decoder of all types at once is quick, and refuses a document for one odd value. What it refused is read here, value
by value: an odd value is as if it were not there, a record without a readable id too. A list that is none, or of other
things, is *unread*: it says nothing, not even that there are no items.
"""

import json
from dataclasses import dataclass, field
from functools import cache
from math import isfinite
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

import msgspec

LONGEST_NOTE, MOST_NOTES = 160, 10
LONGEST_INTEGER = 100  # digits; those of a longer number are kept as a text

R = TypeVar("R", bound=msgspec.Struct)


@dataclass(slots=True)
class Salvaged(Generic[R]):
    """The records of a document that could be read, and what could not."""

    records: list[R]
    notes: list[str] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)  # fields whose list could not be read


def parse_leniently(body: bytes) -> object:
    """The JSON in a body, with what some programs write though JSON has no such thing. Raises ValueError.

    NaN and numbers without end become texts, bytes that are no UTF-8 and halves of characters become U+FFFD.
    """
    try:
        return _whole_characters(
            json.loads(body.decode("utf-8", "replace"), parse_constant=str, parse_int=_integer, parse_float=_number)
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _integer(text: str) -> int | str:
    return int(text) if len(text) <= LONGEST_INTEGER else text


def _number(text: str) -> float | str:
    return value if isfinite(value := float(text)) else text


def _whole_characters(value: object) -> object:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_whole_characters(each) for each in value]
        case dict():
            return {str(_whole_characters(key)): _whole_characters(each) for key, each in value.items()}
    return value


def note(notes: list[str], where: str, found: str) -> None:
    """Note what was found there, if there is room."""
    if len(notes) < MOST_NOTES:
        notes.append(f"{where}: {found}"[:LONGEST_NOTE])


class Salvage:
    """Reads records by their fields; `hook` makes values of the types that the decoder does not know."""

    def __init__(self, hook: Any) -> None:  # noqa: ANN401 - as msgspec has it
        self._hook = hook

    def records(self, kind: type[R], document: object) -> Salvaged[R]:
        """The readable records of a document that should be a list of them. Raises ValueError if it is no list."""
        if not isinstance(document, list):
            raise ValueError(f"found {_shown(document)}, expected an array")  # noqa: TRY004 - it came from outside
        found = Salvaged[R]([])
        for place, value in enumerate(document):
            record = None if value is None else self._record(kind, value, f"$[{place}]", found)
            if record is not None:
                found.records.append(record)
        return found

    def _record(self, kind: type[R], value: object, where: str, found: Salvaged[Any]) -> R | None:
        if not isinstance(value, dict):
            note(found.notes, where, f"found {_shown(value)}, expected an object")
            return None
        values: dict[str, object] = {}
        for name, encoded, hint, item in _fields(kind):
            there = f"{where}.{encoded}"
            if value.get(encoded) is None:
                continue
            if item is None:
                self._set(values, name, hint, value[encoded], there, found)
            elif (items := self._items(item, value[encoded], there, found)) is not None:
                values[name] = items
            else:
                found.unread.add(name)
        if "id" not in values:
            note(found.notes, where, "no readable ID, so this record is left out")
            return None
        return kind(**values)

    def _items(self, item: Any, items: object, where: str, found: Salvaged[Any]) -> list[object] | None:  # noqa: ANN401
        """The items of a list, null for those that cannot be read; None if it is no list, or of other things."""
        if not isinstance(items, list):
            note(found.notes, where, f"found {_shown(items)}, expected an array")
            return None
        read: list[object] = []
        for place, value in enumerate(items):
            there = f"{where}[{place}]"
            if isinstance(item, type) and issubclass(item, msgspec.Struct):
                read.append(None if value is None else self._record(item, value, there, found))
            else:
                values: dict[str, object] = {}
                self._set(values, "", item | None, value, there, found)
                read.append(values.get(""))
        other = all(each is None for each in read) and any(each is not None for each in items)
        return None if other else read

    def _set(
        self,
        values: dict[str, object],
        name: str,
        hint: Any,  # noqa: ANN401 - as typing has it
        value: object,
        where: str,
        found: Salvaged[Any],
    ) -> None:
        try:
            if hint is msgspec.Raw:
                values[name] = msgspec.Raw(msgspec.json.encode(value))
            else:
                values[name] = msgspec.convert(value, hint, dec_hook=self._hook)
        except (msgspec.ValidationError, ValueError, OverflowError) as error:
            note(found.notes, where, str(error))


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, str, Any, Any], ...]:
    """Of each field its name, its name in JSON, its type, and the type of its items if it is a list."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple((each.name, each.encode_name, hints[each.name], _item(hints[each.name])) for each in
                 msgspec.structs.fields(kind))  # fmt: skip


def _item(hint: object) -> object:
    for part in get_args(hint):
        if get_origin(part) is list:
            return get_args(get_args(part)[0])[0]
    return None


def _shown(value: object) -> str:
    return (
        repr(value)[:60] if isinstance(value, str | int | float | None) else f"a value of type {type(value).__name__}"
    )
