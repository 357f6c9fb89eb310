"""What a race day answers when it is asked: its documents, and everything that can go wrong with them."""

import json
import tracemalloc
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.worlds.race import (
    FAULTS,
    HUGE,
    OTHER,
    PIECE,
    PRESETS,
    RaceAnswer,
    RaceDay,
    RaceKind,
    RaceRules,
    RaceWeather,
)
from sanderling.worlds.race_day import DayRules
from sanderling.worlds.race_documents import CHANNELS
from sanderling.worlds.weather import TransportFault

SMALL = RaceRules(
    DayRules(pilots=5, late=1, removed=1, seats=2, rounds=2, aborted=1, first=2.0, heat=10.0, pause=5.0, lap=2.0)
)
DAY = RaceDay(1, SMALL)


def under(weather: RaceWeather) -> RaceDay:
    return RaceDay(1, replace(SMALL, weather=weather))


def meeting(kind: RaceKind) -> RaceDay:
    """A day on which every request meets it."""
    return under(RaceWeather(faults={kind: 1.0}))


def header(answer: RaceAnswer, name: str) -> str | None:
    return dict(answer.headers).get(name)


@given(st.lists(st.tuples(st.floats(-5, DAY.over + 5), st.sampled_from(DAY.paths)), max_size=20))
def test_the_same_questions_get_the_same_answers(questions: list[tuple[float, str]]) -> None:
    rules = replace(SMALL, weather=PRESETS["hostile"]().weather)
    one, other = RaceDay(7, rules), RaceDay(7, rules)

    assert [one.ask(path, {}, at) for at, path in questions] == [other.ask(path, {}, at) for at, path in questions]


@given(st.floats(-5, DAY.over + 5), st.floats(-5, DAY.over + 5))
def test_a_document_differs_only_if_a_change_lies_between(one: float, other: float) -> None:
    after, until = sorted((one, other))

    changed = {change.path for change in DAY.changes(after, until)}

    for path in DAY.paths:
        # Asked in an order that no clock would take: what is kept of a document must not show.
        late, early = DAY.document(path, until), DAY.document(path, after)
        assert path in changed or early == late
        if sum(change.path == path for change in DAY.changes(after, until)) == 1:
            assert early != late


def test_a_change_is_there_at_the_very_time_that_is_said() -> None:
    for change in DAY.changes(-inf, inf):
        # As seen by a clock on the wall, with what that leaves of the digits.
        at = DAY.began + change.at - DAY.began
        assert DAY.document(change.path, at) != DAY.document(change.path, change.at - 0.001)
        assert change in DAY.changes(at - 0.001, at)


def test_changes_of_a_day_are_those_of_its_parts() -> None:
    cuts = [-inf, *(at / 7 for at in range(int(DAY.over) * 7)), inf]

    parts = [change for after, until in pairwise(cuts) for change in DAY.changes(after, until)]

    assert parts == list(DAY.changes(-inf, inf)) == sorted(parts)
    assert {change.path for change in parts} == {*DAY.paths} - {CHANNELS}


def test_the_race_that_runs_is_the_active_one() -> None:
    for heat in DAY.heats:
        start, end = heat.start / 1000, heat.end / 1000
        assert [DAY.active(at) for at in (start - 0.001, start, end - 0.001, end)] == [None, heat.id, heat.id, None]


def test_a_race_that_is_added_later_is_missing_before() -> None:
    later = DAY.heats[-1]
    path, made = DAY.race_path(later.id), later.made / 1000

    before, after = DAY.ask(path, {}, made - 0.001), DAY.ask(path, {}, made)

    assert (before.status, before.kind, after.status, after.kind) == (
        404,
        RaceKind.MISSING,
        200,
        RaceKind.DOCUMENT,
    )


def test_nothing_says_whether_a_document_changed_unless_it_is_switched_on() -> None:
    plain, tagged, path = RaceDay(1, SMALL), RaceDay(1, replace(SMALL, etag=True)), DAY.path("Event")
    change = next(change for change in DAY.changes(0, inf) if change.path == path)

    first = tagged.ask(path, {}, change.at - 0.001)
    etag = header(first, "ETag") or ""
    same = tagged.ask(path, {"if-none-match": etag}, change.at - 0.001)
    other = tagged.ask(path, {"if-none-match": etag}, change.at)

    assert not {name for name, _ in plain.ask(path, {}, 0.0).headers} & {"ETag", "Last-Modified"}
    assert (same.status, same.body, same.kind) == (304, b"", RaceKind.UNCHANGED)
    assert (other.status, header(other, "ETag") == etag) == (200, False)


def test_a_document_is_cut_short_right_after_a_change_and_whole_later() -> None:
    day, cut = under(RaceWeather(half_written=0.05)), 0
    changes = [change for change in day.changes(0, inf) if day.document(change.path, change.at)]

    for change in changes:
        answer = day.ask(change.path, {}, change.at + 0.04)
        assert answer.kind is RaceKind.HALF_WRITTEN
        assert header(answer, "Content-Length") == str(len(answer.body))
        with pytest.raises(ValueError, match="line 1"):
            json.loads(answer.body)
        cut += 1
    times = [change.at for change in changes if change.path == day.path("Event")]
    assert [day.ask(day.path("Event"), {}, at + 0.05).kind for at in times] == [RaceKind.DOCUMENT] * len(times)
    assert cut > 50


