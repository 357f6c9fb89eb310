"""A crawl that plans by a Prometheus server: a real one, that scrapes it and goes away."""

import asyncio
from contextlib import ExitStack
from pathlib import Path

import pytest
from service_crawl import FAR, crawl_flags, playing, rules, running, status_with
from services.fixtures import NOTES, reach
from services.process import free_ports
from services.prometheus import scraping

from sanderling.observe.prometheus import PrometheusServer
from sanderling.sequence.readings import PrometheusSource
from sanderling.sequence.report import SequenceFacts, WorkerDecision
from sanderling.testing import FakeClock

MATCH = 'job="sanderling"'
NO_READINGS = "no readings, so the plan stays"


def decided(status: SequenceFacts, *, by_readings: bool) -> WorkerDecision | None:
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
            few = ("--workers", "3", "@min-workers", "2", "--metrics-port", str(port))
            by = ("@prometheus", url, "@prometheus-match", MATCH)
            async with running(*crawl_flags(server, out, server.game.first + FAR, *few, *by)):
                status = await status_with(out, lambda status: decided(status, by_readings=True))
                decision = decided(status, by_readings=True)
                assert decision is not None
                await assert_read_there(url, decision)
                assert_of_the_world(decision)
                assert decision.before == 3
                assert decision.workers > decision.before

                await asyncio.to_thread(servers.close)
                held = await status_with(out, lambda status: "no readings" in "".join(status.decisions[-1].held))
                last = held.decisions[-1]
                assert last.held[0].startswith(f"{NO_READINGS}: Prometheus: {url}")
                assert last.workers == last.before == held.workers
                await status_with(out, lambda status: status.cursor > held.cursor)

    with ExitStack() as servers:
        asyncio.run(main(servers))


async def assert_read_there(url: str, decision: WorkerDecision) -> None:
    """The server still says of that time what the decision went by."""
    clock = FakeClock(wall=decision.wall)
    async with PrometheusServer(url) as server:
        readings = await PrometheusSource(server, clock).read(20.0)
    assert (decision.lag, decision.missing) == pytest.approx((readings.lag, readings.missing), rel=0.2)


def assert_of_the_world(decision: WorkerDecision) -> None:
    assert decision.lag is not None
    assert decision.missing is not None
    # An hour behind, which is in the bucket from 30 minutes to 2 hours: a fifth of that is what a histogram knows.
    assert decision.lag == pytest.approx(1800 + 0.2 * 5400, rel=0.01)
    assert 0.05 < decision.missing < 0.35
