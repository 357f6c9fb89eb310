"""Targets in PostgreSQL: for whoever polls, and for discovery.

Whoever polls never waits for an admin. What it takes or writes back are rows that nobody else has locked; the others
have their turn when whoever edits them is done.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from sanderling.stores.polling import LONGEST_PAUSE, Edits, Found, Known, Ran, Reconciliation, Target
from sanderling.stores.polling_rows import MOST_EDITS, is_text, legible
from sanderling.stores.postgres_polling_link import Link

NAMES = [*Target.__struct_fields__]
COLUMNS = ", ".join('"only"' if name == "only" else name for name in NAMES)

DUE = f"""SELECT {COLUMNS} FROM polling_targets
    WHERE wanted AND (next_due, id) > ($1, $2) AND next_due <= $3 ORDER BY next_due, id LIMIT $4"""  # noqa: S608 - ours
FIND = f"SELECT {COLUMNS} FROM polling_targets WHERE kind = $1 AND source_id = $2"  # noqa: S608 - ours
SOME = f"SELECT {COLUMNS} FROM polling_targets WHERE id = ANY($1) ORDER BY id"  # noqa: S608 - ours
THERE = "SELECT id FROM polling_targets WHERE id = ANY($1)"

_RAN = ", ".join(Ran._fields)
WRITE = f"""WITH free AS MATERIALIZED (
        SELECT id FROM polling_targets WHERE id = ANY($1) FOR NO KEY UPDATE SKIP LOCKED)
    UPDATE polling_targets AS its SET {", ".join(f"{name} = given.{name}" for name in Ran._fields[1:])}
    FROM unnest($1::bigint[], $2::float8[], $3::float8[], $4::bigint[], $5::bigint[], $6::bigint[], $7::float8[],
        $8::float8[], $9::text[], $10::float8[], $11::float8[]) AS given ({_RAN}) JOIN free USING (id)
    WHERE its.id = given.id RETURNING its.id"""  # noqa: S608 - ours
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

KNOWN = """SELECT id, kind, source_id, event, "only", seconds, priority, gone FROM polling_targets ORDER BY id"""
FETCHED = "SELECT DISTINCT event, kind FROM polling_targets WHERE fetched IS NOT NULL"
LOCK = "SELECT FROM polling_targets WHERE id = ANY($1) ORDER BY id FOR UPDATE"
_GIVEN = "$2::text[], $3::text[], $4::text[], $5::text[], $6::float8[], $7::bigint[]"
_AGAIN = """"only" IS DISTINCT FROM {new}."only" """
# In both of these $1 is the time.
_FIND = f"""event = {{new}}.event, "only" = {{new}}."only", seconds = {{new}}.seconds, priority = {{new}}.priority,
    gone = NULL,
    next_due = CASE WHEN its.{_AGAIN} THEN $1 ELSE its.next_due END,
    etag = CASE WHEN its.{_AGAIN} THEN '' ELSE its.etag END,
    modified = CASE WHEN its.{_AGAIN} THEN '' ELSE its.modified END,
    digest = CASE WHEN its.{_AGAIN} THEN '' ELSE its.digest END"""
INSERT = f"""INSERT INTO polling_targets AS its (kind, source_id, event, "only", seconds, priority, next_due)
    SELECT kind, source_id, event, "only"::text[], seconds, priority, $1
    FROM unnest({_GIVEN}) AS given (kind, source_id, event, "only", seconds, priority) ORDER BY kind, source_id
    ON CONFLICT (kind, source_id) DO UPDATE SET {_FIND.format(new="excluded")}"""  # noqa: S608 - ours
UPDATE = f"""UPDATE polling_targets AS its SET {_FIND.format(new="given")}
    FROM (SELECT id, event, "only"::text[], seconds, priority FROM unnest({_GIVEN}, $8::bigint[])
        AS sent (kind, source_id, event, "only", seconds, priority, id)) AS given WHERE its.id = given.id"""  # noqa: S608 - ours
GONE = "UPDATE polling_targets SET gone = $1 WHERE id = ANY($2) AND gone IS NULL"
DELETE = "DELETE FROM polling_targets WHERE id = ANY($1)"

LOCK_ALL = "SELECT count(*) FROM (SELECT FROM polling_targets ORDER BY id FOR NO KEY UPDATE) AS locked"
SHIFT = "UPDATE polling_targets SET next_due = next_due + $1, until = until + $1"
ANOTHER_CLOCK = f"""WITH meant AS MATERIALIZED (
        SELECT id FROM polling_targets WHERE next_due - $1 > greatest(coalesce(set_seconds, seconds), {LONGEST_PAUSE})
        ORDER BY id FOR NO KEY UPDATE)
    UPDATE polling_targets SET next_due = $1 WHERE id IN (SELECT id FROM meant)"""  # noqa: S608 - ours


class PostgresTargets:
    """Targets, for whoever polls."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._owed: dict[int, Ran] = {}  # what could not be written because somebody edits it

    async def due(self, after: tuple[float, int], until: float, most: int) -> list[Target]:
        """Those that are wanted and due behind `after` (next_due and id) and up to `until`, in that order."""
        return targets(await self._link.read(DUE, *after, until, most))

    async def find(self, kind: str, source_id: str) -> Target | None:
        """The one of that name."""
        found = await self._link.read(FIND, kind, source_id) if is_text(kind + source_id) else []
        return targets(found)[0] if found else None

    async def write(self, runs: Sequence[Ran]) -> None:
        """Write these back, in one transaction; those that are no more are passed over.

        One that somebody is editing just now is written back later, and then noted as an edit: whoever polls believes
        that it was written, and may not look again.
        """
        late, owed = self._owed, self._owed | {run.id: run for run in runs}
        if not owed:
            return

        async def work(db: Any) -> dict[int, Ran]:  # noqa: ANN401 - asyncpg has no types
            arrays = zip(*(run._replace(status=legible(run.status)) for run in owed.values()), strict=True)
            written = {number for (number,) in await db.fetch(WRITE, *arrays)}
            if news := [number for number in late if number in written]:
                await db.execute(NOTE, news)
            rest = [number for number in owed if number not in written]
            return {number: owed[number] for (number,) in await db.fetch(THERE, rest)} if rest else {}

        self._owed = await self._link.write(work, durable=False)

    async def take_edits(self, wall: float) -> Edits:
        """The next edits, of some thousand targets at most; none if there are no more.

        Promotions that are taken become due times, durably.
        """
        if self._owed:
            await self.write(())

        async def work(db: Any) -> Edits:  # noqa: ANN401 - no types
            if touched := await db.fetch(TOUCHED):
                await db.execute(READ_AGAIN, *zip(*touched, strict=True))
            ids = [number for (number,) in await db.fetch(TAKE, MOST_EDITS)]
            if not ids:
                return Edits()
            rows = await db.fetch(SOME, ids)
            due = {number: times for number, *times in await db.fetch(PROMOTE, ids, wall)}
            found = targets(rows, due)
            return Edits(tuple(found), tuple(sorted({*ids}.difference(each.id for each in found))))

        return await self._link.write(work)


