"""The tables of a polling store in PostgreSQL: its own, with the triggers that note edits, and those of the source.

Tricky bits:

- Everything is named with its schema. A table of a source may be called as one of the server's own, which would be
  found first.
- The function behind the triggers acts for whoever made the tables, so that an admin needs no more than the right to
  update the columns of an admin.
"""

from typing import Any

import msgspec

from sanderling.stores.documents import Column, ColumnKind, Schema, SourceTable
from sanderling.stores.polling import PollingStoreError
from sanderling.stores.polling_rows import LONGEST_SECONDS, check_names
from sanderling.stores.postgres_server import PostgresAddress, make_schema, relations

FORMAT = 2  # of the tables; in 1 a lock told who polls, and since 2 a lease does
TEXT, NUMBER = 'text COLLATE "C"', "double precision"  # texts in the order of code points, as we have it
TYPES = {
    ColumnKind.TEXT: TEXT,
    ColumnKind.INTEGER: "bigint",
    ColumnKind.REAL: NUMBER,
    ColumnKind.BOOLEAN: "boolean",
}
# The comment by which we know a table of a source again, also one that the source had in earlier times.
OURS = "rows of sanderling polling"
# What rows are asked for by, besides what refers to others: their event, and the document that listed them.
LOOKED_UP = ("event", "target")

# "SANP", and beside it the schema: two of those do not wait for each other.
ALONE = "SELECT pg_advisory_xact_lock(1396788816, hashtext($1))"
COLUMNS_THERE = """SELECT its.relname, attname, format_type(atttypid, atttypmod), parent.relname
    FROM pg_class AS its JOIN pg_attribute ON attrelid = its.oid AND attnum > 0 AND NOT attisdropped
    LEFT JOIN pg_constraint ON conrelid = its.oid AND contype = 'f' AND conkey = ARRAY[attnum]
    LEFT JOIN pg_class AS parent ON parent.oid = confrelid
    WHERE its.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1)
        AND obj_description(its.oid, 'pg_class') = $2"""

# By discovery, and by an admin. `promote` is another matter, since whoever polls takes it away.
EDITED = (
    *("kind", "source_id", "event", '"only"', "seconds", "priority", "gone"),
    *("enabled", "set_seconds", "set_priority"),
)
# A target that was put in by hand has no due time until whoever polls hears of it: the clock that counts is theirs.
_FINITE = f"{NUMBER} CHECK ({{0}} > '-Infinity' AND {{0}} < 'Infinity')"  # NaN is the greatest of all
_LASTING = f"{NUMBER} CHECK ({{0}} {{1}} 0 AND {{0}} < {LONGEST_SECONDS:.0f})"

