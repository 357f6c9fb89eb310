"""The C fast path and its Python twin must not be told apart."""

import asyncio
import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.limit import Feedback, Limiter, LimiterRules, PaceRules, lane
from sanderling.limit.fast import NATIVE
from sanderling.testing import FakeClock

native = pytest.importorskip(
    "sanderling.limit._lane", reason="the C part was not built: no compiler when the package was installed"
)
TIMES = st.floats(0, 1e6)
FIELDS = [
    *("ready", "interval", "slack", "opened", "closes", "mean", "serial", "ended", "delivered"),
    *("epoch", "generation", "sent_before", "delivered_before", "failed", "fresh", "plain", "calm"),
]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), TIMES, st.floats(0.1, 10)),
        st.tuples(st.just("sample"), st.floats(1e-6, 100)),
        st.tuples(st.just("open_window"), TIMES, st.floats(0, 10)),
    ),
    max_size=200,
)


@given(TIMES, st.floats(1e-6, 10), st.floats(0, 1), STEPS)
def test_both_lanes_count_and_pace_alike(ready: float, interval: float, slack: float, steps: list[Any]) -> None:
    fast, slow = native.Lane(ready, interval, slack), lane.Lane(ready, interval, slack)

    for name, *arguments in steps:
        assert getattr(fast, name)(*arguments) == getattr(slow, name)(*arguments)

    assert [getattr(fast, field) for field in FIELDS] == [getattr(slow, field) for field in FIELDS]
    assert fast.window() == slow.window()
    assert fast.kept() == slow.kept()


@pytest.mark.skipif(not NATIVE, reason="this run uses the Python twin")
def test_what_acquire_returns_is_as_good_as_a_coroutine() -> None:
    async def main() -> None:
        limiter = Limiter(LimiterRules(pace=PaceRules(initial_rps=1000, max_rps=1000)))
        first = await limiter.acquire("a.example")
        tasks = [asyncio.create_task(limiter.acquire("b.example")) for _ in range(3)]
        async with asyncio.timeout(5):
            for task in tasks:
                assert (await task).host == "b.example"

        unused = limiter.acquire("a.example")
        assert asyncio.iscoroutine(unused)
        assert inspect.isawaitable(unused)
        unused.close()
        assert first.host == "a.example"

    asyncio.run(main())


@pytest.mark.skipif(not NATIVE, reason="this run uses the Python twin")
def test_an_acquire_that_is_never_awaited_takes_nothing() -> None:
    limiter = Limiter(clock=FakeClock())
    permit = limiter.try_acquire("a.example")
    assert permit is not None

    unused = limiter.acquire("a.example")
    del unused

    assert limiter.snapshot().requests == 1


@pytest.mark.skipif(not NATIVE, reason="this run uses the Python twin")
def test_an_acquire_is_awaited_once() -> None:
    async def main() -> None:
        limiter = Limiter(LimiterRules(pace=PaceRules(initial_rps=1000, max_rps=1000)))
        await limiter.acquire("a.example")
        again = limiter.acquire("a.example")
        await again

        with pytest.raises(RuntimeError, match="already awaited"):
            await again

    asyncio.run(main())


@pytest.mark.skipif(not NATIVE, reason="this run uses the Python twin")
@pytest.mark.parametrize("feedback", [None, 3, "ok"])
def test_feedback_of_the_wrong_kind_is_an_error_and_not_a_crash(feedback: object) -> None:
    limiter: Any = Limiter(clock=FakeClock())
    for _ in range(2):
        permit = limiter.try_acquire("a.example")
        if permit is not None:
            limiter.feedback(permit, Feedback(200, 0.1))
            limiter._clock.advance(10)
    permit = limiter.try_acquire("a.example")

    with pytest.raises(AttributeError):
        limiter.feedback(permit, feedback)
    with pytest.raises(TypeError):
        limiter.feedback(feedback, Feedback(200))
    with pytest.raises(TypeError):
        limiter.try_acquire([])


