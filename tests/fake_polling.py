"""Polling as it might stand: readings and a status written by hand, for the tests of what reads them."""

from typing import Any

import msgspec
from fake_sequence import histogram

from sanderling.limit import HostView
from sanderling.observe.metrics_polling import (
    BATCH_BUCKETS,
    LATE_BUCKETS,
    RUN_BUCKETS,
    PollingCounts,
    PollingReadings,
)
from sanderling.polling.measures import Late
from sanderling.polling.status import (
    AcceleratedStatus,
    ChangeStatus,
    NextStatus,
    PollingStatus,
    SubscriberStatus,
    TargetCounts,
)

COUNTS = PollingCounts(
    runs={("race", "OK"): 90, ("race", "NOT_MODIFIED"): 400, ("results", "TIMEOUT"): 2},
    errors={("results", "network"): 2},
    changes={("laps", "insert"): 60, ("races", "update"): 7, ("all", "purge"): 1},
    missed={"race": 3, "results": 0},
    promotions={"active": 2, "admin": 1, "parent": 5},
    discoveries={"ok": 12, "failed": 1},
    lateness={
        "accelerated": histogram(LATE_BUCKETS, 0.001, 0.004, 0.26),
        "usual": histogram(LATE_BUCKETS, 0.04, 90),
    },
    seconds={"race": histogram(RUN_BUCKETS, 0.06, 0.2), "results": histogram(RUN_BUCKETS, 1.5)},
    batches=histogram(BATCH_BUCKETS, 3, 250),
)
READINGS = PollingReadings(
    counts=COUNTS,
    enabled=True,
    inflight=1,
    slots=2,
    ready=8,
    loaded=40,
    pending=5,
    targets={"all": 50, "paused": 4, "due": 9, "accelerated": 1, "failing": 2, "gone": 6},
    discovery_age=7.5,
    newest=1068,
    followers=3,
    positions={"webhook": 1060, "queue": 1068},
    store_trouble=False,
    problems=0,
)

VIEW = HostView(
    host="race.example",
    requests=492,
    rejected=1,
    rate=20.0,
    ceiling=None,
    tokens=1.0,
    latency=0.06,
    p95=0.11,
    error_rate=0.0,
    state="closed",
    failures=0,
    not_before=0.0,
    inflight=1,
    waiting=0,
    why="growing",
    learned=None,
    usual=0.05,
    cap=None,
    cap_why=None,
)
STATUS = PollingStatus(
    running=True,
    pid=4711,
    wall=1_800_000_100.0,
    started=1_800_000_000.0,
    source="trackside",
    host="race.example",
    enabled=True,
    event="5a2b",
    current="race be0e8021",
    targets=TargetCounts(all=50, paused=4, due=9, accelerated=1, failing=2, gone=6),
    discovered=1_800_000_092.5,
    discovery_trouble="",
    runs={"race": {"OK": 90, "NOT_MODIFIED": 400}, "results": {"TIMEOUT": 2}},
    errors={"results": {"network": 2}},
    changes={"laps": {"insert": 60}, "races": {"update": 7}, "all": {"purge": 1}},
    missed={"race": 3, "results": 0},
    rate=5.4,
    late={"accelerated": Late(0.002, 0.011, 50), "usual": Late(0.04, 0.2, 4)},
    inflight=1,
    slots=2,
    ready=8,
    loaded=40,
    pending=5,
    newest=1068,
    followers=3,
    subscribers=(
        SubscriberStatus(name="webhook", position=1060, behind=8, trouble="https://hook.example: status 503"),
        SubscriberStatus(name="queue", position=1068, behind=0, trouble=""),
    ),
    store_trouble="",
    problems=("scheduler.burst is 'many', expected a whole number from 1 up",),
    limiter=VIEW,
    accelerated=(AcceleratedStatus(kind="race", source_id="be0e8021", interval=0.2, left=21.5, late=0.002),),
    recent=(
        ChangeStatus(seq=1067, at=1_800_000_099.0, op="insert", table="laps", key="lap-60", fields=()),
        ChangeStatus(seq=1068, at=1_800_000_099.2, op="update", table="races", key="be0e8021", fields=("end", "valid")),
    ),
    next=(
        NextStatus(kind="race", source_id="be0e8021", due=0.1, interval=0.2, status="ok"),
        NextStatus(kind="results", source_id="5a2b", due=-0.4, interval=2.0, status="error: TIMEOUT"),
    ),
)


def status(**changes: Any) -> PollingStatus:  # noqa: ANN401 - fields of the status
    """The same with some changes."""
    return msgspec.structs.replace(STATUS, **changes)
