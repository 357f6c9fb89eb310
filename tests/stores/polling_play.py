"""Where a store of `polling` is played with, and small documents and targets to do so."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NamedTuple, Protocol

from sanderling.stores.documents import (
    Column,
    ColumnKind,
    Document,
    Parent,
    Schema,
    SourceRow,
    SourceTable,
    Value,
    Whole,
)
from sanderling.stores.polling import (
    Edits,
    Op,
    PolledDocument,
    PollingTarget,
    Reconciliation,
    RowChange,
    TargetRun,
    WantedTarget,
)
from sanderling.stores.polling_store import PollingStore

WALL = 1_700_000_000.0
EVENT = Column("event", references="events")
SCHEMA = Schema(
    (
        SourceTable("events", (Column("name"),)),
        SourceTable(
            "pilots",
            (
                Column("name"),
                Column("points", ColumnKind.INTEGER),
                Column("speed", ColumnKind.REAL),
                Column("practice", ColumnKind.BOOLEAN),
            ),
        ),
        SourceTable("rounds", (EVENT, Column("name"))),
        SourceTable("races", (EVENT, Column("round", references="rounds"), Column("start"))),
        SourceTable(
            "laps",
            (
                Column("race", references="races"),
                Column("pilot", references="pilots"),
                Column("seconds", ColumnKind.REAL),
            ),
        ),
        # Its rows are children of something that is in no table.
        SourceTable("notes", (Column("target"), Column("text"))),
    )
)

Values = Mapping[str, Value]
Rows = dict[Parent, Values]


class Opens(Protocol):
    """Another user of the same place. Without a schema: one who takes the tables as they are."""

    def __call__(
        self, schema: Schema | None = SCHEMA, source: str = "race"
    ) -> AbstractAsyncContextManager[PollingStore]: ...


class Place(NamedTuple):
    """Where it is. `sql` is somebody who writes SQL by hand, on a connection of their own; `wipe` leaves nothing."""

    opens: Opens
    sql: Callable[[str], Awaitable[list[tuple[Any, ...]]]]
    wipe: Callable[[], Awaitable[None]]


# --- targets ---


def found(source_id: str = "a", **fields: Any) -> WantedTarget:  # noqa: ANN401 - of a target
    of: dict[str, Any] = {"kind": "race", "event": "e", "only": None, "seconds": 10.0, "priority": 0}
    return WantedTarget(**of | fields, source_id=source_id)


async def add(store: PollingStore, *wanted: WantedTarget, wall: float = WALL) -> list[PollingTarget]:
    """Have discovery find these; what they are then."""
    await store.apply(Reconciliation(insert=wanted), wall)
    return [await get(store, each.source_id, each.kind) for each in wanted]


async def get(store: PollingStore, source_id: str = "a", kind: str = "race") -> PollingTarget:
    target = await store.find(kind, source_id)
    assert target is not None
    return target


@asynccontextmanager
async def holding(store: PollingStore) -> AsyncIterator[None]:
    """Whoever has claimed it shows that it lives."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(store.database.hold(bool))
        yield
        task.cancel()


def ran(target: PollingTarget, **fields: Any) -> TargetRun:  # noqa: ANN401 - of a run
    return TargetRun(**{name: getattr(target, name) for name in TargetRun._fields} | fields)


async def taken(store: PollingStore, wall: float = WALL) -> Edits:
    """All edits there are, however few are taken at a time."""
    targets: list[PollingTarget] = []
    deleted: list[int] = []
    while any(edits := await store.take_edits(wall)):
        targets += edits.targets
        deleted += edits.deleted
    return Edits(tuple(targets), tuple(deleted))


async def all_due(store: PollingStore, until: float = WALL + 1e9, most: int = 100) -> list[PollingTarget]:
    """Page by page."""
    due, after = [], (float("-inf"), 0)
    while page := await store.due(after, until, most):
        assert len(page) <= most
        due += page
        after = page[-1].next_due, page[-1].id
    return due


