"""A small crawl to keep: URLs, what became of them, and a run of it that can be killed."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from sanderling.outcome import Code, Outcome
from sanderling.pages.folder import CrawlFolder, Plan
from sanderling.pages.ledger import Body, End, Ended, Found, Queued

FINE, GONE = Outcome(Code.OK, 200), Outcome(Code.CONTENT_NOT_FOUND, 404, "not there")
PLAN = Plan(("https://a.example/0",), (), 5)
HOSTS = ("a.example", "b.example", "c.example")
MANY = 1500
# A file system in memory, if there is one: to wait for a real disk, thousands of times, proves nothing more.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - fresh folders in it


@contextmanager
def fresh() -> Iterator[Path]:
    """An empty folder for a while."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


def url(number: int) -> str:
    return f"https://{HOSTS[number % 3]}/{number}"


def found(*numbers: int, depth: int = 0) -> list[Found]:
    return [Found(url(number), HOSTS[number % 3], depth) for number in numbers]


def fetched(queued: Queued, end: End = End.FETCHED, body: Body | None = None, **more: object) -> Ended:
    """It was kept, with a row like that of a crawl."""
    row = {"id": queued.id, "url": queued.url, "outcome": "OK", "status": 200, "depth": queued.depth}
    if body is not None:
        row |= {"body_path": body.path, "sha256": body.sha256}
    values = {"id": queued.id, "url": queued.url, "end": end, "outcome": FINE, "depth": queued.depth, "body": body}
    return Ended(**values, row=msgspec.json.encode(row), **more)  # type: ignore[arg-type]  # mypy cannot see into it


def failed(queued: Queued, end: End = End.FAILED, outcome: Outcome = GONE) -> Ended:
    return Ended(id=queued.id, url=queued.url, end=end, outcome=outcome, depth=queued.depth)


def ended(queued: Queued) -> Ended:
    """Each in its own way, by its number: a fifth failed, a seventh moved, an eleventh has a body."""
    number = int(queued.url.rpartition("/")[2])
    if number % 5 == 4:
        return failed(queued)
    if number % 7 == 6:
        return fetched(queued, End.MOVED, moved_to=url(number + 1))
    return fetched(queued, body=Body.of(b"%d" % (number % 3), ".bin") if number % 11 == 10 else None)


def wait(folder: CrawlFolder, most: int = 10) -> list[Queued]:
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
