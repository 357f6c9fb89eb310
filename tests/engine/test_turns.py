"""Whose turn it is: the order of the hosts."""

from collections import Counter
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from sanderling.engine.turns import Turns


@dataclass(slots=True, eq=False)
class Host:
    name: str
    turn: float | None = None


def test_a_host_has_one_place_however_often_it_is_added() -> None:
    turns, host = Turns[Host](), Host("a")
    turns.add(host, 1)
    turns.add(host, 0)

    assert len(turns) == 1
    assert turns.next(0.5) is None
    assert turns.next(1) is host
    assert turns.next(1) is None


def test_a_host_whose_gate_opens_sooner_moves_up_and_never_back() -> None:
    turns, host, other = Turns[Host](), Host("a"), Host("b")
    turns.add(host, 30)
    turns.add(other, 5)

    turns.hasten(host, 2)
    turns.hasten(host, 9)
    turns.hasten(Host("c"), 1)

    assert (len(turns), turns.due()) == (2, 2)
    assert [turns.next(40), turns.next(40), turns.next(40)] == [host, other, None]
    assert (len(turns), turns.due()) == (0, None)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=50))
def test_turns_come_by_time(dues: list[float]) -> None:
    turns = Turns[Host]()
    for number, due in enumerate(dues):
        turns.add(Host(str(number)), due)

    taken = []
    while (host := turns.next(100)) is not None:
        taken.append(dues[int(host.name)])

    assert taken == sorted(dues)


def test_hosts_that_may_all_be_asked_take_turns() -> None:
    """A host with a million URLs gets no more turns than one with ten."""
    turns, served = Turns[Host](), Counter[str]()
    for name in ("huge", "small", "tiny"):
        turns.add(Host(name), 0)

    for _ in range(30):
        host = turns.next(0)
        assert host is not None
        served[host.name] += 1
        turns.add(host, 0)

    assert served == {"huge": 10, "small": 10, "tiny": 10}


def test_a_place_that_was_left_is_no_place_in_another_queue_at_the_same_time() -> None:
    turns, probes, host = Turns[Host](), Turns[Host](), Host("a")
    turns.add(host, 5)
    turns.remove(host)

    probes.add(host, 5)

    assert (len(turns), turns.due(), turns.next(9)) == (0, None, None)
    assert (len(probes), probes.due(), probes.next(9)) == (1, 5, host)
