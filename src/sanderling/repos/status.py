"""How a crawl of repos stands, for whoever looks: the screen, Prometheus, and others through status.json."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from sanderling.limit import HostView
from sanderling.observe.metrics_repos import RepoReadings
from sanderling.repos.books import Books
from sanderling.repos.crawl import RepoCrawl
from sanderling.repos.dispatcher import HostRepos
from sanderling.repos.measures import Exchanges
from sanderling.repos.segments import Segments
from sanderling.stores.ports import ProgressView
from sanderling.stores.status_file import read_status

ARCHIVED = "archived"  # beside the categories
SUCCESS = "success"  # the same, under the name that dashboards know it by


@dataclass(frozen=True, slots=True)
class HostStatus:
    """One host: what the limiter knows of it, and what waits for it."""

    view: HostView
    size: int  # its DIDs that were met so far
    waiting: int
    failures: int  # in a row
    blocked: bool
    trouble: str  # the category of the last of these failures; "" if the last thing it did was to answer


@dataclass(frozen=True, slots=True)
class RepoStatus:
    """A crawl as it stands. Counts are those of the run, but for `known` and `before`."""

    seconds: float
    ended: dict[str, int]  # repos, by category or "archived"
    records: int
    bytes_read: int
    bytes_written: int
    waiting: int
    inflight: int
    known: int  # DIDs of the directory
    before: int  # those that were complete when the run began
    segment: int
    segment_bytes: int
    hosts_known: int
    hosts_blocked: int
    hosts: tuple[HostStatus, ...]
    pid: int = 0
    wall: float = 0.0  # when it was taken, and when the run began, in Unix seconds
    started: float = 0.0
    running: bool = True  # as far as it could say: one that was killed did not
    paused: bool = False  # whether somebody wants it to rest
    system: str = "repos"
    dropped: dict[str, int] = field(default_factory=dict)  # records of archived repos that are not in them, by why
    pace: str = "governor"  # what moves the pace of hosts

    @property
    def archived(self) -> int:
        """Repos that were archived."""
        return self.ended.get(ARCHIVED, 0)


@dataclass(frozen=True, slots=True)
class Watched:
    """All that a running crawl is looked at through."""

    crawl: RepoCrawl
    exchanges: Exchanges
    books: Books
    segments: Segments
    known: int
    before: ProgressView

    def status(self, seconds: float, top: int = 100, *, running: bool = True) -> RepoStatus:
        """How it stands after so long; `top` hosts at most, those asked most first."""
        # Its clock may have been set since it began: the time it is counts for others, and how long it took for us.
        crawl, wall = self.crawl, self.crawl.clock.wall()
        by_name = {str(host.name): host for host in crawl.hosts.values()}
        return RepoStatus(
            seconds=seconds,
            ended=dict(crawl.ended),
            records=crawl.records,
            bytes_read=self.exchanges.bytes,
            bytes_written=self.books.bytes,
            waiting=crawl.waiting,
            inflight=crawl.inflight,
            known=self.known,
            before=self.before.completed,
            segment=self.segments.number,
            segment_bytes=self.segments.bytes,
            hosts_known=len(crawl.hosts),
            hosts_blocked=sum(host.blocked for host in crawl.hosts.values()),
            hosts=tuple(
                _host(view, by_name[view.host]) for view in crawl.limiter.snapshot(top).top if view.host in by_name
            ),
            pid=os.getpid(),
            wall=wall,
            started=wall - seconds,
            running=running,
            paused=crawl.wanted.paused,
            dropped={why: number for why, number in crawl.dropped.items() if number},
            pace=crawl.limiter.rules.strategy,
        )

    def readings(self) -> RepoReadings:
        """The same for Prometheus."""
        crawl, measures = self.crawl, self.crawl.measures
        return RepoReadings(
            results={SUCCESS if end == ARCHIVED else end: number for end, number in crawl.ended.items()},
            statuses=dict(self.exchanges.statuses),
            pages=measures.pages,
            dispatched=measures.dispatched,
            waiting=crawl.waiting,
            hosts=len(crawl.hosts),
            active=sum(1 for host in crawl.hosts.values() if host.dids),
            blocked=measures.blocked,
            segments=self.segments.finalised,
            bytes=self.books.bytes,
            durations=measures.durations.copy(),
            records=measures.records.copy(),
            collections=measures.collections.copy(),
            sizes=measures.sizes.copy(),
            latencies=self.exchanges.latencies.copy(),
            page_dids=measures.page_dids.copy(),
        )


def _host(view: HostView, host: HostRepos) -> HostStatus:
    trouble = "" if host.trouble is None else host.trouble.value
    return HostStatus(view, host.size, len(host.dids), host.failures, host.blocked, trouble)


def published(folder: Path) -> RepoStatus | None:
    """The status that the crawl in this folder last wrote; None if there is none that can be read."""
    return read_status(folder, RepoStatus)
