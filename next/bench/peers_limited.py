# ruff: noqa: ANN401 - types of the peers, which are not installed here.
"""All items of the limited API by a peer: peers_limited.py CLIENT BASE ITEMS, in the interpreter of `make peers`.

Clients: scrapy (AutoThrottle as it comes), scrapy-best (AutoThrottle with the best settings known for this),
scrapy-sanderling (our add-on), crawlee, crawlee-best (its throttler, which is told the host). The API counts.
"""

import asyncio
import logging
import sys
import tempfile
from collections.abc import AsyncIterator
from typing import Any

SCRAPY: dict[str, dict[str, Any]] = {
    "scrapy": {"AUTOTHROTTLE_ENABLED": True},
    # A fast 429 makes AutoThrottle's delay no longer, so what helps is to try again, and again.
    "scrapy-best": {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 1, "RETRY_TIMES": 20},
    "scrapy-sanderling": {
        "ADDONS": {"sanderling.limit.scrapy.SanderlingAddon": 500},
        "SANDERLING": {"max_rps": 100},
    },
}


def crawl_by_scrapy(urls: list[str], settings: dict[str, Any]) -> None:
    import scrapy  # type: ignore[import-not-found, unused-ignore] # noqa: PLC0415 - only the peers' interpreter has it
    from scrapy.crawler import (  # type: ignore[import-not-found, unused-ignore] # noqa: PLC0415 - the same
        AsyncCrawlerProcess,
    )

    class Spider(scrapy.Spider):  # type: ignore[misc, unused-ignore]
        name = "items"

        async def start(self) -> AsyncIterator[Any]:
            for url in urls:
                yield scrapy.Request(url)

        def parse(self, response: Any) -> dict[str, Any]:
            return {"url": response.url, "size": len(response.body)}

    process = AsyncCrawlerProcess({"LOG_ENABLED": False, "TELNETCONSOLE_ENABLED": False} | settings)
    process.crawl(Spider)
    process.start()


async def crawl_by_crawlee(urls: list[str], *, best: bool) -> None:
    from crawlee.configuration import (  # type: ignore[import-not-found, unused-ignore] # noqa: PLC0415 - as above
        Configuration,
    )
    from crawlee.crawlers import HttpCrawler  # type: ignore[import-not-found, unused-ignore] # noqa: PLC0415
    from crawlee.request_loaders import (  # type: ignore[import-not-found, unused-ignore] # noqa: PLC0415
        ThrottlingRequestManager,
    )
    from crawlee.storage_clients import (  # type: ignore[import-not-found, unused-ignore] # noqa: PLC0415
        MemoryStorageClient,
    )
    from crawlee.storages import RequestQueue  # type: ignore[import-not-found, unused-ignore] # noqa: PLC0415

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

        async def handle(context: Any) -> None:
            await context.http_response.read()

        crawler.router.default_handler(handle)
        await crawler.run(urls)


def main(client: str, base: str, items: int) -> None:
    logging.disable(logging.CRITICAL)
    urls = [f"{base}/item/{number}" for number in range(items)]
    if client in SCRAPY:
        crawl_by_scrapy(urls, SCRAPY[client])
    else:
        asyncio.run(crawl_by_crawlee(urls, best=client == "crawlee-best"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
