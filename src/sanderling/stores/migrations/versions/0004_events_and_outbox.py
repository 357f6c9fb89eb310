"""Which events are in the rows, messages on their way out, and indexes for what people ask.

People always ask about one project. So an index begins with it; those without it are of no use to them, and go.
"""

import sqlalchemy as sa
from alembic import op

from sanderling.stores.migrations.columns import moment, on_sqlite, serial, text, whole

revision = "0004"
down_revision = "0003"

TABLE = "post_analytics"
# What a page is ordered by, and what posts are chosen by. Without the id, although pages are ordered by it where these
# are equal: PostgreSQL takes an index that ends with it for one that finds an id, as long as the table is small.
SORTED = ("analyzed_at", "impact_score", "view_count", "like_count")
CHOSEN = ("risk_level", "primary_intent")
REPLACED = ("project_id", "brand_name", "keyword")
ERRORS_REPLACED = ("project_id", "job_id")


def upgrade() -> None:
    """Note who wrote a post, make both tables, exchange the indexes."""
    op.add_column(TABLE, text("event_id", 256, default="''"))
    _make_events()
    _make_outbox()
    for name in REPLACED:
        op.drop_index(f"idx_{TABLE}_{name}", TABLE)
    for name, columns in _indexes().items():
        op.create_index(f"idx_{TABLE}_{name}", TABLE, ["project_id", *columns])
    viral = sa.text("is_viral")
    op.create_index(
        f"idx_{TABLE}_viral", TABLE, ["project_id", "analyzed_at"], sqlite_where=viral, postgresql_where=viral
    )
    for name in ERRORS_REPLACED:
        op.drop_index(f"idx_crawl_errors_{name}", "crawl_errors")
        op.create_index(f"idx_crawl_errors_by_{name}", "crawl_errors", [name, "created_at"])


def _indexes() -> dict[str, list[str | sa.TextClause]]:
    # One whose publication is unknown comes first; so it does in SQLite without being told.
    published = sa.text("published_at" if on_sqlite() else "published_at NULLS FIRST")
    return {
        **{f"by_{name}": [name] for name in SORTED},
        **{f"of_{name}": [name, "analyzed_at"] for name in CHOSEN},
        "by_published_at": [published],
        "of_brand": ["brand_name", "keyword"],
        "of_time": [sa.text("coalesce(published_at, analyzed_at)")],
    }


def _make_events() -> None:
    op.create_table(
        "processed_events",
        text("event_id", 256, key=True),
        text("job_id", 256),
        text("project_id", 256, empty=True),
        text("platform", 32),
        text("mode", 16),
        moment("received_at"),
        moment("processed_at"),
        whole("posts"),
        whole("errors"),
    )


def _make_outbox() -> None:
    op.create_table(
        "outbox",
        serial("number"),
        text("exchange", 256),
        text("routing_key", 256),
        sa.Column("body", sa.LargeBinary, nullable=False),
        moment("created_at", now=True),
        # A number is never given again, also when all messages have gone out.
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    """Remove both tables and the column, and put the indexes back."""
    for name in ERRORS_REPLACED:
        op.drop_index(f"idx_crawl_errors_by_{name}", "crawl_errors")
        op.create_index(f"idx_crawl_errors_{name}", "crawl_errors", [name])
    for name in ("viral", *_indexes()):
        op.drop_index(f"idx_{TABLE}_{name}", TABLE)
    for name in REPLACED:
        op.create_index(f"idx_{TABLE}_{name}", TABLE, [name])
    op.drop_table("outbox")
    op.drop_table("processed_events")
    op.drop_column(TABLE, "event_id")
