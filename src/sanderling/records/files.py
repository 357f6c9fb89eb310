"""JSON Lines and CSV in one file, with its mark beside it: FILE and FILE.export.json.

Rows are on disk before the mark is. What stands behind the mark was never counted, and is cut off when it is gone on
with.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from sanderling.formats.exact_json import decode_exact, encode_exact
from sanderling.records.columns import MORE_FIELD, Columns, StoredColumn
from sanderling.records.target import Mark, TargetError, read_mark, take_lock, target_errors, write_mark
from sanderling.stores.durable import sync_folder, write_new
from sanderling.stores.rows_file import RowsFile, reaches

MARK = ".export.json"
DRAFT = ".columns"  # how the name of a CSV ends that is being given more columns
LONGEST_NAME = 1000  # bytes of a column's name in a CSV


class JsonLinesFile:
    """A file of JSON Lines: each record as it is."""

    def __init__(self, path: Path) -> None:
        self.place = str(path)
        self.notes: list[str] = []
        self._path = path
        self._mark_path = path.with_name(path.name + MARK)
        self._rows: RowsFile | None = None
        self._lock = -1

    def open(self) -> Mark | None:
        with target_errors(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # Of the folder's name for the file, not of the file: a CSV that gets more columns is another file then.
            self._lock = take_lock(self._path.with_name(f".{self._path.name}.lock"), self._path)
            mark = self._read_mark()
            self._prepare(mark)
            self._rows = RowsFile(self._path, mark.bytes if mark else 0)
        return mark

    def write(self, records: Sequence[bytes], mark: Mark) -> None:
        with target_errors(self._path):
            self._begin(mark)
            self._append(self._lines(records))
            self._keep(mark)

    def finish(self, mark: Mark) -> None:
        with target_errors(self._path):
            self._keep(mark)

    def close(self) -> None:
        if self._rows is not None:
            self._rows.close()
            self._rows = None
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _begin(self, mark: Mark) -> None:
        """Say whose file it is before the first row: a file with rows and without a mark is somebody else's."""
        if not self._mark_path.exists():
            self._keep(msgspec.structs.replace(mark, position="", records=0, complete=False))

    def _lines(self, records: Sequence[bytes]) -> Iterable[bytes]:
        return records

    def _append(self, lines: Iterable[bytes]) -> None:
        if self._rows is None:
            raise ValueError(f"{self._path} is not open")
        self._rows.append(lines)

    def _keep(self, mark: Mark) -> None:
        length = self._rows.length if self._rows else 0
        write_new(self._mark_path, [write_mark(msgspec.structs.replace(mark, bytes=length)), b"\n"])
        sync_folder(self._path.parent)

    def _read_mark(self) -> Mark | None:
        if self._mark_path.exists():
            return read_mark(self._mark_path.read_bytes(), self._mark_path)
        if self._path.exists() and self._path.stat().st_size:
            raise TargetError(
                f"{self._path} is there, and no export of ours: it has no {self._mark_path.name}. Choose another."
            )
        return None

    def _prepare(self, mark: Mark | None) -> None:
        if mark is not None and not reaches(self._path, mark.bytes):
            size = self._path.stat().st_size if self._path.exists() else 0
            raise TargetError(
                f"{self._path} has {size} bytes, and {self._mark_path.name} counts {mark.bytes}: it was cut short or"
                f" moved. Put it back, or remove {self._mark_path} and begin anew."
            )


