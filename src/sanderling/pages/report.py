"""What a crawl of pages does, as the one report, made from its status. Pure."""

import msgspec

from sanderling.engine.host_report import report_host, shared_lines
from sanderling.observe.report import (
    Progress,
    Report,
    WorkCounts,
    disk_troubles,
    host_troubles,
    join_names,
    largest,
    paced_by,
    process_of,
)
from sanderling.pages.status import Status
from sanderling.words import count, duration, size

# How URLs end that were asked for.
ASKED_FOR = ("fetched", "unchanged", "moved", "failed")


class PagesFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What only a crawl of pages has. Counts are those of the crawl, bytes those of the run."""

    counts: dict[str, int]  # URLs by end
    known: int  # URLs
    waiting: int  # URLs
    inflight: int  # requests
    bytes: int  # of documents that were read
    hosts: int


def report(status: Status) -> Report[PagesFacts]:
    """Make the report of a crawl."""
    counts, hosts = status.counts, tuple(map(report_host, status.hosts))
    kept = counts.get("fetched", 0) + counts.get("unchanged", 0)
    return Report(
        system=status.system,
        doing=_doing(status),
        process=process_of(status, paused=status.paused),
        troubles=(*disk_troubles(status), *host_troubles(hosts)),
        progress=Progress(
            done=max(0, status.known - status.waiting),
            whole=status.known,
            what="known URLs",
            failed=counts.get("failed", 0),
        ),
        work=_work(status, kept),
        set_aside=status.set_aside,
        hosts=hosts,
        hosts_known=status.hosts_known,
        classes=status.classes,
        numbers=_numbers(status, kept),
        lines=shared_lines(status.shared),
        facts=PagesFacts(
            counts=largest(counts),
            known=status.known,
            waiting=status.waiting,
            inflight=status.inflight,
            bytes=status.bytes,
            hosts=status.hosts_known,
        ),
    )


def _work(status: Status, kept: int) -> WorkCounts:
    ended = sum(status.counts.get(end, 0) for end in ASKED_FOR)
    return WorkCounts(
        # A host that is no longer asked is forgotten with its requests; how its URLs ended is not.
        asked=max(sum(host.view.requests for host in status.hosts), ended),
        refused=sum(host.view.rejected for host in status.hosts),
        kept=kept,
        failed=status.counts.get("failed", 0),
        waiting=status.waiting,
    )


def _numbers(status: Status, kept: int) -> tuple[tuple[str, str], ...]:
    throttled = [host.view.host for host in status.hosts if host.view.state == "closed" and host.view.not_before > 0]
    return (
        ("pages", f"{kept:,}"),
        ("waiting", f"{status.waiting:,}"),
        ("failed", f"{status.counts.get('failed', 0):,}"),
        ("hosts", f"{status.hosts_known:,}"),
        ("in flight", f"{status.inflight:,}"),
        ("read", size(status.bytes)),
        ("told to wait", join_names(throttled, 2) or "no host"),
        ("for", duration(status.seconds)),
    )


def _doing(status: Status) -> str:
    aside = f", {status.set_aside:,} of them for hosts that do not answer" if status.set_aside else ""
    left, pace = count(status.waiting, "URL"), paced_by(status.pace)
    if not status.running:
        return f"ended with {count(status.pages, 'page')}, {left} left{aside}{pace}"
    if status.paused:
        return f"paused; {left} wait, {count(status.inflight, 'request')} in flight"
    if not status.waiting:
        return "nothing is left to ask for"
    return f"asking {count(status.hosts_known, 'host')}{pace}; {left} wait{aside}"
