"""How a crawl stands, for whoever looks: the screen, and other processes through status.json in its folder."""

import os
from pathlib import Path

import msgspec

from sanderling.engine.host_report import HostStatus, host_status
from sanderling.limit.snapshot import HostView
from sanderling.pages.crawl import Crawl
from sanderling.stores import status_file
from sanderling.stores.frontier_rows import End
from sanderling.stores.process_identity import ProcessIdentity

__all__ = ["FILE", "HostStatus", "Status", "published", "status"]

FILE = status_file.FILE


class Status(msgspec.Struct, frozen=True):
    """A crawl as it stands."""

    pid: int
    wall: float
    started: float
    crawl: int
    counts: dict[str, int]  # by end, in lower case
    known: int
    waiting: int
    inflight: int
    bytes: int
    hosts_known: int
    hosts: tuple[HostStatus, ...]
    running: bool = True  # as far as it could say: one that was killed did not
    paused: bool = False  # whether somebody wants it to rest
    disk_trouble: str = ""  # why it paused itself, while it does: its disk has no room
    system: str = "pages"
    classes: dict[str, int] = {}  # requests of this run, by class of work
    set_aside: int = 0  # of those that wait, the URLs of hosts that do not answer: the next run asks for them
    shared: tuple[HostView, ...] = ()  # what hosts share: a key, a domain, an address
    pace: str = "governor"  # what moves the pace of hosts
    process: ProcessIdentity | None = None  # by which its end is known at once, on the same machine

    @property
    def pages(self) -> int:
        """Pages that were fetched, or found unchanged."""
        return self.counts["fetched"] + self.counts["unchanged"]

    @property
    def seconds(self) -> float:
        """How long this run has taken so far."""
        return self.wall - self.started


def status(crawl: Crawl, seconds: float, top: int = 1000, *, running: bool = True) -> Status:
    """Take the crawl's status after so many seconds; `top` hosts at most, those asked most first."""
    # Its clock may have been set since it began: the time it is counts for others, and how long it took for us.
    wall = crawl.clock.wall()
    decided = {end.name.lower(): crawl.counts[end] for end in End if end is not End.WAITING}
    waiting, snapshot = crawl.waiting, crawl.limiter.snapshot(top)
    return Status(
        pid=os.getpid(),
        wall=wall,
        started=wall - seconds,
        crawl=crawl.folder.crawl,
        counts=decided,
        known=sum(decided.values()) + waiting,
        waiting=waiting,
        inflight=crawl.inflight,
        bytes=crawl.bytes,
        hosts_known=len(crawl.hosts),
        hosts=tuple(host_status(crawl.hosts.get(view.host), view) for view in snapshot.top),
        shared=snapshot.shared,
        pace=crawl.limiter.rules.strategy,
        running=running,
        paused=crawl.wanted.paused,
        disk_trouble=crawl.wanted.disk_trouble,
        set_aside=crawl.set_aside,
        classes=crawl.engine.given_by_name(),
    )


def published(folder: Path) -> Status | None:
    """The status that the crawl in this folder last wrote; None if there is none that can be read."""
    return status_file.read_status(folder, Status)
