"""That no statement reads more the more there is: the watch over all tests (`query_plans`) sees a missing index."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
import query_plans
from analytics_play import message
from looping import in_loop
from polling_play import WALL
from postgres_polling_place import at, connected, fresh_schema, opened

from sanderling.clock import SystemClock
from sanderling.outcome import Code, Outcome
from sanderling.stores.analytics_open import open_analytics
from sanderling.stores.analytics_store import COUNTED
from sanderling.stores.frontier import Frontier
from sanderling.stores.frontier_rows import End, Ended, FoundUrl, RetryUrl
from sanderling.stores.postgres_server import relations
from sanderling.stores.queue import Depth, Letter
from sanderling.stores.sqlite_queue import SqliteQueue


@pytest.fixture
def schema(postgres: str) -> Iterator[str]:
    with fresh_schema(postgres) as name:
        yield name


def urls(number: int, first: int = 0) -> list[FoundUrl]:
    return [FoundUrl(f"https://a.example/{each}", "a.example", 1) for each in range(first, first + number)]


def test_without_its_index_a_queue_of_pages_is_found_out(tmp_path: Path) -> None:
    def wrong() -> str:
        with query_plans.apart() as seen, closing(Frontier(tmp_path / "ledger.db")) as ledger:
            ledger.take([("a.example", 0, 2)])
            return "\n".join(seen.wrong)

    with closing(Frontier(tmp_path / "ledger.db")) as ledger:
        ledger.commit([], urls(3), 0)
    assert not wrong()

    with closing(sqlite3.connect(tmp_path / "ledger.db")) as db:
        db.execute("DROP INDEX url_waiting")

    assert "USE TEMP B-TREE FOR ORDER BY" in wrong()


@in_loop
async def test_without_its_index_what_is_due_in_postgres_is_found_out(postgres: str, schema: str) -> None:
    async with opened(at(postgres, schema)) as store, connected(postgres, search_path=schema) as db:
        with query_plans.apart() as seen:
            await store.due((0.0, 0), WALL, 10)
            await query_plans.explain(postgres)
            assert not seen.wrong
            assert seen.settled
            await db.execute("DROP INDEX polling_due")
            seen.settled.clear()

            await store.due((0.0, 0), WALL, 10)
            await query_plans.explain(postgres)

            assert "Seq Scan of polling_targets" in str(seen.wrong)


def test_a_commit_of_pages_takes_as_many_steps_whatever_is_known(tmp_path: Path) -> None:
    """So do a look at what waits, a failure that is noted, and a host whose failures are forgiven."""
    steps = []
    why = Outcome(Code.TIMEOUT)
    with closing(Frontier(tmp_path / "ledger.db")) as ledger:
        for known in (100, 10_000):
            ledger.commit([], urls(known - ledger.known, ledger.known), 0)
            ((one, *_, other),) = ledger.take([("a.example", 0, known)])
            ledger.commit([], [FoundUrl("https://b.example/", "b.example", 0)], 0)
            ticks: list[int] = []
            ledger._db.set_progress_handler(partial(ticks.append, known), 10)
            again = [RetryUrl(each.id, each.url, 1, 0.0, why) for each in (one, other)]
            ledger.commit([], urls(20, known), 0, again)
            ledger.take([("a.example", other.id - 20, 20)])
            ended = Ended(id=other.id, url=other.url, end=End.FAILED, outcome=why, depth=1)
            ledger.commit([ended], [], 0)
            ledger.set_aside("a.example", why)
            ledger.clear_aside("a.example")
            ledger._db.set_progress_handler(None, 0)
            steps.append(len(ticks))

    assert steps[1] < 1.3 * steps[0]


@in_loop
async def test_a_queue_of_a_version_without_counts_is_counted_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "queue.db"
    queue = SqliteQueue(path, SystemClock())
    await queue.publish([Letter(str(number), b"") for number in range(9)])
    await queue.take(4, 0)
    await queue.close()
    with closing(sqlite3.connect(path)) as db, db:
        for name in ("inserted", "updated", "deleted"):
            db.execute(f"DROP TRIGGER letter_tally_{name}")
        db.execute("DROP TABLE letter_tally")

    queue = SqliteQueue(path, SystemClock())
    taken = await queue.take(4, 0)
    await queue.bury(taken[0], "why")
    await queue.done(taken[1:2])

    assert await queue.depth() == Depth(ready=5, taken=2, delayed=0, dead=1)
    await queue.close()


@in_loop
async def test_a_store_of_polling_without_the_newest_index_gets_it_when_it_is_opened(
    postgres: str, schema: str
) -> None:
    async with opened(at(postgres, schema)), connected(postgres, search_path=schema) as db:
        await db.execute("DROP INDEX polling_event")

        async with opened(at(postgres, schema)):
            assert "polling_event" in await relations(db, schema)


@in_loop
async def test_an_outbox_that_has_grown_says_how_many_numbers_it_spans(tmp_path: Path) -> None:
    store = await open_analytics(f"sqlite:{tmp_path / 'events.db'}", asyncio.to_thread)
    await store.add([message(b"")] * (COUNTED + 3))
    assert await store.depth() == COUNTED + 3

    await store.sent([1, 2, 3])
    assert await store.depth() == COUNTED

    await store.close()
