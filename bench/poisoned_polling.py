"""An upstream that is slow, away or wrong about one document, and a store that is away. For `poisoned`."""

import sys
from itertools import product
from pathlib import Path
from random import Random

from harness import at_most
from poisoned_table import Part, Table, count, run_all
from processes import ROOT

sys.path.insert(0, str(ROOT / "tests" / "polling"))  # where the world is that the tests have too

from bad_upstream import (
    AFTER,
    BAD_TARGETS,
    BEGIN,
    OUTAGES,
    beside_bad_target,
    climb,
    through_outage,
    without_store,
)
from live_polling import LIVE_FROM

LIVE = 10  # documents, where it does not matter how many there are
INTERVALS = (0.2, 0.5, 1.0)  # seconds between two requests for a document; one of these, by the seed
LASTS = (1.0, 10.0, 60.0, 600.0)  # seconds of an outage
SETTLED = 20.0  # seconds of an outage after which it is known to be one
SLOWEST, CLIMBS = 2.0, (15.0, 60.0)  # seconds that an answer takes at last, and within which it comes to that
AWAY, TAKES = 60.0, (0.0, 3.0, 30.0)  # seconds without a store, and until it says so
MANY, RUNS = 100, 15  # live documents beside one that always fails, and how often each is asked for


def every(seed: int) -> float:
    """Seconds between two requests for a document."""
    return INTERVALS[seed % len(INTERVALS)]


def latency(table: Table, folder: Path, seed: int) -> None:
    """Answers take longer and longer, and then less and less."""
    what, interval = "polling, latency", every(seed)
    jobs = {f"up to {SLOWEST:g} s within {up:g} s": (SLOWEST, up, LIVE, interval) for up in CLIMBS}
    for (case, (run, longest)), up in zip(run_all(folder, climb, jobs), CLIMBS, strict=True):
        back = run.back_after(BEGIN + 2 * up, run.until)
        table.judge(
            f"every {interval:g} s, {case}: asked within {longest:.2f} of what is allowed, back after {back:.2f} s",
            at_most(f"{what}: time without a request, in one interval and what an answer takes", 1, longest),
            at_most(f"{what}: seconds beyond an interval until the cadence is back", AFTER, back - interval),
            count(f"{what}: documents whose newest version is not stored", run.stale()),
        )


def outages(table: Table, folder: Path, seed: int) -> None:
    """Nothing is answered for a while."""
    what, interval = "polling, outage", every(seed)
    rng = Random(f"outages {seed}")  # since nothing ends in step with an interval
    cases = [(kind, lasts * rng.uniform(0.9, 1.1)) for kind, lasts in product(OUTAGES, LASTS)]
    jobs = {f"{kind} for {lasts:.2f} s": (kind, lasts, LIVE, interval) for kind, lasts in cases}
    for (case, run), (_, lasts) in zip(run_all(folder, through_outage, jobs), cases, strict=True):
        end = BEGIN + lasts
        back = run.back_after(end, run.until)
        asked = run.asked(BEGIN + SETTLED, end) / max(1.0, lasts - SETTLED)
        table.judge(
            f"every {interval:g} s, {case}: back after {back:.2f} s, asked {asked:.2f} times a second meanwhile",
            at_most(f"{what}: seconds beyond an interval until the cadence is back", AFTER, back - interval),
            at_most(f"{what}: requests a second while it is known to be down", 1.3, asked),
            count(f"{what}: documents whose newest version is not stored", run.stale()),
        )


def store(table: Table, folder: Path, seed: int) -> None:
    """The store is away for a minute."""
    what, interval = "polling, store", every(seed)
    jobs = {f"says so after {takes:g} s": (AWAY, takes, LIVE, interval) for takes in TAKES}
    for case, run in run_all(folder, without_store, jobs):
        late = run.worst_gap(BEGIN, run.until) - 1
        table.judge(
            f"every {interval:g} s, {case}: late by {late:.2f} intervals, {len(run.stale())} of {LIVE} not stored",
            at_most(f"{what}: intervals by which a request is late", 1, late),
            count(f"{what}: documents whose newest version is not stored", run.stale()),
        )


def target(table: Table, folder: Path, seed: int) -> None:
    """One document always fails."""
    what, interval = "polling, target", every(seed)
    jobs = {kind: (kind, MANY, interval, LIVE_FROM + RUNS * interval) for kind in BAD_TARGETS}
    for case, run in run_all(folder, beside_bad_target, jobs):
        late = run.worst_gap(LIVE_FROM, run.until, without="live0") - 1
        table.judge(
            f"every {interval:g} s, {case}: {MANY} others late by {late:.2f} intervals",
            at_most(f"{what}: intervals by which any other is late", 1, late),
            count(f"{what}: others whose newest version is not stored", set(run.stale()) - {"live0"}),
        )


POLLING: dict[str, Part] = {
    "polling, latency": latency,
    "polling, outages": outages,
    "polling, store": store,
    "polling, target": target,
}
