"""The message that brought an event, whether it is replayed, and indexes by when it was processed.

Events that were processed before have no message, and cannot be replayed. On the way down a replay that is under way is
over: what was not kept again stays as it was.
"""

import sqlalchemy as sa
from alembic import op

from sanderling.stores.migrations.columns import flag

revision = "0005"
down_revision = "0004"

TABLE = "processed_events"
# An event leaves the first one when it is marked: so whoever replays a million of them, some at a time, does not pass
# over those marked before. Nothing new comes into the second. Both have all that events are chosen by.
INDEXES = {"replayable": "NOT replayed AND message IS NOT NULL", "without_message": "message IS NULL"}
COLUMNS = ("processed_at", "event_id", "project_id", "job_id")


def upgrade() -> None:
    """Add the columns and the indexes."""
    op.add_column(TABLE, sa.Column("message", sa.LargeBinary, nullable=True))
    op.add_column(TABLE, flag("replayed", default=False))
    for name, which in INDEXES.items():
        some = sa.text(which)
        op.create_index(f"idx_{TABLE}_{name}", TABLE, COLUMNS, sqlite_where=some, postgresql_where=some)


def downgrade() -> None:
    """Remove them."""
    for name in INDEXES:
        op.drop_index(f"idx_{TABLE}_{name}", TABLE)
    for name in ("replayed", "message"):
        op.drop_column(TABLE, name)
