"""What a crawl of pages does, as the one report."""

from collections.abc import Sequence
from functools import partial

import msgspec

from sanderling.engine.host_report import EngineStanding, backlog_host, join_standings, standing_of
from sanderling.observe.metric import counter, gauge
from sanderling.observe.report import Process, Progress, Report, WorkCounts, add_up, paced_by, throttled
from sanderling.pages.crawl import Crawl
from sanderling.stores.frontier_rows import End
from sanderling.words import count, duration, size

# How URLs end that were asked for.
ASKED_FOR = ("fetched", "unchanged", "moved", "failed")


class PagesFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What only a crawl of pages has. Counts are those of the crawl, bytes those of the run."""

    counts: dict[str, int]  # URLs by end, in lower case
    known: int  # URLs
    waiting: int  # URLs
    set_aside: int = 0  # of those that wait, the URLs of hosts that do not answer: the next run asks for them
    inflight: int  # requests
    bytes: int  # of documents that were read
    hosts: int
    cut_off: int = 0  # of those that were left out, the URLs that a budget has
    at_depth: int = 0  # pages of this run with links that were not followed, as they are as deep as the crawl goes
    crawl: int = 1  # the how-manieth of the folder

    @property
    def pages(self) -> int:
        """Pages that were fetched, or found unchanged."""
        return self.counts.get("fetched", 0) + self.counts.get("unchanged", 0)


def report_crawl(crawl: Crawl, seconds: float, top: int = 1000, *, running: bool = True) -> Report[PagesFacts]:
    """Report a crawl after so many seconds; `top` hosts at most, those asked most first."""
    decided, waiting = {end.name.lower(): crawl.counts[end] for end in End if end is not End.WAITING}, crawl.waiting
    facts = PagesFacts(
        counts=decided,
        known=sum(decided.values()) + waiting,
        waiting=waiting,
        set_aside=crawl.set_aside,
        inflight=crawl.inflight,
        bytes=crawl.bytes,
        hosts=crawl.folder.ledger.hosts_known,
        cut_off=crawl.source.cut_off,
        at_depth=crawl.at_depth,
        crawl=crawl.folder.crawl,
    )
    hosts = partial(backlog_host, crawl.hosts)
    return report_pages(facts, standing_of(crawl.engine, crawl.limiter, seconds, hosts, top=top, running=running))


def join_crawls(reports: Sequence[Report[PagesFacts]], process: Process) -> Report[PagesFacts]:
    """Make the report of a crawl from those of its parts."""
    start = PagesFacts(counts={}, known=0, waiting=0, inflight=0, bytes=0, hosts=0, crawl=0)
    crawl = max((each.facts.crawl for each in reports), default=1)
    joined = msgspec.structs.replace(add_up(start, (each.facts for each in reports)), crawl=crawl)
    return report_pages(joined, join_standings(reports, process))


def report_pages(facts: PagesFacts, at: EngineStanding) -> Report[PagesFacts]:
    """Make the report of a crawl from what is known of it. Pure."""
    failed = facts.counts.get("failed", 0)
    return Report(
        system="pages",
        doing=_doing(facts, at),
        process=at.process,
        troubles=at.troubles,
        progress=Progress(
            done=max(0, facts.known - facts.waiting), whole=facts.known, what="known URLs", failed=failed
        ),
        work=WorkCounts(
            # Requests are those of this run, and URLs those of the whole crawl.
            asked=max(at.asked, sum(facts.counts.get(end, 0) for end in ASKED_FOR)),
            refused=at.refused,
            kept=facts.pages,
            failed=failed,
            waiting=facts.waiting,
        ),
        set_aside=facts.set_aside,
        hosts=at.hosts,
        hosts_known=facts.hosts,
        shared=at.shared,
        pace=at.pace,
        classes=at.classes,
        numbers=(
            ("pages", f"{facts.pages:,}"),
            ("waiting", f"{facts.waiting:,}"),
            ("failed", f"{failed:,}"),
            ("hosts", f"{facts.hosts:,}"),
            ("in flight", f"{facts.inflight:,}"),
            ("read", size(facts.bytes)),
            ("told to wait", throttled(at.hosts)),
            ("running for", duration(at.process.seconds)),
        ),
        lines=at.lines,
        metrics=(
            counter("urls", "URLs that are decided, by their end.", facts.counts, "end"),
            counter("bytes", "Bytes of bodies, once unpacked.", facts.bytes),
            gauge("waiting", "URLs that are not decided yet.", facts.waiting),
            gauge("inflight", "Requests under way.", facts.inflight),
        ),
        facts=facts,
    )


def _doing(facts: PagesFacts, at: EngineStanding) -> str:
    aside = f", {facts.set_aside:,} of them for hosts that do not answer" if facts.set_aside else ""
    left, pace = count(facts.waiting, "URL"), paced_by(at.pace)
    if not at.process.running:
        return f"ended with {count(facts.pages, 'page')}, {left} left{aside}{pace}"
    if at.process.paused:
        return f"paused; {left} wait, {count(facts.inflight, 'request')} in flight"
    if not facts.waiting:
        return "nothing is left to ask for"
    return f"asking {count(facts.hosts, 'host')}{pace}; {left} wait{aside}"
