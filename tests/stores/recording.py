"""A crawl that records until it is killed, in a file or a Redis."""

import sys
from pathlib import Path

from sanderling.stores.ports import Finished, HostAside, RepoProgress, Unfinished
from sanderling.stores.redis_progress import RedisProgress
from sanderling.stores.sqlite_progress import SqliteProgress

CATEGORIES = ("not_found", "timeout", "rate_limited", "unknown")
BATCH = 20


def did(number: int) -> str:
    return f"did:plc:{number:024}"


def batch(number: int) -> list[str]:
    """The DIDs of the how-manieth record."""
    return [did(BATCH * number + each) for each in range(BATCH)]


def crawl(progress: RepoProgress, records: int = sys.maxsize) -> None:
    """Record batch after batch, a quarter of each as failed; go on where the cursor is."""
    cursor = progress.cursor()
    first = int(cursor.rpartition(":")[2]) // BATCH + 1 if cursor else 0
    for number in range(first, first + records):
        dids = batch(number)
        done = [Finished(each, 10) for each in dids[5:]]
        failed = [
            Unfinished(each, CATEGORIES[place % 2], permanent=place % 2 == 0) for place, each in enumerate(dids[:5])
        ]
        failed[1] = failed[1]._replace(failures=number, due=number + 1)
        hosts = [HostAside("a.example", "", 0), HostAside("b.example", "timeout", number + 1)]
        progress.record(done, failed, cursor=dids[-1], segment=number + 1, hosts=hosts)
        print("recorded", flush=True)  # noqa: T201 - for whoever wants to kill it


if __name__ == "__main__":
    place, _, prefix = sys.argv[1].partition("#")
    if prefix:
        crawl(RedisProgress(place, categories=CATEGORIES, prefix=prefix))
    else:
        crawl(SqliteProgress(Path(place)))