_META = f"""(
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    format integer NOT NULL,
    source {TEXT} NOT NULL,
    tables text NOT NULL,
    newest bigint NOT NULL DEFAULT 0
)"""
_TARGETS = f"""(
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind {TEXT} NOT NULL,
    source_id {TEXT} NOT NULL,
    event {TEXT} NOT NULL DEFAULT '',
    "only" text[],
    seconds {_LASTING.format("seconds", ">=")} NOT NULL,
    priority bigint NOT NULL DEFAULT 0,
    gone {_FINITE.format("gone")},
    enabled boolean NOT NULL DEFAULT true,
    set_seconds {_LASTING.format("set_seconds", ">")},
    set_priority bigint,
    promote {_LASTING.format("promote", ">=")},
    next_due {NUMBER} NOT NULL DEFAULT 'Infinity' CHECK (next_due > '-Infinity' AND next_due <= 'Infinity'),
    until {_FINITE.format("until")},
    runs bigint NOT NULL DEFAULT 0,
    missed bigint NOT NULL DEFAULT 0,
    failures bigint NOT NULL DEFAULT 0,
    asked {NUMBER},
    fetched {NUMBER},
    changed {NUMBER},
    status text NOT NULL DEFAULT '',
    etag text NOT NULL DEFAULT '',
    modified text NOT NULL DEFAULT '',
    digest bytea NOT NULL DEFAULT '',
    polls {NUMBER} NOT NULL DEFAULT 0,
    hits {NUMBER} NOT NULL DEFAULT 0,
    wanted boolean GENERATED ALWAYS AS (enabled AND gone IS NULL AND coalesce(set_seconds, seconds) > 0) STORED,
    UNIQUE (kind, source_id)
) WITH (fillfactor = 70)"""
_CHANGES = f"""(
    seq bigint PRIMARY KEY,
    at {NUMBER} NOT NULL,
    op text NOT NULL,
    "table" text NOT NULL,
    key text NOT NULL,
    "values" json NOT NULL,
    fields json NOT NULL,
    kind text NOT NULL,
    source_id text NOT NULL,
    event text NOT NULL
)"""
# In a table with a column `target` there are the rows of targets whose kind is the name of the table.
_TOUCHED = f"""(kind {TEXT}, source_id {TEXT}, event {TEXT}, PRIMARY KEY (kind, source_id, event))"""
# What the limiter of whoever polls knows, for whoever polls next.
_LIMITER = "(one boolean PRIMARY KEY DEFAULT true CHECK (one), saved bytea NOT NULL, news bytea NOT NULL)"
OWN = {
    "polling_meta": _META,
    "polling_targets": _TARGETS,
    "polling_edits": "(target bigint PRIMARY KEY)",
    "polling_touched": _TOUCHED,
    "polling_changes": _CHANGES,
    "polling_settings": f"(key {TEXT} PRIMARY KEY, value text NOT NULL)",
    "polling_positions": f"(name {TEXT} PRIMARY KEY, seq bigint NOT NULL)",
    "polling_limiter": _LIMITER,
}

BY_EVENT = "CREATE INDEX polling_event ON {0}.polling_targets (event)"
# What stores of earlier versions lack.
ADDED = {
    "polling_touched": f"CREATE TABLE {{0}}.polling_touched {_TOUCHED}",
    "polling_event": BY_EVENT,
    "polling_limiter": f"CREATE TABLE {{0}}.polling_limiter {_LIMITER}",
}
# Whoever polls in a release of format 1 holds the lock, and reads the number of claims once its connection broke.
FREE_OF_EARLIER = """SELECT pg_try_advisory_xact_lock((1396788816::bigint << 32) | oid::bigint) FROM pg_namespace
    WHERE nspname = $1"""
TO_LEASES = "UPDATE polling_meta SET format = $1, claims = claims + 1"

# What is on in a transaction in which we write rows ourselves.
WRITING = "sanderling.writing"


def own(schema: str) -> list[str]:
    """What makes the store's own tables and triggers."""
    old, new = (", ".join(f"{of}.{column}" for column in EDITED) for of in ("OLD", "NEW"))
    note = f"""CREATE FUNCTION {schema}.polling_note_edit() RETURNS trigger LANGUAGE plpgsql
        SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        BEGIN
            INSERT INTO {schema}.polling_edits (target) VALUES (CASE TG_OP WHEN 'DELETE' THEN OLD.id ELSE NEW.id END)
            ON CONFLICT (target) DO UPDATE SET target = excluded.target;
            RETURN NULL;
        END $$"""  # noqa: S608 - ours
    each = f"ON {schema}.polling_targets FOR EACH ROW"
    call = f"EXECUTE FUNCTION {schema}.polling_note_edit()"
    return [
        *(f"CREATE TABLE {schema}.{name} {columns}" for name, columns in OWN.items()),
        f"CREATE INDEX polling_due ON {schema}.polling_targets (next_due, id) WHERE wanted",
        BY_EVENT.format(schema),
        note,
        f"REVOKE ALL ON FUNCTION {schema}.polling_note_edit() FROM PUBLIC",
        f"CREATE TRIGGER polling_came_or_went AFTER INSERT OR DELETE {each} {call}",
        f"""CREATE TRIGGER polling_edited AFTER UPDATE OF {", ".join(EDITED)}, promote {each} WHEN (({old})
            IS DISTINCT FROM ({new}) OR NEW.promote IS NOT NULL AND NEW.promote IS DISTINCT FROM OLD.promote) {call}""",
    ]


