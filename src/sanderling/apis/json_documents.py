"""Documents of one kind, described by settings: where they are, which there are, and what records they hold.

Ids come from strangers and become parts of addresses: they are quoted, and what could lead elsewhere is refused.
"""

import re
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import quote

import msgspec

from sanderling.apis.conditions import Condition
from sanderling.apis.json_paths import UNREADABLE, Path, show_value
from sanderling.apis.polled import PolledKind, Wanted
from sanderling.apis.salvage import note, parse_leniently
from sanderling.ids import host_of
from sanderling.outcome import Code
from sanderling.stores.documents import SourceError, SourceRow, Value, source_error
from sanderling.task import Task

MOST_TARGETS = 100_000
LONGEST_ID = 128
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
BRACES = re.compile(r"\{[^{}]*\}|[{}]")
_DOCUMENT = msgspec.json.Decoder()


class KindSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The section of a kind, as it is written."""

    url: str
    seconds: float
    active_seconds: float | None = None
    priority: int = 0
    ids_url: str | None = None
    ids: str = "."
    items: str = "."
    id: str = "id"
    active_when: str | None = None


@dataclass(frozen=True, slots=True)
class DocumentListing:
    """Where it is written which documents of a kind there are."""

    url: str = field(repr=False)
    ids: Path
    id: Path

    def read_or_note(self, body: bytes, name: str, notes: list[str]) -> list[str] | None:
        """The ids that are listed, each once; None, and a note, if there is no list of ids. Raises SourceError."""
        try:
            return self._read(body, notes)
        except SourceError as error:
            if error.outcome.code is not Code.INVALID_RESPONSE:
                raise
            note(notes, f"list of {name}", str(error))
            return None

    def _read(self, body: bytes, notes: list[str]) -> list[str]:
        found = self.ids.find(decode_document(body, notes))
        if not isinstance(found, list):
            raise source_error(Code.INVALID_RESPONSE, f"{self.ids} is {show_value(found)}, expected a list")
        if len(found) > MOST_TARGETS:
            raise source_error(Code.TOO_LARGE, f"{self.ids} has {len(found)} items, expected at most {MOST_TARGETS}")
        ids: dict[str, None] = {}
        odd: list[SourceError] = []
        for place, each in enumerate(found):
            try:
                ids[id_in(self.id.find(each) if isinstance(each, dict) else each, f"id of {self.ids}[{place}]")] = None
            except SourceError as error:
                odd.append(error)
        _note_odd(odd, notes, any_read=bool(ids))
        return list(ids)


@dataclass(frozen=True, slots=True)
class JsonKind:
    """How documents of a kind are asked for and read."""

    kind: PolledKind
    url: str = field(repr=False)
    listing: DocumentListing | None
    items: Path
    id: Path
    active_when: Condition | None

    @classmethod
    def of(cls, name: str, settings: KindSettings) -> Self:
        """What the section of a kind describes. Raises ValueError."""
        if not NAME.fullmatch(name):
            raise ValueError("found that name, expected up to 40 of a-z, 0-9 and _")
        check_url("url", settings.url, ("{event}",) if settings.ids_url is None else ("{event}", "{id}"))
        if settings.ids_url is not None:
            check_url("ids_url", settings.ids_url, ("{event}",))
            if "{id}" not in settings.url:
                raise ValueError("url has no {id}, expected one, since ids_url lists many")
        if (settings.active_when is None) != (settings.active_seconds is None):
            raise ValueError("expected both of active_when and active_seconds, or none")
        own_id = Path.parse(settings.id)
        return cls(
            PolledKind(name, settings.seconds, settings.active_seconds, settings.priority),
            settings.url,
            None if settings.ids_url is None else DocumentListing(settings.ids_url, Path.parse(settings.ids), own_id),
            Path.parse(settings.items),
            own_id,
            None if settings.active_when is None else Condition.parse(settings.active_when),
        )

    def rows(self, wanted: Wanted, body: bytes, notes: list[str]) -> list[SourceRow]:
        """The records in a document; what is none is noted. Raises SourceError if nothing can be read."""
        found = self.items.find(decode_document(body, notes))
        many = isinstance(found, list)
        rows: dict[str, SourceRow] = {}
        odd: list[SourceError] = []
        for place, record in enumerate(found if isinstance(found, list) else [found]):
            where = f"{self.items}[{place}]" if many else str(self.items)
            try:
                row = self._row(wanted, record, where)
            except SourceError as error:
                odd.append(error)
                continue
            if rows.setdefault(row.key, row) is not row:
                odd.append(source_error(Code.INVALID_RESPONSE, f"{where}: {row.key[:60]!r} is listed twice"))
        _note_odd(odd, notes, any_read=bool(rows))
        return list(rows.values())

    def _row(self, wanted: Wanted, record: object, where: str) -> SourceRow:
        if not isinstance(record, dict):
            raise source_error(Code.INVALID_RESPONSE, f"{where} is {show_value(record)}, expected an object")
        key = id_in(self.id.find(record), f"{self.id} of {where}")
        active = self.active_when is not None and self.active_when.holds(record)
        values: dict[str, Value] = {"event": wanted.event, "target": wanted.source_id}
        # Two documents may list a record of the same id, and each has its own of it.
        own = f"{quote(wanted.source_id, safe='')}/{key}"
        return SourceRow(self.kind.name, own, values | {"active": active, "record": _written(record)})


def check_url(key: str, url: str, places: tuple[str, ...]) -> None:
    """Raises ValueError for an address that cannot be asked, or has other braces than these. It is never shown."""
    if not re.match("https?://", url, re.IGNORECASE):
        raise ValueError(f"{key} does not start with http:// or https://")
    for brace in BRACES.findall(url):
        if brace not in places:
            raise ValueError(f"{key} has {brace[:40]!r} in it, expected {' or '.join(places) or 'no braces'}")
    one, other = (BRACES.sub(filled, url) for filled in ("1", "2"))
    if host_of(one) != host_of(other):
        raise ValueError(f"{key}: expected braces behind the host only, which is the same for all")
    Task(one)  # raises for what cannot be sent


def _note_odd(odd: list[SourceError], notes: list[str], *, any_read: bool) -> None:
    """Note what was left out. Raises the first of it if nothing is left: that is another document."""
    if odd and not any_read:
        raise odd[0]
    for error in odd:
        note(notes, str(error), "left out")


def decode_document(body: bytes, notes: list[str]) -> object:
    """The JSON in a body; what is no strict JSON is noted, and read as far as possible. Raises SourceError."""
    try:
        return _DOCUMENT.decode(body)
    except UNREADABLE as error:
        whole = source_error(Code.PARSE_ERROR, f"{len(body)} bytes that are no JSON: {error}")
    try:
        found = parse_leniently(body)
    except ValueError:
        raise whole from None
    note(notes, "not strict JSON", "NaN and numbers without end are kept as texts")
    return found


def _written(record: dict[str, object]) -> str:
    """A record, always in the same words: an order of names that has changed is no change."""
    try:
        return msgspec.json.encode(record, order="deterministic").decode()
    except (*UNREADABLE, OverflowError) as error:
        raise source_error(Code.INVALID_RESPONSE, f"a record that cannot be kept: {error}") from None


def id_in(value: object, where: str, code: Code = Code.INVALID_RESPONSE) -> str:
    """The id that a number or a text is. Raises SourceError."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    # Dots would be steps through the folders of the host.
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST_ID or text in (".", "..") or not text.isprintable():
        expected = f"expected a number, or up to {LONGEST_ID} printable characters"
        raise source_error(code, f"{where} is {show_value(value)}, {expected}")
    return text
