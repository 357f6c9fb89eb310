import json
import sys
from math import inf

import pytest

from sanderling.limit.tombstones import PACKED, Tombstone, Tombstones, decode, encode

PENALTY = Tombstone(ceiling=0.0, not_before=100.0, open_until=-inf, openings=0)
NOTHING = Tombstone(ceiling=0.0, not_before=5.0, open_until=5.0, openings=0)


def saved(**changes: object) -> bytes:
    """One saved host, with something wrong about it."""
    host = {"host": "a.example", "ceiling": 2.0, "wait": 3.0, "open": 0.0, "openings": 1}
    return json.dumps({"version": 1, "saved_at": 0.0, "hosts": [host | changes]}).encode()


def test_a_stone_takes_no_more_than_64_bytes() -> None:
    assert sys.getsizeof(PACKED.pack(1.0, 2.0, 3.0, 255, 4.0)) <= 64


def test_what_is_buried_can_be_dug_up_once() -> None:
    stones = Tombstones(10)
    stone = Tombstone(3.5, 100.0, 200.0, 4)

    stones.bury("a.example", stone, now=0)

    assert stones.exhume("a.example") == stone
    assert stones.exhume("a.example") is None
    assert len(stones) == 0


def test_a_stone_that_says_nothing_is_not_kept() -> None:
    stones = Tombstones(10)

    stones.bury("a.example", NOTHING, now=10)

    assert len(stones) == 0


@pytest.mark.parametrize(
    "stone",
    [
        NOTHING._replace(ceiling=1.0),
        NOTHING._replace(openings=1),
        NOTHING._replace(not_before=11.0),
        NOTHING._replace(open_until=11.0),
    ],
)
def test_a_stone_that_says_anything_is_kept(stone: Tombstone) -> None:
    stones = Tombstones(10)

    stones.bury("a.example", stone, now=10)

    assert dict(stones.items()) == {"a.example": stone}


def test_when_there_are_too_many_the_oldest_goes_and_penalties_last() -> None:
    stones = Tombstones(3)
    stones.bury("penalised.example", PENALTY, now=0)
    for number in range(5):
        stones.bury(f"h{number}.example", NOTHING._replace(ceiling=1.0), now=10)

    assert [host for host, _ in stones.items()] == ["penalised.example", "h3.example", "h4.example"]


def test_where_all_are_penalties_the_oldest_goes() -> None:
    stones = Tombstones(2)
    for number in range(4):
        stones.bury(f"h{number}.example", PENALTY, now=0)

    assert [host for host, _ in stones.items()] == ["h2.example", "h3.example"]


def test_a_second_stone_never_shortens_the_first() -> None:
    stones = Tombstones(10)
    stones.bury("a.example", Tombstone(3.0, 100.0, 50.0, 4), now=0)

    stones.bury("a.example", Tombstone(0.0, 20.0, 80.0, 1), now=0)

    assert stones.exhume("a.example") == Tombstone(3.0, 100.0, 80.0, 4)


def test_a_host_that_opened_more_often_than_fits_has_opened_255_times() -> None:
    stones = Tombstones(10)

    stones.bury("a.example", NOTHING._replace(openings=1000), now=0)

    assert stones.exhume("a.example") == NOTHING._replace(openings=255)


@pytest.mark.parametrize(("until", "saved_open"), [(-inf, 0.0), (90.0, 0.001)])
def test_a_circuit_that_only_waits_for_its_probe_is_saved_as_open(until: float, saved_open: float) -> None:
    data = b"".join(encode(iter([("a.example", Tombstone(2.0, 100.0, until, 3))]), now=100.0, wall=1e9))

    assert json.loads(data)["hosts"][0]["open"] == saved_open


def test_instants_are_saved_as_what_is_left_of_them() -> None:
    data = b"".join(encode(iter([("a.example", Tombstone(2.0, 130.0, 115.0, 3))]), now=100.0, wall=1e9))

    assert json.loads(data) == {
        "version": 1,
        "saved_at": 1e9,
        "hosts": [{"host": "a.example", "ceiling": 2.0, "wait": 30.0, "open": 15.0, "openings": 3}],
    }


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "not a saved limiter: .*truncated"),
        (saved()[:-20], "not a saved limiter: .*truncated"),
        (b"\xff\xfe", "not a saved limiter"),
        (b"[]", "not a saved limiter: .*object"),
        (b"{}", "not a saved limiter: .*version"),
        (saved(version=2), "unknown field `version`"),
        (saved(colour="red"), "unknown field `colour`"),
        (saved(ceiling="high"), "Expected `float`, got `str`.*ceiling"),
        (saved(wait=None), "Expected `float`, got `null`.*wait"),
        (saved(openings=-1), "openings"),
        (saved(openings=1.5), "openings"),
        (saved(ceiling=-1.0), "ceiling"),
        (saved(wait=-1.0), "wait"),
        (saved(open=-1.0), "open"),
        (saved().replace(b'"version": 1', b'"version": 2'), "saved by version 2 of the format; .* reads version 1"),
        (saved().replace(b"3.0", b"1e999"), "not a saved limiter"),
    ],
)
def test_what_cannot_be_read_is_refused_with_words(data: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        list(decode(data, now=0.0, wall=0.0))


def test_what_can_be_read_is_read() -> None:
    assert dict(decode(saved(), now=10.0, wall=1.0)) == {"a.example": Tombstone(2.0, 12.0, -inf, 1)}
