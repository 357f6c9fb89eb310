"""Leases in PostgreSQL: the contract, the twin in memory beside it, and what only a server has."""

import asyncio
from collections.abc import Iterator
from math import inf
from random import Random

import pytest
from leases_contract import PARTS, SECONDS, LeasesContract, owners, placed
from postgres_polling_place import at, connected, fresh_schema
from wire import Wire

from sanderling.clock import SystemClock
from sanderling.stores.leases import Lease, LeasesAwayError, LeasesError, LeaseTable
from sanderling.stores.postgres_leases import PostgresLeases

SCOPE = "a crawl"
ENDED = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND objid = $1"
LEFT = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND objid = $1"
LOW = "SELECT DISTINCT lock & 4294967295 FROM lease WHERE holder = $1"


class PostgresPlace:
    """A schema of its own. Time passes by what the leases say, since the server's clock is everybody's."""

    def __init__(self, postgres: str, schema: str) -> None:
        self.url = at(postgres, schema)
        self._postgres, self._schema = postgres, schema
        self._opened: list[PostgresLeases] = []

    async def holder(self, name: str, url: str = "") -> PostgresLeases:
        leases = PostgresLeases(url or self.url, SCOPE, name)
        self._opened.append(leases)
        await leases.open()
        await leases.make(PARTS, SECONDS)
        leases.clock.since = -inf  # it has watched the server's clock for long
        return leases

    async def pass_time(self, seconds: float) -> None:
        await self.execute("UPDATE lease SET until = until - $1 * interval '1 s'", seconds)

    async def end_connection(self, name: str) -> None:
        async with connected(self._postgres, search_path=self._schema) as db:
            (lock,) = [row[0] for row in await db.fetch(LOW, name)]
            assert await db.fetchval(ENDED, lock)
            while await db.fetchval(LEFT, lock):
                pass

    async def accept_write(self, name: str, lease: Lease) -> None:
        sql = "UPDATE lease SET head = head + 1 WHERE part = $1 AND holder = $2 AND epoch = $3 AND head = $4"
        assert await self.execute(sql, lease.part, name, lease.epoch, lease.head) == "UPDATE 1"

    async def execute(self, sql: str, *values: object) -> str:
        async with connected(self._postgres, search_path=self._schema) as db:
            return str(await db.execute(sql, *values))

    async def close(self) -> None:
        for each in self._opened:
            await each.close()


@pytest.fixture
def place(postgres: str) -> Iterator[PostgresPlace]:
    with fresh_schema(postgres) as schema:
        yield PostgresPlace(postgres, schema)


