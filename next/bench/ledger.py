"""What the ledger costs: CPU of a page in commits of 500 pages with 28 links each, and bytes a known URL.

    python bench/ledger.py [--quick] [--large] [--json]

A steady crawl finds 1 new URL a page, a young one 10; of the other links half stand on every page of a host. The CPU
is that of all processes: with PostgreSQL those of the server, its checkpointer and WAL writer among them. --quick stops
at a million known URLs, --large is SQLite alone, with 10 and 100 million. The keys of the other 90 million are made up
in SQL and stand in the same order: each host's together, by chance within them.
"""

import asyncio
import os
import sqlite3
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import process_time

import asyncpg
from bars import Bar, report

from sanderling.clock import SystemClock
from sanderling.ids import url_key
from sanderling.stores import Batch, FoundUrl, Ledger, QueuedUrl, RowFile, StoredUrl, open_ledger

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from kit.postgres import PostgresServer

HOSTS = 1_000
PAGES, LINKS, MENU = 500, 28, 13
AT_ONCE = 20  # pages of a host in a commit
WAITING = 20  # one URL of so many waits
ROUNDS = 20  # in which the table grows, as it would by many commits
LISTED = 10**7  # URLs whose keys are those of real ones, of which links are made
MADE_UP = """WITH RECURSIVE n(i) AS (SELECT ? UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?) INSERT INTO seen
    SELECT CAST(? || CAST(printf('%08x~~~', (i * 2654435761) & 4294967295) AS BLOB) AS BLOB) FROM n"""
INDEX = "CREATE INDEX extra ON frontier (host, kind, priority, turn)"
TICK = os.sysconf("SC_CLK_TCK")


def url(host: int, number: int) -> str:
    return f"https://www.host{host}.example/articles/2026/{number}-some-title-of-a-page"


