"""The fields of a post game carnage report that are read, and how large they may be. All others are skipped over.

What is not there is 0 or None. A class is frozen and left to reference counting: thousands of them live for a moment.
"""

from datetime import datetime
from typing import Annotated

import msgspec

# Beyond this a float does not know its neighbours; and a longer int would not fit into a message.
EXACT = 2**53

Hash = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
Small = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Number = Annotated[float, msgspec.Meta(ge=-EXACT, le=EXACT)]
Length = Annotated[float, msgspec.Meta(ge=0, le=EXACT)]


class _Value(msgspec.Struct, frozen=True, gc=False):
    value: Number


class Stat(msgspec.Struct, frozen=True, gc=False):
    """A number."""

    basic: _Value


class _Seconds(msgspec.Struct, frozen=True, gc=False):
    value: Length


class Time(msgspec.Struct, frozen=True, gc=False):
    """A number of seconds; never below 0."""

    basic: _Seconds


ZERO = Stat(_Value(0.0))
NO_TIME = Time(_Seconds(0.0))


class EntryStats(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The stats of an entry."""

    player_count: Stat = ZERO
    activity_duration_seconds: Time = NO_TIME
    completion_reason: Stat = ZERO
    completed: Stat = ZERO
    team_score: Stat = ZERO
    score: Stat = ZERO
    kills: Stat = ZERO
    deaths: Stat = ZERO
    assists: Stat = ZERO
    time_played_seconds: Time = NO_TIME
    start_seconds: Stat = ZERO


class _ExtendedStats(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    precision_kills: Stat = ZERO
    weapon_kills_super: Stat = ZERO
    weapon_kills_grenade: Stat = ZERO
    weapon_kills_melee: Stat = ZERO


class _WeaponStats(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    unique_weapon_kills: Stat = ZERO
    unique_weapon_precision_kills: Stat = ZERO


class UsedWeapon(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What was done with one weapon."""

    reference_id: Hash
    values: _WeaponStats = _WeaponStats()


class Extended(msgspec.Struct, frozen=True, gc=False):
    """The stats that come a little later than the others."""

    values: _ExtendedStats = _ExtendedStats()
    weapons: tuple[UsedWeapon, ...] | None = None


class _User(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    membership_id: str
    membership_type: Small = 0
    icon_path: str | None = None
    display_name: str | None = None
    bungie_global_display_name: str | None = None
    bungie_global_display_name_code: Annotated[int, msgspec.Meta(ge=0, le=9999)] | None = None


class _Player(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    destiny_user_info: _User
    class_hash: Hash = 0
    emblem_hash: Hash = 0


class ReportEntry(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One character of one player."""

    player: _Player
    character_id: str
    values: EntryStats
    extended: Extended | None = None


class _Details(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    instance_id: str
    mode: int  # without it nobody knows whether the report is to be kept, so it has no default


class _Activity(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    membership_type: Small = 0
    director_activity_hash: Hash = 0


class ReportHead(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What is read of every report; the entries only as far as where each begins and ends."""

    period: Annotated[datetime, msgspec.Meta(tz=True)]
    activity_details: _Details
    entries: list[msgspec.Raw] | None = None


class ReportBody(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What is read of a report that is kept, besides its head."""

    activity_details: _Activity
    entries: list[ReportEntry] | None = None
    starting_phase_index: Small | None = None
    activity_was_started_from_beginning: bool | None = None
    selected_skull_hashes: list[Hash] | None = None


class _DurationStat(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    activity_duration_seconds: Time


class FirstEntry(msgspec.Struct, frozen=True, gc=False):
    """What is read of the first entry of a report that is not kept."""

    values: _DurationStat
