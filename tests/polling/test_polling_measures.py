"""What polling counts: under names that are ours, in bounded memory, and how punctual it was lately."""

from math import ceil

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.outcome import Code
from sanderling.polling.measures import LATELY, MOST_RUNS, REASONS, Late, PollingMeasures, Punctuality
from sanderling.stores.polling import Op
from sanderling.testing import FakeClock

KINDS, TABLES = ("race", "results"), ("races", "laps")
NAMES = st.text(max_size=8)


def measures(clock: FakeClock | None = None) -> PollingMeasures:
    return PollingMeasures(KINDS, TABLES, clock or FakeClock())


def ran(
    seen: PollingMeasures, kind: str = "race", code: str = "OK", *, late: float = 0.0, accelerated: bool = False
) -> None:
    seen.ran(kind, code, late=late, seconds=0.1, accelerated=accelerated)


def test_runs_are_counted_by_kind_and_code_and_those_that_went_wrong_by_category() -> None:
    seen = measures()
    for code in ("OK", "OK", "NOT_MODIFIED", "TIMEOUT", "DNS_ERROR", "RATE_LIMITED", "DEFERRED"):
        ran(seen, code=code)

    assert seen.runs["race", "OK"] == 2
    assert seen.runs.total() == 7
    assert seen.errors == {("race", "network"): 2, ("race", "rate_limiting"): 1}


def test_each_run_is_timed_by_its_kind_and_its_lateness_by_its_pace() -> None:
    seen = measures()
    seen.ran("race", "OK", late=0.003, seconds=0.06, accelerated=True)
    seen.ran("race", "OK", late=0.1, seconds=0.2, accelerated=False)
    seen.ran("results", "OK", late=0.2, seconds=1.0, accelerated=False)

    counts = seen
    assert {kind: found.total for kind, found in counts.seconds.items()} == pytest.approx({"race": 0.26, "results": 1})
    assert counts.lateness["accelerated"].total == pytest.approx(0.003)
    assert counts.lateness["usual"].total == pytest.approx(0.3)


def test_who_starts_early_is_not_late() -> None:
    seen = measures()
    seen.ran("race", "OK", late=-5.0, seconds=-1.0, accelerated=False)

    assert seen.lateness["usual"].buckets[0] == (0.001, 1)
    assert (seen.lateness["usual"].total, seen.seconds["race"].total) == (0.0, 0.0)
    assert seen.late["usual"] == Late(0.0, 0.0, 1)


@given(st.lists(st.tuples(NAMES, NAMES, NAMES), max_size=60))
def test_names_of_strangers_are_one_label_and_no_count_is_lost(names: list[tuple[str, str, str]]) -> None:
    seen = measures()
    for first, second, third in names:
        ran(seen, first, second)
        seen.missed(first, 2)
        seen.promoted(third)
        seen.changed(second, third, 3)

    counts = seen
    assert {kind for kind, _ in counts.runs} | {*counts.misses} | {*counts.seconds} <= {*KINDS, "other"}
    assert {code for _, code in counts.runs} <= {code.value for code in Code}
    assert {*counts.promotions} <= {*REASONS, "other"}
    assert {table for table, _ in counts.changes} <= {*TABLES, "other", "all"}
    assert {op for _, op in counts.changes} <= {*Op, "other"}
    number = len(names)
    sums = [sum(each.values()) for each in (counts.runs, counts.misses, counts.promotions, counts.changes)]
    assert sums == [number, 2 * number, number, 3 * number]


def test_names_of_the_source_are_labels_of_their_own() -> None:
    seen = measures()
    ran(seen, "results", "SKIPPED")
    seen.missed("results", 4)
    seen.promoted("parent")
    seen.changed("laps", Op.INSERT, 2)
    seen.changed("laps", "insert")

    assert seen.runs == {("results", "SKIPPED"): 1}
    assert seen.misses == {"race": 0, "results": 4}
    assert seen.promotions["parent"] == 1
    assert seen.changes == {("laps", "insert"): 3}
    assert {type(op) for _, op in seen.changes} == {str}, "to be written as JSON"


