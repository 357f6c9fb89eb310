"""Documents of FPVTrackside's web server into rows. Pure; one odd value costs its field only.

Upstream always answers 200: with nothing for a file that is missing, with index.html for most paths, with a part of a
file that is being written.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import msgspec

from sanderling.polling.race import is_set
from sanderling.polling.tables import RECORDS, RecordColumn, Row, Value

LARGEST = 8 << 20  # bytes of a document
MOST_ROWS = 20_000  # of one list; a race day has some hundreds
_LONGEST_ID = 128
_LONGEST_TEXT = 8192
_MARK = b'new EventManager("events/'
_ID_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")


class DocumentError(ValueError):
    """What came is not the document that was requested: cut, empty or something else."""


@dataclass(frozen=True, slots=True)
class DocumentScope:
    """Rows of a table for which a document is the whole truth: what it does not list is gone."""

    table: str
    column: str
    value: str
    only_without: str = ""  # a column that is empty in all of them


@dataclass(slots=True)
class Document:
    """What a document says."""

    rows: dict[str, dict[str, Row]] = field(default_factory=dict)  # by table and key
    scopes: list[DocumentScope] = field(default_factory=list)
    races: list[str] | None = None  # of an event; None where it does not say
    odd: list[str] = field(default_factory=list)  # fields that were left as they are
    absent: bool = False  # there is no such file


def path_of(kind: str, event: str, source_id: str) -> str:
    """Where a target's document is."""
    match kind:
        case "race":
            return f"/events/{event}/{source_id}/Race.json"
        case "results":
            return f"/events/{event}/Results.json" if source_id == event else f"/events/{event}/{source_id}/Result.json"
        case "channels":
            return "/httpfiles/Channels.json"
    return f"/events/{event}/{kind.capitalize()}.json"


def read_event_id(page: bytes) -> str:
    """The id of the event that is open, of the page at `/`. Raises DocumentError."""
    at = page[: 1 << 20].find(_MARK)
    if at < 0:
        raise DocumentError(f"found {_beginning(page)}, expected the page of FPVTrackside with its event")
    rest = page[at + len(_MARK) : at + len(_MARK) + _LONGEST_ID + 1]
    length = next((place for place, letter in enumerate(rest) if letter not in _ID_LETTERS), _LONGEST_ID)
    if not length:
        raise DocumentError("the page of FPVTrackside names no event")
    return rest[:length].decode()