class CsvFile(JsonLinesFile):
    """A file of CSV. A column that comes later makes it be written anew, with the wider header."""

    def __init__(self, path: Path, known: Sequence[str] = ()) -> None:
        super().__init__(path)
        self._known = known
        self._columns = Columns(longest=LONGEST_NAME)
        self._has_header = False

    def _prepare(self, mark: Mark | None) -> None:
        draft = self._path.with_name(mark.draft) if mark and mark.draft else None
        if draft is not None and draft.exists():
            draft.replace(self._path)
        for leftover in self._path.parent.glob(f".{self._path.name}*{DRAFT}"):
            leftover.unlink()
        super()._prepare(mark)
        if mark is not None:
            self._columns = Columns(mark.columns, LONGEST_NAME)
            self._has_header = mark.bytes > 0

    def write(self, records: Sequence[bytes], mark: Mark) -> None:
        rows = [decode_exact(record) for record in records]
        if not self._has_header:
            rows.insert(0, dict.fromkeys(self._known))
        added = self._columns.learn(rows).added
        rows = rows if self._has_header else rows[1:]
        with target_errors(self._path):
            self._begin(mark)
            if not self._has_header:
                self._append([csv_line(each.name for each in self._columns.stored)])
                self._has_header = True
            elif added:
                self._add_columns(added, mark)
            self._append(csv_line(cells) for cells in plain_rows(self._columns, rows))
            self._keep(mark)

    def _keep(self, mark: Mark) -> None:
        super()._keep(msgspec.structs.replace(mark, columns=self._columns.stored))

    def _add_columns(self, added: Sequence[StoredColumn], mark: Mark) -> None:
        """Write the file anew with these columns at the end of each row."""
        if self._rows is None:
            raise ValueError(f"{self._path} is not open")
        names = ", ".join(each.name for each in added)
        self.notes.append(f"{self._path} was written anew, since it got columns: {names}")
        before, length = _held_by(self._mark_path), self._rows.length
        draft = self._path.with_name(f".{self._path.name}{DRAFT}")
        with self._path.open("rb") as old, draft.open("wb") as new:
            size = _widen(old, length, new, csv_line(each.name for each in self._columns.stored), len(added))
            new.flush()
            os.fsync(new.fileno())
        # From here on the draft is what counts, whether it has its name yet or not.
        kept = msgspec.structs.replace(before or mark, bytes=size, columns=self._columns.stored)
        write_new(self._mark_path, [write_mark(msgspec.structs.replace(kept, draft=draft.name)), b"\n"])
        sync_folder(self._path.parent)
        draft.replace(self._path)
        sync_folder(self._path.parent)
        self._rows.close()
        self._rows = RowsFile(self._path, size)


def _held_by(path: Path) -> Mark | None:
    return read_mark(path.read_bytes(), path) if path.exists() else None


def _widen(old: BinaryIO, length: int, new: BinaryIO, header: bytes, more: int) -> int:
    """Copy the rows of a CSV with so many empty cells more; how many bytes that makes."""
    rows = _logical_rows(old, length)
    next(rows, None)
    size = new.write(header + b"\n")
    for row in rows:
        size += new.write(row + b"," * more + b"\n")
    return size


def _logical_rows(file: BinaryIO, length: int) -> Iterator[bytes]:
    """The rows of a CSV of ours, without their last line break: one within quotes ends no row."""
    row, at = b"", 0
    for line in file:
        at += len(line)
        if at > length:
            return
        row += line
        if row.count(b'"') % 2 == 0:
            yield row[:-1]
            row = b""


class StreamTarget:
    """Standard output, as JSON Lines or as CSV. It keeps no mark."""

    def __init__(self, file: BinaryIO, *, csv: bool, known: Sequence[str] = ()) -> None:
        self.place = "standard output"
        self.notes: list[str] = []
        self._file = file
        self._known = known
        self._columns = Columns(longest=LONGEST_NAME) if csv else None
        self._begun = False

    def open(self) -> Mark | None:
        return None

    def write(self, records: Sequence[bytes], mark: Mark) -> None:
        del mark
        lines: Iterable[bytes] = records
        if self._columns is not None:
            lines = self._csv(self._columns, [decode_exact(record) for record in records])
        self._file.write(b"".join(chain.from_iterable((line, b"\n") for line in lines)))

    def _csv(self, columns: Columns, rows: list[dict[str, object]]) -> Iterator[bytes]:
        added = columns.learn([dict.fromkeys(self._known), *rows] if not self._begun else rows).added
        if self._begun and added:
            names = ",".join(each.name for each in added)
            raise TargetError(
                f"the header of the CSV is printed, and a record has other fields: {names}."
                " Write to a file with --to FILE, which gets them, or say which you want with --fields."
            )
        if not self._begun:
            yield csv_line(each.name for each in columns.stored)
            self._begun = True
        yield from (csv_line(cells) for cells in plain_rows(columns, rows))

    def finish(self, mark: Mark) -> None:
        del mark
        self._file.flush()

    def close(self) -> None:
        """It stays open."""


def plain_rows(columns: Columns, rows: Iterable[dict[str, object]]) -> Iterator[list[Any]]:
    """Cells as they are, each of its own kind: a CSV has no types of columns."""
    named = [each.field for each in columns.stored]
    for row in rows:
        more = {field: value for field, value in row.items() if field not in named} if MORE_FIELD in named else {}
        yield [(more or None) if field == MORE_FIELD else row.get(field) for field in named]


def csv_line(cells: Iterable[object]) -> bytes:
    """A row of CSV: texts always in quotes, so that null, "", 5 and "5" stay apart; what is nested is quoted JSON."""
    return ",".join(map(_csv_cell, cells)).encode()


def _csv_cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int() | float() | Decimal():
            return encode_exact(value).decode()
        case str():
            text = value
        case _:
            text = encode_exact(value).decode()
    return '"' + text.replace('"', '""') + '"'
