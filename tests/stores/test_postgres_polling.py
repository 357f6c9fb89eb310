import asyncio
import itertools
import random
import re
from collections.abc import Iterator

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker
import pytest
from looping import in_loop
from polling_contract import PollingContract
from polling_play import SCHEMA, WALL, Place, add, all_rows, event, found, holding, keep, note, race, taken, told
from postgres_polling_place import at, connected, fresh_schema, link_of, opened, place_in, wipe

from sanderling.outcome import Code
from sanderling.stores.documents import Column, Schema, SourceError, SourceRow, SourceTable
from sanderling.stores.polling import PollingStoreError
from sanderling.stores.postgres_polling import BY_INDEX, open_postgres_polling
from sanderling.stores.postgres_polling_targets import DUE

ENDED = "idle_in_transaction_session_timeout"  # by the server, if it was stopped in the middle


@pytest.fixture
def schema(postgres: str) -> Iterator[str]:
    with fresh_schema(postgres) as name:
        yield name


@pytest.fixture
def place(postgres: str, schema: str) -> Place:
    return place_in(postgres, schema)


@pytest.fixture(scope="module")
def shared(postgres: str) -> Iterator[str]:
    """A schema for many tests: to make tables takes longer than most of these."""
    with fresh_schema(postgres) as name:
        yield name


class TestPostgresPolling(PollingContract):
    @pytest.fixture
    def place(self, postgres: str, shared: str) -> Place:
        asyncio.run(wipe(postgres, shared))
        return place_in(postgres, shared)


# --- how fast it is found ---


