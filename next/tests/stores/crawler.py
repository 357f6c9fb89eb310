"""A crawler of nothing, as a process to be killed: takes URLs from a ledger, writes a row for each, finds others.

    crawler.py URL SCHEMA FOLDER LEASE

Each URL leads to two others, until there is a file `enough` in the folder. Exit code 0: the crawl is finished.
"""

import asyncio
import json
import sys
from pathlib import Path
from random import Random
from typing import Any

from sanderling.clock import SystemClock
from sanderling.files import FolderError
from sanderling.records.rows import RowWriter
from sanderling.stores import Batch, EndedUrl, FoundUrl, RetryUrl, StoredUrl
from sanderling.stores.postgres_ledger import PostgresLedger

HOSTS = 12


def found(random: Random) -> FoundUrl:
    host = f"host{random.randrange(HOSTS)}.example"
    return FoundUrl(f"https://{host}/{random.randrange(10**9)}", host)


async def crawl(url: str, schema: str, folder: Path, lease: float) -> None:
    random, clock = Random(), SystemClock()
    async with PostgresLedger(url, schema, {}, clock, ("new", "again"), read_only=False, lease=lease) as ledger:
        writer = RowWriter(folder, "pages", await ledger.row_files(), ledger.process)
        await ledger.commit(Batch(found=[found(random) for _ in range(3)] if not (await ledger.counts()).known else []))
        while True:
            hosts = await ledger.hosts(3)
            if not hosts and await ledger.finish():
                return
            for host in hosts:
                items = (await ledger.take(host.name, 6)).items
                await asyncio.sleep(0.02)  # the requests
                batch: dict[str, list[Any]] = {"stored": [], "ended": [], "again": [], "found": []}
                for item in items if ledger.may_send() else ():
                    roll = random.random()
                    if roll < 0.05:
                        batch["again"].append(RetryUrl(item, 0.0, item.failures + 1, "TIMEOUT"))
                        continue
                    links = [] if (folder / "enough").exists() else [found(random), found(random)]
                    batch["found"] += links
                    if roll < 0.1:
                        batch["ended"].append(EndedUrl(item, "failed", "TIMEOUT"))
                    else:
                        row = {"url": item.url, "links": [link.url for link in links]}
                        writer.append(item.key, [json.dumps(row).encode()], ledger.run)
                        batch["stored"].append(StoredUrl(item))
                woken = await ledger.commit(Batch(files=writer.write(), **batch))  # type: ignore[arg-type]
                for name in [host.name, *woken]:  # which come back by `hosts`
                    ledger.release(name)
            await asyncio.sleep(0.02)


if __name__ == "__main__":
    try:
        asyncio.run(crawl(sys.argv[1], sys.argv[2], Path(sys.argv[3]), float(sys.argv[4])))
    except FolderError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.code)