def note_rows(schema: str) -> list[str]:
    """What notes the rows of the source that somebody edits by hand: who may have brought them."""
    return [
        f"""CREATE OR REPLACE FUNCTION {schema}.polling_note_row() RETURNS trigger LANGUAGE plpgsql
        SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        DECLARE its jsonb;
        BEGIN
            FOREACH its IN ARRAY CASE TG_OP
                WHEN 'INSERT' THEN ARRAY[to_jsonb(NEW)] WHEN 'DELETE' THEN ARRAY[to_jsonb(OLD)]
                WHEN 'UPDATE' THEN ARRAY[to_jsonb(OLD), to_jsonb(NEW)] ELSE ARRAY['{{}}'::jsonb] END
            LOOP
                INSERT INTO {schema}.polling_touched
                VALUES (TG_TABLE_NAME, coalesce(its->>'target', ''), coalesce(its->>'event', ''))
                ON CONFLICT (kind, source_id, event) DO UPDATE SET kind = excluded.kind;
            END LOOP;
            RETURN NULL;
        END $$""",  # noqa: S608 - ours
        f"REVOKE ALL ON FUNCTION {schema}.polling_note_row() FROM PUBLIC",
    ]


def note_rows_of(schema: str, table: str) -> list[str]:
    """The triggers for that, on one table."""
    name, by_hand = named(schema, table), f"WHEN (current_setting('{WRITING}', true) IS DISTINCT FROM 'on')"
    call = f"{by_hand} EXECUTE FUNCTION {schema}.polling_note_row()"
    return [
        f"DROP TRIGGER IF EXISTS polling_row ON {name}",
        f"DROP TRIGGER IF EXISTS polling_rows ON {name}",
        f"CREATE TRIGGER polling_row AFTER INSERT OR UPDATE OR DELETE ON {name} FOR EACH ROW {call}",
        f"CREATE TRIGGER polling_rows AFTER TRUNCATE ON {name} {call}",
    ]


def named(schema: str, table: str) -> str:
    """The name of a table of the source."""
    return f'{schema}."{table}"'


async def prepare(db: Any, at: PostgresAddress, schema: Schema | None, source: str) -> Schema:  # noqa: ANN401 - no types
    """Make the tables that are not there, and add the columns; give the schema, or the one that was given last.

    Raises PollingStoreError, and changes nothing, where something else is.
    """
    if schema is not None:
        _check_names(schema)
    known = await _known(db, at, source)
    if schema is None:
        if known is None:
            raise PollingStoreError(f"{at.place} holds no targets to poll: nobody has polled there", transient=False)
        return known
    if known != schema or await _lacking(db, at):
        await db.execute(ALONE, at.schema)
        known = await _known(db, at, source)  # another may have been quicker
        if known is None:
            await _make_own(db, at, source)
        elif lacking := await _lacking(db, at):
            if "polling_limiter" in lacking:
                await _leave_format_1(db, at)
            for name in lacking:
                await db.execute(ADDED[name].format(at.schema))
            known = None if "polling_touched" in lacking else known
        if known != schema:
            await _make_rows(db, at, schema)
    return schema


def _check_names(schema: Schema) -> None:
    check_names(schema)
    if "lease" in (table.name for table in schema.tables):
        said = "the source has a table lease; in PostgreSQL that name is taken, by the table that says who polls"
        raise PollingStoreError(said, transient=False)


async def _leave_format_1(db: Any, at: PostgresAddress) -> None:  # noqa: ANN401 - no types
    if not await db.fetchval(FREE_OF_EARLIER, at.schema):
        said = f"a process of an earlier release polls {at.place}; stop it, and all others of that release"
        raise PollingStoreError(said, transient=False)
    await db.execute(TO_LEASES, FORMAT)


async def _lacking(db: Any, at: PostgresAddress) -> list[str]:  # noqa: ANN401 - no types
    """What a store of an earlier version lacks."""
    there = await relations(db, at.schema)
    return [name for name in ADDED if name not in there]