@pytest.mark.parametrize("known", [False, True])
@in_loop
async def test_what_is_due_is_read_in_the_order_of_its_index(
    place: Place,
    postgres: str,
    schema: str,
    known: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """Whatever the server knows about the table, and also for a plan that is for all values."""
    many = "(kind, source_id, seconds, next_due, enabled) SELECT 'race', id, 10, id, id % 9 > 0"
    async with place.opens(), connected(postgres, search_path=schema, **(BY_INDEX if not known else {})) as db:
        await db.execute("ALTER TABLE polling_targets DISABLE TRIGGER USER")
        await db.execute(f"INSERT INTO polling_targets {many} FROM generate_series(1, 100000) AS id")
        if known:
            await db.execute("ANALYZE polling_targets")
        await db.execute(f"PREPARE due (float8, bigint, float8, bigint) AS {DUE}")

        for way, after in itertools.product(("force_custom_plan", "force_generic_plan"), (0, 50_000, 99_000)):
            await db.execute(f"SET plan_cache_mode = {way}")
            plan = "\n".join(line for (line,) in await db.fetch(f"EXPLAIN EXECUTE due ({after}, 5, 100000, 5000)"))
            assert "Index Scan using polling_due" in plan
            assert not re.search("Sort|Seq Scan|Bitmap|Filter", plan), plan


@in_loop
async def test_connections_are_set_up_for_what_they_do(postgres: str, schema: str) -> None:
    asked = [*BY_INDEX, ENDED, "synchronous_commit", "lock_timeout", "search_path"]
    usual = BY_INDEX | {"synchronous_commit": "on", "lock_timeout": "2000", "search_path": schema}
    query = "SELECT name, setting FROM pg_settings WHERE name = ANY($1)"
    async with opened(at(postgres, schema)) as store:
        link = link_of(store)
        read = dict(map(tuple, await link.read(lambda db: db.fetch(query, asked))))
        hasty = dict(map(tuple, await link.write(lambda db: db.fetch(query, asked), durable=False)))
        written = dict(map(tuple, await link.write(lambda db: db.fetch(query, asked))))

    assert usual.items() <= read.items()
    assert written.items() >= (usual | {ENDED: "4000"}).items()
    assert hasty == written | {"synchronous_commit": "off"}


# --- what is there already ---


@pytest.mark.parametrize("table", ["polling_targets", "polling_meta", "laps"])
@in_loop
async def test_a_table_of_something_else_is_said_and_left_alone(
    place: Place, postgres: str, schema: str, table: str
) -> None:
    said = "column .* does not exist" if table == "polling_meta" else f"table {table} that is not ours"
    async with connected(postgres) as db:
        await db.execute(f"CREATE SCHEMA {schema} CREATE TABLE {table} (x text)")

        with pytest.raises(PollingStoreError, match=said) as error:
            async with place.opens():
                pass

        assert not error.value.transient
        tables = await db.fetch("SELECT table_name FROM information_schema.tables WHERE table_schema = $1", schema)
        assert [tuple(row) for row in tables] == [(table,)]


@in_loop
async def test_a_table_that_another_has_made_later_is_left_alone(place: Place) -> None:
    async with place.opens(Schema(SCHEMA.tables[:1])):
        pass
    await place.sql("CREATE TABLE pilots (id text)")

    with pytest.raises(PollingStoreError, match="has a table pilots that is not ours") as error:
        async with place.opens():
            pass
    assert not error.value.transient


@in_loop
async def test_edits_of_rows_are_noticed_also_in_a_store_of_a_version_before_that(place: Place) -> None:
    async with place.opens() as store:
        await add(store, found("a"))
        await keep(store, event(), race("a"))
    await place.sql("DROP TRIGGER polling_row ON races")
    await place.sql("DROP TABLE polling_touched")

    async with place.opens() as store:
        await taken(store)
        await place.sql("UPDATE races SET start = '9'")

        assert [each.source_id for each in (await store.take_edits(WALL)).targets] == ["a"]


@in_loop
async def test_what_an_admin_has_not_committed_is_taken_when_it_is(place: Place, postgres: str, schema: str) -> None:
    async with place.opens() as store, connected(postgres, search_path=schema) as admin:
        await add(store, found("a"))
        await keep(store, event(), race("a"))
        await taken(store)
        await place.sql("UPDATE races SET start = '8'")
        async with admin.transaction():
            await admin.execute("UPDATE races SET start = '9'")

            assert not any(await store.take_edits(WALL))

        assert [each.source_id for each in (await store.take_edits(WALL)).targets] == ["a"]


@in_loop
async def test_to_empty_a_table_is_an_edit_of_all_its_rows(place: Place) -> None:
    async with place.opens() as store:
        await add(store, found("a"), found("c", event="f"))
        await taken(store)

        await place.sql("TRUNCATE laps")

        assert [each.source_id for each in (await store.take_edits(WALL)).targets] == ["a", "c"]


@in_loop
async def test_a_store_of_an_earlier_release_is_taken_over_once_nobody_of_it_polls(
    place: Place, postgres: str, schema: str
) -> None:
    """There a lock told who polls, and those who hold it know nothing of leases."""
    async with place.opens() as store:
        await keep(store, event())
    await place.sql("ALTER TABLE polling_meta ADD COLUMN claims bigint NOT NULL DEFAULT 0")
    await place.sql("UPDATE polling_meta SET format = 1")
    await place.sql("DROP TABLE polling_limiter")
    lock = "SELECT pg_advisory_lock(1396788816::bigint << 32 | oid::bigint) FROM pg_namespace WHERE nspname = $1"
    async with connected(postgres) as earlier:
        await earlier.execute(lock, schema)
        with pytest.raises(PollingStoreError, match="a process of an earlier release polls postgresql://") as error:
            async with place.opens():
                pass
        assert not error.value.transient
        async with place.opens(None) as reader:
            assert len(await all_rows(reader)) == 1

    async with place.opens() as store:
        await store.claim(WALL)
        assert len(await all_rows(store)) == 1
    assert await place.sql("SELECT format, claims FROM polling_meta") == [(2, 1)]


@in_loop
async def test_a_source_cannot_have_the_table_that_says_who_polls(postgres: str, schema: str) -> None:
    with pytest.raises(PollingStoreError, match="a table lease; in PostgreSQL that name is taken"):
        await open_postgres_polling(at(postgres, schema), Schema((SourceTable("lease", ()),)), "race")


@in_loop
async def test_a_later_version_is_refused(place: Place) -> None:
    async with place.opens():
        await place.sql("UPDATE polling_meta SET format = 9")

    with pytest.raises(PollingStoreError, match="is of format 9, this version reads 2; use a newer version") as error:
        async with place.opens():
            pass
    assert not error.value.transient


@in_loop
async def test_who_has_no_schema_makes_nothing(place: Place, postgres: str, schema: str) -> None:
    with pytest.raises(PollingStoreError, match="nobody has polled there") as error:
        async with place.opens(None):
            pass

    assert not error.value.transient
    async with connected(postgres) as db:
        assert await db.fetchval("SELECT count(*) FROM pg_namespace WHERE nspname = $1", schema) == 0


@in_loop
async def test_a_source_may_come_back_to_what_it_had_before(place: Place) -> None:
    """Two versions of a program take turns: neither takes anything away from the other."""
    rows = {("events", "e"): {"name": "x"}, ("notes", "1"): {"target": "t", "text": None}}
    async with place.opens() as store:
        await keep(store, event(name="x"), note("1", "t"))

    for _ in range(2):
        async with place.opens(Schema((SourceTable("events", ()),))) as store:
            assert [row.values for row in await store.rows("events")] == [{}]
        async with place.opens() as store:
            assert await all_rows(store) == rows


@in_loop
async def test_many_that_open_it_for_the_first_time_make_it_once(place: Place) -> None:
    async def use(number: int) -> None:
        async with place.opens() as store:
            await keep(store, event(str(number)))

    async with asyncio.TaskGroup() as group:
        for number in range(8):
            group.create_task(use(number))

    async with place.opens() as store:
        assert len(await all_rows(store)) == 8


@in_loop
async def test_tables_may_be_called_as_those_of_the_server(place: Place) -> None:
    schema = Schema(
        (SourceTable("pg_class", (Column("relname"),)), SourceTable("pg_user", (Column("a", references="pg_class"),)))
    )
    rows = [SourceRow("pg_class", "1", {"relname": "x"}), SourceRow("pg_user", "2", {"a": "1"})]
    async with place.opens(schema) as store:
        assert len(await store.keep(told(schema.document(rows)))) == 2

    async with place.opens(schema) as store:
        assert await all_rows(store, schema) == {(row.table, row.key): row.values for row in rows}
        assert await store.purge(WALL) == {"pg_class": 1, "pg_user": 1, "targets": 0}


@in_loop
async def test_a_column_that_no_table_of_the_server_can_have_is_said(place: Place) -> None:
    with pytest.raises(PollingStoreError, match='"xmin"') as error:
        async with place.opens(Schema((SourceTable("t", (Column("xmin"),)),))):
            pass
    assert not error.value.transient


@in_loop
async def test_what_is_too_long_for_an_index_is_the_documents_fault(place: Place) -> None:
    incompressible = random.Random(1).randbytes(4000).hex()
    async with place.opens() as store:
        with pytest.raises(SourceError, match="cannot be stored: index row size") as error:
            await keep(store, event(), note("1", incompressible))

        assert error.value.outcome.code is Code.INVALID_RESPONSE
        assert await all_rows(store) == {}


@pytest.fixture
def second(postgres: str) -> Iterator[str]:
    with fresh_schema(postgres) as name:
        yield name


@in_loop
async def test_two_schemas_do_not_see_each_other(place: Place, postgres: str, second: str) -> None:
    async with place.opens() as store, opened(at(postgres, second)) as other:
        await store.claim(WALL)
        await other.claim(WALL)
        await keep(store, event())

        assert await all_rows(other) == {}


# --- admins ---


@pytest.fixture
def shared_place(postgres: str, shared: str) -> Place:
    asyncio.run(wipe(postgres, shared))
    return place_in(postgres, shared)


@pytest.mark.parametrize(
    "values",
    [
        *(f"{column} = 'NaN'" for column in ("seconds", "set_seconds", "promote", "gone", "until", "next_due")),
        *(f"{column} = 'Infinity'" for column in ("seconds", "set_seconds", "promote", "gone", "until")),
        *(f"{column} = 1e10" for column in ("seconds", "set_seconds", "promote")),
    ],
)
@in_loop
async def test_no_number_that_is_none_gets_in_by_hand(shared_place: Place, values: str) -> None:
    async with shared_place.opens() as store:
        await add(store, found("a"))
        with pytest.raises(asyncpg.CheckViolationError):
            await shared_place.sql(f"UPDATE polling_targets SET {values}")  # noqa: S608 - ours


@in_loop
async def test_an_admin_is_heard_who_may_do_no_more_than_that(place: Place, postgres: str, schema: str) -> None:
    """And who looks for tables elsewhere."""
    role = f"admin_{schema}"
    async with place.opens() as store, connected(postgres) as db:
        await add(store, found("a"))
        await taken(store)
        await db.execute(f"CREATE ROLE {role}; GRANT USAGE ON SCHEMA {schema} TO {role}")
        try:
            await db.execute(f"GRANT UPDATE (enabled) ON {schema}.polling_targets TO {role}; SET ROLE {role}")  # noqa: S608 - ours
            await db.execute(f"UPDATE {schema}.polling_targets SET enabled = false")  # noqa: S608 - ours
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await db.execute(f"UPDATE {schema}.polling_targets SET runs = 5")  # noqa: S608 - ours
        finally:
            await db.execute(f"RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")

        assert [each.enabled for each in (await taken(store)).targets] == [False]


@in_loop
async def test_to_set_what_is_set_already_is_no_edit(shared_place: Place) -> None:
    async with shared_place.opens() as store:
        await add(store, found("a"))
        await taken(store)

        await shared_place.sql("UPDATE polling_targets SET enabled = true, seconds = 10, promote = NULL")

        assert not any(await taken(store))


# --- what can be wrong with a URL ---


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://reader:hunt/er2@host/x",
        "postgresql://reader:hunter2@host:port/x",
        "postgresql://reader:hunter2@host/x#y",
        "postgresql://reader:hunter2@" + "h" * 64 + "/x",
        "mysql://reader:hunter2@host/x",
    ],
)
@in_loop
async def test_what_is_no_url_of_a_postgresql_is_refused_and_not_quoted(url: str) -> None:
    with pytest.raises(PollingStoreError, match="the address of the PostgreSQL is no URL; expected") as error:
        await open_postgres_polling(url, SCHEMA, "race")

    assert not error.value.transient
    assert not re.search("hunt|er2", str(error.value))


