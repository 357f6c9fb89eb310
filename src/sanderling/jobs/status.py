"""How a job stands, for whoever looks: the screen, and other processes through status.json in its folder."""

import os
from pathlib import Path

import msgspec

from sanderling.engine.host_report import HostStatus, host_status
from sanderling.jobs.run import JobRun
from sanderling.limit.snapshot import HostView
from sanderling.stores import status_file
from sanderling.stores.frontier_rows import End
from sanderling.stores.process_identity import ProcessIdentity


class JobStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it stands. Counts are those of all its runs, bytes those of this one."""

    pid: int
    wall: float
    started: float
    name: str
    counts: dict[str, int]  # requests by end, in lower case
    requests: int  # that were sent
    records: int
    known: int
    waiting: int
    inflight: int
    bytes: int
    hosts: tuple[HostStatus, ...]
    hosts_known: int = 0
    gone: dict[str, int] = {}  # requests that wait for a reader that the job has not any more, by its name
    max_requests: int | None = None
    max_records: int | None = None
    running: bool = True  # as far as it could say: one that was killed did not
    paused: bool = False  # whether somebody wants it to rest
    disk_trouble: str = ""  # why it paused itself, while it does: its disk has no room
    system: str = "jobs"
    classes: dict[str, int] = {}  # requests of this run, by class of work
    set_aside: int = 0  # of those that wait, the ones that are left to the next run
    shared: tuple[HostView, ...] = ()  # what hosts share: a key, a domain, an address
    pace: str = "governor"  # what moves the pace of hosts
    process: ProcessIdentity | None = None  # by which its end is known at once, on the same machine

    @property
    def seconds(self) -> float:
        """How long this run has taken so far."""
        return self.wall - self.started

    @property
    def is_over_budget(self) -> bool:
        """Whether as much was asked for as may be."""
        over = self.max_requests is not None and self.requests >= self.max_requests
        return over or (self.max_records is not None and self.records >= self.max_records)


def status(run: JobRun, seconds: float, top: int = 1000, *, running: bool = True) -> JobStatus:
    """Take the status of a run after so many seconds; `top` hosts at most, those asked most first."""
    # The clock may have been set since it began: the time it is counts for others, and how long it took for us.
    wall = run.clock.wall()
    decided = {end.name.lower(): run.counts[end] for end in (End.FETCHED, End.FAILED, End.LEFT_OUT)}
    source, snapshot = run.source, run.limiter.snapshot(top)
    return JobStatus(
        pid=os.getpid(),
        wall=wall,
        started=wall - seconds,
        name=run.job.name,
        counts=decided,
        requests=run.requests,
        records=run.records,
        known=sum(decided.values()) + source.waiting,
        waiting=source.waiting,
        inflight=run.engine.inflight,
        bytes=source.bytes,
        hosts=tuple(host_status(source.hosts.get(view.host), view) for view in snapshot.top),
        hosts_known=len(source.hosts),
        gone=dict(source.gone),
        max_requests=run.job.max_requests,
        max_records=run.job.max_records,
        running=running,
        paused=run.engine.wanted.paused,
        disk_trouble=run.engine.wanted.disk_trouble,
        classes=run.engine.given_by_name(),
        set_aside=source.set_aside,
        shared=snapshot.shared,
        pace=run.limiter.rules.strategy,
    )


def published(folder: Path) -> JobStatus | None:
    """The status that the job in this folder last wrote; None if there is none that can be read."""
    found = status_file.read_status(folder, JobStatus)
    return found if found is not None and found.system == "jobs" else None
