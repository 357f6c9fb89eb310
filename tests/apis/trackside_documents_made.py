"""Small documents of a race day, made up: for each test to change the one thing it is about."""

import json
from typing import Any

from sanderling.apis.polled import Wanted
from sanderling.task import Reply

Json = dict[str, Any]

BASE = "http://timing.example:8080"
ZERO = "00000000-0000-0000-0000-000000000000"
NOT_SET = "0001/01/01 0:00:00"


def guid(letter: str, number: int = 0) -> str:
    """An id that can be told from others at a glance."""
    return f"{letter * 8}-0000-4000-8000-{number:012}"


def channel_id(number: int) -> str:
    return f"{number:08}-0000-0000-0000-000000000000"


EVENT, RACE = guid("e"), guid("a", 1)
PILOTS = [guid("b", number) for number in (1, 2)]
ROUNDS = [guid("d", number) for number in (1, 2)]
CHANNELS = [channel_id(number) for number in (1, 2, 3)]

ABOUT = {kind: Wanted(kind, EVENT, EVENT) for kind in ("event", "pilots", "rounds", "channels", "results")}
ABOUT["race"] = Wanted("race", RACE, EVENT)

PAGE = f'<html><script>\nvar eventManager = new EventManager("events/{EVENT}");\n</script></html>'.encode()


def record(key: str, **values: object) -> Json:
    return {"ID": key, "ExternalID": 0, **values}


def event(**changes: object) -> Json:
    usual = {
        "EventType": "Race",
        "Name": "Harbour Cup",
        "Start": "2026/05/03 0:00:00",
        "End": NOT_SET,
        "Laps": 4,
        "PBLaps": 3,
        "PackLimit": 0,
        "RaceLength": "00:02:00",
        "MinStartDelay": "00:00:00.5000000",
        "MaxStartDelay": "00:00:05",
        "PrimaryTimingSystemLocation": "EndOfLap",
        "RaceStartIgnoreDetections": "00:00:00.5000000",
        "MinLapTime": "00:00:05",
        "LastOpened": "2026/05/03 8:43:20.787",
        "PilotChannels": [record(guid("f", 9), Pilot=PILOTS[0], Channel=CHANNELS[0])],
        "RemovedPilots": [PILOTS[1]],
        "Rounds": ROUNDS[:1],
        "Club": ZERO,
        "Channels": CHANNELS[:2],
        "ChannelColors": ["#ff0000", "#00ff00", "#0000ff", "#ffffff"],
        "ChannelDisplayNames": [None, "Green"],
        "Races": [RACE, guid("a", 2)],
        "Track": None,
        "Sectors": [],
        "Enabled": True,
        "Locked": False,
        "VisibleOnline": None,
        "SyncWithFPVTrackside": False,
        "SyncWithMultiGP": False,
        "GenerateHeatsMultiGP": False,
        "MultiGPRaceFormat": "Traditional",
        "PilotsRegistered": 2,
    }
    return record(EVENT, **usual | changes)


def pilot(key: str, **changes: object) -> Json:
    usual = {"Name": f"Kite {key[-1]}", "Phonetic": "Kite", "FirstName": None, "TimingSensitivityPercent": 100}
    return record(key, **usual | {"PracticePilot": False, "PhotoPath": None} | changes)


def round_of_races(key: str, order: int = 100, **changes: object) -> Json:
    usual = {"Name": None, "RoundNumber": 1, "EventType": "Race", "RoundType": "Round", "Valid": True}
    return record(key, **usual | {"Order": order, "PointSummary": None, "LapCountAfterRound": False} | changes)


def channel(number: int, **changes: object) -> Json:
    usual = {"Number": number, "Band": "Raceband", "ShortBand": "R", "ChannelPrefix": "\0", "Frequency": 5658}
    return record(channel_id(number), **usual | {"DisplayName": None} | changes)


def detection(number: int, *, valid: bool | None = True, **changes: object) -> Json:
    usual = {
        "TimingSystemIndex": 0,
        "Channel": CHANNELS[0],
        "Time": f"2026/05/03 9:05:{number:02}.43",
        "Peak": 900,
        "TimingSystemType": "LapRF",
        "Pilot": PILOTS[0],
        "LapNumber": number,
        "Valid": valid,
        "ValidityType": "Auto",
        "IsLapEnd": True,
        "RaceSector": 100,
        "IsHoleshot": number == 0,
    }
    return record(guid("c", number), **usual | changes)


def lap(number: int, **changes: object) -> Json:
    times = {"StartTime": "2026/05/03 9:05:00", "EndTime": f"2026/05/03 9:05:{number:02}.43"}
    return record(
        guid("1", number),
        **{"Detection": guid("c", number), "LengthSeconds": 12, "LapNumber": number} | times | changes,
    )


def race(**changes: object) -> Json:
    usual = {
        "Laps": [lap(0), lap(1), lap(2)],
        "Detections": [detection(0), detection(1), detection(2, valid=False)],
        "GamePoints": None,
        "Start": "2026/05/03 9:04:05.6",
        "End": NOT_SET,
        "TotalPausedTime": "00:00:00",
        "PilotChannels": [record(guid("f", n), Pilot=PILOTS[n], Channel=CHANNELS[n]) for n in (0, 1)],
        "RaceNumber": 1,
        "Round": ROUNDS[0],
        "TargetLaps": 4,
        "PrimaryTimingSystemLocation": "EndOfLap",
        "Valid": True,
        "AutoAssignNumbers": False,
        "Event": EVENT,
        "Bracket": "None",
    }
    return record(RACE, **usual | changes)


def result(number: int, **changes: object) -> Json:
    usual = {"Points": 10, "Position": number, "Valid": True, "Event": EVENT, "Pilot": PILOTS[0], "Race": RACE}
    return record(guid("9", number), **usual | {"Round": ROUNDS[0], "DNF": False, "ResultType": "Race"} | changes)


def usual_documents() -> dict[str, list[Json]]:
    """One of each kind, in an order in which they can be stored."""
    return {
        "event": [event()],
        "pilots": [pilot(key) for key in PILOTS],
        "rounds": [round_of_races(ROUNDS[0]), round_of_races(ROUNDS[1], 200, Valid=False)],
        "channels": [channel(number) for number in (1, 2, 3)],
        "race": [race()],
        "results": [result(1), result(2, Pilot=PILOTS[1])],
    }


def reply(said: object, status: int = 200) -> Reply:
    body = said if isinstance(said, bytes) else json.dumps(said).encode()
    return Reply(status, (), body, f"{BASE}/", 0.01)
