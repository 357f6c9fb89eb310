import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import product
from typing import Any, get_args

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker
import pytest
from analytics_contract import AnalyticsContract
from analytics_contract_replays import ALL
from analytics_play import TABLES, Place, all_messages, all_posts, batch, comment, error, message, post
from looping import in_loop
from postgres_polling_place import at, connected, fresh_schema
from wire import Wire

from sanderling.stores import analytics_postgres_tables, analytics_writing
from sanderling.stores.analytics import AnalyticsError, BatchResult, ErrorFilter, PostFilter, Sort
from sanderling.stores.analytics_open import migrate, open_analytics
from sanderling.stores.analytics_postgres_tables import BY_INDEX
from sanderling.stores.analytics_questions import Question, counted_events, next_to_replay, page_of_posts
from sanderling.stores.analytics_store import AnalyticsStore
from sanderling.stores.analytics_writing import OF_EVENT, OLD_ERRORS, old_events
from sanderling.stores.database import POSTGRES, SqlCondition
from sanderling.stores.postgres_database import PostgresTransaction, numbered

WHOLE = batch(posts=[post("a"), post("b")], comments=[comment(0)], errors=[error(2)], outbox=[message()])
KEPT = BatchResult(new=True, posts=2, errors=1)
# Who waits for us, or behind another. (What the server says of activity is of when our transaction first asked for it.)
WAITING = """SELECT pid FROM pg_locks
    WHERE NOT granted AND pid <> $1 AND pg_blocking_pids(pid) && ARRAY[pg_backend_pid(), $1]"""


@pytest.fixture(scope="module")
def shared(postgres: str) -> Iterator[str]:
    with fresh_schema(postgres) as name:
        asyncio.run(migrate(at(postgres, name)))
        yield name


@pytest.fixture
def schema(postgres: str, shared: str) -> str:
    asyncio.run(wipe(postgres, shared))
    return shared


async def wipe(postgres: str, schema: str) -> None:
    async with connected(postgres, search_path=schema, synchronous_commit="off") as db:
        await db.execute("; ".join(f"DELETE FROM {name}" for name in TABLES))  # noqa: S608 - ours


async def opens(url: str) -> AnalyticsStore:
    return await open_analytics(url, asyncio.to_thread)


@asynccontextmanager
async def opened(url: str, **sizes: int) -> AsyncIterator[AnalyticsStore]:
    store = await open_analytics(url, asyncio.to_thread, **sizes)
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
def place(postgres: str, schema: str) -> Place:
    async def sql(statement: str) -> list[tuple[Any, ...]]:
        async with connected(postgres, search_path=schema) as db:
            return [tuple(row) for row in await db.fetch(statement)]

    # What a crash of the server may undo is not what is tested.
    url = f"{at(postgres, schema)}&synchronous_commit=off"

    async def until_idle() -> None:
        """The server takes its time to notice that somebody was killed, and ends what it was told to end."""
        held = "SELECT pid FROM pg_locks WHERE relation = 'processed_events'::regclass"
        async with asyncio.timeout(300):
            while await sql(held):  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.01)

    return Place(lambda: opened(url), sql, lambda: wipe(postgres, schema), at(postgres, schema), until_idle)


class TestPostgresAnalytics(AnalyticsContract):
    pass


# --- connections that break, others in the way ---


@asynccontextmanager
async def stuck(db: Any, store: AnalyticsStore) -> AsyncIterator[asyncio.Task[BatchResult | AnalyticsError]]:  # noqa: ANN401 - no types
    """A batch that is being kept, and waits for somebody who has one of its posts."""
    await store.keep(batch("evt_0", [post("b", crawled_at=1.0)]))
    transaction = db.transaction()
    await transaction.start()
    await db.execute("SELECT FROM post_analytics FOR UPDATE")
    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(outcome(store))
        await waiting(db)
        yield keeping
        await transaction.rollback()


