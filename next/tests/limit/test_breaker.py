"""One table of the circuit: what happens to a host, and how its circuit stands after it."""

from itertools import product
from random import Random

import pytest

from sanderling.limit import LimitOptions
from sanderling.limit.breaker import JITTER, LONGEST_OPEN, NEXT, Breaker, Event, State

CLOSED, OPEN, HALF_OPEN = State.CLOSED, State.OPEN, State.HALF_OPEN

# A script has a word for each thing that happens: `f` a failure of another item each time, `s` one of the same item,
# `u` a host that was not reached, `o` a good response, `5f` five of them, `15s` a wait. Between two words of one kind
# nothing else happens.
SEED = [
    ("nothing", "", CLOSED),
    ("failures in a row, one too few", "4f", CLOSED),
    ("failures in a row", "5f", OPEN),
    ("a good response ends the row", "4f o 4f", CLOSED),
    ("of the same item too", "5s", OPEN),
    ("half of ten", "4f o o f o o o", OPEN),
    ("half of nine", "4f o o f o o", CLOSED),
    ("fewer than half", "f 2o f 2o f 2o f 2o f 2o", CLOSED),
    ("failures that have left the window", "4f o wait31 4f o 4f", CLOSED),
    ("failures that have not", "4f o wait20 4f o", OPEN),
    ("open for exactly its time", "5f wait14.999", OPEN),
    ("then half open", "5f wait15", HALF_OPEN),
    ("a good probe too few", "5f wait15 2o", HALF_OPEN),
    ("good probes", "5f wait15 3o", CLOSED),
    ("the first failure opens it again", "5f wait15 2o f", OPEN),
    ("for the same time", "5f wait15 f wait15", HALF_OPEN),
    ("good probes are counted anew", "5f wait15 2o f wait15 2o", HALF_OPEN),
    ("closing empties the window and the row", "5f wait15 3o 4f", CLOSED),
    ("and it opens again as at first", "5f wait15 3o 5f", OPEN),
    ("what comes while it is open is of before", "5f 9o wait15", HALF_OPEN),
]
CAREFUL = [
    ("different items in a row", "5f", OPEN),
    ("the same item", "9s", CLOSED),
    ("the same item often enough for the window", "10s", OPEN),
    ("hosts that are not reached, one too few", "2u", CLOSED),
    ("hosts that are not reached", "3u", OPEN),
    ("a good response ends that row", "2u o 2u", CLOSED),
    ("open for a random part more than its time, so that hosts are not probed in one second", "5f wait15", OPEN),
    ("at most 15 % more", "5f wait17.25", HALF_OPEN),
    ("one good probe closes it", "5f wait17.25 o", CLOSED),
    ("a failed probe doubles the time", "5f wait17.25 f wait30", OPEN),
    ("to at most 15 % more than that", "5f wait17.25 f wait34.5", HALF_OPEN),
    ("not where the host has answered before: for an hour the pace is even", "o 5f wait17.25 f wait17.25", HALF_OPEN),
    ("one in four fails as usual, and eight in a row prove nothing", f"{'f 3o ' * 60} 8f", CLOSED),
    ("eleven in a row do", f"{'f 3o ' * 60} 11f", OPEN),
    ("an overload within one bucket of a good window", "wait30 40o wait28 9f o", OPEN),
]


def run(breaker: Breaker, script: str) -> float:
    now, number = 0.0, 0
    for word in script.split():
        if word.startswith("wait"):
            now += float(word[4:])
            breaker.rest(now)
            continue
        for _ in range(int(word[:-1] or 1)):
            number += 1
            match word[-1]:
                case "o":
                    breaker.succeed(now, breaker.generation)
                case "f" | "s":
                    breaker.fail(now, breaker.generation, number if word[-1] == "f" else "the same")
                case "u":
                    breaker.fail(now, breaker.generation, "the same", of_host=True)
    return now


@pytest.mark.parametrize(
    ("careful", "script", "state"),
    [(careful, *row[1:]) for careful, rows in ((False, SEED), (True, CAREFUL)) for row in rows],
    ids=[row[0] for row in SEED + CAREFUL],
)
def test_the_circuit(careful: bool, script: str, state: State) -> None:
    breaker = Breaker(LimitOptions(), Random(1), careful=careful)

    run(breaker, script)

    assert breaker.state is state


def test_every_other_event_changes_nothing() -> None:
    assert set(NEXT) < set(product(State, Event))
    breaker = Breaker(LimitOptions(), Random(1), careful=False)
    run(breaker, "5f")

    assert not breaker.fail(1.0, breaker.generation)
    assert not breaker.succeed(1.0, breaker.generation)
    assert not breaker.rest(14.0)


@pytest.mark.parametrize("careful", [False, True])
def test_half_open_lets_as_many_probes_out_as_are_configured(careful: bool) -> None:
    breaker = Breaker(LimitOptions(half_open_probes=2), Random(1), careful=careful)
    now = run(breaker, "5f wait20")
    most = 1 if careful else 2

    for number in range(most):
        assert breaker.ready_at(now) < now
        assert breaker.take(now + number, lease=60)
    assert breaker.ready_at(now + 2) == now + 60  # a probe that was lost blocks for no longer
    breaker.end_probe(now, 60, breaker.generation - 1)
    assert breaker.ready_at(now + 2) == now + 60  # that one was of an earlier generation
    breaker.end_probe(now, 60, breaker.generation)
    assert breaker.ready_at(now + 2) < now


def test_the_time_it_is_open_is_bounded_and_a_retry_after_outlasts_it() -> None:
    breaker = Breaker(LimitOptions(), Random(1), careful=True)
    now = run(breaker, "5f")
    for _ in range(20):
        now = breaker.until
        assert breaker.rest(now)
        breaker.fail(now, breaker.generation)
        assert 15 <= breaker.until - now <= LONGEST_OPEN * (1 + JITTER)
    assert breaker.until - now >= LONGEST_OPEN

    breaker.hold(now + 9000)
    assert breaker.until == now + 9000
    exact = Breaker(LimitOptions(), Random(1), careful=False)
    run(exact, "5f")
    exact.hold(9000)
    assert exact.until == 15


def test_what_is_restored_opens_only_for_longer() -> None:
    breaker = Breaker(LimitOptions(), Random(1), careful=True)

    breaker.reopen(-5.0, 0, answered=True)

    assert breaker.state is OPEN
    assert breaker.rest(0.0)
    breaker.fail(0.0, breaker.generation)
    assert breaker.until < 20  # it had answered: the pace is even
