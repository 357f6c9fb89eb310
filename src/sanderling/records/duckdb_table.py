"""Tables of a DuckDB file. Numbers that neither BIGINT nor DOUBLE holds are texts of their digits."""
# ruff: noqa: S608 - names are quoted, values are parameters

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sanderling.extras import load
from sanderling.records.columns import StoredColumn, ValueKind, Widened
from sanderling.records.sqlite_table import quoted
from sanderling.records.tables import MARKS
from sanderling.records.target import TargetError

TYPES = {
    ValueKind.NULL: "VARCHAR",
    ValueKind.BOOLEAN: "BOOLEAN",
    ValueKind.SMALL: "BIGINT",
    ValueKind.INTEGER: "BIGINT",
    ValueKind.FLOAT: "DOUBLE",
    ValueKind.DIGITS: "VARCHAR",
    ValueKind.TEXT: "VARCHAR",
    ValueKind.JSON: "JSON",
}


class DuckdbTables:
    """A file."""

    def __init__(self, path: Path) -> None:
        self._duckdb = load("duckdb", "DuckDB")
        self.place = str(path)
        self._path = path
        self._opened: Any = None

    @property
    def _db(self) -> Any:  # noqa: ANN401 - duckdb has no types for it
        if self._opened is None:
            raise ValueError(f"{self._path} is not open")
        return self._opened

    def open(self) -> None:
        """Open the file, which is made; nobody else may have it open."""
        with self._plainly():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._opened = self._duckdb.connect(str(self._path))
            self._db.execute(f"CREATE TABLE IF NOT EXISTS {MARKS} (name VARCHAR PRIMARY KEY, mark VARCHAR NOT NULL)")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of it, or nothing."""
        with self._plainly():
            self._db.execute("BEGIN")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise

    def _roll_back(self) -> None:
        try:
            self._db.execute("ROLLBACK")
        except self._duckdb.Error:
            return  # the error that led here has ended the transaction, and is raised on

    def has_table(self, table: str) -> bool:
        """Whether there is one."""
        with self._plainly():
            found = self._db.execute("SELECT 1 FROM duckdb_tables() WHERE lower(table_name) = lower(?)", [table])
            return bool(found.fetchall())

    def read_mark(self, table: str) -> str | None:
        """The mark of a table."""
        with self._plainly():
            row = self._db.execute(f"SELECT mark FROM {MARKS} WHERE name = ?", [table]).fetchone()
        return row[0] if row else None

    def move_mark(self, table: str, before: str | None, now: str) -> bool:
        """Write a mark. Nobody else can have written one since it was read."""
        if before is None:
            self._db.execute(f"INSERT INTO {MARKS} VALUES (?, ?)", [table, now])
        else:
            self._db.execute(f"UPDATE {MARKS} SET mark = ? WHERE name = ?", [now, table])
        return True

    def create(self, table: str, columns: Sequence[StoredColumn]) -> None:
        """Make a table."""
        listed = ", ".join(f"{quoted(each.name)} {TYPES[each.kind]}" for each in columns)
        self._db.execute(f"CREATE TABLE {quoted(table)} ({listed})")

    def add(self, table: str, column: StoredColumn) -> None:
        """Add a column."""
        self._db.execute(f"ALTER TABLE {quoted(table)} ADD COLUMN {quoted(column.name)} {TYPES[column.kind]}")

    def widen(self, table: str, column: Widened) -> None:
        """Change the type of a column."""
        if TYPES[column.before] == TYPES[column.now]:
            return
        name = quoted(column.name)
        way = f"CAST({name} AS {TYPES[column.now]})"
        if column.now is ValueKind.JSON and column.before is not ValueKind.DIGITS:
            way = f"to_json({name})"
        self._db.execute(f"ALTER TABLE {quoted(table)} ALTER COLUMN {name} TYPE {TYPES[column.now]} USING {way}")

    def insert(self, table: str, columns: Sequence[StoredColumn], rows: Iterable[list[Any]]) -> None:
        """Add rows: a column is one parameter, since a row each would take thirty times as long."""
        cells = [list(column) for column in zip(*rows, strict=True)]
        if not cells:
            return
        names = ", ".join(quoted(each.name) for each in columns)
        lists = ", ".join(f"unnest(CAST(? AS {TYPES[each.kind]}[]))" for each in columns)
        self._db.execute(f"INSERT INTO {quoted(table)} ({names}) SELECT {lists}", cells)

    def close(self) -> None:
        """Close the file."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        try:
            yield
        except self._duckdb.Error as error:
            raise TargetError(f"{self._path} cannot be written: {error}") from None
        except OSError as error:
            raise TargetError(f"{self._path} cannot be written: {error.strerror or error}") from None
