"""Refusals that do not depend on how much we ask are told from those that do."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.limit.noise import BY_QUOTA, MOST, Noise


def refuse(noise: Noise, share: float, answers: int, rng: Random, *, allowed: bool = True) -> tuple[int, int]:
    """Let a host refuse a share of its answers at random; how many refusals there were, and how many were explained."""
    served = refused = explained = 0
    for _ in range(answers):
        if rng.random() < share:
            refused += 1
            explained += noise.explains(served, allowed=allowed)
        else:
            served += 1
    return refused, explained


@pytest.mark.parametrize("share", [0.015, 0.02, 0.05])
def test_noise_is_found_and_then_explains_most_refusals(share: float) -> None:
    for seed in range(10):
        noise, rng = Noise(), Random(seed)
        refuse(noise, share, 4000, rng)
        refused, explained = refuse(noise, share, 20_000, rng)
        assert share / 2 < noise.share < 2 * share, seed
        assert explained >= 0.85 * refused, seed


def test_a_quota_that_is_kept_to_is_no_noise() -> None:
    assert not any(refuse(Noise(), BY_QUOTA / 4, 20_000, Random(seed))[1] for seed in range(20))


def test_refusals_above_the_ceiling_are_never_noise() -> None:
    noise = Noise()
    assert refuse(noise, 0.03, 20_000, Random(1), allowed=False)[1] == 0
    assert noise.share == 0
    assert not noise.suspected


def test_a_limit_on_top_of_the_noise_is_noticed_and_believed_less_easily_next_time() -> None:
    noise, rng = Noise(), Random(2)
    refuse(noise, 0.02, 4000, rng)
    assert noise.share
    refused, explained = refuse(noise, 0.5, 100, rng)
    assert refused - explained >= 5
    noise.forget()
    assert (noise.share, noise.suspected) == (0, False)


@given(st.lists(st.tuples(st.integers(0, 2000), st.booleans()), max_size=300))
def test_whatever_comes_the_share_is_one_that_can_be_worked_with(refusals: list[tuple[int, bool]]) -> None:
    noise, served = Noise(), 0
    for since, allowed in refusals:
        served += since
        noise.explains(served, allowed=allowed)
        assert 0 <= noise.share <= 1.5 * MOST
