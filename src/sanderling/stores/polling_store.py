"""The store of `polling` in a SQL database: targets, rows, changes and settings.

`polling_documents` has what is done with rows and changes. What a database does in its own way is in `sqlite_polling`
and `postgres_polling`.
"""
# ruff: noqa: S608 - all names are ours, all values are parameters

import importlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from sanderling.executor import Executor
from sanderling.extras import load
from sanderling.stores.database import (
    ColumnType,
    DatabaseTrouble,
    Insert,
    Row,
    SqlCondition,
    Transaction,
    encoded,
)
from sanderling.stores.documents import Schema
from sanderling.stores.documents import SourceRow as DocumentRow
from sanderling.stores.polling import (
    EXPECTED,
    ChangeSpan,
    Edits,
    Field,
    KnownTarget,
    PolledDocument,
    PollingStoreError,
    PollingTarget,
    Query,
    Reconciliation,
    RowChange,
    StoredTargetCounts,
    TargetRun,
    WantedTarget,
)
from sanderling.stores.polling_documents import Documents, DocumentStatements, Tables
from sanderling.stores.polling_lease import PollingDatabase
from sanderling.stores.polling_rows import check_document, checked_fields, checked_seconds, is_text

T = TypeVar("T")
Changes = list[RowChange]  # within the class, `list` is a method
Targets = list[PollingTarget]

COLUMNS = ", ".join(f'"{name}"' for name in PollingTarget.__struct_fields__)
FIND = f"SELECT {COLUMNS} FROM polling_targets WHERE kind = ? AND source_id = ?"
KNOWN = """SELECT id, kind, source_id, event, "only", seconds, priority, gone FROM polling_targets ORDER BY id"""
POSITION = "SELECT seq FROM polling_positions WHERE name = ?"
ADVANCE = "INSERT INTO polling_positions VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET seq = excluded.seq"
SET = "INSERT INTO polling_settings VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
UNSET = "DELETE FROM polling_settings WHERE key = ?"

TEXT, NUMBER, WHOLE = ColumnType("", "text"), ColumnType("", "float8"), ColumnType("", "bigint")
LISTED = ColumnType(
    "",
    "text[]",
    travels="text",
    made="CASE WHEN {0} IS NOT NULL THEN ARRAY(SELECT json_array_elements_text({0}::json)) END",
    packed=lambda only: None if only is None else encoded(only),
)
FOUND = {"kind": TEXT, "source_id": TEXT, "event": TEXT, '"only"': LISTED, "seconds": NUMBER, "priority": WHOLE}


PASSING = (DatabaseTrouble.BUSY, DatabaseTrouble.AWAY, DatabaseTrouble.FULL, DatabaseTrouble.FAILED)


def raised(message: str, trouble: DatabaseTrouble) -> PollingStoreError:
    """The error of the port."""
    return PollingStoreError(message, transient=trouble in PASSING)


class Statements(NamedTuple):
    """What a database says in its own words."""

    enabled: str
    paused: str
    any_kind: str  # that there is some kind, so that a target is found by its id alone
    promote: str  # asks for all that are meant and polled; seconds, and what is meant
    settings: str
    differs: str  # whether {0} and {1} differ, if neither or both are NULL
    no_bytes: str
    clamp: str  # lets those be due that are so later than they can be, and those that were put in by hand
    shift: Sequence[str]
    lock: str  # those among a list, so that nobody waits in a ring; nothing where nobody else writes meanwhile
    documents: DocumentStatements


def as_found(said: Statements, new: str, wall: str) -> str:
    """What discovery sets. If other parts of a document are wanted, it is due, and read again."""
    again = said.differs.format('its."only"', new.format('"only"'))
    read_again = {"next_due": wall, "etag": "''", "modified": "''", "digest": said.no_bytes}
    same = ", ".join(f"{name} = {new.format(name)}" for name in ("event", '"only"', "seconds", "priority"))
    other = ", ".join(f"{name} = CASE WHEN {again} THEN {to} ELSE its.{name} END" for name, to in read_again.items())
    return f"{same}, gone = NULL, {other}"


