"""A shop with 120 items, for `jobs`: every seventh item fails at first, as shops do."""

from pathlib import Path

from aiohttp import web

from sanderling.cli.demo.upstream import Upstream, page
from sanderling.clock import Clock
from sanderling.files import write_file

LISTS, ITEMS = 6, 120
JOB = Path(__file__).with_name("shop_job.py")


def shop(_clock: Clock) -> Upstream:
    """The upstream."""
    seen: set[int] = set()

    async def item(request: web.Request) -> web.Response:
        number = int(request.match_info["number"])
        if number >= ITEMS:
            raise web.HTTPNotFound
        if number % 7 == 0 and number not in seen:
            seen.add(number)
            raise web.HTTPInternalServerError
        return page(f"Item {number}", f"{number * 37 % 100 + 1}.50", [])

    app = web.Application()
    app.router.add_get("/list/{number:\\d+}", _list)
    app.router.add_get("/item/{number:\\d+}", item)
    return Upstream("jobs", "a shop whose every seventh item fails at first", app, _words, _truth)


def _words(url: str, folder: Path) -> tuple[str, ...]:
    job = folder.with_name(JOB.name)
    write_file(job, JOB.read_text().replace("https://shop.example/", url).encode())
    return ("run", str(job), "--out", str(folder), "--private", "--rps", "20")


def _truth(url: str) -> set[str]:
    return {f"{url}item/{number}" for number in range(ITEMS)}


async def _list(request: web.Request) -> web.Response:
    number = int(request.match_info["number"])
    items = [f"/item/{each}" for each in range(number, ITEMS, LISTS)]
    return page(f"List {number}", "Items.", [*items, f"/list/{(number + 1) % LISTS}"])
