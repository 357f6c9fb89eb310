"""What a crawl of repos does, as the one report."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from sanderling.apis.atproto import PERMANENT
from sanderling.engine.host_report import EngineStanding, join_standings, report_host, standing_of
from sanderling.limit import HostView
from sanderling.observe.metric import Metric, counter, gauge, join_metrics
from sanderling.observe.report import HostReport, Process, Progress, Report, WorkCounts, largest, paced_by
from sanderling.repos.crawl import RepoCrawl
from sanderling.repos.handler import category_of
from sanderling.repos.measures import ARCHIVED
from sanderling.stores.ports import ProgressView
from sanderling.words import count, duration, size

SETTLED = frozenset({ARCHIVED, *PERMANENT})
# What the parts of a crawl say that is added up.
SUMMED = (
    "records",
    "waiting",
    "set_aside",
    "inflight",
    "bytes_read",
    "bytes_written",
    "ready",
    "hosts_asked",
    "segments_finalised",
    "segment_bytes",
    "hosts",
    "blocked",
)


class ReposFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What only a crawl of repos has. Counts are those of the run, but for `done` and `known`."""

    done: int  # DIDs
    known: int  # DIDs of the directory
    eta: float | None  # seconds
    categories: dict[str, int]  # repos, by category or "archived"
    records: int
    waiting: int  # DIDs, in memory and on disk
    set_aside: int = 0  # DIDs that are left, since their host did not answer or refused them for too long
    inflight: int = 0  # requests
    bytes_read: int = 0
    bytes_written: int = 0
    dropped: dict[str, int] = {}  # records of archived repos that are not in them, by why
    ready: int = 0  # of those that wait, the DIDs in memory
    hosts_asked: int = 0  # hosts with work left
    segments_finalised: int = 0
    segment: int
    segment_bytes: int
    hosts: int
    blocked: int  # hosts that were set aside
    series: tuple[str, ...] = (ARCHIVED,)

    @property
    def archived(self) -> int:
        """Repos that were archived."""
        return self.categories.get(ARCHIVED, 0)


class WrittenSegments(Protocol):
    """How far the segments are."""

    number: int  # of the last
    finalised: int  # in this run

    @property
    def bytes(self) -> int:
        """Of the one that is written now."""


@dataclass(frozen=True, slots=True)
class RepoWatch:
    """All that a running crawl is looked at through."""

    crawl: RepoCrawl
    segments: WrittenSegments
    known: int
    before: ProgressView

    def report(self, seconds: float, top: int = 1000, *, running: bool = True) -> Report[ReposFacts]:
        """Report it after so long; `top` hosts at most, those asked most first."""
        crawl, ended = self.crawl, dict(self.crawl.ended)
        settled = sum(number for end, number in ended.items() if end in SETTLED)
        done = self.before.completed + settled
        done = min(self.known, done) if self.known else done
        left = max(0, self.known - done)
        facts = ReposFacts(
            done=done,
            known=self.known,
            eta=round(left * seconds / settled, 1) if settled and seconds > 0 else None,
            categories=largest(ended),
            records=crawl.source.records,
            waiting=crawl.waiting,
            set_aside=crawl.set_aside,
            inflight=crawl.inflight,
            bytes_read=crawl.exchanges.bytes,
            bytes_written=crawl.sink.bytes,
            dropped={why: number for why, number in crawl.source.dropped.items() if number},
            ready=crawl.source.waiting,
            hosts_asked=crawl.engine.asking,
            segments_finalised=self.segments.finalised,
            segment=self.segments.number,
            segment_bytes=self.segments.bytes,
            hosts=len(crawl.hosts),
            blocked=crawl.source.hosts_aside,
        )
        at = standing_of(crawl.engine, crawl.limiter, seconds, self._host, top=top, running=running)
        measured = crawl.measures.metrics(crawl.ended, crawl.exchanges, crawl.durations)
        return report_repos(facts, at, measured)

    def _host(self, view: HostView) -> HostReport | None:
        host = self.crawl.hosts.get(view.host)
        if host is None:
            return None
        trouble = "" if host.trouble is None else category_of(host.trouble).value
        due = float(host.due_at) if host.aside else 0.0
        made = report_host(view, host.waiting, trouble, aside=host.aside, due=due)
        return msgspec.structs.replace(made, failures=len(host.streak or ()))


