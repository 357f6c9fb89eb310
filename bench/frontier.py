"""What does a URL that waits cost? Our ledger on disk beside the queues that Scrapy and Crawlee keep in memory.

A million URLs over a thousand hosts, each side in a process of its own: what that holds at the end, less what it held
before the first. Links come as pages have them, a hundred to one host, then a hundred to another; and to us once more
each to any host, which no site does and is the worst there is.

Then a ledger of ten million (`--size` says how many), built in bulk with its indexes made at the end, since to find
them one by one would take hours: what a commit, a look at what waits and an opening cost there.
"""

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from harness import Report, arguments, at_most
from processes import PEERS, busy

if TYPE_CHECKING:  # the peers' interpreter starts this file too, and has none of it
    from sanderling.stores.frontier import Frontier

URLS, HOSTS, LINKS, BATCH = 1_000_000, 1_000, 100, 5_000
TAKEN, ROUND, RUN = 200_000, 500, 5  # URLs to take and end: as many at a time as a crawl commits, five of a host
MOST = 150  # bytes of memory for a URL that waits
MEMORY, ENQUEUED = "bytes of memory per URL", "enqueued a second"
Figures = dict[str, float]
SIZE = 10_000_000
COMMITS, FINDS = 40, 5_000  # that are measured there
LARGE = {  # what is promised of a ledger of any size
    "ms of CPU for a commit of 500 ends and 5,000 finds": 30.0,
    "µs of CPU to take a URL": 10.0,
    "bytes on disk per URL": 140.0,
    MEMORY: 5.0,
    "seconds to open again": 2.0,
}


