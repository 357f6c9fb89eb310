"""A source of records in memory, and what each target should give back for a value."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from sanderling.formats.exact_json import decode_exact, encode_exact
from sanderling.stores.record_source import About, Record, Shown


@dataclass
class KeptRecords:
    """Records in a list; positions are numbers."""

    records: list[bytes]
    origin: str = "here"

    def __post_init__(self) -> None:
        self.about = About("jobs", self.origin)

    def read(self, after: str | None = None) -> Iterator[Record]:
        start = int(after or 0)
        for number, record in enumerate(self.records[start:], start + 1):
            yield Record(record, str(number))

    def show(self, key: str) -> Shown:
        return Shown(why=key)

    def close(self) -> None:
        """Nothing is held."""


def plain(value: object) -> Any:
    """A value without the difference between numbers that are equal: what is nested comes back as JSON."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float | Decimal):
        return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if isinstance(value, list):
        return [plain(each) for each in value]
    return {name: plain(each) for name, each in value.items()} if isinstance(value, dict) else value


def same_number(one: str, other: str) -> bool:
    return Decimal(one) == Decimal(other)


def opened_json(text: str) -> Any:
    return plain(decode_exact(text))


def csv_cells(text: str) -> list[list[str | None]]:
    """The rows of a CSV: a text that was quoted keeps its quotes, an empty cell is None."""
    rows: list[list[str | None]] = []
    row: list[str | None] = []
    at = 0
    while at < len(text):
        if text[at] == '"':
            end = at + 1
            while text[end] != '"' or text[end : end + 2] == '""':
                end += 2 if text[end] == '"' else 1
            row.append(text[at : end + 1].replace('""', '"') if end > at + 1 else '""')
            at = end + 1
        else:
            end = at
            while end < len(text) and text[end] not in ",\n":
                end += 1
            row.append(text[at:end] or None)
            at = end
        if at >= len(text) or text[at] == "\n":
            rows.append(row)
            row = []
        elif at + 1 == len(text) or text[at + 1] == "\n":
            row.append(None)
            at += 1
            rows.append(row)
            row = []
        at += 1
    return rows


def encoded(records: Sequence[dict[str, Any]]) -> list[bytes]:
    return [encode_exact(each) for each in records]


def rows_of_sqlite(path: Path, table: str) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(path)) as db:
        found = db.execute(f'SELECT * FROM "{table}" ORDER BY rowid')  # noqa: S608 - ours
        names = [each[0] for each in found.description]
        return [dict(zip(names, row, strict=True)) for row in found]


def loads(text: str) -> Any:
    return json.loads(text, parse_float=Decimal)
