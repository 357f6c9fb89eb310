"""Systems as they might stand, and homes with them in it."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import fake_events
import fake_polling
import msgspec
from fake_polling import VIEW
from sanderling.jobs.status import JobStatus
from sanderling.pages.status import Status as PagesStatus
from sanderling.repos.status import HostStatus as RepoHost
from sanderling.repos.status import RepoStatus
from sequence_statuses import DECISION
from sequence_statuses import status as sequence_status

from sanderling.engine.host_report import HostStatus as PageHost
from sanderling.stores.status_file import write_status
from sanderling.web.house import AnyStatus, Found, Reader

WALL = 1_800_000_100.0
# What strangers may be called; none of it may be harmed, nor do harm.
HOSTILE = "</script><img src=x onerror=alert(1)>\r\n\r\ndata: x\u2028\x1b[31m\u202e.example"

PAGES = PagesStatus(
    pid=1,
    wall=WALL,
    started=WALL - 100,
    crawl=1,
    counts={"fetched": 60, "unchanged": 0, "moved": 5, "refused": 1, "failed": 4, "left": 0},
    known=100,
    waiting=30,
    inflight=2,
    bytes=1_234_567,
    hosts_known=2,
    hosts=(
        PageHost(replace(VIEW, host="a.example", requests=70, rejected=3), 20, None),
        PageHost(replace(VIEW, host="b.example", requests=10, rejected=0, state="open"), 10, "TIMEOUT"),
    ),
)
JOBS = JobStatus(
    pid=4,
    wall=WALL,
    started=WALL - 100,
    name="posts",
    counts={"fetched": 50, "failed": 3, "left_out": 1},
    requests=61,
    records=480,
    known=90,
    waiting=36,
    inflight=4,
    bytes=2_345_678,
    hosts=(PageHost(replace(VIEW, host="api.example", requests=61, rejected=2), 32, None),),
    hosts_known=1,
    gone={"detail": 7},
    set_aside=7,
)
REPOS = RepoStatus(
    seconds=100.0,
    ended={"archived": 400, "not_found": 50, "timeout": 10},
    records=123_456,
    bytes_read=10**9,
    bytes_written=10**8,
    waiting=500,
    inflight=20,
    known=1000,
    before=100,
    segment=3,
    segment_bytes=5_000_000,
    hosts_known=1,
    hosts_blocked=1,
    hosts=(RepoHost(replace(VIEW, host="pds.example", requests=600), 900, 500, 7, blocked=True, trouble="timeout"),),
    pid=2,
    wall=WALL,
    started=WALL - 100,
)
SEQUENCE = sequence_status(
    pid=3,
    wall=WALL,
    started=WALL - 100,
    host="stats.example",
    decisions=tuple(
        msgspec.structs.replace(DECISION, wall=WALL - 50 + number, why="300 s behind", held=()) for number in range(30)
    ),
)
POLLING = fake_polling.STATUS
EVENTS = fake_events.STATUS
ALL: dict[str, AnyStatus] = {
    "events": EVENTS,
    "jobs": JOBS,
    "pages": PAGES,
    "polling": POLLING,
    "repos": REPOS,
    "sequence": SEQUENCE,
}


def changed(status: AnyStatus, **changes: Any) -> AnyStatus:  # noqa: ANN401 - fields of it
    """The same with some changes."""
    if isinstance(status, RepoStatus):
        return replace(status, **changes)
    return msgspec.structs.replace(status, **changes)


def put(folder: Path, status: AnyStatus, at: float | None = None) -> Path:
    """Write a status, as if at that time, by the clock of the file as well."""
    folder.mkdir(parents=True, exist_ok=True)
    write_status(folder, status if at is None else changed(status, wall=at))
    if at is not None:
        os.utime(folder / "status.json", (at, at))
    return folder


def found(status: AnyStatus, home: Path, at: float = WALL) -> Found:
    """A status as it is read from a home."""
    put(home / status.system, changed(status, wall=at), at)
    return next(each for each in Reader(home).read() if each.name == status.system)


def many_hosts(number: int) -> PagesStatus:
    """A crawl of so many."""
    hosts = tuple(
        PageHost(
            replace(
                VIEW,
                host=f"host-{each:05}.example",
                requests=each % 997,
                rate=(each * 7919 % 10_007) / 10,
                latency=None if each % 5 == 0 else each / number,
                why="growing until the host objects",
            ),
            each % 13,
            "TIMEOUT" if each % 100 == 0 else None,
        )
        for each in range(number)
    )
    return msgspec.structs.replace(PAGES, hosts=hosts, hosts_known=number)
