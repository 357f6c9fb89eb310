"""The documents of a race day: at every time valid, complete, and such that everything they name is somewhere."""

import re
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sanderling.worlds.race_day import DayRules, RacePlan
from sanderling.worlds.race_documents import CHANNELS, TEMPLATES, ZERO_DATE, RaceDocuments, date, front_page, span

BEGAN = datetime(2027, 1, 15, 9, 58, tzinfo=UTC)
SMALL = DayRules(pilots=5, late=1, removed=1, seats=2, rounds=2, aborted=1, first=2.0, heat=10.0, pause=5.0, lap=2.0)
PLAN = RacePlan.make(1, SMALL)
DOCUMENTS = RaceDocuments(PLAN, SMALL, BEGAN, 1)
DATE = re.compile(r"\d{4}/\d\d/\d\d (0|[1-9]\d?):\d\d:\d\d(\.\d{0,2}[1-9])?")
GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
times = st.integers(-1000, PLAN.over + 1000)


def rows(name: str, now: int) -> list[dict[str, Any]]:
    body = DOCUMENTS.body(DOCUMENTS.path(name), now)
    assert body is not None
    listed: list[dict[str, Any]] = msgspec.json.decode(body) if body else []
    return listed


def races(now: int) -> list[dict[str, Any]]:
    bodies = (DOCUMENTS.body(DOCUMENTS.race_path(heat), now) for heat in PLAN.heats)
    return [msgspec.json.decode(body)[0] for body in bodies if body is not None]


@given(times)
def test_every_document_is_an_array_of_objects_with_ids_of_their_own(now: int) -> None:
    for path in DOCUMENTS.changes():
        body = DOCUMENTS.body(path, now)
        listed = msgspec.json.decode(body) if body else []
        assert all(GUID.fullmatch(row["ID"]) and "ExternalID" in row for row in listed)
        assert len({row["ID"] for row in listed}) == len(listed)


@given(times)
def test_what_a_document_names_is_in_another(now: int) -> None:
    (event,), pilots = rows("Event", now), {row["ID"] for row in rows("Pilots", now)}
    rounds, known = {row["ID"] for row in rows("Rounds", now)}, {row["ID"] for row in TEMPLATES.channels}
    flown = {race["ID"]: race for race in races(now)}

    # Files are written one after the other: what is listed is there, what is there may not be listed yet.
    assert set(event["Rounds"]) < rounds
    assert set(event["Races"]) <= set(flown)
    assert set(event["Channels"]) <= known
    assert {seat["Pilot"] for seat in event["PilotChannels"]} <= pilots
    assert set(event["RemovedPilots"]) <= pilots
    for race in flown.values():
        detections = {row["ID"]: row for row in race["Detections"]}
        assert {row["Detection"] for row in race["Laps"]} <= set(detections)
        assert {row["Pilot"] for row in detections.values()} <= {seat["Pilot"] for seat in race["PilotChannels"]}
        assert {seat["Channel"] for seat in race["PilotChannels"]} <= set(event["Channels"])
    for result in rows("Results", now):
        assert {result["Pilot"]} <= pilots
        assert flown[result["Race"]]["End"] != ZERO_DATE


@given(times)
def test_a_race_has_started_and_ended_when_it_says_so(now: int) -> None:
    for heat, race in zip([heat for heat in PLAN.heats if heat.made <= now], races(now), strict=True):
        assert (race["Start"] == ZERO_DATE, race["End"] == ZERO_DATE) == (now < heat.start, now < heat.end)
        assert race["Valid"] is not (heat.aborted and now >= heat.end)
        assert all(DATE.fullmatch(race[name]) for name in ("Start", "End"))
        assert all(DATE.fullmatch(row["Time"]) for row in race["Detections"])


@pytest.mark.parametrize("seed", [1, 2])
def test_documents_change_exactly_when_they_are_said_to(seed: int) -> None:
    """The slow and obvious way: look at everything twenty times a second."""
    documents = RaceDocuments(plan := RacePlan.make(seed, SMALL), SMALL, BEGAN, seed)
    changes = documents.changes()

    for path, when in changes.items():
        bodies = [(at, documents.body(path, at)) for at in range(-1000, plan.over + 1000, 50)]
        for (before, one), (after, other) in pairwise(bodies):
            said = any(at in when for at in range(before + 1, after + 1))
            assert (one != other) is said, (path, before, after)


