"""The store on SQLite and on PostgreSQL: what is stored, told and noticed, with the same statements."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from kit.postgres import new_name, shared_postgres

from sanderling.clock import FakeClock, SystemClock
from sanderling.files import FolderError
from sanderling.polling.database import Database, PostgresDatabase, SqliteDatabase
from sanderling.polling.store import Polled, PollTarget, Store, iso, seconds_of
from sanderling.polling.trackside import Document, DocumentScope

EVENT, RACE = "event-1", "race-1"


@asynccontextmanager
async def opened(kind: str, folder: Path) -> AsyncIterator[Store]:
    database: Database = SqliteDatabase(folder / "polling.db")
    if kind == "postgres":
        database = PostgresDatabase(shared_postgres().url, new_name(), SystemClock())
    await database.open()
    try:
        yield Store(database, FakeClock())
    finally:
        await database.close()


EACH = pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.real)])


def race(laps: dict[str, dict[str, Any]], **row: Any) -> Document:
    rows = {"races": {RACE: {"event": EVENT, "valid": True, **row}}, "laps": laps}
    return Document(rows, [DocumentScope("laps", "race", RACE)])


def lap(number: int) -> dict[str, Any]:
    return {"event": EVENT, "race": RACE, "lapNumber": number, "lengthSeconds": 1.5}


def polled(document: Document | None, **more: Any) -> Polled:
    return Polled(PollTarget("race", RACE, 5000), "ok", 1e9, 1e9 + 5, document=document, **more)


async def told(store: Store, after: int = 0) -> list[tuple[str, str, str]]:
    return [(each.op, each.table, each.key) for each in await store.changes(after, 1000)]


@EACH
async def test_only_differences_are_changes_and_they_are_numbered_without_gaps(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as store:
        await store.add_targets([(("race", RACE), EVENT, 5000, 1e9, 0)])
        await store.save([polled(race({"a": lap(0), "b": lap(1)}, start="2025/09/01 2:43:20"))])
        await store.save([polled(race({"a": lap(0), "b": lap(1)}, start="2025/09/01 2:43:20"))])
        await store.save([polled(race({"b": lap(2), "c": lap(3)}), etag="x")])
        await store.save([polled(None, failures=2)])

        first, *_ = changes = await store.changes(0, 100)
        assert [each.position for each in changes] == [1, 2, 3, 4, 5, 6]
        assert [each.op for each in changes] == ["insert", "insert", "insert", "update", "insert", "delete"]
        assert first.data == '{"event":"event-1","valid":true,"start":"2025/09/01 2:43:20"}'
        assert changes[3].data == '{"lapNumber":2}'
        assert (await store.records("laps"))["b"]["lapNumber"] == 2
        assert (await store.records("races"))[RACE]["valid"] is True
        target = await store.target(("race", RACE))
        assert target is not None
        assert (target.etag, target.failures, target.next_due_at) == ("x", 2, "2001-09-09T01:46:45.000Z")
        await store.prune(2)
        assert await store.oldest() == 5


@EACH
async def test_an_edit_by_hand_is_told_makes_due_and_what_overwrites_it_is_said(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as store:
        far = seconds_of("2099-01-01T00:00:00Z")
        await store.add_targets([((name, EVENT), EVENT, 5000, far, 0) for name in ("rounds", "results", "event")])
        await store.add_targets([(("race", RACE), EVENT, 5000, far, 0), (("race", "other"), EVENT, 5000, far, 0)])
        await store.save([polled(race({}))])
        at = await store.position()
        await store.add_targets([])
        await store.edit("races", RACE, {"start": "2025/09/01 2:43:20"})

        assert await told(store, at) == [("update", "races", RACE)]
        targets = {each.key: each for each in await store.targets()}
        assert targets["race", RACE].promoted_at
        assert not targets["race", "other"].promoted_at
        assert not targets["rounds", EVENT].promoted_at
        assert await store.save([polled(race({}))]) == []
        assert await store.save([polled(race({}, start="2026/01/01 0:00:00"))]) == [f"races {RACE}"]
        assert await store.save([polled(race({}, start="2026/01/01 0:00:01"))]) == []

        await store.database.write([('INSERT INTO rounds ("sourceId", "event") VALUES ($1, $2)', [("r", EVENT)])],
                                   by_hand=True)  # fmt: skip
        targets = {each.key: each for each in await store.targets()}
        assert all(targets[name, EVENT].promoted_at for name in ("rounds", "results", "event"))


@EACH
async def test_due_targets_come_promoted_ones_first_then_by_time_and_priority(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as store:
        wall = FakeClock().wall()
        rows = [("late", -9, 0), ("a", -5, 0), ("b", -5, 7), ("future", 5, 0), ("off", -8, 0), ("promoted", 9, 0)]
        await store.add_targets([(("race", name), EVENT, 5000, wall + due, more) for name, due, more in rows])
        await store.change_target(("race", "off"), {"enabled": False})
        await store.promote([("race", "promoted")])
        await store.add_targets([(("race", "gone"), EVENT, 5000, wall - 9, 0)])
        await store.orphan([("race", "gone")])

        assert [each.source_id for each in await store.due(10)] == ["promoted", "late", "b", "a"]
        assert [each.source_id for each in await store.due(2)] == ["promoted", "late"]


@EACH
async def test_there_is_one_current_event(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as store:
        for event in ("one", "two", "two", "one"):
            await store.set_current(event)
            found = {key: row["isCurrent"] for key, row in (await store.records("events")).items()}
            assert [key for key, value in found.items() if value] == [event]
        assert await store.event() == "one"


@EACH
async def test_a_purge_is_told_and_counted(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as store:
        await store.save([polled(race({"a": lap(0)}))])
        counts = await store.purge()

        assert (counts["races"], counts["laps"], counts["pilots"]) == (1, 1, 0)
        assert await told(store, 2) == [("delete", "races", RACE), ("delete", "laps", "a")]


@EACH
async def test_columns_refuse_what_they_cannot_hold(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as store:
        await store.add_targets([(("race", RACE), EVENT, 5000, 1e9, 0)])
        for column, value in (("intervalMs", "often"), ("intervalMs", -1), ("enabled", "maybe")):
            with pytest.raises((FolderError, ValueError)):
                await store.change_target(("race", RACE), {column: value})
        assert (await store.targets())[0].interval_ms == 5000


@pytest.mark.real
async def test_a_second_scheduler_on_a_schema_is_refused() -> None:
    name = new_name()
    first, second = (PostgresDatabase(shared_postgres().url, name, SystemClock()) for _ in range(2))
    await first.open()
    try:
        with pytest.raises(FolderError, match="another scheduler"):
            await second.open()
    finally:
        await second.close()
        await first.close()


async def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "polling.db").write_bytes(b"hello" * 1000)

    with pytest.raises(FolderError):
        await SqliteDatabase(tmp_path / "polling.db").open()


def test_instants_are_iso_8601_in_utc() -> None:
    assert iso(1_700_000_000.25) == "2023-11-14T22:13:20.250Z"
    assert seconds_of("2023-11-14T22:13:20.250Z") == 1_700_000_000.25
    assert seconds_of("2023-11-14 23:13:20.25+01:00") == 1_700_000_000.25
    assert seconds_of("soon") == 0.0
