"""The records of Trackside's documents, and the tables they are stored in.

A field that is called like a column is stored there, a date or span under two names; lists become tables of their own.
Only what is written before may be referred to: an event comes before its pilots and channels, so where it names some of
them that is no reference.
"""

import msgspec

from sanderling.apis.trackside_fields import NULL, Guid, Integer, LocalDate, TracksideRecord, TracksideSpan, table_of
from sanderling.stores.documents import Column, ColumnKind, Schema, SourceTable

# A list may be null, and so may each of its items.
Ids = list[Guid | None] | None
Texts = list[str | None] | None


class PilotChannel(TracksideRecord, frozen=True, rename="pascal"):
    """Who flies on which channel."""

    pilot: Guid | None = None
    channel: Guid | None = None


class TracksideEvent(TracksideRecord, frozen=True, rename="pascal"):
    """An event: a race day, as a rule."""

    event_type: str | None = None
    name: str | None = None
    start: LocalDate | None = None
    end: LocalDate | None = None
    laps: Integer | None = None
    pb_laps: Integer | None = msgspec.field(name="PBLaps", default=None)
    pack_limit: Integer | None = None
    race_length: TracksideSpan | None = None
    min_start_delay: TracksideSpan | None = None
    max_start_delay: TracksideSpan | None = None
    primary_timing_system_location: str | None = None
    race_start_ignore_detections: TracksideSpan | None = None
    min_lap_time: TracksideSpan | None = None
    last_opened: LocalDate | None = None
    club: Guid | None = None
    track: Guid | None = None
    sectors: msgspec.Raw = NULL
    enabled: bool | None = None
    locked: bool | None = None
    visible_online: bool | None = None
    sync_with_fpv_trackside: bool | None = msgspec.field(name="SyncWithFPVTrackside", default=None)
    sync_with_multi_gp: bool | None = msgspec.field(name="SyncWithMultiGP", default=None)
    generate_heats_multi_gp: bool | None = msgspec.field(name="GenerateHeatsMultiGP", default=None)
    multi_gp_race_format: str | None = msgspec.field(name="MultiGPRaceFormat", default=None)
    pilots_registered: Integer | None = None
    pilot_channels: list[PilotChannel | None] | None = None
    removed_pilots: Ids = None
    channels: Ids = None
    channel_colors: Texts = None
    channel_display_names: Texts = None
    races: Ids = None


class Pilot(TracksideRecord, frozen=True, rename="pascal"):
    """Someone who flies."""

    name: str | None = None
    phonetic: str | None = None
    first_name: str | None = None
    last_name: str | None = None
    silly_name: str | None = None
    discord_id: str | None = msgspec.field(name="DiscordID", default=None)
    aircraft: str | None = None
    catch_phrase: str | None = None
    best_result: str | None = None
    timing_sensitivity_percent: Integer | None = None
    practice_pilot: bool | None = None
    photo_path: str | None = None


class RoundRecord(TracksideRecord, frozen=True, rename="pascal"):
    """A round of races."""

    name: str | None = None
    round_number: Integer | None = None
    event_type: str | None = None
    round_type: str | None = None
    valid: bool | None = None
    round_order: Integer | None = msgspec.field(name="Order", default=None)
    point_summary: msgspec.Raw = NULL
    time_summary: msgspec.Raw = NULL
    lap_count_after_round: bool | None = None
    sheet_format_filename: str | None = None


class Channel(TracksideRecord, frozen=True, rename="pascal"):
    """A frequency."""

    number: Integer | None = None
    band: str | None = None
    short_band: str | None = None
    channel_prefix: str | None = None
    frequency: Integer | None = None
    display_name: str | None = None


class Detection(TracksideRecord, frozen=True, rename="pascal"):
    """A pilot was seen by a timing system; whether that is to be believed, `valid` says."""

    timing_system_index: Integer | None = None
    channel: Guid | None = None
    time: LocalDate | None = None
    peak: Integer | None = None
    timing_system_type: str | None = None
    pilot: Guid | None = None
    lap_number: Integer | None = None
    valid: bool | None = None
    validity_type: str | None = None
    is_lap_end: bool | None = None
    race_sector: Integer | None = None
    is_holeshot: bool | None = None


class Lap(TracksideRecord, frozen=True, rename="pascal"):
    """A lap, which ended with a detection."""

    detection: Guid | None = None
    length_seconds: float | None = None
    lap_number: Integer | None = None
    start: LocalDate | None = msgspec.field(name="StartTime", default=None)
    end: LocalDate | None = msgspec.field(name="EndTime", default=None)


class GamePoint(TracksideRecord, frozen=True, rename="pascal"):
    """A point that was won in a race which is a game."""

    channel: Guid | None = None
    pilot: Guid | None = None
    valid: bool | None = None
    time: LocalDate | None = None


class Race(TracksideRecord, frozen=True, rename="pascal"):
    """A race. What is not listed in it any more is gone."""

    event: Guid | None = None
    round: Guid | None = None
    race_number: Integer | None = None
    start: LocalDate | None = None
    end: LocalDate | None = None
    total_paused_time: TracksideSpan | None = None
    target_laps: Integer | None = None
    primary_timing_system_location: str | None = None
    valid: bool | None = None
    auto_assign_numbers: bool | None = None
    bracket: str | None = None
    laps: list[Lap | None] | None = None
    detections: list[Detection | None] | None = None
    game_points: list[GamePoint | None] | None = None
    pilot_channels: list[PilotChannel | None] | None = None


class RaceResult(TracksideRecord, frozen=True, rename="pascal"):
    """What a pilot came to in a race."""

    event: Guid | None = None
    pilot: Guid | None = None
    race: Guid | None = None
    round: Guid | None = None
    points: Integer | None = None
    position: Integer | None = None
    valid: bool | None = None
    dnf: bool | None = msgspec.field(name="DNF", default=None)
    result_type: str | None = None


_EVENT = Column("event", references="events")
_RACE = Column("race", references="races")
# Whether the detection is valid, and whether it is the way from the start to the gate.
_COUNTED = (Column("counts", ColumnKind.BOOLEAN), Column("is_holeshot", ColumnKind.BOOLEAN))
_WHO = {"pilot": "pilots", "channel": "channels"}

SCHEMA = Schema(
    (
        table_of("events", TracksideEvent),
        table_of("pilots", Pilot),
        table_of("channels", Channel),
        SourceTable("event_pilots", (_EVENT, Column("pilot", references="pilots"))),
        SourceTable(
            "event_channels",
            (
                _EVENT,
                Column("channel"),
                Column("place", ColumnKind.INTEGER),
                Column("color"),
                Column("display_name"),
            ),
        ),
        SourceTable("event_removed_pilots", (_EVENT, Column("pilot"))),
        table_of("event_pilot_channels", PilotChannel, _EVENT),
        table_of("rounds", RoundRecord, _EVENT),
        table_of("races", Race, event="events", round="rounds"),
        table_of("pilot_channels", PilotChannel, _RACE, **_WHO),
        table_of("detections", Detection, _RACE, **_WHO),
        table_of("laps", Lap, _RACE, *_COUNTED, detection="detections"),
        table_of("game_points", GamePoint, _RACE, **_WHO),
        table_of("results", RaceResult, event="events", pilot="pilots", race="races", round="rounds"),
    )
)
