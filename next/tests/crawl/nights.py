"""Crawls of a changing site in virtual time: no socket, no thread, no waiting."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar
from unittest.mock import patch

from sanderling.clock import LoopClock, VirtualLoop
from sanderling.fetch.classify import of_response
from sanderling.fetch.client import Client
from sanderling.fetch.messages import Headers, HttpRequest

T = TypeVar("T")
HTML: Headers = (("Content-Type", "text/html; charset=utf-8"),)
LATENCY = 0.05


class NightLoop(VirtualLoop):
    """Does in the loop what would be done in threads, which virtual time does not wait for."""

    def run_in_executor(self, _: Any, call: Callable[..., T], *given: Any) -> asyncio.Future[T]:  # type: ignore[override]
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(call(*given))
        except BaseException as error:  # noqa: BLE001 - as an executor does it
            future.set_exception(error)
        return future


class ChangingSite:
    """Pages by path, each a function of the day; what was asked of them, and how often it was answered by 304.

    A page whose text ends with a tag has that as its ETag.
    """

    def __init__(self, pages: Mapping[str, Callable[[float], tuple[str, str]]], clock: LoopClock) -> None:
        self.pages = pages
        self.clock = clock
        self.requests: list[tuple[float, str, int]] = []  # day, path, status

    async def exchange(self, _: Client, request: HttpRequest, url: str, *_more: Any) -> Any:
        """In place of a connection."""
        from sanderling.fetch.client import _Received

        await self.clock.sleep(LATENCY)
        path = "/" + url.split("/", 3)[3]
        day = self.clock.now() / 86_400
        page = self.pages.get(path)
        status, headers, body = 404, HTML, b"no"
        if page is not None:
            text, tag = page(day)
            known = dict(request.headers).get("If-None-Match")
            tags: Headers = (("ETag", f'"{tag}"'),) if tag else ()
            status = 304 if tag and known == f'"{tag}"' else 200
            kind: Headers = (("Content-Type", "application/xml"),) if path.endswith(".xml") else HTML
            headers, body = (*kind, *tags), text.encode() if status == 200 else b""
        if path != "/robots.txt":
            self.requests.append((day, path, status))
        return _Received(of_response(status, headers, self.clock.wall()), status, headers, body, LATENCY)


def by_night(pages: Mapping[str, Callable[[float], tuple[str, str]]], act: Callable[..., Awaitable[T]]) -> T:
    """What `act` returns, which is given the site and its clock."""

    async def main() -> T:
        clock = LoopClock()
        site = ChangingSite(pages, clock)

        async def exchange(client: Client, *given: Any) -> Any:
            return await site.exchange(client, *given)

        quick = patch("sanderling.files.sync"), patch("sanderling.crawl.run.LOOK", 600.0)
        with patch.object(Client, "_exchange", exchange), quick[0], quick[1]:
            return await act(site, clock)

    with asyncio.Runner(loop_factory=NightLoop) as runner:
        return runner.run(main())
