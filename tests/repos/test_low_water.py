"""How far everything is settled."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from sanderling.repos.feeding import LowWater


@given(st.integers(0, 10**6), st.lists(st.integers(0, 6), max_size=12))
def test_low_water_never_passes_what_is_not_settled(seed: int, sizes: list[int]) -> None:
    """Against the plain way: look at every DID in order, each time."""
    rng, water, number = Random(seed), LowWater(), 0
    pages: list[list[str]] = []
    for size in sizes:
        page = [f"{number + at:04}" for at in range(size + 1)]
        number += size + 1
        pages.append(page)
        water.begin(page[-1], page)
    waiting = [did for page in pages for did in page]
    rng.shuffle(waiting)

    settled: set[str] = set()
    for did in waiting:
        water.settle(did)
        settled.add(did)
        done = [page[-1] for at, page in enumerate(pages) if all(settled.issuperset(each) for each in pages[: at + 1])]
        assert water.cursor == (done[-1] if done else None)
    assert len(water) == 0


def test_an_empty_page_is_settled_at_once() -> None:
    water = LowWater()
    water.begin("did:plc:z", [])

    assert water.cursor == "did:plc:z"


def test_what_belongs_to_no_page_changes_nothing() -> None:
    water = LowWater()
    water.begin("b", ["a", "b"])
    water.settle("never")
    water.settle("a")
    water.settle("a")

    assert (water.cursor, len(water)) == (None, 1)
