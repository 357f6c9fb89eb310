"""Input that is refused, rules that contradict themselves, and the choice of a strategy."""

from math import inf, nan
from random import Random
from typing import Any, Literal

import pytest
from driven import FAST, HOST, Driven

from sanderling.limit import BackoffRules, BreakerRules, BudgetRules, Limiter, LimiterRules, PaceRules, Scope
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


@pytest.mark.parametrize("value", [0.0, -1.0, nan, inf])
@pytest.mark.parametrize(
    "name", ["initial_rps", "min_rps", "max_rps", "burst", "increase", "latency_target", "degrade_factor", "decrease"]
)
def test_every_number_of_a_pace_is_positive_and_finite(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        PaceRules(**{name: value})


@pytest.mark.parametrize(
    ("kind", "rules", "problem"),
    [
        (PaceRules, {"min_rps": 3.0}, "min_rps 3.0, initial_rps 2.0"),
        (PaceRules, {"initial_rps": 9.0}, "initial_rps 9.0, max_rps 8.0"),
        (PaceRules, {"burst": 0.5}, "burst is 0.5"),
        (PaceRules, {"degrade_factor": 1.0}, "degrade_factor is 1.0"),
        (PaceRules, {"decrease": 1.0}, "decrease is 1.0"),
        (BreakerRules, {"consecutive": 0}, "consecutive is 0"),
        (BreakerRules, {"unreached": 0}, "unreached 0"),
        (BreakerRules, {"open_for": 0}, "open_for is 0"),
        (BreakerRules, {"open_for": 301}, "open_for is 301, longest 300"),
        (BreakerRules, {"open_for": nan}, "open_for is nan"),
        (BreakerRules, {"longest": inf}, "longest inf"),
        (BreakerRules, {"jitter": -0.1}, "jitter is -0.1"),
        (BreakerRules, {"jitter": nan}, "jitter is nan"),
        *((BackoffRules, {"base": base, "longest": inf}, "base is") for base in (0.0, -1.0, nan, inf)),
        *((BackoffRules, {"base": 0.2, "longest": longest}, "longest is") for longest in (0.1, -1.0, nan, inf)),
        *((BackoffRules, {"attempts": attempts}, "attempts is") for attempts in (0, -1, nan, inf)),
        *((BudgetRules, {"share": share}, "share is") for share in (-0.1, 1.1, nan, inf)),
        *((BudgetRules, {"reserve": 0, "most": most}, "most is") for most in (0.5, -1, nan, inf)),
        *((BudgetRules, {"reserve": reserve, "most": 100}, "reserve is") for reserve in (-1, 101, nan, inf)),
        (LimiterRules, {"strategy": "guess"}, "strategy is 'guess'; there are aimd, contract, governor"),
        (LimiterRules, {"idle": 0}, "idle is 0"),
        (LimiterRules, {"idle": inf}, "idle is inf"),
        (LimiterRules, {"lease": nan}, "lease is nan"),
        (LimiterRules, {"hosts": 0}, "hosts is 0"),
        (LimiterRules, {"scopes": {"planet": PaceRules()}}, r"scopes \['planet'\]; there are domain, ip, credential"),
    ],
)
def test_rules_that_contradict_themselves_are_refused(kind: type, rules: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        kind(**rules)


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
