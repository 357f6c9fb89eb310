"""A million hosts: what a meeting costs does not depend on how many were met, and no penalty is lost among them."""

import json
import sys
from collections.abc import Callable
from math import inf
from random import Random

import pytest
from driven import Driven

from sanderling.limit import Feedback, LimiterRules, registry, tombstones
from sanderling.limit.registry import CENSUS, TRIED
from sanderling.limit.shelves import SHELF, Shelves
from sanderling.limit.tombstones import AT_ONCE, DROPPED, Tombstone, Tombstones

DAY = 86_400.0


class Looks:
    """Counts how often a function is called, and with how much."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, module: object, name: str, size: Callable[[object], int]
    ) -> None:
        self.all: list[int] = []
        original = getattr(module, name)

        def counting(thing: object, *rest: object) -> object:
            self.all.append(size(thing))
            return original(thing, *rest)

        monkeypatch.setattr(module, name, counting)


def meet(driven: Driven, first: int, last: int) -> None:
    for number in range(first, last):
        driven.take(f"h{number}.example").release(sent=True)


def owed(until: float) -> Tombstone:
    return Tombstone(ceiling=0.0, not_before=until, open_until=-inf, openings=0)


@pytest.mark.parametrize("room", [20, 400])
def test_a_meeting_looks_at_a_few_hosts_however_many_are_in_use(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    driven = Driven(LimiterRules(hosts=room))
    held = [driven.take(f"busy{number}.example") for number in range(room - 1)]
    looks = Looks(monkeypatch, registry, "_unused", lambda _gate: 1)

    meet(driven, 0, 300)

    assert len(looks.all) <= 300 * TRIED
    assert held[0].live


def test_hosts_in_use_do_not_keep_the_others_in_memory() -> None:
    driven = Driven(LimiterRules(hosts=50))
    held = [driven.take(f"busy{number}.example") for number in range(40)]

    meet(driven, 0, 500)

    assert driven.limiter.snapshot().hosts <= 50 + TRIED
    for permit in held:
        permit.release(sent=True)
    meet(driven, 500, 600)
    assert driven.limiter.snapshot().hosts == 50, "what was too much for lack of anyone to let go is caught up with"


def test_who_is_asked_all_the_time_stays_in_memory() -> None:
    driven = Driven(LimiterRules(hosts=100))
    for number in range(2000):
        for regular in range(20):
            if (permit := driven.limiter.try_acquire(f"regular{regular}.example")) is not None:
                driven.report(permit)
        meet(driven, number, number + 1)
        driven.clock.advance(0.5)

    regulars = [view for view in driven.limiter.snapshot(100).top if view.host.startswith("regular")]

    assert len(regulars) == 20
    assert all(view.requests > 1900 for view in regulars), "and none of them was let go in between"


@pytest.mark.parametrize("most", [1000, 40_000])
def test_what_is_looked_at_to_keep_a_stone_does_not_grow_with_their_number(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    looks = Looks(monkeypatch, tombstones, "_thin", lambda shelf: len(shelf))  # type: ignore[arg-type] # noqa: PLW0108
    stones = Tombstones(most)
    for number in range(2 * most):
        stones.bury(f"h{number}.example", owed(DAY), now=0)

    assert max(looks.all) <= 2 * SHELF
    assert sum(looks.all) <= 2 * DROPPED * 2 * most
    assert most * 0.7 <= len(stones) <= most


def test_no_dict_grows_so_large_that_it_stops_us_to_make_room_or_to_find_its_first_entry() -> None:
    """What was taken from the front of a dict is walked over until it is made anew, so its size is what counts."""
    shelves: Shelves[int] = Shelves(40_000)
    for number in range(200_000):
        shelf = shelves.of(f"h{number}.example")
        shelf[f"h{number}.example"] = number
        if len(shelf) > shelves.room:
            del shelf[next(iter(shelf))]

    assert max(map(sys.getsizeof, shelves)) <= 100_000
    assert len(shelves) <= 40_000


def test_penalties_that_hold_are_not_forgotten_while_anything_else_can_be() -> None:
    stones = Tombstones(500)
    for number in range(200):
        stones.bury(f"shut{number}.example", owed(DAY), now=0)

    for number in range(5000):
        stones.bury(f"h{number}.example", Tombstone(3.0, number, -inf, 0), now=number + 1)

    assert [host for host, stone in stones.items() if stone == owed(DAY)] == [
        f"shut{each}.example" for each in range(200)
    ]


def test_caps_are_bounded_and_the_last_ones_hold() -> None:
    driven = Driven(LimiterRules(hosts=10))
    for number in range(500):
        driven.limiter.cap(f"h{number}.example", 0.1, "somebody asked for it")

    driven.take("h499.example")
    driven.take("h0.example")

    assert driven.view("h499.example").cap == pytest.approx(0.1)
    assert driven.view("h0.example").cap is None


# What it says of itself.


def test_the_totals_are_those_of_all_hosts_let_go_or_not() -> None:
    driven, rng = Driven(LimiterRules(hosts=30)), Random(7)
    refused = 0
    for _ in range(3000):
        host = f"h{rng.randrange(60)}.example"
        if (permit := driven.limiter.try_acquire(host)) is not None:
            status = rng.choice((200, 429, 500, 500, 500))
            refused += status == 429
            driven.report(permit, status, retry_after=rng.choice((None, 1.0)) if status == 429 else None)
        driven.clock.advance(rng.choice((0.01, 1.0, 40.0)))
        snapshot = driven.limiter.snapshot(top=100)
        states = [view.state for view in snapshot.top]
        assert (snapshot.open, snapshot.half_open) == (states.count("open"), states.count("half-open"))
        looked_at = len(driven.limiter._hosts.troubled)
        assert looked_at == snapshot.open + snapshot.half_open

    assert snapshot.rejected == refused


def test_the_busiest_of_very_many_hosts_is_found_within_a_few_looks() -> None:
    driven = Driven(LimiterRules(hosts=10 * CENSUS))
    meet(driven, 0, 3 * CENSUS)
    for _ in range(3):
        driven.clock.advance(1)
        driven.take(f"h{3 * CENSUS - 1}.example").release(sent=True)

    tops = [driven.limiter.snapshot(1).top[0].requests for _ in range(5)]

    assert tops[-1] == 4
    assert driven.limiter.snapshot().hosts == 3 * CENSUS


# Saving, in pieces.


def shut(driven: Driven, count: int) -> set[str]:
    hosts = {f"shut{number}.example" for number in range(count)}
    for host in hosts:
        driven.limiter.feedback(driven.take(host), Feedback(429, 0.1, retry_after=DAY))
    return hosts


def test_a_piece_is_of_a_few_hosts_and_all_pieces_are_what_was_saved_at_once() -> None:
    driven = Driven(LimiterRules(hosts=300))
    hosts = shut(driven, 1000)

    pieces = list(driven.limiter.saving())

    assert b"".join(pieces) == driven.limiter.save()
    assert max(piece.count(b'"host"') for piece in pieces) == AT_ONCE
    assert {each["host"] for each in json.loads(b"".join(pieces))["hosts"]} == hosts


def test_no_penalty_is_missed_that_moves_while_the_pieces_are_made() -> None:
    """From memory to a stone, and from a stone to memory and back."""
    driven, rng = Driven(LimiterRules(hosts=300)), Random(3)
    hosts = shut(driven, 1500)

    pieces = []
    for piece in driven.limiter.saving():
        pieces.append(piece)
        for host in rng.sample(sorted(hosts), 400):
            driven.limiter.ready_at(host)

    assert {each["host"] for each in json.loads(b"".join(pieces))["hosts"]} == hosts


def test_a_save_that_is_given_up_leaves_nothing_behind() -> None:
    stones = Tombstones(10)
    stones.bury("a.example", owed(DAY), now=0)
    reading = stones.items()
    next(reading)

    reading.close()

    assert stones.exhume("a.example") is not None
    assert not list(stones.items())
