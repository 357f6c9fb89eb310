"""Scrapy, with its politeness and its logs off. With --jobdir it keeps its queue on disk, to be resumed."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy  # type: ignore[import-not-found] # only the peers' interpreter has it
import work
from scrapy.crawler import AsyncCrawlerProcess  # type: ignore[import-not-found] # the same
from scrapy.http import Response  # type: ignore[import-not-found] # the same

FAST = {
    "CONCURRENT_REQUESTS": work.IN_FLIGHT,
    "CONCURRENT_REQUESTS_PER_DOMAIN": work.IN_FLIGHT,
    "DOWNLOAD_DELAY": 0,
    "ROBOTSTXT_OBEY": False,
    "COOKIES_ENABLED": False,
    "LOG_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "ITEM_PIPELINES": {"__main__.Rows": 1},
}
options = work.arguments(("--loop", "asyncio or uvloop"), ("--jobdir", "where to keep the queue"))


class Rows:
    """The pipeline: one line per item, handed to the system at once when there is a job to be resumed."""

    def __init__(self) -> None:
        self._rows = options.rows.open("ab")

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        """Append the item."""
        work.write(self._rows, item["row"])
        if options.jobdir:
            self._rows.flush()
        return item

    def close_spider(self) -> None:
        """The rest goes to disk."""
        self._rows.close()


class Spider(scrapy.Spider):  # type: ignore[misc] # unknown to mypy here
    """Reads each page and follows its links."""

    name = "spider"

    async def start(self) -> AsyncIterator[scrapy.Request]:
        """The seeds. Filtered like all else: a job that is resumed must not ask for them again."""
        for url in work.seeds(options.seeds):
            yield scrapy.Request(url)

    def parse(self, response: Response) -> Iterator[Any]:
        """One item, and a request for each link; Scrapy leaves out those it has seen."""
        kind = response.headers.get("Content-Type", b"").decode()
        row = work.read(response.url, response.status, kind, response.body)
        yield {"row": row}
        for link in work.onward(row):
            yield scrapy.Request(link)


if __name__ == "__main__":
    settings: dict[str, Any] = dict(FAST)
    if options.loop == "uvloop":
        settings["ASYNCIO_EVENT_LOOP"] = "uvloop.Loop"
    if options.jobdir:
        settings["JOBDIR"] = options.jobdir
    process = AsyncCrawlerProcess(settings)
    process.crawl(Spider)
    process.start()
