"""Which records are wanted, and what of them: `--where`, `--fields`, `--latest`, `--since`.

Conditions and paths are JMESPath. Numbers are exact: a fraction is a Decimal until it leaves.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import jmespath
import msgspec
from jmespath.exceptions import JMESPathError
from jmespath.parser import ParsedResult

from sanderling.options import OptionError, nearest
from sanderling.records.rows import Entry, RowReader

Record = Mapping[str, Any]

_decode = msgspec.json.Decoder(float_hook=Decimal).decode
_encode = msgspec.json.Encoder(decimal_format="number").encode


class Selection:
    """A choice of records. All of them, until it is narrowed."""

    def __init__(
        self, where: str = "", fields: Sequence[str] = (), *, latest: bool = False, since: str | int | None = None
    ) -> None:
        self.where = where
        self.fields = tuple(fields)
        self.latest = latest
        self.since = None if since is None else str(since)
        self._condition = _compile(where, "--where") if where else None
        self._paths = {path: _compile(path, "--fields") for path in self.fields}
        self._run, self._time = _since(self.since)
        named = [self._condition] if self._condition else []
        named += self._paths.values()
        # The fields that records have to have; each is dropped once one has it.
        self._unseen = {name for each in named for name in _first_names(each.parsed)}
        self._known: set[str] = set()

    def lines(self, rows: RowReader, start: Mapping[str, int] | None = None) -> Iterator[bytes]:
        """The chosen records as they are stored, or of their fields what is wanted; each is a line of JSON."""
        if self._condition is None and not self._paths and self._time is None:
            for entry in self._entries(rows, start):
                yield from entry.lines
            return
        for record in self.records(rows, start):
            yield _encode(record)

    def records(self, rows: RowReader, start: Mapping[str, int] | None = None) -> Iterator[dict[str, Any]]:
        """The chosen records; a fraction is a Decimal."""
        for entry in self._entries(rows, start):
            for line in entry.lines:
                record = _decode(line)
                if not isinstance(record, dict):
                    record = {"value": record}
                if self._unseen or not self._known:
                    self._note_fields(record)
                if self._takes(record):
                    yield {path: each.search(record) for path, each in self._paths.items()} or record

    def check(self) -> None:
        """Raise OptionError if a name that was typed is a field of no record; call it when all were read."""
        for name in sorted(self._unseen if self._known else ()):
            raise OptionError(f"no record has a field {name}{nearest(name, self._known)}")

    def _note_fields(self, record: Record) -> None:
        if len(self._known) < 1000:  # enough to propose one
            self._known.update(record)
        self._unseen.difference_update(record)

    def _takes(self, record: Record) -> bool:
        if self._time is not None and str(record.get("stored", "")) < self._time:
            return False
        try:
            return self._condition is None or bool(self._condition.search(record))
        except JMESPathError:  # a function got a value of another type: this record is not meant
            return False

    def _entries(self, rows: RowReader, start: Mapping[str, int] | None) -> Iterator[Entry]:
        entries = _latest(rows) if self.latest else rows.entries(start)
        return (each for each in entries if each.run >= self._run) if self._run else iter(entries)


def _compile(text: str, typed_as: str) -> ParsedResult:
    try:
        return jmespath.compile(text)
    except JMESPathError as error:
        reason = str(error).partition("\n")[0].rstrip(".:")
        example = "likes > `10` && lang == 'en'" if typed_as == "--where" else "author.name"
        raise OptionError(f"{typed_as}: {text[:200]!r} is no JMESPath: {reason}; write {example}, say") from None


def _first_names(tree: Mapping[str, Any]) -> set[str]:
    """The fields of the record itself that an expression names."""
    match tree["type"]:
        case "field":
            return {tree["value"]}
        case "subexpression" | "index_expression" | "projection" | "value_projection" | "filter_projection" | "pipe":
            return _first_names(tree["children"][0])
        case "expref" | "literal" | "current":
            return set()
    return {name for child in tree["children"] if isinstance(child, dict) for name in _first_names(child)}


def _since(text: str | None) -> tuple[int, str | None]:
    """The run or the time that is meant; a time as records have it, so that texts can be compared."""
    if text is None:
        return 0, None
    if text.isdecimal() and len(text) < 10:
        return int(text), None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        expected = "the number of a run, or a time as in 2026-01-31 or 2026-01-31T12:00"
        raise OptionError(f"--since: found {text[:60]!r}, expected {expected}") from None
    time = time.astimezone(UTC) if time.tzinfo else time
    return 0, time.strftime("%Y-%m-%dT%H:%M:%S")


def _latest(rows: RowReader) -> Iterator[Entry]:
    """Of each key the newest entry. The keys lie on disk, since they may be more than memory holds."""
    with closing(sqlite3.connect("", isolation_level=None)) as seen:
        seen.execute("CREATE TABLE newest (key BLOB PRIMARY KEY, run INTEGER, file TEXT, number INTEGER) WITHOUT ROWID")
        seen.execute("BEGIN")
        seen.executemany(
            "INSERT INTO newest VALUES (?, ?, ?, ?)"
            " ON CONFLICT (key) DO UPDATE SET (run, file, number) = (excluded.run, excluded.file, excluded.number)"
            " WHERE excluded.run >= run",
            rows.places(),
        )
        places = seen.execute("SELECT file, number FROM newest ORDER BY file, number")
        yield from (rows.entry(file, number) for file, number in places)