async def outcome(store: AnalyticsStore) -> BatchResult | AnalyticsError:
    try:
        return await store.keep(WHOLE)
    except AnalyticsError as error:
        return error


async def waiting(db: Any, behind: int = 0) -> int:  # noqa: ANN401 - no types
    """The server's process that waits for us, as soon as one does."""
    async with asyncio.timeout(300):
        while not (process := await db.fetchval(WAITING, behind)):  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.01)
    return int(process)


async def nothing_new(place: Place) -> bool:
    return await place.sql("SELECT count(*) FROM processed_events WHERE event_id <> 'evt_0'") == [(0,)]


@in_loop
async def test_a_backend_that_is_ended_in_the_middle_is_transient_and_leaves_nothing(
    place: Place, postgres: str, schema: str
) -> None:
    async with opened(at(postgres, schema)) as store, connected(postgres, search_path=schema) as db:
        async with stuck(db, store) as keeping:
            await db.execute("SELECT pg_terminate_backend($1)", await waiting(db))
            error = await keeping

        assert isinstance(error, AnalyticsError)
        assert error.transient, str(error)
        assert await nothing_new(place)
        assert await store.keep(WHOLE) == KEPT


@in_loop
async def test_a_trigger_that_fails_at_one_post_is_an_answer_and_others_are_kept(
    place: Place, postgres: str, schema: str
) -> None:
    """That may be about this batch alone. A rehearsal comes as far as the trigger, and says how others fare."""
    bad, good = batch("evt_bad", posts=[post("bad")]), batch("evt_good", posts=[post("good")])
    async with place.opens() as store, connected(postgres, search_path=schema) as db:
        await db.execute(
            """CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'not this one'; END $$;
            CREATE TRIGGER fail BEFORE INSERT ON post_analytics FOR EACH ROW WHEN (NEW.post_id LIKE '%bad')
            EXECUTE FUNCTION fail()"""
        )
        for attempt in (store.keep(bad), store.rehearse(bad)):
            with pytest.raises(AnalyticsError, match="not this one") as told:
                await attempt
            assert (told.value.answered, told.value.transient) == (True, True)
        await store.rehearse(good)
        assert (await store.keep(good)).new


@in_loop
async def test_a_wire_that_is_cut_in_the_middle_is_transient_and_leaves_nothing(
    place: Place, postgres: str, schema: str
) -> None:
    wire = Wire(postgres)
    async with (
        wire.laid(postgres) as url,
        opened(at(url, schema)) as store,
        connected(postgres, search_path=schema) as db,
    ):
        async with stuck(db, store) as keeping:
            wire.cut()
            error = await keeping

        assert isinstance(error, AnalyticsError)
        assert error.transient, str(error)
        assert await nothing_new(place)
        assert await store.keep(WHOLE) == KEPT


@in_loop
async def test_a_commit_of_which_we_never_heard_is_found_when_it_is_kept_again(
    place: Place, postgres: str, schema: str
) -> None:
    wire = Wire(postgres)
    async with wire.laid(postgres) as url, opened(at(url, schema)) as store:
        wire.before = lambda data: b"COMMIT\0" in data and b"Z" in data  # the server's word that it is done
        with pytest.raises(AnalyticsError) as told:
            await store.keep(WHOLE)
        wire.before = lambda _: False

        assert told.value.transient
        assert await store.keep(WHOLE) == BatchResult(new=False)
        assert await place.sql("SELECT posts, errors FROM processed_events") == [(2, 1)]
        assert len([each async for each in all_messages(store)]) == 1


@in_loop
async def test_while_the_server_is_away_everything_is_transient_and_then_it_goes_on(postgres: str, schema: str) -> None:
    wire = Wire(postgres)
    async with wire.laid(postgres) as url, opened(at(url, schema)) as store:
        calls = (
            store.ping,
            lambda: store.keep(WHOLE),
            lambda: store.processed("evt_1"),
            lambda: store.add([message()]),
            lambda: store.waiting(0, 5),
            lambda: store.summary(PostFilter(project_id="p")),
            lambda: store.posts(PostFilter(project_id="p"), sort="like_count", descending=True, offset=0, most=5),
            lambda: store.errors(ErrorFilter(), offset=0, most=5),
        )
        wire.before = lambda _: True
        for call in calls:
            with pytest.raises(AnalyticsError) as told:
                await call()
            assert told.value.transient, str(told.value)
        wire.before = lambda _: False

        for call in calls:
            await call()
        assert await store.depth() == 2


