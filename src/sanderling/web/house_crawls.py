"""Crawls for people: those of pages, and those of repos. Pure."""

import msgspec

from sanderling.apis.atproto import PERMANENT
from sanderling.pages.status import Status as PagesStatus
from sanderling.repos.status import ARCHIVED, RepoStatus
from sanderling.web.house_told import Told, Work, listed, most
from sanderling.words import count, duration, size

# How pages end of which somebody was asked.
ASKED_FOR = ("fetched", "unchanged", "moved", "failed")
SETTLED = frozenset({ARCHIVED, *PERMANENT, "unchanged"})


class PagesFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A crawl of pages. Counts are those of the crawl, bytes those of the run."""

    counts: dict[str, int]
    known: int
    waiting: int
    inflight: int
    bytes: int
    hosts: int


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


def pages_told(status: PagesStatus) -> Told:
    """A crawl of pages."""
    counts = status.counts
    kept = counts.get("fetched", 0) + counts.get("unchanged", 0)
    ended = sum(counts.get(end, 0) for end in ASKED_FOR)
    failing = [host for host in status.hosts if host.view.state != "closed" or (host.given_up and host.queued)]
    throttled = [host.view.host for host in status.hosts if host.view.state == "closed" and host.view.not_before > 0]
    troubles = [f"{each.view.host}: {each.trouble or each.view.why}" for each in failing]
    return Told(
        doing=_crawling(status),
        paused=status.paused,
        troubles=tuple(troubles),
        # Hosts that are not asked any more are forgotten, and with them what they were asked; what became of it is not.
        work=Work(
            max(sum(host.view.requests for host in status.hosts), ended),
            sum(host.view.rejected for host in status.hosts),
            kept,
            counts.get("failed", 0),
            status.waiting,
        ),
        numbers=(
            ("pages", f"{kept:,}"),
            ("waiting", f"{status.waiting:,}"),
            ("failed", f"{counts.get('failed', 0):,}"),
            ("hosts", f"{status.hosts_known:,}"),
            ("in flight", f"{status.inflight:,}"),
            ("read", size(status.bytes)),
            ("told to wait", listed(throttled, 2) or "no host"),
            ("for", duration(status.seconds)),
        ),
        facts=PagesFacts(
            counts=most(counts),
            known=status.known,
            waiting=status.waiting,
            inflight=status.inflight,
            bytes=status.bytes,
            hosts=status.hosts_known,
        ),
    )


def _crawling(status: PagesStatus) -> str:
    if not status.running:
        return f"ended with {count(status.pages, 'page')}, {count(status.waiting, 'URL')} left"
    if status.paused:
        return f"paused; {count(status.waiting, 'URL')} wait, {count(status.inflight, 'request')} in flight"
    if not status.waiting:
        return "nothing is left to ask for"
    return f"asking {count(status.hosts_known, 'host')}; {count(status.waiting, 'URL')} wait"


def repos_told(status: RepoStatus) -> Told:
    """A crawl of repos."""
    ended = sum(status.ended.values())
    settled = sum(number for end, number in status.ended.items() if end in SETTLED)
    done = min(status.known, status.before + settled) if status.known else status.before + settled
    left = max(0, status.known - done)
    rate = settled / status.seconds if status.seconds > 0 else 0.0
    eta = left / rate if rate > 0 else None
    failed = ended - settled
    return Told(
        doing=_archiving(status, left, eta),
        paused=status.paused,
        troubles=tuple(
            f"{each.view.host} {'is blocked' if each.blocked else 'fails'}: {each.trouble or each.view.why}"
            for each in status.hosts
            if each.blocked or each.view.state != "closed"
        ),
        work=Work(
            max(sum(host.view.requests for host in status.hosts), ended),
            sum(host.view.rejected for host in status.hosts),
            status.archived,
            failed,
            status.waiting,
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
            categories=most(status.ended),
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
    return f"archiving from {count(status.hosts_known, 'host')}; {count(left, 'repo')} left{soon}"
