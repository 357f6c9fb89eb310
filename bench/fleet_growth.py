"""What a commit costs a server of a fleet, with nothing behind it and with what 100 million pages leave in the tables.

Two schemas of one server, both sides in turn: commits with a segment each, messages, looks into inboxes, beats and
views, in the proportions of a busy worker.
"""

import os
from collections.abc import Callable
from statistics import median

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker

from sanderling.stores.fleet import FleetCrawl, PartCommit, PartFigures, WorkerIdentity
from sanderling.stores.leases import Lease
from sanderling.stores.postgres_fleet import PostgresFleet

PARTS, COMMITS, ROUNDS = 16, 1_500, 4
SEGMENTS = 1_000_000  # one for each hundred pages
CRAWL = FleetCrawl(
    name="growth", id="1", system="pages", plan="", parts=PARTS, seconds=30.0, ledger="", objects="", started=0.0
)
BEHIND = (
    """INSERT INTO long.fleet_segment
        SELECT 'behind', i % 1024, i, 'rows/' || i, 100000 FROM generate_series(1, {0}) i""",
    "INSERT INTO long.fleet_part (crawl, part) SELECT 'behind', i FROM generate_series(0, 1023) i",
    "INSERT INTO long.lease (scope, part, seconds) SELECT 'behind', i, 30 FROM generate_series(0, 1023) i",
    "VACUUM ANALYZE",
    "CHECKPOINT",
)


class Side:
    """A worker on tables of its own."""

    def __init__(self, url: str, schema: str) -> None:
        self._fleet = PostgresFleet(f"{url}?schema={schema}", CRAWL.name, WorkerIdentity("bench", "bench", "1"))
        self._leases: dict[int, Lease] = {}
        self._body = os.urandom(5_000)

    async def open(self) -> None:
        """Make the tables, and have all parts."""
        await self._fleet.open()
        await self._fleet.begin(CRAWL, range(PARTS))
        self._leases = {lease.part: lease for lease in await self._fleet.acquire(PARTS)}

    async def work(self) -> None:
        """What a busy worker does."""
        for number in range(COMMITS):
            part = number % PARTS
            lease = self._leases[part]
            await self._fleet.commit(PartCommit(lease, f"{lease.head}", self._body, f"rows/{lease.head}", 100_000))
            self._leases[part] = lease._replace(head=lease.head + 1)
            if number % 4 == 0:
                await self._fleet.send([((part + to) % PARTS, self._body[:300]) for to in range(1, 9)])
            if number % 8 == 0:
                await self._fleet.receive(range(PARTS), [], 1000)
            if number % 64 == 0:
                figures = [PartFigures(each, number, number, number) for each in range(PARTS)]
                await self._fleet.beat(list(self._leases.values()), figures, "{}", PARTS)
                await self._fleet.view()

    async def close(self) -> None:
        """Let go."""
        await self._fleet.close()


async def growth(url: str, cpu: Callable[[], float]) -> float:
    """What it costs with 100 million pages behind, in what it costs without; `cpu` is what the server has used."""
    short, long = Side(url, "short"), Side(url, "long")
    db = await asyncpg.connect(url)
    try:
        for side in (short, long):
            await side.open()
        for statement in BEHIND:
            await db.execute(statement.format(SEGMENTS))
        ratios = []
        for _ in range(ROUNDS):
            costs = []
            for side in (short, long):
                before = cpu()
                await side.work()
                costs.append(cpu() - before)
            ratios.append(costs[1] / costs[0])
        return median(ratios)
    finally:
        for side in (short, long):
            await side.close()
        await db.close()
