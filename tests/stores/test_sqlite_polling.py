"""Run as a script, with a path and the folder above on the path of modules, it keeps documents until it is killed."""

import asyncio
import random
import re
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from killed import killed
from looping import in_loop
from polling_contract import PollingContract
from polling_play import (
    SCHEMA,
    WALL,
    Place,
    add,
    all_changes,
    all_due,
    all_rows,
    brief,
    document,
    event,
    found,
    get,
    keep,
    lap,
    note,
    pilot,
    race,
    ran,
    replayed,
    round_,
    taken,
    told,
    whole,
)

from sanderling.executor import in_threads
from sanderling.stores import sqlite_polling
from sanderling.stores.documents import Column, Parent, Schema, SourceRow, SourceTable
from sanderling.stores.polling import ChangeSpan, PollingStoreError, PollingTarget, Query, Reconciliation
from sanderling.stores.polling_store import PollingStore
from sanderling.stores.sqlite_database import SqliteDatabase
from sanderling.stores.sqlite_polling import PAGE_BYTES, open_sqlite_polling
from sanderling.stores.sqlite_polling_targets import FEW

LONG_AGO = (float("-inf"), 0)
TRIGGERS = "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'polling:%'"


@in_loop
async def test_edits_of_rows_are_noticed_also_in_a_file_of_a_version_before_that(path: Path) -> None:
    async with opened(path) as store:
        await add(store, found("a"))
        await keep(store, event(), race("a"))
    by_hand(path, *(f'DROP TRIGGER "{name}"' for (name,) in by_hand(path, TRIGGERS)), "DROP TABLE polling_touched")
    by_hand(path, """CREATE TRIGGER "polling:races:update" AFTER UPDATE ON races BEGIN SELECT 1; END""")

    async with opened(path) as store:
        await taken(store)
        by_hand(path, "UPDATE races SET start = '9'")

        assert [each.source_id for each in (await store.take_edits(WALL)).targets] == ["a"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "polling.db"


@asynccontextmanager
async def opened(path: Path, schema: Schema | None = SCHEMA, source: str = "race") -> AsyncIterator[PollingStore]:
    with ThreadPoolExecutor(2) as threads:
        store = await open_sqlite_polling(path, schema, source, in_threads(threads))
        try:
            yield store
        finally:
            await store.close()


def connection(store: PollingStore) -> sqlite3.Connection:
    assert isinstance(store._database, SqliteDatabase)
    return store._database.db


def reader(store: PollingStore) -> sqlite3.Connection:
    assert isinstance(store._database, SqliteDatabase)
    return store._database._reader


def by_hand(path: Path, *statements: str) -> list[tuple[Any, ...]]:
    """What the last of them gives."""
    with closing(sqlite3.connect(path)) as db, db:
        return [db.execute(each).fetchall() for each in statements][-1]


@pytest.fixture
def place(path: Path) -> Place:
    @asynccontextmanager
    async def opens(schema: Schema | None = SCHEMA, source: str = "race") -> AsyncIterator[PollingStore]:
        async with opened(path, schema, source) as store:
            yield store

    async def sql(statement: str) -> list[tuple[Any, ...]]:
        return await asyncio.to_thread(by_hand, path, statement)

    async def wipe() -> None:
        for each in path.parent.glob(f"{path.name}*"):
            each.unlink()

    return Place(opens, sql, wipe)


class TestSqlitePolling(PollingContract):
    pass


# --- the file ---


@in_loop
async def test_what_must_not_be_lost_waits_for_the_disk_and_runs_do_not(path: Path) -> None:
    async with opened(path) as store:
        (target,) = await add(store, found("a"))
        safe, quick = ((2,), (1,))  # FULL and NORMAL

        for work, expected in [
            (store.write([ran(target)]), quick),
            (keep(store, event()), safe),
            (store.advance("x", 1), quick),
            (store.change("race", "a", {"enabled": True}), safe),
            (store.trim(5), quick),
            (store.set("x", "1"), safe),
            (store.write([ran(target)]), quick),
            (store.take_edits(WALL), safe),
        ]:
            await work
            assert connection(store).execute("PRAGMA synchronous").fetchone() == expected
        assert connection(store).execute("PRAGMA journal_mode").fetchone() == ("wal",)


@in_loop
async def test_pages_are_small_and_references_hold(path: Path) -> None:
    async with opened(path) as store:
        await keep(store, event(), round_("r"), race("a", "r"))
        assert connection(store).execute("PRAGMA page_size").fetchone() == (PAGE_BYTES,)
        assert connection(store).execute("PRAGMA foreign_keys").fetchone() == (1,)

        by_hand(path, "PRAGMA foreign_keys = ON", "DELETE FROM rounds")

        assert {place.table for place in await all_rows(store)} == {"events"}
        with pytest.raises(sqlite3.IntegrityError):
            by_hand(path, "PRAGMA foreign_keys = ON", "INSERT INTO rounds (id, event) VALUES ('r', 'nothing')")
        with pytest.raises(sqlite3.IntegrityError):
            by_hand(path, "INSERT INTO pilots (id, practice) VALUES ('p', 7)")


@in_loop
async def test_the_work_is_done_at_the_desk(path: Path) -> None:
    asked: list[str] = []

    async def desk(work, *args):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN002, ANN202 - any function
        asked.append(work.__name__)
        return work(*args)

    store = await open_sqlite_polling(path, SCHEMA, "race", desk)
    await keep(store, event())
    await store.list(Query())
    await store.write([])
    await store.close()

    assert asked == ["_open", "_write", "_read", "_close"]


@in_loop
async def test_people_may_look_while_somebody_writes(path: Path) -> None:
    async with opened(path) as store:
        await keep(store, event())
        await add(store, found("a"))
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("DELETE FROM polling_targets")

            assert len(await store.list(Query())) == 1
            assert (await store.count(WALL)).targets == 1
            assert await store.span() == ChangeSpan(1, 1)
            assert len(await store.due(LONG_AGO, WALL, 5)) == 1


@in_loop
async def test_a_file_that_another_program_holds_is_free_again_later(path: Path) -> None:
    async with opened(path) as store:
        connection(store).execute("PRAGMA busy_timeout = 20")
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(PollingStoreError, match="is in use by another program") as error:
                await keep(store, event())

        assert error.value.transient
        assert len(await keep(store, event())) == 1


@in_loop
async def test_a_full_disk_leaves_nothing_half_and_passes(path: Path) -> None:
    many = [note(str(number), "x", "t" * 500) for number in range(500)]
    async with opened(path) as store:
        await add(store, found("a"))
        await keep(store, event())
        before = await get(store)
        ((pages,),) = connection(store).execute("PRAGMA page_count")
        connection(store).execute(f"PRAGMA max_page_count = {pages + 20}")

        with pytest.raises(PollingStoreError, match="the disk is full") as error:
            await store.keep(told(document(*many), digest=b"1"))

        assert error.value.transient
        assert len(await all_rows(store)) == 1
        assert await store.span() == ChangeSpan(1, 1)
        assert await get(store) == before
        connection(store).execute("PRAGMA max_page_count = 1000000")
        assert len(await keep(store, *many)) == 500


def damage(path: Path, first: int, last: int | None) -> None:
    data = bytearray(path.read_bytes())
    data[first:last] = b"\xa5" * len(data[first:last])
    path.write_bytes(data)


@pytest.mark.parametrize(("first", "last"), [(0, 100), (PAGE_BYTES, None)])
@in_loop
async def test_a_file_that_is_damaged_is_said_and_does_not_pass(path: Path, first: int, last: int | None) -> None:
    async with opened(path) as store:
        await keep(store, event())
    damage(path, first, last)

    with pytest.raises(PollingStoreError, match=r"polling.db is damaged, or not one of ours") as error:
        async with opened(path) as store:
            await all_rows(store)
    assert not error.value.transient


@in_loop
async def test_a_change_that_is_damaged_is_said(path: Path) -> None:
    async with opened(path) as store:
        await keep(store, event())
        by_hand(path, "UPDATE polling_changes SET row = '{'")

        with pytest.raises(PollingStoreError, match="change 1 is damaged") as error:
            await store.changes(0, 5)
        assert not error.value.transient


def test_the_database_of_something_else_is_refused_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    by_hand(path, "CREATE TABLE t (x)")
    before = path.read_bytes()

    with pytest.raises(PollingStoreError, match=r"polling.db is no store of polling; choose another") as error:
        asyncio.run(open_and_close(path))

    assert path.read_bytes() == before
    assert not error.value.transient


async def open_and_close(path: Path, schema: Schema | None = SCHEMA) -> None:
    async with opened(path, schema):
        pass


def test_a_later_version_is_refused(path: Path) -> None:
    asyncio.run(open_and_close(path))
    by_hand(path, "PRAGMA user_version = 9")

    with pytest.raises(PollingStoreError, match=r"is of format 9, this version reads 1; use a newer version") as error:
        asyncio.run(open_and_close(path))
    assert not error.value.transient


def test_who_has_no_schema_makes_no_file(path: Path) -> None:
    with pytest.raises(PollingStoreError, match=r"there is no .*polling\.db") as error:
        asyncio.run(open_and_close(path, None))

    assert not error.value.transient
    assert not path.exists()


def test_a_place_where_no_file_can_be_is_said(path: Path) -> None:
    path.parent.write_text("a file")

    with pytest.raises(PollingStoreError, match="cannot use") as error:
        asyncio.run(open_and_close(path))
    assert not error.value.transient


@in_loop
async def test_an_empty_file_becomes_ours(path: Path) -> None:
    """Somebody else is just making it."""
    await asyncio.to_thread(path.parent.mkdir)
    await asyncio.to_thread(path.touch)

    async with opened(path) as store:
        assert connection(store).execute("PRAGMA page_size").fetchone() == (PAGE_BYTES,)
        assert len(await keep(store, event())) == 1


OPEN = """
import asyncio, sys
from pathlib import Path
from polling_play import SCHEMA
from sanderling.stores.sqlite_polling import open_sqlite_polling

async def desk(work, *args):
    return work(*args)

async def main(name):
    store = await open_sqlite_polling(Path(name), SCHEMA, "race", desk)
    print(*store._database.db.execute("PRAGMA page_size").fetchone(), len(await store.rows("laps")), flush=True)
    await store.close()

print("ready", flush=True)
for name in sys.stdin:
    asyncio.run(main(name.strip()))
"""


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Path(__file__).parent
    monkeypatch.setenv("PYTHONPATH", f"{here.parent}:{here}", prepend=":")


@pytest.mark.usefixtures("modules")
def test_processes_that_make_the_same_file_at_once_all_get_it(tmp_path: Path) -> None:
    openers = [
        subprocess.Popen([sys.executable, "-c", OPEN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603
        for _ in range(3)
    ]
    try:
        assert [opener.stdout.readline() for opener in openers if opener.stdout] == ["ready\n"] * 3
        for number in range(8):
            for opener in openers:
                assert opener.stdin is not None
                opener.stdin.write(f"{tmp_path / str(number)}.db\n")
                opener.stdin.flush()
            assert [opener.stdout.readline() for opener in openers if opener.stdout] == [f"{PAGE_BYTES} 0\n"] * 3
    finally:
        for opener in openers:
            opener.communicate(timeout=300)


# --- tables of the source ---


@in_loop
async def test_a_table_that_the_source_has_no_more_goes_along_with_the_others(path: Path) -> None:
    async with opened(path) as store:
        await keep(store, event(), round_("r"), race("a", "r"), lap("l", "a"), note("n", "x"))

    async with opened(path, Schema(SCHEMA.tables[:3])) as store:
        gone = Schema(SCHEMA.tables[:3]).document([event()], [whole("rounds", "event", "e")])
        assert brief(await store.keep(told(gone))) == ["delete laps l", "delete races a", "delete rounds r"]
        assert (await store.purge(WALL))["notes"] == 1


@in_loop
async def test_a_reference_that_the_source_has_no_more_still_takes_along(path: Path) -> None:
    events, _, rounds, *_ = SCHEMA.tables
    async with opened(path) as store:
        await keep(store, event(), round_("r"), race("a", "r"))

    schema = Schema((events, rounds, SourceTable("races", (Column("start"),))))
    async with opened(path, schema) as store:
        gone = schema.document([], [whole("rounds", "event", "e")])
        assert brief(await store.keep(told(gone))) == ["delete races a", "delete rounds r"]


@in_loop
async def test_columns_and_tables_that_somebody_added_by_hand_are_left_alone(path: Path) -> None:
    async with opened(path) as store:
        await keep(store, event())
    by_hand(
        path,
        'ALTER TABLE events ADD COLUMN "My Note" VARCHAR(9)',
        'ALTER TABLE events ADD COLUMN "My Own" TEXT',
        """UPDATE events SET "My Note" = 'x'""",
        "CREATE TABLE mine (id TEXT PRIMARY KEY, event TEXT REFERENCES events (id))",
        "INSERT INTO mine VALUES ('1', NULL)",
    )

    for schema in (SCHEMA, None):
        async with opened(path, schema) as store:
            assert (await store.rows("events"))[0].values == {"name": None}
            with pytest.raises(KeyError):
                await store.rows("mine")

    async with opened(path) as store:
        await keep(store, event(name="new"))
        assert by_hand(path, 'SELECT "My Note" FROM events') == [("x",)]
        assert "mine" not in await store.purge(WALL)
        assert by_hand(path, "SELECT count(*) FROM mine") == [(1,)]


@in_loop
async def test_tables_that_come_to_refer_to_each_other_are_said(path: Path) -> None:
    async with opened(path, Schema((SourceTable("a", ()), SourceTable("b", (Column("x", references="a"),))))):
        pass

    with pytest.raises(PollingStoreError, match="tables refer to each other: ") as error:
        await open_and_close(path, Schema((SourceTable("b", ()), SourceTable("a", (Column("y", references="b"),)))))
    assert not error.value.transient


@in_loop
async def test_a_document_of_a_table_that_is_not_there_is_said(path: Path) -> None:
    async with opened(path, Schema(SCHEMA.tables[:1])) as store:
        with pytest.raises(PollingStoreError, match="there is no table notes, expected one of events") as error:
            await keep(store, note("1", "x"))
        assert not error.value.transient


# --- killed ---


def some_document(rng: random.Random) -> Any:  # noqa: ANN401 - what to tell
    """A race of a few: new every time."""
    name = f"race {rng.randrange(3)}"
    laps = [lap(f"{name} {number}", name, seconds=rng.random()) for number in range(rng.randrange(40))]
    rows = [event(), round_("r"), race(name, "r", start=str(rng.random())), *laps]
    listed = [whole("laps", "race", name, *(row.key for row in laps))]
    if rng.random() < 0.1:
        return told(document(event(), whole=[whole("rounds", "event", "e")]))
    return told(document(*rows, whole=listed), name, digest=rng.randbytes(8))


async def keep_for_ever(path: Path) -> None:
    rng = random.Random()
    async with opened(path) as store:
        await store.claim(WALL)
        while True:
            await store.keep(some_document(rng))
            print("kept", flush=True)  # noqa: T201 - for whoever wants to kill it


@pytest.mark.usefixtures("modules")
@in_loop
async def test_after_kill_9_rows_are_what_the_changes_lead_to_and_no_number_is_there_twice(path: Path) -> None:
    for kept in (1, 7, 30):
        await asyncio.to_thread(killed, [__file__, path], after=kept)

        async with opened(path) as store:
            await store.claim(WALL)
            changes = await all_changes(store, most=1000)
            assert [each.seq for each in changes] == list(range(1, len(changes) + 1))
            assert (await store.span()).newest == len(changes)
            assert replayed(changes) == await all_rows(store, most=1000)


@pytest.mark.usefixtures("modules")
@in_loop
async def test_another_process_that_polls_is_named_and_lets_go_when_it_is_killed(path: Path) -> None:
    async with running(path) as pid, opened(path) as store:
        with pytest.raises(PollingStoreError, match=rf"another process polls .*polling.db \(process {pid}\)"):
            await store.claim(WALL)

    async with opened(path) as store:
        await store.claim(WALL)


@asynccontextmanager
async def running(path: Path) -> AsyncIterator[int]:
    """Ourselves, as a script, killed in the end."""
    child = await asyncio.create_subprocess_exec(sys.executable, __file__, path, stdout=subprocess.PIPE)
    assert child.stdout is not None
    await child.stdout.readline()
    try:
        yield child.pid
    finally:
        child.kill()
        await child.communicate()


# --- how things are looked for ---


@contextmanager
def traced(db: sqlite3.Connection) -> Iterator[list[str]]:
    """The statements that are run meanwhile."""
    statements: list[str] = []
    db.set_trace_callback(statements.append)
    try:
        yield statements
    finally:
        db.set_trace_callback(None)


def plans(db: sqlite3.Connection, statements: list[str]) -> str:
    """How SQLite goes about them, but for those that write or set nothing of interest."""
    # The trace writes infinity as SQLite does not read it.
    asked = [each.replace("Inf", "9e999") for each in statements if re.match("SELECT|UPDATE|DELETE|INSERT", each)]
    assert asked
    return "\n".join(row[3] for each in asked for row in db.execute(f"EXPLAIN QUERY PLAN {each}"))


SCANS = re.compile(
    r"SCAN (?!json_each|CONSTANT|edit|every|polling_(?:edits|touched)|polling_targets USING COVERING INDEX)\w+"
    r"|TEMP B-TREE"
)


@in_loop
async def test_what_whoever_polls_asks_for_is_in_an_index(path: Path) -> None:
    async with opened(path) as store:
        (target, *_) = await add(store, found("a"), found("b"))
        await keep(store, event(), round_("r"), race("a", "r"), note("1", "x"))
        with traced(connection(store)) as statements:
            await store.due((WALL - 5, 3), WALL, 5)
            await store.find("race", "a")
            await store.write([ran(target)])
            await store.take_edits(WALL)
            gone = [whole("rounds", "event", "e"), whole("notes", "target", "x")]
            await keep(store, event(name="new"), lap("l", "a", seconds=1.0), whole=gone[1:])
            await keep(store, event(), whole=gone)
            await store.promote(Query(kind="race", source_id="a"), 5)
            await store.promote(Query(event="e"), 5)
            await store.change("race", "a", {"enabled": False})
        found_plans = plans(connection(store), statements)

    assert "SEARCH polling_targets USING INDEX polling_targets_due (next_due=? AND rowid>?)" in found_plans
    assert "SEARCH polling_targets USING INDEX polling_targets_due (next_due>? AND next_due<?)" in found_plans
    assert "polling:notes:target (target=?)" in found_plans
    assert SCANS.findall(found_plans) == []


@in_loop
async def test_what_people_ask_for_is_in_an_index(path: Path) -> None:
    pages = SourceTable("pages", (Column("event"), Column("text")))  # whose events are in no table
    async with opened(path, Schema((*SCHEMA.tables, pages))) as store:
        await add(store, found("a"))
        with traced(reader(store)) as statements:
            for query in (Query(), Query(gone=None), Query(enabled=False), Query(gone=True), Query(due_before=WALL)):
                await store.list(query)
                await store.list(Query(after=(WALL, 1)))
            await store.rows("races", event="e", after="x")
            await store.rows("pages", event="e", after="x")
            await store.rows("races", after="x")
            await store.changes(5, 5)
            await store.span()
            await store.fetched()
            await store.position("x")
        in_order = plans(reader(store), statements)
        with traced(reader(store)) as statements:
            for query in (Query(source_id="a"), Query(kind="race"), Query(event="e"), Query(accelerated_at=WALL)):
                await store.list(query)
        looked_up = plans(reader(store), statements)

    assert "polling:pages:event (event=? AND id>?)" in in_order
    for index in ("polling_targets_name", "polling_targets_event", "polling_targets_until"):
        assert f"USING INDEX {index}" in looked_up
    assert SCANS.findall(in_order) == []
    # They are few, and are put in order afterwards.
    assert set(SCANS.findall(looked_up)) == {"TEMP B-TREE"}


@pytest.mark.parametrize("query", [Query(enabled=False), Query(gone=True)])
@in_loop
async def test_who_asks_for_those_that_are_not_polled_is_not_led_past_all_others(path: Path, query: Query) -> None:
    async with opened(path) as store:
        with traced(reader(store)) as statements:
            await store.list(query)

        assert "polling_targets_idle" in (found_plans := plans(reader(store), statements))
        assert "polling_targets_due" not in found_plans


@in_loop
async def test_where_many_are_meant_they_are_found_in_their_order(path: Path) -> None:
    async with opened(path) as store:
        many = [found(str(number), event="many") for number in range(FEW + 1)]
        await store.apply(Reconciliation(insert=(*many, found("x", kind="other"))), WALL)
        with traced(reader(store)) as statements:
            assert len(await store.list(Query(kind="race", most=50))) == 50
            assert len(await store.list(Query(event="many", most=50))) == 50

        assert SCANS.findall(plans(reader(store), statements)) == []


# --- nonsense ---

NONSENSE = st.one_of(
    st.sampled_from(["NULL", "'x'", "''", "x'00ff'", "CAST(x'ff' AS TEXT)", "9e999", "-9e999", "-1", "0", "1.5", "2"]),
    st.sampled_from(["'[1]'", "'{'", "'[\"a\"]'", "1e300", "9223372036854775807", "'2023-01-01'"]),
)
ANY_COLUMN = st.sampled_from([name for name in PollingTarget.__struct_fields__ if name != "id"])


def as_it_should_be(target: PollingTarget) -> bool:
    """Whether every field holds what it says."""
    hints = get_type_hints(PollingTarget)
    kind = msgspec.defstruct("Strict", [(name, hints[name]) for name in PollingTarget.__struct_fields__])
    values = {name: getattr(target, name) for name in PollingTarget.__struct_fields__}
    values["digest"] = msgspec.to_builtins(values["digest"])  # else it would not be looked at
    msgspec.convert(values, kind)
    return isinstance(target.digest, bytes)


def test_whatever_is_written_by_hand_is_read_as_far_as_it_goes(path: Path) -> None:
    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.tuples(ANY_COLUMN, NONSENSE, st.sampled_from("abc")), min_size=1, max_size=6))
    def play(edits: list[tuple[str, str, str]]) -> None:
        asyncio.run(live_with(path, edits))

    play()


async def live_with(path: Path, edits: list[tuple[str, str, str]]) -> None:
    async with opened(path, Schema(())) as store:
        await store.purge(WALL)
        await taken(store)
        await add(store, found("a"), found("b", seconds=0.0), found("c"))
        await store.change("race", "c", {"enabled": False})
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("PRAGMA ignore_check_constraints = ON")
            for column, value, source_id in edits:
                statement = f'UPDATE OR IGNORE polling_targets SET "{column}" = {value} WHERE source_id = ?'  # noqa: S608 - ours
                db.execute(statement, (source_id,))

        assert len(await store.known()) == 3
        listed = await store.list(Query(gone=None))
        due = await all_due(store, until=float("inf"))
        assert all(map(as_it_should_be, [*listed, *due]))
        assert {each.id for each in due} == {each.id for each in listed if each.wanted}
        assert await store.list(Query(gone=None, kind="race")) == [each for each in listed if each.kind == "race"]
        counts = await store.count(WALL)
        assert counts.targets + counts.gone == 3
        edits_taken = await taken(store)
        assert len(edits_taken.targets) == 3
        assert all(map(as_it_should_be, edits_taken.targets))
        await store.promote(Query(), 5)
        await store.write([ran(each) for each in edits_taken.targets])

        await store.claim(WALL)

        listed = await store.list(Query(gone=None))
        assert len(listed) == 3
        assert all(each.next_due <= WALL + max(each.interval, 300) for each in listed)


@pytest.mark.parametrize(
    "nonsense",
    [
        *(f"set_seconds = {value}" for value in ("'x'", "x'00'", "0", "-1", "1e10", "9e999")),
        *(f"promote = {value}" for value in ("'x'", "x'00'", "-1", "1e10", "9e999")),
        *(f"set_priority = {value}" for value in ("'x'", "x'00'", "1.5", "1e300")),
        *(f"enabled = {value}" for value in ("'x'", "x'00'", "2", "-1", "0.5")),
        "enabled = 'x', set_seconds = 'x', set_priority = 'x', promote = 'x'",
    ],
)
@in_loop
async def test_what_an_admin_cannot_have_meant_is_as_if_it_were_not_set(path: Path, nonsense: str) -> None:
    async with opened(path) as store:
        (before,) = await add(store, found("a"))
        await taken(store)
        by_hand(path, "PRAGMA ignore_check_constraints = ON", f"UPDATE polling_targets SET {nonsense}")  # noqa: S608 - ours

        assert await get(store) == before
        assert await all_due(store) == await store.list(Query()) == [before]
        assert (await store.take_edits(WALL)).targets == (before,)
        assert by_hand(path, "SELECT promote FROM polling_targets") == [(None,)]


@pytest.mark.parametrize("value", ["'x'", "x'00'", "-1", "1e10", "9e999"])
@in_loop
async def test_an_interval_that_is_none_switches_off(path: Path, value: str) -> None:
    async with opened(path) as store:
        await add(store, found("a"))
        statement = f"UPDATE polling_targets SET seconds = {value}"  # noqa: S608 - ours
        by_hand(path, "PRAGMA ignore_check_constraints = ON", statement)

        assert ((await get(store)).seconds, await all_due(store)) == (0.0, [])
        await store.change("race", "a", {"set_seconds": 5.0})
        assert [each.interval for each in await all_due(store)] == [5.0]


@in_loop
async def test_one_without_a_due_time_is_in_no_order_until_somebody_polls(path: Path) -> None:
    async with opened(path) as store:
        await add(store, found("a"))
        by_hand(path, "PRAGMA ignore_check_constraints = ON", "UPDATE polling_targets SET next_due = 'x'")

        for query in (Query(), Query(kind="race"), Query(event="e")):
            assert await store.list(query) == []
        await store.claim(WALL)
        for query in (Query(), Query(kind="race"), Query(event="e")):
            assert [each.next_due for each in await store.list(query)] == [WALL]


@in_loop
async def test_what_the_file_refuses_is_not_taken_for_damage(path: Path) -> None:
    async with opened(path) as store:
        with pytest.raises(PollingStoreError, match=r"polling.db refuses it: CHECK constraint failed") as error:
            await store.apply(Reconciliation(insert=(found("a", seconds=-1.0),)), WALL)
        assert not error.value.transient
        with pytest.raises(PollingStoreError, match=r"polling.db refuses it"):
            await store.advance("x", 2**63)


@in_loop
async def test_one_that_was_replaced_by_hand_is_gone(path: Path) -> None:
    async with opened(path) as store:
        (before,) = await add(store, found("a"))
        await taken(store)

        by_hand(path, "INSERT OR REPLACE INTO polling_targets (kind, source_id, seconds) VALUES ('race', 'a', 5)")

        edits = await store.take_edits(WALL)
        assert edits.deleted == (before.id,)
        assert [each.source_id for each in edits.targets] == ["a"]


@pytest.mark.parametrize("clause", ["OR ABORT", "OR FAIL", "OR ROLLBACK", "OR REPLACE"])
@in_loop
async def test_edits_by_hand_are_noted_once_whatever_sql_says_of_conflicts(path: Path, clause: str) -> None:
    async with opened(path) as store:
        await add(store, found("a"))
        for value in (1, 2):
            by_hand(path, f"UPDATE {clause} polling_targets SET set_seconds = {value}")  # noqa: S608 - ours

        assert [each.set_seconds for each in (await taken(store)).targets] == [2.0]


@in_loop
async def test_what_is_written_as_it_was_is_no_edit(path: Path) -> None:
    async with opened(path) as store:
        await add(store, found("a"))
        await taken(store)

        by_hand(path, "UPDATE polling_targets SET enabled = 1, set_seconds = NULL, promote = NULL, seconds = 10")

        assert not any(await store.take_edits(WALL))


@in_loop
async def test_rows_with_nonsense_are_written_anew(path: Path) -> None:
    async with opened(path) as store:
        await keep(store, pilot("p", name="x", points=1, speed=1.0))
        by_hand(path, "UPDATE pilots SET points = 'many', speed = 'fast'")
        assert (await store.rows("pilots"))[0].values["points"] == "many"

        (change,) = await keep(store, pilot("p", name="x", points=1, speed=1.0))

        assert change.fields == ("points", "speed")
        stored = await all_rows(store)
        assert stored[Parent("pilots", "p")] == SourceRow("pilots", "p", change.values).values


if __name__ == "__main__":
    asyncio.run(keep_for_ever(Path(sys.argv[1])))


@in_loop
async def test_whoever_polls_knows_soon_that_somebody_else_has_the_file_and_goes_on_by_itself(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_polling, "POLLER_BUSY_SECONDS", 0.05)
    async with opened(path) as store:
        await store.claim(WALL)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(PollingStoreError) as told:
                await asyncio.wait_for(store.set("a", "1"), 10.0)
            assert await store.settings() == {}, "to read needs nobody's leave"
        assert told.value.transient
        assert str(told.value) == f"{path} is in use by another program"
