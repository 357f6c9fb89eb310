"""What Prometheus reads of a worker of a fleet and of its crawl, by which the number of workers can be set."""

from collections.abc import Iterator
from contextlib import suppress

import msgspec

from sanderling.clock import Clock
from sanderling.crawls.fleet import FleetStores
from sanderling.crawls.fleet_worker import FleetWorker
from sanderling.observe.metric import Metric, counter, gauge
from sanderling.observe.metrics import prefixed
from sanderling.stores.fleet import CrawlView
from sanderling.stores.leases import LeasesAwayError

LOOK = 10.0  # seconds between two looks at the whole crawl: each worker reads all of its parts for that
LOOKS = 10.0  # of all workers together, in a second
PREFIX = "sanderling_fleet_"


class FleetWatch:
    """Looks at the whole crawl now and then, for metrics. A server that is away leaves the last look."""

    def __init__(self, fleet: FleetStores, worker: FleetWorker, clock: Clock) -> None:
        self._fleet = fleet
        self._worker = worker
        self._clock = clock
        self._view: CrawlView | None = None

    async def run(self) -> None:
        """Look, until cancelled."""
        while True:
            with suppress(LeasesAwayError):  # the worker says so
                self._view = await self._fleet.view()
            await self._clock.sleep(max(LOOK, self._worker.figures.workers / LOOKS))

    def metrics(self) -> Iterator[Metric]:
        """The metrics as they are now."""
        return fleet_metrics(self._worker, self._view)


def fleet_metrics(worker: FleetWorker, view: CrawlView | None) -> Iterator[Metric]:
    """What a worker knows; `view` is None before the first look."""
    for each in _measured(worker, view):
        labels = (worker.crawl.system, worker.crawl.name)
        samples = tuple(msgspec.structs.replace(sample, labels=labels) for sample in each.samples)
        yield prefixed(msgspec.structs.replace(each, labels=("system", "crawl"), samples=samples), PREFIX)


def _measured(worker: FleetWorker, view: CrawlView | None) -> tuple[Metric, ...]:
    figures = worker.figures
    return (
        gauge("parts", "Parts that this worker has open.", len(worker.parts)),
        gauge("workers", "Workers of the crawl that live and do not drain.", figures.workers),
        counter("parts_acquired", "Parts that became ours.", figures.acquired),
        counter("parts_lost", "Parts that others took, since we did not renew the lease.", figures.lost),
        counter("server_away", "Times that a server did not answer.", figures.away),
        gauge("crawl_parts", "Parts of the crawl.", worker.crawl.parts),
        gauge("crawl_busy_parts", "Parts of the crawl that have work.", None if view is None else view.busy),
        gauge("crawl_waiting", "Items of the crawl that wait.", None if view is None else view.waiting),
        gauge("crawl_kept", "Items of the crawl that were kept.", None if view is None else view.fetched),
    )
