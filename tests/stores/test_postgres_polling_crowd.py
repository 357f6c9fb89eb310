"""A polling store in PostgreSQL when others edit the same targets at the same time."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from looping import in_loop
from polling_play import WALL, Place, add, brief, document, event, found, get, ran, taken, told
from postgres_polling_place import (
    at,
    connected,
    fresh_schema,
    opened,
    place_in,
    polling,
    process_of,
    until_waiting,
    wipe,
)

from sanderling.stores import postgres_polling
from sanderling.stores.polling import Edits, PollingStoreError, Query, Reconciliation
from sanderling.stores.postgres_polling_targets import PostgresPollingDialect


@pytest.fixture(scope="module")
def shared(postgres: str) -> Iterator[str]:
    with fresh_schema(postgres) as name:
        yield name


@pytest.fixture
def schema(postgres: str, shared: str) -> str:
    asyncio.run(wipe(postgres, shared))
    return shared


@pytest.fixture
def place(postgres: str, schema: str) -> Place:
    return place_in(postgres, schema)


@asynccontextmanager
async def somebody_editing(place_url: str, schema: str, source_id: str) -> AsyncIterator[Any]:
    """Who has changed a target, and has gone for lunch in the middle of a transaction."""
    async with connected(place_url, search_path=schema) as db:
        transaction = db.transaction()
        await transaction.start()
        await db.execute("UPDATE polling_targets SET enabled = false WHERE source_id = $1", source_id)
        yield transaction


@pytest.mark.parametrize("end", ["commit", "rollback"])
@in_loop
async def test_whoever_polls_does_not_wait_for_an_admin(postgres: str, schema: str, end: str) -> None:
    async with polling(at(postgres, schema)) as store:
        a, b = await add(store, found("a"), found("b"))
        await taken(store)
        async with somebody_editing(postgres, schema, "a") as transaction:
            await store.write([ran(a, runs=1), ran(b, runs=1)])
            await store.write([ran(a, runs=2), ran(b, runs=2)])
            assert brief(await store.keep(told(document(event()), "a", digest=b"1"))) == ["insert events e"]
            assert not any(await store.take_edits(WALL))
            assert [(await get(store, key)).runs for key in "ab"] == [0, 2]
            await getattr(transaction, end)()

        # It was told that all was written, and may have let go of it.
        heard = (await taken(store)).targets
        seen = await get(store, "a")
        assert heard == (seen,)
        assert (seen.runs, seen.enabled) == (2, end == "rollback")


@pytest.mark.parametrize(
    "lock",
    [
        "UPDATE polling_targets SET set_priority = 5 WHERE source_id = 'a'",
        "SELECT FROM polling_targets WHERE source_id = 'a' FOR UPDATE",
    ],
)
@in_loop
async def test_an_edit_is_taken_when_whoever_edits_the_target_again_is_done(
    postgres: str, schema: str, lock: str
) -> None:
    async with polling(at(postgres, schema)) as store, connected(postgres, search_path=schema) as db:
        await add(store, found("a"), found("b"))
        await taken(store)
        await store.change("race", "a", {"set_seconds": 1.0})
        await store.promote(Query(source_id="b"), 5.0)
        async with db.transaction():
            await db.execute(lock)

            assert [each.source_id for each in (await store.take_edits(WALL)).targets] == ["b"]
            assert not any(await store.take_edits(WALL))

        assert await taken(store) == Edits((await get(store, "a"),), ())


@in_loop
async def test_what_is_owed_is_written_as_it_was_last(postgres: str, schema: str) -> None:
    async with polling(at(postgres, schema)) as store:
        (a,) = await add(store, found("a"))
        async with somebody_editing(postgres, schema, "a") as transaction:
            await store.write([ran(a, runs=1)])
            await transaction.rollback()

        await store.write([ran(a, runs=5)])
        await store.write([])

        assert (await get(store, "a")).runs == 5


@in_loop
async def test_nothing_is_owed_to_a_target_that_is_no_more(postgres: str, schema: str) -> None:
    async with polling(at(postgres, schema)) as store, connected(postgres, search_path=schema) as db:
        (a,) = await add(store, found("a"))
        async with db.transaction():
            await db.execute("DELETE FROM polling_targets")
            await store.write([ran(a, runs=1)])

        await store.write([])

        assert isinstance(store._dialect, PostgresPollingDialect)
        assert store._dialect._owed == {}
        assert await taken(store) == ((), (a.id,))


@in_loop
async def test_who_waits_in_a_ring_with_an_admin_tries_again(postgres: str, schema: str) -> None:
    async with polling(at(postgres, schema)) as store, connected(postgres, search_path=schema) as db:
        a, b = await add(store, found("a"), found("b"))
        lock = "UPDATE polling_targets SET set_priority = 7 WHERE id = $1"
        plan = Reconciliation(update=((a.id, found("a", seconds=1.0)), (b.id, found("b", seconds=2.0))))
        async with asyncio.TaskGroup() as group, db.transaction():
            await db.execute(lock, b.id)
            group.create_task(store.apply(plan, WALL))
            async with connected(postgres) as other:
                await until_waiting(other, process_of(store))
            # Now it has the one and waits for the other: it has waited longer, and must give way.
            await db.execute(lock, a.id)

        seen = [await get(store, key) for key in "ab"]
        assert [(each.seconds, each.set_priority) for each in seen] == [(1.0, 7), (2.0, 7)]


@in_loop
async def test_who_waits_too_long_for_others_is_told_to_come_again(
    postgres: str, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(postgres_polling.LOCK_TIMEOUT, "lock_timeout", "20ms")
    async with opened(at(postgres, schema)) as store, connected(postgres, search_path=schema) as db:
        (a,) = await add(store, found("a"))
        async with db.transaction():
            await db.execute("UPDATE polling_targets SET enabled = false")

            with pytest.raises(PollingStoreError, match="is busy: canceling statement due to lock timeout") as error:
                await store.apply(Reconciliation(gone=(a.id,)), WALL)
        assert error.value.transient


@in_loop
async def test_many_who_change_all_targets_at_once_do_not_fail(place: Place, postgres: str, schema: str) -> None:
    many = tuple(found(f"{number:04}") for number in range(1500))
    async with polling(at(postgres, schema)) as store, place.opens(None) as admin:
        await store.apply(Reconciliation(insert=many), WALL)
        targets = {each.id: each for each in (await taken(store)).targets}
        over = asyncio.Event()

        async def write_back() -> None:
            for number in itertools.count(1):
                await store.write([ran(each, runs=number) for each in targets.values()])
                hear(await store.take_edits(WALL))
                if over.is_set():
                    return

        def hear(edits: Edits) -> None:
            targets.update((each.id, each) for each in edits.targets)

        async def edit() -> None:
            for number in range(4):
                assert await admin.promote(Query(), float(number)) == len(many)
                await place.sql(f"UPDATE polling_targets SET set_priority = {number}")  # noqa: S608 - ours
            over.set()

        async with asyncio.TaskGroup() as group:
            group.create_task(write_back())
            group.create_task(edit())

        hear(await taken(store))
        assert {each.set_priority for each in targets.values()} == {3}
        assert {each.promote for each in await store.list(Query(most=2000))} == {None}
