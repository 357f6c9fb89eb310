from dataclasses import replace
from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.apis.polled import PolledKind, TargetName, Wanted
from sanderling.polling.discovery import FORGET, reconcile
from sanderling.polling.settings import Keys, PollingSettings
from sanderling.stores.polling import KnownTarget, PollingTarget, Reconciliation, WantedTarget

KINDS = (
    PolledKind("event", 10.0, whole=True),
    PolledKind("rounds", 10.0, priority=1, whole=True),
    PolledKind("race", 10.0, active_seconds=0.2),
    PolledKind("results", 2.0),
)
SETTINGS = Keys(KINDS).read({})[0]
EVENT, RACE, OTHER_RACE = Wanted("event", "e1", "e1"), Wanted("race", "r1", "e1"), Wanted("race", "r2", "e1")
EMPTY = Reconciliation()
NOW = 1_000_000.0


class Remembered:
    """Does with a dict what a store does with its tables."""

    def __init__(self, *targets: KnownTarget) -> None:
        self.targets = {target.id: target for target in targets}
        self.last = max(self.targets, default=0)

    def discover(self, wanted: list[Wanted], settings: PollingSettings = SETTINGS, wall: float = NOW) -> Reconciliation:
        plan = reconcile(self.targets.values(), wanted, settings, KINDS, wall)
        for found in plan.insert:
            self.last += 1
            self.targets[self.last] = KnownTarget(self.last, found, None)
        self.targets |= {number: KnownTarget(number, found, None) for number, found in plan.update}
        self.targets |= {number: self.targets[number]._replace(gone=wall) for number in plan.gone}
        for number in plan.delete:
            del self.targets[number]
        return plan

    def polled(self) -> dict[TargetName, WantedTarget]:
        return {
            TargetName(target.found.kind, target.found.source_id): target.found
            for target in self.targets.values()
            if target.gone is None
        }


def found(wanted: Wanted, seconds: float = 10.0, priority: int = 0) -> WantedTarget:
    return WantedTarget(wanted.kind, wanted.source_id, wanted.event, wanted.only, seconds, priority)


def test_new_targets_get_the_interval_and_the_priority_of_their_kind_in_the_order_they_are_listed() -> None:
    rounds, results = Wanted("rounds", "e1", "e1"), Wanted("results", "e1", "e1", only=("a",))

    plan = reconcile([], [EVENT, rounds, results, RACE], SETTINGS, KINDS, NOW)

    assert plan == Reconciliation(insert=(found(EVENT), found(rounds, priority=1), found(results, 2.0), found(RACE)))


@pytest.mark.parametrize(
    "was",
    [
        found(RACE)._replace(seconds=7.0),
        found(RACE)._replace(priority=3),
        found(RACE)._replace(event="e0"),
        found(RACE)._replace(only=("a",)),
        found(RACE)._replace(only=()),
    ],
)
def test_a_target_that_differs_is_updated_and_keeps_its_id(was: WantedTarget) -> None:
    plan = reconcile([KnownTarget(7, was, None)], [RACE], SETTINGS, KINDS, NOW)

    assert plan == Reconciliation(update=((7, found(RACE)),))


def test_a_target_that_vanished_and_comes_back_keeps_its_id() -> None:
    targets = Remembered(KnownTarget(7, found(RACE), None))

    assert targets.discover([]) == Reconciliation(gone=(7,))
    assert targets.discover([], wall=NOW + FORGET) == EMPTY
    assert targets.discover([RACE], wall=NOW + FORGET) == Reconciliation(update=((7, found(RACE)),))
    assert targets.targets == {7: KnownTarget(7, found(RACE), None)}


def test_a_target_that_is_gone_for_more_than_a_day_is_forgotten() -> None:
    targets = Remembered(KnownTarget(7, found(RACE), None))

    targets.discover([])

    assert targets.discover([], wall=NOW + FORGET + 1) == Reconciliation(delete=(7,))
    assert targets.discover([RACE], wall=NOW + FORGET + 1) == Reconciliation(insert=(found(RACE),))


def test_a_clock_that_was_set_back_forgets_nothing() -> None:
    assert reconcile([KnownTarget(7, found(RACE), NOW)], [], SETTINGS, KINDS, NOW - 10 * FORGET) == EMPTY


