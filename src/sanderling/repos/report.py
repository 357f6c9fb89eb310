"""What a crawl of repos does, as the one report, made from its status. Pure."""

import msgspec

from sanderling.apis.atproto import PERMANENT
from sanderling.engine.host_report import HostStatus as EngineHostStatus
from sanderling.engine.host_report import report_host
from sanderling.observe.report import (
    HostReport,
    Progress,
    Report,
    WorkCounts,
    disk_troubles,
    host_troubles,
    largest,
    paced_by,
    process_of,
)
from sanderling.repos.source import ARCHIVED
from sanderling.repos.status import HostStatus, RepoStatus
from sanderling.words import count, duration, size

SETTLED = frozenset({ARCHIVED, *PERMANENT})


class ReposFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What only a crawl of repos has."""

    done: int
    known: int
    eta: float | None  # seconds
    categories: dict[str, int]
    records: int
    waiting: int
    segment: int
    segment_bytes: int
    hosts: int
    blocked: int  # hosts that were set aside
    series: tuple[str, ...] = (ARCHIVED,)


def report(status: RepoStatus) -> Report[ReposFacts]:
    """Make the report of a crawl."""
    ended = sum(status.ended.values())
    settled = sum(number for end, number in status.ended.items() if end in SETTLED)
    done = min(status.known, status.before + settled) if status.known else status.before + settled
    left = max(0, status.known - done)
    rate = settled / status.seconds if status.seconds > 0 else 0.0
    time_left = left / rate if rate > 0 else None
    hosts = tuple(map(report_one, status.hosts))
    return Report(
        system=status.system,
        doing=_doing(status, left),
        process=process_of(status, paused=status.paused),
        troubles=(*disk_troubles(status), *host_troubles(hosts)),
        time_left=time_left,
        progress=Progress(done=done, whole=status.known, what="DIDs"),
        work=WorkCounts(
            # A host that is no longer asked is forgotten with its requests; how its repos ended is not.
            asked=max(sum(host.view.requests for host in status.hosts), ended),
            refused=sum(host.view.rejected for host in status.hosts),
            kept=status.archived,
            failed=ended - settled,
            waiting=status.waiting,
        ),
        set_aside=status.set_aside,
        hosts=hosts,
        hosts_known=status.hosts_known,
        classes=status.classes,
        counters={ARCHIVED: status.archived},
        numbers=_numbers(status, left, time_left),
        lines=(("ended", _ended(status)),),
        facts=ReposFacts(
            done=done,
            known=status.known,
            eta=None if time_left is None else round(time_left, 1),
            categories=largest(status.ended),
            records=status.records,
            waiting=status.waiting,
            segment=status.segment,
            segment_bytes=status.segment_bytes,
            hosts=status.hosts_known,
            blocked=status.hosts_blocked,
        ),
    )


def _numbers(status: RepoStatus, left: int, time_left: float | None) -> tuple[tuple[str, str], ...]:
    return (
        ("archived", f"{status.archived:,}"),
        ("left", f"{left:,}"),
        ("time left", duration(time_left)),
        ("records", f"{status.records:,}"),
        ("hosts", f"{status.hosts_known:,}"),
        ("set aside", f"{status.hosts_blocked:,}"),
        ("written", size(status.bytes_written)),
        ("segment", f"{status.segment} with {size(status.segment_bytes)}"),
    )


def report_one(host: HostStatus) -> HostReport:
    """Make the report of a host."""
    return report_host(EngineHostStatus(host.view, host.waiting, host.trouble or None, host.blocked))


def _ended(status: RepoStatus) -> str:
    """Say how repos ended, the most frequent first."""
    return ", ".join(f"{number:,} {name}" for name, number in largest(status.ended).items()) or "none yet"


def _doing(status: RepoStatus, left: int) -> str:
    aside = f", {status.set_aside:,} of them for hosts that do not answer or refuse them" if status.set_aside else ""
    if not status.running:
        return f"ended with {count(status.archived, 'repo')} archived, {left:,} left{aside}{paced_by(status.pace)}"
    if status.paused:
        return f"paused; {count(left, 'repo')} left, {count(status.inflight, 'request')} in flight"
    return (
        f"archiving from {count(status.hosts_known, 'host')}{paced_by(status.pace)}; {count(left, 'repo')} left{aside}"
    )
