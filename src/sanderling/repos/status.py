"""How a crawl of repos stands, for whoever looks: the screen, Prometheus, and others through status.json."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from sanderling.limit import HostView
from sanderling.observe.metrics_repos import RepoReadings
from sanderling.repos.crawl import RepoCrawl
from sanderling.repos.handler import category_of
from sanderling.repos.hosts import RepoHost
from sanderling.repos.segments import Segments
from sanderling.repos.source import ARCHIVED
from sanderling.stores.ports import ProgressView
from sanderling.stores.process_identity import ProcessIdentity
from sanderling.stores.status_file import read_status

SUCCESS = "success"  # "archived", under the name that dashboards know it by


@dataclass(frozen=True, slots=True)
class HostStatus:
    """One host: what the limiter knows of it, and what waits for it."""

    view: HostView
    size: int  # its DIDs that were met so far
    waiting: int  # in memory and on disk
    failures: int  # repos that failed since its last good answer
    blocked: bool  # whether it was set aside: what waits for it is on disk, and it is only probed
    trouble: str  # the category of the last thing it said instead of a good answer; "" if that was its last
    due: float = 0.0  # when what waits for it is due, in Unix seconds, if it was set aside


@dataclass(frozen=True, slots=True)
class RepoStatus:
    """A crawl as it stands. Counts are those of the run, but for `known` and `before`."""

    seconds: float
    ended: dict[str, int]  # repos, by category or "archived"
    records: int
    bytes_read: int
    bytes_written: int
    waiting: int  # DIDs, in memory and on disk
    inflight: int
    known: int  # DIDs of the directory
    before: int  # those that were complete when the run began
    segment: int
    segment_bytes: int
    hosts_known: int
    hosts_blocked: int  # those that were set aside
    hosts: tuple[HostStatus, ...]
    pid: int = 0
    wall: float = 0.0  # when it was taken, and when the run began, in Unix seconds
    started: float = 0.0
    running: bool = True  # as far as it could say: one that was killed did not
    paused: bool = False  # whether somebody wants it to rest
    disk_trouble: str = ""  # why it paused itself, while it does: its disk has no room
    system: str = "repos"
    dropped: dict[str, int] = field(default_factory=dict)  # records of archived repos that are not in them, by why
    pace: str = "governor"  # what moves the pace of hosts
    set_aside: int = 0  # DIDs that are left, since their host did not answer or refused them for too long
    classes: dict[str, int] = field(default_factory=dict)  # requests of this run, by class of work
    process: ProcessIdentity | None = None  # by which its end is known at once, on the same machine

    @property
    def archived(self) -> int:
        """Repos that were archived."""
        return self.ended.get(ARCHIVED, 0)


@dataclass(frozen=True, slots=True)
class RepoWatch:
    """All that a running crawl is looked at through."""

    crawl: RepoCrawl
    segments: Segments
    known: int
    before: ProgressView

    def status(self, seconds: float, top: int = 100, *, running: bool = True) -> RepoStatus:
        """How it stands after so long; `top` hosts at most, those asked most first."""
        # Its clock may have been set since it began: the time it is counts for others, and how long it took for us.
        crawl, wall = self.crawl, self.crawl.clock.wall()
        return RepoStatus(
            seconds=seconds,
            ended=dict(crawl.ended),
            records=crawl.source.records,
            bytes_read=crawl.exchanges.bytes,
            bytes_written=crawl.sink.bytes,
            waiting=crawl.waiting,
            inflight=crawl.inflight,
            known=self.known,
            before=self.before.completed,
            segment=self.segments.number,
            segment_bytes=self.segments.bytes,
            hosts_known=len(crawl.hosts),
            hosts_blocked=crawl.source.hosts_aside,
            hosts=tuple(
                _host(view, crawl.hosts[view.host])
                for view in crawl.limiter.snapshot(top).top
                if view.host in crawl.hosts
            ),
            pid=os.getpid(),
            wall=wall,
            started=wall - seconds,
            running=running,
            paused=crawl.wanted.paused,
            disk_trouble=crawl.wanted.disk_trouble,
            dropped={why: number for why, number in crawl.source.dropped.items() if number},
            pace=crawl.limiter.rules.strategy,
            set_aside=crawl.set_aside,
            classes=crawl.engine.given_by_name(),
        )

    def readings(self) -> RepoReadings:
        """The same for Prometheus."""
        crawl, measures = self.crawl, self.crawl.measures
        return RepoReadings(
            results={SUCCESS if end == ARCHIVED else end: number for end, number in crawl.ended.items()},
            statuses=dict(crawl.exchanges.statuses),
            pages=measures.pages,
            dispatched=measures.dispatched,
            waiting=crawl.source.waiting,
            hosts=len(crawl.hosts),
            active=crawl.engine.asking,
            blocked=measures.blocked,
            segments=self.segments.finalised,
            bytes=crawl.sink.bytes,
            durations=crawl.durations.copy(),
            records=measures.records.copy(),
            collections=measures.collections.copy(),
            sizes=measures.sizes.copy(),
            latencies=crawl.exchanges.latencies.copy(),
            page_dids=measures.page_dids.copy(),
        )


def _host(view: HostView, host: RepoHost) -> HostStatus:
    trouble = "" if host.trouble is None else category_of(host.trouble).value
    due = float(host.due_at) if host.aside else 0.0
    return HostStatus(view, host.size, host.waiting, len(host.streak or ()), host.aside, trouble, due)


def published(folder: Path) -> RepoStatus | None:
    """The status that the crawl in this folder last wrote; None if there is none that can be read."""
    return read_status(folder, RepoStatus)
