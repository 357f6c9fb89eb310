"""The tables: seed 004's two with its columns, a table for each kind of record, and the log of changes.

One set of statements serves SQLite and PostgreSQL; only what makes the tables differs. Triggers notice what people
write by SQL: while we write, `stream.own` is 1, which nobody else ever sees.
"""

from collections.abc import Iterator
from typing import NamedTuple

Value = str | int | float | bool | None
Row = dict[str, Value]

FORMAT = 1


class RecordColumn(NamedTuple):
    """A column, and the field of upstream's document that it holds."""

    field: str
    name: str
    kind: str  # text, date, int, real, bool, or list and json, which hold JSON


def _name(field: str) -> str:
    """Start is `start`, PBLaps `pbLaps`, DNF `dnf`."""
    capitals = len(field) - len(field.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    first = capitals if capitals in (1, len(field)) else capitals - 1
    return field[:first].lower() + field[first:]


def _columns(text: str) -> tuple[RecordColumn, ...]:
    pairs = [word.partition(":") for word in text.split()]
    return tuple([RecordColumn(field, _name(field), kind or "text") for field, _, kind in pairs])


# Fields are upstream's, and a column is its field with a small first letter: Start is `start`. Lists of an object that
# have a table of their own are not repeated.
RECORDS: dict[str, tuple[RecordColumn, ...]] = {
    "events": _columns(
        "Name EventType Start:date End:date Laps:int PBLaps:int PackLimit:int RaceLength MinStartDelay MaxStartDelay"
        " PrimaryTimingSystemLocation RaceStartIgnoreDetections MinLapTime LastOpened:date Rounds:list Races:list"
        " Channels:list ChannelColors:list ChannelDisplayNames:list Sectors:list Club Track TimeZone Enabled:bool"
        " RulesLocked:bool VisibleOnline:bool IsCurrent:bool"
    ),
    "eventPilots": _columns("Event Pilot Channel Removed:bool"),
    "pilots": _columns(
        "Name Phonetic FirstName LastName SillyName DiscordID Aircraft CatchPhrase BestResult"
        " TimingSensitivityPercent:int PracticePilot:bool PhotoPath"
    ),
    "rounds": _columns("Event Name RoundNumber:int EventType RoundType Valid:bool Order:int Stage"),
    "channels": _columns("Number:int Band ShortBand ChannelPrefix Frequency:int DisplayName"),
    "races": _columns(
        "Event Round RaceNumber:int Start:date End:date TotalPausedTime TargetLaps:int PrimaryTimingSystemLocation"
        " Valid:bool AutoAssignNumbers:bool Bracket"
    ),
    "pilotChannels": _columns("Event Race Pilot Channel"),
    "detections": _columns(
        "Event Race TimingSystemIndex:int Channel Time:date Peak:int TimingSystemType Pilot LapNumber:int Valid:bool"
        " ValidityType IsLapEnd:bool RaceSector:int IsHoleshot:bool"
    ),
    "laps": _columns("Event Race Detection LengthSeconds:real LapNumber:int StartTime:date EndTime:date"),
    "gamePoints": _columns("Event Race Pilot Channel Time:date Valid:bool"),
    "results": _columns(
        "Event Race Round Pilot Points:int Position:int Valid:bool DNF:bool ResultType Time LapsFinished:int"
    ),
    "documents": _columns("Document Record:json"),  # of any other JSON
}
BOOLEANS = {table: frozenset(each.name for each in columns if each.kind == "bool")
            for table, columns in RECORDS.items()}  # fmt: skip

TARGET_TYPES = ("event", "pilots", "channels", "rounds", "race", "results", "event_snapshot", "document")
SNAPSHOT = ("event", "pilots", "channels", "rounds")
# What an edit by hand makes due, as SQL over the row that was edited.
_SNAPSHOT_DUE = "\"type\" IN ('event', 'pilots', 'channels', 'rounds', 'event_snapshot', 'results')"
_DUE = {
    "events": _SNAPSHOT_DUE,
    "eventPilots": _SNAPSHOT_DUE,
    "pilots": _SNAPSHOT_DUE,
    "rounds": _SNAPSHOT_DUE,
    "channels": _SNAPSHOT_DUE,
    "races": '"type" = \'race\' AND "sourceId" = {row}."sourceId"',
    "documents": '"type" = \'document\' AND "sourceId" = {row}."document"',
}
_OF_RACE = '"type" = \'race\' AND "sourceId" = {row}."race"'

_TYPES = {
    "sqlite": {"int": "INTEGER", "real": "REAL", "bool": "INTEGER"},
    "postgres": {"int": "BIGINT", "real": "DOUBLE PRECISION", "bool": "BOOLEAN"},
}
_NOW = {
    "sqlite": "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')",
    "postgres": "to_char(clock_timestamp() AT TIME ZONE 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')",
}


def statements(dialect: str) -> Iterator[str]:
    """What makes the tables and their triggers."""
    types = _TYPES[dialect]
    integer, boolean = types["int"], types["bool"]
    true, false = ("1", "0") if dialect == "sqlite" else ("TRUE", "FALSE")
    strict = " STRICT" if dialect == "sqlite" else ""
    check = ' CHECK ("enabled" IN (0, 1))' if dialect == "sqlite" else ""
    known = ", ".join(f"'{each}'" for each in TARGET_TYPES)
    yield f"""CREATE TABLE ingest_targets (
        "type" TEXT NOT NULL CHECK ("type" IN ({known})), "sourceId" TEXT NOT NULL,
        "intervalMs" {integer} NOT NULL DEFAULT 5000 CHECK ("intervalMs" >= 0),
        "nextDueAt" TEXT NOT NULL DEFAULT '', "priority" {integer} NOT NULL DEFAULT 0,
        "enabled" {boolean} NOT NULL DEFAULT {true}{check}, "etag" TEXT, "lastFetchedAt" TEXT, "lastStatus" TEXT,
        "event" TEXT NOT NULL DEFAULT '', "failures" {integer} NOT NULL DEFAULT 0,
        "ownMs" {integer}, "baseMs" {integer}, "promotedAt" TEXT, "goneAt" TEXT,
        PRIMARY KEY ("type", "sourceId")){strict}"""
    yield 'CREATE INDEX ingest_targets_due ON ingest_targets ("nextDueAt", "priority")'
    yield 'CREATE INDEX ingest_targets_fast ON ingest_targets ("intervalMs") WHERE "intervalMs" < 1000'
    yield 'CREATE INDEX ingest_targets_promoted ON ingest_targets ("promotedAt") WHERE "promotedAt" IS NOT NULL'
    yield f'CREATE TABLE server_settings ("key" TEXT PRIMARY KEY, "value" TEXT NOT NULL){strict}'
    yield f"""CREATE TABLE stream ("own" {integer} NOT NULL, "position" {integer} NOT NULL,
        "format" {integer} NOT NULL){strict}"""
    yield f"INSERT INTO stream VALUES (0, 0, {FORMAT})"
    yield f"""CREATE TABLE changes ("position" {integer} PRIMARY KEY, "at" TEXT NOT NULL, "tableName" TEXT NOT NULL,
        "sourceId" TEXT NOT NULL, "op" TEXT NOT NULL, "data" TEXT NOT NULL){strict}"""
    yield f"""CREATE TABLE edits ("tableName" TEXT NOT NULL, "sourceId" TEXT NOT NULL, "at" TEXT NOT NULL,
        PRIMARY KEY ("tableName", "sourceId")){strict}"""
    for table, columns in RECORDS.items():
        written = ", ".join(f'"{each.name}" {types.get(each.kind, "TEXT")}' for each in columns)
        default = written.replace('"isCurrent" ' + boolean, f'"isCurrent" {boolean} NOT NULL DEFAULT {false}')
        yield f'CREATE TABLE "{table}" ("sourceId" TEXT PRIMARY KEY, {default}, "lastUpdated" TEXT){strict}'
        names = {each.name for each in columns}
        for name in ("race", "event", "document"):
            if name in names:
                yield f'CREATE INDEX "{table}_{name}" ON "{table}" ("{name}")'
        yield from _triggers(dialect, table, columns)


def _triggers(dialect: str, table: str, columns: tuple[RecordColumn, ...]) -> Iterator[str]:
    now = _NOW[dialect]
    due = _DUE.get(table, _OF_RACE)
    for op, row in (("insert", "NEW"), ("update", "NEW"), ("delete", "OLD")):
        if dialect == "sqlite":
            pairs = ", ".join(f"'{each}', {row}.\"{each}\"" for each in ("sourceId", *(one.name for one in columns)))
            data = f"json_object({pairs})" if op != "delete" else "'{}'"
        else:
            data = f"row_to_json({row})::text" if op != "delete" else "'{}'"
        body = f"""
            UPDATE stream SET "position" = "position" + 1;
            INSERT INTO changes SELECT "position", {now}, '{table}', {row}."sourceId", '{op}', {data} FROM stream;
            INSERT INTO edits VALUES ('{table}', {row}."sourceId", {now})
                ON CONFLICT ("tableName", "sourceId") DO UPDATE SET "at" = excluded."at";
            UPDATE ingest_targets SET "nextDueAt" = {now}, "promotedAt" = {now} WHERE {due.format(row=row)};"""
        name = f"{table}_{op}_by_hand"
        if dialect == "sqlite":
            yield f"""CREATE TRIGGER "{name}" AFTER {op} ON "{table}"
                WHEN (SELECT "own" FROM stream) = 0 BEGIN {body} END"""
        else:
            yield f"""CREATE FUNCTION "{name}"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF (SELECT "own" FROM stream) = 0 THEN {body} END IF; RETURN NULL; END $$"""
            yield f"""CREATE TRIGGER "{name}" AFTER {op} ON "{table}" FOR EACH ROW EXECUTE FUNCTION "{name}"()"""
