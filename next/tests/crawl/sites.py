"""A site on loopback for tests of crawls, and crawls of it in this process."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from sanderling.clock import SystemClock
from sanderling.crawl.options import CrawlOptions, JobOptions, PagesOptions
from sanderling.crawl.run import CrawlRun
from sanderling.crawl.system import open_run
from sanderling.files import Exit

Answer = tuple[int, Mapping[str, str], str | bytes]
HTML = {"Content-Type": "text/html; charset=utf-8"}


def page(title: str, text: str = "", links: Iterable[str] = (), head: str = "") -> str:
    leads = " ".join(f'<a href="{link}">to {link}</a>' for link in links)
    return f"<html><head><title>{title}</title>{head}</head><body><p>{text or title}</p>{leads}</body></html>"


class Site:
    """Answers by path; what it has not is 404. `requests` are those that came, without robots.txt."""

    def __init__(
        self, pages: Mapping[str, str | Answer | Callable[[web.Request], Answer]], robots: Answer | None = None
    ) -> None:
        self.pages = dict(pages)
        self.robots = robots
        self.requests: list[str] = []
        self.heads: list[dict[str, str]] = []
        self.robots_requests = 0
        self.base = ""

    async def __call__(self, request: web.BaseRequest) -> web.Response:
        target = request.path_qs
        if target == "/robots.txt":
            self.robots_requests += 1
            status, headers, body = self.robots or (404, HTML, "no")
        else:
            self.requests.append(target)
            self.heads.append(dict(request.headers))
            found: Any = self.pages.get(target, self.pages.get("*", (404, HTML, "no")))
            found = found(request) if callable(found) else found
            status, headers, body = found if isinstance(found, tuple) else (200, HTML, found)
        return web.Response(status=status, headers=dict(headers), body=body.encode() if isinstance(body, str) else body)


@asynccontextmanager
async def served(*sites: Site) -> AsyncIterator[None]:
    runners = []
    try:
        for site in sites:
            runner = web.ServerRunner(web.Server(site))
            runners.append(runner)
            await runner.setup()
            place = web.TCPSite(runner, "127.0.0.1", 0)
            await place.start()
            site.base = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield
    finally:
        for runner in runners:
            await runner.cleanup()


def pages_options(out: Path, *urls: str, **more: Any) -> PagesOptions:
    given: dict[str, Any] = {"private": True, "readers": 0, "policy": "none", "patience": 2.0, **more}
    if urls:
        given["urls"] = urls
    return PagesOptions(out=out, **given)


async def crawl(options: CrawlOptions, meanwhile: Callable[[CrawlRun], Any] | None = None) -> tuple[Exit, CrawlRun]:
    async with open_run(options, SystemClock()) as run:
        if meanwhile is not None:
            meanwhile(run)
        return await run.run(), run


def rows(out: Path, name: str = "pages.jsonl") -> dict[str, dict[str, Any]]:
    lines = [msgspec.json.decode(line) for line in (out / name).read_bytes().splitlines()]
    found = {line["url"]: line for line in lines}
    assert len(found) == len(lines), "an address has two rows"
    return found


def job_options(out: Path, file: Path, **more: Any) -> JobOptions:
    given: dict[str, Any] = {"private": True, "readers": 0, "policy": "none", "patience": 2.0, **more}
    return JobOptions(out=out, file=file, **given)


def lines(path: Path) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
