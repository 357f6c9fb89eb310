"""The reports are what the real API's are like: what a strict reader of those expects holds for each."""

import json
from datetime import datetime
from random import Random
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.worlds.game_reports import WITCH_QUEEN, Form, Reports

NUMBER, NOW = 16_000_000_123, 1_800_000_000.25
BITS = st.integers(0, 2**64 - 1)
REPORTS = Reports(Random(1), raids=0.5)
RAIDS = Reports(Random(1), raids=1.0)
OTHERS = Reports(Random(1), raids=0.0)
CHANCE = Random(7)
MANY = [CHANCE.getrandbits(64) for _ in range(150)]


def response(body: bytes) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(body)
    assert (report["ErrorCode"], report["ErrorStatus"], report["ThrottleSeconds"]) == (1, "Success", 0)
    found: dict[str, Any] = report["Response"]
    return found


def stat(entry: dict[str, Any], name: str) -> float:
    value = entry["values"][name]["basic"]["value"]
    assert isinstance(value, float)
    return value


@given(BITS, st.integers(1, 2**63 - 1), st.sampled_from([WITCH_QUEEN - 10**6, WITCH_QUEEN + 10**6, int(NOW)]))
def test_a_report_passes_a_strict_reader(bits: int, number: int, completed: int) -> None:
    report = response(REPORTS.body(number, bits, completed + 0.75))
    details, entries = report["activityDetails"], report["entries"]
    seconds = stat(entries[0], "activityDurationSeconds")

    assert details["instanceId"] == str(number)
    assert (details["mode"] == 4) == REPORTS.raid(bits)
    assert datetime.fromisoformat(report["period"]).timestamp() + seconds == completed
    assert ("activityWasStartedFromBeginning" in report) == (completed > WITCH_QUEEN)
    assert ("startingPhaseIndex" in report) == (completed < WITCH_QUEEN)
    assert 1 <= len(entries) <= 12
    for entry in entries:
        assert stat(entry, "playerCount") == len(entries)
        assert stat(entry, "activityDurationSeconds") == seconds > 0
        assert stat(entry, "startSeconds") >= 0
        assert 0 < stat(entry, "timePlayedSeconds") <= seconds - stat(entry, "startSeconds")
        assert len(entry["values"]) + len(entry["extended"]["values"]) == 40
        assert 0 < int(entry["player"]["destinyUserInfo"]["membershipId"]) < 2**63
        assert 0 < int(entry["characterId"]) < 2**63


@given(BITS)
def test_a_raid_has_six_players_and_a_player_may_have_two_characters(bits: int) -> None:
    entries = response(RAIDS.body(NUMBER, bits, NOW))["entries"]
    players = {entry["player"]["destinyUserInfo"]["membershipId"] for entry in entries}

    assert len(players) == 6
    assert len({entry["characterId"] for entry in entries}) == len(entries)
    assert all(entry["extended"]["weapons"] for entry in entries)


def test_sizes_are_those_of_real_reports() -> None:
    raids = [len(RAIDS.body(NUMBER, bits, NOW)) for bits in MANY]
    others = [len(OTHERS.body(NUMBER, bits, NOW)) for bits in MANY]

    assert 40_000 < min(raids) < max(raids) < 85_000
    assert 2000 < min(others) < max(others) < 60_000
    assert 8000 < median(others) < 25_000


def test_there_are_raids_with_a_second_character_unfinished_ones_and_old_codes() -> None:
    reports = [response(RAIDS.body(NUMBER, bits, NOW)) for bits in MANY]
    first = [report["entries"][0] for report in reports]

    assert {len(report["entries"]) for report in reports} == {6, 7, 8}
    assert {stat(entry, "completed") for entry in first} == {0.0, 1.0}
    assert {report["activityWasStartedFromBeginning"] for report in reports} == {True, False}
    assert any(0 in report["selectedSkullHashes"] for report in reports)
    codes = [entry["player"]["destinyUserInfo"]["bungieGlobalDisplayNameCode"] for entry in first]
    assert min(codes) < 1000 < max(codes)


def test_a_player_has_one_name_in_all_reports() -> None:
    names: dict[str, set[tuple[str, int]]] = {}
    for bits in MANY:
        for entry in response(REPORTS.body(NUMBER, bits, NOW))["entries"]:
            info = entry["player"]["destinyUserInfo"]
            known = names.setdefault(info["membershipId"], set())
            known.add((info["displayName"], info["bungieGlobalDisplayNameCode"]))

    assert len(names) > 200
    assert all(len(known) == 1 for known in names.values())


def test_the_share_of_raids_is_kept() -> None:
    few = Reports(Random(1), raids=0.04)

    assert sum(few.raid(CHANCE.getrandbits(64)) for _ in range(20_000)) == pytest.approx(800, rel=0.15)
    assert not any(OTHERS.raid(bits) for bits in MANY)
    assert all(RAIDS.raid(bits) for bits in MANY)


@given(BITS)
def test_a_bare_report_has_all_but_what_is_extended(bits: int) -> None:
    whole = response(REPORTS.body(NUMBER, bits, NOW))
    bare = response(REPORTS.body(NUMBER, bits, NOW, Form.BARE))

    for entry in whole["entries"]:
        del entry["extended"]
    assert bare == whole


@given(BITS)
def test_a_thin_report_has_one_entry_and_says_there_are_more(bits: int) -> None:
    whole = response(RAIDS.body(NUMBER, bits, NOW))
    thin = response(RAIDS.body(NUMBER, bits, NOW, Form.THIN))

    assert thin == {**whole, "entries": whole["entries"][:1]}
    assert stat(thin["entries"][0], "playerCount") > 1


def test_the_same_chance_makes_the_same_report() -> None:
    again = Reports(Random(1), raids=0.5)
    other = Reports(Random(2), raids=0.5)

    made = [[each.body(NUMBER, bits, NOW) for bits in MANY[:20]] for each in (REPORTS, again, other)]

    assert made[0] == made[1] != made[2]


@pytest.mark.parametrize("raids", [-0.1, 1.1, float("nan")])
def test_a_share_that_is_none_is_refused(raids: float) -> None:
    with pytest.raises(ValueError, match="expected a share from 0 to 1"):
        Reports(Random(1), raids)