def join_repos(reports: Sequence[Report[ReposFacts]], process: Process, known: int, before: int) -> Report[ReposFacts]:
    """Make the report of a crawl from those of its parts.

    The directory has `known` DIDs, of which so many were complete `before` there were parts.
    """
    facts, categories, dropped = [each.facts for each in reports], Counter[str](), Counter[str]()
    for each in facts:
        categories.update(each.categories)
        dropped.update(each.dropped)
    done = min(known, before + sum(each.done for each in facts))
    settled = sum(number for end, number in categories.items() if end in SETTLED)
    joined = ReposFacts(
        done=done,
        known=known,
        eta=round((known - done) * process.seconds / settled, 1) if settled and process.seconds > 0 else None,
        categories=largest(categories),
        dropped=dict(dropped),
        segment=max((each.segment for each in facts), default=0),
        **{name: sum(getattr(each, name) for each in facts) for name in SUMMED},
    )
    made = report_repos(joined, join_standings(reports, process))
    return msgspec.structs.replace(made, metrics=join_metrics([each.metrics for each in reports]))


def report_repos(facts: ReposFacts, at: EngineStanding, measured: Iterable[Metric] = ()) -> Report[ReposFacts]:
    """Make the report of a crawl from what is known of it. Pure."""
    ended = sum(facts.categories.values())
    settled = sum(number for end, number in facts.categories.items() if end in SETTLED)
    left = max(0, facts.known - facts.done)
    named = ", ".join(f"{number:,} {name}" for name, number in facts.categories.items())
    return Report(
        system="repos",
        doing=_doing(facts, at, left),
        process=at.process,
        troubles=at.troubles,
        time_left=facts.eta,
        progress=Progress(done=facts.done, whole=facts.known, what="DIDs"),
        work=WorkCounts(
            asked=max(at.asked, ended),
            refused=at.refused,
            kept=facts.archived,
            failed=ended - settled,
            waiting=facts.waiting,
        ),
        set_aside=facts.set_aside,
        hosts=at.hosts,
        hosts_known=facts.hosts,
        pace=at.pace,
        classes=at.classes,
        counters={ARCHIVED: facts.archived},
        numbers=(
            ("archived", f"{facts.archived:,}"),
            ("left", f"{left:,}"),
            ("time left", duration(facts.eta)),
            ("records", f"{facts.records:,}"),
            ("hosts", f"{facts.hosts:,}"),
            ("set aside", f"{facts.blocked:,}"),
            ("written", size(facts.bytes_written)),
            ("segment", f"{facts.segment} with {size(facts.segment_bytes)}"),
        ),
        lines=(("ended", named or "none yet"),),
        metrics=(
            *measured,
            counter("segments_finalized", "Segments that were finished.", facts.segments_finalised),
            counter("bytes_written", "Bytes of repos that are durable.", facts.bytes_written),
            gauge("pds_count", "Hosts that are known.", facts.hosts),
            gauge("dispatch_remaining", "DIDs that wait in memory.", facts.ready),
            gauge("active_pds", "Hosts with DIDs that wait.", facts.hosts_asked),
        ),
        facts=facts,
    )


def _doing(facts: ReposFacts, at: EngineStanding, left: int) -> str:
    aside = f", {facts.set_aside:,} of them for hosts that do not answer or refuse them" if facts.set_aside else ""
    if not at.process.running:
        return f"ended with {count(facts.archived, 'repo')} archived, {left:,} left{aside}{paced_by(at.pace)}"
    if at.process.paused:
        return f"paused; {count(left, 'repo')} left, {count(facts.inflight, 'request')} in flight"
    return f"archiving from {count(facts.hosts, 'host')}{paced_by(at.pace)}; {count(left, 'repo')} left{aside}"
