"""A journal with 200 articles, for `pages`: it hides a limit, and has pages that nobody may request."""

from pathlib import Path

from aiohttp import web

from sanderling.cli.demo.upstream import HiddenLimit, Upstream, page
from sanderling.clock import Clock

LISTS, ARTICLES = 10, 200
WORDS = "waves sand tide shore wind bird wing dune salt foam gull reed pool stone shell drift light storm".split()


def journal(clock: Clock) -> Upstream:
    """The upstream."""
    limit = HiddenLimit(clock, 20)
    app = web.Application(middlewares=[limit.middleware])
    app.router.add_get("/", _home)
    app.router.add_get("/robots.txt", _robots)
    app.router.add_get("/list/{number:\\d+}", _list)
    app.router.add_get("/article/{number:\\d+}", _article)
    return Upstream(
        "pages", "a journal that allows 20 requests a second and says so to nobody", app, _words, _truth, limit=limit
    )


def _words(url: str, folder: Path) -> tuple[str, ...]:
    return ("pages", "crawl", url, "--out", str(folder), "--private", "--rps", "100")


def _truth(url: str) -> set[str]:
    paths = ["", *(f"list/{number}" for number in range(LISTS)), *(f"article/{number}" for number in range(ARTICLES))]
    return {url + path for path in paths}


async def _home(_request: web.Request) -> web.Response:
    return page("The journal", "News of the shore.", [*(f"/list/{number}" for number in range(LISTS)), "/private/desk"])


async def _robots(_request: web.Request) -> web.Response:
    return web.Response(text="User-agent: *\nDisallow: /private/\n")


async def _list(request: web.Request) -> web.Response:
    number = int(request.match_info["number"])
    if number >= LISTS:
        raise web.HTTPNotFound
    return page(f"List {number}", "Articles.", [f"/article/{each}" for each in range(number, ARTICLES, LISTS)])


async def _article(request: web.Request) -> web.Response:
    number = int(request.match_info["number"])
    if number >= ARTICLES:
        raise web.HTTPNotFound
    text = " ".join(WORDS[(number * 7 + each * (number % 5 + 1)) % len(WORDS)] for each in range(120))
    return page(f"Article {number}", text, ["/", f"/article/{(number + 1) % ARTICLES}"])
