"""Crawls as they might stand, for whatever shows them."""

from dataclasses import replace
from typing import Any

import msgspec

from sanderling.engine.host_report import HostStatus
from sanderling.limit import HostView
from sanderling.pages.status import Status

VIEW = HostView(
    host="a.example",
    requests=100,
    rejected=0,
    rate=8.0,
    ceiling=None,
    tokens=1.0,
    latency=0.05,
    p95=0.1,
    error_rate=0.0,
    state="closed",
    failures=0,
    not_before=0.0,
    inflight=1,
    waiting=0,
    why="growing until the host objects",
    learned=None,
    usual=0.05,
    cap=None,
    cap_why=None,
)
STATUS = Status(
    pid=1,
    wall=1000.0,
    started=900.0,
    crawl=1,
    counts={"fetched": 60, "unchanged": 0, "moved": 5, "refused": 1, "failed": 4, "left": 0},
    known=100,
    waiting=30,
    inflight=2,
    bytes=1_234_567,
    hosts_known=1,
    hosts=(),
)


def host(name: str = "a.example", *, queued: int = 10, trouble: str | None = None, **view: Any) -> HostStatus:  # noqa: ANN401 - fields of the view
    """A host that is asked."""
    return HostStatus(replace(VIEW, host=name, **view), queued, trouble)


def status(*hosts: HostStatus, **changes: Any) -> Status:  # noqa: ANN401 - fields of the status
    """A crawl of these hosts."""
    return msgspec.structs.replace(STATUS, **{"hosts": hosts, "hosts_known": len(hosts), **changes})
