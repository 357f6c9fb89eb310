"""Records of our own crawls as items of batches, and batches as messages. Pure.

A record that is an item (it has `meta` with an id) stays as it is; any other becomes one whose text is what the record
says. Each carries `item_id`, made of its row's key and its run, by which it is known however items are grouped.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from sanderling.formats.envelope import KEY, MOST_BYTES, MOST_HANDED
from sanderling.formats.loose import link, members, platform, text

LONGEST_TEXT = 100_000  # characters of an item
_TEXTS = ("text", "description", "content", "body", "summary", "title", "name")
_SPARE = 4_096  # bytes of a message beside its items


def item_of(line: bytes, key: bytes, run: int, place: int, name: str = "web") -> dict[str, Any]:
    """The item that a record is; `place` tells the records of one row apart, `name` is its platform."""
    record = msgspec.json.decode(line)
    own = f"{key.hex()}-{run}-{place}"
    meta = members(members(record).get("meta"))
    if meta.get("id") is not None:
        return {**record, "meta": {"fetch_status": "success", **meta, "item_id": own}}
    said = members(record)
    url = link(said.get("url"))
    spoken = next((said[each] for each in _TEXTS if isinstance(said.get(each), str)), "") or line.decode()
    times = (said.get(each) for each in ("published", "published_at", "date", "created_at"))
    return {
        "meta": {
            "id": f"{key.hex()}-{place}" if place else key.hex(),
            "item_id": own,
            "platform": platform(name) or "web",
            "fetch_status": "success",
            "permalink": url or None,
            "crawled_at": said.get("fetched_at"),
            "published_at": next(filter(None, times), None),
            "pipeline_version": "sanderling",
        },
        "content": {"text": spoken[:LONGEST_TEXT], "title": text(said.get("title"), 1000)},
    }


def failed_item(url: str, key: bytes, run: int, code: str, why: str, name: str = "web") -> dict[str, Any]:
    """The item of something that was not fetched."""
    return {
        "meta": {
            "id": key.hex(), "item_id": f"{key.hex()}-{run}-failed", "platform": platform(name) or "web",
            "fetch_status": "error", "permalink": link(url) or None, "error_code": code, "fetch_error": why[:2000],
        },
        "content": None,
    }  # fmt: skip


def messages_of(items: Sequence[dict[str, Any]], job_id: str, wall: float) -> Iterator[bytes]:
    """Messages that carry these items, each of at most 50 items and a megabyte."""
    batch: list[bytes] = []
    size = 0
    for item in items:
        line = msgspec.json.encode(item)
        if len(line) > MOST_BYTES - _SPARE:
            content = {**members(item.get("content")), "text": "", "left_out": f"{len(line):,} bytes"}
            line = msgspec.json.encode({"meta": item["meta"], "content": content})
        if batch and (len(batch) == MOST_HANDED or size + len(line) > MOST_BYTES - _SPARE):
            yield _message(batch, job_id, wall)
            batch, size = [], 0
        batch.append(line)
        size += len(line) + 1
    if batch:
        yield _message(batch, job_id, wall)


def _message(batch: list[bytes], job_id: str, wall: float) -> bytes:
    payload = b"[" + b",".join(batch) + b"]"
    head = {"event_id": f"crawl-{hashlib.blake2b(payload, digest_size=12).hexdigest()}", "event_type": KEY,
            "timestamp": wall, "job_id": job_id, "success": True, "task_type": "sanderling",
            "content_count": len(batch), "payload": msgspec.Raw(payload)}  # fmt: skip
    return msgspec.json.encode(head)
