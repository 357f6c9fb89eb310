"""The tables, for SQLite and PostgreSQL: the seed's columns first, ours behind them.

Times are Unix seconds in SQLite, TIMESTAMP in UTC in PostgreSQL. The key of a post is (project_id, platform, id); in a
table that was there before it stays `id`.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

VERSION_TABLE, VERSION = "sanderling_events_version", "0001"
MADE = "made by sanderling events"  # the comment on a post_analytics that is ours to remove


class Field(NamedTuple):
    """One column."""

    name: str
    postgres: str
    rest: str = ""  # of its definition

    @property
    def sqlite(self) -> str:
        """Its type there."""
        base = self.postgres.partition("(")[0]
        return {"VARCHAR": "TEXT", "TIMESTAMP": "REAL", "JSONB": "TEXT", "DOUBLE PRECISION": "REAL"}.get(base, base)


def _fields(*lines: str) -> tuple[Field, ...]:
    found = []
    for line in lines:
        name, kind, *rest = line.split(" ", 2)
        if kind == "DOUBLE":
            kind, rest = "DOUBLE PRECISION", [rest[0].removeprefix("PRECISION").strip()] if rest else []
        found.append(Field(name, kind, rest[0] if rest else ""))
    return tuple(found)


BEFORE = _fields(  # as smap had it before the seed
    "id VARCHAR(128) NOT NULL", "project_id VARCHAR(256)", "platform VARCHAR(20) NOT NULL",
    "published_at TIMESTAMP NOT NULL", "analyzed_at TIMESTAMP", "overall_sentiment VARCHAR(10) NOT NULL",
    "overall_sentiment_score DOUBLE PRECISION", "overall_confidence DOUBLE PRECISION",
    "primary_intent VARCHAR(20) NOT NULL", "intent_confidence DOUBLE PRECISION",
    "impact_score DOUBLE PRECISION NOT NULL", "risk_level VARCHAR(10) NOT NULL", "is_viral BOOLEAN", "is_kol BOOLEAN",
    "aspects_breakdown JSONB", "keywords JSONB", "sentiment_probabilities JSONB", "impact_breakdown JSONB",
    "view_count BIGINT", "like_count BIGINT", "comment_count BIGINT", "share_count BIGINT", "save_count BIGINT",
    "follower_count BIGINT", "processing_time_ms INTEGER", "model_version VARCHAR(50)",
)  # fmt: skip
ADDED = _fields(  # by the seed, and behind them four of ours
    "job_id VARCHAR(256)", "batch_index INTEGER", "task_type VARCHAR(200)", "keyword_source VARCHAR(200)",
    "crawled_at TIMESTAMP", "pipeline_version VARCHAR(100)", "fetch_status VARCHAR(10) NOT NULL DEFAULT 'success'",
    "fetch_error TEXT", "error_code VARCHAR(50)", "error_details JSONB",
    "content_text TEXT", "permalink TEXT", "author_name VARCHAR(200)", "brand_name VARCHAR(256)",
)  # fmt: skip
POSTS = (*BEFORE, *ADDED)
ERRORS = _fields(
    "content_id VARCHAR(128) NOT NULL", "project_id VARCHAR(256)", "job_id VARCHAR(256) NOT NULL",
    "platform VARCHAR(20) NOT NULL", "error_code VARCHAR(50) NOT NULL", "error_category VARCHAR(30) NOT NULL",
    "error_message TEXT", "error_details JSONB", "permalink TEXT", "created_at TIMESTAMP",
    "event_id VARCHAR(256)", "item_index INTEGER", "item_key VARCHAR(400) NOT NULL UNIQUE",
    "retryable BOOLEAN NOT NULL DEFAULT false",
)  # fmt: skip
COMMENTS = _fields(
    "project_id VARCHAR(256)", "platform VARCHAR(20) NOT NULL", "post_id VARCHAR(128) NOT NULL",
    "comment_id VARCHAR(256) NOT NULL", "text TEXT NOT NULL", "author_name VARCHAR(200)", "likes BIGINT",
    "sentiment VARCHAR(10)", "sentiment_score DOUBLE PRECISION", "commented_at TIMESTAMP", "crawled_at TIMESTAMP",
)  # fmt: skip
EVENTS = _fields(
    "identity VARCHAR(400) PRIMARY KEY", "event_id VARCHAR(256) NOT NULL", "job_id VARCHAR(256)",
    "project_id VARCHAR(256)", "platform VARCHAR(20)", "mode VARCHAR(10)", "processed_at TIMESTAMP", "posts INTEGER",
    "errors INTEGER",
)  # fmt: skip
ATTEMPTS = _fields("message VARCHAR(64) PRIMARY KEY", "tries INTEGER NOT NULL", "since TIMESTAMP")
TABLES = {
    "post_analytics": POSTS,
    "crawl_errors": ERRORS,
    "post_comments": COMMENTS,
    "processed_events": EVENTS,
    "event_attempts": ATTEMPTS,
}
INDEXES = {
    "post_analytics": {
        "idx_post_analytics_job_id": "job_id",
        "idx_post_analytics_fetch_status": "fetch_status",
        "idx_post_analytics_task_type": "task_type",
        # Ours: what the API asks for is in the index alone.
        "idx_post_analytics_summary": "project_id, published_at, platform, overall_sentiment, risk_level,"
        " primary_intent, fetch_status, impact_score, view_count, like_count, is_viral",
        "idx_post_analytics_analyzed": "project_id, analyzed_at, id",
        "idx_post_analytics_impact": "project_id, impact_score, id",
        "idx_post_analytics_risk": "project_id, analyzed_at, id) WHERE (risk_level IN ('HIGH', 'CRITICAL')",
        "idx_post_analytics_viral": "project_id, analyzed_at, id) WHERE (is_viral",
        "idx_post_analytics_crisis": "project_id, analyzed_at, id) WHERE (primary_intent = 'CRISIS'",
        "idx_post_analytics_id": "id",
    },
    "crawl_errors": {
        "idx_crawl_errors_project_id": "project_id",
        "idx_crawl_errors_error_code": "error_code",
        "idx_crawl_errors_created_at": "created_at",
        "idx_crawl_errors_job_id": "job_id",
    },
}
POST_KEY = "coalesce(project_id, ''), platform, id"
_UNIQUE = {
    "post_analytics": f"CREATE UNIQUE INDEX idx_post_analytics_key ON post_analytics ({POST_KEY})",
    "post_comments": "CREATE UNIQUE INDEX idx_post_comments_key ON post_comments"
    " (coalesce(project_id, ''), platform, post_id, comment_id)",
}


def create(dialect: str, table: str) -> list[str]:
    """The statements that make a table with its indexes."""
    columns = [f"{each.name} {getattr(each, dialect)} {each.rest}".strip() for each in TABLES[table]]
    if table == "crawl_errors":
        columns.insert(0, "id SERIAL PRIMARY KEY" if dialect == "postgres" else "id INTEGER PRIMARY KEY")
    made = [f"CREATE TABLE {table} ({', '.join(columns)})"]
    return [*made, *filter(None, (_UNIQUE.get(table),)), *create_indexes(table)]


def create_indexes(table: str) -> list[str]:
    """The statements for the indexes of a table."""
    return [f"CREATE INDEX IF NOT EXISTS {name} ON {table} ({columns})"
            for name, columns in INDEXES.get(table, {}).items()]  # fmt: skip


def drop_indexes(table: str) -> list[str]:
    """The statements that take them away."""
    return [f"DROP INDEX IF EXISTS {name}" for name in INDEXES.get(table, {})]


def insert(table: str) -> str:
    """The beginning of a statement that inserts a row; $1 is the first value."""
    names = [each.name for each in TABLES[table]]
    marks = ", ".join(f"${number}" for number in range(1, len(names) + 1))
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})"


def upsert_post(key: str) -> str:
    """A post replaces what is there if it is newer; never an error a success, always a success an error."""
    names = [each.name for each in POSTS if each.name not in ("id", "platform", "project_id")]
    sets = ", ".join(f"{name} = excluded.{name}" for name in (*names, *(("project_id", "platform") * (key == "id"))))
    newer = (
        "coalesce(excluded.crawled_at, excluded.analyzed_at)"
        " >= coalesce(post_analytics.crawled_at, post_analytics.analyzed_at)"
    )
    return (
        f"{insert('post_analytics')} ON CONFLICT ({key}) DO UPDATE SET {sets}"
        " WHERE (excluded.fetch_status = 'success' AND post_analytics.fetch_status = 'error')"
        f" OR (excluded.fetch_status = post_analytics.fetch_status AND {newer})"
    )


UPSERT_COMMENT = (
    f"{insert('post_comments')} ON CONFLICT (coalesce(project_id, ''), platform, post_id, comment_id) DO UPDATE SET"
    " text = excluded.text, author_name = excluded.author_name, likes = excluded.likes,"
    " sentiment = excluded.sentiment, sentiment_score = excluded.sentiment_score,"
    " commented_at = excluded.commented_at, crawled_at = excluded.crawled_at"
    " WHERE excluded.crawled_at >= post_comments.crawled_at"
)
INSERT_ERROR = f"{insert('crawl_errors')} ON CONFLICT (item_key) DO NOTHING"
INSERT_EVENT = f"{insert('processed_events')} ON CONFLICT (identity) DO NOTHING"


def time_places(table: str) -> list[int]:
    """Where the times are in a row."""
    return [place for place, each in enumerate(TABLES[table]) if each.postgres == "TIMESTAMP"]


def as_datetime(seconds: float | None) -> datetime | None:
    """A time as PostgreSQL's TIMESTAMP takes it."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


_TYPES = {each.name: each.postgres for each in (*POSTS, *ERRORS)}


def as_object(names: Sequence[str], row: Sequence[Any], longest: int | None = None) -> dict[str, Any]:
    """A row as JSON has it, from either database; its text is cut to `longest` characters."""
    found: dict[str, Any] = {}
    for name, value in zip(names, row, strict=True):
        match _TYPES.get(name) if value is not None else None:
            case "TIMESTAMP":
                found[name] = as_seconds(value)
            case "JSONB":
                found[name] = msgspec.Raw(value.encode())
            case "BOOLEAN":
                found[name] = bool(value)
            case _:
                found[name] = value[:longest] if longest and name == "content_text" and value else value
    return found


def as_seconds(value: Any) -> float | None:  # noqa: ANN401 - what a database gives
    """Seconds since 1970 of a time, as either database gives it."""
    return value.replace(tzinfo=UTC).timestamp() if isinstance(value, datetime) else value
