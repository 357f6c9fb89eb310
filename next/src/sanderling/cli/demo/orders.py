"""An API of 150 orders, for `sequence`: some ids were never given out."""

from pathlib import Path

from aiohttp import web

from sanderling.cli.demo.upstream import Upstream
from sanderling.clock import Clock

ORDERS = 150


def orders(_clock: Clock) -> Upstream:
    """The upstream."""
    app = web.Application()
    app.router.add_get("/orders/{number:\\d+}", _order)
    return Upstream("sequence", "an API of ever-growing ids, with holes", app, _words, _truth, key="id")


def _words(url: str, folder: Path) -> tuple[str, ...]:
    where = f"{url}orders/{{id}}"
    wanted = ("--id", "id", "--begin", "1", "--until", str(ORDERS))
    return ("sequence", "crawl", where, *wanted, "--out", str(folder), "--private", "--rps", "20")


def _truth(_url: str) -> set[str]:
    return {str(number) for number in range(1, ORDERS + 1) if not _is_hole(number)}


def _is_hole(number: int) -> bool:
    return number % 23 == 0


async def _order(request: web.Request) -> web.Response:
    number = int(request.match_info["number"])
    if not 1 <= number <= ORDERS or _is_hole(number):
        raise web.HTTPNotFound
    return web.json_response({"id": number, "item": f"item {number % 17}", "price": number % 90 + 0.5})
