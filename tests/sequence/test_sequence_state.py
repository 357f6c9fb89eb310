from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sanderling.sequence.cursor import Position
from sanderling.sequence.retries import OFFLOAD, Missed, Reason
from sanderling.sequence.state import Fates, Hurry, SavedCrawl, SequenceState
from sanderling.stores.durable import FolderError

AT = 1_800_000_000.0


def missed(low: int, high: int | None = None, reason: Reason = Reason.GAP, tries: int = 0, due: float = AT) -> Missed:
    return Missed(low, low if high is None else high, reason, AT, AT, tries, due)


@pytest.fixture
def state(tmp_path: Path) -> SequenceState:
    return SequenceState(tmp_path / "sequence.db")


def spans(state: SequenceState) -> list[tuple[int, int, str]]:
    return [(each.low, each.high, each.reason.value) for each in state.missed()]


def test_a_new_file_has_no_crawl(state: SequenceState) -> None:
    assert state.load() is None


def test_what_was_recorded_is_there_after_a_restart(state: SequenceState) -> None:
    saved = SavedCrawl("bungie", Position(1000, (990, 995)), 997)
    state.record(saved, Fates(missed=[missed(980, 985)]))
    state.close()

    again = SequenceState(state.path)

    assert again.load() == saved
    assert again.missed() == [missed(980, 985)]


def test_an_id_inside_a_range_that_turns_up_splits_it(state: SequenceState) -> None:
    state.change(Fates(missed=[missed(10, 20)]))
    state.change(Fates(gone=[(13, 13), (20, 20)]))

    assert spans(state) == [(10, 12, "gap"), (14, 19, "gap")]


def test_old_neighbours_become_one_range_and_young_ones_do_not(state: SequenceState) -> None:
    old = OFFLOAD + 1
    state.change(Fates(missed=[missed(1, reason=Reason.NOT_FOUND), missed(2, reason=Reason.NOT_FOUND)]))
    assert spans(state) == [(1, 1, "not_found"), (2, 2, "not_found")]

    state.change(Fates(missed=[missed(2, reason=Reason.NOT_FOUND, tries=old)]))
    state.change(Fates(missed=[missed(3, reason=Reason.NOT_FOUND, tries=old)]))
    state.change(Fates(missed=[missed(1, reason=Reason.NOT_FOUND, tries=old)]))
    assert spans(state) == [(1, 3, "not_found")]


def test_since_when_an_id_is_missed_survives_another_try(state: SequenceState) -> None:
    state.change(Fates(missed=[missed(5, reason=Reason.ERROR)]))
    later = Missed(5, 5, Reason.NOT_FOUND, AT + 60, AT + 60, 1, AT + 90)
    state.change(Fates(missed=[later]))

    (found,) = state.missed()
    assert (found.first_seen, found.last_seen, found.reason) == (AT, AT + 60, Reason.NOT_FOUND)


def test_what_is_due_comes_most_overdue_first(state: SequenceState) -> None:
    state.change(Fates(missed=[missed(1, due=AT + 5), missed(3, due=AT + 1), missed(5, due=AT + 99)]))

    assert [each.low for each in state.due(AT + 10, 10, failed=False)] == [3, 1]
    assert [each.low for each in state.due(AT + 10, 1, failed=False)] == [3]
    assert state.next_due(failed=False) == AT + 1


def test_part_of_a_range_can_be_hastened(state: SequenceState) -> None:
    state.change(Fates(missed=[missed(1, 100, due=AT + 999), missed(200, reason=Reason.HIDDEN, due=AT + 999)]))

    assert state.hasten(Hurry(AT, 40, 300), Reason.GAP) == 61
    assert [(each.low, each.high) for each in state.due(AT, 10, failed=False)] == [(40, 100)]
    assert state.counts() == {Reason.GAP: 100, Reason.HIDDEN: 1}


def test_whoever_wants_every_id_asked_gets_that(state: SequenceState) -> None:
    state.change(Fates(missed=[missed(1, 100, due=AT + 999)]))

    assert state.hasten(Hurry(AT, 0, 10), every=True) == 10
    assert [(each.high, each.reason) for each in state.due(AT, 10, failed=False)] == [(10, Reason.ALIVE)]


def test_what_is_added_again_stays_as_it_is(state: SequenceState) -> None:
    state.change(Fates(missed=[missed(5, 6, reason=Reason.HIDDEN)]))

    assert state.add_new([missed(1, 10, reason=Reason.IMPORTED)]) == 8
    assert state.add_new([missed(1, 10, reason=Reason.IMPORTED)]) == 0
    assert spans(state) == [(1, 4, "imported"), (5, 6, "hidden"), (7, 10, "imported")]


def test_pages_go_on_behind_the_last(state: SequenceState) -> None:
    state.change(Fates(missed=[missed(number) for number in range(0, 20, 2)]))

    first = state.missed(limit=6)
    assert [each.low for each in (*first, *state.missed(after=first[-1].low, limit=6))] == list(range(0, 20, 2))


def test_somebody_elses_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "other.db").write_text("no database, but somebody's diary" * 100)

    with pytest.raises(FolderError, match="damaged, or not one of ours"):
        SequenceState(tmp_path / "other.db")


IDS = st.integers(0, 40)
CHANGES = st.lists(
    st.tuples(st.sampled_from(["gone", "missed", "add"]), IDS, st.integers(0, 6), st.integers(0, 9)), max_size=25
)


@settings(max_examples=60)
@given(changes=CHANGES)
def test_ranges_are_only_a_shorter_way_to_write_ids(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, int, int, int]]
) -> None:
    state = SequenceState(tmp_path_factory.mktemp("state") / f"{Random().random()}.db")
    model: dict[int, Reason] = {}
    for kind, low, length, tries in changes:
        numbers = range(low, low + length + 1)
        reason = Reason.GAP if tries % 2 else Reason.NOT_FOUND
        each = missed(low, low + length, reason, tries)
        if kind == "gone":
            state.change(Fates(gone=[(low, low + length)]))
            model = {number: why for number, why in model.items() if number not in numbers}
        elif kind == "missed":
            state.change(Fates(missed=[each]))
            model |= dict.fromkeys(numbers, reason)
        else:
            added = state.add_new([each])
            assert added == len(set(numbers) - set(model))
            model = dict.fromkeys(numbers, reason) | model
    found = state.missed()
    assert {number: each.reason for each in found for number in range(each.low, each.high + 1)} == model
    assert sum(map(len, found)) == len(model)
    state.close()


def test_the_largest_id_of_all_can_be_missed(state: SequenceState) -> None:
    state.add_new([missed(2**63 - 1, reason=Reason.IMPORTED)])
    state.change(Fates(missed=[missed(2**63 - 1, reason=Reason.NOT_FOUND)]))

    assert spans(state) == [(2**63 - 1, 2**63 - 1, "not_found")]
