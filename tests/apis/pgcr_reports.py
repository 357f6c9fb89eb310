"""Small post game carnage reports, made up: for each test to change the one thing it is about."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

NUMBER = 16_000_000_001
STARTED = datetime(2026, 1, 6, 18, 30, tzinfo=UTC).timestamp()
DURATION = 2400
COMPLETED = STARTED + DURATION
WALL = COMPLETED + 20.0  # seen twenty seconds after it ended

RAID, STRIKE = 4, 18

Json = dict[str, Any]

# What reports have in plenty and nobody here reads.
UNUSED = ("efficiency", "killsDeathsRatio", "opponentsDefeated", "team", "fireteamId", "averageScorePerKill")


def stats(values: Mapping[str, float]) -> Json:
    return {
        name: {"statId": name, "basic": {"value": value, "displayValue": f"{value:g}"}}
        for name, value in values.items()
    }


def weapon(reference: int = 1_301_843_770, kills: float = 12.0, precision: float = 5.0) -> Json:
    return {
        "referenceId": reference,
        "values": stats({"uniqueWeaponKills": kills, "uniqueWeaponPrecisionKills": precision}),
    }


def extended(weapons: int = 2) -> Json:
    values = {"precisionKills": 31.0, "weaponKillsSuper": 4.0, "weaponKillsGrenade": 9.0, "weaponKillsMelee": 2.0}
    unused = {f"medal{number}": 1.0 for number in range(8)}
    return {"weapons": [weapon(1000 + number) for number in range(weapons)], "values": stats(values | unused)}


def entry(member: int = 4_611_686_018_400_000_001, character: int = 2_305_843_009_300_000_001, **values: float) -> Json:
    """One character of one player; `values` change its stats."""
    usual = {
        "playerCount": 1.0,
        "activityDurationSeconds": float(DURATION),
        "completionReason": 0.0,
        "completed": 1.0,
        "teamScore": 50.0,
        "score": 7.0,
        "kills": 120.0,
        "deaths": 2.0,
        "assists": 30.0,
        "timePlayedSeconds": float(DURATION),
        "startSeconds": 0.0,
    }
    return {
        "standing": 0,
        "score": {"basic": {"value": 7.0, "displayValue": "7"}},
        "player": {
            "destinyUserInfo": {
                "iconPath": "/icons/2.png",
                "crossSaveOverride": 0,
                "membershipType": 3,
                "membershipId": str(member),
                "displayName": "dunlin",
                "bungieGlobalDisplayName": "Dunlin",
                "bungieGlobalDisplayNameCode": 42,
            },
            "characterClass": "Warlock",
            "classHash": 2_271_682_572,
            "raceHash": 898_834_093,
            "genderHash": 3_111_576_190,
            "characterLevel": 50,
            "lightLevel": 2010,
            "emblemHash": 1_409_726_931,
        },
        "characterId": str(character),
        "values": stats(usual | dict.fromkeys(UNUSED, 1.5) | values),
        "extended": extended(),
    }


def report(entries: list[Json] | None = None, *, mode: int = RAID, number: int = NUMBER, **changed: object) -> Json:
    """A report of one player; `changed` are fields of its top."""
    return {
        "period": "2026-01-06T18:30:00Z",
        "startingPhaseIndex": 0,
        "activityWasStartedFromBeginning": True,
        "activityDifficultyTier": 0,
        "selectedSkullHashes": [],
        "activityDetails": {
            "referenceId": 1_191_701_339,
            "directorActivityHash": 1_191_701_339,
            "instanceId": str(number),
            "mode": mode,
            "modes": [7, mode],
            "isPrivate": False,
            "membershipType": 3,
        },
        "entries": [entry()] if entries is None else entries,
        "teams": [],
        **changed,
    }


def team(size: int, **values: float) -> list[Json]:
    """So many players, of one character each."""
    return [
        entry(4_611_686_018_400_000_001 + number, 2_305_843_009_300_000_001 + number, playerCount=size, **values)
        for number in range(size)
    ]


def envelope(response: object = None, code: int = 1, status: str = "Success", throttle: object = 0) -> bytes:
    said = {
        "Response": response,
        "ErrorCode": code,
        "ThrottleSeconds": throttle,
        "ErrorStatus": status,
        "Message": "Ok",
        "MessageData": {},
    }
    if response is None:
        del said["Response"]
    return json.dumps(said).encode()