class TestPostgresLeases(LeasesContract):
    @placed
    async def test_the_clock_is_that_of_the_server(self, place: PostgresPlace, monkeypatch: pytest.MonkeyPatch) -> None:
        one = await place.holder("one")
        monkeypatch.setattr("time.time", lambda: 0.0)
        (lease,) = await one.acquire(1)
        await one.renew([lease])
        monkeypatch.undo()

        (held,) = [each for each in await one.holders() if each.holder]
        assert SECONDS - 20 < held.seconds <= SECONDS

    @placed
    async def test_scopes_are_apart(self, place: PostgresPlace) -> None:
        one, other = await place.holder("one"), PostgresLeases(place.url, "another", "one")
        await other.open()
        try:
            await other.make(3, SECONDS)
            assert len(await one.acquire(99)) == PARTS
            assert await owners(other) == {0: "", 1: "", 2: ""}
            assert len(await other.acquire(99)) == 3
        finally:
            await other.close()

    @placed
    async def test_no_more_is_taken_beside_others_of_which_the_server_knows_more(self, place: PostgresPlace) -> None:
        """It thinks then that a scope has one part, and reads what is free once for each that there is."""
        one = await place.holder("one")
        await place.execute("DELETE FROM lease")
        await place.execute("INSERT INTO lease (scope, part, seconds) SELECT 'x', g, 1 FROM generate_series(0, 999) g")
        await place.execute("ANALYZE lease")
        await one.make(PARTS, SECONDS)

        assert [len(await one.acquire(2)) for _ in range(4)] == [2, 2, 2, 2]

    @placed
    async def test_parts_that_are_there_stay_as_they_are(self, place: PostgresPlace) -> None:
        one = await place.holder("one")
        leases = await one.acquire(99)
        await one.make(PARTS + 2, 1.0)

        assert sorted(await one.renew(leases)) == list(range(PARTS))
        assert [each.seconds > SECONDS - 20 for each in await one.holders()] == [True] * PARTS + [False] * 2

    @placed
    async def test_a_connection_that_the_server_still_believes_in_holds_nobody_up(self, place: PostgresPlace) -> None:
        """The way to the server broke, and the server has not noticed: its end of it still has our lock."""
        wire = Wire(place.url)
        async with wire.laid(place.url) as url:
            one = await place.holder("one", url)
            leases = await one.acquire(2)
            wire.cut_near()

            with pytest.raises(LeasesAwayError):
                await one.renew(leases)
            assert sorted(await one.renew(leases)) == sorted(each.part for each in leases)
            await one.close()

    @placed
    async def test_a_closed_holder_is_gone(self, place: PostgresPlace) -> None:
        one, two = await place.holder("one"), await place.holder("two")
        await one.acquire(99)
        await one.close()
        await place.pass_time(SECONDS * 0.76)

        assert len(await two.acquire(99)) == PARTS

    @pytest.mark.parametrize("seed", range(3))
    @placed
    async def test_it_does_what_its_twin_does(self, place: PostgresPlace, seed: int) -> None:
        chance, names, now = Random(seed), ("one", "two", "three"), 0.0
        twin = LeaseTable(range(PARTS), SECONDS, lambda: now)
        holders = {name: await place.holder(name) for name in names}
        held: dict[str, list[Lease]] = {name: [] for name in names}
        for _ in range(120):
            name = chance.choice(names)
            some = [each for each in held[name] if chance.random() < 0.7]
            match chance.choice(("acquire", "renew", "renew", "release", "pass", "pass")):
                case "acquire":
                    most = chance.randrange(4)
                    found = await holders[name].acquire(most)
                    assert found == twin.acquire(name, len(found), [each.part for each in found])
                    assert len(found) == most or not twin.acquire("nobody", 1, ())
                    held[name] += found
                case "renew":
                    assert sorted(await holders[name].renew(some)) == sorted(twin.renew(name, some))
                case "release":
                    await holders[name].release(some)
                    twin.release(name, some)
                case "pass":
                    # No limit of a lease is within a tenth of a sum of these.
                    seconds = SECONDS * chance.choice((0.3, 0.6))
                    await place.pass_time(seconds)
                    now += seconds
            said = [(each.part, each.holder, each.epoch) for each in await holders[name].holders()]
            assert said == [each[:3] for each in twin.holders()]


@pytest.mark.parametrize("url", ["mysql://somewhere/x", "postgresql://127.0.0.1:bad/x"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(LeasesError, match="expected postgresql://"):
        PostgresLeases(url, SCOPE, "one")


def test_who_has_not_watched_the_clock_takes_only_what_nobody_has(place: PostgresPlace) -> None:
    async def main() -> None:
        one, two = await place.holder("one"), await place.holder("two")
        await one.acquire(PARTS - 1)
        await place.pass_time(10 * SECONDS)
        two.clock.since = SystemClock.boot()

        assert len(await two.acquire(99)) == 1
        two.clock.since = -inf
        assert len(await two.acquire(99)) == PARTS - 1
        await place.close()

    asyncio.run(main())


def test_a_lease_from_before_the_clock_was_set_back_ends(place: PostgresPlace) -> None:
    async def main() -> None:
        one, two = await place.holder("one"), await place.holder("two")
        (lease,) = await one.acquire(1)
        await place.pass_time(-3600.0)  # until an hour later than any lease

        assert [each.part for each in await two.acquire(99)][-1:] != []
        assert lease.part not in await one.renew([lease])
        await place.close()

    asyncio.run(main())