async def _known(db: Any, at: PostgresAddress, source: str) -> Schema | None:  # noqa: ANN401 - no types
    """The schema that was given last; None if there is no store."""
    if "polling_meta" not in await relations(db, at.schema):
        return None
    found = await db.fetchrow("SELECT format, source, tables FROM polling_meta")
    if found is None or found[0] > FORMAT:
        version = None if found is None else found[0]
        said = f"{at.place} is of format {version}, this version reads {FORMAT}; use a newer version"
        raise PollingStoreError(said, transient=False)
    if source not in ("", found[1]):
        said = f"{at.place} holds the source {found[1]!r:.60}, not {source!r:.60}; choose another with ?schema="
        raise PollingStoreError(said, transient=False)
    return msgspec.json.decode(found[2], type=Schema)


async def _make_own(db: Any, at: PostgresAddress, source: str) -> None:  # noqa: ANN401 - no types
    if taken := await relations(db, at.schema) & {*OWN, *ADDED, "polling_due"}:
        raise _taken(at, min(taken))
    await make_schema(db, at.schema)
    for statement in own(at.schema):
        await db.execute(statement)
    await db.execute("INSERT INTO polling_meta (format, source, tables) VALUES ($1, $2, '')", FORMAT, source)


async def _make_rows(db: Any, at: PostgresAddress, schema: Schema) -> None:  # noqa: ANN401 - no types
    """Make the tables of the source, or what they lack; those that it has no more are left alone."""
    there = await _there(db, at)
    for statement in note_rows(at.schema):
        await db.execute(statement)
    for table in schema.tables:
        if table.name not in there:
            await _make_table(db, at, table)
        have = there.get(table.name, {})
        for column in table.columns:
            if column.name not in have:
                await _add(db, at, table, column)
            elif have[column.name] != _words(column):
                said = f"{table.name}.{column.name} of {at.place} is {have[column.name]}, expected {_words(column)}"
                raise PollingStoreError(f"{said}; choose another with ?schema=", transient=False)
        for statement in note_rows_of(at.schema, table.name):
            await db.execute(statement)
    await db.execute("UPDATE polling_meta SET tables = $1", msgspec.json.encode(schema).decode())


async def _there(db: Any, at: PostgresAddress) -> dict[str, dict[str, str]]:  # noqa: ANN401 - no types
    """The columns in words, by table of ours."""
    found: dict[str, dict[str, str]] = {}
    for table, column, kind, parent in await db.fetch(COLUMNS_THERE, at.schema, OURS):
        found.setdefault(table, {})[column] = f"{kind} of {parent}" if parent else kind
    return found


def _words(column: Column) -> str:
    kind = TYPES[column.kind].removesuffix(' COLLATE "C"')
    return f"{kind} of {column.references}" if column.references else kind


async def _make_table(db: Any, at: PostgresAddress, table: SourceTable) -> None:  # noqa: ANN401 - no types
    if table.name in await relations(db, at.schema):
        raise _taken(at, table.name)
    name = named(at.schema, table.name)
    await db.execute(f"CREATE TABLE {name} (id {TEXT} PRIMARY KEY)")
    await db.execute(f"COMMENT ON TABLE {name} IS '{OURS}'")


async def _add(db: Any, at: PostgresAddress, table: SourceTable, column: Column) -> None:  # noqa: ANN401 - no types
    name, kind = named(at.schema, table.name), TYPES[column.kind]
    parent = column.references and named(at.schema, column.references)
    refers = f" REFERENCES {parent} (id) ON DELETE CASCADE" if parent else ""
    await db.execute(f'ALTER TABLE {name} ADD COLUMN "{column.name}" {kind}{refers}')
    if parent or (column.name in LOOKED_UP and column.kind is ColumnKind.TEXT):
        await db.execute(f'CREATE INDEX ON {name} ("{column.name}")')  # the server finds a name that is free


def _taken(at: PostgresAddress, name: str) -> PollingStoreError:
    said = f"{at.place} has a table {name} that is not ours; choose another with ?schema="
    return PollingStoreError(said, transient=False)
