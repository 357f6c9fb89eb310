"""A crawl by Crawlee: of pages by their links, or of documents by a list. `python crawlee_pages.py SEEDS ROWS [STORE]`.

Its queue is in memory, or with STORE in files.
"""

import asyncio
import json
import sys
from datetime import timedelta

from crawlee import ConcurrencySettings
from crawlee.configuration import Configuration
from crawlee.crawlers import HttpCrawler, ParselCrawler
from crawlee.storage_clients import FileSystemStorageClient, MemoryStorageClient

SEEDS, ROWS, *STORE = sys.argv[1:]


async def main():
    urls = [line.strip() for line in open(SEEDS)]
    is_json = "/json/" in urls[0]
    storage = FileSystemStorageClient() if STORE else MemoryStorageClient()
    given = {
        "concurrency_settings": ConcurrencySettings(min_concurrency=64, max_concurrency=64, desired_concurrency=64),
        "storage_client": storage,
        "configuration": Configuration(storage_dir=STORE[0] if STORE else "", purge_on_start=False, log_level="ERROR"),
        "configure_logging": False,
        "statistics_log_format": "inline",
        "request_handler_timeout": timedelta(seconds=60),
    }
    rows = open(ROWS, "a", buffering=1 << 16 if not STORE else 1)
    if is_json:
        crawler = HttpCrawler(**given)

        @crawler.router.default_handler
        async def document(context):
            body = json.loads(await context.http_response.read())
            rows.write(json.dumps({"url": context.request.url, "json": body}) + "\n")

    else:
        crawler = ParselCrawler(**given)

        @crawler.router.default_handler
        async def page(context):
            links = [*context.selector.css("a::attr(href)").getall()]
            title = context.selector.css("title::text").get()
            rows.write(json.dumps({"url": context.request.url, "title": title, "links": links}) + "\n")
            await context.enqueue_links(strategy="same-hostname")

    await crawler.run(urls)
    rows.close()


asyncio.run(main())
