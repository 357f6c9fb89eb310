"""A crawl that plans by a Prometheus server: a real one that scrapes it and goes away, and some that talk nonsense."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from service_crawl import crawl_flags, playing, rules, running, status_with
from services.fixtures import NOTES, reach
from services.process import free_ports
from services.prometheus import scraping

from sanderling.observe.prometheus import PrometheusServer
from sanderling.sequence.prometheus_readings import PrometheusSource
from sanderling.sequence.status import DecisionStatus, SequenceStatus
from sanderling.testing import FakeClock
from sanderling.worlds.game_server import GameServer

FAR = 10**9  # ids ahead: the crawl goes on until it is killed
MATCH = 'job="sanderling"'
NO_READINGS = "no readings, so the plan stays"

Answer = Callable[[web.Request], Awaitable[web.Response]]


def decided(status: SequenceStatus, *, by_readings: bool) -> DecisionStatus | None:
    """The last decision that had readings, or the last that had none."""
    wanted = (each for each in reversed(status.decisions) if (each.missing is not None) is by_readings)
    return next(wanted, None)


@pytest.mark.timeout(150)
def test_what_prometheus_scraped_drives_the_workers_and_without_it_the_plan_stays(
    pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    # Of ten ids one never exists.
    game_rules = rules(raids=0.04, hole_every=10)

    async def main(servers: ExitStack) -> None:
        out = tmp_path / "out"
        async with playing(game_rules) as server:
            url = await asyncio.to_thread(servers.enter_context, reach(scraping(port), pytestconfig.stash[NOTES]))
            few = ("--workers", "3", "--min-workers", "2", "--metrics-port", str(port))
            by = ("--prometheus", url, "--prometheus-match", MATCH)
            async with running(*crawl_flags(server, out, server.game.first + FAR, *few, *by)):
                status = await status_with(out, lambda status: decided(status, by_readings=True), 70)
                decision = decided(status, by_readings=True)
                assert decision is not None
                await assert_read_there(url, decision)
                assert_of_the_world(decision)
                assert decision.before == 3
                assert decision.workers > decision.before

                await asyncio.to_thread(servers.close)
                held = await status_with(out, lambda status: "no readings" in "".join(status.decisions[-1].held), 70)
                last = held.decisions[-1]
                assert last.held[0].startswith(f"{NO_READINGS}: Prometheus: {url}")
                assert last.workers == last.before == held.plan.workers
                await status_with(out, lambda status: status.cursor > held.cursor)

    with ExitStack() as servers:
        asyncio.run(main(servers))


async def assert_read_there(url: str, decision: DecisionStatus) -> None:
    """The server still says of that time what the decision went by."""
    clock = FakeClock(wall=decision.wall)
    async with PrometheusServer(url) as server:
        readings = await PrometheusSource(server, clock).read(20.0)
    found = (decision.lag, decision.missing, decision.rate)
    assert found == pytest.approx((readings.lag, readings.missing, readings.rate), rel=0.2)


def assert_of_the_world(decision: DecisionStatus) -> None:
    assert decision.lag is not None
    assert decision.missing is not None
    # An hour behind, which is in the bucket from 30 minutes to 2 hours: a fifth of that is what a histogram knows.
    assert decision.lag == pytest.approx(1800 + 0.2 * 5400, rel=0.01)
    assert 0.05 < decision.missing < 0.35


# Servers that are none.


async def html(_: web.Request) -> web.Response:
    return web.Response(text="<html><title>Sign in</title></html>", content_type="text/html")


async def nothing(request: web.Request) -> web.Response:
    return result(request, [])


async def not_a_number(request: web.Request) -> web.Response:
    many = request.path.endswith("range")
    return result(request, [{"metric": {}} | ({"values": [[1.0, "NaN"]]} if many else {"value": [1.0, "NaN"]})])


async def more_than_all(request: web.Request) -> web.Response:
    many = request.path.endswith("range")
    return result(request, [{"metric": {}} | ({"values": [[1.0, "7"]]} if many else {"value": [1.0, "7"]})])


async def failing(_: web.Request) -> web.Response:
    return web.Response(status=500, text="out of memory")


async def silent(_: web.Request) -> web.Response:
    await asyncio.sleep(600)
    return web.Response()


def result(request: web.Request, found: list[dict[str, object]]) -> web.Response:
    kind = "matrix" if request.path.endswith("range") else "vector"
    return web.json_response({"status": "success", "data": {"resultType": kind, "result": found}})


NONSENSE: dict[str, tuple[Answer, str]] = {
    "html": (html, "no answer of Prometheus's"),
    "nothing": (nothing, "has counted no request of the crawl"),
    "not_a_number": (not_a_number, "has counted no request of the crawl"),
    "more_than_all": (more_than_all, "a reading that cannot be"),
    "failing": (failing, "status 500"),
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
        out, alone = tmp_path / name, ("--workers", "1", "--min-workers", "1", "--no-store")
        flags = crawl_flags(server, out, server.game.first + FAR, *alone, "--prometheus", f"{base}/{name}")
        async with running(*flags):
            status = await status_with(out, lambda status: status.decisions, 60)
            (decision,) = status.decisions[:1]
            assert decision.held[0].startswith(NO_READINGS)
            assert NONSENSE[name][1] in decision.held[0]
            assert decision.workers == decision.before == status.plan.workers == 1
            await status_with(out, lambda later: later.cursor > status.cursor)

    async def main() -> None:
        async with playing(rules(raids=0.04)) as server, serving() as base, asyncio.TaskGroup() as group:
            for name in NONSENSE:
                group.create_task(crawl(name, base, server))

    asyncio.run(main())
