"""What must hold whatever happens: random callers, random answers, cancellations at any point, clocks that jump."""

import asyncio
from collections.abc import Callable
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
    Ask,
    Cancel,
    Forget,
    Jump,
    Pass,
    Play,
    Release,
    Report,
    Try,
    check_recovers,
    play,
    rules_for,
)

from sanderling.limit import CircuitOpen, Feedback, Limiter, PaceRules
from sanderling.testing import run_virtual


@settings(max_examples=1000)
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


def long_play(seed: int) -> list[Action]:
    """Half a thousand actions of busy callers; an example of Hypothesis seldom has more than a dozen."""
    rng = Random(seed)
    makers: list[tuple[int, Callable[[], Action]]] = [
        (25, lambda: Ask(rng.choice(HOSTS), rng.choice("xy"), rng.choice(((), (KEY,))))),
        (15, lambda: Try(rng.choice(HOSTS))),
        (32, lambda: Report(rng.randrange(9), random_feedback(rng))),
        (6, lambda: Release(rng.randrange(9), rng.random() < 0.5)),
        (6, lambda: Cancel(rng.randrange(9), rng.random() < 0.5)),
        (13, lambda: Pass(rng.choice((0.01, 0.1, 0.5, 0.5, 2.0, 20.0, 400.0)))),
        (2, lambda: Jump(rng.choice((-1000.0, -0.2, 0.2, 1000.0)))),
        (1, Forget),
    ]
    weights = [weight for weight, _ in makers]
    return [make() for _, make in rng.choices(makers, weights, k=500)]


def random_feedback(rng: Random) -> Feedback:
    status = rng.choice((200, 200, 200, 200, 200, 200, 404, 429, 500))
    retry_after = rng.choice((None, None, 0.3, 5.0)) if status == 429 else None
    return Feedback(
        status, rng.choice((0.05, 0.1, 0.1, 0.2, 2.0)), None, retry_after, None, rng.choice((None, "credential"))
    )


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
def test_ten_thousand_random_cancellations_leak_no_probe_and_no_token(strategy: Strategy) -> None:
    async def main() -> None:
        scene, rng = Play(rules_for(strategy, SLOW)), Random(1)
        for _ in range(100):
            async with asyncio.TaskGroup() as group:
                for _ in range(100):
                    group.create_task(be_cancelled(scene.limiter, rng))
        scene.check_nothing_leaked()
        await check_recovers(scene)

    run_virtual(main())
