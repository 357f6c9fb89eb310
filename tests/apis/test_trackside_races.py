"""Which race has its turn, which is flown, and which is the one to look at."""

import random
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from sanderling.apis.polled import TargetActivity, TargetName
from sanderling.apis.trackside_races import activity_of
from sanderling.stores.documents import SourceRow

EVENT = "this event"
MORNING, NOON, EVENING = "morning", "noon", "evening"


def a_round(key: str, order: int | None, event: str = EVENT) -> SourceRow:
    return SourceRow("rounds", key, {"event": event, "round_order": order})


ROUNDS = [a_round(NOON, 200), a_round(EVENING, None), a_round(MORNING, 100)]

WAITING = (None, None)
FLYING = ("2026-05-03T09:00:00", None)
OVER = ("2026-05-03T09:00:00", "2026-05-03T09:02:00")


def a_race(
    key: str,
    times: tuple[str | None, str | None] = WAITING,
    place: tuple[str | None, int | None] = (MORNING, 1),
    *,
    valid: bool | None = True,
    event: str = EVENT,
) -> SourceRow:
    (start, end), (in_round, number) = times, place
    values = {"event": event, "round": in_round, "race_number": number, "valid": valid}
    return SourceRow("races", key, {**values, "start_local": start, "end_local": end})


def activity(*races: SourceRow) -> TargetActivity:
    return activity_of(EVENT, [*races, *ROUNDS])


def heats(*times: tuple[str | None, str | None]) -> list[SourceRow]:
    return [a_race(str(number), each, (MORNING, number)) for number, each in enumerate(times, 1)]


def name(key: str) -> TargetName:
    return TargetName("race", key)


def test_races_are_numbered_by_round_then_by_number_and_invalid_ones_have_no_turn() -> None:
    found = activity(
        a_race("last", place=(None, 1)),
        a_race("fifth", place=(EVENING, 1)),
        a_race("fourth", place=(NOON, None)),
        a_race("third", place=(NOON, 1)),
        a_race("never", place=(MORNING, 1), valid=False),
        a_race("nor this", place=(MORNING, 1), valid=None),
        a_race("second", place=(MORNING, 10)),
        a_race("first", place=(MORNING, 9)),
    )

    in_turn = ["first", "second", "third", "fourth", "fifth", "last"]
    assert found.order == {name(key): place for place, key in enumerate(in_turn, 1)} | {
        name("never"): 0,
        name("nor this"): 0,
    }


def test_the_race_that_has_begun_and_not_ended_is_active_and_current() -> None:
    found = activity(*heats(OVER, WAITING, FLYING, WAITING))

    assert found.active == {name("3")}
    assert found.current == name("3")


def test_of_two_races_in_the_air_the_first_in_order_is_active() -> None:
    assert activity(*heats(OVER, FLYING, FLYING)).active == {name("2")}


def test_an_invalid_race_is_never_active() -> None:
    found = activity(a_race("1", FLYING, valid=False), a_race("2", place=(MORNING, 2)))

    assert (found.active, found.current) == (frozenset(), name("2"))


def test_between_races_the_one_after_the_last_completed_is_current_and_none_is_active() -> None:
    found = activity(*heats(OVER, WAITING, OVER, WAITING, WAITING))

    assert (found.active, found.current) == (frozenset(), name("4"))


def test_after_the_final_the_final_is_current_and_none_is_active() -> None:
    found = activity(*heats(OVER, OVER))

    assert (found.active, found.current) == (frozenset(), name("2"))


def test_before_the_first_race_the_first_is_current_and_none_is_active() -> None:
    found = activity(*heats(WAITING, WAITING))

    assert (found.active, found.current) == (frozenset(), name("1"))


def test_a_race_that_ended_without_having_begun_was_not_flown() -> None:
    found = activity(*heats((None, "2026-05-03T09:02:00"), WAITING))

    assert (found.active, found.current) == (frozenset(), name("1"))


def test_without_races_nothing_is_current() -> None:
    assert activity() == TargetActivity()
    assert activity(a_race("1", valid=False)).current is None


def test_races_of_other_events_and_rows_of_other_tables_do_not_count() -> None:
    found = activity(
        a_race("theirs", FLYING, event="another"),
        SourceRow("events", EVENT, {"name": "Cup"}),
        SourceRow("results", "r", {"event": EVENT, "race": "theirs"}),
        *heats(OVER),
    )

    assert found == TargetActivity(frozenset(), name("1"), {name("1"): 1})


@dataclass(frozen=True)
class Flown:
    """A race of the slow twin."""

    key: str
    order: int
    started: bool
    ended: bool


def slowly(races: list[Flown]) -> tuple[str | None, str | None]:
    """The active and the current race, one rule after the other."""
    active = [race for race in races if race.started and not race.ended]
    completed = [race.order for race in races if race.started and race.ended]
    by_order = {race.order: race.key for race in races}
    if active:
        lowest = min(active, key=lambda race: race.order).key
        return lowest, lowest
    if completed and max(completed) + 1 in by_order:
        return None, by_order[max(completed) + 1]
    if completed:
        return None, by_order[max(completed)]
    return None, by_order.get(1)


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=8), st.randoms(use_true_random=False))
def test_it_is_as_the_rules_say_one_by_one(
    days: list[tuple[bool, bool, bool]],
    shuffled: random.Random,
) -> None:
    rows: list[SourceRow] = []
    twin: list[Flown] = []
    for number, (valid, started, ended) in enumerate(days, 1):
        times = ("2026-05-03T09:00:00" if started else None, "2026-05-03T09:02:00" if ended else None)
        rows.append(a_race(str(number), times, (MORNING, number), valid=valid))
        if valid:
            twin.append(Flown(str(number), len(twin) + 1, started, ended))
    shuffled.shuffle(rows)

    found = activity(*rows)

    active, current = slowly(twin)
    assert found.active == ({name(active)} if active else set())
    assert found.current == (name(current) if current else None)
    assert {name(race.key): race.order for race in twin} == {key: place for key, place in found.order.items() if place}