def test_the_targets_of_another_event_go() -> None:
    targets = Remembered()
    targets.discover([EVENT, RACE, OTHER_RACE])

    plan = targets.discover([Wanted("event", "e2", "e2"), Wanted("race", "r2", "e2")])

    assert plan.gone == (1, 2)
    assert [target.event for target in plan.insert] == ["e2"]
    assert plan.update == ((3, found(OTHER_RACE)._replace(event="e2")),), "this race is flown in both"


def test_a_kind_that_is_switched_off_stays_known() -> None:
    targets = Remembered()
    targets.discover([EVENT, RACE])
    off, _ = Keys(KINDS).read({"scheduler.raceIdleMs": "0"})

    assert targets.discover([EVENT, RACE], off) == Reconciliation(update=((2, found(RACE, 0.0)),))
    assert targets.discover([EVENT, RACE], off) == EMPTY
    assert targets.discover([EVENT, RACE]) == Reconciliation(update=((2, found(RACE)),))


def test_of_two_under_one_name_the_first_counts() -> None:
    twice = [replace(RACE, only=("a",)), replace(RACE, event="e9")]

    assert reconcile([], twice, SETTINGS, KINDS, NOW).insert == (found(twice[0]),)
    assert reconcile([KnownTarget(1, found(twice[0]), None)], twice, SETTINGS, KINDS, NOW) == EMPTY


@pytest.mark.parametrize("gone", [None, 0.0])
def test_targets_of_a_kind_that_the_source_does_not_know_are_left_alone(gone: float | None) -> None:
    by_hand = Wanted("weather", "w1", "e1")
    known = KnownTarget(1, found(by_hand, 5.0), gone)

    assert reconcile([known], [], SETTINGS, KINDS, NOW) == EMPTY
    assert reconcile([known], [by_hand], SETTINGS, KINDS, NOW) == EMPTY
    assert reconcile([], [by_hand], SETTINGS, KINDS, NOW) == EMPTY


def test_a_plan_cannot_name_what_is_not_discoverys_to_write() -> None:
    to_write = {"kind", "source_id", "event", "only", "seconds", "priority"}

    assert set(WantedTarget._fields) == to_write < set(PollingTarget.__struct_fields__)
    assert get_type_hints(Reconciliation) == {
        "insert": tuple[WantedTarget, ...],
        "update": tuple[tuple[int, WantedTarget], ...],
        "gone": tuple[int, ...],
        "delete": tuple[int, ...],
    }


texts = st.sampled_from(["a", "b", "c"])
only = st.none() | st.lists(texts, max_size=2).map(tuple)
wants = st.lists(st.builds(Wanted, st.sampled_from([kind.name for kind in KINDS]), texts, texts, only), max_size=12)
strange = st.builds(Wanted, st.just("weather"), texts, texts)
intervals = st.sampled_from(["0", "50", "1s"])
settings = st.builds(
    lambda full, race: Keys(KINDS).read({"scheduler.fullIntervalMs": full, "scheduler.raceIdleMs": race})[0],
    intervals,
    intervals,
)
rounds = st.lists(st.tuples(wants, settings, st.sampled_from([0.0, 10.0, FORGET, 2 * FORGET])), min_size=1, max_size=6)


@given(rounds, st.lists(strange, max_size=2, unique_by=lambda each: each.name))
def test_whatever_was_known_the_plan_leaves_exactly_what_is_wanted(
    rounds: list[tuple[list[Wanted], PollingSettings, float]], by_hand: list[Wanted]
) -> None:
    targets = Remembered(*(KnownTarget(number, found(each, 5.0), None) for number, each in enumerate(by_hand, 1)))
    wall = NOW
    for wanted, settings, later in rounds:
        wall += later
        before = dict(targets.targets)

        plan = targets.discover([*wanted, *by_hand], settings, wall)

        first = {each.name: each for each in reversed(wanted)}
        priorities = {kind.name: kind.priority for kind in KINDS}
        should_be = {
            name: found(each, settings.usual[each.kind], priorities[each.kind]) for name, each in first.items()
        }
        assert targets.polled() == should_be | {each.name: found(each, 5.0) for each in by_hand}
        for number in plan.delete:
            gone = before[number].gone
            assert gone is not None
            assert wall - gone > FORGET
        for number, each in targets.targets.items():
            was = before.get(number)
            assert was is None or was.found[:2] == each.found[:2], "an id stays with its name"
        assert targets.discover([*wanted, *by_hand], settings, wall) == EMPTY
