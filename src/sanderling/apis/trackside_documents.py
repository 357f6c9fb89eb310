"""What each of Trackside's documents says, as rows.

All are arrays of JSON; those of an event and of a race hold one element. A file may be asked for while it is being
written: it is then empty or cut off, which is an error. Only the results are rightly empty, until there are any.
"""

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import TypeVar

import msgspec

from sanderling.apis.json_paths import UNREADABLE
from sanderling.apis.polled import Wanted
from sanderling.apis.trackside_fields import Guid, Record, clean, read_value, row_of
from sanderling.apis.trackside_records import SCHEMA, Channel, Detection, Event, Pilot, Race, Result, Round
from sanderling.outcome import Code
from sanderling.stores.documents import Document, Row, Whole, source_error

R = TypeVar("R", bound=Record)
T = TypeVar("T")

EVENT = msgspec.json.Decoder(list[Event], dec_hook=read_value)
PILOTS = msgspec.json.Decoder(list[Pilot | None], dec_hook=read_value)
CHANNELS = msgspec.json.Decoder(list[Channel | None], dec_hook=read_value)
ROUNDS = msgspec.json.Decoder(list[Round | None], dec_hook=read_value)
RACE = msgspec.json.Decoder(list[Race], dec_hook=read_value)
RESULTS = msgspec.json.Decoder(list[Result | None], dec_hook=read_value)


def read_event(event: str, body: bytes) -> Event:
    """The event that Event.json holds. Raises SourceError."""
    return _one(_decoded(EVENT, body), event)


def event_document(event: Event) -> Document:
    """The event, its channels, and who was removed from it; those of its races that it does not list are gone."""
    key = str(event.id)
    removed = dict.fromkeys(map(str, _there(event.removed_pilots)))
    rows = [row_of("events", event), *_event_channels(event)]
    rows += [Row("event_removed_pilots", f"{key}/{pilot}", {"event": key, "pilot": pilot}) for pilot in removed]
    rows += [row_of("event_pilot_channels", pair, event=key) for pair in _there(event.pilot_channels)]
    parts = ("event_channels", "event_removed_pilots", "event_pilot_channels")
    races = Whole("races", "event", key, frozenset(map(str, _there(event.races))))
    return SCHEMA.document(rows, [*(_children(part, "event", key, rows) for part in parts), races])


def _event_channels(event: Event) -> Iterator[Row]:
    """The channels with their colours and names, which go by place; there may be more of those."""
    key, colors, names = str(event.id), event.channel_colors or (), event.channel_display_names or ()
    for place, (channel, color, name) in enumerate(zip_longest(event.channels or (), colors, names)):
        if channel:
            look = {"color": clean(color), "display_name": clean(name)}
            values = {"event": key, "channel": str(channel), "place": place, **look}
            yield Row("event_channels", f"{key}/{place}", values)


def pilots_document(wanted: Wanted, body: bytes) -> Document:
    """The pilots of the event. A pilot who is not listed leaves the event, and stays for others."""
    rows: list[Row] = []
    for pilot in _there(_decoded(PILOTS, body)):
        own = row_of("pilots", pilot)
        rows += [own, Row("event_pilots", f"{wanted.event}/{own.key}", {"event": wanted.event, "pilot": own.key})]
    return SCHEMA.document(rows, [_children("event_pilots", "event", wanted.event, rows)])


def channels_document(wanted: Wanted, body: bytes) -> Document:
    """Of all the channels there are, those that are wanted. They belong to no event, so none ever goes."""
    channels = _there(_decoded(CHANNELS, body))
    kept = (channel for channel in channels if wanted.only is None or channel.id in wanted.only)
    return SCHEMA.document([row_of("channels", channel) for channel in kept])


def rounds_document(wanted: Wanted, body: bytes) -> Document:
    """The rounds of the event: also those that the event itself leaves out."""
    rows = [row_of("rounds", each, event=wanted.event) for each in _there(_decoded(ROUNDS, body))]
    return SCHEMA.document(rows, [_children("rounds", "event", wanted.event, rows)])


def results_document(wanted: Wanted, body: bytes) -> Document:
    """The results of the event; an empty body means that there are none."""
    results = list(_there(_decoded(RESULTS, body))) if body else []
    for result in results:
        _check_event(result, result.event, wanted)
    rows = [row_of("results", result, event=wanted.event) for result in results]
    return SCHEMA.document(rows, [_children("results", "event", wanted.event, rows)])


def race_document(wanted: Wanted, body: bytes) -> Document:
    """The race and all that happened in it."""
    race = _one(_decoded(RACE, body), wanted.source_id)
    _check_event(race, race.event, wanted)
    key = wanted.source_id
    rows = [row_of("races", race, event=wanted.event)]
    rows += [row_of("pilot_channels", pair, race=key) for pair in _there(race.pilot_channels)]
    rows += [row_of("detections", detection, race=key) for detection in _there(race.detections)]
    rows += [row_of("game_points", point, race=key) for point in _there(race.game_points)]
    rows += _laps(race)
    parts = ("pilot_channels", "detections", "game_points", "laps")
    return SCHEMA.document(rows, [_children(part, "race", key, rows) for part in parts])


def _laps(race: Race) -> Iterator[Row]:
    detections: dict[str, Detection] = {detection.id: detection for detection in _there(race.detections)}
    for lap in _there(race.laps):
        detection = detections.get(lap.detection) if lap.detection else None
        if lap.detection and not detection:
            said = f"lap {lap.id} names detection {lap.detection}, which the race has not"
            raise source_error(Code.INVALID_RESPONSE, said)
        counts = detection is not None and detection.valid is True
        yield row_of("laps", lap, race=str(race.id), counts=counts, is_holeshot=lap.lap_number == 0)


def _decoded(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    if not body:
        raise source_error(Code.INVALID_RESPONSE, "an empty body, expected an array")
    try:
        str(memoryview(body), "utf-8")  # what is skipped over, or kept as it is, is not checked for that
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise source_error(Code.INVALID_RESPONSE, str(error)) from None
    except UNREADABLE as error:
        raise source_error(Code.PARSE_ERROR, f"{len(body)} bytes that are no JSON: {error}") from None


def _one(records: list[R], expected: str) -> R:
    """The one element, which must have that id."""
    if len(records) != 1:
        raise source_error(Code.INVALID_RESPONSE, f"{len(records)} elements, expected one")
    if records[0].id != expected:
        raise source_error(Code.INVALID_RESPONSE, f"$[0].ID is {records[0].id}, expected {expected}")
    return records[0]


def _check_event(record: Record, event: Guid | None, wanted: Wanted) -> None:
    """What is in the folder of an event may leave the event out, but not name another."""
    if event and event != wanted.event:
        raise source_error(Code.INVALID_RESPONSE, f"Event of {record.id} is {event}, expected {wanted.event}")


def _there(items: Iterable[T | None] | None) -> Iterator[T]:
    """The items that are neither null nor the GUID of zeros."""
    return (item for item in items or () if item)


def _children(table: str, column: str, parent: str, rows: Iterable[Row]) -> Whole:
    return Whole(table, column, parent, frozenset(row.key for row in rows if row.table == table))
