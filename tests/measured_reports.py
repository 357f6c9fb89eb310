"""Reports with all that systems count, as after a while of work, for the tests of metrics and of what asks for them."""

from collections import Counter
from functools import cache

from fake_events import process_a_little
from known_reports import (
    EVENTS_FACTS,
    JOBS,
    PAGES,
    POLLING_FACTS,
    RACE,
    REPOS,
    REPOS_FACTS,
    SEQUENCE,
    SEQUENCE_FACTS,
    standing,
)

from sanderling.apis.numbered import Status
from sanderling.crawls.fleet import DirectStoreCaller, FleetStores
from sanderling.crawls.fleet_part import FleetPart
from sanderling.crawls.fleet_worker import FleetWorker
from sanderling.events.measures import EventMeasures as EventsMeasures
from sanderling.events.report import report_events
from sanderling.observe.report import AnyReport
from sanderling.polling.measures import PollingMeasures
from sanderling.polling.report import report_polling
from sanderling.repos.measures import SECONDS, Exchanges, RepoMeasures
from sanderling.repos.report import report_repos
from sanderling.sequence.measures import REQUEST_BUCKETS, SequenceMeasures
from sanderling.sequence.report import report_sequence, store_metrics
from sanderling.sequence.store import StoreTally
from sanderling.stores.fleet import FleetCrawl
from sanderling.stores.leases import HeldLease
from sanderling.stores.polling import Op
from sanderling.stores.queue import Depth
from sanderling.testing import FakeClock

from known_reports import histogram_of  # isort: skip


def sequence_measures(number: int = 1) -> SequenceMeasures:
    """Of a crawl that has asked `number` times over."""
    measures = SequenceMeasures(probes=Counter(exists=6, missing=7), rechecks=Counter(success=8, not_found=9))
    measures.decisions.update({True: 2, False: 11})
    measures.gaps, measures.skipped = 1, 1140
    for status, attempt, lag in (
        (Status.SUCCESS, 1, 12.0),
        (Status.SUCCESS, 6, 40.0),
        (Status.SUCCESS, 8, 400_000.0),
        (Status.NOT_FOUND, 9, None),
    ):
        for _ in range(number):
            measures.answer(status, attempt, lag)
    measures.requests["success"] = histogram_of(REQUEST_BUCKETS, 0.12, 0.4)
    return measures


def polling_measures() -> PollingMeasures:
    """Of polling that has run a little."""
    measures = PollingMeasures(("race", "results"), ("laps", "races"), FakeClock())
    for late in (0.001, 0.004, 0.26):
        measures.ran("race", "OK", late=late, seconds=0.06, accelerated=True)
    measures.ran("results", "TIMEOUT", late=90.0, seconds=1.5, accelerated=False)
    measures.changed("laps", Op.INSERT, 60)
    measures.changed("", Op.PURGE)
    measures.missed("race", 3)
    measures.promoted("parent")
    measures.discovered(ok=True)
    measures.wrote(250)
    return measures


@cache
def measured() -> dict[str, AnyReport]:
    """One of each system."""
    clock = FakeClock()
    events = EventsMeasures(clock)
    process_a_little(events, clock)
    repos, exchanges = RepoMeasures(pages=3, dispatched=43, blocked=1), Exchanges(None, clock)  # type: ignore[arg-type]
    exchanges.statuses.update({"200": 41, "none": 1})
    ended = {"archived": 40, "not_found": 2}
    stored = store_metrics(StoreTally(stored=70, duplicates=3, buried=1, retried=2, workers=4), Depth(10, 5, 2, 1))
    return {
        "pages": PAGES,
        "jobs": JOBS,
        "repos": report_repos(
            REPOS_FACTS, standing(*REPOS.hosts), repos.metrics(ended, exchanges, histogram_of(SECONDS, 0.5, 5))
        ),
        "sequence": report_sequence(
            SEQUENCE_FACTS, standing(*SEQUENCE.hosts), (*sequence_measures().metrics(), *stored)
        ),
        "polling": report_polling(POLLING_FACTS, standing(RACE), polling_measures().metrics()),
        "events": report_events(EVENTS_FACTS, standing(), events.metrics()),
    }


def idle_worker() -> FleetWorker:
    """A worker of a fleet that has not begun."""

    async def open_part(held: HeldLease) -> FleetPart:
        raise AssertionError(held)

    crawl = FleetCrawl(
        name="example", id="1", system="pages", plan="", parts=64, seconds=30.0, ledger="1", objects="", started=0.0
    )
    return FleetWorker(FleetStores([], DirectStoreCaller()), crawl, FakeClock(), FakeClock().now, open_part)