# --- documents ---


def event(key: str = "e", name: str | None = None) -> SourceRow:
    return SourceRow("events", key, {"name": name})


def pilot(key: str, **values: Value) -> SourceRow:
    return SourceRow("pilots", key, {"name": None, "points": None, "speed": None, "practice": None} | values)


def round_(key: str, event: str | None = "e", name: str | None = None) -> SourceRow:
    return SourceRow("rounds", key, {"event": event, "name": name})


def race(key: str, round_: str | None = None, event: str | None = "e", start: str | None = None) -> SourceRow:
    return SourceRow("races", key, {"event": event, "round": round_, "start": start})


def lap(key: str, race: str | None, pilot: str | None = None, seconds: float | None = None) -> SourceRow:
    return SourceRow("laps", key, {"race": race, "pilot": pilot, "seconds": seconds})


def note(key: str, target: str | None, text: str | None = None) -> SourceRow:
    return SourceRow("notes", key, {"target": target, "text": text})


def whole(table: str, column: str, parent: str, *keys: str) -> Whole:
    return Whole(table, column, parent, frozenset(keys))


def document(*rows: SourceRow, whole: Iterable[Whole] = ()) -> Document:
    return SCHEMA.document(rows, whole)


def told(document: Document, source_id: str = "a", **fields: Any) -> PolledDocument:  # noqa: ANN401 - of what is told
    of: dict[str, Any] = {"kind": "race", "event": "e", "at": WALL}
    return PolledDocument(**of | fields, source_id=source_id, document=document)


async def keep(store: PollingStore, *rows: SourceRow, whole: Iterable[Whole] = ()) -> list[RowChange]:
    return await store.keep(told(document(*rows, whole=whole)))


def brief(changes: Iterable[RowChange]) -> list[str]:
    """Changes in few words."""
    return [f"{each.op} {each.table} {each.key}".strip() for each in changes]


async def all_rows(store: PollingStore, schema: Schema = SCHEMA, most: int = 7) -> Rows:
    """All that is stored, page by page; keys come in order."""
    rows: Rows = {}
    for table in schema.tables:
        after = ""
        while page := await store.rows(table.name, after=after, most=most):
            keys = [row.key for row in page]
            assert keys == sorted(keys)
            assert keys[0] > after
            assert len(keys) <= most
            assert all(row.table == table.name for row in page)
            rows |= {Parent(table.name, row.key): row.values for row in page}
            after = keys[-1]
    return rows


async def all_changes(store: PollingStore, after: int = 0, most: int = 50) -> list[RowChange]:
    changes: list[RowChange] = []
    while page := await store.changes(after, most):
        assert len(page) <= most
        changes += page
        after = page[-1].seq
    return changes


def replayed(changes: Iterable[RowChange]) -> Rows:
    """What there is after these: each does what it says it does, and every row has its parents all the while."""
    rows: Rows = {}
    references = {table.name: {c.name: c.references for c in table.columns if c.references} for table in SCHEMA.tables}
    last = 0
    for change in changes:
        assert change.seq > last
        last = change.seq
        _apply(rows, change)
        for (table, _), values in rows.items():
            for column, parents in references[table].items():
                assert values[column] is None or Parent(parents, str(values[column])) in rows, change
    return rows


def _apply(rows: Rows, change: RowChange) -> None:
    place = Parent(change.table, change.key)
    match change.op:
        case Op.INSERT:
            assert place not in rows, change
            assert not change.fields
            rows[place] = change.values
        case Op.UPDATE:
            differing = {name for name, value in change.values.items() if value != rows[place][name]}
            assert set(change.fields) == differing, change
            assert change.fields
            rows[place] = change.values
        case Op.DELETE:
            assert not change.values
            assert not change.fields
            del rows[place]
        case Op.PURGE:
            assert place == ("", "")
            rows.clear()
