"""Crawlee with its impit client, its politeness and its logs off; its queue in memory, or in files with --storage."""

import asyncio
import logging
from datetime import timedelta
from typing import BinaryIO

import work
from crawlee import ConcurrencySettings  # type: ignore[import-not-found] # only the peers' interpreter has it
from crawlee.configuration import Configuration  # type: ignore[import-not-found] # the same
from crawlee.crawlers import HttpCrawler, HttpCrawlingContext  # type: ignore[import-not-found] # the same
from crawlee.http_clients import ImpitHttpClient  # type: ignore[import-not-found] # the same
from crawlee.storage_clients import (  # type: ignore[import-not-found] # the same
    FileSystemStorageClient,
    MemoryStorageClient,
)

options = work.arguments(("--storage", "the folder of a durable queue"))


async def crawl(rows: BinaryIO) -> None:
    """Fetch the seeds and all that they lead to."""
    crawler = HttpCrawler(
        configuration=Configuration(storage_dir=options.storage or "", purge_on_start=not options.storage),
        storage_client=FileSystemStorageClient() if options.storage else MemoryStorageClient(),
        http_client=ImpitHttpClient(),
        concurrency_settings=ConcurrencySettings(
            min_concurrency=work.IN_FLIGHT, max_concurrency=work.IN_FLIGHT, desired_concurrency=work.IN_FLIGHT
        ),
        use_session_pool=False,
        configure_logging=False,
        request_handler_timeout=timedelta(seconds=60),
    )

    async def handle(context: HttpCrawlingContext) -> None:
        response = context.http_response
        kind = response.headers.get("content-type", "")
        row = work.read(context.request.url, response.status_code, kind, await response.read())
        work.write(rows, row)
        if links := work.onward(row):
            await context.add_requests(links)

    crawler.router.default_handler(handle)
    await crawler.run(work.seeds(options.seeds))


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    with options.rows.open("wb") as rows:
        asyncio.run(crawl(rows))
