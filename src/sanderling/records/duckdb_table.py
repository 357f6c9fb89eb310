"""Tables of a DuckDB file. Numbers that neither BIGINT nor DOUBLE holds are texts of their digits."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sanderling.extras import load
from sanderling.records.columns import StoredColumn, ValueKind, Widened
from sanderling.records.tables import MARKS, TableDatabase, quoted
from sanderling.records.target import TargetError


class DuckdbTables(TableDatabase):
    """A file."""

    types = {  # noqa: RUF012 - of the protocol
        **dict.fromkeys((ValueKind.NULL, ValueKind.DIGITS, ValueKind.TEXT), "VARCHAR"),
        **dict.fromkeys((ValueKind.SMALL, ValueKind.INTEGER), "BIGINT"),
        ValueKind.BOOLEAN: "BOOLEAN",
        ValueKind.FLOAT: "DOUBLE",
        ValueKind.JSON: "JSON",
    }

    def __init__(self, path: Path) -> None:
        self._duckdb = load("duckdb", "DuckDB")
        self.place = str(path)
        self._path = path
        self._db: Any = None

    def open(self) -> None:
        """Open the file, which is made; nobody else may have it open."""
        with self._plainly():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._db = self._duckdb.connect(str(self._path))
        self.run(f"CREATE TABLE IF NOT EXISTS {MARKS} (name VARCHAR PRIMARY KEY, mark VARCHAR NOT NULL)")

    @contextmanager
    def transaction(self) -> Iterator[None]:
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

    def run(self, statement: str, *values: object) -> Sequence[Sequence[Any]]:
        with self._plainly():
            found: list[tuple[Any, ...]] = self._db.execute(statement, values).fetchall()
            return found

    def has_table(self, table: str) -> bool:
        return bool(self.run("SELECT 1 FROM duckdb_tables() WHERE lower(table_name) = lower(?)", table))

    def convert(self, column: Widened) -> str:
        if column.now is ValueKind.JSON and column.before is not ValueKind.DIGITS:
            return f"to_json({quoted(column.name)})"
        return f"CAST({quoted(column.name)} AS {self.types[column.now]})"

    def insert(self, table: str, columns: Sequence[StoredColumn], rows: Iterable[list[Any]]) -> None:
        """Add rows: a column is one parameter, since a row each would take thirty times as long."""
        cells = [list(column) for column in zip(*rows, strict=True)]
        if cells:
            names = ", ".join(quoted(each.name) for each in columns)
            lists = ", ".join(f"unnest(CAST(? AS {self.types[each.kind]}[]))" for each in columns)
            self.run(f"INSERT INTO {quoted(table)} ({names}) SELECT {lists}", *cells)

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        try:
            yield
        except self._duckdb.Error as error:
            raise TargetError(f"{self._path} cannot be written: {error}") from None
        except OSError as error:
            raise TargetError(f"{self._path} cannot be written: {error.strerror or error}") from None
