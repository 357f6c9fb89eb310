"""What crawlers tell: job, batch and fetch of each post, posts without a project, and items that were not fetched.

On the way down a post without a project stays, as one of the project ''; on the way up such a one has none again.
"""

import sqlalchemy as sa
from alembic import op

from sanderling.stores.migrations.columns import json, long_text, moment, on_sqlite, serial, text, whole

revision = "0002"
down_revision = "0001"

TABLE, KEY = "post_analytics", "uq_post_analytics_post"
ADDED = (
    *("job_id", "batch_index", "task_type", "keyword_source", "crawled_at", "pipeline_version"),
    *("fetch_status", "fetch_error", "error_code", "error_details"),
)
# All posts were fetched but for a few, so that only those few need an index.
INDEXES = {
    "project_id": None,
    "job_id": None,
    "task_type": None,
    "fetch_status": "fetch_status <> 'success'",
    "error_code": "error_code IS NOT NULL",
}
ERROR_INDEXES = ("project_id", "error_code", "created_at", "job_id")


def upgrade() -> None:
    """Add columns, allow posts without a project, make the table of errors."""
    op.drop_index(KEY, TABLE)
    _make_project_optional()
    # Two posts of no project are the same, too; to an index that is made plainly they are not.
    op.create_index(KEY, TABLE, [sa.text("coalesce(project_id, '')"), "platform", "post_id"], unique=True)
    for column in (
        text("job_id", 256, default="''"),
        whole("batch_index", empty=True),
        text("task_type", 256, default="''"),
        text("keyword_source", 512, default="''"),
        moment("crawled_at", empty=True),
        text("pipeline_version", 256, default="''"),
        text("fetch_status", 16, default="'success'"),
        long_text("fetch_error", empty=True),
        text("error_code", 64, empty=True),
        json("error_details", empty=True),
    ):
        op.add_column(TABLE, column)
    for name, where in INDEXES.items():
        some = None if where is None else sa.text(where)
        op.create_index(f"idx_{TABLE}_{name}", TABLE, [name], sqlite_where=some, postgresql_where=some)
    _make_errors()


def _make_errors() -> None:
    op.create_table(
        "crawl_errors",
        serial("id"),
        text("event_id", 256),
        whole("item_index"),
        text("content_id", 128),
        text("project_id", 256, empty=True),
        text("job_id", 256),
        text("platform", 32),
        text("error_code", 64),
        text("error_category", 32),
        long_text("error_message", default="''"),
        json("error_details", default="'{}'"),
        text("permalink", 4096, default="''"),
        moment("created_at", now=True),
        sa.UniqueConstraint("event_id", "item_index", name="uq_crawl_errors_item"),
    )
    for name in ERROR_INDEXES:
        op.create_index(f"idx_crawl_errors_{name}", "crawl_errors", [name])


def downgrade() -> None:
    """Remove the table of errors and the columns; each post has a project."""
    op.drop_table("crawl_errors")
    for name in INDEXES:
        op.drop_index(f"idx_{TABLE}_{name}", TABLE)
    for name in ADDED:
        op.drop_column(TABLE, name)
    op.drop_index(KEY, TABLE)
    _make_project_required()
    op.create_index(KEY, TABLE, ["project_id", "platform", "post_id"], unique=True)


# SQLite cannot change a column. It can make another, copy what was there, and give it the name.


def _make_project_optional() -> None:
    if on_sqlite():
        op.add_column(TABLE, text("project", 256, empty=True))
        op.execute("UPDATE post_analytics SET project = nullif(project_id, '')")
        _take_the_place()
    else:
        op.alter_column(TABLE, "project_id", nullable=True, server_default=None)
        op.execute("UPDATE post_analytics SET project_id = NULL WHERE project_id = ''")


def _make_project_required() -> None:
    if on_sqlite():
        op.add_column(TABLE, text("project", 256, default="''"))
        op.execute("UPDATE post_analytics SET project = coalesce(project_id, '')")
        _take_the_place()
    else:
        op.execute("UPDATE post_analytics SET project_id = '' WHERE project_id IS NULL")
        op.alter_column(TABLE, "project_id", nullable=False, server_default="")


def _take_the_place() -> None:
    op.drop_column(TABLE, "project_id")
    op.execute("ALTER TABLE post_analytics RENAME COLUMN project TO project_id")
