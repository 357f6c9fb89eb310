"""Events as they might stand: real batches made of simple items, and readings and a status written by hand."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
from fake_sequence import histogram

from sanderling.events.analysis.analyse import Analyser
from sanderling.events.envelopes import read_envelope
from sanderling.events.lately import Lately, Minute, ShortError
from sanderling.events.measures import Measures
from sanderling.events.modes import Modes
from sanderling.events.rows import Arrival, ProcessedBatch, process_batch
from sanderling.events.status import EventsStatus, PlatformStatus, QueueStatus
from sanderling.observe.alerts import Alert
from sanderling.observe.metrics_events import (
    BATCH_BUCKETS,
    EVENT_BUCKETS,
    FETCH_BUCKETS,
    WORK_BUCKETS,
    EventsCounts,
    EventsReadings,
)
from sanderling.testing import FakeClock

GOOD, BAD, PLAIN = "Xe rất đẹp, tuyệt vời, tôi rất thích", "Xe quá tệ, thất vọng, lừa đảo", "Hôm nay tôi đi xe"

Item = dict[str, object]


@cache
def analyser() -> Analyser:
    return Analyser()


def post(text: str = GOOD, **meta: object) -> Item:
    """An item that was fetched."""
    return {"meta": {"id": "7000000000000000001", "fetch_status": "success", **meta}, "content": {"text": text}}


def error(code: str, **meta: object) -> Item:
    """An item that was not."""
    return {"meta": {"id": "7000000000000000002", "fetch_status": "error", "error_code": code, **meta}}


def digested(items: Sequence[object], clock: FakeClock | None = None, **payload: object) -> ProcessedBatch:
    """A batch of them as the consumer has it. The payload may say other things than usual."""
    told = {
        "minio_path": "crawl-results/tiktok/proj_xyz/brand/batch_001.json",
        "job_id": "proj_xyz-brand-0",
        "platform": "tiktok",
        **payload,
    }
    message = {"event_id": "evt_abc123", "event_type": "data.collected", "payload": told}
    clock = clock or FakeClock()
    return process_batch(read_envelope(msgspec.json.encode(message)), items, analyser(), Arrival(clock.wall()), clock)


def legacy(items: Sequence[object], message: Mapping[str, object]) -> ProcessedBatch:
    """A batch that came with another sort of message."""
    clock = FakeClock()
    return process_batch(read_envelope(msgspec.json.encode(message)), items, analyser(), Arrival(clock.wall()), clock)


@cache
def batch(posts: int = 0, errors: int = 0, code: str = "TIMEOUT") -> ProcessedBatch:
    """A batch of so many."""
    return digested([post("ok")] * posts + [error(code)] * errors)


def fields(alert: Alert) -> dict[str, str]:
    """What an alert says, by name."""
    return {name: value for name, value, _ in alert.fields}


@cache
def mixed() -> ProcessedBatch:
    """A batch with something of everything: five posts, of which one is skipped, and three errors."""
    posts = [post(GOOD), post(BAD), post(PLAIN), post("ok"), post(GOOD, platform="YOUTUBE")]
    return digested([*posts, error("RATE_LIMITED"), error("?"), 5])


def process_a_little(seen: Measures, clock: FakeClock) -> None:
    """What a consumer says about five messages: two are kept, one was, one waits, one is buried; a sixth is in hand."""
    for _ in range(6):
        seen.received()
    seen.connected(ok=True)
    seen.objects_failed()
    for done in (mixed(), digested([])):
        with seen.fetching():
            clock.advance(0.2)
        with seen.parsing():
            clock.advance(0.01)
        seen.odd("tiktok", len(done.posts) + len(done.errors))
        with seen.analysing():
            clock.advance(0.03)
        seen.kept(done)
        seen.processed("tiktok", 0.3)
    seen.duplicate()
    seen.reused()
    seen.processed("youtube", 0.01)
    seen.postponed()
    seen.failed()
    seen.sent("crawl.retry")


COUNTS = EventsCounts(
    received=120,
    processed={"tiktok": 80, "youtube": 30},
    failed=2,
    duplicates=4,
    reused=3,
    postponed=5,
    fetched=106,
    objects_failed=3,
    items={
        ("tiktok", "success"): 3700,
        ("tiktok", "error"): 300,
        ("youtube", "success"): 590,
        ("youtube", "error"): 10,
    },
    codes={("RATE_LIMITED", "tiktok"): 250, ("PARSE_ERROR", "tiktok"): 50, ("other", "youtube"): 10},
    categories={("rate_limiting", "tiktok"): 250, ("parsing", "tiktok"): 50, ("generic", "youtube"): 10},
    mismatches={("tiktok", "50", "20-49"): 6, ("youtube", "20", "1-9"): 1},
    odd={"tiktok": 8, "youtube": 1},
    batches={("tiktok", "success"): 60, ("tiktok", "partial"): 18, ("tiktok", "failed"): 1, ("youtube", "empty"): 1},
    modes={"new": 100, "legacy": 5, "inline": 1},
    sentiments={("POSITIVE", "tiktok"): 900, ("NEUTRAL", "tiktok"): 2000, ("NEGATIVE", "youtube"): 70},
    skipped={"too short": 400, "spam": 12},
    sent={"crawl.retry": 18, "analyze.result": 106, "data.collected": 0},
    success_rate={"tiktok": 92.5, "youtube": 98.0},
    connected=True,
    event_seconds=histogram(EVENT_BUCKETS, 0.3, 0.4, 12),
    fetch_seconds=histogram(FETCH_BUCKETS, 0.02, 0.3),
    parse_seconds=histogram(WORK_BUCKETS, 0.002, 0.004),
    analysis_seconds=histogram(WORK_BUCKETS, 0.02),
    batch_seconds={"tiktok": histogram(BATCH_BUCKETS, 0.3, 12), "youtube": histogram(BATCH_BUCKETS, 0.4)},
)
READINGS = EventsReadings(
    counts=COUNTS,
    modes={"new": True, "legacy": True, "inline": False},
    canary=0.1,
    queue={"ready": 40, "taken": 3, "delayed": 7, "dead": 2},
    outbox=11,
    pool=20,
    trouble=False,
)
STATUS = EventsStatus(
    running=True,
    pid=4711,
    wall=1_800_000_100.0,
    started=1_800_000_000.0,
    received=120,
    processed=110,
    failed=2,
    duplicates=4,
    postponed=5,
    active=3,
    batches=106,
    posts=4290,
    errors=310,
    lately=Lately(batches=1.1, items=46.0, errors=3.1),
    platforms={
        "tiktok": PlatformStatus(posts=3700, errors=300, success_rate=92.5),
        "youtube": PlatformStatus(posts=590, errors=10, success_rate=98.0),
    },
    categories={"rate_limiting": 250, "parsing": 50, "generic": 10},
    codes={"RATE_LIMITED": 250, "PARSE_ERROR": 50, "other": 10},
    sentiments={"POSITIVE": 900, "NEUTRAL": 2000, "NEGATIVE": 70},
    skipped={"too short": 400, "spam": 12},
    minutes=(
        Minute(at=1_799_999_980.0, positive=500, neutral=1000, negative=20, skipped=200, errors=200),
        Minute(at=1_800_000_040.0, positive=400, neutral=1000, negative=50, skipped=212, errors=110),
    ),
    modes=Modes(new=True, legacy=True, inline=False, canary=0.1),
    modes_trouble="",
    trouble="",
    queue=QueueStatus(ready=40, taken=3, delayed=7, dead=2),
    outbox=11,
    sent={"crawl.retry": 18, "analyze.result": 106},
    recent=(
        ShortError(
            at=1_800_000_099.0,
            platform="tiktok",
            code="RATE_LIMITED",
            category="rate_limiting",
            content_id="7441234567890123456",
            message="429 Too Many Requests",
        ),
    ),
)


def status(**changes: Any) -> EventsStatus:  # noqa: ANN401 - fields of the status
    """The same with some changes."""
    return msgspec.structs.replace(STATUS, **changes)