def resident() -> int:
    """Bytes of memory this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def links(together: int) -> Iterator[tuple[str, str]]:
    """URL and host of what a crawl would find; `together` go to one host."""
    chance = random.Random(20)
    numbers = iter(range(URLS))
    while part := list(islice(numbers, together)):
        host = f"host{chance.randrange(HOSTS)}.example"
        yield from ((f"https://{host}/section-{n % 97}/article-{n * 7919 % URLS}.html", host) for n in part)


def ours(together: int) -> Figures:
    """Our ledger: enqueue all, take and end some, and open it again."""
    from sanderling.stores.frontier import Frontier  # noqa: PLC0415 - the peers have none
    from sanderling.stores.frontier_rows import FoundUrl  # noqa: PLC0415 - the peers have none

    with tempfile.TemporaryDirectory(prefix="frontier") as folder:
        path = Path(folder) / "ledger.db"
        ledger = Frontier(path)
        before, found, spent, cpu = resident(), links(together), 0.0, 0.0
        while batch := [FoundUrl(url, host, 1) for url, host in islice(found, BATCH)]:
            started, worked = time.perf_counter(), time.process_time()
            ledger.commit([], batch, 0)
            spent += time.perf_counter() - started
            cpu += time.process_time() - worked
        figures = {MEMORY: (resident() - before) / URLS, ENQUEUED: URLS / spent, f"{ENQUEUED} of CPU": URLS / cpu}
        figures |= taken_and_ended(ledger)
        ledger.close()
        figures["bytes on disk per URL"] = path.stat().st_size / URLS
        started = time.perf_counter()
        ledger = Frontier(path)
        assert 0 < sum(ledger.waiting().values()) < ledger.known == URLS
        figures["seconds to open again"] = time.perf_counter() - started
        ledger.close()
    return figures


def taken_and_ended(ledger: "Frontier") -> Figures:
    """A crawl without the fetching."""
    from sanderling.outcome import Code, Outcome  # noqa: PLC0415 - the peers have none
    from sanderling.stores.frontier_rows import End, Ended  # noqa: PLC0415 - the same

    after, fine, chance = dict.fromkeys(sorted(ledger.waiting()), 0), Outcome(Code.OK, 200), random.Random(20)
    started, worked, done = time.perf_counter(), time.process_time(), 0
    while done < TAKEN:
        taken = ledger.take([(host, after[host], RUN) for host in chance.sample(list(after), ROUND // RUN)])
        after |= {urls[-1].host: urls[-1].id for urls in taken if urls}
        ended = [
            Ended(id=each.id, url=each.url, end=End.FETCHED, outcome=fine, depth=1, row=b"{}")
            for each in chain.from_iterable(taken)
        ]
        ledger.commit(ended, [], 0)
        done += len(ended)
    spent, cpu = time.perf_counter() - started, time.process_time() - worked
    return {"taken and ended a second": done / spent, "taken and ended a second of CPU": done / cpu}


def large(size: int) -> Figures:
    """Our ledger with so many URLs, of which six in ten are fetched."""
    from sanderling.outcome import Code, Outcome  # noqa: PLC0415 - the peers have none
    from sanderling.stores.frontier import Frontier  # noqa: PLC0415 - the same
    from sanderling.stores.frontier_rows import End, Ended, FoundUrl  # noqa: PLC0415 - the same

    with tempfile.TemporaryDirectory(prefix="frontier") as folder:
        path = Path(folder) / "ledger.db"
        hosts = build(path, size)
        before = resident()
        ledger, chance, fine = Frontier(path), random.Random(21), Outcome(Code.OK, 200)
        after, committing, taking, taken = dict.fromkeys(ledger.waiting(), 0), 0.0, 0.0, 0
        for number in range(COMMITS):
            wants = [(host, after[host], RUN) for host in chance.sample(list(after), ROUND // RUN)]
            worked = time.process_time()
            lists = ledger.take(wants)
            taking += time.process_time() - worked
            after |= {urls[-1].host: urls[-1].id for urls in lists if urls}
            ended = [
                Ended(id=each.id, url=each.url, end=End.FETCHED, outcome=fine, depth=1, row=b"{}")
                for each in chain.from_iterable(lists)
            ]
            taken += len(ended)
            # All of them new: those that are known cost less.
            found = [
                FoundUrl(url_at(at, host, size), host, 1)
                for page in range(FINDS // LINKS)
                for host in [f"host{chance.randrange(hosts)}.example"]
                for at in range(size + (number * FINDS + page * LINKS), size + (number * FINDS + page * LINKS) + LINKS)
            ]
            worked = time.process_time()
            ledger.commit(ended, found, 0)
            committing += time.process_time() - worked
        memory = (resident() - before) / size
        known = ledger.known
        ledger.close()
        started = time.perf_counter()
        ledger = Frontier(path)
        assert 0 < len(ledger.waiting_hosts((-1.0, 0), 100_000, 0.0)) <= hosts
        opening = time.perf_counter() - started
        assert ledger.known == known
        ledger.close()
        numbers = committing / COMMITS * 1e3, taking / taken * 1e6, path.stat().st_size / known, memory, opening
    return dict(zip(LARGE, numbers, strict=True))


def url_at(number: int, host: str, size: int) -> str:
    """A URL as `links` has them."""
    return f"https://{host}/section-{number % 97}/article-{number * 7919 % (2 * size)}.html"


def build(path: Path, size: int) -> int:
    """Make a ledger of so many URLs at once; how many hosts it has."""
    import sqlite3  # noqa: PLC0415 - for this only
    from collections import Counter  # noqa: PLC0415 - the same

    from sanderling.ids import partition_of  # noqa: PLC0415 - the peers have none
    from sanderling.stores import frontier_file  # noqa: PLC0415 - the same

    hosts, chance, fetched, waiting = max(1_000, size // 1_000), random.Random(20), Counter[int](), Counter[int]()

    def rows() -> Iterator[tuple[int, int, int, int, int, bytes, str]]:
        for first in range(0, size, LINKS):
            host = chance.randrange(hosts)
            for number in range(first, first + LINKS):
                end = int(number % 10 < 6)
                (fetched if end else waiting)[host] += 1
                url = url_at(number, f"host{host}.example", size)
                yield number + 1, host + 1, 1, end, end, frontier_file.key_of(url), url

    meta = frontier_file.FrontierMeta(known=size, last_id=size)
    frontier_file.create(path, meta)
    frontier_file.connect(path).close()  # which knows the codes
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -500000")
        indexes = db.execute(
            "SELECT name, sql FROM sqlite_schema WHERE name IN ('url_known', 'url_waiting')"
        ).fetchall()
        db.execute("BEGIN")
        for name, _ in indexes:
            db.execute(f"DROP INDEX {name}")
        db.executemany("INSERT INTO url VALUES (?, ?, ?, ?, ?, ?, ?)", rows())
        names = [f"host{number}.example" for number in range(hosts)]
        sums = [(n + 1, name, partition_of(name), waiting[n], fetched[n]) for n, name in enumerate(names)]
        db.executemany("INSERT INTO host VALUES (?, ?, ?, ?, ?, 0)", sums)
        for _, sql in indexes:
            db.execute(sql)
        tally = [(0, 0, waiting.total()), (1, 1, fetched.total())]
        db.executemany("INSERT INTO tally VALUES (?, ?, ?)", tally)
        frontier_file.mark(db, clean=True)
        db.execute("COMMIT")
    return hosts


def scrapy() -> Figures:
    """Scrapy's scheduler: its queue and its filter of duplicates, both in memory."""
    from scrapy import Request, Spider  # type: ignore[import-not-found] # noqa: PLC0415 - only the peers have it
    from scrapy.core.scheduler import Scheduler  # type: ignore[import-not-found] # noqa: PLC0415 - the same
    from scrapy.utils.test import get_crawler  # type: ignore[import-not-found] # noqa: PLC0415 - the same

    # The queue it comes with sorts by slots of a downloader, which there is none of; this one needs a little less.
    plain = {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue", "LOG_ENABLED": False}
    crawler = get_crawler(Spider, plain)
    scheduler = Scheduler.from_crawler(crawler)
    scheduler.open(Spider("frontier"))
    before, started = resident(), time.perf_counter()
    for url, _ in links(LINKS):
        scheduler.enqueue_request(Request(url))
    spent = time.perf_counter() - started
    assert len(scheduler) == URLS
    return {MEMORY: (resident() - before) / URLS, ENQUEUED: URLS / spent}


async def crawlee() -> Figures:
    """Crawlee's request queue on its storage in memory."""
    from crawlee import Request  # type: ignore[import-not-found] # noqa: PLC0415 - only the peers have it
    from crawlee.storage_clients import MemoryStorageClient  # type: ignore[import-not-found] # noqa: PLC0415 - the same
    from crawlee.storages import RequestQueue  # type: ignore[import-not-found] # noqa: PLC0415 - the same

    queue = await RequestQueue.open(storage_client=MemoryStorageClient())
    before, found, started = resident(), links(LINKS), time.perf_counter()
    while batch := [Request.from_url(url) for url, _ in islice(found, BATCH)]:
        await queue.add_requests(batch, batch_size=BATCH, wait_time_between_batches=timedelta(0))
    spent = time.perf_counter() - started
    return {MEMORY: (resident() - before) / URLS, ENQUEUED: URLS / spent}


OURS, SCATTERED, BULK = "ours", "ours, scattered", "ours, in bulk"
SIDES: dict[str, Callable[[], Figures]] = {
    OURS: lambda: ours(LINKS),
    SCATTERED: lambda: ours(1),
    "scrapy": scrapy,
    "crawlee": lambda: asyncio.run(crawlee()),
}


def measured(side: str, python: Path, *more: str) -> Figures:
    """What a process of its own found; it says it in its last line."""
    done = subprocess.run([python, __file__, side, *more], stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    print(f"  {side}: " + ", ".join(f"{number:,.{0 if number >= 10 else 1}f} {what}" for what, number in found.items()))
    return found


def main() -> None:
    """Measure, print, judge."""
    report = Report("frontier")
    print(f"{URLS:,} URLs over {HOSTS:,} hosts")
    busy()
    sides = {side: measured(side, Path(sys.executable)) for side in (OURS, SCATTERED)}
    peers = Path(os.environ.get("SANDERLING_PEERS", PEERS))
    if peers.exists():
        sides |= {side: measured(side, peers) for side in SIDES if side not in sides}
    else:
        print("  Scrapy and Crawlee were not measured: they are not installed; run: make peers")
    report.figures = {
        f"{what}, {side}": round(number, 1) for side, found in sides.items() for what, number in found.items()
    }
    size = arguments("size", SIZE, "URLs of the ledger that is built in bulk").size
    much = measured(BULK, Path(sys.executable), str(size))
    report.figures |= {f"{what}, of {size:,}": round(number, 2) for what, number in much.items()}
    report.bars = [at_most(f"{MEMORY} that waits, {side}", MOST, sides[side][MEMORY]) for side in (OURS, SCATTERED)]
    report.bars += [at_most(f"{what}, of {size:,}", most, much[what]) for what, most in LARGE.items()]
    report.finish()


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1] == BULK:
        print(json.dumps(large(int(sys.argv[2]))))
    elif sys.argv[1:] and sys.argv[1] in SIDES:
        print(json.dumps(SIDES[sys.argv[1]]()))
    else:
        main()