@in_loop
async def test_nobody_there_is_transient_and_said_without_the_password() -> None:
    with pytest.raises(
        PollingStoreError, match=r"postgresql://127.0.0.1:1/x, schema public cannot be reached"
    ) as error:
        await open_postgres_polling("postgresql://reader:hunter2@127.0.0.1:1/x", SCHEMA, "race")

    assert error.value.transient
    assert "hunter2" not in f"{error.value!r}"


@in_loop
async def test_who_is_not_let_in_is_told_without_the_password(postgres: str) -> None:
    url = re.sub("//[^@/]*@", "//nobody_of_that_name:hunter2@", postgres)
    with pytest.raises(PollingStoreError, match=r"cannot be used: .*nobody_of_that_name") as error:
        await open_postgres_polling(url, SCHEMA, "race")

    assert not error.value.transient
    assert "hunter2" not in f"{error.value!r}"


@in_loop
async def test_nothing_shows_the_password(place: Place, postgres: str, schema: str) -> None:
    url = re.sub("//[^:@/]*@", lambda user: f"{user[0][:-1]}:hunter2@", at(postgres, schema))
    assert "hunter2" in url
    async with opened(url) as store:
        assert schema in repr(store)
        assert "hunter2" not in repr(store) + repr(link_of(store)) + repr(link_of(store)._address)
        await store.claim(WALL)
        async with place.opens() as other, holding(store):
            with pytest.raises(PollingStoreError, match="another process polls") as error:
                await other.claim(WALL)
            assert "hunter2" not in str(error.value)
