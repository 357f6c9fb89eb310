"""What PostgreSQL does in its own way with the targets of `polling`.

Whoever polls never waits for an admin. What it takes or writes back are rows that nobody else has locked; the others
have their turn when whoever edits them is done.
"""
# ruff: noqa: S608 - all names are ours, all values are parameters

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from sanderling.stores.database import Insert, Row, SqlCondition, Transaction
from sanderling.stores.polling import (
    LONGEST_PAUSE,
    Edits,
    KnownTarget,
    PollingTarget,
    Query,
    StoredTargetCounts,
    TargetRun,
    WantedTarget,
)
from sanderling.stores.polling_documents import DocumentStatements, insert_changes
from sanderling.stores.polling_lease import PollingDatabase
from sanderling.stores.polling_rows import LARGEST, LARGEST_PAGE, MOST_EDITS, legible
from sanderling.stores.polling_store import COLUMNS, FOUND, LISTED, WHOLE, Statements, as_found
from sanderling.stores.postgres_polling_tables import WRITING

NAMES = [*PollingTarget.__struct_fields__]

_CHANGES = insert_changes('"table"', '"values"')
DOCUMENTS = DocumentStatements(
    at_once=True,
    # What is written to rows in this transaction is no edit by hand.
    newest=f"SELECT newest, set_config('{WRITING}', 'on', true) FROM polling_meta FOR NO KEY UPDATE",
    by_us=(),
    make_index="",
    changes=_CHANGES,
    number=f"WITH written AS ({_CHANGES.postgres}) UPDATE polling_meta SET newest = ${len(_CHANGES.columns) + 1}",
    page=f"""SELECT {", ".join(_CHANGES.columns)} FROM (
            SELECT *, sum(octet_length("values"::text)) OVER (ORDER BY seq) - octet_length("values"::text) AS before
            FROM (SELECT * FROM polling_changes WHERE seq > ? ORDER BY seq LIMIT ?) AS following) AS counted
        WHERE before <= {LARGEST_PAGE} ORDER BY seq""",
    # Nobody waits for an admin who is just editing the target. What is not noted is read again, and found the same.
    remember="""UPDATE polling_targets SET etag = ?3, modified = ?4, digest = ?5, changed = coalesce(?6, changed)
        WHERE id = (SELECT id FROM polling_targets WHERE kind = ?1 AND source_id = ?2 FOR NO KEY UPDATE SKIP LOCKED)""",
    read_again=(
        """WITH others AS MATERIALIZED (
            SELECT id FROM polling_targets WHERE event = ?3 AND (kind, source_id) <> (?1, ?2)
            ORDER BY id + 0 FOR NO KEY UPDATE),
        forgotten AS (
            UPDATE polling_targets SET etag = '', modified = '', digest = ''
            WHERE id = ANY (ARRAY(SELECT id FROM others)))
        INSERT INTO polling_edits (target) SELECT id FROM others
        ON CONFLICT (target) DO UPDATE SET target = excluded.target""",
    ),
    span="SELECT coalesce((SELECT min(seq) FROM polling_changes), 0), newest FROM polling_meta",
    trim="DELETE FROM polling_changes WHERE seq <= (SELECT newest FROM polling_meta) - ?",
)
SAID = Statements(
    enabled="enabled",
    paused="NOT enabled",
    any_kind="true",
    # In the order of ids, as all others who change many: so nobody waits in a ring.
    promote="""WITH asked (seconds) AS (VALUES (?::float8)), meant AS MATERIALIZED (
            SELECT id FROM polling_targets WHERE wanted AND {} ORDER BY id FOR NO KEY UPDATE)
        UPDATE polling_targets SET promote = (SELECT seconds FROM asked) WHERE id IN (SELECT id FROM meant)""",
    settings="SELECT key, value FROM polling_settings",
    differs="{0} IS DISTINCT FROM {1}",
    no_bytes="''",
    clamp=f"""WITH meant AS MATERIALIZED (
            SELECT id FROM polling_targets
            WHERE next_due - ?1 > greatest(coalesce(set_seconds, seconds), {LONGEST_PAUSE})
            ORDER BY id FOR NO KEY UPDATE)
        UPDATE polling_targets SET next_due = ?1 WHERE id IN (SELECT id FROM meant)""",
    shift=(
        "SELECT count(*) FROM (SELECT FROM polling_targets ORDER BY id FOR NO KEY UPDATE) AS locked",
        "UPDATE polling_targets SET next_due = next_due + ?1, until = until + ?1",
    ),
    lock="SELECT FROM polling_targets WHERE id = ANY(?) ORDER BY id FOR UPDATE",
    documents=DOCUMENTS,
)

