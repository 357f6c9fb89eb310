"""Each rule by which two processes share a ledger, and the fault that breaks it: the rule's check notices."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import asyncpg
import pytest
from kit.postgres import FaultyWay, PostgresServer, new_name, shared_postgres

from sanderling.clock import FakeClock, SystemClock
from sanderling.ids import partition_of
from sanderling.stores import Batch, Fenced, FoundUrl, QueuedUrl, StoredUrl, postgres_tables
from sanderling.stores.postgres_ledger import PostgresLedger

pytestmark = pytest.mark.real
HOST, OTHER = "host.example", "other.example"
LEASE = 60.0  # nothing here waits for its end
Pair = tuple[PostgresLedger, PostgresLedger, asyncpg.Connection]


def url(number: int, host: str = HOST) -> FoundUrl:
    return FoundUrl(f"https://{host}/{number}", host)


def ledger_at(address: str, name: str, clock: Any = None) -> PostgresLedger:
    return PostgresLedger(address, name, {}, clock or SystemClock(), ("new", "again"), read_only=False, lease=LEASE)


@asynccontextmanager
async def two(server: PostgresServer, clock: Any = None) -> AsyncIterator[Pair]:
    """Two ledgers on one schema, and a connection to look behind them. The clock is that of the second."""
    name = new_name("two")
    async with ledger_at(server.url, name) as one, ledger_at(server.url, name, clock) as other:
        db = await asyncpg.connect(server.url, server_settings={"search_path": f'"{name}"'})
        try:
            await one._beat()
            yield one, other, db
        finally:
            await db.close()


async def take_all(ledger: PostgresLedger) -> list[QueuedUrl]:
    return [item for host in await ledger.hosts(9) for item in (await ledger.take(host.name, 9)).items]


async def expire(ledger: PostgresLedger, other: PostgresLedger, db: asyncpg.Connection) -> None:
    """The first was stopped for longer than its lease, as the other finds."""
    await db.execute("UPDATE process SET until = 'epoch' WHERE id = $1", ledger.process)
    await other._beat()


def held_back(ledger: PostgresLedger) -> tuple[asyncio.Event, asyncio.Event]:
    """Stop the next commit when all is done but COMMIT: what says so, and what lets it go on."""
    here, go, wake = asyncio.Event(), asyncio.Event(), ledger._wake

    async def wait(db: asyncpg.Connection, hosts: Any) -> None:
        await wake(db, hosts)
        ledger._wake = wake  # type: ignore[method-assign]
        here.set()
        await go.wait()

    ledger._wake = wait  # type: ignore[method-assign]
    return here, go


async def who_was_late_commits_nothing(server: PostgresServer) -> None:
    async with two(server) as (one, other, db):
        await one.commit(Batch(found=[url(1)]))
        item = (await one.take(HOST, 9)).items[0]
        await expire(one, other, db)
        assert await take_all(other) == [item]

        with pytest.raises(Fenced):
            await one.commit(Batch(stored=[StoredUrl(item)]))
        assert not one.may_send()


async def nobody_is_fenced_off_in_a_commit(server: PostgresServer) -> None:
    async with two(server) as (one, other, db), asyncio.TaskGroup() as tasks:
        await one.commit(Batch(found=[url(1)]))
        item = (await one.take(HOST, 9)).items[0]
        here, go = held_back(one)
        commit = tasks.create_task(one.commit(Batch(stored=[StoredUrl(item)], found=[url(2)])))
        await here.wait()
        try:
            await expire(one, other, db)
            assert not await take_all(other)
        finally:
            go.set()
        await commit
        await expire(one, other, db)
        assert [each.url for each in await take_all(other)] == [url(2).url]


async def no_wake_up_is_lost(server: PostgresServer) -> None:
    async with two(server) as (one, other, _), asyncio.TaskGroup() as tasks:
        await one.commit(Batch(found=[url(1)]))
        await one.take(HOST, 9)
        await other.commit(Batch(found=[url(2)]))
        here, go = held_back(other)
        tasks.create_task(other.commit(Batch(found=[url(3)])))
        await here.wait()
        assert await one.woken() == [HOST]
        assert [each.url for each in (await one.take(HOST, 9)).items] == [url(2).url]
        go.set()
        async with asyncio.timeout(2):
            assert await one.woken() == [HOST]
        assert [each.url for each in (await one.take(HOST, 9)).items] == [url(3).url]


async def clocks_that_differ_end_no_lease(server: PostgresServer) -> None:
    clock = FakeClock(wall=SystemClock().wall() + 3600)
    async with two(server, clock) as (one, other, _):
        await other._beat()
        await one.commit(Batch(found=[url(1)]))


async def smaller_numbers_that_come_later_are_found(server: PostgresServer) -> None:
    async with two(server) as (one, other, _):
        await other.commit(Batch(found=[url(1, OTHER)]))  # it has the numbers from 1 to 1,000 now
        await one.commit(Batch(found=[url(2)]))
        assert [each.id for each in (await one.take(HOST, 9)).items] == [1001]
        await other.commit(Batch(found=[url(3)]))
        assert [each.id for each in (await one.take(HOST, 9)).items] == [2]


async def a_partition_is_claimed_once(server: PostgresServer) -> None:
    async with two(server) as (one, other, db), asyncio.TaskGroup() as tasks:
        await one.commit(Batch(found=[url(1)]))
        partition = partition_of(HOST)
        await db.execute("UPDATE lease SET process = -1")  # of one who is dead
        third = db.transaction()
        await third.start()
        await db.execute(postgres_tables.LOCK_LEASES)
        await db.execute("INSERT INTO process VALUES (99, 1, now() + interval '1 h')")
        assert await db.fetch(postgres_tables.CLAIM, 99, [partition])
        claim = tasks.create_task(other._claim({partition}))
        while not await db.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
            await asyncio.sleep(0.01)
        await third.commit()
        assert await claim == set()


async def what_the_dead_have_locked_is_freed(server: PostgresServer) -> None:
    async with two(server) as (one, other, db):
        await other.commit(Batch(found=[url(1)]))
        dead = db.transaction()
        await db.execute("SELECT set_config('application_name', $1, false)", f"{one._channel} 99")
        await dead.start()
        await db.execute(postgres_tables.LOCK_LEASES)
        await one._beat()
        async with asyncio.timeout(3):
            assert await one._claim({partition_of(OTHER)})


async def the_end_waits_for_commits(server: PostgresServer) -> None:
    async with two(server) as (one, other, db), asyncio.TaskGroup() as tasks:
        here, go = held_back(one)
        tasks.create_task(one.commit(Batch(found=[url(1)])))
        await here.wait()
        end = tasks.create_task(other.finish())
        while not (end.done() or await db.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted")):
            await asyncio.sleep(0.01)
        go.set()
        assert not await end


async def a_commit_whose_answer_was_lost_is_made_once(server: PostgresServer) -> None:
    async with FaultyWay(server.port, Random(1)) as way, ledger_at(way.url, new_name("lost")) as ledger:
        await ledger.commit(Batch(found=[url(1), url(2)]))
        item = (await ledger.take(HOST, 1)).items[0]
        way.loses_next = True
        await ledger.commit(Batch(stored=[StoredUrl(item)], tally={("bytes", ""): 7}))
        assert way.lost == 1
        assert (await ledger.counts()).ends == {("fetched", "OK"): 1, ("bytes", ""): 7}
        assert await ledger.verify([item.key]) == []


async def _not_looked_up(*_: Any) -> bool:
    return False


UNIQUE = "CREATE TABLE wakeups (partition smallint, host text, UNIQUE (partition, host))"
TABLES = tuple(UNIQUE if "TABLE wakeups" in table else table for table in postgres_tables.TABLES)
Check = Callable[[PostgresServer], Awaitable[None]]
# What each fault replaces in `postgres_tables`.
FAULTS: dict[str, tuple[Check, dict[str, Any]]] = {
    "no fence": (who_was_late_commits_nothing, {"FENCE": "SELECT $1::bigint"}),
    "no FOR KEY SHARE": (nobody_is_fenced_off_in_a_commit, {"FENCE": "SELECT 1 FROM process WHERE id = $1"}),
    "unique wake-ups": (
        no_wake_up_is_lost,
        {"TABLES": TABLES, "WAKE": f"{postgres_tables.WAKE} ON CONFLICT DO NOTHING"},
    ),
    "wall clock": (
        clocks_that_differ_end_no_lease,
        {"REAP": postgres_tables.REAP.replace("clock_timestamp()", "clock_timestamp() + interval '1 h'")},
    ),
    "paging by id": (
        smaller_numbers_that_come_later_are_found,
        {"TAKE": postgres_tables.TAKE.replace("turn <= $3", "turn <= $3 AND id > 1000")},
    ),
    "claims without a lock": (a_partition_is_claimed_once, {"LOCK_LEASES": "SELECT 1"}),
    "sessions of the dead": (what_the_dead_have_locked_is_freed, {"END_SESSIONS": "SELECT $1::text, $2::float8"}),
    "the end beside commits": (
        the_end_waits_for_commits,
        {"FENCE_ALONE": postgres_tables.FENCE_ALONE.replace("FOR UPDATE OF c", "")},
    ),
}


@pytest.mark.parametrize("check", [check for check, _ in FAULTS.values()], ids=lambda check: check.__name__)
async def test_the_rule_holds(check: Check) -> None:
    await check(shared_postgres())


@pytest.mark.parametrize("fault", FAULTS)
async def test_the_fault_is_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check, replaced = FAULTS[fault]
    for name, text in replaced.items():
        monkeypatch.setattr(postgres_tables, name, text)

    with pytest.raises((AssertionError, Fenced, TimeoutError, ExceptionGroup, pytest.fail.Exception)):
        await check(shared_postgres())


async def test_a_commit_whose_answer_was_lost_is_made_once() -> None:
    await a_commit_whose_answer_was_lost_is_made_once(shared_postgres())


async def test_that_it_was_not_looked_up_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PostgresLedger, "_is_committed", _not_looked_up)

    with pytest.raises(Exception, match="lacks URLs"):
        await a_commit_whose_answer_was_lost_is_made_once(shared_postgres())