def insert_found(said: Statements) -> Insert:
    """Inserts targets that are due then; one that somebody else has put in meanwhile is no trouble."""
    changed = as_found(said, "excluded.{0}", "excluded.next_due")
    then = f"ON CONFLICT (kind, source_id) DO UPDATE SET {changed}"
    return Insert("polling_targets", FOUND, then, same={"next_due": NUMBER})


class PollingDialect(Protocol):
    """What a database does in its own way."""

    said: Statements

    async def rows(self, db: Transaction, query: str, *values: object) -> list[Row]:
        """What a query gives, also of texts that somebody has damaged."""

    def target(self, row: Row) -> PollingTarget:
        """A target, from its columns."""

    def known(self, row: Row) -> KnownTarget:
        """One that discovery knows."""

    async def due(self, db: Transaction, after: tuple[float, int], until: float, most: int) -> list[PollingTarget]:
        """Those that are wanted and due, in order."""

    async def listed(self, db: Transaction, query: Query, meant: SqlCondition) -> list[PollingTarget]:
        """A page of what is meant."""

    async def count(self, db: Transaction, wall: float) -> StoredTargetCounts:
        """How many there are."""

    async def fetched(self, db: Transaction) -> set[tuple[str, str]]:
        """Event and kind of those that ever went well."""

    async def write(self, database: PollingDatabase, runs: Sequence[TargetRun]) -> None:
        """Write these back."""

    async def take_edits(self, database: PollingDatabase, wall: float) -> Edits:
        """Those that were noted first; they are noted no more."""

    async def update(self, db: Transaction, changed: Mapping[int, WantedTarget], wall: float) -> None:
        """Change targets to what discovery says."""


