"""How long to rest between two tests of a limit."""

from math import isfinite

from hypothesis import given
from hypothesis import strategies as st

from sanderling.limit.tempo import SETTLED, SPARED, Tempo

levels = st.floats(0.001, 10_000)
changes = st.lists(st.tuples(levels, st.floats(0, 7200)), max_size=50)


@given(levels, changes)
def test_a_rest_is_above_0_and_never_longer_than_it_may_be(level: float, changes: list[tuple[float, float]]) -> None:
    tempo, now = Tempo(0.0, level), 0.0
    for ceiling, after in changes:
        now += after
        tempo.note(ceiling, now)
        tempo.held(ceiling)
        rest = tempo.rest(ceiling, now)
        assert isfinite(rest)
        assert 0 < rest <= max(SETTLED, SPARED / ceiling)


def test_a_host_whose_limits_change_often_is_tested_more_often() -> None:
    calm, lively = Tempo(0.0, 10.0), Tempo(0.0, 10.0)
    for turn in range(1, 20):
        lively.note(10.0 if turn % 2 else 20.0, 60.0 * turn)
    assert lively.rest(10.0, 1200.0) < calm.rest(10.0, 1200.0) / 2


def test_a_refusal_that_costs_more_is_risked_less_often() -> None:
    tempo = Tempo(0.0, 100.0)
    cheap = tempo.rest(100.0, 60.0)
    tempo.cost, tempo.lost = 3, 0.5
    assert tempo.rest(100.0, 60.0) > cheap


def test_where_more_was_allowed_of_late_it_is_looked_for_sooner() -> None:
    tempo = Tempo(0.0, 100.0)
    before = tempo.rest(100.0, 60.0)
    tempo.held(400.0)
    assert tempo.gain(100.0) == 300.0
    assert tempo.rest(100.0, 60.0) < before
    for _ in range(200):
        tempo.held(100.0)
    assert tempo.rest(100.0, 60.0) == before
