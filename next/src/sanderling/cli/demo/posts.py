"""Batches of 120 posts in files, for `events`: some come twice, and some items failed."""

from pathlib import Path

import msgspec
from aiohttp import web

from sanderling.cli.demo.upstream import Upstream
from sanderling.clock import Clock
from sanderling.files import make_folder, write_file

BATCHES, EACH = 6, 20
_SAID = ("Xe đẹp quá, giá hợp lý", "This phone is great, but the battery is terrible", "dịch vụ tệ, thất vọng", "ok")


def posts(_clock: Clock) -> Upstream:
    """The upstream."""
    shows = "batches of a crawler, one twice, with items that failed"
    return Upstream("events", shows, web.Application(), _words, _truth, key="id")


def _words(_url: str, folder: Path) -> tuple[str, ...]:
    batches = folder.parent / f"{folder.name}-batches"
    make_folder(batches)
    paths = []
    for batch in range(BATCHES):
        items = [_item(batch * EACH + place) for place in range(EACH)]
        paths.append(batches / f"batch_{batch:03}.json")
        write_file(paths[-1], msgspec.json.encode(items))
    return ("events", "consume", *map(str, [*paths, paths[0]]), "--out", str(folder), "--metrics-port", "0")


def _item(number: int) -> dict[str, object]:
    failed = (
        {"fetch_status": "error", "error_code": "RATE_LIMITED", "fetch_error": "slow down"} if number % 9 == 0 else {}
    )
    meta = {"id": f"post-{number}", "platform": "tiktok", "job_id": "demo-brand-0", "fetch_status": "success", **failed}
    return {
        "meta": meta,
        "content": {"text": _SAID[number % len(_SAID)]},
        "interaction": {"views": number * 1000, "likes": number * 10},
        "author": {"name": f"author {number % 7}", "followers": number * 500},
    }


def _truth(_url: str) -> set[str]:
    return {f"post-{number}" for number in range(BATCHES * EACH)}
