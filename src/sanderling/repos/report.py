"""What a crawl of repos does, as the one report, made from its status. Pure."""

import msgspec

from sanderling.apis.atproto import PERMANENT
from sanderling.observe.report import (
    AtFault,
    HostCondition,
    HostReport,
    Report,
    WorkCounts,
    largest,
    paced_by,
    shorten,
)
from sanderling.repos.source import ARCHIVED
from sanderling.repos.status import HostStatus, RepoStatus
from sanderling.words import count, duration, size

SETTLED = frozenset({ARCHIVED, *PERMANENT})
TROUBLED = (HostCondition.FAILING, HostCondition.SET_ASIDE)


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
    eta = left / rate if rate > 0 else None
    hosts = tuple(map(_host, status.hosts))
    return Report(
        system=status.system,
        doing=_doing(status, left, eta),
        paused=status.paused,
        troubles=tuple(f"{each.host}: {each.trouble}" for each in hosts if each.state in TROUBLED),
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
        classes=status.classes,
        counters={ARCHIVED: status.archived},
        numbers=_numbers(status, left, eta),
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


def _numbers(status: RepoStatus, left: int, eta: float | None) -> tuple[tuple[str, str], ...]:
    return (
        ("archived", f"{status.archived:,}"),
        ("left", f"{left:,}"),
        ("time left", duration(eta)),
        ("records", f"{status.records:,}"),
        ("hosts", f"{status.hosts_known:,}"),
        ("set aside", f"{status.hosts_blocked:,}"),
        ("written", size(status.bytes_written)),
        ("segment", f"{status.segment} with {size(status.segment_bytes)}"),
    )


def _host(host: HostStatus) -> HostReport:
    state = condition_of(host)
    trouble, at_fault = _trouble(host, state)
    return HostReport(
        host=host.view.host,
        state=state,
        waiting=host.waiting,
        in_flight=host.view.inflight,
        trouble=shorten(trouble),
        at_fault=at_fault,
    )


def _trouble(host: HostStatus, state: HostCondition) -> tuple[str, AtFault | None]:
    """Say what is wrong with a host, and who caused it."""
    if state in TROUBLED:
        return host.trouble or host.view.why, AtFault.HOST
    if state is HostCondition.THROTTLED:
        return host.view.why, None
    # A failure is that of the repo until the circuit opens.
    return (host.trouble, AtFault.ITEMS) if host.trouble else ("", None)


def condition_of(host: HostStatus) -> HostCondition:
    """How a host stands."""
    view = host.view
    if host.blocked and host.waiting:
        return HostCondition.SET_ASIDE
    if view.state != "closed":
        return HostCondition.FAILING
    if not (host.waiting or view.inflight or view.waiting):
        return HostCondition.DONE
    return HostCondition.THROTTLED if view.not_before > 0 else HostCondition.GOING


def _doing(status: RepoStatus, left: int, eta: float | None) -> str:
    aside = f", {status.set_aside:,} of them for hosts that do not answer or refuse them" if status.set_aside else ""
    if not status.running:
        return f"ended with {count(status.archived, 'repo')} archived, {left:,} left{aside}"
    if status.paused:
        return f"paused; {count(left, 'repo')} left, {count(status.inflight, 'request')} in flight"
    soon = "" if eta is None or not left else f", about {duration(eta)}"
    return (
        f"archiving from {count(status.hosts_known, 'host')}{paced_by(status.pace)}; {count(left, 'repo')} left"
        f"{aside}{soon}"
    )