class PostgresDiscovery:
    """Targets, for whoever says which there should be."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def known(self) -> list[Known]:
        """All of them, those that are gone too."""
        return [
            Known(number, Found(kind, source_id, event, _tuple(only), seconds, priority), gone)
            for number, kind, source_id, event, only, seconds, priority, gone in await self._link.read(KNOWN)
        ]

    async def apply(self, plan: Reconciliation, wall: float) -> None:
        """Do so in one transaction. New ones are due at `wall`; if `only` changed, it is due then, and read again.

        One that somebody else has put in meanwhile is no trouble.
        """
        new = {(each.kind, each.source_id): each for each in plan.insert}
        changed = dict(plan.update)

        async def work(db: Any) -> None:  # noqa: ANN401 - no types
            # All of them lock in one order, so that nobody waits in a ring.
            await db.execute(LOCK, [*changed, *plan.gone, *plan.delete])
            await db.execute(DELETE, plan.delete)
            await db.execute(GONE, wall, plan.gone)
            if changed:
                await db.execute(UPDATE, wall, *_arrays(changed.values()), [*changed])
            if new:
                await db.execute(INSERT, wall, *_arrays(new.values()))

        if any(plan):
            await self._link.write(work)

    async def fetched(self) -> set[tuple[str, str]]:
        """Event and kind of all targets that went well at least once."""
        return {(event, kind) for event, kind in await self._link.read(FETCHED)}


async def correct_clock(db: Any, wall: float) -> None:  # noqa: ANN401 - no types
    """Make due what is due later than its interval allows."""
    await db.execute(ANOTHER_CLOCK, wall)


async def shift(db: Any, seconds: float) -> None:  # noqa: ANN401 - no types
    """Move all due times and ends of acceleration."""
    await db.execute(LOCK_ALL)
    await db.execute(SHIFT, seconds)


def targets(rows: Iterable[Any], times: dict[int, list[Any]] | None = None) -> list[Target]:
    """The targets of these rows; with other due times and ends of acceleration, by id."""
    found = []
    for row in rows:
        fields = dict(zip(NAMES, row, strict=True))
        fields["only"] = _tuple(fields["only"])
        if times and fields["id"] in times:
            fields["next_due"], fields["until"] = times[fields["id"]]
        found.append(Target(**fields))
    return found


def _tuple(only: list[str] | None) -> tuple[str, ...] | None:
    return None if only is None else tuple(only)


def _arrays(found: Iterable[Found]) -> list[tuple[Any, ...]]:
    """What discovery wants, column by column."""
    return list(zip(*(each._replace(only=_array(each.only)) for each in found), strict=True))  # type: ignore[arg-type]  # as it travels


def _array(only: tuple[str, ...] | None) -> str | None:
    """An array as text: one of arrays would be taken for a single array of two dimensions."""
    if only is None:
        return None
    quoted = ('"' + key.replace("\\", r"\\").replace('"', r"\"") + '"' for key in only)
    return f"{{{','.join(quoted)}}}"
