"""A fleet's server in PostgreSQL: the contract, and what happens when several ask at once."""

import asyncio
import json
from collections.abc import Iterator
from math import inf
from typing import Any

import pytest
from fleet_contract import CRAWL, NAME, PARTS, FleetContract, begun, commit_of, figures, messages, with_part
from leases_contract import placed
from postgres_polling_place import at, connected, fresh_schema

from sanderling.stores import inbox_floors
from sanderling.stores.fleet import WorkerIdentity
from sanderling.stores.leases import LeaseLostError, LeasesError
from sanderling.stores.postgres_fleet import RECEIVE, PostgresFleet
from sanderling.stores.postgres_fleet_tables import OF_CRAWL

BACKENDS = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE $1"


class PostgresPlace:
    """A schema of its own. Time passes by what the tables say, since the server's clock is everybody's."""

    def __init__(self, postgres: str, schema: str) -> None:
        self.url = at(postgres, schema)
        self._postgres, self._schema = postgres, schema
        self._opened: list[PostgresFleet] = []

    async def server(self, worker: str, name: str = NAME) -> PostgresFleet:
        server = PostgresFleet(self.url, name, WorkerIdentity(worker, "a machine", "1.0"))
        self._opened.append(server)
        await server.open()
        server.clock.since = -inf  # it has watched the server's clock for long
        return server

    def connected(self) -> Any:  # noqa: ANN401 - asyncpg has no types
        return connected(self._postgres, search_path=self._schema)

    async def pass_time(self, seconds: float) -> None:
        async with self.connected() as db:
            await db.execute("UPDATE lease SET until = until - $1 * interval '1 s'", seconds)
            await db.execute("UPDATE fleet_worker SET seen = seen - $1 * interval '1 s'", seconds)
            await db.execute("UPDATE fleet_quota SET free = free - $1, quiet = quiet - $1", seconds)

    async def tables(self) -> Any:  # noqa: ANN401 - what can be compared
        async with self.connected() as db:
            names = ("fleet_crawl", "lease", *OF_CRAWL)
            return {name: sorted(map(repr, await db.fetch(f"SELECT * FROM {name}"))) for name in names}  # noqa: S608

    async def quotas(self) -> set[str]:
        async with self.connected() as db:
            return {name for (name,) in await db.fetch("SELECT quota FROM fleet_quota")}

    async def close(self) -> None:
        for each in self._opened:
            await each.close()


@pytest.fixture
def place(postgres: str) -> Iterator[PostgresPlace]:
    with fresh_schema(postgres) as schema:
        yield PostgresPlace(postgres, schema)


class TestPostgresFleet(FleetContract):
    @placed
    async def test_one_of_several_that_begin_at_once_does(self, place: PostgresPlace) -> None:
        servers = await asyncio.gather(*(place.server(f"w{number}") for number in range(6)))
        found = await asyncio.gather(*(each.begin(CRAWL, range(PARTS)) for each in servers))

        assert found == [CRAWL] * 6
        assert [each.part for each in await servers[0].holders()] == list(range(PARTS))

    @placed
    async def test_of_commits_at_once_one_is_made(self, place: PostgresPlace) -> None:
        server, lease = await with_part(place)
        commits = [commit_of(lease, f"t{number}", segment=f"s{number}", size=1) for number in range(8)]
        done = await asyncio.gather(*(server.commit(each) for each in commits), return_exceptions=True)

        (made,) = [commit for commit, each in zip(commits, done, strict=True) if each is None]
        assert sum(isinstance(each, LeaseLostError) for each in done) == 7
        assert [each.token for each in await server.log(0, 0, 9)] == [made.token]
        assert [each.key for each in await server.segments(0, 0)] == [made.segment]

    @placed
    async def test_a_part_that_was_idle_before_its_commit_arrived_is_busy(self, place: PostgresPlace) -> None:
        """Else others would see the end while the part has work."""
        server, lease = await with_part(place)
        async with place.connected() as watch, asyncio.TaskGroup() as group, place.connected() as db, db.transaction():
            await db.execute("SELECT 1 FROM lease WHERE part = 0 FOR UPDATE")
            commit = group.create_task(server.commit(commit_of(lease)))
            await _until_waiting(watch, "WITH fence%INSERT INTO fleet_log%")
            assert await server.say_idle(lease, figures(0), idle=True)
            assert (await server.view()).busy == PARTS - 1
        await commit
        assert (await server.view()).busy == PARTS

    @placed
    async def test_a_look_into_an_inbox_does_not_go_over_all_that_was_deleted(
        self, place: PostgresPlace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """While a backup runs, no vacuum removes it."""
        server = await place.server("one")
        await server.begin(CRAWL, range(PARTS))
        many = "INSERT INTO fleet_inbox (crawl, part, body) SELECT $1, 0, '' FROM generate_series(1, 20000)"
        async with (
            place.connected() as db,
            place.connected() as backup,
            backup.transaction(isolation="repeatable_read"),
        ):
            await db.execute(many, server.scope)
            await server.send([(0, b"m")])
            await backup.fetchval("SELECT count(*) FROM lease")
            await db.execute("DELETE FROM fleet_inbox WHERE body = ''")
            monkeypatch.setattr(inbox_floors, "WHOLE", 0.0)
            for _ in range(3):
                assert await messages(server, 0) == [b"m"]
            monkeypatch.setattr(inbox_floors, "WHOLE", 1e9)

            below = server._floors.below([0])
            assert below[0] >= 20_000
            assert await _pages(db, server.scope, [0]) > 100
            assert await _pages(db, server.scope, below) < 10
            # One whose sender was slower than all that: it comes at the next look from the beginning.
            sql = "INSERT INTO fleet_inbox (crawl, part, id, body) OVERRIDING SYSTEM VALUE VALUES ($1, 0, 5, 'late')"
            await db.execute(sql, server.scope)
            await server.send([(0, b"n")])
            assert await messages(server, 0) == [b"m", b"n"]
            monkeypatch.setattr(inbox_floors, "WHOLE", 0.0)
            assert await messages(server, 0) == [b"late", b"m", b"n"]

    @placed
    async def test_a_crawl_of_another_format_is_refused(self, place: PostgresPlace) -> None:
        server = await begun(place)
        async with place.connected() as db:
            await db.execute("""UPDATE fleet_crawl SET said = replace(said, '"format":1', '"format":9')""")
            with pytest.raises(LeasesError, match=r"is of format 9, this release has 1"):
                await server.find(NAME)
            await db.execute("UPDATE fleet_crawl SET said = '{'")
            with pytest.raises(LeasesError, match="is damaged"):
                await server.find(NAME)


async def _pages(db: Any, scope: str, below: list[int]) -> int:  # noqa: ANN401 - asyncpg has no types
    """Pages that one look reads."""
    said = await db.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {RECEIVE}", scope, [0], [], 99, below)
    plan = json.loads(said)[0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


async def _until_waiting(db: Any, like: str) -> None:  # noqa: ANN401 - asyncpg has no types
    async with asyncio.timeout(60):
        while not await db.fetchval(BACKENDS, like):  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.01)
