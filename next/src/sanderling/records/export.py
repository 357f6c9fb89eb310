"""Exports of records to JSON Lines, CSV, Parquet and SQLite: whole or not at all, and gone on with by `--new`.

A mark says which folder and selection a target holds, and up to where: in a file beside it (`posts.csv.export.json`),
or in its table `sanderling_export`, changed with the rows in one transaction.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import msgspec

from sanderling.files import DRAFT, FolderError, disk_errors, disk_full, sync, sync_folder, write_file
from sanderling.options import OptionError
from sanderling.records.columns import Columns, ValueKind, encode_json, plain
from sanderling.records.rows import RowReader
from sanderling.records.selection import Selection

KINDS = (".jsonl", ".csv", ".parquet", ".sqlite")
_TOGETHER = 10_000  # rows of a group of Parquet


class Mark(msgspec.Struct, frozen=True):
    """What a target holds."""

    folder: str  # of the crawl
    where: str
    fields: list[str]
    latest: bool
    since: str | None
    position: dict[str, int]  # entries of each file of rows
    length: int = 0  # bytes of the target; -1: it is being replaced
    columns: list[str] = []

    def is_of(self, other: "Mark") -> bool:
        """Whether both are the same selection of the same folder."""
        mine, others = (msgspec.structs.replace(each, position={}, length=0, columns=[]) for each in (self, other))
        return mine == others


class Exported(msgspec.Struct, frozen=True):
    """What an export did."""

    to: str
    written: int
    new_columns: list[str] = []


def export(
    rows: RowReader, selection: Selection, target: Path, *, replace: bool = False, new: bool = False
) -> Exported:
    """Write the chosen records to `target`, whose name says as what; `new` adds what it does not hold yet."""
    kind = target.suffix.lower()
    if kind not in KINDS:
        raise OptionError(f"--to: found {str(target)!r}, expected a path that ends in {', '.join(KINDS)}, or -")
    if new and (selection.latest or kind == ".parquet"):
        found = "--latest" if selection.latest else "--to of a Parquet file"
        raise OptionError(f"{found} and --new: such an export is written whole; give --replace instead of --new")
    if new and replace:
        raise OptionError("--new and --replace: give one of them")
    mark = Mark(
        str(rows.folder.resolve()),
        selection.where,
        list(selection.fields),
        selection.latest,
        selection.since,
        rows.position(),
    )
    if target.exists() and not (new or replace):
        raise FolderError(f"{target} exists", "give --replace to write it anew, or --new to add what is new")
    with disk_errors(target):
        if kind == ".sqlite":
            return _SqliteExport(rows, selection, target, mark).write(new=new, replace=replace)
        return _FileExport(rows, selection, target, mark, kind).write(new=new)


def read_export(target: Path, folder: Path) -> Mark:
    """What a file holds that an export of a folder has written. Raises FolderError for any other."""
    with disk_errors(target):
        try:
            if target.suffix.lower() == ".sqlite":
                with closing(sqlite3.connect(f"file:{target}?mode=ro", uri=True)) as database:
                    ((text,),) = database.execute("SELECT mark FROM sanderling_export WHERE name = 'records'")
            else:
                text = target.with_name(f"{target.name}.export.json").read_bytes()
            mark = msgspec.json.decode(text, type=Mark)
        except (FileNotFoundError, sqlite3.Error, ValueError):
            raise FolderError(
                f"{target} is no export that says what it holds", "name one of sanderling export"
            ) from None
    if mark.folder != str(folder.resolve()) or not target.exists():
        raise FolderError(f"{target} is an export of {mark.folder}", f"name one of {folder}")
    return mark


def export_again(rows: RowReader, target: Path, mark: Mark) -> Exported:
    """Write an export anew, so that nothing of what it held before is in its file."""
    selection = Selection(mark.where, mark.fields, latest=mark.latest, since=mark.since)
    done = export(rows, selection, target, replace=True)
    if target.suffix.lower() == ".sqlite":
        with disk_errors(target), closing(sqlite3.connect(target, timeout=30, isolation_level=None)) as database:
            database.execute("VACUUM")
    return done


def print_lines(rows: RowReader, selection: Selection, to: TextIO) -> None:
    """Write the chosen records as JSON Lines."""
    to.writelines(line.decode() + "\n" for line in selection.lines(rows))
    selection.check()


class _FileExport:
    """An export to one file: to a draft that takes its place, or to its end."""

    def __init__(self, rows: RowReader, selection: Selection, target: Path, mark: Mark, kind: str) -> None:
        self._rows = rows
        self._selection = selection
        self._target = target
        self._mark = mark
        self._kind = kind
        self._mark_path = target.with_name(f"{target.name}.export.json")

    def write(self, *, new: bool) -> Exported:
        """Write what is wanted, and what the target holds then."""
        before = self._read_mark() if new and self._target.exists() else None
        if before is not None and before.length >= 0:
            columns = self._columns(before)
            if columns is None or [column.field for column in columns] == before.columns:
                return self._append(before, columns)
        return self._write_whole(before)

    def _read_mark(self) -> Mark:
        """The mark of a target that --new may touch."""
        try:
            before = msgspec.json.decode(self._mark_path.read_bytes(), type=Mark)
        except (FileNotFoundError, msgspec.DecodeError):
            advice = "give --replace to write it anew, or another path"
            raise FolderError(f"{self._target} was not written by an export that says what it holds", advice) from None
        _check_same(self._target, before, self._mark)
        if before.length > self._target.stat().st_size:
            raise FolderError(f"{self._target} is shorter than the export that wrote it", "give --replace")
        return before

    def _columns(self, before: Mark | None) -> Columns | None:
        """The columns of CSV and Parquet, which have to be known before the first row; None for JSON Lines."""
        if self._kind == ".jsonl":
            return None
        columns = Columns(before.columns if before else self._selection.fields)
        kinds = self._kind == ".parquet"
        if kinds or not self._selection.fields:
            for record in self._selection.records(self._rows, before.position if before else None):
                columns.learn(record, kinds=kinds)
        return columns

    def _append(self, before: Mark, columns: Columns | None) -> Exported:
        with self._target.open("r+b") as file:
            file.truncate(before.length)  # what a killed export wrote behind it
            file.seek(before.length)
            count = self._write_rows(file, columns, before.position)
            file.flush()
            sync(file.fileno())
            length = file.tell()
        self._write_mark(length, columns)
        return Exported(str(self._target), count)

    def _write_whole(self, before: Mark | None) -> Exported:
        columns = self._columns(None)
        draft = self._target.with_name(f".{self._target.name}{DRAFT}")
        try:
            with draft.open("wb") as file:
                if columns is not None and self._kind == ".csv":
                    file.write(_csv_line([column.field for column in columns]))
                count = self._write_rows(file, columns, None)
                file.flush()
                sync(file.fileno())
                length = file.tell()
            self._selection.check()
            # A kill between these leaves a target that is ours and of unknown length: the next one replaces it.
            self._write_mark(-1, columns)
            os.replace(draft, self._target)  # noqa: PTH105 - as in files.py
            sync_folder(self._target.parent)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        self._write_mark(length, columns)
        added = [column.field for column in columns or () if before and column.field not in before.columns]
        return Exported(str(self._target), count, added)

    def _write_mark(self, length: int, columns: Columns | None) -> None:
        held = [column.field for column in columns or ()]
        mark = msgspec.structs.replace(self._mark, length=length, columns=held)
        write_file(self._mark_path, msgspec.json.encode(mark))

    def _write_rows(self, file: BinaryIO, columns: Columns | None, start: Mapping[str, int] | None) -> int:
        if columns is None:
            lines: Iterator[bytes] = (line + b"\n" for line in self._selection.lines(self._rows, start))
        elif self._kind == ".csv":
            lines = (_csv_line(columns.row(each)) for each in self._selection.records(self._rows, start))
        else:
            return _write_parquet(file, columns, self._selection.records(self._rows, start))
        count = 0
        for line in lines:
            file.write(line)
            count += 1
        return count


def _check_same(target: Path, before: Mark, mark: Mark) -> None:
    if not before.is_of(mark):
        found = f"{target} holds an export of {before.folder} with other options"
        raise FolderError(found, "give the same --where, --fields and --since, or --replace to write it anew")


def _csv_line(values: Sequence[Any]) -> bytes:
    """A line of CSV (RFC 4180): texts and JSON are in quotes, numbers, true, false and null (nothing) are not."""
    return ",".join(map(_csv_value, values)).encode() + b"\r\n"


def _csv_value(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return '"' + value.replace('"', '""') + '"'
        case dict() | list():
            return _csv_value(encode_json(value).decode())
    return str(value)


def _write_parquet(file: BinaryIO, columns: Columns, records: Iterator[dict[str, Any]]) -> int:
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra, and 60 ms
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise FolderError("Parquet needs pyarrow", "run: pip install 'sanderling[parquet]'") from None
    types: dict[ValueKind, Any] = {
        ValueKind.TRUTH: pa.bool_(),
        ValueKind.INTEGER: pa.int64(),
        ValueKind.DOUBLE: pa.float64(),
    }
    of_columns = list(columns)
    schema = pa.schema(
        [
            pa.field(
                column.name,
                types.get(column.kind, pa.string()),
                metadata={"field": column.field, "kind": column.kind.name.lower()},
            )
            for column in of_columns
        ]
    )
    count = 0
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        while group := [columns.row(record) for _, record in zip(range(_TOGETHER), records, strict=False)]:
            arrays = [
                pa.array([column.fit(value) for value in values], field.type)
                for column, field, values in zip(of_columns, schema, zip(*group, strict=True), strict=True)
            ]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
            count += len(group)
    return count


class _SqliteExport:
    """An export to a table of a SQLite file; other tables there are not touched."""

    def __init__(self, rows: RowReader, selection: Selection, target: Path, mark: Mark) -> None:
        self._rows = rows
        self._selection = selection
        self._target = target
        self._mark = mark

    def write(self, *, new: bool, replace: bool) -> Exported:
        """Write what is wanted, in one transaction."""
        is_new = not self._target.exists()
        try:
            with closing(sqlite3.connect(self._target, timeout=30, isolation_level=None)) as database:
                database.execute("BEGIN IMMEDIATE")
                exported = self._write(database, new=new, replace=replace)
                database.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            if "full" in str(error):
                raise disk_full(self._target) from error
            raise FolderError(f"{self._target}: {error}", "choose another path") from error
        except BaseException:
            if is_new:
                self._target.unlink(missing_ok=True)
            raise
        return exported

    def _write(self, database: sqlite3.Connection, *, new: bool, replace: bool) -> Exported:
        database.execute("CREATE TABLE IF NOT EXISTS sanderling_export (name TEXT PRIMARY KEY, mark TEXT)")
        before = self._before(database) if new else None
        if replace:
            database.execute("DROP TABLE IF EXISTS records")
        columns = Columns(before.columns if before else self._selection.fields)
        held = len(before.columns) if before else 0
        insert, count = "", 0
        for record in self._selection.records(self._rows, before.position if before else None):
            if columns.learn(record, kinds=False) or not insert:
                insert = _widen(database, [column.name for column in columns], held)
                held = len(list(columns))
            database.execute(insert, [plain(value) for value in columns.row(record)])
            count += 1
        if not held:
            _widen(database, ["value"], held)
        if before is None:
            self._selection.check()
        fields = [column.field for column in columns]
        mark = msgspec.structs.replace(self._mark, columns=fields)
        text = msgspec.json.encode(mark).decode()
        database.execute("INSERT OR REPLACE INTO sanderling_export VALUES (?, ?)", ("records", text))
        return Exported(str(self._target), count, [field for field in fields if before and field not in before.columns])

    def _before(self, database: sqlite3.Connection) -> Mark | None:
        found = database.execute("SELECT mark FROM sanderling_export WHERE name = ?", ("records",)).fetchone()
        if found is None:
            with contextlib.suppress(sqlite3.OperationalError):  # no such table
                database.execute("SELECT 1 FROM records")
                found_text = f"{self._target} has a table records that no export wrote"
                raise FolderError(found_text, "give --replace to write it anew, or another path")
            return None
        before = msgspec.json.decode(found[0], type=Mark)
        _check_same(self._target, before, self._mark)
        return before


def _widen(database: sqlite3.Connection, names: Sequence[str], held: int) -> str:
    """Give the table the columns behind the first `held`, which it has; the statement that adds a row."""
    # Columns without a type keep 5 and "5" apart.
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    if held == 0:
        database.execute(f"CREATE TABLE records ({', '.join(quoted)})")
    else:
        for name in quoted[held:]:
            database.execute(f"ALTER TABLE records ADD COLUMN {name}")
    return f"INSERT INTO records VALUES ({', '.join('?' * len(names))})"  # noqa: S608 - only marks
