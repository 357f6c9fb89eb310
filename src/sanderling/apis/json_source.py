"""Any JSON API whose documents are to be polled, described by a few settings and no code.

    name = "scores"
    headers = { Accept = "application/json" }
    event_url = "https://scores.example/now"               # which event is on; without it there is one, called `name`
    event = "current.id"                                   # where that document has the event's id

    [kinds.match]
    url = "https://scores.example/{event}/match/{id}"      # where a document is
    ids_url = "https://scores.example/{event}/matches"     # what there is to poll; without it one document, the event's
    ids = "matches"                                        # where that document has its list: ids, or records with one
    items = "."                                            # where a document has its record, or a list of them
    id = "id"                                              # where a record has its id
    active_when = 'state = "live"'                         # when a record makes its document active
    seconds = 10.0
    active_seconds = 0.2
    priority = 0

`event`, `ids`, `items` and `id` are paths (`json_paths.py`), `active_when` is a condition about a record
(`conditions.py`). Each kind is a table of its records as they came; those that a document does not list any more go.
"""

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import quote

import msgspec

from sanderling.apis.json_documents import BRACES, NAME, JsonKind, KindSettings, check_url, decode_document, id_in
from sanderling.apis.json_paths import Path
from sanderling.apis.polled import Discovered, PolledKind, TargetActivity, TargetName, Wanted
from sanderling.apis.polled_replies import body_of, within
from sanderling.outcome import Code
from sanderling.stores.documents import (
    Column,
    ColumnKind,
    Document,
    Schema,
    SourceRow,
    SourceTable,
    Whole,
    source_error,
)
from sanderling.task import Headers, Reply, Task


class _Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    kinds: dict[str, KindSettings]
    headers: dict[str, str] = {}
    event_url: str | None = None
    event: str = "."


_COLUMNS = (Column("event"), Column("target"), Column("active", ColumnKind.BOOLEAN), Column("record"))


@dataclass(frozen=True, slots=True)
class JsonSource:
    """One such API. Of headers and addresses only what cannot be a secret is ever shown."""

    name: str
    documents: Mapping[str, JsonKind]
    headers: Headers = field(default=(), repr=False)
    event_at: tuple[str, Path] | None = field(default=None, repr=False)  # the address that says which event is on

    @classmethod
    def from_settings(cls, settings: Mapping[str, object]) -> Self:
        """The source that a section of a configuration describes. Raises ValueError."""
        try:
            read = msgspec.convert(settings, _Settings)
        except msgspec.ValidationError as error:  # which shows no values
            raise ValueError(f"settings of a source: {error}") from None
        if not NAME.fullmatch(read.name):
            raise ValueError(f"name is {read.name[:60]!r}, expected up to 40 of a-z, 0-9 and _")
        if not read.kinds:
            raise ValueError(f"source {read.name} has no kinds, expected one or more")
        documents = {name: _kind(name, section) for name, section in read.kinds.items()}
        if read.event_url is not None:
            check_url("event_url", read.event_url, ())
        event_at = None if read.event_url is None else (read.event_url, Path.parse(read.event))
        source = cls(read.name, documents, tuple(read.headers.items()), event_at)
        source._task("http://host.example/", "", "")  # raises for headers that cannot be sent
        return source

    @property
    def schema(self) -> Schema:
        """A table for each kind."""
        return Schema(tuple(SourceTable(name, _COLUMNS) for name in self.documents))

    @property
    def kinds(self) -> tuple[PolledKind, ...]:
        """The kinds of its targets."""
        return tuple(each.kind for each in self.documents.values())

    @property
    def watched(self) -> tuple[str, ...]:
        """The tables whose rows say what is active."""
        return tuple(name for name, each in self.documents.items() if each.active_when is not None)

    def discover(self) -> Generator[Task, Reply, Discovered]:
        """Ask which event is on, then for the lists; end with all that they list. Raises SourceError."""
        event = self.name
        notes: list[str] = []
        if self.event_at is not None:
            url, path = self.event_at
            reply = yield self._task(url, "", "")
            with within("event", reply):
                event = id_in(path.find(decode_document(body_of(reply), notes)), str(path))
        wanted: list[Wanted] = []
        unread: list[str] = []
        for name, each in self.documents.items():
            if each.listing is None:
                wanted.append(Wanted(name, event, event))
                continue
            reply = yield self._task(each.listing.url, event, "")
            with within(f"list of {name}", reply):
                ids = each.listing.read_or_note(body_of(reply), name, notes)
            if ids is None:
                unread.append(name)
            wanted += [Wanted(name, source_id, event) for source_id in ids or ()]
        return Discovered(event, tuple(wanted), self.schema.document((), (), notes), tuple(unread))

    def task(self, wanted: Wanted) -> Task:
        """The question for a target. Raises SourceError for one that cannot be asked about."""
        return self._task(self._about(wanted).url, wanted.event, wanted.source_id)

    def read(self, wanted: Wanted, reply: Reply) -> Document:
        """What a reply says. Raises SourceError."""
        about = self._about(wanted)
        with within(f"{wanted.kind} {wanted.source_id}", reply):
            notes: list[str] = []
            rows = about.rows(wanted, body_of(reply), notes)
            keys = frozenset(row.key for row in rows)
            return self.schema.document(rows, [Whole(wanted.kind, "target", wanted.source_id, keys)], notes)

    def activity(self, event: str, rows: Iterable[SourceRow]) -> TargetActivity:
        """The documents with a record for which the rule holds; the current one is the first of those."""
        live = (row for row in rows if row.values["active"] is True and row.values["event"] == event)
        active = frozenset(TargetName(row.table, str(row.values["target"])) for row in live)
        return TargetActivity(active, min(active, default=None))

    def _about(self, wanted: Wanted) -> JsonKind:
        id_in(wanted.source_id, "id of a target", Code.REFUSED)
        id_in(wanted.event, "event of a target", Code.REFUSED)
        about = self.documents.get(wanted.kind)
        if about is None:
            said = f"kind is {wanted.kind!r:.60}, expected one of {', '.join(self.documents)}"
            raise source_error(Code.REFUSED, said)
        return about

    def _task(self, url: str, event: str, source_id: str) -> Task:
        parts = {"{event}": quote(event, safe=""), "{id}": quote(source_id, safe="")}
        return Task(BRACES.sub(lambda found: parts[found[0]], url), headers=self.headers)


def _kind(name: str, section: KindSettings) -> JsonKind:
    try:
        return JsonKind.of(name, section)
    except ValueError as error:
        raise ValueError(f"kind {name[:60]!r}: {error}") from None
