"""What is pure: phases, the grid, pauses, which race runs, settings, and documents into rows."""

import json
from random import Random
from typing import Any

import pytest

from sanderling.options import OptionError
from sanderling.polling.cadence import fnv64, live_pause, next_on_grid, next_pause, phase
from sanderling.polling.options import PollingOptions
from sanderling.polling.race import RaceRow, standing
from sanderling.polling.settings import Settings, parse_pairs, read_settings, typed_rows
from sanderling.polling.trackside import DocumentError, read_current, read_document, read_event_id

EVENT = "11111111-1111-1111-1111-111111111111"
RACE = "22222222-2222-2222-2222-222222222222"


@pytest.mark.parametrize(
    ("text", "value"),
    [("", 0xCBF29CE484222325), ("a", 0xAF63BD4C8601B7BE), ("foobar", 0x340D8765A4DDA9C2)],
)
def test_fnv64_is_that_of_its_authors(text: str, value: int) -> None:
    assert fnv64(text) == value
    assert phase(text, 5000) == value % 5000 / 1000


@pytest.mark.parametrize(
    ("due", "begun", "following", "missed"),
    [(1.0, 1.0, 1.2, 0), (1.0, 1.19, 1.2, 0), (1.0, 1.2, 1.4, 1), (1.0, 1.75, 1.8, 3), (1.0, 4.0, 4.2, 15)],
)
def test_a_grid_is_kept_and_what_was_missed_is_not_made_up_for(
    due: float, begun: float, following: float, missed: int
) -> None:
    found, left_out = next_on_grid(due, 0.2, begun)

    assert found == pytest.approx(following)
    assert left_out == missed


def test_what_is_not_live_has_the_jitter_and_the_backoff_of_the_seed() -> None:
    random = Random(1)
    pauses = [next_pause(5000, 150, 0, random) for _ in range(1000)]

    assert 5.0 <= min(pauses) < 5.01
    assert 5.14 < max(pauses) <= 5.15
    assert [next_pause(5000, 150, failures, random) for failures in (1, 2, 3, 6, 7, 100)] == [1, 2, 4, 32, 60, 60]


def test_what_is_live_waits_less_than_a_second_after_failures() -> None:
    assert [live_pause(0.2, failures) for failures in (1, 2, 3, 50)] == [0.2, 0.4, 0.8, 0.8]
    assert live_pause(1.0, 9) == 1.0


