from itertools import product
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.limit.breaker import NEXT, Breaker, BreakerEvent, BreakerRules, State

RULES = BreakerRules(jitter=0)
RNG = Random(1)


def trip(breaker: Breaker, now: float = 0) -> list[bool]:
    """So many different items fail that it opens, if it is closed; at which of them the state changed."""
    return [breaker.failed(now, RNG, object()) for _ in range(breaker.enough)]


def breaker_in(state: State, rules: BreakerRules = RULES) -> Breaker:
    """A breaker that came into `state` at time 0, where it is open until 15."""
    breaker = Breaker(rules, -100)
    if state is not State.CLOSED:
        trip(breaker)
    if state is State.HALF_OPEN:
        breaker.until = 0
        breaker.rested(0, RNG)
    assert breaker.state is state
    return breaker


def make_happen(breaker: Breaker, event: BreakerEvent) -> None:
    """What each event is made of, whether or not the breaker can hear it."""
    match event:
        case BreakerEvent.TRIPPED:
            trip(breaker, 1)
        case BreakerEvent.RESTED:
            breaker.rested(1000, RNG)
        case BreakerEvent.PROBE_OK:
            breaker.succeeded(1, RNG)
        case BreakerEvent.PROBE_FAILED:
            breaker.failed(1, RNG, "item")


@pytest.mark.parametrize(("state", "event"), list(product(State, BreakerEvent)))
def test_the_table_says_where_every_event_leads(state: State, event: BreakerEvent) -> None:
    breaker = breaker_in(state)

    make_happen(breaker, event)

    # A half-open breaker cannot tell a failure that trips from a probe that fails, and need not.
    expected = (
        State.OPEN if (state, event) == (State.HALF_OPEN, BreakerEvent.TRIPPED) else NEXT.get((state, event), state)
    )
    assert breaker.state is expected


def test_the_table_holds_every_state_and_every_event() -> None:
    assert {state for state, _ in NEXT} == set(NEXT.values()) == set(State)
    assert {event for _, event in NEXT} == set(BreakerEvent)


@pytest.mark.parametrize("state", State)
def test_a_change_is_reported_and_nothing_else_is(state: State) -> None:
    assert breaker_in(state).failed(1, RNG, "item") == (state is State.HALF_OPEN)
    assert breaker_in(state).succeeded(1, RNG) == (state is State.HALF_OPEN)
    assert breaker_in(state).rested(15, RNG) == (state is State.OPEN)
    assert not breaker_in(state).rested(14.9, RNG)


class Answer(NamedTuple):
    """One answer: good if it is of no item."""

    item: int | None
    of_host: bool = False


ANSWERS = st.lists(
    st.one_of(
        st.just(Answer(None)),
        st.builds(Answer, st.integers(0, 7)),
        st.builds(Answer, st.integers(0, 7), of_host=st.just(value=True)),
    ),
    max_size=60,
)


@given(ANSWERS, st.integers(1, 6), st.integers(1, 4))
def test_it_opens_at_enough_different_items_or_failures_of_the_host_with_nothing_good_between(
    answers: list[Answer], enough: int, unreached: int
) -> None:
    more = 0  # where failures are usual
    breaker, row = Breaker(BreakerRules(consecutive=enough, unreached=unreached), 0, 1000), list[Answer]()

    for answer in answers:
        if answer.item is None:
            breaker.succeeded(0, RNG)
            row = []
            more = breaker.enough - enough
        else:
            breaker.failed(0, RNG, answer.item, of_host=answer.of_host)
            row.append(answer)
        items, of_host = {each.item for each in row}, sum(each.of_host for each in row)
        assert (breaker.state is State.OPEN) == (len(items) >= enough + more or of_host >= unreached + more)
        if breaker.state is State.OPEN:
            break


@given(st.integers(1, 500), st.integers(2, 20))
def test_one_item_may_fail_for_ever(times: int, enough: int) -> None:
    breaker = Breaker(BreakerRules(consecutive=enough), 0)

    assert not any(breaker.failed(now, RNG, "item") for now in range(times))