def test_a_purge_is_of_all_tables() -> None:
    seen = measures()
    seen.changed("", Op.PURGE)

    assert seen.changes == {("all", "purge"): 1}


def test_what_is_watched_for_rising_begins_at_zero() -> None:
    counts = measures()

    assert counts.misses == {"race": 0, "results": 0}
    assert counts.promotions == dict.fromkeys(REASONS, 0)
    assert counts.discoveries == {"ok": 0, "failed": 0}
    assert {*counts.lateness} == {"accelerated", "usual"}


def test_a_discovery_is_as_old_as_the_last_that_went_well() -> None:
    clock = FakeClock(now=100.0)
    seen = measures(clock)
    clock.advance(5)
    assert seen.discovery_age == 5, "none yet: since the start"

    seen.discovered(ok=True)
    clock.advance(7)
    seen.discovered(ok=False)
    clock.advance(1)

    assert seen.discovery_age == 8
    assert seen.discoveries == {"ok": 1, "failed": 1}


def test_batches_are_counted_by_their_size() -> None:
    seen = measures()
    seen.wrote(1)
    seen.wrote(700)

    assert seen.batches.total == 701
    assert (1000.0, 1) in seen.batches.buckets


def test_what_was_handed_out_does_not_change_any_more() -> None:
    seen = measures()
    ran(seen)
    before, again = tuple(seen.metrics()), msgspec.json.encode(tuple(seen.metrics()))
    ran(seen)
    seen.wrote(9)

    assert msgspec.json.encode(before) == again != msgspec.json.encode(tuple(seen.metrics()))


# How late runs were lately.


def test_nothing_is_said_of_a_pace_without_runs() -> None:
    seen = measures()
    ran(seen, late=0.5, accelerated=True)

    assert seen.late == {"accelerated": Late(0.5, 0.5, 1)}


def test_only_the_last_seconds_count() -> None:
    clock = FakeClock()
    seen = measures(clock)
    ran(seen, late=9.0)
    clock.advance(LATELY / 2)
    ran(seen, late=0.1)
    assert seen.late["usual"] == Late(0.1, 9.0, 2)

    clock.advance(LATELY / 2)
    assert seen.late["usual"] == Late(0.1, 0.1, 1)

    clock.advance(LATELY / 2)
    assert seen.late == {}


@given(st.lists(st.floats(0, 100), min_size=1, max_size=300))
def test_so_many_percent_are_at_most_that_late(lates: list[float]) -> None:
    seen = Punctuality(FakeClock())
    for late in lates:
        seen.add(late)

    found = seen.lately()

    assert found is not None
    for percent, value in ((50, found.p50), (99, found.p99)):
        assert value in lates
        assert sum(late <= value for late in lates) >= ceil(percent * len(lates) / 100)
        assert sum(late < value for late in lates) < ceil(percent * len(lates) / 100)


@pytest.mark.parametrize(("every", "seconds"), [(0.2, 3.0), (0.2, 60.0), (0.001, 30.0), (4.0, 60.0)])
def test_the_rate_is_that_of_the_last_seconds(every: float, seconds: float) -> None:
    clock = FakeClock()
    seen = measures(clock)
    for number in range(round(seconds / every)):
        clock.advance_to((number + 1) * every)
        ran(seen, accelerated=number % 2 == 0)

    assert seen.rate == pytest.approx(1 / every, abs=1 / LATELY + 0.01 / every)


def test_the_rate_is_nothing_before_any_time_has_passed_and_after_a_long_silence() -> None:
    clock = FakeClock()
    seen = measures(clock)
    ran(seen)
    assert seen.rate == 0.0

    clock.advance(LATELY)
    assert seen.rate == 0.0


def test_what_is_remembered_is_bounded() -> None:
    seen = Punctuality(FakeClock())
    for number in range(3 * MOST_RUNS):
        seen.add(float(number))

    assert seen.lately() == Late(2.5 * MOST_RUNS - 1, 2.99 * MOST_RUNS - 1, MOST_RUNS), "the latest are kept"