@settings(max_examples=15)
@given(st.integers())
def test_every_change_that_is_said_is_one_to_the_millisecond(seed: int) -> None:
    documents = RaceDocuments(plan := RacePlan.make(seed, SMALL), SMALL, BEGAN, seed)

    for path, when in documents.changes().items():
        for at in when:
            if -1000 < at <= plan.over:
                assert documents.body(path, at - 1) != documents.body(path, at), (path, at)


def test_there_are_no_bytes_until_there_are_results() -> None:
    first = next(heat for heat in PLAN.heats if not heat.aborted)

    assert DOCUMENTS.body(DOCUMENTS.path("Results"), first.results - 1) == b""
    assert [row["Position"] for row in rows("Results", first.results)] == list(range(1, len(first.flyers) + 1))


def test_an_aborted_race_has_no_results() -> None:
    aborted = {heat.id for heat in PLAN.heats if heat.aborted}

    assert len(aborted) == 1
    assert not aborted & {row["Race"] for row in rows("Results", PLAN.over)}
    assert {row["Race"] for row in rows("Results", PLAN.over)} | aborted == {heat.id for heat in PLAN.heats}


def test_who_has_most_laps_that_count_is_first() -> None:
    for heat in PLAN.heats:
        counted = dict.fromkeys((PLAN.pilots[seat.pilot] for seat in heat.flyers), 0)
        for each in heat.passes:
            counted[PLAN.pilots[each.seat.pilot]] += bool(each.lap and each.valid(heat.end))
        ranked = [counted[row["Pilot"]] for row in rows("Results", PLAN.over) if row["Race"] == heat.id]
        assert ranked == sorted(ranked, reverse=True)


def test_the_practice_is_a_round_that_the_event_does_not_list() -> None:
    listed = rows("Event", PLAN.over)[0]["Rounds"]

    others = [row for row in rows("Rounds", PLAN.over) if row["ID"] not in listed]

    assert [row["Valid"] for row in others] == [False]


def test_there_are_81_channels_of_which_six_are_used() -> None:
    body = DOCUMENTS.body(CHANNELS, 0)
    assert body is not None
    listed = msgspec.json.decode(body)
    event = rows("Event", 0)[0]

    assert len(listed) == 81
    assert {row["ChannelPrefix"] for row in listed} == {"\0", "R"}
    used = [f"{row['ShortBand']}{row['Number']}" for key in event["Channels"] for row in listed if row["ID"] == key]
    assert used == event["ChannelDisplayNames"]
    assert (len(event["Channels"]), len(event["ChannelColors"])) == (6, 8)


def test_what_was_never_there_is_none() -> None:
    assert DOCUMENTS.body("/events/none/Event.json", 0) is None
    assert DOCUMENTS.body(DOCUMENTS.path("Track"), 0) is None


def test_the_front_page_names_the_event() -> None:
    found = re.search(rb'var eventManager = new EventManager\("events/([a-z0-9-]+)"', front_page(PLAN.event))

    assert found is not None
    assert found[1].decode() == PLAN.event


@pytest.mark.parametrize(
    ("at", "written"),
    [
        (0, "2027/01/15 9:58:00"),
        (787, "2027/01/15 9:58:00.787"),
        (120_430, "2027/01/15 10:00:00.43"),
        (500, "2027/01/15 9:58:00.5"),
        (-36_000_000, "2027/01/14 23:58:00"),
        (50_520_001, "2027/01/16 0:00:00.001"),
    ],
)
def test_dates_have_no_more_digits_than_they_need(at: int, written: str) -> None:
    assert date(BEGAN, at) == written


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(120, "00:02:00"), (0.5, "00:00:00.5000000"), (511.5605717, "00:08:31.5605717"), (0, "00:00:00")],
)
def test_spans_have_seven_digits_or_none(seconds: float, written: str) -> None:
    assert span(seconds) == written
