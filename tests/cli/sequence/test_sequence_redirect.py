"""A header that holds a secret goes to the host it was given for, and to no other."""

import asyncio
from pathlib import Path

from aiohttp import web

from sanderling.cli.sequence.crawl import make_fetcher
from sanderling.cli.sequence.flags import SequenceUpstream
from sanderling.clock import SystemClock
from sanderling.outcome import Code


async def serving(answer: web.Application) -> tuple[web.AppRunner, str]:
    runner = web.AppRunner(answer)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


def test_a_redirect_is_an_error_and_takes_no_header_along(tmp_path: Path) -> None:
    (tmp_path / "headers").write_text("X-Token: hunter2\n")
    asked: list[str | None] = []

    async def other(request: web.Request) -> web.Response:
        asked.append(request.headers.get("X-Token"))
        return web.json_response({})

    async def main() -> Code:
        there = web.Application()
        there.router.add_get("/{path:.*}", other)
        second, elsewhere = await serving(there)

        async def moved(_: web.Request) -> web.Response:
            return web.Response(status=302, headers={"Location": f"{elsewhere}/x"})

        here = web.Application()
        here.router.add_get("/{path:.*}", moved)
        first, base = await serving(here)
        upstream = SequenceUpstream(url=f"{base}/{{id}}", id_path="id", header_file=tmp_path / "headers", private=True)
        clock = SystemClock()
        transport = upstream.transport(1, clock)
        async with transport.http:
            fetched = await make_fetcher(transport, clock).fetch(upstream.describe().task(7, 1))
        await first.cleanup()
        await second.cleanup()
        return fetched.outcome.code

    assert asyncio.run(main()) is Code.HTTP_ERROR
    assert asked == []
