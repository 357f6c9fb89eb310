"""The rows of seed 000's tables `instance` and `instance_player`, from a post game carnage report. Pure."""

from collections import defaultdict
from datetime import datetime
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

INSTANCE = (
    "instance_id", "hash", "completed", "flawless", "fresh", "player_count", "date_started", "date_completed",
    "duration_seconds", "membership_type", "score",
)  # fmt: skip
INSTANCE_PLAYER = ("instance_id", "membership_id", "completed", "finished", "time_played_seconds", "date_completed")


def rows_of(number: int, report: dict[str, Any]) -> tuple[tuple[Any, ...], list[tuple[Any, ...]]]:
    """The row of an instance, and those of its players. Raises ValueError for what is no report."""
    try:
        return _rows(number, report)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"report {number}: {type(error).__name__} {error}") from None


def _rows(number: int, report: dict[str, Any]) -> tuple[tuple[Any, ...], list[tuple[Any, ...]]]:
    details, entries = report["activityDetails"], report["entries"]
    started = int(datetime.fromisoformat(report["period"]).timestamp())
    first = entries[0]["values"]
    duration, reason = _stat(first, "activityDurationSeconds"), _stat(first, "completionReason")
    ended = started + duration
    characters: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for entry in entries:
        characters[int(entry["player"]["destinyUserInfo"]["membershipId"])].append(entry["values"])
    finished = {
        member: reason == 0 and any(_stat(values, "completed") == 1 for values in each)
        for member, each in characters.items()
    }
    completed = any(finished.values())
    deaths = sum(_stat(entry["values"], "deaths") for entry in entries)
    fresh = _fresh(report, started, deathless=deaths == 0)
    flawless = fresh if completed and deaths == 0 else False
    score = _stat(first, "teamScore")
    instance = (
        number, int(details["directorActivityHash"]), completed, flawless, fresh, len(characters), started, ended,
        duration, int(details.get("membershipType", 0)), score,
    )  # fmt: skip
    players = [
        (number, member, completed, finished[member], _time_played(each, duration), ended)
        for member, each in characters.items()
    ]
    return instance, players


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
