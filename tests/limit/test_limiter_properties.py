"""What must hold whatever happens: random callers, random answers, cancellations at any point, clocks that jump."""

import asyncio
from random import Random

import pytest
from driven import Strategy
from hypothesis import given, settings
from hypothesis import strategies as st
from random_plays import (
    ACTIONS,
    HOSTS,
    KEY,
    QUICK,
    SLOW,
    Action,
    Play,
    check_recovers,
    long_play,
    play,
    rules_for,
)

from sanderling.limit import CircuitOpen, Limiter, PaceRules
from sanderling.testing import run_virtual


@settings(max_examples=3 * settings().max_examples)
@given(
    st.sampled_from(["governor", "aimd"]),
    st.sampled_from([SLOW, QUICK]),
    st.sampled_from([2, 100]),
    st.lists(ACTIONS, max_size=60),
)
def test_whatever_happens_the_limiter_keeps_its_word(
    strategy: Strategy, pace: PaceRules, hosts: int, actions: list[Action]
) -> None:
    """The rate stays in bounds, no window holds too much, no Retry-After is broken, nobody overtaken, nothing leaks."""
    run_virtual(play(rules_for(strategy, pace, hosts), actions))


@pytest.mark.parametrize("strategy", ["governor", "aimd"])
@pytest.mark.parametrize("pace", [SLOW, QUICK])
@pytest.mark.parametrize("seed", range(5))
def test_the_same_holds_in_a_long_play(strategy: Strategy, pace: PaceRules, seed: int) -> None:
    run_virtual(play(rules_for(strategy, pace, hosts=2 + 98 * (seed % 2)), long_play(seed)))


# Cancellations at every point of a request's road.


async def be_cancelled(limiter: Limiter, rng: Random) -> None:
    """Ask, report something, and be cancelled at some point: before it begins, in line, with the permit, after."""

    async def call() -> None:
        scopes = (KEY,) if rng.random() < 0.3 else ()
        async with limiter.attempt(rng.choice(HOSTS), scopes, job=rng.choice("xy")) as attempt:
            await asyncio.sleep(rng.choice((0, 0.1, 40)))
            attempt.report(rng.choice((200, 200, 200, 429, 500, 404)))

    task = asyncio.create_task(call())
    for _ in range(rng.randrange(4)):
        await asyncio.sleep(rng.choice((0, 0, 0.1, 5)))
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled() or task.exception() is None or isinstance(task.exception(), CircuitOpen)


@pytest.mark.parametrize("strategy", ["governor", "aimd"])
def test_thousands_of_random_cancellations_leak_no_probe_and_no_token(strategy: Strategy) -> None:
    async def main() -> None:
        scene, rng = Play(rules_for(strategy, SLOW)), Random(1)
        for _ in range(30):
            async with asyncio.TaskGroup() as group:
                for _ in range(100):
                    group.create_task(be_cancelled(scene.limiter, rng))
        scene.check_nothing_leaked()
        await check_recovers(scene)

    run_virtual(main())