def test_names_may_be_given_to_all_arguments() -> None:
    async def main() -> None:
        limiter = Limiter(clock=FakeClock())
        for permit in (await limiter.acquire(host="a.example"), limiter.try_acquire(host="b.example")):
            assert permit is not None
            limiter.feedback(permit=permit, feedback=Feedback(200, 0.1))
            limiter.feedback(permit=permit, feedback=Feedback(500, 0.1))

        assert [view.inflight for view in limiter.snapshot().top] == [0, 0]
        assert [view.failures for view in limiter.snapshot().top] == [0, 0]

    asyncio.run(main())


@pytest.mark.parametrize("latency", [0.0, -1.0, inf, nan])
def test_a_latency_that_is_none_is_counted_but_not_measured(latency: float) -> None:
    clock = FakeClock()
    limiter = Limiter(clock=clock)
    for value in (0.1, latency):
        clock.advance(1)
        permit = limiter.try_acquire("a.example")
        assert permit is not None
        limiter.feedback(permit, Feedback(200, value))

    (view,) = limiter.snapshot().top
    assert view.latency == 0.1
    assert view.inflight == 0


def test_a_permit_says_what_it_is() -> None:
    limiter = Limiter(clock=FakeClock())
    permit = limiter.try_acquire("a.example")
    assert permit is not None

    assert repr(permit) == "<Permit 1 for a.example, live>"
    permit.release()
    assert repr(permit) == "<Permit 1 for a.example, spent>"


@pytest.mark.skipif(not NATIVE, reason="this is the run with the Python twin")
def test_what_a_limiter_promises_holds_with_the_python_twin_too() -> None:
    """All tests of this folder that make a limiter; the others never come near the twin."""
    here = Path(__file__).parent
    concerned = [str(path) for path in sorted(here.glob("test_*.py")) if "Limiter" in path.read_text()]
    # Without the plugin that no test of this folder needs, and that takes long to load.
    flags = ["-q", "-p", "no:cacheprovider", "-p", "no:schemathesis", "--hypothesis-profile=brief"]
    done = subprocess.run(  # noqa: S603 - pytest itself
        [sys.executable, "-m", "pytest", *flags, *concerned],
        env=os.environ | {"SANDERLING_PURE": "1"},
        cwd=here.parents[1],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-3000:]


def alive() -> int:
    """How many objects the collector knows of."""
    import gc  # noqa: PLC0415 - only here

    gc.collect()
    return len(gc.get_objects())


@pytest.mark.parametrize("use", ["await", "cancel", "drop", "feedback", "release"])
def test_nothing_is_left_behind(use: str) -> None:
    """Reference counts in C are kept by hand: ten thousand uses must not leave ten thousand objects."""

    async def main(count: int) -> None:
        clock = FakeClock()
        limiter = Limiter(LimiterRules(pace=PaceRules(initial_rps=1e6, max_rps=1e6, burst=1e6)), clock=clock)
        for _ in range(count):
            await one(limiter, use)
            clock.advance(1)

    asyncio.run(main(10))
    before = alive()
    asyncio.run(main(10_000))

    assert alive() - before < 500


async def one(limiter: Limiter, use: str) -> None:
    uses: dict[str, Callable[[], object]] = {
        "drop": lambda: limiter.acquire("a.example").close(),
        "feedback": lambda: limiter.feedback(take(limiter), Feedback(200, 0.1)),
        "release": lambda: take(limiter).release(),
    }
    if use in uses:
        uses[use]()
    elif use == "await":
        await limiter.acquire("a.example")
    else:
        task = asyncio.create_task(limiter.acquire("a.example"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def take(limiter: Limiter) -> Any:  # noqa: ANN401 - a permit of either make
    permit = limiter.try_acquire("a.example")
    assert permit is not None
    return permit
