"""Crawls of ids as they might stand, for whatever shows them."""

from typing import Any

import msgspec

from sanderling.sequence.status import DecisionStatus, HostStatus, PlanStatus, SequenceStatus, StoreStatus

DECISION = DecisionStatus(
    wall=1_800_000_050.0,
    before=25,
    workers=50,
    wanted=120,
    period=10_000,
    strategy="catch_up",
    why="25 workers become 50: slew: 120 are more than 2 times 25. Without that: 300 s behind with 0.0 % not found.",
    held=("slew: 120 are more than 2 times 25", "little: 50 are enough", "slew: again"),
    lag=300.0,
    missing=0.012,
    errors=0.0,
    rate=40.0,
)
STATUS = SequenceStatus(
    running=True,
    pid=4711,
    wall=1_800_000_100.0,
    started=1_800_000_000.0,
    api="bungie",
    host="stats.bungie.example",
    cursor=16_000_000_500,
    next=16_000_000_510,
    newest=16_000_000_505,
    head=16_000_006_000,
    behind=5500,
    head_rate=60.0,
    lag=135.0,
    p20=140.0,
    missing=0.012,
    errors=0.001,
    rate=42.0,
    plan=PlanStatus(workers=50, period=10_000, strategy="catch_up", why="135 s behind: 25 workers become 50."),
    inflight=48,
    waiting=7,
    available=True,
    at_head=False,
    looking=False,
    missed={"gap": 9996, "hidden": 3},
    answers={"success": 20, "skipped": 470, "not_found": 10, "error": 2, "rate_limited": 1, "hidden": 3},
    probes={"exists": 4, "missing": 9},
    gaps=1,
    skipped=9996,
    published=20,
    publish_failures=0,
    trouble="",
    queue={"ready": 2, "taken": 1, "delayed": 0, "dead": 0},
    store=StoreStatus(stored=17, duplicates=0, buried=0, retried=0, workers=4, trouble=""),
    limiter=HostStatus(rate=61.5, ceiling=None, latency=0.16, requests=519, refused=1, why="growing"),
    decisions=(DECISION,),
)


def status(**changes: Any) -> SequenceStatus:  # noqa: ANN401 - fields of the status
    """The same with some changes."""
    return msgspec.structs.replace(STATUS, **changes)
