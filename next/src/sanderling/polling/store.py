"""The store: targets, settings, records and their changes, over a `Database`.

We are the only writer besides people, whose edits triggers note. What is stored of a document is its difference to
what is there, so an unchanged row is no change.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from sanderling.clock import Clock
from sanderling.polling.database import Database, Statement, Values
from sanderling.polling.race import RaceRow
from sanderling.polling.tables import BOOLEANS, RECORDS, Row, Value
from sanderling.polling.trackside import Document

Key = tuple[str, str]  # type and sourceId
KEPT_CHANGES = 100_000
_ORPHAN_SECONDS = 86_400.0
_COLUMNS = (
    '"type", "sourceId", "intervalMs", "nextDueAt", "priority", "enabled", "etag", "lastFetchedAt", "lastStatus",'
    ' "event", "failures", "ownMs", "baseMs", "promotedAt", "goneAt"'
)
_POLLED = '"enabled" AND "intervalMs" > 0 AND "goneAt" IS NULL'
_ORDER = 'ORDER BY "nextDueAt", "priority" DESC LIMIT'
_TARGET = 'WHERE "type" = $1 AND "sourceId" = $2'


class PollTarget(NamedTuple):
    """A row of ingest_targets."""

    type: str
    source_id: str
    interval_ms: int
    next_due_at: str = ""
    priority: int = 0
    enabled: bool = True
    etag: str | None = None
    last_fetched_at: str | None = None
    last_status: str | None = None
    event: str = ""
    failures: int = 0
    own_ms: int | None = None  # the interval that we wrote last; another one is a person's
    base_ms: int | None = None  # a person's interval, kept while the race runs
    promoted_at: str | None = None
    gone_at: str | None = None

    @property
    def key(self) -> Key:
        """What tells it from all others."""
        return self.type, self.source_id

    @property
    def is_there(self) -> bool:
        """Whether upstream still has it."""
        return self.gone_at is None


class Change(NamedTuple):
    """A row that came, changed or went."""

    position: int
    at: str
    table: str
    key: str
    op: str
    data: str  # JSON: the new values of what changed, or the whole row


@dataclass(frozen=True, slots=True)
class Polled:
    """How a poll went, for the target's row."""

    target: PollTarget
    status: str
    fetched_at: float
    due: float
    etag: str | None = None
    failures: int = 0
    document: Document | None = None


