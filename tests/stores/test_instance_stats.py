from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raids import ACTIVITY, EPOCH, SOME_RAIDS, member, raid, rows, stats_of

from sanderling.formats.instance import Message
from sanderling.stores.instance_stats import Key, StatsRow, keys_of, runs_of, settled, unseated
from sanderling.stores.instances import InstanceRows


class Shelf:
    """As a store does it, with dicts."""

    def __init__(self) -> None:
        self.stats: dict[Key, StatsRow] = {}
        self._kept: dict[int, InstanceRows] = {}

    def keep(self, batch: Sequence[InstanceRows]) -> list[StatsRow]:
        runs = runs_of(batch)
        known = self._stats(keys_of(runs))
        finishers = {
            number: [(part.membership_id, activity) for part in self._kept[number].taken_part if part.finished]
            for number, activity in unseated(runs, known).items()
        }
        known |= self._stats([key for keys in finishers.values() for key in keys])
        changed = settled(runs, known, finishers)
        self._kept |= {each.instance.instance_id: each for each in batch}
        self.stats |= {(row.membership_id, row.activity_hash): row for row in changed}
        return changed

    def _stats(self, keys: Sequence[Key]) -> dict[Key, StatsRow]:
        return {key: self.stats[key] for key in keys if key in self.stats}


@given(SOME_RAIDS, st.data())
def test_any_order_in_any_batches_comes_to_what_the_definition_says(raids: list[Message], data: st.DataObject) -> None:
    arrivals = data.draw(st.permutations(rows(*raids)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(arrivals)), max_size=3)))
    shelf = Shelf()

    for low, high in zip([0, *cuts], [*cuts, len(arrivals)], strict=True):
        shelf.keep(arrivals[low:high])

    assert [shelf.stats[key] for key in sorted(shelf.stats)] == stats_of(rows(*raids))


def test_only_what_changes_is_written_and_in_order() -> None:
    shelf = Shelf()
    shelf.keep(rows(raid(1, [member(3), member(1)], at=EPOCH)))

    changed = shelf.keep(rows(raid(2, [member(4), member(2)], at=EPOCH + 1)))

    assert [row.membership_id for row in changed] == [int(member(each).membership_id) for each in (2, 4)]


def test_in_their_order_nobody_is_unseated() -> None:
    shelf = Shelf()
    first, second = rows(raid(1, [member(1)], at=EPOCH), raid(2, [member(1)], at=EPOCH + 1))
    shelf.keep([first])

    assert unseated(runs_of([second]), shelf.stats) == {}


def test_whoever_comes_late_unseats_a_newcomer() -> None:
    shelf = Shelf()
    first, second = rows(raid(1, [member(1)], at=EPOCH), raid(2, [member(1), member(2), member(3)], at=EPOCH + 1))
    shelf.keep([second])
    assert [row.sherpas for row in stats(shelf)] == [0, 0, 0], "all of them are newcomers"

    assert unseated(runs_of([first]), shelf.stats) == {2: ACTIVITY}
    shelf.keep([first])

    assert [row.sherpas for row in stats(shelf)] == [2, 0, 0]


@pytest.mark.parametrize("turned", [False, True])
def test_of_two_that_are_as_fast_or_as_early_the_lower_id_counts(turned: bool) -> None:  # noqa: FBT001 - a parameter
    shelf = Shelf()
    both = rows(raid(1, [member(1)]), raid(2, [member(1)]))

    for each in reversed(both) if turned else both:
        shelf.keep([each])

    assert [(row.fastest_instance, row.first_instance) for row in stats(shelf)] == [(1, 1)]


def test_statistics_that_somebody_has_removed_begin_again() -> None:
    shelf = Shelf()
    late, early = rows(raid(2, [member(1), member(2)], at=EPOCH + 1), raid(1, [member(1)], at=EPOCH))
    shelf.keep([late])
    del shelf.stats[(int(member(2).membership_id), ACTIVITY)]

    shelf.keep([early])

    assert stats(shelf)[0].first_instance == 1


def stats(shelf: Shelf) -> list[StatsRow]:
    return [shelf.stats[key] for key in sorted(shelf.stats)]
