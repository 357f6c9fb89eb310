"""Batches of 120 posts in files, for `events`, some of them twice; and a site whose pages a crawl hands on to it."""

from pathlib import Path

import msgspec
from aiohttp import web

from sanderling.cli.demo.upstream import Upstream, page
from sanderling.clock import Clock
from sanderling.files import make_folder, write_file
from sanderling.ids import normalise_url, url_key

BATCHES, EACH, PAGES = 6, 20, 30
JOB = "demo-brand-0"
_SAID = ("Xe đẹp quá, giá hợp lý", "This phone is great, but the battery is terrible", "dịch vụ tệ, thất vọng", "ok")


def posts(_clock: Clock) -> Upstream:
    """The upstream."""
    app = web.Application()
    app.router.add_get("/{page:(page/\\d+)?}", _page)
    shows = "batches of a crawler, one twice, and the pages of a crawl"
    return Upstream("events", shows, app, _words, _truth, key="id", before=_crawl)


def _crawl(url: str, folder: Path) -> tuple[str, ...]:
    site = str(folder.parent / f"{folder.name}-site")
    handed = ("--events-job", JOB, "--events-broker", str(folder))
    return ("pages", "crawl", url, "--out", site, "--private", "--rps", "50", *handed)


async def _page(request: web.Request) -> web.Response:
    here = request.match_info["page"]
    if here and int(here.removeprefix("page/")) >= PAGES:
        raise web.HTTPNotFound
    links = () if here else tuple(f"/page/{number}" for number in range(PAGES))
    return page(f"What people say {here}", f"{here}: {_SAID[len(here) % len(_SAID)]}", links)


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
    meta = {"id": f"post-{number}", "platform": "tiktok", "job_id": JOB, "fetch_status": "success", **failed}
    return {
        "meta": meta,
        "content": {"text": _SAID[number % len(_SAID)]},
        "interaction": {"views": number * 1000, "likes": number * 10},
        "author": {"name": f"author {number % 7}", "followers": number * 500},
    }


def _truth(url: str) -> set[str]:
    pages = {url_key(normalise_url(url + path)).hex() for path in ("", *(f"page/{each}" for each in range(PAGES)))}
    return pages | {f"post-{number}" for number in range(BATCHES * EACH)}
