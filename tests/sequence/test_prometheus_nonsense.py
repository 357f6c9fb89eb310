"""A crawl that should plan by a Prometheus server, and was told of one that talks nonsense."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web
from service_crawl import FAR, crawl_flags, playing, rules, running, status_with

from sanderling.worlds.game import GameServer

Answer = Callable[[web.Request], Awaitable[web.Response]]


async def html(_: web.Request) -> web.Response:
    return web.Response(text="<html><title>Sign in</title></html>", content_type="text/html")


async def more_than_all(request: web.Request) -> web.Response:
    many = request.path.endswith("range")
    return result(request, [{"metric": {}} | ({"values": [[1.0, "7"]]} if many else {"value": [1.0, "7"]})])


async def silent(_: web.Request) -> web.Response:
    await asyncio.sleep(600)
    return web.Response()


def result(request: web.Request, found: list[dict[str, object]]) -> web.Response:
    kind = "matrix" if request.path.endswith("range") else "vector"
    return web.json_response({"status": "success", "data": {"resultType": kind, "result": found}})


# One of each kind: no answer of its, one that cannot be, none at all. Its client is tested with many more.
NONSENSE: dict[str, tuple[Answer, str]] = {
    "html": (html, "no answer of Prometheus's"),
    "more_than_all": (more_than_all, "a reading that cannot be"),
    "silent": (silent, "no answer within 10 s"),
}


@asynccontextmanager
async def serving() -> AsyncIterator[str]:
    """All of them, each under its name."""
    app = web.Application()
    for name, (answer, _) in NONSENSE.items():
        app.router.add_get(f"/{name}/{{path:.*}}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def test_a_prometheus_that_talks_nonsense_changes_no_plan_and_stops_no_crawl(tmp_path: Path) -> None:
    async def crawl(name: str, base: str, server: GameServer) -> None:
        # One worker each, for there are several: a decision is due after 20 seconds, with 200 answers.
        out, alone = tmp_path / name, ("--workers", "1", "@min-workers", "1", "--rps", "15", "--no-store")
        flags = crawl_flags(server, out, server.game.first + FAR, *alone, "@prometheus", f"{base}/{name}")
        async with running(*flags):
            status = await status_with(out, lambda status: status.decisions)
            (decision,) = status.decisions[:1]
            assert decision.held[0].startswith("no readings, so the plan stays")
            assert NONSENSE[name][1] in decision.held[0]
            assert decision.workers == decision.before == status.workers == 1
            await status_with(out, lambda later: later.cursor > status.cursor)

    async def main() -> None:
        async with playing(rules(raids=0.04)) as server, serving() as base, asyncio.TaskGroup() as group:
            for name in NONSENSE:
                group.create_task(crawl(name, base, server))

    asyncio.run(main())