def race(name: str, start: str | None, end: str | None, number: int, *, valid: bool = True) -> RaceRow:
    return RaceRow(name, valid, start, end, number // 10, number)


UNSET, EARLY, LATE = "0001/01/01 0:00:00", "2025/09/01 9:43:20.787", "2025/09/01 10:01:02"
STANDINGS: list[tuple[list[RaceRow], str | None, str | None, str | None]] = [
    ([], None, None, None),
    ([race("a", None, None, 1), race("b", None, None, 2)], None, None, "a"),
    ([race("b", None, None, 12), race("a", None, None, 2)], None, None, "a"),
    ([race("a", EARLY, LATE, 1), race("b", None, None, 2)], None, None, "b"),
    ([race("a", None, None, 1), race("b", EARLY, LATE, 2), race("c", None, None, 3)], None, None, "c"),
    ([race("a", None, None, 1), race("b", EARLY, LATE, 2)], None, None, "a"),  # skipped earlier, and all else is over
    ([race("a", EARLY, None, 1), race("b", None, None, 2)], None, "a", "b"),
    ([race("a", EARLY, UNSET, 1), race("b", "", "", 2)], None, "a", "b"),
    ([race("a", EARLY, None, 1, valid=False), race("b", None, None, 2)], None, None, "b"),
    ([race("a", EARLY, None, 1), race("b", LATE, None, 2)], None, "b", None),  # a was never ended
    ([race("a", EARLY, None, 1), race("b", LATE, None, 2)], "a", "a", "a"),  # upstream knows better
    ([race("a", EARLY, LATE, 1), race("b", None, None, 2), race("c", None, None, 3)], "c", None, "c"),
    ([race("a", EARLY, LATE, 1)], None, None, None),
]


@pytest.mark.parametrize(("races", "selected", "active", "following"), STANDINGS)
def test_which_race_runs_and_which_is_next(
    races: list[RaceRow], selected: str | None, active: str | None, following: str | None
) -> None:
    assert standing(races, selected) == (active, following)


SETTINGS = [
    ({}, Settings(), 0),
    ({"scheduler.raceIdleMs": " 3000 ", "scheduler.burst": "9"}, Settings(raceIdleMs=3000, burst=9), 0),
    ({"scheduler.enabled": " OFF "}, Settings(enabled=False), 0),
    ({"scheduler.enabled": "perhaps"}, Settings(), 0),
    ({"scheduler.concurrency": "0", "scheduler.burst": "x", "scheduler.jitterMs": "1e9"}, Settings(), 3),
    ({"ui.title": "mine"}, Settings(), 0),
]


@pytest.mark.parametrize(("rows", "settings", "faults"), SETTINGS)
def test_what_the_rows_of_settings_say(rows: dict[str, str], settings: Settings, faults: int) -> None:
    found, sentences = read_settings(rows)

    assert found == settings
    assert len(sentences) == faults


def test_only_what_is_typed_is_written() -> None:
    options = PollingOptions(
        url="http://localhost:8080/", out="x", full_interval="3s", race_active="100ms", enabled=False
    )

    assert typed_rows(options) == {
        "scheduler.fullIntervalMs": "3000",
        "scheduler.raceActiveMs": "100",
        "scheduler.enabled": "false",
    }
    assert parse_pairs(("burst=3", "scheduler.jitterMs=0")) == {"scheduler.burst": "3", "scheduler.jitterMs": "0"}
    with pytest.raises(OptionError, match="did you mean burst"):
        parse_pairs(("brust=3",))
    with pytest.raises(OptionError, match="from 1 to"):
        parse_pairs(("burst=0",))


def test_the_event_is_that_of_the_page() -> None:
    page = b'<script>var eventManager = new EventManager("events/%s");</script>' % EVENT.encode()
    assert read_event_id(page) == EVENT
    for other in (b"", b"<html>hello</html>", b'new EventManager("events/")', b'new EventManager("events/../x")'):
        with pytest.raises(DocumentError):
            read_event_id(other)


def test_what_upstream_has_selected() -> None:
    assert read_current(b'{"CurrentRace":"%s"}' % RACE.encode()) == (True, RACE)
    assert read_current(b'{"CurrentRace":null}') == (True, None)
    assert read_current(b'{"CurrentRace":"../x"}') == (True, None)
    for other in (b"", b"<html>", b"[]", b"{}", b"[" * 100_000):
        assert read_current(other) == (False, None)


def a_race(**changes: Any) -> dict[str, Any]:
    return {
        "ID": RACE, "Start": "2025/09/01 2:43:20.787", "End": UNSET, "RaceNumber": 3, "Valid": True, "TargetLaps": 3,
        "PilotChannels": [{"ID": "p1", "Pilot": "a", "Channel": "c"}],
        "Detections": [{"ID": "d1", "Valid": True, "LapNumber": 0, "Time": "2025/09/01 2:43:21"}],
        "Laps": [{"ID": "l1", "Detection": "d1", "LengthSeconds": 2.5}], "GamePoints": None, **changes,
    }  # fmt: skip


def read(kind: str, content: Any, source_id: str = RACE) -> Any:
    return read_document(kind, EVENT, source_id, json.dumps(content).encode())


def test_a_race_is_its_rows() -> None:
    found = read("race", [a_race()])

    assert found.rows["races"][RACE] == {
        "event": EVENT, "start": "2025/09/01 2:43:20.787", "end": None, "raceNumber": 3, "valid": True, "targetLaps": 3
    }  # fmt: skip
    assert found.rows["laps"] == {"l1": {"event": EVENT, "race": RACE, "detection": "d1", "lengthSeconds": 2.5}}
    assert {scope.table for scope in found.scopes} == {"pilotChannels", "detections", "laps"}
    assert not found.odd


@pytest.mark.parametrize("value", [None, 5, "x", {}, True])
@pytest.mark.parametrize("name", ["Laps", "Detections", "PilotChannels"])
def test_an_odd_list_costs_that_list_only(name: str, value: object) -> None:
    found = read("race", [a_race(**{name: value, "TargetLaps": 9})])

    assert found.rows["races"][RACE]["targetLaps"] == 9
    assert name[0].lower() + name[1:] not in found.rows
    assert len(found.scopes) == 2


@pytest.mark.parametrize("value", [None, "3", 2**70, [], 1e308, True])
def test_an_odd_value_costs_its_field_only(value: object) -> None:
    found = read("race", [a_race(RaceNumber=value)])

    assert "raceNumber" not in found.rows["races"][RACE]
    assert found.rows["races"][RACE]["targetLaps"] == 3
    assert found.odd == ["races.RaceNumber"]


def test_a_list_with_an_item_that_cannot_be_read_deletes_nothing() -> None:
    found = read("race", [a_race(Laps=[{"ID": "l1"}, {"ID": "../../x"}, None])])

    assert list(found.rows["laps"]) == ["l1"]
    assert "laps" not in {scope.table for scope in found.scopes}


def test_results_are_told_apart_by_race_and_pilot() -> None:
    rows = [{"ID": "new each time", "Pilot": pilot, "ResultType": "Race", "DNF": False} for pilot in ("a", "b")]
    found = read("results", rows)

    assert list(found.rows["results"]) == [f"{RACE}:a:Race", f"{RACE}:b:Race"]
    assert found.rows["results"][f"{RACE}:a:Race"] == {
        "event": EVENT, "race": RACE, "pilot": "a", "resultType": "Race", "dnf": False
    }  # fmt: skip


def test_an_event_lists_its_races_and_pilots() -> None:
    content = {"ID": EVENT, "Laps": 3, "PBLaps": 1, "Races": [RACE, RACE, "../x", None], "RemovedPilots": ["b"],
               "PilotChannels": [{"Pilot": "a", "Channel": "c"}]}  # fmt: skip
    found = read("event", [content], EVENT)

    assert found.races == [RACE]
    assert found.rows["events"][EVENT]["pbLaps"] == 1
    assert found.rows["eventPilots"][f"{EVENT}:b"]["removed"] is True
    assert read("event", [content | {"Races": None}], EVENT).races is None
    assert not read("event", [content | {"RemovedPilots": None}], EVENT).scopes


@pytest.mark.parametrize("body", [b"", b"  ", b"<html>", b"[{", b"{}", b"null", b"[]", b"[" * 100_000, b"\xff\xfe"])
@pytest.mark.parametrize("kind", ["event", "pilots", "race"])
def test_what_is_no_document_changes_nothing(kind: str, body: bytes) -> None:
    if kind == "pilots" and body == b"[]":
        pytest.skip("an event may have none")
    if kind == "race" and not body.strip():
        assert read_document(kind, EVENT, RACE, body).absent
        return
    with pytest.raises(DocumentError):
        read_document(kind, EVENT, EVENT, body)
