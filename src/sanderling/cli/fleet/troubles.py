"""What people are told while a server of a fleet, or its object store, is away."""

from collections.abc import Callable, Iterator

from sanderling.crawls.fleet import FleetStores
from sanderling.crawls.fleet_worker import FleetWorker
from sanderling.observe.report import Severity, Trouble, shorten
from sanderling.words import count

SLOW = 3.0  # seconds for which a part may wait for a commit, and nobody is told


def fleet_troubles(fleet: FleetStores, worker: FleetWorker, boot: Callable[[], float]) -> Iterator[Trouble]:
    """What is wrong now. Nothing of it is lost, and it goes on by itself."""
    if worker.away:
        text = f"{worker.away}; from half a lease on nothing is asked for, until it answers"
        yield Trouble(Severity.ERROR, shorten(text))
    waits = [why for since, why in tuple(fleet.waits.values()) if boot() > since + SLOW]
    if waits and not worker.away:
        text = f"{waits[0]}; {count(len(waits), 'part')} of ours wait for it, and go on by themselves"
        yield Trouble(Severity.WARNING, shorten(text))