DUE = f"""SELECT {COLUMNS} FROM polling_targets
    WHERE wanted AND (next_due, id) > ($1, $2) AND next_due <= $3 ORDER BY next_due, id LIMIT $4"""
SOME = f"SELECT {COLUMNS} FROM polling_targets WHERE id = ANY($1) ORDER BY id"
THERE = "SELECT id FROM polling_targets WHERE id = ANY($1)"

_RAN = ", ".join(TargetRun._fields)
WRITE = f"""WITH free AS MATERIALIZED (
        SELECT id FROM polling_targets WHERE id = ANY($1) FOR NO KEY UPDATE SKIP LOCKED)
    UPDATE polling_targets AS its SET {", ".join(f"{name} = given.{name}" for name in TargetRun._fields[1:])}
    FROM unnest($1::bigint[], $2::float8[], $3::float8[], $4::bigint[], $5::bigint[], $6::bigint[], $7::float8[],
        $8::float8[], $9::text[], $10::float8[], $11::float8[]) AS given ({_RAN}) JOIN free USING (id)
    WHERE its.id = given.id RETURNING its.id"""
NOTE = """INSERT INTO polling_edits (target) SELECT unnest($1::bigint[])
    ON CONFLICT (target) DO UPDATE SET target = excluded.target"""

# Of a target that is no more, there is nothing to be locked.
TAKE = """WITH edited AS MATERIALIZED (
        SELECT target FROM polling_edits ORDER BY target LIMIT $1 FOR UPDATE SKIP LOCKED),
    free AS MATERIALIZED (
        SELECT id FROM polling_targets WHERE id IN (SELECT target FROM edited) FOR NO KEY UPDATE SKIP LOCKED)
    DELETE FROM polling_edits WHERE target IN (SELECT target FROM edited) AND (target IN (SELECT id FROM free)
        OR NOT EXISTS (SELECT FROM polling_targets WHERE id = target))
    RETURNING target"""
# One that came by hand has no due time yet.
PROMOTE = """UPDATE polling_targets SET promote = NULL, next_due = least(next_due, $2),
        until = CASE WHEN promote > 0 THEN $2 + promote ELSE until END
    WHERE id = ANY($1) AND (promote IS NOT NULL OR next_due = 'Infinity') RETURNING id, next_due, until"""

# Rows of the source that were edited by hand; those whose editor is not done yet are left for the next time.
TOUCHED = """WITH free AS MATERIALIZED (SELECT kind, source_id, event FROM polling_touched FOR UPDATE SKIP LOCKED)
    DELETE FROM polling_touched WHERE (kind, source_id, event) IN (SELECT kind, source_id, event FROM free)
    RETURNING kind, source_id, event"""
READ_AGAIN = """WITH touched AS MATERIALIZED (
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[]) AS given (kind, source_id, event))
    UPDATE polling_targets SET promote = coalesce(promote, 0), etag = '', modified = '', digest = ''
    WHERE (kind, source_id) IN (SELECT kind, source_id FROM touched)
    OR event IN (SELECT event FROM touched WHERE source_id = '')
    OR EXISTS (SELECT FROM touched WHERE source_id = '' AND event = '')"""

FETCHED = "SELECT DISTINCT event, kind FROM polling_targets WHERE fetched IS NOT NULL"
SENT = Insert("", {**FOUND, "id": WHOLE})
_ONLY = LISTED.made.format('"only"')
UPDATE = f"""UPDATE polling_targets AS its SET {as_found(SAID, "new.{0}", f"${len(SENT.columns) + 1}")}
    FROM (SELECT id, event, {_ONLY} AS "only", seconds, priority FROM {SENT.given}) AS new WHERE its.id = new.id"""
