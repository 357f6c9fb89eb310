"""What a snapshot shows of the hosts, the circuits and those who wait."""

import asyncio
from math import inf, isinf

import pytest
from driven import HOST, Driven, prepared

from sanderling.limit import CircuitOpen, Limiter, LimiterRules, PaceRules, Snapshot
from sanderling.testing import LoopClock, run_virtual


def test_a_new_limiter_has_nothing_to_show() -> None:
    snapshot = Driven().limiter.snapshot()

    assert snapshot.top == ()
    assert (snapshot.requests, snapshot.hosts, snapshot.open, snapshot.half_open) == (0, 0, 0, 0)
    assert isinf(snapshot.waits[-1][0])


def test_a_host_is_shown_as_it_stands() -> None:
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=2)))
    driven.ask(200, latency=0.25)
    driven.ask(200, latency=0.25)
    driven.ask(500)
    driven.next()

    seen = driven.view()

    assert seen.host == HOST
    assert (seen.requests, seen.rejected, seen.inflight, seen.waiting) == (4, 0, 1, 0)
    assert (seen.state, seen.failures, seen.not_before) == ("closed", 1, 0)
    assert (seen.rate, seen.tokens) == (2, 0)
    assert (seen.latency, seen.p95, seen.ceiling) == (0.25, 0.25, None)
    assert seen.error_rate == pytest.approx(1 / 3)
    assert seen.why == "growing until the host objects"


def test_the_hosts_asked_most_come_first() -> None:
    driven = Driven()
    for number, requests in enumerate((2, 5, 1, 4)):
        for _ in range(requests):
            driven.ask(host=f"h{number}.example")

    snapshot = driven.limiter.snapshot(top=3)

    assert [(view.host, view.requests) for view in snapshot.top] == [
        ("h1.example", 5),
        ("h3.example", 4),
        ("h0.example", 2),
    ]
    assert snapshot.hosts == 4
    assert snapshot.requests == 12


def test_circuits_are_counted_by_state() -> None:
    driven = Driven()
    driven.trip("half.example")
    driven.clock.advance(400)
    driven.take("half.example")
    driven.trip("open.example")
    driven.take("closed.example")

    snapshot = driven.limiter.snapshot()

    assert (snapshot.open, snapshot.half_open) == (1, 1)


def test_refusals_are_counted_even_after_their_host_is_gone() -> None:
    driven = Driven(LimiterRules(hosts=1))
    driven.ask(429, host="a.example")
    driven.ask(503, host="b.example")
    driven.ask(500, host="c.example")

    assert driven.limiter.snapshot().rejected == 2
    assert driven.limiter.snapshot().requests == 3


async def waits(limiter: Limiter, callers: int) -> Snapshot:
    async with asyncio.TaskGroup() as group:
        for _ in range(callers):
            group.create_task(limiter.acquire(HOST))
    return limiter.snapshot()


def test_waits_add_up_to_the_requests() -> None:
    async def main() -> Snapshot:
        limiter = Limiter(clock=LoopClock())
        limiter.try_acquire("other.example")
        return await waits(limiter, 12)

    snapshot = run_virtual(main())

    assert snapshot.requests == sum(count for _, count in snapshot.waits) == 13
    assert dict(snapshot.waits) == {0.01: 2, 0.05: 0, 0.1: 0, 0.5: 1, 1.0: 1, 5.0: 8, 10.0: 1, 60.0: 0, inf: 0}
    assert snapshot.throttled == 11
    assert snapshot.waited == pytest.approx(sum(range(12)) / 2)


def test_a_waiter_is_shown_while_it_waits() -> None:
    async def main() -> tuple[int, str]:
        clock = LoopClock()
        limiter = Limiter(clock=clock)
        async with asyncio.TaskGroup() as group:
            for _ in range(5):
                group.create_task(limiter.acquire(HOST))
            await clock.sleep(0.6)
            return limiter.snapshot().top[0].waiting, repr(limiter)

    assert run_virtual(main()) == (3, "<Limiter governor, 1 hosts, 3 waiting>")


def test_who_was_turned_away_is_counted_as_denied() -> None:
    async def main(driven: Driven) -> None:
        for _ in range(3):
            with pytest.raises(CircuitOpen):
                await driven.limiter.acquire(HOST)

    driven = Driven()
    driven.trip()
    run_virtual(main(driven))

    assert driven.limiter.snapshot().denied == 3


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ("idle", "not asked yet"),
        ("penalised", "told to wait another 77.0 s"),
        ("open", "circuit open for another"),
        ("probed", "circuit half open: one probe at a time"),
        ("drained", "refused; one probe at a time until it opens"),
    ],
)
def test_a_snapshot_says_why_in_words(state: str, why: str) -> None:
    driven = Driven()
    driven.limiter.ready_at(HOST)

    prepared(driven, state)

    assert driven.view().why.startswith(why)


def test_a_live_permit_says_so() -> None:
    assert repr(Driven().take()) == "<Permit 1 for host.example, live>"
