"""A post game carnage report: is it the one asked for, is it of the kind that is kept, and what is in it.

Terms. An *entry* is one character of one player; a player who changed characters has several. A *stat* is
`{"basic": {"value": 12.0, …}, …}` under its name; one that is not there is 0, and fractions are cut off.

Tricky bits. Most reports are not kept, and of those only the id, the mode and the time of completion are read: the rest
is skipped over as bytes. A report may be published before it is whole (entries, or their `extended`, come later), so a
kept one is checked for being complete: who asks again gets the rest.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from sanderling.apis.bungie_fields import (
    Extended,
    FirstEntry,
    ReportBody,
    ReportEntry,
    ReportHead,
    Stat,
    Time,
    UsedWeapon,
)
from sanderling.apis.json_paths import UNREADABLE
from sanderling.apis.numbered import LARGEST_ID
from sanderling.formats.instance import Character, Instance, Player, Weapon

# The game was released in September; nothing of it is older than the year.
FIRST_YEAR = datetime(2017, 1, 1, tzinfo=UTC).timestamp()
# Their clock may be ahead of ours by seconds. By a day, one of the two is wrong and the date says nothing.
AHEAD = 86400.0

# Whether an instance was played from its beginning. The API has changed its mind three times, so the start of the
# instance decides. From Beyond Light to the Witch Queen the phase was always wrong and the flag not there yet; for a
# season after that the flag was false once the team had died.
BEYOND_LIGHT = datetime(2020, 11, 10, 17, tzinfo=UTC).timestamp()
WITCH_QUEEN = datetime(2022, 2, 22, 17, tzinfo=UTC).timestamp()
HAUNTED = datetime(2022, 5, 24, 17, tzinfo=UTC).timestamp()

# Two raids of the first years begin in other phases than 0 as well: Scourge of the Past in 1, Leviathan in 2.
SCOURGE = frozenset({548750096, 2812525063})
LEVIATHAN = frozenset(
    {
        # Normal, guided games, prestige.
        *(2693136600, 2693136601, 2693136602, 2693136603, 2693136604, 2693136605),
        *(89727599, 287649202, 1699948563, 1875726950, 3916343513, 4039317196),
        *(417231112, 508802457, 757116822, 771164842, 1685065161, 1800508819),
        *(2449714930, 3446541099, 3857338478, 3879860661, 3912437239, 4206123728),
    }
)


class Malformed(Exception):  # noqa: N818 - it names what was found
    """A report is not what it should be. The message says what was found."""


@dataclass(frozen=True, slots=True)
class CarnageReport:
    """What a report says. Times are Unix seconds."""

    completed: float | None  # None if it does not say; only where it is not kept
    instance: Instance | None  # None if it is of a kind that is not kept


_HEAD = msgspec.json.Decoder(ReportHead)
_BODY = msgspec.json.Decoder(ReportBody)
_DURATION = msgspec.json.Decoder(FirstEntry)


def read_report(raw: msgspec.Raw, number: int, keep: int, wall: float) -> CarnageReport:
    """What the report under `number` says; of those whose mode is `keep`, all of it. Raises Malformed."""
    try:
        head = _HEAD.decode(raw)
        details, started = head.activity_details, head.period.timestamp()
        if _identity(details.instance_id, "instanceId") != number:
            raise Malformed(f"instanceId is {details.instance_id}, expected {number}")
        _check_date(started, wall)
        if details.mode != keep:
            return CarnageReport(_completed(started, head.entries or [], wall), None)
        str(memoryview(raw), "utf-8")  # what is skipped over is not checked for that, and all of it is kept
        instance = _instance(number, started, _BODY.decode(raw), wall)
    except UNREADABLE as error:
        raise Malformed(str(error)) from None
    return CarnageReport(instance.date_completed, instance)


def _check_date(moment: float, wall: float) -> None:
    if not FIRST_YEAR <= moment <= wall + AHEAD:
        raise Malformed(f"period or its end is {moment:.0f}, expected 2017 to a day from now ({wall:.0f})")


def _completed(started: float, entries: list[msgspec.Raw], wall: float) -> float | None:
    """When something that is not kept was completed, if it says so in a way to be believed."""
    try:
        duration = int(_DURATION.decode(entries[0]).values.activity_duration_seconds.basic.value) if entries else 0
    except UNREADABLE:
        return None
    return started + duration if 0 < duration <= wall + AHEAD - started else None


def _identity(text: str, field: str) -> int:
    """The number that an id in a text is."""
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or int(text) > LARGEST_ID:
        raise Malformed(f"{field} is {text[:30]!r}, expected a decimal number of 63 bits")
    return int(text)


def _count(stat: Stat | Time) -> int:
    return int(stat.basic.value)


def _instance(number: int, started: float, body: ReportBody, wall: float) -> Instance:
    entries = body.entries or []
    duration = _check_complete(entries)
    _check_date(started + duration, wall)
    phase, flag = body.starting_phase_index, body.activity_was_started_from_beginning
    if missing := missing_field(started, phase=phase, flag=flag):
        raise Malformed(f"no {missing}, which reports of that time have")
    players = _players(entries, started, duration)
    completed = any(player.finished for player in players)
    deathless = not any(_count(entry.values.deaths) > 0 for entry in entries)
    details = body.activity_details
    activity = details.director_activity_hash
    is_fresh = fresh(started, activity, phase=phase, flag=flag, deathless=deathless)
    return Instance(
        instance_id=str(number),
        date_completed=started + duration,
        date_started=started,
        activity_hash=activity,
        completed=completed,
        fresh=is_fresh,
        flawless=is_fresh if completed and deathless else False,
        player_count=len(players),
        duration_seconds=duration,
        membership_type=details.membership_type,
        score=_count(entries[0].values.team_score),
        skull_hashes=tuple(dict.fromkeys(skull for skull in body.selected_skull_hashes or () if skull)),
        players=players,
    )


def _check_complete(entries: list[ReportEntry]) -> int:
    """The duration in seconds of a report that has all its parts."""
    if not entries:
        raise Malformed("no entries")
    expected = _count(entries[0].values.player_count)
    if expected != len(entries):
        raise Malformed(f"{len(entries)} entries, playerCount is {expected}")
    bare = sum(entry.extended is None for entry in entries)
    if bare:
        raise Malformed(f"{bare} of {len(entries)} entries without extended")
    # The same in all entries that have one.
    duration = max(_count(entry.values.activity_duration_seconds) for entry in entries)
    if not duration:
        raise Malformed(f"none of {len(entries)} entries has an activityDurationSeconds")
    return duration


def _players(entries: list[ReportEntry], started: float, duration: int) -> tuple[Player, ...]:
    ended_well = _count(entries[0].values.completion_reason) == 0
    by_member: dict[int, list[ReportEntry]] = {}
    for entry in entries:
        member = _identity(entry.player.destiny_user_info.membership_id, "membershipId")
        if not member:
            raise Malformed("membershipId is 0")
        by_member.setdefault(member, []).append(entry)
    return tuple(_player(member, own, started, duration, ended_well=ended_well) for member, own in by_member.items())


def _player(member: int, entries: list[ReportEntry], started: float, duration: int, *, ended_well: bool) -> Player:
    user = entries[0].player.destiny_user_info
    code = user.bungie_global_display_name_code
    characters = tuple(map(_character, entries))
    spans = [(each.start_seconds, each.start_seconds + each.time_played_seconds) for each in characters]
    return Player(
        membership_id=str(member),
        membership_type=user.membership_type,
        icon_path=user.icon_path or "",
        display_name=user.display_name or "",
        global_display_name=user.bungie_global_display_name or "",
        global_display_name_code="" if code is None else f"{code:04}",
        finished=ended_well and any(each.completed for each in characters),
        time_played_seconds=time_played(spans, duration),
        last_seen=started + spans[0][1],
        characters=characters,
    )


def time_played(spans: Iterable[tuple[int, int]], duration: int) -> int:
    """Seconds between 0 and `duration` that lie within at least one span; two characters at once count once."""
    total = until = 0
    for begin, end in sorted(spans):
        fresh_from, end_within = max(begin, until), min(end, duration)
        if end_within > fresh_from:
            total += end_within - fresh_from
            until = end_within
    return total


def _character(entry: ReportEntry) -> Character:
    stats, extended = entry.values, entry.extended or Extended()
    more = extended.values
    return Character(
        character_id=str(_identity(entry.character_id, "characterId")),
        class_hash=entry.player.class_hash,
        emblem_hash=entry.player.emblem_hash,
        completed=_count(stats.completed) == 1,
        score=_count(stats.score),
        kills=_count(stats.kills),
        deaths=_count(stats.deaths),
        assists=_count(stats.assists),
        precision_kills=_count(more.precision_kills),
        super_kills=_count(more.weapon_kills_super),
        grenade_kills=_count(more.weapon_kills_grenade),
        melee_kills=_count(more.weapon_kills_melee),
        start_seconds=_count(stats.start_seconds),
        time_played_seconds=_count(stats.time_played_seconds),
        weapons=_weapons(extended.weapons or ()),
    )


def _weapons(used: Iterable[UsedWeapon]) -> tuple[Weapon, ...]:
    """Each weapon once: one that is listed twice was used for all that is listed."""
    kills: Counter[int] = Counter()
    precise: Counter[int] = Counter()
    for weapon in used:
        kills[weapon.reference_id] += _count(weapon.values.unique_weapon_kills)
        precise[weapon.reference_id] += _count(weapon.values.unique_weapon_precision_kills)
    return tuple(Weapon(reference, number, precise[reference]) for reference, number in kills.items())


def missing_field(started: float, *, phase: int | None, flag: bool | None) -> str:
    """The field that a report of that time must have and has not; "" if it has it."""
    if started >= WITCH_QUEEN:
        return "activityWasStartedFromBeginning" if flag is None else ""
    return "startingPhaseIndex" if phase is None else ""


def fresh(started: float, activity: int, *, phase: int | None, flag: bool | None, deathless: bool) -> bool | None:
    """Whether it was played from its beginning; None if nobody can know."""
    if started >= HAUNTED:
        return flag
    if started >= WITCH_QUEEN:
        return flag if flag or deathless else None
    if started >= BEYOND_LIGHT or phase is None:
        return None
    if activity in SCOURGE:
        return phase <= 1
    return phase == 0 or (phase == 2 and activity in LEVIATHAN)
