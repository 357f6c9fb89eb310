"""Real batches made of simple items, and what a consumer says about a few of them."""

from collections.abc import Mapping, Sequence
from functools import cache

import msgspec

from sanderling.events.analysis.analyse import Analyser
from sanderling.events.envelopes import read_envelope
from sanderling.events.measures import EventMeasures
from sanderling.events.rows import Arrival, ProcessedBatch, process_batch
from sanderling.observe.alerts import Alert
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


def process_a_little(seen: EventMeasures, clock: FakeClock) -> None:
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
