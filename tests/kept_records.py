"""Records in memory as a source, and what comes back out of targets made comparable."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from sanderling.formats.exact_json import decode_exact, encode_exact
from sanderling.records.columns import StoredColumn, ValueKind
from sanderling.stores import frontier_file
from sanderling.stores.frontier_file import FrontierMeta
from sanderling.stores.record_source import Record, RecordLookup, SourceDescription


@dataclass
class KeptRecords:
    """Records in a list; positions are numbers."""

    records: list[bytes]
    origin: str = "here"

    def __post_init__(self) -> None:
        self.about = SourceDescription("jobs", self.origin)

    def read(self, after: str | None = None) -> Iterator[Record]:
        start = int(after or 0)
        for number, record in enumerate(self.records[start:], start + 1):
            yield Record(record, str(number))

    def show(self, key: str) -> RecordLookup:
        return RecordLookup(why=key)

    def close(self) -> None:
        """Nothing is held."""


NUMBERS = st.one_of(
    st.integers(-(10**40), 10**40),
    st.sampled_from([0, 2**53, 2**53 + 1, -(2**63), 2**63 - 1, 2**63, 2**64]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(-(10**30), 10**30, places=18),
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3))
FIELDS = st.one_of(st.sampled_from(["id", "ID", "a", "b", "", "x" * 70, 'q"uote', "_more"]), TEXTS)
RECORDS = st.lists(st.dictionaries(FIELDS, VALUES, max_size=4), max_size=12)


def encoded(records: Iterable[Mapping[str, Any]]) -> list[bytes]:
    return [encode_exact(each) for each in records]


def plain(value: Any) -> Any:  # noqa: ANN401 - whatever JSON says
    """A value whose numbers are equal if they are the same number."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return Decimal(value)


def expected(records: Iterable[Mapping[str, Any]], *, nulls: bool = False) -> list[dict[str, Any]]:
    """Records as they should come back: a table does not tell a field that is null from one that is missing."""
    return [{name: plain(value) for name, value in each.items() if nulls or value is not None} for each in records]


def from_cells(row: Mapping[str, Any], columns: Sequence[StoredColumn]) -> dict[str, Any]:
    """The record that the cells of a row are, each of the kind of its column."""
    return {
        each.field: _value(row[each.name], each.kind)
        for each in columns
        if row.get(each.name) is not None and not each.field.startswith("\0")
    }


def _value(cell: Any, kind: ValueKind) -> Any:  # noqa: ANN401 - of a database
    if kind is ValueKind.JSON:
        return plain(decode_exact(str(cell)))
    if kind is ValueKind.BOOLEAN:
        return bool(cell)
    if kind is ValueKind.TEXT:
        return cell
    return Decimal(repr(cell)) if isinstance(cell, float) else Decimal(cell)


def from_jsonl(data: bytes) -> list[dict[str, Any]]:
    return [plain(decode_exact(line)) for line in data.split(b"\n") if line]


def csv_cell(value: Any) -> str | None:  # noqa: ANN401 - whatever JSON says
    """What a cell of CSV should read like: a text in its quotes."""
    if value is None:
        return None
    if isinstance(value, str):
        return f'"{value}"'
    text = encode_exact(decode_exact(encode_exact(value))).decode()
    return f'"{text}"' if isinstance(value, list | dict) else text


def read_csv(text: str) -> list[list[str | None]]:
    """The rows of a CSV, character by character: what stood in quotes keeps them, what is empty is None."""
    rows: list[list[str | None]] = [[]]
    cell, quoted, at = "", False, 0
    while at < len(text):
        sign = text[at]
        if sign == '"' and quoted and text[at : at + 2] == '""' and len(cell) > 0:
            cell, at = cell + '"', at + 1
        elif sign == '"':
            cell, quoted = cell + sign, not quoted
        elif sign in ",\n" and not quoted:
            rows[-1].append(cell or None)
            cell = ""
            if sign == "\n":
                rows.append([])
        else:
            cell += sign
        at += 1
    return rows[:-1]


def make_job(folder: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """A folder as a job leaves it that has kept these records."""
    folder.mkdir(exist_ok=True)
    lines = b"".join(line + b"\n" for line in encoded(records))
    (folder / "records.jsonl").write_bytes(lines + b'{"torn":')
    (folder / "frontier.db").unlink(missing_ok=True)
    plan = '{"name":"made","arguments":{}}'
    frontier_file.create(folder / "frontier.db", FrontierMeta(plan=plan, watermark=len(lines), started=1.0))