def iso(wall: float) -> str:
    """An instant as ISO 8601 in UTC, with milliseconds."""
    return datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_of(text: str) -> float:
    """The instant of such a text; the beginning of time for any other, so that what nobody can read is due."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return 0.0
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


class Store:
    """All that is stored."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.database = database
        self._clock = clock

    # Settings

    async def settings(self) -> dict[str, str]:
        """The rows of server_settings."""
        return {
            str(key): str(value)
            for key, value in await self.database.read('SELECT "key", "value" FROM server_settings')
        }

    async def set_settings(self, rows: Mapping[str, str], *, only_new: bool = False) -> None:
        """Write rows of server_settings; `only_new`: those that are there stay."""
        do = "NOTHING" if only_new else 'UPDATE SET "value" = excluded."value"'
        sql = f'INSERT INTO server_settings ("key", "value") VALUES ($1, $2) ON CONFLICT ("key") DO {do}'
        await self.database.write([(sql, list(rows.items()))])

    async def remove_setting(self, key: str) -> None:
        """Remove a row: its default holds again."""
        await self.database.write([('DELETE FROM server_settings WHERE "key" = $1', [(key,)])])

    # Targets

    async def targets(self, limit: int = 100_000) -> list[PollTarget]:
        """All targets, those that are due first at the beginning."""
        return await self._find(f"1 = 1 {_ORDER} $1", limit)

    async def target(self, key: Key) -> PollTarget | None:
        """One target."""
        return next(iter(await self._find(_TARGET.removeprefix("WHERE "), *key)), None)

    async def due(self, limit: int) -> list[PollTarget]:
        """Enabled targets that are due: promoted ones first, then by due time and priority."""
        now = iso(self._clock.wall())
        found = await self._find(
            f'"promotedAt" IS NOT NULL AND "nextDueAt" <= $1 AND {_POLLED} {_ORDER} $2', now, limit
        )
        if len(found) < limit:
            where = f'"nextDueAt" <= $1 AND "promotedAt" IS NULL AND {_POLLED} {_ORDER} $2'
            found += await self._find(where, now, limit - len(found))
        return found

    async def fast(self, below_ms: int) -> list[PollTarget]:
        """Enabled targets with a shorter interval."""
        return await self._find(f'"intervalMs" < 1000 AND "intervalMs" < $1 AND {_POLLED}', below_ms)

    async def _find(self, where: str, *values: object) -> list[PollTarget]:
        rows = await self.database.read(f"SELECT {_COLUMNS} FROM ingest_targets WHERE {where}", *values)
        return [PollTarget(*row)._replace(enabled=bool(row[5])) for row in rows]

    async def add_targets(self, rows: Iterable[tuple[Key, str, int, float, int]]) -> None:
        """Add targets (key, event, interval, due, priority) that are not there; one that was gone is back."""
        sql = """
            INSERT INTO ingest_targets
                ("type", "sourceId", "event", "intervalMs", "ownMs", "nextDueAt", "priority")
            VALUES ($1, $2, $3, $4, $4, $5, $6)
            ON CONFLICT ("type", "sourceId") DO UPDATE SET "event" = excluded."event", "goneAt" = NULL"""
        values = [(*key, event, interval, iso(due), priority) for key, event, interval, due, priority in rows]
        await self.database.write([(sql, values)])

    async def orphan(self, keys: Iterable[Key]) -> None:
        """Poll them no more; a day later their rows are deleted."""
        wall = self._clock.wall()
        await self.database.write([
            (f'UPDATE ingest_targets SET "goneAt" = $3 {_TARGET} AND "goneAt" IS NULL',
             [(*key, iso(wall)) for key in keys]),
            ('DELETE FROM ingest_targets WHERE "goneAt" < $1', [(iso(wall - _ORPHAN_SECONDS),)]),
        ])  # fmt: skip

    async def set_interval(self, key: Key, interval_ms: int, own_ms: int, base_ms: int | None, priority: int) -> None:
        """Write an interval of ours."""
        sql = f'UPDATE ingest_targets SET "intervalMs" = $3, "ownMs" = $4, "baseMs" = $5, "priority" = $6 {_TARGET}'
        await self.database.write([(sql, [(*key, interval_ms, own_ms, base_ms, priority)])])

    async def move_intervals(self, kinds: Iterable[str], interval_ms: int) -> None:
        """Let targets follow a setting, but for the race that runs and those whose interval a person has set."""
        sql = """UPDATE ingest_targets SET "intervalMs" = $2, "ownMs" = $2 WHERE "type" = $1 AND "intervalMs" = "ownMs"
            AND "ownMs" <> $2 AND "priority" < 100 AND ("type" <> 'results' OR "sourceId" = "event")"""
        await self.database.write([(sql, [(kind, interval_ms) for kind in kinds])])

    async def change_target(self, key: Key, changes: Mapping[str, Value]) -> None:
        """Set columns of a target, as a person would."""
        pairs = ", ".join(f'"{name}" = ${number}' for number, name in enumerate(changes, 3))
        await self.database.write([(f"UPDATE ingest_targets SET {pairs} {_TARGET}", [(*key, *changes.values())])])

    async def promote(self, keys: Iterable[Key], priority: int | None = None) -> None:
        """Make targets due now, before all others."""
        now = iso(self._clock.wall())
        more = "" if priority is None else f', "priority" = {priority:d}'
        sql = f'UPDATE ingest_targets SET "nextDueAt" = $3, "promotedAt" = $3{more} {_TARGET} AND "goneAt" IS NULL'
        await self.database.write([(sql, [(*key, now) for key in keys])])

    # Records

    async def races(self, event: str) -> list[RaceRow]:
        """What the rule of races needs."""
        sql = """SELECT races."sourceId", races."valid", races."start", races."end", rounds."order", races."raceNumber"
            FROM races LEFT JOIN rounds ON rounds."sourceId" = races."round" WHERE races."event" = $1"""
        rows = await self.database.read(sql, event)
        return [RaceRow(key, valid is None or bool(valid), start, end, order or 0, number or 0)
                for key, valid, start, end, order, number in rows]  # fmt: skip

    async def event(self) -> str | None:
        """The event that discovery found last."""
        rows = await self.database.read('SELECT "sourceId" FROM events WHERE "isCurrent"')
        return str(rows[0][0]) if rows else None

    async def records(self, table: str, where: str = "", *values: object) -> dict[str, Row]:
        """Rows of a table of records by their keys."""
        names = [each.name for each in RECORDS[table]]
        listed = ", ".join(f'"{name}"' for name in ("sourceId", *names))
        rows = await self.database.read(f'SELECT {listed} FROM "{table}" {where}', *values)
        flags = BOOLEANS[table]
        return {
            str(row[0]): {
                name: bool(value) if name in flags and value is not None else value
                for name, value in zip(names, row[1:], strict=True)
            }
            for row in rows
        }

    async def save(self, polled: Sequence[Polled]) -> list[str]:
        """Store how polls went and what came; what upstream has overwritten that a person had written."""
        wanted: list[Statement] = []
        changes: list[tuple[str, str, str, str]] = []
        for each in polled:
            if each.document is not None:
                await self._difference(each.document, wanted, changes)
        overwritten = await self._overwritten(changes)
        wanted += self._logged(changes)
        wanted += [('DELETE FROM edits WHERE "tableName" = $1 AND "sourceId" = $2', overwritten)] if overwritten else []
        wanted.append((
            f"""UPDATE ingest_targets SET "lastStatus" = $3, "lastFetchedAt" = $4, "failures" = $6,
                "etag" = coalesce($7, "etag"), "promotedAt" = CASE WHEN "promotedAt" > $4 THEN "promotedAt" END,
                "nextDueAt" = CASE WHEN "promotedAt" > $4 THEN "nextDueAt" ELSE $5 END {_TARGET}""",
            [(*each.target.key, each.status[:255], iso(each.fetched_at), iso(each.due), each.failures, each.etag)
             for each in polled],
        ))  # fmt: skip
        await self.database.write(wanted)
        return [f"{table} {key}" for table, key in overwritten]

    async def set_current(self, event: str) -> None:
        """The one event that is current."""
        rows = await self.records("events")
        document = Document(rows={"events": {
            key: {"isCurrent": key == event} for key, row in {event: {}, **rows}.items()
            if row.get("isCurrent") != (key == event)
        }})  # fmt: skip
        await self.save_document(document)

    async def save_document(self, document: Document) -> None:
        """Store rows that came with no target's poll."""
        wanted: list[Statement] = []
        changes: list[tuple[str, str, str, str]] = []
        await self._difference(document, wanted, changes)
        if wanted:
            await self.database.write([*wanted, *self._logged(changes)])

    async def _difference(
        self, document: Document, wanted: list[Statement], changes: list[tuple[str, str, str, str]]
    ) -> None:
        """Add what a document changes to the statements and to the log."""
        scopes = {scope.table: scope for scope in document.scopes}
        now = iso(self._clock.wall())
        for table, rows in document.rows.items():
            scope = scopes.get(table)
            if scope is not None:
                only = f' AND "{scope.only_without}" IS NULL' if scope.only_without else ""
                there = await self.records(table, f'WHERE "{scope.column}" = $1{only}', scope.value)
            elif len(rows) == 1:
                there = await self.records(table, 'WHERE "sourceId" = $1', next(iter(rows)))
            else:
                there = await self.records(table)
            if scope is not None and (missing := rows.keys() - there.keys()):
                # Rows may move: a result of the event becomes one of a race.
                for key in missing if len(missing) < 50 else ():
                    there |= await self.records(table, 'WHERE "sourceId" = $1', key)
                for key in there.keys() - rows.keys():
                    if there[key].get(scope.column) != scope.value:
                        del there[key]
            for key, row in rows.items():
                before = there.get(key)
                changed = {name: value for name, value in row.items() if before is None or before[name] != value}
                if before is not None and not changed:
                    continue
                names = list(changed)
                if before is None:
                    columns = ", ".join(f'"{name}"' for name in ("sourceId", *names, "lastUpdated"))
                    marks = ", ".join(f"${number}" for number in range(1, len(names) + 3))
                    # A table that is read as a whole may still lack what another process wrote meanwhile.
                    sql = f'INSERT INTO "{table}" ({columns}) VALUES ({marks}) ON CONFLICT ("sourceId") DO NOTHING'
                    _add(wanted, sql, (key, *changed.values(), now))
                    changes.append((table, key, "insert", _json(row)))
                else:
                    pairs = ", ".join(f'"{name}" = ${number}' for number, name in enumerate((*names, "lastUpdated"), 2))
                    _add(wanted, f'UPDATE "{table}" SET {pairs} WHERE "sourceId" = $1', (key, *changed.values(), now))
                    changes.append((table, key, "update", _changed_fields(before, changed)))
            if scope is not None:
                for key in there.keys() - rows.keys():
                    _add(wanted, f'DELETE FROM "{table}" WHERE "sourceId" = $1', (key,))
                    changes.append((table, key, "delete", "{}"))

    def _logged(self, changes: Sequence[tuple[str, str, str, str]]) -> list[Statement]:
        """The statements that give changes their positions."""
        if not changes:
            return []
        now, number = iso(self._clock.wall()), len(changes)
        sql = """INSERT INTO changes SELECT "position" - $1, $2, $3, $4, $5, $6 FROM stream"""
        return [
            ('UPDATE stream SET "position" = "position" + $1', [(number,)]),
            (sql, [(number - place, now, *each) for place, each in enumerate(changes, 1)]),
        ]

    async def _overwritten(self, changes: Sequence[tuple[str, str, str, str]]) -> list[tuple[str, str]]:
        edits = {(table, key) for table, key in await self.database.read('SELECT "tableName", "sourceId" FROM edits')}
        return [(table, key) for table, key, _, _ in changes if (table, key) in edits]

    async def edit(self, table: str, key: str, changes: Mapping[str, Value]) -> None:
        """Set columns of a record, as a person would."""
        pairs = ", ".join(f'"{name}" = ${number}' for number, name in enumerate(changes, 2))
        sql = f'UPDATE "{table}" SET {pairs} WHERE "sourceId" = $1'
        await self.database.write([(sql, [(key, *changes.values())])], by_hand=True)

    async def purge(self) -> dict[str, int]:
        """Delete all records and targets; how many there were."""
        counts, changes, wanted = {}, list[tuple[str, str, str, str]](), list[Statement]()
        for table in RECORDS:
            keys = [row[0] for row in await self.database.read(f'SELECT "sourceId" FROM "{table}"')]
            counts[table] = len(keys)
            changes += [(table, key, "delete", "{}") for key in keys]
            wanted.append((f'DELETE FROM "{table}"', [()]))
        counts["ingest_targets"] = (await self.database.read("SELECT count(*) FROM ingest_targets"))[0][0]
        wanted += [("DELETE FROM ingest_targets", [()]), ("DELETE FROM edits", [()])]
        await self.database.write([*wanted, *self._logged(changes)])
        return counts

    # Changes

    async def position(self) -> int:
        """The position of the newest change."""
        return int((await self.database.read('SELECT "position" FROM stream'))[0][0])

    async def oldest(self) -> int:
        """The position of the oldest change that is kept; one beyond the newest if there is none."""
        rows = await self.database.read('SELECT min("position") FROM changes')
        return int(rows[0][0]) if rows[0][0] is not None else await self.position() + 1

    async def changes(self, after: int, limit: int) -> list[Change]:
        """Changes behind a position."""
        sql = 'SELECT * FROM changes WHERE "position" > $1 ORDER BY "position" LIMIT $2'
        return [Change(*row) for row in await self.database.read(sql, after, limit)]

    async def prune(self, keep: int = KEPT_CHANGES) -> None:
        """Drop the oldest changes."""
        sql = 'DELETE FROM changes WHERE "position" <= (SELECT "position" FROM stream) - $1'
        await self.database.write([(sql, [(keep,)])])


def _add(wanted: list[Statement], sql: str, values: Values) -> None:
    """Add a statement; the same one with other values is sent once."""
    if wanted and wanted[-1][0] == sql:
        rows = wanted[-1][1]
        if isinstance(rows, list):
            rows.append(values)
            return
    wanted.append((sql, [values]))


def _changed_fields(before: Row, changed: Row) -> str:
    """The new values of what changed; of a record of JSON, those of its fields that did."""
    if "record" not in changed:
        return _json(changed)
    old, new = (msgspec.json.decode(str(row.get("record") or "null")) for row in (before, changed))
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return _json(changed)
    fields = {name: new.get(name) for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)}
    return msgspec.json.encode({"record": fields}).decode()


def _json(row: Row) -> str:
    return msgspec.json.encode(row).decode()