def read_current(body: bytes) -> tuple[bool, str | None]:
    """Whether upstream says which race is selected, and which one."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return False, None
    if not isinstance(found, dict) or "CurrentRace" not in found:
        return False, None
    return True, _id(found["CurrentRace"])


def read_document(kind: str, event: str, source_id: str, body: bytes) -> Document:
    """The rows of a document. Raises DocumentError."""
    document = Document()
    if not body.strip():
        if kind in ("race", "results"):  # folders that hold no race have none, for ever; results come at the end
            document.absent = True
            return document
        raise DocumentError("found nothing, expected a JSON array")
    try:
        items = msgspec.json.decode(body)
    except RecursionError:
        raise DocumentError("found JSON that is nested too deeply") from None
    except msgspec.DecodeError as error:
        raise DocumentError(f"found {_beginning(body)}, expected a JSON array ({error})") from None
    if not isinstance(items, list):
        raise DocumentError(f"found {_beginning(body)}, expected a JSON array")
    match kind:
        case "event":
            _event(_one(items, event), event, document)
        case "race":
            _race(_one(items, source_id), event, source_id, document)
        case "results":
            _results(items, event, source_id, document)
        case _:
            own = {"event": event} if kind == "rounds" else {}
            _rows(kind, items, own, document)
    return document


def _beginning(body: bytes) -> str:
    return repr(body[:40].decode(errors="replace"))


def _one(items: list[Any], wanted: str) -> dict[str, Any]:
    """The one object of Event.json and Race.json."""
    found = [each for each in items if isinstance(each, dict)]
    for each in found:
        if each.get("ID") == wanted:
            return each
    if len(found) == 1 and _id(found[0].get("ID")) is None:
        return found[0]
    raise DocumentError(f"found {len(items)} objects, expected the one with ID {wanted[:40]}")


def _event(content: dict[str, Any], event: str, document: Document) -> None:
    row = _row("events", content, document)
    document.rows["events"] = {event: row}
    races = content.get("Races")
    if isinstance(races, list):
        document.races = list(dict.fromkeys(filter(None, map(_id, races))))[:MOST_ROWS]
    removed = content.get("RemovedPilots")
    gone = set(filter(None, map(_id, removed))) if isinstance(removed, list) else None
    pairs = content.get("PilotChannels")
    if not isinstance(pairs, list) or gone is None:
        document.odd.append("events.PilotChannels" if gone is not None else "events.RemovedPilots")
        return
    rows: dict[str, Row] = {}
    whole = True
    for each in pairs[:MOST_ROWS]:
        pilot = _id(each.get("Pilot")) if isinstance(each, dict) else None
        if pilot is None:
            whole = False
            continue
        rows[f"{event}:{pilot}"] = {
            "event": event, "pilot": pilot, "channel": _id(each.get("Channel")), "removed": pilot in gone
        }  # fmt: skip
    for pilot in gone:
        rows.setdefault(f"{event}:{pilot}", {"event": event, "pilot": pilot, "channel": None, "removed": True})
    document.rows["eventPilots"] = rows
    if whole:
        document.scopes.append(DocumentScope("eventPilots", "event", event))


def _race(content: dict[str, Any], event: str, race: str, document: Document) -> None:
    document.rows["races"] = {race: {**_row("races", content, document), "event": event}}
    own = {"event": event, "race": race}
    for name, table in (
        ("PilotChannels", "pilotChannels"),
        ("Detections", "detections"),
        ("Laps", "laps"),
        ("GamePoints", "gamePoints"),
    ):
        items = content.get(name)
        if not isinstance(items, list):
            if name in content and not (name == "GamePoints" and items is None):
                document.odd.append(f"races.{name}")
            continue
        if _rows(table, items, own, document):
            document.scopes.append(DocumentScope(table, "race", race))


def _results(items: list[Any], event: str, source_id: str, document: Document) -> None:
    """Ids of results are new each time: they are told apart by race, pilot and type."""
    rows: dict[str, Row] = {}
    whole = len(items) <= MOST_ROWS
    of_event = source_id == event
    for each in items[:MOST_ROWS]:
        pilot = _id(each.get("Pilot")) if isinstance(each, dict) else None
        if pilot is None:
            whole = False
            continue
        row = _row("results", each, document)
        race = row.get("race") if of_event else source_id
        place = race or row.get("round") or event
        rows[f"{place}:{pilot}:{row.get('resultType') or ''}"] = {**row, "event": event, "race": race}
    document.rows["results"] = rows
    if whole:
        scope = (
            DocumentScope("results", "event", event, "race")
            if of_event
            else DocumentScope("results", "race", source_id)
        )
        document.scopes.append(scope)


def _rows(table: str, items: list[Any], own: Mapping[str, str], document: Document) -> bool:
    """Add the rows of a list; whether it is whole."""
    rows: dict[str, Row] = {}
    whole = len(items) <= MOST_ROWS
    for each in items[:MOST_ROWS]:
        key = _id(each.get("ID")) if isinstance(each, dict) else None
        if key is None:
            whole = False
            document.odd.append(f"{table}.ID")
            continue
        rows[key] = {**_row(table, each, document), **own}
    document.rows[table] = rows
    return whole


def _row(table: str, content: Mapping[str, Any], document: Document) -> Row:
    """The columns that a document says something of that their types can hold."""
    row: Row = {}
    for column in RECORDS[table]:
        if column.field not in content:
            continue
        try:
            row[column.name] = _value(column, content[column.field])
        except ValueError:
            document.odd.append(f"{table}.{column.field}")
    return row


def _value(column: RecordColumn, value: object) -> Value:
    """A value as its column holds it. Raises ValueError for what it cannot hold."""
    match column.kind, value:
        case ("text", None):
            return None
        case ("text", str()):
            if len(value) > _LONGEST_TEXT:
                raise ValueError
            return _plain(value)
        case ("date", str()):
            return _plain(value)[:64] if is_set(value) else None
        case ("bool", bool()):
            return value
        case (("int" | "real"), bool()):
            raise ValueError
        case ("int", int()) if -(2**63) <= value < 2**63:
            return value
        case ("int", float()) if value.is_integer() and abs(value) < 2**53:
            return int(value)
        case ("real", int() | float()) if isfinite(value) and abs(value) < 1e300:
            return float(value)
        case ("list", list()):
            return msgspec.json.encode(value).decode()
    raise ValueError


def _plain(text: str) -> str:
    return text.replace("\0", "")


def _id(value: object) -> str | None:
    """An id as one can be kept and put into a path."""
    if isinstance(value, str) and 0 < len(value) <= _LONGEST_ID and _ID_LETTERS.issuperset(value.encode()):
        return value
    return None


def odd_fields(document: Document) -> Iterator[str]:
    """Each field that was left as it is, once."""
    yield from dict.fromkeys(document.odd)