COUNT = """SELECT count(*) FILTER (WHERE gone IS NULL), count(*) FILTER (WHERE gone IS NULL AND NOT enabled),
    count(*) FILTER (WHERE wanted AND next_due <= ?1), count(*) FILTER (WHERE wanted AND until > ?1),
    count(*) FILTER (WHERE gone IS NULL AND failures > 0), count(*) FILTER (WHERE gone IS NOT NULL)
    FROM polling_targets"""


class PostgresPollingDialect:
    """See `PollingDialect`."""

    said = SAID

    def __init__(self) -> None:
        self._owed: dict[int, TargetRun] = {}  # what could not be written because somebody edits it

    async def rows(self, db: Transaction, query: str, *values: object) -> list[Row]:
        return await db.fetch(query, *values)

    def target(self, row: Row) -> PollingTarget:
        fields = dict(zip(NAMES, row, strict=True))
        fields["only"] = _tuple(fields["only"])
        return PollingTarget(**fields)

    def known(self, row: Row) -> KnownTarget:
        number, kind, source_id, event, only, seconds, priority, gone = row
        return KnownTarget(number, WantedTarget(kind, source_id, event, _tuple(only), seconds, priority), gone)

    async def due(self, db: Transaction, after: tuple[float, int], until: float, most: int) -> list[PollingTarget]:
        return [self.target(row) for row in await db.fetch(DUE, *after, until, most)]

    async def listed(self, db: Transaction, query: Query, meant: SqlCondition) -> list[PollingTarget]:
        behind, after = (" AND (next_due, id) > (?, ?)", query.after) if query.after is not None else ("", ())
        page = f"""SELECT {COLUMNS} FROM polling_targets WHERE {meant.sql}{behind}
            ORDER BY next_due, id LIMIT {min(query.most, LARGEST)}"""
        return [self.target(row) for row in await db.fetch(page, *meant.values, *after)]

    async def count(self, db: Transaction, wall: float) -> StoredTargetCounts:
        return StoredTargetCounts(*(await db.fetch(COUNT, wall))[0])

    async def fetched(self, db: Transaction) -> set[tuple[str, str]]:
        """Event and kind of all targets that went well at least once."""
        return {(event, kind) for event, kind in await db.fetch(FETCHED)}

    async def write(self, database: PollingDatabase, runs: Sequence[TargetRun]) -> None:
        """Write these back.

        One that somebody is editing just now is written back later, and then noted as an edit: whoever polls believes
        that it was written, and may not look again.
        """
        late, owed = self._owed, self._owed | {run.id: run for run in runs}
        if not owed:
            return

        async def work(db: Transaction) -> dict[int, TargetRun]:
            arrays = zip(*(run._replace(status=legible(run.status)) for run in owed.values()), strict=True)
            written = {number for (number,) in await db.fetch(WRITE, *arrays)}
            if news := [number for number in late if number in written]:
                await db.execute(NOTE, news)
            rest = [number for number in owed if number not in written]
            return {number: owed[number] for (number,) in await db.fetch(THERE, rest)} if rest else {}

        self._owed = await database.write(work, durable=False)

    async def take_edits(self, database: PollingDatabase, wall: float) -> Edits:
        if self._owed:
            await self.write(database, ())
        return await database.write(lambda db: self._take_edits(db, wall))

    async def _take_edits(self, db: Transaction, wall: float) -> Edits:
        if touched := await db.fetch(TOUCHED):
            await db.execute(READ_AGAIN, *zip(*touched, strict=True))
        ids = [number for (number,) in await db.fetch(TAKE, MOST_EDITS)]
        if not ids:
            return Edits()
        rows = await db.fetch(SOME, ids)
        due = {number: times for number, *times in await db.fetch(PROMOTE, ids, wall)}
        found = [_timed(self.target(row), due) for row in rows]
        return Edits(tuple(found), tuple(sorted({*ids}.difference(each.id for each in found))))

    async def update(self, db: Transaction, changed: Mapping[int, WantedTarget], wall: float) -> None:
        await db.execute(UPDATE, *SENT.parameters((*each, number) for number, each in changed.items()), wall)


def _timed(each: PollingTarget, times: Mapping[int, list[float]]) -> PollingTarget:
    """With another due time and end of acceleration, if it has such."""
    if each.id not in times:
        return each
    next_due, until = times[each.id]
    return replace(each, next_due=next_due, until=until)


def _tuple(only: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if only is None else tuple(only)
