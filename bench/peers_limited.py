"""Fetch the items of a limited API with a peer, as it comes or with the best settings known for this.

Usage: peers_limited.py scrapy|crawlee default|best BASE ITEMS, in the interpreter of the peers. The API counts.
"""

import asyncio
import logging
import sys
import tempfile
from collections.abc import AsyncIterator
from typing import Any


def scrapy(urls: list[str], *, best: bool) -> None:
    """Scrapy. At its best with AutoThrottle, and with retries enough to outlast the refusals."""
    import scrapy as peer  # type: ignore[import-not-found] # noqa: PLC0415 - only the peers' interpreter has it
    from scrapy.crawler import AsyncCrawlerProcess  # type: ignore[import-not-found] # noqa: PLC0415 - the same

    class Spider(peer.Spider):  # type: ignore[misc] # unknown to mypy here
        """Asks for every item once; retries are Scrapy's own."""

        name = "items"

        async def start(self) -> AsyncIterator[Any]:
            """All of them."""
            for url in urls:
                yield peer.Request(url)

        def parse(self, response: Any) -> dict[str, Any]:  # noqa: ANN401 - a type of the peer
            """One item."""
            return {"url": response.url, "size": len(response.body)}

    settings: dict[str, Any] = {"LOG_ENABLED": False, "TELNETCONSOLE_ENABLED": False}
    if best:
        settings |= {"AUTOTHROTTLE_ENABLED": True, "RETRY_TIMES": 20}
    process = AsyncCrawlerProcess(settings)
    process.crawl(Spider)
    process.start()


async def crawlee(urls: list[str], *, best: bool) -> None:
    """Crawlee. At its best with a throttler that was told which host to mind, and with as many retries as Scrapy."""
    from crawlee.configuration import Configuration  # type: ignore[import-not-found] # noqa: PLC0415 - as above
    from crawlee.crawlers import HttpCrawler  # type: ignore[import-not-found] # noqa: PLC0415 - the same
    from crawlee.request_loaders import (  # type: ignore[import-not-found] # noqa: PLC0415 - the same
        ThrottlingRequestManager,
    )
    from crawlee.storage_clients import MemoryStorageClient  # type: ignore[import-not-found] # noqa: PLC0415 - the same
    from crawlee.storages import RequestQueue  # type: ignore[import-not-found] # noqa: PLC0415 - the same

    with tempfile.TemporaryDirectory() as folder:
        configuration, storage = Configuration(storage_dir=folder), MemoryStorageClient()
        more: dict[str, Any] = {}
        if best:
            queue = await RequestQueue.open(storage_client=storage, configuration=configuration)
            throttled = ThrottlingRequestManager(
                inner=queue, domains=["127.0.0.1"], request_manager_opener=RequestQueue.open
            )
            more = {"request_manager": throttled, "max_request_retries": 20}
        crawler = HttpCrawler(configuration=configuration, storage_client=storage, configure_logging=False, **more)

        async def handle(context: Any) -> None:  # noqa: ANN401 - a type of the peer
            await context.http_response.read()

        crawler.router.default_handler(handle)
        await crawler.run(urls)


def main(name: str, settings: str, base: str, items: int) -> None:
    """Fetch them all, or as many as it manages."""
    logging.disable(logging.CRITICAL)
    urls = [f"{base}/item/{number}" for number in range(items)]
    if name == "scrapy":
        scrapy(urls, best=settings == "best")
    else:
        asyncio.run(crawlee(urls, best=settings == "best"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
