"""Input that is refused, rules that contradict themselves, and the choice of a strategy."""

from math import inf, nan
from random import Random
from typing import Any, Literal

import pytest
from driven import FAST, HOST, Driven

from sanderling.limit import BreakerRules, Limiter, LimiterRules, PaceRules, Scope
from sanderling.testing import FakeClock, LoopClock, run_virtual


@pytest.mark.parametrize("cost", [0.0, -1.0, nan, inf])
def test_a_cost_is_a_positive_number(cost: float) -> None:
    async def of_the_host() -> None:
        await Limiter(clock=LoopClock()).acquire(HOST, cost=cost)

    async def of_a_scope() -> None:
        await Limiter(clock=LoopClock()).acquire(HOST, [Scope("ip", "10.0.0.1", cost)])

    for main in (of_the_host, of_a_scope):
        with pytest.raises(ValueError, match="a cost of"):
            run_virtual(main())


@pytest.mark.parametrize(
    ("scopes", "problem"),
    [
        ([Scope("planet", "earth")], "scope 'planet'; there are domain, ip, credential"),
        ([Scope("ip", "1"), Scope("domain", "x"), Scope("ip", "1", cost=2)], "named twice: domain/x, ip/1, ip/1"),
    ],
)
def test_scopes_must_be_of_a_known_kind_and_different(scopes: list[Scope], problem: str) -> None:
    async def main() -> None:
        await Limiter(clock=LoopClock()).acquire(HOST, scopes)

    with pytest.raises(ValueError, match=problem):
        run_virtual(main())


# Rules that contradict themselves.


@pytest.mark.parametrize("value", [0.0, -1.0, nan, inf])
@pytest.mark.parametrize(
    "name", ["initial_rps", "min_rps", "max_rps", "burst", "increase", "latency_target", "degrade_factor", "decrease"]
)
def test_every_number_of_a_pace_is_positive_and_finite(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        PaceRules(**{name: value})


@pytest.mark.parametrize(
    ("rules", "field"),
    [
        ({"min_rps": 3.0}, "min_rps 3.0, initial_rps 2.0"),
        ({"initial_rps": 9.0}, "initial_rps 9.0, max_rps 8.0"),
        ({"burst": 0.5}, "burst is 0.5"),
        ({"degrade_factor": 1.0}, "degrade_factor is 1.0"),
        ({"decrease": 1.0}, "decrease is 1.0"),
    ],
)
def test_a_pace_that_contradicts_itself_is_refused(rules: dict[str, float], field: str) -> None:
    with pytest.raises(ValueError, match=field):
        PaceRules(**rules)


@pytest.mark.parametrize(
    ("rules", "field"),
    [
        ({"consecutive": 0}, "consecutive is 0"),
        ({"unreached": 0}, "unreached 0"),
        ({"open_for": 0}, "open_for is 0"),
        ({"open_for": 301}, "open_for is 301, longest 300"),
        ({"open_for": nan}, "open_for is nan"),
        ({"longest": inf}, "longest inf"),
        ({"jitter": -0.1}, "jitter is -0.1"),
        ({"jitter": nan}, "jitter is nan"),
    ],
)
def test_a_breaker_that_contradicts_itself_is_refused(rules: dict[str, int], field: str) -> None:
    with pytest.raises(ValueError, match=field):
        BreakerRules(**rules)


@pytest.mark.parametrize(
    ("rules", "field"),
    [
        ({"strategy": "guess"}, "strategy is 'guess'; there are aimd, contract, governor"),
        ({"idle": 0}, "idle is 0"),
        ({"idle": inf}, "idle is inf"),
        ({"lease": nan}, "lease is nan"),
        ({"hosts": 0}, "hosts is 0"),
        ({"scopes": {"planet": PaceRules()}}, r"scopes \['planet'\]; there are domain, ip, credential"),
    ],
)
def test_a_limiter_that_contradicts_itself_is_refused(rules: dict[str, Any], field: str) -> None:
    with pytest.raises(ValueError, match=field):
        LimiterRules(**rules)


@pytest.mark.parametrize(("strategy", "rate"), [("aimd", 2.5), ("governor", 5.0)])
def test_the_strategy_can_be_chosen(strategy: Literal["aimd", "governor"], rate: float) -> None:
    """After a refusal one goes on at half the rate, the other stops and probes."""
    driven = Driven(LimiterRules(strategy=strategy, pace=FAST))

    driven.ask(429, retry_after=0.0)

    assert driven.view().rate == pytest.approx(rate)


def test_what_was_not_saved_by_a_limiter_is_refused() -> None:
    limiter = Limiter(clock=FakeClock(), rng=Random(1))

    with pytest.raises(ValueError, match="not a saved limiter"):
        limiter.restore(b"{")