class PollingStore:
    """See `open_polling`."""

    def __init__(self, database: PollingDatabase, tables: Tables, dialect: PollingDialect) -> None:
        self.database = self._database = database
        self._tables = tables
        self._documents = Documents(dialect.said.documents, tables, database.dialect)
        self._dialect = dialect
        self._said = dialect.said

    # --- for whoever polls ---

    async def claim(self, wall: float) -> None:
        """Be the one who polls, until `close`. Raises PolledElsewhereError if another process is.

        Targets that are due later than max(interval, LONGEST_PAUSE) from now are due now: their clock was another.
        """

        async def clamp(db: Transaction) -> None:
            await db.execute(self._said.clamp, wall)

        await self._database.take_over(clamp)

    async def due(self, after: tuple[float, int], until: float, most: int) -> list[PollingTarget]:
        """Those that are wanted and due behind `after` (next_due and id) and up to `until`, in that order."""
        return await self._database.peek(lambda db: self._dialect.due(db, after, until, most))

    async def find(self, kind: str, source_id: str) -> PollingTarget | None:
        """The one of that name."""
        if not (is_text(kind) and is_text(source_id)):
            return None
        found = await self._database.peek(lambda db: self._dialect.rows(db, FIND, kind, source_id))
        return self._dialect.target(found[0]) if found else None

    async def write(self, runs: Sequence[TargetRun]) -> None:
        """Write these back, in one transaction; those that are no more are passed over. A crash may undo the last."""
        await self._dialect.write(self._database, runs)

    async def take_edits(self, wall: float) -> Edits:
        """The next edits, of some thousand targets at most; none if there are no more.

        Promotions that are taken become due times, durably.
        """
        return await self._dialect.take_edits(self._database, wall)

    async def shift(self, seconds: float) -> None:
        """Move all due times and ends of acceleration: the wall clock was set."""

        async def work(db: Transaction) -> None:
            for statement in self._said.shift:
                await db.execute(statement, *((seconds,) if "?" in statement else ()))

        await self._database.write(work)

    # --- for discovery ---

    async def known(self) -> list[KnownTarget]:
        """All of them, those that are gone too."""
        return [self._dialect.known(row) for row in await self._rows(KNOWN)]

    async def apply(self, plan: Reconciliation, wall: float) -> None:
        """Do so in one transaction. New ones are due at `wall`; if `only` changed, it is due then, and read again.

        One that somebody else has put in meanwhile is no trouble.
        """
        if any(plan):
            await self._database.write(partial(self._apply, plan=plan, wall=wall))

    async def _apply(self, db: Transaction, plan: Reconciliation, wall: float) -> None:
        changed = dict(plan.update)
        new = {(each.kind, each.source_id): each for each in plan.insert}
        for each in (*changed.values(), *new.values()):
            _check_texts(each)
        among = db.dialect.among.format("id")
        # All of them lock in one order, so that nobody waits in a ring.
        if self._said.lock:
            await db.execute(self._said.lock, [*changed, *plan.gone, *plan.delete])
        await db.execute(f"DELETE FROM polling_targets WHERE {among}", [*plan.delete])
        await db.execute(f"UPDATE polling_targets SET gone = ? WHERE {among} AND gone IS NULL", wall, [*plan.gone])
        if changed:
            await self._dialect.update(db, changed, wall)
        await db.insert(insert_found(self._said), [each for _, each in sorted(new.items())], wall)

    async def fetched(self) -> set[tuple[str, str]]:
        """Event and kind of all targets that went well at least once."""
        return await self._database.read(self._dialect.fetched)

    # --- documents and changes ---

    async def keep(self, told: PolledDocument) -> list[RowChange]:
        """Store what differs, and who said so: all of it or nothing. Gives the changes in order.

        If the connection breaks while it is committed, nobody knows whether it was. The same document can be kept again
        and changes what is left to change; what had been committed is among the changes, and in no other answer.
        """
        return await self._database.write(
            lambda db: self._documents.keep(db, told), first=lambda: check_document(told.document)
        )

    async def rows(
        self, table: str, *, event: str | None = None, after: str = "", most: int = 1000
    ) -> list[DocumentRow]:
        """Rows of a table behind a key, in the order of keys; of one event, if the table has such a column.

        Raises KeyError if there is none of that name.
        """
        name = self._tables.known[table].name
        return await self._database.read(lambda db: self._documents.rows(db, name, event, after, most))

    async def purge(self, wall: float) -> dict[str, int]:
        """Remove all rows and all targets; settings stay. Gives how many, by table, and under "targets"."""
        return await self._database.write(lambda db: self._documents.purge(db, wall))

    async def changes(self, after: int, most: int) -> list[RowChange]:
        """The next ones after a number, in order."""
        return await self._database.read(lambda db: self._documents.changes(db, after, most))

    async def span(self) -> ChangeSpan:
        """From where to where they go."""
        return await self._database.read(self._documents.span)

    async def trim(self, keep: int) -> int:
        """Forget all but the last so many; say how many went."""
        return await self._database.edit(lambda db: self._documents.trim(db, keep), durable=False)

    # --- for people ---

    async def change(self, kind: str, source_id: str, fields: Mapping[Field, bool | float | int | None]) -> bool:
        """Set what an admin may set; None goes back to what discovery says. Whether there is such a target.

        Raises ValueError for what cannot be set.
        """
        checked = checked_fields(fields)
        if not (is_text(kind) and is_text(source_id)):
            return False
        # One that sets nothing says all the same whether there is such a target.
        values = ", ".join(f"{name} = ?" for name in checked) or "enabled = enabled"
        statement = f"UPDATE polling_targets SET {values} WHERE kind = ? AND source_id = ?"
        return await self._edit(statement, *checked.values(), kind, source_id) > 0

    async def promote(self, query: Query, seconds: float) -> int:
        """Ask for these to be run now, and accelerated for so many seconds. Paused ones are passed over. How many.

        All that a query means, not only a page of them. Raises ValueError.
        """
        asked, meant = checked_seconds(seconds), self._meant(query)
        return await self._edit(self._said.promote.format(meant.sql), asked, *meant.values) if meant else 0

    def _meant(self, query: Query) -> SqlCondition | None:
        """What a query means, but for its page; None if no target can be meant."""
        names = (query.kind, query.source_id, query.event)
        if not all(name is None or is_text(name) for name in names):
            return None
        said = self._said
        terms: list[tuple[bool, str, tuple[object, ...]]] = [
            (query.kind is not None, "kind = ?", (query.kind,)),
            (query.source_id is not None and query.kind is None, said.any_kind, ()),
            (query.source_id is not None, "source_id = ?", (query.source_id,)),
            (query.event is not None, "event = ?", (query.event,)),
            (query.enabled is True, said.enabled, ()),
            (query.enabled is False, said.paused, ()),
            (query.gone is True, "gone IS NOT NULL", ()),
            (query.gone is False, "gone IS NULL", ()),
            (query.due_before is not None, "next_due <= ?", (query.due_before,)),
            (query.accelerated_at is not None, "until > ?", (query.accelerated_at,)),
        ]
        meant = [(sql, values) for holds, sql, values in terms if holds]
        conditions = " AND ".join([sql for sql, _ in meant] or ["true"])
        return SqlCondition(conditions, tuple(value for _, values in meant for value in values))

    async def count(self, wall: float) -> StoredTargetCounts:
        """How many there are."""
        return await self._database.read(lambda db: self._dialect.count(db, wall))

    async def settings(self) -> dict[str, str]:
        """All of them."""
        return {row[0]: row[1] for row in await self._rows(self._said.settings)}

    async def position(self, name: str) -> int | None:
        """The number of the last change it has; None if it is new."""
        found = await self._database.read(lambda db: db.fetch(POSITION, name))
        return int(found[0][0]) if found else None

    async def advance(self, name: str, seq: int) -> None:
        """Note that it has all up to there. A crash may undo the last of it: then it is told once more."""
        await self._database.edit(lambda db: db.execute(ADVANCE, name, seq), durable=False)

    async def _rows(self, query: str) -> Sequence[Row]:
        return await self._database.read(lambda db: self._dialect.rows(db, query))

    async def _edit(self, statement: str, *values: object) -> int:
        return await self._database.edit(lambda db: db.execute(statement, *values))

    # Last, since these are the names of types.

    async def set(self, key: str, value: str | None) -> None:
        """Write one; None removes it."""
        if not (is_text(key) and is_text(value or "")):
            raise PollingStoreError(f"setting {key[:60]!r} cannot be stored, expected a text", transient=False)
        await (self._edit(UNSET, key) if value is None else self._edit(SET, key, value))

    async def list(self, query: Query) -> "Targets":
        """A page of them."""
        meant = self._meant(query)
        if meant is None or query.most < 1:
            return []
        return await self._database.read(lambda db: self._dialect.listed(db, query, meant))

    async def close(self) -> None:
        """Let go."""
        await self._database.close()

    def __repr__(self) -> str:
        return f"<PollingStore {self._database.place}>"


def _check_texts(each: WantedTarget) -> None:
    for text in (each.kind, each.source_id, each.event, *(each.only or ())):
        if not is_text(text):
            said = f"target {each.kind[:60]!r} {each.source_id[:60]!r}: {text[:60]!r} cannot be stored, expected a text"
            raise PollingStoreError(said, transient=False)


async def open_polling(url: str, schema: Schema | None, source: str, executor: Executor) -> PollingStore:
    """The store at `url`, which was reached; its tables are made where there are none, or used without a schema.

    Raises PollingStoreError, or MissingExtraError.
    """
    # By name and only now: a command that needs neither should load neither, and asyncpg is an extra.
    kind, _, path = url.partition(":")
    store: PollingStore
    if kind == "sqlite" and path:
        sqlite = importlib.import_module("sanderling.stores.sqlite_polling")
        store = await sqlite.open_sqlite_polling(Path(path), schema, source, executor)
        return store
    if kind not in ("postgresql", "postgres"):
        raise PollingStoreError(f"{kind[:20]!r} is no kind of store; {EXPECTED}", transient=False)
    postgres = load("sanderling.stores.postgres_polling", "PostgreSQL")
    store = await postgres.open_postgres_polling(url, schema, source)
    return store
