"""The messages of a simulated crawler: a batch is there. In every version that has been seen.

| version | what it looks like |
|---|---|
| event 1.0 | no `event_type`; batches counted from 1; `total_batches` |
| event 1.1 | `event_type`; from 0; no project for dry runs |
| event 2.0 | brand and keyword as well; from 0; no dry runs |
| legacy | `data_ref` with bucket and path, for one post |
| inline | the item itself |
| result | what a crawler says of a whole task, with all that it fetched |
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

import msgspec

from sanderling.worlds.social_hostile import REFUSED, Spoil
from sanderling.worlds.social_items import stamp
from sanderling.worlds.social_market import SearchRun

BUCKET = "crawl-results"
EVENT_TYPE = "data.collected"
TASK_TYPE, DRY_TASK_TYPE = "research_and_crawl", "dryrun_keyword"
LYING = 7  # items more than there are, where a number is wrong

Json = dict[str, object]


class Version(StrEnum):
    """Which messages a crawler sends."""

    EVENT_1_0 = "event_1.0"
    EVENT_1_1 = "event_1.1"
    EVENT_2_0 = "event_2.0"
    LEGACY = "legacy"
    INLINE = "inline"
    RESULT = "result"

    @property
    def is_event(self) -> bool:
        """Whether it is one of today's: a batch is at a path."""
        return self in (Version.EVENT_1_0, Version.EVENT_1_1, Version.EVENT_2_0)

    @property
    def alone(self) -> bool:
        """Whether it is about one item, which is then a post."""
        return self in (Version.LEGACY, Version.INLINE)

    @property
    def stores(self) -> bool:
        """Whether there is an object besides the message."""
        return self not in (Version.INLINE, Version.RESULT)


class Notice(NamedTuple):
    """What a message says."""

    run: SearchRun
    version: Version
    event_id: str
    sent: int  # Unix seconds
    path: str  # bucket and key
    size: int  # items
    spoil: Spoil | None = None


def task_type(run: SearchRun) -> str:
    """What the crawler was told to do."""
    return TASK_TYPE if run.job.project else DRY_TASK_TYPE


def key_of(run: SearchRun, version: Version, event_id: str, sent: int, *, packed: bool) -> str:
    """The key of a batch that is stored. Older crawlers file by project, and name packed ones so; later ones by day."""
    if not version.stores:
        return ""
    platform = run.job.platform
    if version in (Version.EVENT_1_1, Version.LEGACY):
        return f"{platform}/{datetime.fromtimestamp(sent, UTC):%Y/%m/%d}/{event_id}.json"
    suffix = ".zst" if packed and version is Version.EVENT_1_0 else ""
    name = f"batch_{run.counted:03d}.json{suffix}"
    if run.job.project is None:
        return f"{platform}/dryrun/{run.job_id}/{name}"
    whose = "brand" if run.job.is_own else f"competitor_{run.job.brand.slug}"
    return f"{platform}/{run.job.project.id}/{whose}/{name}"


def message(notice: Notice, items: Sequence[object] = ()) -> bytes:
    """The message; `items` are for those that carry them."""
    if notice.spoil in REFUSED:
        return _refused(notice)
    if notice.version is Version.INLINE:
        return msgspec.json.encode(items[0])
    if notice.version is Version.RESULT:
        return msgspec.json.encode(_result(notice, items))
    return msgspec.json.encode(
        _legacy(notice) if notice.version is Version.LEGACY else _event(notice, _payload(notice))
    )


def _event(notice: Notice, payload: Json) -> Json:
    event: Json = {"event_id": notice.event_id, "timestamp": stamp(notice.sent), "payload": payload}
    return event if notice.version is Version.EVENT_1_0 else {"event_type": EVENT_TYPE, **event}


def _payload(notice: Notice) -> Json:
    run, version = notice.run, notice.version
    payload: Json = {
        "minio_path": notice.path,
        "project_id": run.project_id,
        "job_id": run.job_id,
        "batch_index": run.index + (1 if version is Version.EVENT_1_0 else 0),
        "content_count": notice.size + (LYING if notice.spoil is Spoil.WRONG_SIZE else 0),
        "platform": run.job.platform,
    }
    if version is Version.EVENT_1_0:
        return payload | {"total_batches": run.job.batches}
    payload |= {"task_type": task_type(run), "keyword": run.keyword}
    if version is Version.EVENT_2_0:
        return payload | {"minio_path": f"minio://{notice.path}", "brand_name": run.job.brand.name}
    if run.project_id is None:
        del payload["project_id"]
    return payload


def _legacy(notice: Notice) -> Json:
    run = notice.run
    bucket, _, path = notice.path.partition("/")
    return {
        "data_ref": {"bucket": bucket, "path": path},
        "job_id": run.job_id,
        "platform": run.job.platform,
        "timestamp": stamp(notice.sent),
    }


def _result(notice: Notice, items: Sequence[object]) -> Json:
    found = len(items)
    return {
        "success": True,
        "task_type": task_type(notice.run),
        "job_id": notice.run.job_id,
        "platform": notice.run.job.platform,
        "limit_info": {
            "requested_limit": 50,
            "applied_limit": 50,
            "total_found": found,
            "platform_limited": found < 50,
        },
        "stats": {"successful": found, "failed": 0, "skipped": 0, "completion_rate": 1.0 if found else 0.0},
        "error": None,
        "payload": items,
    }


def _refused(notice: Notice) -> bytes:
    if notice.spoil is Spoil.NOT_A_MESSAGE:
        return b"data.collected " + notice.event_id.encode()
    if notice.spoil is Spoil.OTHER_EVENT:
        named: Json = {"project_id": notice.run.project_id, "brand_name": notice.run.job.brand.name}
        return msgspec.json.encode(_event(notice, named) | {"event_type": "project.created"})
    pathless = {name: value for name, value in _payload(notice).items() if name != "minio_path"}
    return msgspec.json.encode(_event(notice, pathless))
