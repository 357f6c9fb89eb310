"""Posts and what is known about them: a row per project, platform and post."""

from alembic import op

from sanderling.stores.migrations.columns import flag, json, moment, real, serial, text, whole

revision = "0001"
down_revision: str | None = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "post_analytics",
        serial("id"),
        text("post_id", 128),
        text("project_id", 256, default="''"),
        text("platform", 32),
        moment("published_at", empty=True),
        moment("analyzed_at", now=True),
        text("overall_sentiment", 16),
        real("overall_sentiment_score"),
        real("overall_confidence"),
        text("primary_intent", 64),
        real("intent_confidence"),
        real("impact_score"),
        text("risk_level", 16),
        flag("is_viral", default=False),
        flag("is_kol", default=False),
        json("aspects_breakdown", default="'{}'"),
        json("keywords", default="'[]'"),
        json("sentiment_probabilities", default="'{}'"),
        json("impact_breakdown", default="'{}'"),
        *(whole(f"{name}_count", default="0") for name in ("view", "like", "comment", "share", "save", "follower")),
        whole("processing_time_ms", default="0"),
        text("model_version", 256, default="''"),
    )
    op.create_index("uq_post_analytics_post", "post_analytics", ["project_id", "platform", "post_id"], unique=True)


def downgrade() -> None:
    """Remove the table."""
    op.drop_table("post_analytics")
