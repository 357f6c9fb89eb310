"""Exports: every record once, no value changed, whole or not at all, gone on with by --new."""

import csv
import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from sanderling.files import FolderError
from sanderling.options import OptionError
from sanderling.records import export as module
from sanderling.records.collection import Collection
from sanderling.records.columns import MOST
from sanderling.records.export import Exported, export, print_lines
from sanderling.records.rows import RowReader, RowWriter
from sanderling.records.selection import Selection
from sanderling.stores import RowFile

RAW = [
    '{"id":1,"name":"Ann","price":1.50,"tags":["a","b"],"run":1,"stored":"2026-01-01T10:00:00.000Z"}',
    '{"id":"1","name":"say \\"hi\\",\\r\\nyou","big":12345678901234567890123,"run":1,"stored":"2026-01-01T11:00:00"}',
    '{"id":3,"ID":true,"price":0.1234567890123456789012345,"name":"","run":2,"stored":"2026-02-01T10:00:00.000Z"}',
]


class Folder:
    """A crawl's folder whose rows the test adds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files: list[RowFile] = []
        self._count = 0

    def add(self, lines: Sequence[str], run: int = 1, key: int | None = None) -> None:
        writer = RowWriter(self.path, "records", self._files)
        for line in lines:
            self._count += 1
            writer.append((key or self._count).to_bytes(16, "big"), [line.encode()], run)
        self._files = writer.write()
        writer.close()

    def reader(self, _: Path | None = None) -> RowReader:
        return RowReader(self.path, "records", self._files)

    def export(self, name: str, *, new: bool = False, replace: bool = False, **wanted: Any) -> Exported:
        with self.reader() as rows:
            return export(rows, Selection(**wanted), self.path / name, new=new, replace=replace)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.add(RAW[:2])
    made.add(RAW[2:], run=2)
    return made


def of_csv(path: Path) -> list[dict[str, Any]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def of_sqlite(path: Path) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(path)) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute("SELECT * FROM records")]


def of_parquet(path: Path) -> list[dict[str, Any]]:
    from pyarrow import parquet

    rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    return rows


def of_jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line, parse_float=Decimal) for line in path.read_text().splitlines()]


READ: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    "jsonl": of_jsonl,
    "csv": of_csv,
    "sqlite": of_sqlite,
    "parquet": of_parquet,
}


def test_json_lines_are_the_records_byte_for_byte(folder: Folder) -> None:
    folder.export("e.jsonl")

    assert (folder.path / "e.jsonl").read_text().splitlines() == RAW


def test_csv_keeps_numbers_and_texts_apart(folder: Folder) -> None:
    folder.export("e.csv", fields=["id", "name", "price", "tags", "big"])

    assert (folder.path / "e.csv").read_bytes().decode() == (
        '"id","name","price","tags","big"\r\n'
        '1,"Ann",1.50,"[""a"",""b""]",\r\n'
        '"1","say ""hi"",\r\nyou",,,12345678901234567890123\r\n'
        '3,"",0.1234567890123456789012345,,\r\n'
    )


def test_sqlite_has_each_value_as_it_is(folder: Folder) -> None:
    folder.export("e.sqlite")

    rows = of_sqlite(folder.path / "e.sqlite")
    assert [row["id"] for row in rows] == [1, "1", 3]
    assert [row["price"] for row in rows] == [1.5, None, "0.1234567890123456789012345"]
    assert [row["big"] for row in rows] == [None, "12345678901234567890123", None]
    assert rows[0]["tags"] == '["a","b"]'
    assert rows[2]["ID_2"] == 1


def test_parquet_has_types_that_hold_every_value(folder: Folder) -> None:
    folder.add(
        [
            '{"n":9223372036854775807,"b":9223372036854775808,"x":0.5,"d":9007199254740993,"t":true,"m":5}',
            '{"n":-2,"x":2,"d":0.5,"t":null,"m":"5"}',
        ]
    )
    folder.export("e.parquet")

    rows = of_parquet(folder.path / "e.parquet")
    assert [row["id"] for row in rows[:3]] == ["1", '"1"', "3"]
    assert [row["price"] for row in rows[:3]] == ["1.50", None, "0.1234567890123456789012345"]
    assert [row["n"] for row in rows[3:]] == [2**63 - 1, -2]
    assert rows[3]["b"] == "9223372036854775808"
    assert [row["x"] for row in rows[3:]] == [0.5, 2.0]
    assert [row["d"] for row in rows[3:]] == ["9007199254740993", "0.5"]
    assert [row["t"] for row in rows[3:]] == [True, None]
    assert [row["m"] for row in rows[3:]] == ["5", '"5"']


def test_fields_beyond_the_most_columns_are_together_in_the_last(folder: Folder) -> None:
    folder.add([json.dumps({f"c{number}": number for number in range(MOST + 5)})])

    for kind in ("sqlite", "csv", "parquet"):
        folder.export(f"e.{kind}", where="c0 == `0`")
        (row,) = READ[kind](folder.path / f"e.{kind}")
        assert len(row) == MOST + 1
        assert json.loads(row["_more"]) == {f"c{number}": number for number in range(MOST, MOST + 5)}


@pytest.mark.parametrize("kind", ["jsonl", "csv", "sqlite"])
def test_new_adds_what_has_come_since(folder: Folder, kind: str) -> None:
    name = f"e.{kind}"
    folder.export(name, new=True)
    once = READ[kind](folder.path / name)

    assert folder.export(name, new=True).written == 0
    assert READ[kind](folder.path / name) == once

    folder.add(['{"id":4}'])
    assert folder.export(name, new=True).written == 1
    assert [str(row["id"]) for row in READ[kind](folder.path / name)] == ["1", "1", "3", "4"]

    folder.add(['{"id":5,"later":"x"}'])
    done = folder.export(name, new=True)
    assert done.new_columns == ([] if kind == "jsonl" else ["later"])
    rows = READ[kind](folder.path / name)
    assert [str(row["id"]) for row in rows] == ["1", "1", "3", "4", "5"]
    assert rows[4]["later"] == "x"
    assert [row.get("later") or None for row in rows[:4]] == [None] * 4


class Killed(BaseException):
    """As if the process were gone: nothing is cleaned up."""


def die_at(step: int, patch: pytest.MonkeyPatch) -> None:
    """The step after which this process is gone, of all that change the disk."""
    steps = iter(range(1, 100))
    for name in ("write_file", "sync", "sync_folder"):
        real = getattr(module, name)

        def call(*arguments: object, real: Callable[..., None] = real) -> None:
            if next(steps) == step:
                raise Killed
            real(*arguments)

        patch.setattr(module, name, call)


@pytest.mark.parametrize("kind", ["jsonl", "csv", "sqlite"])
@pytest.mark.parametrize("widens", [False, True])
def test_an_export_that_is_killed_anywhere_is_gone_on_with(
    folder: Folder, kind: str, widens: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"e.{kind}"
    folder.export(name, new=True)
    folder.add(['{"id":4,"late":1}' if widens else '{"id":4}'] * 3)
    torn = b"" if kind == "sqlite" else b"torn"
    for step in range(1, 8):
        with monkeypatch.context() as patch:
            die_at(step, patch)
            try:
                folder.export(name, new=True)
            except Killed:
                with (folder.path / name).open("ab") as file:
                    file.write(torn)

    folder.export(name, new=True)
    assert [str(row["id"]) for row in READ[kind](folder.path / name)] == ["1", "1", "3", "4", "4", "4"]


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("e.jsonl", {}),  # it exists
    ("e.jsonl", {"new": True, "where": "id == `1`"}),  # it holds another selection
    ("e.sqlite", {"new": True, "fields": ["id"]}),
    ("other.jsonl", {"new": True}),  # no export wrote it
    ("e.txt", {}),
    ("new.jsonl", {"new": True, "replace": True}),
    ("new.jsonl", {"new": True, "latest": True}),
    ("new.parquet", {"new": True}),
    ("new.jsonl", {"where": "id = 1"}),
    ("new.jsonl", {"where": "idd == `1`"}),  # no record has it
    ("new.csv", {"fields": ["id", "nam"]}),
    ("new.sqlite", {"fields": ["nam"]}),
    ("new.jsonl", {"since": "yesterday"}),
    ("other.sqlite", {"replace": True}),  # no database
]


@pytest.mark.parametrize(("name", "wanted"), REFUSED)
def test_what_is_refused_changes_nothing(folder: Folder, name: str, wanted: dict[str, Any]) -> None:
    folder.export("e.jsonl")
    folder.export("e.sqlite")
    for other in ("other.jsonl", "other.sqlite"):
        (folder.path / other).write_bytes(b"somebody's " * 1000)
    before = {path.name: path.read_bytes() for path in folder.path.iterdir()}

    with pytest.raises((OptionError, FolderError)):
        folder.export(name, **wanted)

    assert {path.name: path.read_bytes() for path in folder.path.iterdir()} == before


def test_replace_writes_anew(folder: Folder) -> None:
    for kind, read in READ.items():
        folder.export(f"e.{kind}")
        folder.export(f"e.{kind}", replace=True, where="id == `3`")
        assert [str(row["id"]) for row in read(folder.path / f"e.{kind}")] == ["3"]


def test_other_tables_of_a_database_stay(folder: Folder) -> None:
    with closing(sqlite3.connect(folder.path / "mine.sqlite")) as database:
        database.execute("CREATE TABLE mine (a)")
    folder.export("mine.sqlite", new=True)
    folder.export("mine.sqlite", replace=True)

    with closing(sqlite3.connect(folder.path / "mine.sqlite")) as database:
        assert database.execute("SELECT count(*) FROM mine").fetchone() == (0,)


CHOSEN: list[tuple[dict[str, Any], list[Any]]] = [
    ({"where": "price > `1`"}, [1]),
    ({"where": "contains(name, 'hi')"}, ["1"]),  # where name is no text, no error
    ({"where": "length(tags) == `2`"}, [1]),
    ({"since": 2}, [3]),
    ({"since": "2026-01-01T10:30"}, ["1", 3]),
    ({"since": "2026-01-01T12:30:00+02:00"}, ["1", 3]),
    ({"latest": True}, ["1", 3, "new"]),
    ({"latest": True, "where": "name == 'Ann'"}, []),
]


@pytest.mark.parametrize(("wanted", "ids"), CHOSEN)
def test_what_is_wanted_is_what_comes(folder: Folder, wanted: dict[str, Any], ids: list[Any]) -> None:
    if "latest" in wanted:
        folder.add(['{"id":"new","name":"x","run":2}'], run=2, key=1)

    with folder.reader() as rows:
        assert [each["id"] for each in Selection(**wanted).records(rows)] == ids
        assert [json.loads(line)["id"] for line in Selection(**wanted).lines(rows)] == ids


def test_fields_are_paths(folder: Folder) -> None:
    to = StringIO()
    with folder.reader() as rows:
        print_lines(rows, Selection(fields=["id", "tags[0]", "price"]), to)

    assert to.getvalue().splitlines() == [
        '{"id":1,"tags[0]":"a","price":1.50}',
        '{"id":"1","tags[0]":null,"price":null}',
        '{"id":3,"tags[0]":null,"price":0.1234567890123456789012345}',
    ]


def test_records_from_python(folder: Folder) -> None:
    posts = Collection(folder.path, folder.reader)

    assert [each["id"] for each in posts] == [1, "1", 3]
    assert list(posts.where("id == `1`").fields("name", "price")) == [{"name": "Ann", "price": 1.5}]
    assert list(posts.where("run == `1`").where("big > `5`").fields("id")) == [{"id": "1"}]
    assert isinstance(next(iter(posts))["price"], float)
    assert posts.since(2).count() == posts.latest().since("2026-02-01").count() == 1
    assert next(iter(posts.since(2)))["price"] == Decimal("0.1234567890123456789012345")
    with pytest.raises(OptionError):
        list(posts.fields("idd"))
