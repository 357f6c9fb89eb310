"""How a crawl stands, for whoever looks: the screen, and other processes through status.json in its folder."""

import os
from pathlib import Path

import msgspec

from sanderling.limit.snapshot import HostView
from sanderling.outcome import Outcome
from sanderling.pages.crawl import Crawl
from sanderling.pages.ends import End
from sanderling.stores import status_file

FILE, LIMITER = status_file.FILE, "limiter.json"


class HostStatus(msgspec.Struct, frozen=True):
    """One host: what the limiter knows of it, and what waits for it."""

    view: HostView
    queued: int
    trouble: str | None  # the last thing it said instead of a good answer, if that was the last thing it said


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

    @property
    def pages(self) -> int:
        """Pages that were fetched, or found unchanged."""
        return self.counts["fetched"] + self.counts["unchanged"]

    @property
    def seconds(self) -> float:
        """How long this run has taken so far."""
        return self.wall - self.started


def status(crawl: Crawl, started: float, wall: float, top: int = 1000) -> Status:
    """Take the crawl's status; `top` hosts at most, those asked most first."""
    decided = {end.name.lower(): crawl.counts[end] for end in End if end is not End.WAITING}
    waiting = crawl.waiting + crawl.inflight
    return Status(
        pid=os.getpid(),
        wall=wall,
        started=started,
        crawl=crawl.folder.crawl,
        counts=decided,
        known=sum(decided.values()) + waiting,
        waiting=waiting,
        inflight=crawl.inflight,
        bytes=crawl.bytes,
        hosts_known=len(crawl.hosts),
        hosts=tuple(_host(crawl, view) for view in crawl.limiter.snapshot(top).top),
    )


def _host(crawl: Crawl, view: HostView) -> HostStatus:
    host = crawl.hosts.get(view.host)
    if host is None:
        return HostStatus(view, 0, None)
    return HostStatus(view, host.held + host.on_disk, None if host.trouble is None else _said(host.trouble))


def _said(outcome: Outcome) -> str:
    return " ".join(str(part) for part in (outcome.code, outcome.status, outcome.detail) if part)


def publish(folder: Path, now: Status) -> None:
    """Write status.json. Raises FolderError."""
    status_file.write_status(folder, now)


def published(folder: Path) -> Status | None:
    """The status that the crawl in this folder last wrote; None if there is none that can be read."""
    return status_file.read_status(folder, Status)


def keep_limiter(folder: Path, saved: bytes) -> None:
    """Keep what the limiter must not forget: a Retry-After outlives the process."""
    draft = folder / f"{LIMITER}.new"
    draft.write_bytes(saved)
    draft.replace(folder / LIMITER)


def kept_limiter(folder: Path) -> bytes | None:
    """What `keep_limiter` kept, if anything."""
    try:
        return (folder / LIMITER).read_bytes()
    except OSError:
        return None
