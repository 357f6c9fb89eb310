"""What each of Trackside's documents says, as rows.

All are arrays of JSON; those of an event and of a race hold one element. A file may be asked for while it is being
written: it is then empty or cut off, which is an error. Only the results are rightly empty, until there are any.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Any, TypeVar

import msgspec

from sanderling.apis.json_paths import UNREADABLE
from sanderling.apis.polled import Wanted
from sanderling.apis.salvage import Salvage, Salvaged, note, parse_leniently
from sanderling.apis.trackside_fields import Guid, TracksideRecord, clean, read_value, row_of
from sanderling.apis.trackside_records import (
    SCHEMA,
    Channel,
    Detection,
    Pilot,
    Race,
    RaceResult,
    RoundRecord,
    TracksideEvent,
)
from sanderling.outcome import Code
from sanderling.stores.documents import Document, SourceRow, Whole, source_error

R = TypeVar("R", bound=TracksideRecord)
T = TypeVar("T")

DECODERS: Mapping[type[TracksideRecord], msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(list[kind | None], dec_hook=read_value)  # type: ignore[valid-type]
    for kind in (TracksideEvent, Pilot, Channel, RoundRecord, Race, RaceResult)
}
SALVAGE = Salvage(read_value)


def read_event(event: str, body: bytes) -> Salvaged[TracksideEvent]:
    """The event that Event.json holds. Raises SourceError."""
    return _one(_found(TracksideEvent, body), event)


def event_document(found: Salvaged[TracksideEvent]) -> Document:
    """The event, its channels, and who was removed from it; those of its races that it does not list are gone."""
    event = found.records[0]
    key = str(event.id)
    removed = dict.fromkeys(map(str, _there(event.removed_pilots)))
    rows = [row_of("events", event), *_event_channels(event)]
    rows += [SourceRow("event_removed_pilots", f"{key}/{pilot}", {"event": key, "pilot": pilot}) for pilot in removed]
    rows += [row_of("event_pilot_channels", pair, event=key) for pair in _there(event.pilot_channels)]
    parts = {
        name: f"event_{name}" for name in ("channels", "removed_pilots", "pilot_channels") if name not in found.unread
    }
    whole = [_children(part, "event", key, rows) for part in parts.values()]
    if "races" not in found.unread:
        whole.append(Whole("races", "event", key, frozenset(map(str, _there(event.races)))))
    return _document(rows, whole, found.notes)


def _event_channels(event: TracksideEvent) -> Iterator[SourceRow]:
    """The channels with their colours and names, which go by place; there may be more of those."""
    key, colors, names = str(event.id), event.channel_colors or (), event.channel_display_names or ()
    for place, (channel, color, name) in enumerate(zip_longest(event.channels or (), colors, names)):
        if channel:
            look = {"color": clean(color), "display_name": clean(name)}
            values = {"event": key, "channel": str(channel), "place": place, **look}
            yield SourceRow("event_channels", f"{key}/{place}", values)


def pilots_document(wanted: Wanted, body: bytes) -> Document:
    """The pilots of the event. A pilot who is not listed leaves the event, and stays for others."""
    rows: list[SourceRow] = []
    found = _found(Pilot, body)
    for pilot in found.records:
        own = row_of("pilots", pilot)
        rows += [own, SourceRow("event_pilots", f"{wanted.event}/{own.key}", {"event": wanted.event, "pilot": own.key})]
    return _document(rows, [_children("event_pilots", "event", wanted.event, rows)], found.notes)


def channels_document(wanted: Wanted, body: bytes) -> Document:
    """Of all the channels there are, those that are wanted. They belong to no event, so none ever goes."""
    found = _found(Channel, body)
    kept = (channel for channel in found.records if wanted.only is None or channel.id in wanted.only)
    return _document([row_of("channels", channel) for channel in kept], [], found.notes)


def rounds_document(wanted: Wanted, body: bytes) -> Document:
    """The rounds of the event: also those that the event itself leaves out."""
    found = _found(RoundRecord, body)
    rows = [row_of("rounds", each, event=wanted.event) for each in found.records]
    return _document(rows, [_children("rounds", "event", wanted.event, rows)], found.notes)


def results_document(wanted: Wanted, body: bytes) -> Document:
    """The results of the event; an empty body means that there are none."""
    found = _found(RaceResult, body) if body else Salvaged[RaceResult]([])
    strange = [result for result in found.records if result.event and result.event != wanted.event]
    for result in strange[:1] if len(strange) == len(found.records) else ():
        _check_event(result, result.event, wanted)
    for result in strange:
        note(found.notes, f"result {result.id}", f"its Event is {result.event}, expected {wanted.event}; left out")
    rows = [row_of("results", result, event=wanted.event) for result in found.records if result not in strange]
    return _document(rows, [_children("results", "event", wanted.event, rows)], found.notes)


def race_document(wanted: Wanted, body: bytes) -> Document:
    """The race and all that happened in it."""
    found = _one(_found(Race, body), wanted.source_id)
    race, key = found.records[0], wanted.source_id
    _check_event(race, race.event, wanted)
    rows = [row_of("races", race, event=wanted.event)]
    rows += [row_of("pilot_channels", pair, race=key) for pair in _there(race.pilot_channels)]
    rows += [row_of("detections", detection, race=key) for detection in _there(race.detections)]
    rows += [row_of("game_points", point, race=key) for point in _there(race.game_points)]
    if "detections" in found.unread:
        found.unread.add("laps")  # whether they count is not known
    else:
        rows += _laps(race, found.notes)
    parts = (part for part in ("pilot_channels", "detections", "game_points", "laps") if part not in found.unread)
    return _document(rows, [_children(part, "race", key, rows) for part in parts], found.notes)


def _laps(race: Race, notes: list[str]) -> Iterator[SourceRow]:
    detections: dict[str, Detection] = {detection.id: detection for detection in _there(race.detections)}
    for lap in _there(race.laps):
        detection = detections.get(lap.detection) if lap.detection else None
        if lap.detection and not detection:
            note(notes, f"lap {lap.id}", f"names detection {lap.detection}, which the race has not")
            lap = msgspec.structs.replace(lap, detection=None)  # noqa: PLW2901 - the same without it
        counts = detection is not None and detection.valid is True
        yield row_of("laps", lap, race=str(race.id), counts=counts, is_holeshot=lap.lap_number == 0)


def _document(rows: Iterable[SourceRow], whole: Iterable[Whole], notes: list[str]) -> Document:
    """The document of these rows; of two with one id the first counts."""
    kept: dict[tuple[str, str], SourceRow] = {}
    for row in rows:
        if kept.setdefault((row.table, row.key), row) is not row:
            note(notes, row.table, f"{row.key[:60]!r} is listed twice; the first counts")
    return SCHEMA.document(kept.values(), whole, notes)


def _found(kind: type[R], body: bytes) -> Salvaged[R]:
    """The records of a document. Raises SourceError for one of which nothing can be read."""
    if not body:
        raise source_error(Code.INVALID_RESPONSE, "an empty body, expected an array")
    try:
        str(memoryview(body), "utf-8")  # what is skipped over, or kept as it is, is not checked for that
        return Salvaged([each for each in DECODERS[kind].decode(body) if each is not None])
    except msgspec.ValidationError as error:
        whole = source_error(Code.INVALID_RESPONSE, str(error))
    except UNREADABLE as error:
        whole = source_error(Code.PARSE_ERROR, f"{len(body)} bytes that are no JSON: {error}")
    try:
        found = SALVAGE.records(kind, parse_leniently(body))
    except ValueError:
        raise whole from None
    if not found.records:
        raise whole
    if not found.notes:
        note(found.notes, "$", "characters that are no UTF-8")
    return found


def _one(found: Salvaged[R], expected: str) -> Salvaged[R]:
    """The same, if it holds one element and that has this id."""
    if len(found.records) != 1:
        raise source_error(Code.INVALID_RESPONSE, f"{len(found.records)} elements, expected one")
    if found.records[0].id != expected:
        raise source_error(Code.INVALID_RESPONSE, f"$[0].ID is {found.records[0].id}, expected {expected}")
    return found


def _check_event(record: TracksideRecord, event: Guid | None, wanted: Wanted) -> None:
    """What is in the folder of an event may leave the event out, but not name another."""
    if event and event != wanted.event:
        raise source_error(Code.INVALID_RESPONSE, f"Event of {record.id} is {event}, expected {wanted.event}")


def _there(items: Iterable[T | None] | None) -> Iterator[T]:
    """The items that are neither null nor the GUID of zeros."""
    return (item for item in items or () if item)


def _children(table: str, column: str, parent: str, rows: Iterable[SourceRow]) -> Whole:
    return Whole(table, column, parent, frozenset(row.key for row in rows if row.table == table))
