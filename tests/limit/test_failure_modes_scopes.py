"""Failure 17 of the table in docs/limiter.md: one request that several scopes must allow."""

import asyncio
from itertools import pairwise

import msgspec
import pytest
from driven import HOST, crowd, limiter_on, views

from sanderling.limit import Feedback, Limiter, LimiterRules, PaceRules, Quota, Scope
from sanderling.testing import LoopClock, run_virtual

KEY = Scope("credential", "key 1")
EVEN = LimiterRules(pace=PaceRules(initial_rps=2, max_rps=2))


def both_scopes(name: str = "key 1", cost: float = 1.0) -> list[Scope]:
    return [Scope("credential", name, cost), Scope("domain", "example")]


def test_17_one_permit_draws_on_all_its_scopes() -> None:
    async def main() -> dict[str, tuple[int, float]]:
        limiter = limiter_on(LoopClock())
        await limiter.acquire(HOST, both_scopes(cost=3))
        return {view.host: (view.inflight, view.tokens) for view in views(limiter)}

    found = run_virtual(main())

    assert found == {HOST: (1, 0.0), "domain/example": (1, 0.0), "credential/key 1": (1, -2.0)}


def test_17_a_permit_over_several_scopes_is_one_request() -> None:
    async def main() -> int:
        limiter = limiter_on(LoopClock())
        await limiter.acquire(HOST, both_scopes())
        return limiter.snapshot().requests

    assert run_virtual(main()) == 1


def test_17_scopes_are_passed_in_one_order_whichever_way_they_are_named() -> None:
    """Two callers that name them in opposite order would otherwise wait for each other for ever."""

    async def main() -> float:
        clock = LoopClock()
        limiter = limiter_on(clock)
        scopes = [Scope("ip", "10.0.0.1"), Scope("domain", "example"), KEY, Scope("credential", "key 2")]
        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(limiter.acquire(f"h{number % 3}.example", scopes[:: 1 if number % 2 else -1]))
        return clock.now()

    assert run_virtual(main()) == pytest.approx(19 / 2)


def test_17_what_is_given_back_goes_back_to_every_scope() -> None:
    async def main() -> tuple[bool, set[int], set[float]]:
        limiter = limiter_on(LoopClock())
        (await limiter.acquire(HOST, both_scopes(cost=3))).release()
        seen = views(limiter)
        inflight, tokens = {view.inflight for view in seen}, {view.tokens for view in seen}
        async with asyncio.timeout(0.001):
            await limiter.acquire(HOST, both_scopes())
        return True, inflight, tokens

    assert run_virtual(main()) == (True, {0}, {1.0})


def test_17_who_waits_for_one_scope_holds_no_token_of_another() -> None:
    async def main() -> tuple[float, float, int]:
        clock = LoopClock()
        limiter = limiter_on(clock)
        limiter.feedback(await limiter.acquire(HOST, [KEY]), Feedback(429, 0.1, retry_after=60, scope="credential"))
        waiter = asyncio.create_task(limiter.acquire(HOST, [Scope("domain", "example"), KEY]))
        await clock.sleep(30)
        seen = {view.host: view for view in views(limiter)}
        waiter.cancel()
        return seen[HOST].tokens, seen["domain/example"].tokens, seen["credential/key 1"].waiting

    assert run_virtual(main()) == (1.0, 1.0, 1)


async def ask_well(limiter: Limiter, clock: LoopClock, requests: int) -> float:
    """Ask as many hosts with one key, one after the other; how long that takes."""
    began = clock.now()
    for number in range(requests):
        permit = await limiter.acquire(f"h{number}.example", [KEY])
        await clock.sleep(0.1)
        limiter.feedback(permit, Feedback(200, 0.1))
    return clock.now() - began


def test_17_a_host_that_hangs_does_not_hold_up_a_shared_scope() -> None:
    """What is in flight under a key is in flight at many hosts: none of them queues for another's sake."""

    async def main() -> float:
        clock = LoopClock()
        limiter = limiter_on(clock, EVEN)
        await ask_well(limiter, clock, 20)
        silent = [await limiter.acquire(f"silent{number}.example", [KEY]) for number in range(8)]
        took = await ask_well(limiter, clock, 20)
        for permit in silent:
            permit.release(sent=True)
        return took

    assert run_virtual(main()) == pytest.approx(20 / 2, abs=1)


def test_17_a_closed_host_does_not_hold_up_a_shared_scope() -> None:
    async def main() -> float:
        clock = LoopClock()
        limiter = limiter_on(clock, EVEN)
        limiter.feedback(await limiter.acquire("closed.example", [KEY]), Feedback(429, 0.1, retry_after=600))
        waiter = asyncio.create_task(limiter.acquire("closed.example", [KEY]))
        took = await ask_well(limiter, clock, 20)
        waiter.cancel()
        return took

    assert run_virtual(main()) == pytest.approx(20 / 2, abs=0.2), "at the full pace of the scope"


def test_17_no_burst_when_the_last_scope_opens() -> None:
    async def main() -> list[float]:
        clock = LoopClock()
        limiter = limiter_on(clock)
        limiter.feedback(await limiter.acquire(HOST, [KEY]), Feedback(429, 0.1, retry_after=60, scope="credential"))
        left: list[float] = []

        async def call(host: str) -> None:
            permit = await limiter.acquire(host, [KEY])
            left.append(clock.now())
            limiter.feedback(permit, Feedback(200, 0.1))

        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(call(f"h{number % 4}.example"))
        return left

    left = run_virtual(main())

    assert left[0] >= 60
    assert min(after - before for before, after in pairwise(left)) >= 0.1


