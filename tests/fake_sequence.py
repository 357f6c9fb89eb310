"""Readings of a crawl of ids written by hand, for the tests of what reads them."""

from collections.abc import Sequence

from sanderling.observe.histogram import Histogram
from sanderling.observe.metrics_sequence import LAG_BUCKETS, REQUEST_BUCKETS, SequenceReadings, StoreReadings


def histogram(bounds: Sequence[float], *values: float) -> Histogram:
    made = Histogram(bounds)
    for value in values:
        made.add(value)
    return made


READINGS = SequenceReadings(
    answers={("success", 1): 90, ("success", 2): 5, ("not_found", 6): 2, ("not_found", 9): 1},
    lags={
        ("success", 1): histogram(LAG_BUCKETS, 12, 31),
        ("success", 6): histogram(LAG_BUCKETS, 40),
        ("success", 8): histogram(LAG_BUCKETS, 50, 400_000),
    },
    requests={
        "success": histogram(REQUEST_BUCKETS, 0.12, 0.4),
        "DestinyPGCRNotFound": histogram(REQUEST_BUCKETS, 0.06),
    },
    workers=25,
    inflight=20,
    waiting=3,
    cursor=1_000_000,
    head=1_000_500,
    newest=1_000_400,
    available=True,
    missed={"not_found": 4, "gap": 1140},
    period=10_000,
    strategy="catch_up",
    probes={"exists": 6, "missing": 7},
    gaps=1,
    skipped=1140,
    rechecks={"success": 8, "not_found": 9},
    decisions={True: 2, False: 11},
    published=95,
    publish_failures=1,
    store=StoreReadings(
        queue={"ready": 10, "taken": 5, "delayed": 2, "dead": 1},
        stored={"new": 70, "duplicate": 3, "buried": 1, "retried": 2},
        workers=4,
    ),
)
