"""What must hold over any restart: no quiet time is broken, and what was saved comes back."""

from math import inf
from random import Random

import pytest
from driven import Strategy
from hypothesis import given
from hypothesis import strategies as st
from random_plays import HOSTS, SLOW, Pass, Play, Report, Try, rules_for

from sanderling.limit import Feedback, Limiter
from sanderling.limit.tombstones import Tombstone, decode, encode
from sanderling.testing import run_virtual

RESTARTS = st.lists(
    st.tuples(
        st.sampled_from(HOSTS),
        st.sampled_from([0.1, 1.0, 50.0]),
        st.sampled_from([Feedback(200, 0.1), Feedback(429, 0.1, retry_after=30.0), Feedback(500, 0.1)]),
        st.booleans(),
    ),
    max_size=40,
)


@given(st.sampled_from(["governor", "aimd"]), RESTARTS)
def test_no_restart_breaks_a_retry_after_or_the_pace(
    strategy: Strategy, steps: list[tuple[str, float, Feedback, bool]]
) -> None:
    async def main() -> None:
        scene = Play(rules_for(strategy, SLOW))
        for host, wait, feedback, restart in steps:
            await scene.act(Pass(wait))
            await scene.act(Try(host))
            await scene.act(Report(0, feedback))
            if restart:
                saved = scene.limiter.save()
                scene.limiter = Limiter(scene.rules, clock=scene.clock, rng=Random(1))
                scene.limiter.restore(saved)
        scene.check_windows()

    run_virtual(main())


SECONDS = st.floats(0, 1e6)
STONES = st.builds(Tombstone, SECONDS, SECONDS, SECONDS | st.just(-inf), st.integers(0, 255))


@given(st.dictionaries(st.text(), STONES), SECONDS, SECONDS, st.floats(-1e3, 1e3))
def test_what_is_saved_is_restored_less_the_time_that_passed(
    stones: dict[str, Tombstone], before: float, after: float, passed: float
) -> None:
    saved = b"".join(encode(iter(stones.items()), before, wall=1e9))

    restored = dict(decode(saved, after, wall=1e9 + passed))

    assert restored.keys() == stones.keys()
    for host, stone in stones.items():
        served = max(0.0, passed)
        assert restored[host].ceiling == stone.ceiling
        assert restored[host].openings == stone.openings
        for told, left in (
            (stone.not_before, restored[host].not_before),
            (stone.open_until, restored[host].open_until),
        ):
            if told == -inf:
                assert left == -inf, "closed it was, closed it is"
            else:
                assert left - after == pytest.approx(max(0.0, max(0.0, told - before) - served), abs=2e-3)