def test_17_a_refusal_is_heeded_by_the_scope_it_speaks_of() -> None:
    async def main() -> dict[str, float]:
        limiter = limiter_on(LoopClock())
        permit = await limiter.acquire(HOST, both_scopes())
        limiter.feedback(permit, Feedback(429, 0.1, retry_after=60, scope="credential"))
        return {view.host: view.not_before for view in views(limiter)}

    assert run_virtual(main()) == {HOST: 0, "domain/example": 0, "credential/key 1": 60}


@pytest.mark.parametrize("scope", [None, "ip"])
def test_17_a_refusal_that_speaks_of_no_scope_of_the_permit_is_heeded_by_the_host(scope: str | None) -> None:
    async def main() -> dict[str, float]:
        limiter = limiter_on(LoopClock())
        permit = await limiter.acquire(HOST, [KEY])
        limiter.feedback(permit, Feedback(429, 0.1, retry_after=60, scope=scope))
        return {view.host: view.not_before for view in views(limiter)}

    assert run_virtual(main()) == {HOST: 60, "credential/key 1": 0}


@pytest.mark.parametrize(("scope", "told"), [(None, HOST), ("credential", "credential/key 1")])
@pytest.mark.parametrize(
    "feedback",
    [Feedback(200, 0.1, retry_after=60), Feedback(301, 0.1, retry_after=60), Feedback(200, quota=Quota(0, 60))],
)
def test_17_what_a_good_answer_asks_for_it_asks_of_whom_it_speaks(
    feedback: Feedback, scope: str | None, told: str
) -> None:
    async def main() -> dict[str, float]:
        limiter = limiter_on(LoopClock())
        permit = await limiter.acquire(HOST, [KEY])
        limiter.feedback(permit, msgspec.structs.replace(feedback, scope=scope))
        return {view.host: view.not_before for view in views(limiter)}

    waits = run_virtual(main())

    assert waits == {HOST: 0, "credential/key 1": 0, told: 60}


def test_17_every_scope_learns_from_a_good_answer() -> None:
    async def main() -> list[float | None]:
        limiter = limiter_on(LoopClock())
        limiter.feedback(await limiter.acquire(HOST, both_scopes()), Feedback(200, 0.25, scope="credential"))
        return [view.latency for view in views(limiter)]

    assert run_virtual(main()) == [0.25] * 3


@pytest.mark.parametrize("feedback", [Feedback(error="timed out"), Feedback()])
def test_17_no_answer_proves_nothing_about_a_scope(feedback: Feedback) -> None:
    async def main() -> str:
        clock = LoopClock()
        limiter = limiter_on(clock)
        for number in range(5):
            permit = await limiter.acquire(f"h{number}.example", [KEY])
            limiter.feedback(permit, Feedback(500, 0.1, scope="credential"))
        for number in range(3):
            await clock.sleep(40)
            limiter.feedback(await limiter.acquire(f"g{number}.example", [KEY]), feedback)
        return next(view.state for view in views(limiter) if "/" in view.host)

    assert run_virtual(main()) == "half-open"


def test_17_a_thousand_waiters_are_turned_away_together_when_a_scope_closes() -> None:
    """Not each inside the call that turned away the one before, a thousand deep."""

    async def main() -> tuple[int, int]:
        clock = LoopClock()
        limiter = limiter_on(clock)
        permits = [await limiter.acquire(f"h{number}.example", [KEY]) for number in range(5)]
        waiting = asyncio.create_task(crowd(limiter, 1000, [KEY]))
        await clock.sleep(0.1)
        for permit in permits:
            limiter.feedback(permit, Feedback(500, 0.1, scope="credential"))
        passed, refused = await waiting
        return len(passed), len(refused)

    assert run_virtual(main()) == (0, 1000)


def test_17_a_host_is_not_let_go_while_its_scope_is_met_for_the_first_time() -> None:
    """The permit would be for a host that nobody knows, and the next caller would meet a second one."""

    async def main() -> bool:
        clock = LoopClock()
        limiter = limiter_on(clock)
        (await limiter.acquire(HOST)).release(sent=True)
        await clock.sleep(1000)
        await limiter.acquire(HOST, [KEY])
        return limiter.try_acquire(HOST) is None

    assert run_virtual(main())


def test_17_a_scope_that_someone_is_on_the_way_to_is_not_let_go() -> None:
    """They wait at the host first; the scope has no line yet and must not get a second self meanwhile."""

    async def main() -> list[float]:
        clock, left = LoopClock(), list[float]()
        limiter = limiter_on(clock, LimiterRules(hosts=1))

        async def call(host: str) -> None:
            await limiter.acquire(host, [KEY])
            left.append(clock.now())

        for host in ("a.example", "b.example"):
            await limiter.acquire(host)
        async with asyncio.TaskGroup() as group:
            for host in ("a.example", "b.example"):
                group.create_task(call(host))
                await asyncio.sleep(0.01)
                (await limiter.acquire(f"new.{host}")).release(sent=True)
        return left

    first, second = run_virtual(main())

    assert second - first >= 0.5


def test_17_a_waiter_that_gives_up_leaves_every_line() -> None:
    async def main() -> int:
        clock = LoopClock()
        limiter = limiter_on(clock)
        limiter.feedback(await limiter.acquire(HOST, [KEY]), Feedback(429, 0.1, retry_after=9, scope="credential"))
        waiters = [asyncio.create_task(limiter.acquire(HOST, [KEY])) for _ in range(100)]
        await clock.sleep(5)
        for waiter in waiters:
            waiter.cancel()
        await clock.sleep(0)
        waiting = sum(view.waiting for view in views(limiter))
        await clock.sleep(10)
        async with asyncio.timeout(0.001):
            await limiter.acquire(HOST, [KEY])
        return waiting

    assert run_virtual(main()) == 0