@given(st.lists(st.booleans(), max_size=40))
def test_pauses_double_while_probes_fail_and_not_across_a_good_one(probes: list[bool]) -> None:
    """As they do everywhere, where none is to be at an even pace."""
    breaker, now, failed = breaker_in(State.OPEN, BreakerRules(consecutive=20, jitter=0, steady=0)), 15.0, 0

    for good in probes:
        assert breaker.rested(now, RNG)
        if good:
            breaker.succeeded(now, RNG)
            assert breaker.state is State.CLOSED, "one good probe is enough"
            trip(breaker, now)
        else:
            breaker.failed(now, RNG, "item")
        failed = 0 if good else failed + 1
        assert breaker.until - now == pytest.approx(min(300, 15 * 2**failed))
        now = breaker.until


def test_closing_gives_a_clean_slate() -> None:
    breaker = breaker_in(State.HALF_OPEN)

    make_happen(breaker, BreakerEvent.PROBE_OK)

    assert (breaker.failures, breaker.openings, breaker.error_rate) == (0, 0, 0)
    assert trip(breaker, 1)[-1]


def test_the_error_rate_is_that_of_the_last_answers() -> None:
    breaker = Breaker(RULES, 0, 1)
    breaker.failed(0, RNG, "item")
    assert breaker.error_rate == pytest.approx(0.5)

    for _ in range(200):
        breaker.succeeded(0, RNG)

    assert 0 < breaker.error_rate < 0.005


def test_the_jitter_only_lengthens() -> None:
    rules = BreakerRules(open_for=10, jitter=0.5)

    seconds = [breaker_in(State.OPEN, rules).until for _ in range(200)]

    assert 10 <= min(seconds) < 10.5
    assert 14.5 < max(seconds) <= 15


def test_it_stays_open_as_long_as_it_is_told_to_and_never_shorter() -> None:
    breaker = breaker_in(State.OPEN)

    breaker.hold(100)
    breaker.hold(50)

    assert not breaker.rested(99, RNG)
    assert breaker.rested(100, RNG)


@pytest.mark.parametrize("state", [State.CLOSED, State.HALF_OPEN])
def test_who_is_not_open_cannot_be_held_nor_cut_short(state: State) -> None:
    breaker = breaker_in(state)

    breaker.hold(100)

    assert not breaker.cut_short(1)
    assert breaker.state is state
    assert breaker.until <= 0


def test_the_first_pause_may_be_cut_short_once_and_none_after_a_probe_that_failed() -> None:
    breaker = breaker_in(State.OPEN)

    assert breaker.cut_short(5)
    assert not breaker.cut_short(5)
    assert breaker.rested(5, RNG)
    breaker.failed(5, RNG, "item")
    assert not breaker.cut_short(6)
    breaker.rested(1000, RNG)
    breaker.succeeded(1000, RNG)
    trip(breaker, 1000)
    assert breaker.cut_short(1001)


def test_after_a_restart_it_goes_on_where_it_left_off() -> None:
    breaker = Breaker(RULES, 0)

    breaker.reopen(openings=3, until=50)

    assert breaker.state is State.OPEN
    assert breaker.rested(50, RNG)
    breaker.failed(50, RNG, "item")
    assert breaker.until - 50 == 15 * 2**3


def test_one_whose_time_ran_out_meanwhile_is_probed_before_it_closes() -> None:
    breaker = Breaker(RULES, 100)

    breaker.reopen(openings=3, until=50)

    assert breaker.rested(100, RNG)
    assert breaker.state is State.HALF_OPEN


def test_taking_up_a_record_never_lightens_it() -> None:
    breaker = Breaker(RULES, 0)
    breaker.reopen(openings=5, until=500)

    breaker.reopen(openings=1, until=50)

    assert (breaker.openings, breaker.until) == (5, 500)
