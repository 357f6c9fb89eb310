"""What does a URL that waits cost? Our ledger on disk beside the queues that Scrapy and Crawlee keep in memory.

A million URLs over a thousand hosts, each side in a process of its own: what that holds at the end, less what it held
before the first. Links come as pages have them, a hundred to one host, then a hundred to another; and to us once more
each to any host, which no site does and is the worst there is.
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
from datetime import timedelta
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from harness import Report, at_most
from processes import PEERS, busy

if TYPE_CHECKING:  # the peers' interpreter starts this file too, and has none of it
    from sanderling.stores.frontier import Frontier

URLS, HOSTS, LINKS, BATCH = 1_000_000, 1_000, 100, 5_000
TAKEN, ROUND, RUN = 200_000, 500, 5  # URLs to take and end: as many at a time as a crawl commits, five of a host
MOST = 150  # bytes of memory for a URL that waits
MEMORY, ENQUEUED = "bytes of memory per URL", "enqueued a second"
Figures = dict[str, float]


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


OURS, SCATTERED = "ours", "ours, scattered"
SIDES: dict[str, Callable[[], Figures]] = {
    OURS: lambda: ours(LINKS),
    SCATTERED: lambda: ours(1),
    "scrapy": scrapy,
    "crawlee": lambda: asyncio.run(crawlee()),
}


def measured(side: str, python: Path) -> Figures:
    """What a process of its own found; it says it in its last line."""
    done = subprocess.run([python, __file__, side], stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
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
    report.bars = [at_most(f"{MEMORY} that waits, {side}", MOST, sides[side][MEMORY]) for side in (OURS, SCATTERED)]
    report.finish()


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1] in SIDES:
        print(json.dumps(SIDES[sys.argv[1]]()))
    else:
        main()
