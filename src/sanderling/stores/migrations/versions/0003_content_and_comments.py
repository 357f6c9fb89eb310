"""What posts say, who wrote them, which model read them, and the comments that came with them."""

import sqlalchemy as sa
from alembic import op

from sanderling.stores.migrations.columns import flag, json, long_text, moment, real, serial, text, whole

revision = "0003"
down_revision = "0002"

TABLE = "post_analytics"
ADDED = (
    *("content_text", "content_transcription", "media_duration", "hashtags", "permalink"),
    *("author_id", "author_name", "author_username", "author_avatar_url", "author_is_verified"),
    *("brand_name", "keyword", "model_name", "skipped"),
)
INDEXES = ("brand_name", "keyword", "author_id")
COMMENT_INDEXES = ("sentiment", "commented_at")


def upgrade() -> None:
    """Add columns, make the table of comments."""
    for column in (
        long_text("content_text", default="''"),
        long_text("content_transcription", default="''"),
        real("media_duration", empty=True),
        json("hashtags", default="'[]'"),
        text("permalink", 4096, default="''"),
        text("author_id", 256, default="''"),
        text("author_name", 512, default="''"),
        text("author_username", 512, default="''"),
        text("author_avatar_url", 4096, default="''"),
        flag("author_is_verified", default=False),
        text("brand_name", 512, default="''"),
        text("keyword", 512, default="''"),
        text("model_name", 256, default="''"),
        text("skipped", 256, default="''"),
    ):
        op.add_column(TABLE, column)
    for name in INDEXES:
        op.create_index(f"idx_{TABLE}_{name}", TABLE, [name])
    _make_comments()


def _make_comments() -> None:
    op.create_table(
        "post_comments",
        serial("id"),
        whole("post_id"),
        text("comment_id", 256),
        long_text("text"),
        text("author_name", 512, default="''"),
        whole("likes", default="0"),
        text("sentiment", 16, default="''"),
        real("sentiment_score"),
        moment("commented_at", empty=True),
        moment("created_at", now=True),
        sa.ForeignKeyConstraint(["post_id"], ["post_analytics.id"], ondelete="CASCADE"),
        # Also the index by post.
        sa.UniqueConstraint("post_id", "comment_id", name="uq_post_comments_comment"),
    )
    for name in COMMENT_INDEXES:
        op.create_index(f"idx_post_comments_{name}", "post_comments", [name])


def downgrade() -> None:
    """Remove the table of comments and the columns."""
    op.drop_table("post_comments")
    for name in INDEXES:
        op.drop_index(f"idx_{TABLE}_{name}", TABLE)
    for name in ADDED:
        op.drop_column(TABLE, name)
