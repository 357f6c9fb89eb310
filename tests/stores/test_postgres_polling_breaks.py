"""A polling store in PostgreSQL when connections break, processes are killed, and others are in the way."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import postgres_polling_killed
import pytest
from killed import killed
from looping import in_loop
from polling_play import (
    WALL,
    Place,
    add,
    all_changes,
    all_rows,
    brief,
    event,
    found,
    get,
    holding,
    keep,
    ran,
    replayed,
)
from postgres_polling_place import (
    at,
    connected,
    fresh_schema,
    link_of,
    place_in,
    polling,
    process_of,
    until_waiting,
    wipe,
)
from wire import Wire

from sanderling.stores.polling import PollingStoreError
from sanderling.stores.polling_lease import PolledElsewhereError
from sanderling.stores.polling_store import PollingStore

PAST = "UPDATE lease SET until = clock_timestamp() - interval '1 s'"


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
async def stuck(db: Any, store: PollingStore) -> AsyncIterator[asyncio.Task[Any]]:  # noqa: ANN401 - no types
    """A document that is being kept, and waits for the number of the last change."""
    transaction = db.transaction()
    await transaction.start()
    await db.execute("SELECT FROM polling_meta FOR UPDATE")
    keeping = asyncio.ensure_future(keep(store, event()))
    await until_waiting(db, process_of(store))
    yield keeping
    await transaction.rollback()


# --- a connection that breaks ---


@in_loop
async def test_a_backend_that_is_ended_in_the_middle_leaves_nothing_and_it_goes_on(
    place: Place, postgres: str, schema: str
) -> None:
    async with polling(at(postgres, schema)) as store, connected(postgres, search_path=schema) as db:
        async with stuck(db, store) as keeping:
            await db.execute("SELECT pg_terminate_backend($1)", process_of(store))

            with pytest.raises(PollingStoreError, match="cannot be") as error:
                await keeping
            assert error.value.transient
            assert "whether" not in str(error.value)
            assert await all_rows(store) == {}

        assert brief(await keep(store, event())) == ["insert events e"]
        async with place.opens() as other, holding(store):
            with pytest.raises(PolledElsewhereError, match="another process polls"):
                await other.claim(WALL)


@in_loop
async def test_a_wire_that_is_cut_in_the_middle_leaves_nothing_and_it_goes_on(
    place: Place, postgres: str, schema: str
) -> None:
    wire = Wire(postgres)
    async with (
        place.opens(),
        wire.laid(postgres) as url,
        polling(at(url, schema)) as store,
        connected(postgres, search_path=schema) as db,
    ):
        async with stuck(db, store) as keeping:
            wire.cut()

            with pytest.raises(PollingStoreError, match="cannot be") as error:
                await keeping
            assert error.value.transient

        assert await all_rows(store) == {}
        assert brief(await keep(store, event())) == ["insert events e"]
        assert len(await all_changes(store)) == 1


@in_loop
async def test_a_commit_of_which_we_never_heard_is_found_when_it_is_kept_again(
    place: Place, postgres: str, schema: str
) -> None:
    wire = Wire(postgres)
    async with place.opens() as other, wire.laid(postgres) as url, polling(at(url, schema)) as store:
        wire.before = lambda data: b"COMMIT\0" in data and b"Z" in data  # the server's word that it is done
        with pytest.raises(PollingStoreError, match="whether it was written shows when it is read again") as error:
            await keep(store, event())
        wire.before = lambda _: False

        assert error.value.transient
        assert brief(await other.changes(0, 10)) == ["insert events e"], "so the feed finds it"
        assert await keep(store, event()) == []
        assert brief(await all_changes(store)) == ["insert events e"]


@in_loop
async def test_while_the_server_is_away_everything_is_transient_and_then_it_goes_on(
    place: Place, postgres: str, schema: str
) -> None:
    wire = Wire(postgres)
    async with place.opens(), wire.laid(postgres) as url, polling(at(url, schema)) as store:
        (target,) = await add(store, found("a"))
        calls = (
            lambda: store.due((0.0, 0), WALL, 5),
            lambda: store.write([ran(target, runs=5)]),
            lambda: store.take_edits(WALL),
            lambda: keep(store, event()),
            lambda: store.change("race", "a", {"set_priority": 3}),
            lambda: store.set("x", "y"),
            lambda: store.claim(WALL),
        )
        wire.before = lambda _: True
        for call in calls:
            with pytest.raises(PollingStoreError) as error:
                await call()
            assert error.value.transient, str(error.value)
        wire.before = lambda _: False

        for call in calls:
            await call()
        assert ((await get(store)).runs, (await get(store)).set_priority) == (5, 3)


@pytest.mark.parametrize("times", [1, 2])
@in_loop
async def test_who_is_cancelled_in_the_middle_leaves_nothing_and_the_next_goes_on(
    postgres: str, schema: str, times: int
) -> None:
    """Also who is cancelled again while it is rolled back."""
    async with polling(at(postgres, schema)) as store, connected(postgres, search_path=schema) as db:
        async with stuck(db, store) as keeping:
            for _ in range(times):
                keeping.cancel()
                await asyncio.sleep(0)
            with pytest.raises(asyncio.CancelledError):
                await keeping
            assert await all_rows(store) == {}

        assert brief(await keep(store, event())) == ["insert events e"]


# --- who polls ---


@in_loop
async def test_who_slept_past_the_lease_writes_nothing_and_is_told(place: Place, postgres: str, schema: str) -> None:
    async with (
        polling(at(postgres, schema)) as store,
        place.opens() as other,
        connected(postgres, search_path=schema) as db,
    ):
        (target,) = await add(store, found("a"))
        await db.execute(PAST)
        await other.claim(WALL)

        for _ in range(2):
            with pytest.raises(PolledElsewhereError, match="another process polls postgresql://") as error:
                await store.write([ran(target, runs=5)])
            assert not error.value.transient
        with pytest.raises(PolledElsewhereError):
            await store.database.hold(bool)
        assert not store.database.may_send()
        assert (await other.find("race", "a")) == target

        await other.close()
        with pytest.raises(PolledElsewhereError):
            await store.write([ran(target, runs=5)])


@in_loop
async def test_nobody_takes_over_in_the_middle_of_a_write_until_the_server_ends_it(
    place: Place, postgres: str, schema: str
) -> None:
    """One that was stopped there holds its rows, too."""
    async with (
        polling(at(postgres, schema)) as store,
        place.opens() as other,
        connected(postgres, search_path=schema) as db,
    ):
        await keep(store, event())
        link = link_of(store)
        stopped = link._db.transaction()
        await stopped.start()
        await link._check_lease(link._db)
        await link._db.execute("UPDATE polling_meta SET newest = 100")
        await db.execute(PAST)

        async with asyncio.timeout(60):
            await other.claim(WALL)  # which waits for the server, and not for us

        assert (await other.span()).newest == 1
        with pytest.raises(PollingStoreError):
            await keep(store, event("f"))


@in_loop
async def test_a_connection_that_breaks_does_not_cost_the_lease(place: Place, postgres: str, schema: str) -> None:
    """The server may not have noticed that it broke."""
    async with polling(at(postgres, schema)) as store:
        link = link_of(store)
        old, link._db = link._db, None

        assert brief(await keep(store, event())) == ["insert events e"]

        await old.close()
        async with place.opens() as other, holding(store):
            with pytest.raises(PolledElsewhereError, match="another process polls"):
                await other.claim(WALL)


@in_loop
async def test_what_was_closed_stays_closed(place: Place) -> None:
    async with place.opens() as store:
        await store.claim(WALL)
        await store.close()

        for call in (lambda: keep(store, event()), store.span, lambda: store.claim(WALL)):
            with pytest.raises(PollingStoreError):
                await call()
        await store.close()


@pytest.mark.parametrize("after", [1, 7, 25])
def test_kill_9_leaves_rows_and_changes_that_agree_and_another_may_poll_soon(
    postgres: str, schema: str, after: int
) -> None:
    url = at(postgres, schema)

    async def check() -> list[int]:
        async with polling(url) as store:
            changes = await all_changes(store)
            assert replayed(changes) == await all_rows(store)
            return [each.seq for each in changes]

    numbers: list[int] = []
    for _ in range(2):
        killed([Path(postgres_polling_killed.__file__), url], after=after)
        before, numbers = numbers, asyncio.run(check())
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) > len(before)
