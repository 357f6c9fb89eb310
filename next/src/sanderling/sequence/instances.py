"""What a post game carnage report says: the document for the queue, and the rows of seed 000's tables. Pure."""

from collections import defaultdict
from datetime import UTC, datetime
from typing import Any

BEYOND_LIGHT, WITCH_QUEEN, HAUNTED = 1605027600, 1645549200, 1653411600
# Two raids begin in other phases than 0 as well.
SCOURGE = frozenset({548750096, 2812525063})
LEVIATHAN = frozenset(
    map(
        int,
        "2693136600 2693136601 2693136602 2693136603 2693136604 2693136605 89727599 287649202"
        " 1699948563 1875726950 3916343513 4039317196 417231112 508802457 757116822 771164842"
        " 1685065161 1800508819 2449714930 3446541099 3857338478 3879860661 3912437239 4206123728".split(),
    )
)

# The columns of each table; those of its key come first.
COLUMNS = {
    "instance": "instance_id hash completed flawless fresh player_count date_started date_completed duration_seconds"
    " membership_type score",
    "instance_player": "instance_id membership_id completed finished time_played_seconds date_completed",
    "instance_character": "instance_id membership_id character_id class_hash emblem_hash completed score kills deaths"
    " assists start_seconds time_played_seconds precision_kills super_kills grenade_kills melee_kills",
    "instance_character_weapon": "instance_id membership_id character_id weapon_hash kills precision_kills",
}
_HASHES = ("classHash", "emblemHash")
_VALUES = ("score", "kills", "deaths", "assists", "startSeconds", "timePlayedSeconds")
_EXTENDED = {
    "precisionKills": "precisionKills",
    "superKills": "weaponKillsSuper",
    "grenadeKills": "weaponKillsGrenade",
    "meleeKills": "weaponKillsMelee",
}
_WEAPON = {"kills": "uniqueWeaponKills", "precisionKills": "uniqueWeaponPrecisionKills"}
Json = dict[str, Any]


def read_report(report: Json) -> Json:
    """The document of a report, with the original's names and nesting. Raises ValueError for what is no report."""
    try:
        return _read(report)
    except (KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
        raise ValueError(f"no report: {type(error).__name__} {error}"[:200]) from None


def rows_of(report: Json) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of all tables. Raises ValueError for what is no report."""
    found = read_report(report)
    number, completed = int(found["instanceId"]), found["completed"]
    started, ended = (int(datetime.fromisoformat(found[name]).timestamp()) for name in ("dateStarted", "dateCompleted"))
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in COLUMNS}
    rows["instance"].append(
        (number, found["hash"], completed, found["flawless"], found["fresh"], found["playerCount"], started, ended,
         found["durationSeconds"], found["membershipType"], found["score"])
    )  # fmt: skip
    for each in found["players"]:
        member = int(each["player"]["membershipId"])
        rows["instance_player"].append(
            (number, member, completed, each["finished"], each["timePlayedSeconds"], ended)
        )  # fmt: skip
        for character in each["characters"]:
            identity, *values, weapons = character.values()
            key = number, member, int(identity)
            rows["instance_character"].append((*key, *values))
            rows["instance_character_weapon"] += [(*key, *weapon.values()) for weapon in weapons]
    return rows


def _read(report: Json) -> Json:
    details, entries = report["activityDetails"], report["entries"]
    start = int(datetime.fromisoformat(report["period"]).timestamp())
    first = entries[0]["values"]
    duration, reason = _stat(first, "activityDurationSeconds"), _stat(first, "completionReason")
    entries_of: dict[int, list[Json]] = defaultdict(list)
    for entry in entries:
        entries_of[int(entry["player"]["destinyUserInfo"]["membershipId"])].append(entry)
    players = [
        {
            "finished": reason == 0 and any(_stat(entry["values"], "completed") == 1 for entry in each),
            "timePlayedSeconds": _time_played([entry["values"] for entry in each], duration),
            "player": each[0]["player"]["destinyUserInfo"],
            "characters": [_character(entry) for entry in each],
        }
        for each in entries_of.values()
    ]
    completed = any(each["finished"] for each in players)
    deathless = not sum(_stat(entry["values"], "deaths") for entry in entries)
    fresh = _fresh(report, start, deathless=deathless)
    return {
        "instanceId": str(int(details["instanceId"])),
        "hash": int(details["directorActivityHash"]),
        "completed": completed,
        "flawless": fresh if completed and deathless else False,
        "fresh": fresh,  # None: unknown
        "playerCount": len(players),
        "dateStarted": _written(start),
        "dateCompleted": _written(start + duration),
        "durationSeconds": duration,
        "membershipType": int(details.get("membershipType", 0)),
        "score": _stat(first, "teamScore"),
        "skullHashes": [each for each in dict.fromkeys(report.get("selectedSkullHashes") or ()) if each],
        "players": players,
    }


def _character(entry: Json) -> Json:
    values, more = entry["values"], entry.get("extended") or {}
    extended = more.get("values") or {}
    return {
        "characterId": str(int(entry["characterId"])),
        **{name: int(entry["player"].get(name) or 0) for name in _HASHES},
        "completed": _stat(values, "completed") == 1,
        **{name: _stat(values, name) for name in _VALUES},
        **{name: _stat(extended, said) for name, said in _EXTENDED.items()},
        "weapons": [
            {"weaponHash": int(each["referenceId"])}
            | {name: _stat(each["values"], said) for name, said in _WEAPON.items()}
            for each in more.get("weapons") or ()
        ],
    }


def _written(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _stat(values: dict[str, Any], name: str) -> int:
    """A figure of an entry: 0 if it is not there, without its fraction."""
    return int(values[name]["basic"]["value"]) if name in values else 0


def _time_played(characters: list[dict[str, Any]], duration: int) -> int:
    """How long a player was there with any character, within the duration."""
    total = end = 0
    for start, played in sorted((_stat(each, "startSeconds"), _stat(each, "timePlayedSeconds")) for each in characters):
        low, high = max(start, end, 0), min(start + played, duration)
        total += max(0, high - low)
        end = max(end, high)
    return total


def _fresh(report: dict[str, Any], started: int, *, deathless: bool) -> bool | None:
    """Whether it was played from its beginning; None where the API is known to have said wrong."""
    flag, phase = report.get("activityWasStartedFromBeginning"), report.get("startingPhaseIndex")
    if started >= HAUNTED:
        return bool(flag)
    if started >= WITCH_QUEEN:  # the flag was false after a wipe
        return bool(flag) if flag or deathless else None
    if started >= BEYOND_LIGHT:
        return None
    raid = report["activityDetails"]["directorActivityHash"]
    allowed = (0, 1) if raid in SCOURGE else (0, 2) if raid in LEVIATHAN else (0,)
    return phase in allowed
