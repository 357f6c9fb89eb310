"""What a crawl of repos does, as the one report, made from its status. Pure."""

import msgspec

from sanderling.apis.atproto import PERMANENT
from sanderling.observe.report import Report, WorkCounts, largest, paced_by
from sanderling.repos.status import ARCHIVED, RepoStatus
from sanderling.words import count, duration, size

SETTLED = frozenset({ARCHIVED, *PERMANENT, "unchanged"})


class ReposFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A crawl of repos."""

    done: int
    known: int
    eta: float | None  # seconds
    categories: dict[str, int]
    records: int
    waiting: int
    segment: int
    segment_bytes: int
    hosts: int
    blocked: int
    series: tuple[str, ...] = ("archived",)


def repos_report(status: RepoStatus) -> Report[ReposFacts]:
    """Make the report of a crawl."""
    ended = sum(status.ended.values())
    settled = sum(number for end, number in status.ended.items() if end in SETTLED)
    done = min(status.known, status.before + settled) if status.known else status.before + settled
    left = max(0, status.known - done)
    rate = settled / status.seconds if status.seconds > 0 else 0.0
    eta = left / rate if rate > 0 else None
    failed = ended - settled
    return Report(
        system=status.system,
        doing=_archiving(status, left, eta),
        paused=status.paused,
        troubles=tuple(
            f"{each.view.host} {'is blocked' if each.blocked else 'fails'}: {each.trouble or each.view.why}"
            for each in status.hosts
            if each.blocked or each.view.state != "closed"
        ),
        work=WorkCounts(
            asked=max(sum(host.view.requests for host in status.hosts), ended),
            refused=sum(host.view.rejected for host in status.hosts),
            kept=status.archived,
            failed=failed,
            waiting=status.waiting,
        ),
        counters={ARCHIVED: status.archived},
        numbers=(
            ("archived", f"{status.archived:,}"),
            ("left", f"{left:,}"),
            ("time left", duration(eta)),
            ("records", f"{status.records:,}"),
            ("hosts", f"{status.hosts_known:,}"),
            ("blocked", f"{status.hosts_blocked:,}"),
            ("written", size(status.bytes_written)),
            ("segment", f"{status.segment} with {size(status.segment_bytes)}"),
        ),
        facts=ReposFacts(
            done=done,
            known=status.known,
            eta=None if eta is None else round(eta, 1),
            categories=largest(status.ended),
            records=status.records,
            waiting=status.waiting,
            segment=status.segment,
            segment_bytes=status.segment_bytes,
            hosts=status.hosts_known,
            blocked=status.hosts_blocked,
        ),
    )


def _archiving(status: RepoStatus, left: int, eta: float | None) -> str:
    if not status.running:
        return f"ended with {count(status.archived, 'repo')} archived, {left:,} left"
    if status.paused:
        return f"paused; {count(left, 'repo')} left, {count(status.inflight, 'request')} in flight"
    soon = "" if eta is None or not left else f", about {duration(eta)}"
    return (
        f"archiving from {count(status.hosts_known, 'host')}{paced_by(status.pace)}; {count(left, 'repo')} left{soon}"
    )
