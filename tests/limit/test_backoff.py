import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.limit.backoff import BackoffRules, delay

RULES = BackoffRules(base=0.2, longest=5.0, attempts=3)


class Highest(random.Random):
    """Chance that always draws the top of its range."""

    def random(self) -> float:
        return 1.0


def test_the_ceiling_doubles_from_base_and_stops_at_longest() -> None:
    ceilings = [delay(RULES, attempt, Highest()) for attempt in range(1, 8)]

    assert ceilings == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0])


def test_a_million_attempts_do_not_overflow() -> None:
    assert delay(RULES, 10**6, Highest()) == 5.0
    assert delay(BackoffRules(base=1e308, longest=1.5e308), 10**6, Highest()) == 1.5e308


def test_jitter_is_full() -> None:
    rng = random.Random(1)

    delays = sorted(delay(RULES, 3, rng) for _ in range(10_000))

    for tenth in range(1, 10):
        assert delays[tenth * 1000] == pytest.approx(0.8 * tenth / 10, abs=0.02)


@pytest.mark.parametrize("attempt", [0, -1])
def test_attempts_count_from_one(attempt: int) -> None:
    with pytest.raises(ValueError, match=f"attempt is {attempt}, expected to be counted from 1"):
        delay(RULES, attempt, random.Random(1))


@given(st.floats(1e-9, 1e9), st.floats(1, 1e9), st.integers(1, 10**9), st.randoms(use_true_random=False))
def test_a_delay_stays_within_its_ceiling(base: float, factor: float, attempt: int, rng: random.Random) -> None:
    rules = BackoffRules(base=base, longest=base * factor)

    assert 0 <= delay(rules, attempt, rng) <= rules.longest
    assert delay(rules, 1, rng) <= base
