"""Trackside: the web server of the timing program at a drone race, which shows its files as they are.

Which event is on is only said by the page at `/`. The event lists its races; each race is a document of its own, and
grows while it is flown. Nothing has an ETag or a date of change.

An event is read before what belongs to it, so pilots, rounds and results wait for it once, and races for all of those
that they name. Whatever is in a document but not stored yet is among what the document needs.
"""

import re
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace

from sanderling.apis import trackside_documents as documents
from sanderling.apis.polled import Discovered, PolledKind, TargetActivity, Wanted
from sanderling.apis.polled_replies import body_of, within
from sanderling.apis.salvage import Salvaged
from sanderling.apis.trackside_fields import RecordKey
from sanderling.apis.trackside_races import RACE, activity_of
from sanderling.apis.trackside_records import SCHEMA, TracksideEvent
from sanderling.outcome import Code
from sanderling.stores.documents import Document, Schema, SourceRow, source_error
from sanderling.task import Reply, Task

_EVENT_ID = re.compile(rb"""new\s{1,8}EventManager\(\s{0,8}["']events/([A-Za-z0-9-]{1,80})["']""")
_BASE = re.compile(r"https?://[^?#]+\Z", re.IGNORECASE)

# The whole in ten seconds, the race that is flown five times a second; channels hardly ever change.
KINDS = (
    PolledKind("event", 10.0, whole=True),
    PolledKind("pilots", 10.0, needs=("event",), whole=True),
    PolledKind("rounds", 10.0, priority=1, needs=("event",), whole=True),
    PolledKind("channels", 60.0),
    PolledKind(RACE, 10.0, active_seconds=0.2, needs=("event", "rounds", "pilots", "channels")),
    PolledKind("results", 2.0, needs=("event", "rounds", "pilots")),
)
PATHS: Mapping[str, str] = {
    "event": "events/{event}/Event.json",
    "pilots": "events/{event}/Pilots.json",
    "rounds": "events/{event}/Rounds.json",
    "channels": "httpfiles/Channels.json",
    RACE: "events/{event}/{id}/Race.json",
    "results": "events/{event}/Results.json",
}


def _event_document(wanted: Wanted, body: bytes) -> Document:
    return documents.event_document(documents.read_event(wanted.event, body))


READ: Mapping[str, Callable[[Wanted, bytes], Document]] = {
    "event": _event_document,
    "pilots": documents.pilots_document,
    "rounds": documents.rounds_document,
    "channels": documents.channels_document,
    RACE: documents.race_document,
    "results": documents.results_document,
}


@dataclass(frozen=True, slots=True)
class Trackside:
    """The server at `base`."""

    base: str
    name: str = field(default="trackside", init=False)
    schema: Schema = field(default=SCHEMA, init=False, repr=False)
    kinds: tuple[PolledKind, ...] = field(default=KINDS, init=False, repr=False)
    watched: tuple[str, ...] = field(default=("rounds", "races"), init=False, repr=False)

    def __post_init__(self) -> None:
        if not _BASE.match(self.base):
            raise ValueError("base of trackside: expected http://host or https://host, perhaps with a path, no query")
        object.__setattr__(self, "base", self.base.rstrip("/"))
        Task(f"{self.base}/")  # raises for a host that cannot be one

    def discover(self) -> Generator[Task, Reply, Discovered]:
        """Ask which event is on, then for the event; end with its documents. Raises SourceError."""
        page = yield Task(f"{self.base}/")
        with within("/", page):
            event = event_id(body_of(page))
        reply = yield self.task(Wanted("event", event, event))
        with within("Event.json", reply):
            found = documents.read_event(event, body_of(reply))
            unread = (RACE,) if "races" in found.unread else ()
            return Discovered(event, wanted_for(found), documents.event_document(found), unread)

    def task(self, wanted: Wanted) -> Task:
        """The question for a target. Raises SourceError for one that cannot be asked about."""
        path, wanted = _checked(wanted)
        return Task(f"{self.base}/{path.format(event=wanted.event, id=wanted.source_id)}")

    def read(self, wanted: Wanted, reply: Reply) -> Document:
        """What a reply says. Raises SourceError."""
        path, wanted = _checked(wanted)
        with within(path.rpartition("/")[2], reply):
            return READ[wanted.kind](wanted, body_of(reply))

    def activity(self, event: str, rows: Iterable[SourceRow]) -> TargetActivity:
        """Which race is flown, and which is the one to look at."""
        return activity_of(event, rows)


def _checked(wanted: Wanted) -> tuple[str, Wanted]:
    """The path of a target, and the target with its ids as they are spelled here. Raises SourceError."""
    path = PATHS.get(wanted.kind)
    if path is None:
        raise source_error(Code.REFUSED, f"kind is {wanted.kind!r:.60}, expected one of {', '.join(PATHS)}")
    try:
        source_id, event = str(RecordKey.read(wanted.source_id)), str(RecordKey.read(wanted.event))
    except ValueError as error:
        raise source_error(Code.REFUSED, f"id or event of a target: {error}") from None
    return path, replace(wanted, source_id=source_id, event=event)


def event_id(page: bytes) -> str:
    """The id of the event that is on, by the page at `/`. Raises SourceError."""
    found = _EVENT_ID.search(page)
    if not found:
        said = f'{len(page)} bytes without an event, expected new EventManager("events/…")'
        raise source_error(Code.INVALID_RESPONSE, said)
    try:
        return str(RecordKey.read(found[1].decode()))
    except ValueError as error:
        raise source_error(Code.INVALID_RESPONSE, f"id of the event: {error}") from None


def wanted_for(found: Salvaged[TracksideEvent]) -> tuple[Wanted, ...]:
    """All that is polled while an event is on. Of all the channels there are, only its own, if it says which."""
    event = found.records[0]
    key = str(event.id)
    named = sorted({str(channel) for channel in event.channels or () if channel})
    channels = None if "channels" in found.unread else tuple(named)
    races = dict.fromkeys(str(race) for race in event.races or () if race)
    return (
        *(Wanted(kind, key, key) for kind in ("event", "pilots", "rounds", "results")),
        Wanted("channels", key, key, only=channels),
        *(Wanted(RACE, race, key) for race in races),
    )
