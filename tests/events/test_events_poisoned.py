"""What a few bad objects cost all other messages. `bench/poisoned.py` has the same among a thousand."""

from pathlib import Path

import pytest
from bad_objects import Bad, Consumed, consume

SEED, GOOD = 5, 100
PLACES = {4: Bad.POISON, 5: Bad.MISSING, 6: Bad.ERROR}  # among the first, where all others are behind them


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Consumed:
    """The same without the bad ones."""
    return consume(tmp_path_factory.mktemp("clean"), SEED, GOOD, {})


def test_three_bad_objects_cost_the_others_a_tenth_at_most_and_end_with_their_own_reasons(
    tmp_path: Path, clean: Consumed
) -> None:
    run = consume(tmp_path, SEED, GOOD, PLACES)

    assert run.speed >= 0.9 * clean.speed > 0
    assert not run.others
    assert {bad: run.fits(bad) for bad in Bad} == dict.fromkeys(Bad, True), run.dead
