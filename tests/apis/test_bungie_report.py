"""What a report says, which are taken for malformed, and what is made of the rest."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pgcr_reports import COMPLETED, DURATION, NUMBER, RAID, STARTED, STRIKE, WALL, Json, entry, report, stats, team

from sanderling.apis.bungie_report import CarnageReport, Malformed, read_report, time_played
from sanderling.formats.instance import Instance, Weapon

DAY = 86400


def read(said: Json, wall: float = WALL, number: int = NUMBER) -> CarnageReport:
    return read_report(msgspec.Raw(json.dumps(said).encode()), number, RAID, wall)


def instance(said: Json, wall: float = WALL) -> Instance:
    found = read(said, wall).instance
    assert found is not None
    return found


def changed(change: Callable[[Any], object], entries: list[Json] | None = None, mode: int = RAID) -> Json:
    """A report after something was done to it."""
    said = report(entries, mode=mode)
    change(said)
    return said


def put(*path: Any) -> Callable[[Any], object]:  # noqa: ANN401 - names, places, and any value at the end
    """Set what a path leads to; its last step is the value."""

    def change(said: Any) -> None:  # noqa: ANN401 - JSON
        *way, last, value = path
        for step in way:
            said = said[step]
        said[last] = value

    return change


def drop(*path: Any) -> Callable[[Any], object]:  # noqa: ANN401 - names and places
    def change(said: Any) -> None:  # noqa: ANN401 - JSON
        *way, last = path
        for step in way:
            said = said[step]
        del said[last]

    return change


USER = ("entries", 0, "player", "destinyUserInfo")


def stat(name: str, value: object) -> Callable[[Any], object]:
    return put("entries", 0, "values", name, {"basic": {"value": value}})


def test_a_whole_report() -> None:
    found = instance(report(team(2)))

    assert found.instance_id == str(NUMBER)
    assert (found.date_started, found.date_completed, found.duration_seconds) == (STARTED, COMPLETED, DURATION)
    assert (found.activity_hash, found.membership_type, found.score) == (1_191_701_339, 3, 50)
    assert (found.completed, found.fresh, found.flawless, found.player_count) == (True, True, False, 2)
    player = found.players[1]
    assert (player.membership_id, player.membership_type) == ("4611686018400000002", 3)
    assert (player.display_name, player.global_display_name, player.global_display_name_code) == (
        "dunlin",
        "Dunlin",
        "0042",
    )
    assert (player.icon_path, player.finished, player.time_played_seconds) == ("/icons/2.png", True, DURATION)
    character = player.characters[0]
    assert (character.character_id, character.class_hash) == ("2305843009300000002", 2_271_682_572)
    assert (character.kills, character.deaths, character.assists, character.score) == (120, 2, 30, 7)
    assert (character.precision_kills, character.super_kills) == (31, 4)
    assert (character.grenade_kills, character.melee_kills) == (9, 2)
    assert character.weapons == (Weapon(1000, 12, 5), Weapon(1001, 12, 5))


MALFORMED: list[tuple[str, Callable[[Any], object]]] = [
    ("instanceId is 16000000002, expected 16000000001", put("activityDetails", "instanceId", str(NUMBER + 1))),
    ("63 bits", put("activityDetails", "instanceId", str(2**63))),
    ("63 bits", put("activityDetails", "instanceId", "9" * 1000)),
    ("63 bits", put("activityDetails", "instanceId", "")),
    ("63 bits", put("activityDetails", "instanceId", "-1")),
    ("63 bits", put("activityDetails", "instanceId", "1e9")),
    ("63 bits", put("activityDetails", "instanceId", "\u0661\u0666")),
    ("instanceId", put("activityDetails", "instanceId", NUMBER)),
    ("mode", drop("activityDetails", "mode")),
    ("activityDetails", drop("activityDetails")),
    ("period", drop("period")),
    ("period", put("period", "yesterday")),
    ("period", put("period", "2026-01-06T18:30:00")),
    ("period", put("period", 1_800_000_000)),
    ("2017", put("period", "0001-01-01T00:00:00Z")),
    ("2017", put("period", "2016-12-31T23:59:59Z")),
    ("2017", put("period", "2035-01-01T00:00:00Z")),
]


@pytest.mark.parametrize("mode", [RAID, STRIKE])
@pytest.mark.parametrize(("words", "change"), MALFORMED)
def test_a_report_that_may_not_be_the_one_asked_for_is_malformed_of_any_kind(
    words: str, change: Callable[[Any], object], mode: int
) -> None:
    with pytest.raises(Malformed, match=words):
        read(changed(change, mode=mode))


INCOMPLETE: list[tuple[str, Callable[[Any], object]]] = [
    ("no entries", put("entries", [])),
    ("no entries", put("entries", None)),
    ("no entries", drop("entries")),
    ("1 entries, playerCount is 3", stat("playerCount", 3.0)),
    ("1 entries, playerCount is 0", drop("entries", 0, "values", "playerCount")),
    ("1 entries, playerCount is -1", stat("playerCount", -1)),
    ("has an activityDurationSeconds", stat("activityDurationSeconds", 0)),
    ("has an activityDurationSeconds", drop("entries", 0, "values", "activityDurationSeconds")),
    ("1 of 1 entries without extended", drop("entries", 0, "extended")),
    ("1 of 1 entries without extended", put("entries", 0, "extended", None)),
    ("no activityWasStartedFromBeginning", drop("activityWasStartedFromBeginning")),
    ("no activityWasStartedFromBeginning", put("activityWasStartedFromBeginning", None)),
    ("membershipId is 0", put(*USER, "membershipId", "0")),
    ("membershipId is 0", put(*USER, "membershipId", "000")),
    ("membershipId is '-7'", put(*USER, "membershipId", "-7")),
    ("membershipId", put(*USER, "membershipId", str(2**63))),
    ("membershipId", put(*USER, "membershipId", 7)),
    ("membershipId", drop(*USER, "membershipId")),
    ("characterId", put("entries", 0, "characterId", "x")),
    ("characterId", drop("entries", 0, "characterId")),
    ("player", drop("entries", 0, "player")),
    ("values", drop("entries", 0, "values")),
    ("activityDurationSeconds", stat("activityDurationSeconds", -1)),
    ("timePlayedSeconds", stat("timePlayedSeconds", -1)),
    ("2017", stat("activityDurationSeconds", 1e12)),
    ("kills", stat("kills", 1e300)),
    ("kills", stat("kills", "12")),
    ("kills", stat("kills", None)),
    ("directorActivityHash", put("activityDetails", "directorActivityHash", 2**32)),
    ("selectedSkullHashes", put("selectedSkullHashes", [-1])),
    ("DisplayNameCode", put(*USER, "bungieGlobalDisplayNameCode", 10_000)),
]


@pytest.mark.parametrize(("words", "change"), INCOMPLETE)
def test_a_raid_that_is_not_whole_is_malformed_and_of_another_kind_it_does_not_matter(
    words: str, change: Callable[[Any], object]
) -> None:
    assert read(changed(change, mode=STRIKE)).instance is None

    with pytest.raises(Malformed, match=words):
        read(changed(change))


def test_one_entry_without_extended_among_others_is_malformed() -> None:
    entries = team(3)
    del entries[2]["extended"]

    with pytest.raises(Malformed, match="1 of 3 entries without extended"):
        read(report(entries))


def test_one_entry_with_a_duration_is_enough() -> None:
    entries = team(2)
    del entries[0]["values"]["activityDurationSeconds"]

    assert instance(report(entries)).duration_seconds == DURATION


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1e400", "9" * 400, "NaN", "Infinity"])
def test_a_number_that_is_none_is_malformed(number: str) -> None:
    said = json.dumps(changed(stat("kills", "HERE"))).replace('"HERE"', number).encode()

    with pytest.raises(Malformed):
        read_report(msgspec.Raw(said), NUMBER, RAID, WALL)


def test_bytes_that_are_no_text_are_malformed_wherever_they_are() -> None:
    said = json.dumps(changed(put("unread", "HERE"))).encode().replace(b"HERE", b"\xff")

    with pytest.raises(Malformed, match="utf-8"):
        read_report(msgspec.Raw(said), NUMBER, RAID, WALL)


@pytest.mark.parametrize(
    ("entries", "completed"),
    [
        ([entry()], COMPLETED),
        ([entry(activityDurationSeconds=12.9)], STARTED + 12),
        ([], None),
        (None, None),
        ([{}], None),
        ([7], None),
        ([entry(activityDurationSeconds=0)], None),
        ([entry(activityDurationSeconds=-5)], None),
        ([entry(activityDurationSeconds=1e12)], None),
        ([{"values": {"activityDurationSeconds": {"basic": {"value": "long"}}}}], None),
    ],
)
def test_when_something_else_than_a_raid_ended_is_known_or_not(
    entries: list[Json] | None, completed: float | None
) -> None:
    assert read(report(mode=STRIKE) | {"entries": entries}) == CarnageReport(completed, None)


def test_an_id_of_63_bits_is_one_as_any_other() -> None:
    for number in (999_000_000_123, 2**63 - 1):
        assert read(report(number=number), number=number).instance is not None


def test_dates_up_to_a_day_from_now_are_believed() -> None:
    assert read(report(), wall=COMPLETED - DAY).completed == COMPLETED
    with pytest.raises(Malformed, match="a day from now"):
        read(report(), wall=COMPLETED - DAY - 1)


@pytest.mark.parametrize(
    ("completed", "reason", "character", "finished"),
    [(1.0, 0.0, True, True), (1.0, 4.0, True, False), (0.0, 0.0, False, False), (1.9, 0.9, True, True)],
)
def test_who_finished(completed: float, reason: float, character: bool, finished: bool) -> None:  # noqa: FBT001 - columns
    found = instance(report([entry(completed=completed, completionReason=reason)]))

    assert found.players[0].characters[0].completed is character
    assert found.players[0].finished is finished
    assert found.completed is finished


def test_it_is_completed_if_anyone_finished_by_the_first_entrys_reason() -> None:
    left, stayed = team(2, completed=0.0)
    stayed["values"] |= stats({"completed": 1.0, "completionReason": 3.0})

    found = instance(report([left, stayed]))

    assert [player.finished for player in found.players] == [False, True]
    assert found.completed


def test_characters_of_one_player_are_gathered() -> None:
    first = entry(character=1, playerCount=3, startSeconds=100, timePlayedSeconds=200, completed=0)
    other = entry(member=9, character=2, playerCount=3)
    again = entry(character=3, playerCount=3, startSeconds=250, timePlayedSeconds=9999, completed=1)

    found = instance(report([first, other, again]))

    assert found.player_count == 2
    player = found.players[0]
    assert [character.character_id for character in player.characters] == ["1", "3"]
    assert player.time_played_seconds == DURATION - 100
    assert player.last_seen == STARTED + 300
    assert player.finished


@pytest.mark.parametrize(
    ("deaths", "completed", "flag", "flawless"),
    [(0, 1, True, True), (0, 1, False, False), (1, 1, True, False), (0, 0, True, False)],
)
def test_flawless_is_fresh_completed_and_without_a_death(
    deaths: int,
    completed: int,
    flag: bool,  # noqa: FBT001 - a column
    flawless: bool,  # noqa: FBT001 - a column
) -> None:
    said = report([entry(deaths=deaths, completed=completed)], activityWasStartedFromBeginning=flag)

    assert instance(said).flawless is flawless


def test_flawless_is_unknown_where_fresh_is() -> None:
    lost = report([entry(deaths=0)], period="2021-06-01T00:00:00Z", startingPhaseIndex=0)

    assert (instance(lost).fresh, instance(lost).flawless) == (None, None)


def test_a_death_of_any_character_counts() -> None:
    entries = team(2, deaths=0)
    entries[1]["values"] |= stats({"deaths": 1.0})

    assert instance(report(entries)).flawless is False


def test_skulls_are_told_once_and_0_is_none() -> None:
    assert instance(report(selectedSkullHashes=[5, 0, 7, 5, 0])).skull_hashes == (5, 7)
    assert instance(report(selectedSkullHashes=None)).skull_hashes == ()


def test_what_is_not_there_is_0_or_empty() -> None:
    bare = entry()
    bare["values"] = stats({"playerCount": 1, "activityDurationSeconds": 60})
    bare["extended"] = {}
    bare["player"] = {"destinyUserInfo": {"membershipId": "7", "displayName": None}}

    found = instance(report([bare]))

    player, character = found.players[0], found.players[0].characters[0]
    assert (player.display_name, player.global_display_name_code, player.membership_type) == ("", "", 0)
    assert (character.kills, character.precision_kills, character.class_hash, character.weapons) == (0, 0, 0, ())
    assert (found.score, found.completed) == (0, False)


@pytest.mark.parametrize(("code", "padded"), [(0, "0000"), (7, "0007"), (1234, "1234"), (None, "")])
def test_a_name_code_has_four_digits(code: int | None, padded: str) -> None:
    said = changed(put(*USER, "bungieGlobalDisplayNameCode", code))

    assert instance(said).players[0].global_display_name_code == padded


def test_fractions_are_cut_off() -> None:
    character = instance(report([entry(kills=3.99, score=-2.5, assists=0.7)])).players[0].characters[0]

    assert (character.kills, character.score, character.assists) == (3, -2, 0)


def slowly(spans: list[tuple[int, int]], duration: int) -> int:
    return sum(any(begin <= second < end for begin, end in spans) for second in range(duration))


@given(st.lists(st.tuples(st.integers(-20, 80), st.integers(-20, 120)), max_size=6), st.integers(0, 60))
def test_time_played_is_every_second_in_which_some_character_was_there(
    spans: list[tuple[int, int]], duration: int
) -> None:
    assert time_played(spans, duration) == slowly(spans, duration)


def test_periods_may_be_in_any_zone() -> None:
    said = report(period="2026-01-06T20:30:00.25+02:00")

    assert instance(said).date_started == datetime(2026, 1, 6, 18, 30, 0, 250_000, tzinfo=UTC).timestamp()
