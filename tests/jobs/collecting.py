"""A job in a process of its own that kills itself at a certain point of its writing: `FOLDER PORT POINT`.

Points are before the records are written, between them and the frontier, and after both, of one group after another.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

from sanderling import Job, JobReply, Request, run_job
from sanderling.jobs import PageNumber
from sanderling.stores.frontier_requests import RequestFrontier
from sanderling.stores.rows_file import RowsFile

PAGES, EACH = 6, 15


def make_job(port: int) -> Job:
    """Pages of a list, each entry of which has two records."""
    start = f"http://127.0.0.1:{port}/list"
    job = Job("killed", start=start, paging=PageNumber(items="ids", maximum=PAGES), rps=400)

    @job.read
    def listing(reply: JobReply) -> Iterator[object]:
        for each in reply.json()["ids"]:
            yield {"listed": each}
            yield Request(f"/entry/{each}", read="entry", priority=each % 3)

    @job.read
    async def entry(reply: JobReply) -> list[object]:
        return [{"id": reply.json()["id"], "part": part} for part in range(2)]

    return job


class Points:
    """Counts points, and kills at one of them."""

    def __init__(self, last: int) -> None:
        self.left = last

    def around(self, kind: type, name: str, *, after: bool) -> None:
        """Pass a point before each call, and perhaps after it."""
        method: Callable[..., Any] = getattr(kind, name)

        def counted(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the method
            self.come_by()
            result = method(*args, **kwargs)
            if after:
                self.come_by()
            return result

        setattr(kind, name, counted)

    def come_by(self) -> None:
        """One more point."""
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    points = Points(int(sys.argv[3]))
    points.around(RowsFile, "append", after=False)
    points.around(RequestFrontier, "commit_requests", after=True)
    result = asyncio.run(run_job(make_job(int(sys.argv[2])), sys.argv[1], private=True))
    sys.stdout.write(f"{result.complete} {result.kept}\n")
