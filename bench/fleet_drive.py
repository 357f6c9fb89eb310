"""A worker of `bench/fleet.py`: the engines, ledgers and commits of a fleet's crawl on a site without HTTP.

The site answers at once: `HOSTS` hosts, each a chain of pages with 30 links, of which one is new. Half of the new ones
lead to another host. Of the others, half lead to pages of their own host and half to the first pages of others, as
menus and blogrolls do.
"""

import secrets
import sys
import time
from pathlib import Path
from typing import Self

import msgspec
import uvloop

from sanderling.cli.fleet.flags import FleetClock, open_fleet, open_place, prefix_of, who_we_are
from sanderling.crawls.fleet_frontier import ledger_format
from sanderling.crawls.fleet_open import SharedCrawl
from sanderling.crawls.fleet_worker import FleetWorker
from sanderling.fetch.transport import Transport
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.limit.memory import Memory
from sanderling.observe import logs
from sanderling.pages.fleet import PagePartOpener
from sanderling.pages.folder import CrawlPlan
from sanderling.pages.rules import CrawlRules
from sanderling.stores.fleet import FleetCrawl
from sanderling.task import Reply, Task

LINKS = 30


def url_of(host: int, number: int) -> str:
    """The address of a page."""
    return f"http://h{host}.bench.example/section/{number:05}/an-article-of-usual-length"


class ChainSite:
    """Answers for all hosts."""

    def __init__(self, hosts: int, pages: int) -> None:
        self._hosts, self._pages = hosts, pages

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def send(self, task: Task) -> Reply:
        """A page, or no robots.txt."""
        if task.url.endswith("/robots.txt"):
            return Reply(404, (), b"", task.url, 0.001)
        host, number = int(task.url[8 : task.url.index(".")]), int(task.url.split("/")[4])
        body = f"<title>{host} {number}</title><p>Words of page {number}.</p>{self._links(host, number)}"
        return Reply(200, (("Content-Type", "text/html"),), body.encode(), task.url, 0.001)

    def _links(self, host: int, number: int) -> str:
        links = [url_of(host, max(0, number - step)) for step in range(LINKS // 2)]
        links += [url_of((host * 31 + step) % self._hosts, 0) for step in range(LINKS - 1 - len(links))]
        if number + 1 < self._pages:
            links.append(url_of((host + number % 2) % self._hosts, number + 1))
        return "".join(f'<a href="{each}">more</a>' for each in links)


async def work(url: str, objects: str, name: str, folder: Path, numbers: tuple[int, int, int], lease: float) -> None:
    """Work until the crawl is done; prints pages, CPU and seconds of this process."""
    hosts, pages, parts = numbers
    clock, site = FleetClock(), ChainSite(hosts, pages)
    plan = CrawlPlan(tuple(url_of(host, 0) for host in range(hosts)), (), 1000)
    async with open_fleet((url,), name, who_we_are()) as fleet:
        crawl = await fleet.begin(
            FleetCrawl(
                name=name,
                id=secrets.token_hex(4),
                system="pages",
                plan=msgspec.json.encode(plan).decode(),
                parts=parts,
                seconds=lease,
                ledger=ledger_format(),
                objects=objects,
                started=clock.wall(),
            )
        )
        async with open_place(objects, prefix_of(crawl)) as place:
            rules = LimiterRules(pace=PaceRules.up_to(100_000.0))

            def transport() -> Transport[ChainSite]:
                return Transport(site, Limiter(rules, clock=clock), Memory(2**28))

            shared = SharedCrawl(fleet, crawl, place)
            opens = PagePartOpener(folder, shared, clock, transport, CrawlRules(max_same_text=0))
            worker = opens.worker = FleetWorker(fleet, crawl, clock, clock.boot, opens.open)
            worker.heard = clock.heard
            began, used = time.monotonic(), time.process_time()
            await worker.run()
            print(worker.view.fetched, time.process_time() - used, time.monotonic() - began, flush=True)


if __name__ == "__main__":
    given = sys.argv[1:]
    logs.configure("text", "warning")  # to standard error
    hosts, pages, parts = map(int, given[4:7])
    uvloop.run(work(given[0], given[1], given[2], Path(given[3]), (hosts, pages, parts), float(given[7])))