@dataclass
class Store:
    """A ledger, and what has to be known about its database."""

    ledger: Ledger
    cpu: Callable[[], float]  # seconds of all processes
    fill: Callable[[int, int], Awaitable[None]]  # with the URLs of all hosts from one number to another
    size: Callable[[], Awaitable[float]]  # bytes of `seen`
    execute: Callable[[str], Awaitable[object]]
    known: int = 0
    waiting: int = 0
    fresh: int = 0

    async def grow(self, known: int) -> None:
        """Let so many be known, one in twenty of them waiting."""
        waiting = known // WAITING
        while self.waiting < waiting:
            count = min(20_000, waiting - self.waiting)
            numbers = range(self.waiting, self.waiting + count)
            await self.ledger.commit(Batch(found=[found(number % HOSTS, number // HOSTS) for number in numbers]))
            self.waiting += count
        # Some of them wait, and are known already.
        await self.fill(self.known // HOSTS, known // HOSTS)
        self.known = known
        await self.ledger.hosts(HOSTS)

    async def commits(self, number: int, new: int, random: Random) -> tuple[float, float]:
        """CPU of a page in `take` and in `commit`, in µs."""
        took = stored = 0.0
        for step in range(number):
            hosts = [(step * (PAGES // AT_ONCE) + each) % HOSTS for each in range(PAGES // AT_ONCE)]
            begun = self.cpu()
            items = [
                item for host in hosts for item in (await self.ledger.take(f"www.host{host}.example", AT_ONCE)).items
            ]
            took += self.cpu() - begun
            assert len(items) == PAGES, len(items)
            batch = self.batch(items, new, random)
            begun = self.cpu()
            await self.ledger.commit(batch)
            stored += self.cpu() - begun
        begun = self.cpu()
        await self.execute("CHECKPOINT")
        stored += self.cpu() - begun
        return took / number / PAGES * 1e6, stored / number / PAGES * 1e6

    def batch(self, items: list[QueuedUrl], new: int, random: Random) -> Batch:
        links: list[FoundUrl] = []
        for item in items:
            host = int(item.host.split(".")[1].removeprefix("host"))
            links += [found(host, number) for number in range(MENU)]
            for _ in range(new):
                self.fresh += 1
                links.append(found(host, 10**9 + self.fresh))
            most = min(self.known, LISTED) // HOSTS
            links += [found(host, random.randrange(most)) for _ in range(LINKS - MENU - new)]
        return Batch([StoredUrl(item) for item in items], found=links, files=[RowFile(0, "pages.jsonl", 1, 1, 1)])


def found(host: int, number: int) -> FoundUrl:
    return FoundUrl(url(host, number), f"www.host{host}.example")


def keys(folder: Path, start: int, stop: int) -> Iterator[list[bytes]]:
    """The keys of the URLs of all hosts from one number to another, in rounds as a table would grow, each sorted."""
    for number in range(ROUNDS):
        path = folder / f"keys-{start}-{stop}-{number}"
        if not path.exists():
            made = [url_key(url(host, each)) for each in range(start + number, stop, ROUNDS) for host in range(HOSTS)]
            path.write_bytes(b"".join(sorted(made)))
        content = path.read_bytes()
        yield [content[at : at + 16] for at in range(0, len(content), 16)]


@asynccontextmanager
async def sqlite(folder: Path) -> AsyncIterator[Store]:
    path = folder / "crawl.db"
    async with open_ledger(path, plan={}, clock=SystemClock()) as ledger:
        with closing(sqlite3.connect(path, isolation_level=None)) as db:

            async def fill(start: int, stop: int) -> None:
                if start >= LISTED // HOSTS:
                    for host in range(HOSTS):
                        db.execute(MADE_UP, (start, stop, url_key(url(host, 0))[:5]))
                    return
                for chunk in keys(folder, start, stop):
                    db.execute("BEGIN")
                    db.executemany("INSERT OR IGNORE INTO seen VALUES (?)", [(key,) for key in chunk])
                    db.execute("COMMIT")

            async def size() -> float:
                return float(db.execute("SELECT sum(pgsize) FROM dbstat WHERE name = 'seen'").fetchone()[0])

            async def execute(sql: str) -> object:
                return db.execute("PRAGMA wal_checkpoint(TRUNCATE)" if sql == "CHECKPOINT" else sql).fetchall()

            yield Store(ledger, process_time, fill, size, execute)


def server_seconds(pid: int) -> float:
    """CPU of a server and all of its processes, also those that have ended."""
    ticks = sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        ticks += sum(map(int, Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11:13]))
    return ticks / TICK


def own_megabytes() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


@asynccontextmanager
async def postgres(server: PostgresServer, folder: Path) -> AsyncIterator[Store]:
    name = "bench"
    db = await asyncpg.connect(server.url, server_settings={"search_path": name})
    await db.set_type_codec("uuid", schema="pg_catalog", encoder=bytes, decoder=bytes, format="binary")
    try:
        async with open_ledger(server.url, plan={}, clock=SystemClock(), name=name) as ledger:

            async def fill(start: int, stop: int) -> None:
                for chunk in keys(folder, start, stop):
                    await db.execute("INSERT INTO seen SELECT unnest($1::uuid[]) ON CONFLICT DO NOTHING", chunk)
                await db.execute("VACUUM ANALYZE seen")

            async def size() -> float:
                return float(await db.fetchval("SELECT pg_total_relation_size('seen')"))

            yield Store(ledger, lambda: process_time() + server_seconds(server.pid), fill, size, db.execute)
    finally:
        await db.close()


async def measure(what: str, store: Store, sizes: list[int], bars: list[Bar], most: tuple[int, int, int]) -> None:
    steady_most, young_most, bytes_most = most
    random = Random(1)
    steady_at: dict[int, float] = {}
    memory_at: dict[int, float] = {}
    for known in sizes:
        await store.grow(known)
        size = await store.size()
        millions = f"{what}, {known // 10**6} M known"
        bars.append(Bar(f"{millions}: bytes a known URL in seen", size / known, bytes_most))
        await store.commits(4, 1, random)
        took, steady = await store.commits(16, 1, random)
        _, young = await store.commits(8, 10, random)
        steady_at[known] = steady
        bars.append(Bar(f"{millions}: µs of a page, steady", steady, steady_most))
        bars.append(Bar(f"{millions}: µs of a page, young", young, young_most))
        bars.append(Bar(f"{millions}: µs of a page to take it", took))
        await store.execute(INDEX)
        _, indexed = await store.commits(16, 1, random)
        await store.execute("DROP INDEX extra")
        bars.append(Bar(f"{millions}: µs of a page, steady, with an index for class, priority and due", indexed))
        memory_at[known] = own_megabytes()
        bars.append(Bar(f"{millions}: MB of this process", memory_at[known], 200 if what == "SQLite" else None))
    if 10**8 in steady_at:
        bars.append(Bar("SQLite: steady at 100 M, times that at 10 M", steady_at[10**8] / steady_at[10**7], 1.5))
        bars.append(Bar("SQLite: MB at 100 M, times those at 10 M", memory_at[10**8] / memory_at[10**7], 1.1))


async def main(bars: list[Bar]) -> None:
    is_large = "--large" in sys.argv
    sizes = [10**7, 10**8] if is_large else [10**6] if "--quick" in sys.argv else [10**6, 10**7]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with sqlite(folder) as store:
            await measure("SQLite", store, sizes, bars, (110, 220, 30))
        if is_large:
            return
        server = PostgresServer(shared_buffers="256MB", max_wal_size="2GB")
        try:
            async with postgres(server, folder) as store:
                await measure("PostgreSQL", store, sizes, bars, (130, 210, 90))
        finally:
            server.stop()


if __name__ == "__main__":
    found_bars: list[Bar] = []
    asyncio.run(main(found_bars))
    sys.exit(report(found_bars))
