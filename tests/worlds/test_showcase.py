"""The demo's three hosts under virtual time: 160 seconds of them take one, and come out the same each time."""

import asyncio
from functools import cache
from math import inf
from random import Random
from statistics import fmean

import pytest

from sanderling.limit import HostView, Limiter
from sanderling.testing import LoopClock, run_virtual
from sanderling.worlds.hosts import SimulatedHost
from sanderling.worlds.showcase import CALLERS, RULES, Exhibit, exhibits, keep_asking

SECONDS = 160.0
Seen = list[tuple[float, dict[str, HostView]]]


async def ask_them_all(seed: int) -> tuple[dict[str, Exhibit], Seen]:
    clock, rng = LoopClock(), Random(seed)
    hosts, limiter = exhibits(SECONDS, rng), Limiter(RULES, clock=clock, rng=rng)
    seen: Seen = []
    async with asyncio.TaskGroup() as group:
        everyone = [host for host in hosts for _ in range(CALLERS)]
        callers = [group.create_task(keep_asking(host, limiter, clock)) for host in everyone]
        while clock.now() < SECONDS:
            await clock.sleep(1.0)
            seen.append((clock.now(), {view.host: view for view in limiter.snapshot().top}))
        for caller in callers:
            caller.cancel()
    return {host.name: host for host in hosts}, seen


@cache
def played(seed: int) -> tuple[dict[str, Exhibit], Seen]:
    return run_virtual(ask_them_all(seed))


@pytest.fixture(params=[1, 2, 3])
def play(request: pytest.FixtureRequest) -> tuple[dict[str, Exhibit], Seen]:
    return played(request.param)


def usual_rate(seen: Seen, host: str, seconds: float) -> float:
    """The mean rate of the last seconds: a single look may fall into a test above the limit, or just after one."""
    return fmean(views[host].rate for now, views in seen if now > SECONDS - seconds)


def test_the_silent_quota_is_found_with_few_refusals(play: tuple[dict[str, Exhibit], Seen]) -> None:
    hosts, seen = play
    quota = hosts["quota.example"]

    assert usual_rate(seen, "quota.example", 80) == pytest.approx(quota.rate, rel=0.1)
    assert quota.answers[200] > 0.9 * quota.possible(SECONDS)
    assert 0 < quota.answers[429] < 0.01 * quota.sent


def test_the_queueing_host_is_kept_busy_and_its_queue_short(play: tuple[dict[str, Exhibit], Seen]) -> None:
    hosts, seen = play
    queue = hosts["queue.example"]

    assert usual_rate(seen, "queue.example", 80) == pytest.approx(queue.rate, rel=0.1)
    assert queue.answers[200] > 0.85 * queue.possible(SECONDS)
    assert queue.latency is not None
    assert queue.latency < 1.3 * queue.unloaded


def test_the_failing_host_is_left_alone_while_it_is_down(play: tuple[dict[str, Exhibit], Seen]) -> None:
    hosts, _ = play
    failing = hosts["failing.example"]

    assert 0 < failing.sent_while_down < 0.03 * failing.rate * failing.down_for(SECONDS)


def test_the_breaker_opens_probes_and_closes(play: tuple[dict[str, Exhibit], Seen]) -> None:
    hosts, seen = play
    begins, ends = hosts["failing.example"].down

    states = [(now, views["failing.example"].state) for now, views in seen]

    assert {state for now, state in states if now < begins} == {"closed"}
    assert "open" in {state for now, state in states if begins <= now < ends}
    assert states[-1][1] == "closed"


def test_the_failing_host_gets_its_pace_back(play: tuple[dict[str, Exhibit], Seen]) -> None:
    hosts, seen = play
    failing = hosts["failing.example"]

    assert failing.found_well_after is not None
    assert failing.found_well_after < 60
    assert usual_rate(seen, "failing.example", 30) > 0.75 * failing.rate


def test_one_host_in_trouble_does_not_slow_the_others(play: tuple[dict[str, Exhibit], Seen]) -> None:
    hosts, seen = play
    begins, ends = hosts["failing.example"].down
    before, after = (next(views for now, views in seen if now >= end) for end in (begins, ends))

    for name in ("quota.example", "queue.example"):
        sent = after[name].requests - before[name].requests
        assert sent > 0.85 * hosts[name].rate * (ends - begins)


def exhibit(down: tuple[float, float] = (inf, inf)) -> Exhibit:
    host = SimulatedHost(Random(0), network=0.1, spread=0.0)
    return Exhibit(name="a.example", host=host, rate=10.0, saved=5.0, down=down)


@pytest.mark.parametrize(("until", "down_for", "possible"), [(20, 0, 205), (40, 10, 305), (100, 20, 805)])
def test_what_was_possible_leaves_out_the_time_it_was_down(until: float, down_for: float, possible: float) -> None:
    host = exhibit(down=(30.0, 50.0))

    assert host.down_for(until) == down_for
    assert host.possible(until) == possible


def test_it_counts_what_was_sent_while_it_was_down_and_when_it_was_next_asked() -> None:
    host = exhibit(down=(10.0, 20.0))

    for now in (9.9, 10.0, 19.9, 23.0, 25.0):
        host.ask(now)

    assert (host.sent, host.sent_while_down, host.found_well_after) == (5, 2, 3.0)