def test_each_fault_is_what_it_says() -> None:
    path = DAY.path("Pilots")
    answers = {kind: meeting(kind).ask(path, {}, 0.0) for kind in FAULTS}

    assert {kind: answer.kind for kind, answer in answers.items()} == {kind: kind for kind in FAULTS}
    assert answers[RaceKind.ERROR].status == 500
    assert (answers[RaceKind.RESET].status, answers[RaceKind.RESET].fault) == (0, TransportFault.RESET)
    assert (answers[RaceKind.EMPTY].status, answers[RaceKind.EMPTY].body) == (200, b"")
    assert answers[RaceKind.SLOW].body == answers[RaceKind.HANG].body == DAY.document(path, 0.0)
    assert 0.8 <= answers[RaceKind.SLOW].latency < 1
    assert answers[RaceKind.HANG].latency > 100


def test_what_has_wrong_types_is_valid_json_all_the_same() -> None:
    day = meeting(RaceKind.WRONG)

    said = {day.ask(day.path("Event"), {}, 0.0).body for _ in range(100)}

    assert len(said) == 5
    for body in said:
        assert json.loads(body) != json.loads(DAY.document(DAY.path("Event"), 0.0) or b"")


def test_a_huge_document_is_made_while_it_is_sent() -> None:
    answer = meeting(RaceKind.HUGE).ask(DAY.path("Event"), {}, 0.0)

    tracemalloc.start()
    length = sum(len(piece) for _, piece in answer.pieces())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert header(answer, "Content-Length") == str(length)
    assert length == HUGE * len(PIECE) + len(answer.body) > 500_000_000
    assert peak < 100_000
    assert json.loads(PIECE + answer.body) == json.loads(answer.body)


def test_a_share_of_the_requests_meets_each_fault() -> None:
    day = under(RaceWeather(faults={RaceKind.ERROR: 0.2, RaceKind.RESET: 0.1}))

    kinds = Counter(day.ask(CHANNELS, {}, 0.0).kind for _ in range(2000))

    assert set(kinds) == {RaceKind.ERROR, RaceKind.RESET, RaceKind.DOCUMENT}
    assert kinds[RaceKind.ERROR] / 2000 == pytest.approx(0.2, abs=0.04)
    assert kinds[RaceKind.RESET] / 2000 == pytest.approx(0.1, abs=0.03)


def test_who_asks_more_than_the_quota_is_refused_and_told_when_to_come_back() -> None:
    day = under(RaceWeather(quota=5.0, retry_after=1.5))

    answers = [day.ask("/", {}, 10.0) for _ in range(7)]

    assert [answer.status for answer in answers] == [200] * 5 + [429] * 2
    assert header(answers[-1], "Retry-After") == "2"
    assert day.ask("/", {}, 11.0).kind is RaceKind.PAGE


def test_requests_are_counted_by_path_and_strangers_take_no_memory() -> None:
    day = RaceDay(1, SMALL)

    for number in range(50):
        day.ask(f"/secret/{number}", {}, 0.0)
    day.ask(f"{CHANNELS}?now", {}, 0.0)
    day.ask("/", {}, 0.0)

    assert day.tally.paths == {OTHER: 50, CHANNELS: 1, "/": 1}
    assert day.tally.statuses == {404: 50, 200: 2}
    assert (day.tally.asked, repr(day)) == (52, f"<RaceDay of {len(day.heats)} heats, asked 52 times>")


def test_a_whole_day_takes_no_more_memory_than_its_documents() -> None:
    day = RaceDay(1, SMALL)

    def all_of_it() -> int:
        for change in day.changes(-inf, inf):
            for path in day.paths:
                day.ask(path, {}, change.at)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    first, second = all_of_it(), all_of_it()
    tracemalloc.stop()

    largest = sum(len(day.document(path, inf) or b"") for path in day.paths)
    assert first < 2 * largest + 100_000
    assert abs(second - first) < 50_000


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_makes_a_day(name: str) -> None:
    day = RaceDay(3, PRESETS[name]())

    assert json.loads(day.document(day.path("Event"), day.over) or b"")[0]["ID"] == day.event
    assert len(day.heats) == {"demo": 2, "day": 22, "hostile": 22}[name]


def test_local_times_are_ahead_by_the_offset() -> None:
    ahead, behind = (RaceDay(1, replace(SMALL, utc_offset=hours)) for hours in (2.0, -5.0))

    starts = [json.loads(day.document(day.path("Event"), 0.0) or b"")[0]["Start"] for day in (ahead, behind)]

    assert starts == ["2027/01/15 10:00:00", "2027/01/15 3:00:00"]
