"""URLs of three hosts for a frontier, and what can become of them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from sanderling.outcome import Code, Outcome
from sanderling.stores.frontier_rows import BodyFile, End, Ended, FoundUrl, QueuedUrl

FINE, GONE = Outcome(Code.OK, 200), Outcome(Code.CONTENT_NOT_FOUND, 404, "not there")
HOSTS = ("a.example", "b.example", "c.example")
# A file system in memory, if there is one: to wait for a real disk, thousands of times, proves nothing more.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - fresh folders in it


@contextmanager
def fresh() -> Iterator[Path]:
    """An empty folder for a while."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


def url(number: int) -> str:
    return f"https://{HOSTS[number % 3]}/{number}"


def found(*numbers: int, depth: int = 0) -> list[FoundUrl]:
    return [FoundUrl(url(number), HOSTS[number % 3], depth) for number in numbers]


def fetched(queued: QueuedUrl, end: End = End.FETCHED, body: BodyFile | None = None, **more: object) -> Ended:
    """It was kept, with a row like that of a crawl."""
    row = {"id": queued.id, "url": queued.url, "outcome": "OK", "status": 200, "depth": queued.depth}
    if body is not None:
        row |= {"body_path": body.path, "sha256": body.sha256}
    values = {"id": queued.id, "url": queued.url, "end": end, "outcome": FINE, "depth": queued.depth, "body": body}
    return Ended(**values, row=msgspec.json.encode(row), **more)  # type: ignore[arg-type]  # mypy cannot see into it


def failed(queued: QueuedUrl, end: End = End.FAILED, outcome: Outcome = GONE, requests: int = 1) -> Ended:
    return Ended(id=queued.id, url=queued.url, end=end, outcome=outcome, depth=queued.depth, requests=requests)