@in_loop
async def test_of_two_who_wait_for_each_other_ours_begins_again(place: Place, postgres: str, schema: str) -> None:
    """The server ends whoever has waited for a second."""
    async with opened(at(postgres, schema)) as store, connected(postgres, search_path=schema) as db:
        if not await db.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"):
            pytest.skip("only a superuser may say who is to be ended")
        await store.keep(batch("evt_0", [post("a", crawled_at=1.0), post("b", crawled_at=1.0)]))
        transaction = db.transaction()
        await transaction.start()
        await db.execute("SET LOCAL deadlock_timeout = '60s'")
        await db.execute("UPDATE post_analytics SET keyword = 'theirs' WHERE post_id = 'b'")
        async with asyncio.TaskGroup() as group:
            keeping = group.create_task(store.keep(WHOLE))
            await waiting(db)
            await db.execute("UPDATE post_analytics SET keyword = 'theirs' WHERE post_id = 'a'")
            await transaction.commit()

        assert keeping.result() == KEPT
        assert [each.row.keyword for each in await all_posts(store)] == ["VF8", "VF8"]
        assert await place.sql("SELECT count(*) FROM outbox") == [(1,)]


@in_loop
async def test_all_lock_posts_in_one_order_whatever_the_order_of_the_batch(
    postgres: str, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each of the two would have what the other one wants, once they have the post in the middle."""
    monkeypatch.setattr(analytics_postgres_tables, "TRIES", 1)
    names = ["a", "m", "z"]
    async with opened(at(postgres, schema)) as store, connected(postgres, search_path=schema) as db:
        await store.keep(batch("evt_0", [post(name, crawled_at=1.0) for name in names]))
        transaction = db.transaction()
        await transaction.start()
        await db.execute("SELECT FROM post_analytics WHERE post_id = 'm' FOR UPDATE")
        async with asyncio.TaskGroup() as group:
            there = group.create_task(store.keep(batch("evt_1", [post(name) for name in names])))
            first = await waiting(db)
            back = group.create_task(store.keep(batch("evt_2", [post(name) for name in reversed(names)])))
            await waiting(db, behind=first)
            await transaction.rollback()

        assert [there.result().posts, back.result().posts] == [3, 3]


@in_loop
async def test_messages_become_visible_in_the_order_of_their_numbers(place: Place, postgres: str, schema: str) -> None:
    """Whoever has read up to a number never finds a smaller one later."""
    async with place.opens() as store, connected(postgres, search_path=schema) as db:
        transaction = db.transaction()
        await transaction.start()
        await analytics_writing.add(PostgresTransaction(db), [message(b"first")])
        async with asyncio.TaskGroup() as group:
            group.create_task(store.keep(batch(posts=[post("a")], outbox=[message(b"second")])))
            await waiting(db)
            assert await store.waiting(0, 9) == []
            await transaction.commit()

        assert [each.body for each in await store.waiting(0, 9)] == [b"first", b"second"]


@in_loop
async def test_whoever_replays_waits_for_nobody_who_has_an_event_in_hand(
    place: Place, postgres: str, schema: str
) -> None:
    async with place.opens() as store, connected(postgres, search_path=schema) as db:
        for name in "abc":
            await store.keep(batch(name, message=name.encode()))
        async with db.transaction():
            await db.execute("SELECT FROM processed_events WHERE event_id = 'b' FOR UPDATE")
            async with asyncio.timeout(300):
                assert await store.replay(ALL, exchange="x", routing_key="k") == 2
                assert await store.forget_events(2e9) == 0
        assert await store.replay(ALL, exchange="x", routing_key="k") == 1

        assert [each.body async for each in all_messages(store)] == [b"a", b"c", b"b"]


@in_loop
async def test_a_replay_that_has_fewer_posts_and_another_batch_both_end_well(postgres: str, schema: str) -> None:
    """What it has no more is locked after what it has. So each of the two wants what the other one has."""
    async with opened(at(postgres, schema)) as store, connected(postgres, search_path=schema) as db:
        await store.keep(batch("evt_0", [post("a"), post("m"), post("z")], message=b"m"))
        await store.keep(batch("evt_1", [post("n")]))
        await store.replay(ALL, exchange="x", routing_key="k")
        transaction = db.transaction()
        await transaction.start()
        await db.execute("SELECT FROM post_analytics WHERE post_id = 'n' FOR UPDATE")
        async with asyncio.TaskGroup() as group:
            group.create_task(store.keep(batch("evt_2", [post(name, crawled_at=2e9) for name in "anz"])))
            first = await waiting(db)
            group.create_task(store.keep(batch("evt_0", [post("m", analyzed_at=2e9), post("z", analyzed_at=2e9)])))
            await waiting(db, behind=first)
            await transaction.rollback()

        found = {each.row.post_id: each.row.event_id for each in await all_posts(store)}
        assert found == {"a": "evt_2", "m": "evt_0", "n": "evt_2", "z": "evt_2"}


@in_loop
async def test_there_are_as_many_connections_as_are_needed_and_no_more_than_are_allowed(
    postgres: str, schema: str
) -> None:
    async with opened(at(postgres, schema), writers=2, readers=1) as store:
        async with asyncio.TaskGroup() as group:
            for number in range(8):
                group.create_task(store.keep(batch(f"evt_{number}", [post(str(number))])))
                group.create_task(store.ping())

        assert store.connections == 3
        assert len(await all_posts(store)) == 8


# --- tables ---


FILL = """INSERT INTO post_analytics (post_id, project_id, platform, analyzed_at, published_at, overall_sentiment,
        overall_sentiment_score, overall_confidence, primary_intent, intent_confidence, impact_score, risk_level,
        view_count, like_count)
    SELECT n, 'p' || n % 5, 'tiktok', to_timestamp(n), to_timestamp(n), '', 0, 0, '', 0, n, '', n, n
    FROM generate_series(1, 5000) AS n; ANALYZE post_analytics"""


@in_loop
async def test_an_index_gives_a_page_in_order(postgres: str, schema: str) -> None:
    async with connected(postgres, search_path=schema, synchronous_commit="off") as db:
        await db.execute(FILL)
        for sort, (descending, way) in product(get_args(Sort), [(False, ""), (True, " Backward")]):
            asked = page_of_posts(SqlCondition("project_id = ?", ("p1",)), sort, (descending, 0, 20), POSTGRES)
            rows = await db.fetch(f"EXPLAIN {numbered(asked.sql)}", *asked.values)
            plan = "\n".join(row[0] for row in rows)

            assert f"Index Scan{way} using idx_post_analytics_by_{sort} on post_analytics" in plan
            assert "Incremental Sort" in plan, "only those of equal value are put in order"


EVENTS = """INSERT INTO processed_events
        (event_id, job_id, project_id, platform, mode, received_at, processed_at, posts, errors, message)
    SELECT n, 'j', 'p', '', '', to_timestamp(n), to_timestamp(n), 0, 0, CASE WHEN n % 2 = 0 THEN 'm'::bytea END
    FROM generate_series(1, 5000) AS n; ANALYZE processed_events"""
SOME = SqlCondition("project_id = ? AND processed_at >= to_timestamp(?)", ("p", 9.0))


FOUND_BY: list[tuple[Question, str]] = [
    (next_to_replay(SOME, 9), "Index Only Scan using idx_processed_events_replayable"),
    (counted_events(SOME)[0], " idx_processed_events_replayable"),
    (counted_events(SOME)[1], " idx_processed_events_without_message"),
    (Question(old_events(POSTGRES)[0], (9.0, 9)), " idx_processed_events_without_message"),
    (Question(old_events(POSTGRES)[1], (9.0, 9)), " idx_processed_events_replayable"),
    (Question(OF_EVENT, ("j", "e")), "Index Scan using idx_post_analytics_job_id"),
    (Question(OLD_ERRORS, ("e",)), "Index Scan using uq_crawl_errors_item"),
]


@in_loop
async def test_what_is_replayed_or_forgotten_is_found_by_an_index(postgres: str, schema: str) -> None:
    async with connected(postgres, search_path=schema, synchronous_commit="off", **BY_INDEX) as db:
        await db.execute(EVENTS)
        for asked, by in FOUND_BY:
            rows = await db.fetch(f"EXPLAIN {numbered(asked.sql)}", *asked.values)

            assert by in "\n".join(row[0] for row in rows)


@in_loop
async def test_a_post_is_found_by_its_key_while_the_table_is_small(postgres: str, schema: str) -> None:
    """An index that ends with the id would be taken for one that finds it, and read from end to end."""
    async with connected(postgres, search_path=schema, enable_seqscan="off") as db:
        await db.execute("TRUNCATE post_analytics, post_comments")
        plan = await db.fetch("EXPLAIN SELECT FROM post_analytics WHERE id = 1 FOR KEY SHARE")

        assert "using post_analytics_pkey" in "\n".join(row[0] for row in plan)


@pytest.fixture
def fresh(postgres: str) -> Iterator[str]:
    with fresh_schema(postgres) as name:
        yield name


@in_loop
async def test_a_table_that_is_not_ours_is_left_alone(postgres: str, fresh: str) -> None:
    async with connected(postgres, search_path=fresh) as db:
        await db.execute(f"CREATE SCHEMA {fresh}; CREATE TABLE outbox (x integer)")
        for call in (opens, migrate):
            with pytest.raises(
                AnalyticsError, match="has a table outbox that is not ours; choose another with"
            ) as told:
                await call(at(postgres, fresh))
            assert not told.value.transient
        assert await db.fetch("SELECT x FROM outbox") == []


@in_loop
async def test_an_empty_database_has_its_tables_at_once_also_for_many(postgres: str, fresh: str) -> None:
    async with asyncio.TaskGroup() as group:
        opening = [group.create_task(opens(at(postgres, fresh))) for _ in range(3)]
    stores = [task.result() for task in opening]
    assert await stores[0].keep(WHOLE) == KEPT
    assert await stores[2].processed("evt_1")
    for store in stores:
        await store.close()


@in_loop
async def test_what_was_closed_stays_closed(place: Place) -> None:
    async with place.opens() as store:
        await store.close()

        for call in (store.ping, lambda: store.keep(WHOLE)):
            with pytest.raises(AnalyticsError):
                await call()
        await store.close()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://u:secret@127.0.0.1:1/db", "cannot be reached"),
        ("postgresql://u:secret@h:port/db", "expected sqlite:PATH or postgresql://"),
        ("postgresql://u:secret@h/db?schema=No", "'No' is no schema"),
    ],
)
@in_loop
async def test_what_cannot_be_reached_is_said_without_the_password(url: str, said: str) -> None:
    for call in (opens, migrate):
        with pytest.raises(AnalyticsError, match=said) as told:
            await call(url)
        assert "secret" not in str(told.value)


@in_loop
async def test_a_database_that_is_not_there_is_no_passing_trouble(postgres: str) -> None:
    url = postgres.rpartition("/")[0] + "/no_such_database"

    with pytest.raises(AnalyticsError, match='database "no_such_database" does not exist') as told:
        await opens(url)
    assert not told.value.transient
    with pytest.raises(asyncpg.PostgresError):
        await asyncpg.connect(url)
