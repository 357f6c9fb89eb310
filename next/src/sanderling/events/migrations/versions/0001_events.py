"""Tables of events: a post_analytics that is there gets the seed's columns, and loses them on the way back.

Comments on columns say which of them are ours, and what a type was before.
"""

from typing import Any

from alembic import op
from sqlalchemy import text

from sanderling.events.tables import ADDED, MADE, TABLES, create, create_indexes, drop_indexes

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

UUID = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
COUNTERS = ("view_count", "like_count", "comment_count", "share_count", "save_count", "follower_count")


def _rows(sql: str, **values: object) -> list[Any]:
    return list(op.get_bind().execute(text(sql), values))


def _columns(table: str) -> dict[str, tuple[str, str]]:
    """Type and comment of each column; none if there is no such table."""
    sql = """SELECT attname, format_type(atttypid, atttypmod), coalesce(col_description(attrelid, attnum), '')
        FROM pg_attribute WHERE attrelid = to_regclass(:name) AND attnum > 0 AND NOT attisdropped"""
    return {name: (kind, said) for name, kind, said in _rows(sql, name=table)}


def _is_ours(table: str) -> bool:
    return bool(_rows("SELECT 1 WHERE obj_description(to_regclass(:name), 'pg_class') = :made", name=table, made=MADE))


def _change_type(table: str, column: str, kind: str, was: str) -> None:
    op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} TYPE {kind} USING {column}::{kind}")
    op.execute(f"COMMENT ON COLUMN {table}.{column} IS 'was {was}'")


def upgrade() -> None:
    """Add what is missing."""
    there = _columns("post_analytics")
    if there:
        _upgrade_posts(there)
    for table in TABLES:
        if not _columns(table):
            for statement in create("postgres", table):
                op.execute(statement)
            op.execute(f"COMMENT ON TABLE {table} IS '{MADE}'")
        elif table == "crawl_errors":
            _upgrade_errors()


def _upgrade_posts(there: dict[str, tuple[str, str]]) -> None:
    if there.get("project_id", ("",))[0] == "uuid":  # proj_xyz is none
        _change_type("post_analytics", "project_id", "VARCHAR(256)", "uuid")
    op.execute("ALTER TABLE post_analytics ALTER COLUMN project_id DROP NOT NULL")
    if there.get("id", ("",))[0] == "character varying(50)":
        op.execute("ALTER TABLE post_analytics ALTER COLUMN id TYPE VARCHAR(128)")
    for name in COUNTERS:
        if there.get(name, ("",))[0] == "integer":
            _change_type("post_analytics", name, "BIGINT", "integer")
    for field in ADDED:
        if field.name not in there:
            op.execute(f"ALTER TABLE post_analytics ADD COLUMN {field.name} {field.postgres} {field.rest}")
            op.execute(f"COMMENT ON COLUMN post_analytics.{field.name} IS '{MADE}'")
    for statement in create_indexes("post_analytics"):
        op.execute(statement)


def _upgrade_errors() -> None:
    there = _columns("crawl_errors")
    if there.get("project_id", ("",))[0] == "uuid":
        _change_type("crawl_errors", "project_id", "VARCHAR(256)", "uuid")
    op.execute("ALTER TABLE crawl_errors ALTER COLUMN content_id TYPE VARCHAR(128)")
    for field in TABLES["crawl_errors"]:
        if field.name not in there:
            rest = "DEFAULT 'before-' || gen_random_uuid() NOT NULL UNIQUE" if field.name == "item_key" else field.rest
            op.execute(f"ALTER TABLE crawl_errors ADD COLUMN {field.name} {field.postgres} {rest}")
            op.execute(f"COMMENT ON COLUMN crawl_errors.{field.name} IS '{MADE}'")
    for statement in create_indexes("crawl_errors"):
        op.execute(statement)


def downgrade() -> None:
    """Take away what is ours; what was there stays with its rows."""
    for table in reversed(TABLES):
        if _is_ours(table):
            op.execute(f"DROP TABLE {table}")
            continue
        for statement in drop_indexes(table):
            op.execute(statement)
        for name, (_, said) in _columns(table).items():
            if said == MADE:
                op.execute(f"ALTER TABLE {table} DROP COLUMN {name}")
            elif said == "was uuid":
                ((lost,),) = _rows(f"SELECT count(*) FROM {table} WHERE {name} !~ '{UUID}'")
                op.get_context().config.print_stdout(  # type: ignore[union-attr]
                    f"{table}.{name}: {lost} that are no UUID become NULL"
                )
                cast = f"CASE WHEN {name} ~ '{UUID}' THEN {name}::uuid END"
                op.execute(f"ALTER TABLE {table} ALTER COLUMN {name} TYPE uuid USING {cast}")
                op.execute(f"COMMENT ON COLUMN {table}.{name} IS NULL")
            elif said == "was integer":
                cast = f"least({name}, 2147483647)::integer"
                op.execute(f"ALTER TABLE {table} ALTER COLUMN {name} TYPE integer USING {cast}")
                op.execute(f"COMMENT ON COLUMN {table}.{name} IS NULL")
