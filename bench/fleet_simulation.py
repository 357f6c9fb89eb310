"""A fleet of many workers on one server, by costs that were measured: where it is held up, and by what.

Every worker makes pages as fast as its core allows, and commits them part by part. The server is a queue with so many
cores: a commit waits for its turn, and its part for the commit. What is simulated is that queue, commit by commit; what
is counted is how many pages a second come through, and how long a commit takes.
"""

import heapq
from dataclasses import dataclass, replace
from random import Random

SECONDS = 20.0  # that are simulated
BATCH = 100  # pages of a commit


@dataclass(frozen=True, slots=True)
class Costs:
    """What was measured. Seconds of CPU."""

    page: float  # of a worker
    commit: float  # of the server, for each page
    look: float  # of the server, for each look of a worker into inboxes; a beat is taken for some of these
    cores: int = 1  # of the server


@dataclass(frozen=True, slots=True)
class Load:
    """What came of it."""

    pages: float  # a second
    busy: float  # share of the server
    wait: float  # seconds that a commit takes, on average


def simulate(workers: int, costs: Costs, seed: int = 1) -> Load:
    """Workers that have as much to do as they can."""
    chance, events = Random(seed), list[tuple[float, int]]()
    make, serve = costs.page * BATCH, costs.commit * BATCH
    # What does not depend on pages: four looks into the inboxes a second, and a beat of some statements every five.
    idle = workers * costs.look * (4 + 10 / 5) / costs.cores
    for worker in range(workers):
        heapq.heappush(events, (chance.random() * make, worker))
    free, done, waited, used = [0.0] * costs.cores, 0, 0.0, 0.0
    while events[0][0] < SECONDS:
        at, worker = heapq.heappop(events)
        core = min(range(costs.cores), key=free.__getitem__)
        begun = max(at, free[core])
        free[core] = begun + serve / max(0.01, 1 - idle)
        done, waited, used = done + BATCH, waited + free[core] - at, used + serve
        # The worker goes on with another of its parts meanwhile, unless so many wait that it has to.
        heapq.heappush(events, (max(at + make, free[core] - make * 8), worker))
    return Load(done / SECONDS, used / SECONDS / costs.cores + idle, waited / max(1, done / BATCH))


def servers_for(workers: int, costs: Costs) -> int:
    """How many servers of one core carry so many workers at nine tenths of their speed."""
    alone = 1 / costs.page * workers
    number = 1
    while simulate(workers, replace(costs, cores=number)).pages < 0.9 * alone:
        number += 1
    return number
