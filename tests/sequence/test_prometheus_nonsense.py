"""A crawl that should plan by a Prometheus server, and was told of one that never answers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web
from service_crawl import FAR, crawl_flags, playing, rules, running, status_with


async def silent(_: web.Request) -> web.Response:
    await asyncio.sleep(600)
    return web.Response()


@asynccontextmanager
async def serving() -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_get("/{path:.*}", silent)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def test_a_prometheus_that_never_answers_changes_no_plan_and_stops_no_crawl(tmp_path: Path) -> None:
    """Its client and its readings are tested with all kinds of nonsense; here it is only silent."""

    async def main() -> None:
        async with playing(rules(raids=0.04)) as server, serving() as base:
            # One worker: a decision is due after 20 seconds, with 200 answers.
            alone = ("--workers", "1", "@min-workers", "1", "--rps", "15", "--no-store", "@prometheus", base)
            async with running(*crawl_flags(server, tmp_path, server.game.first + FAR, *alone)):
                status = await status_with(tmp_path, lambda status: status.decisions)
                (decision,) = status.decisions[:1]
                assert decision.held[0].startswith("no readings, so the plan stays")
                assert "no answer within 10 s" in decision.held[0]
                assert decision.workers == decision.before == status.workers == 1
                await status_with(tmp_path, lambda later: later.cursor > status.cursor)

    asyncio.run(main())
