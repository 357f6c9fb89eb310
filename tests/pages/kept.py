"""A small crawl to keep: what becomes of its URLs, and a run of it that can be killed.

Run as a script, with the folder above on the path.
"""

import sys
from itertools import chain
from pathlib import Path

from frontier_urls import HOSTS, failed, fetched, found, url

from sanderling.pages.folder import CrawlFolder, CrawlPlan
from sanderling.stores.frontier_rows import BodyFile, End, Ended, QueuedUrl

PLAN = CrawlPlan(("https://a.example/0",), (), 5)
MANY = 1500


def ended(queued: QueuedUrl) -> Ended:
    """Each in its own way, by its number: a fifth failed, a seventh moved, an eleventh has a body."""
    number = int(queued.url.rpartition("/")[2])
    if number % 5 == 4:
        return failed(queued)
    if number % 7 == 6:
        return fetched(queued, End.MOVED, moved_to=url(number + 1))
    return fetched(queued, body=BodyFile.of(b"%d" % (number % 3), ".bin") if number % 11 == 10 else None)


def wait(folder: CrawlFolder, most: int = 10) -> list[QueuedUrl]:
    """Some of what waits, of each host."""
    return list(chain.from_iterable(folder.ledger.take([(host, 0, most) for host in HOSTS])))


def crawl(path: Path, *, commits: int = sys.maxsize, many: int = MANY) -> bool:
    """Crawl a tree of `many` URLs, where 1 leads to 2 and 3, 2 to 4 and 5; whether it came to its end."""
    with CrawlFolder.open(path, PLAN, resume=False, wall=0.0) as folder:
        folder.commit([], found(1))
        for _ in range(commits):
            queued = wait(folder)
            if not queued:
                folder.finish(1.0, complete=True)
                return True
            numbers = [int(each.url.rpartition("/")[2]) for each in queued]
            leads = [n for number in numbers for n in (2 * number, 2 * number + 1) if n <= many]
            folder.commit([ended(each) for each in queued], found(*leads))
            print("committed", flush=True)  # noqa: T201 - for whoever wants to kill it
    return False


if __name__ == "__main__":
    crawl(Path(sys.argv[1]))
