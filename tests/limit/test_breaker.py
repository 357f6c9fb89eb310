from itertools import product
from math import inf
from random import Random

import pytest

from sanderling.limit.breaker import NEXT, Breaker, BreakerRules, Event, State
from sanderling.limit.window import WindowRules

RULES = BreakerRules(jitter=0)


def breaker_in(state: State, rules: BreakerRules = RULES) -> Breaker:
    """A breaker that came into `state` at time 0, where it is open until 15."""
    breaker = Breaker(rules, WindowRules(), -100)
    if state is not State.CLOSED:
        for _ in range(rules.consecutive):
            breaker.failed(0, Random(1))
    if state is State.HALF_OPEN:
        breaker.until = 0
        breaker.rested(0, Random(1))
    assert breaker.state is state
    return breaker


def make_happen(breaker: Breaker, event: Event) -> None:
    """What each event is made of, whether or not the breaker can hear it."""
    match event:
        case Event.TRIPPED:
            for _ in range(5):
                breaker.failed(1, Random(1))
        case Event.RESTED:
            breaker.rested(1000, Random(1))
        case Event.PROBES_OK:
            for _ in range(3):
                breaker.succeeded(1, Random(1))
        case Event.PROBE_FAILED:
            breaker.failed(1, Random(1))


@pytest.mark.parametrize(("state", "event"), list(product(State, Event)))
def test_the_table_says_where_every_event_leads(state: State, event: Event) -> None:
    breaker = breaker_in(state)

    make_happen(breaker, event)

    # A half-open breaker cannot tell a failure that trips from a probe that fails, and need not.
    expected = State.OPEN if (state, event) == (State.HALF_OPEN, Event.TRIPPED) else NEXT.get((state, event), state)
    assert breaker.state is expected


def test_the_table_holds_every_state_and_every_event() -> None:
    assert {state for state, _ in NEXT} == set(NEXT.values()) == set(State)
    assert {event for _, event in NEXT} == set(Event)


@pytest.mark.parametrize("state", State)
def test_a_change_is_reported_and_nothing_else_is(state: State) -> None:
    assert breaker_in(state).failed(1, Random(1)) == (state is State.HALF_OPEN)
    assert not breaker_in(state).succeeded(1, Random(1))
    assert breaker_in(state).rested(15, Random(1)) == (state is State.OPEN)
    assert not breaker_in(state).rested(14.9, Random(1))


def test_failures_in_a_row_trip_it_whatever_went_well_before() -> None:
    breaker = Breaker(RULES, WindowRules(), 0)
    breaker.window.record(0, answers=10_000)

    changes = [breaker.failed(1, Random(1)) for _ in range(5)]

    assert changes == [False, False, False, False, True]


def test_a_success_between_them_breaks_the_row() -> None:
    breaker = Breaker(RULES, WindowRules(), 0)
    breaker.window.record(0, answers=10_000)

    for _ in range(10):
        for _ in range(4):
            breaker.failed(1, Random(1))
        breaker.succeeded(1, Random(1))

    assert breaker.state is State.CLOSED


def test_three_failures_of_three_trip_it_and_two_of_two_do_not() -> None:
    breaker = Breaker(RULES, WindowRules(), 0)

    assert not breaker.failed(0, Random(1))
    assert not breaker.failed(0, Random(1))
    assert breaker.failed(0, Random(1))


def test_failures_that_are_too_old_to_count_do_not_trip_it() -> None:
    breaker = Breaker(RULES, WindowRules(span=30), 0)

    changes = [breaker.failed(now, Random(1)) for now in (0, 40, 80, 120)]

    assert not any(changes)


def test_a_probe_that_fails_in_between_takes_back_the_good_ones() -> None:
    breaker = breaker_in(State.HALF_OPEN)
    breaker.succeeded(1, Random(1))
    breaker.succeeded(1, Random(1))

    breaker.failed(1, Random(1))
    breaker.rested(1000, Random(1))
    breaker.succeeded(1001, Random(1))

    assert breaker.state is State.HALF_OPEN


def test_closing_gives_a_clean_slate() -> None:
    breaker = breaker_in(State.HALF_OPEN)

    make_happen(breaker, Event.PROBES_OK)

    assert breaker.window.totals(1) == (0, 0)
    assert breaker.failures == 0
    assert breaker.openings == 1, "but that it was open is held against it for a while"


def test_the_jitter_only_lengthens() -> None:
    rules = BreakerRules(open_for=10, jitter=0.5)

    seconds = []
    for seed in range(200):
        breaker = Breaker(rules, WindowRules(), 0)
        for _ in range(5):
            breaker.failed(0, Random(seed))
        seconds.append(breaker.until)

    assert 10 <= min(seconds) < 10.5
    assert 14.5 < max(seconds) <= 15


def test_it_stays_open_as_long_as_it_is_told_to_and_never_shorter() -> None:
    breaker = breaker_in(State.OPEN)

    breaker.hold(100)
    breaker.hold(50)

    assert not breaker.rested(99, Random(1))
    assert breaker.rested(100, Random(1))


@pytest.mark.parametrize("state", [State.CLOSED, State.HALF_OPEN])
def test_who_is_not_open_cannot_be_held(state: State) -> None:
    breaker = breaker_in(state)

    breaker.hold(100)

    assert breaker.state is state
    assert breaker.until <= 0


def test_after_a_restart_it_goes_on_where_it_left_off() -> None:
    breaker = Breaker(RULES, WindowRules(), 0)

    breaker.reopen(openings=3, until=50)

    assert breaker.state is State.OPEN
    assert breaker.rested(50, Random(1))
    breaker.failed(50, Random(1))
    assert breaker.until - 50 == 15 * 2**3


def test_one_whose_time_ran_out_meanwhile_is_probed_before_it_closes() -> None:
    breaker = Breaker(RULES, WindowRules(), 100)

    breaker.reopen(openings=3, until=50)

    assert breaker.rested(100, Random(1))
    assert breaker.state is State.HALF_OPEN


def test_one_that_was_closed_is_closed_with_its_record() -> None:
    breaker = Breaker(RULES, WindowRules(), 100)

    breaker.reopen(openings=3, until=-inf)

    assert breaker.state is State.CLOSED
    assert breaker.openings == 3


def test_taking_up_a_record_never_lightens_it() -> None:
    breaker = Breaker(RULES, WindowRules(), 0)
    breaker.reopen(openings=5, until=500)

    breaker.reopen(openings=1, until=50)

    assert (breaker.openings, breaker.until) == (5, 500)
