"""The revisions of a database of `events`: what brings each about, and what undoes it, in both databases. Pure.

Tricky bits:

- A revision that was released is never changed.
- All of them work with rows in the tables, upwards and downwards. What a column held is lost with the column.
- A post without a project is one of the project '' below 0002, where each must have one. That is no project's name, so
  that the way up finds these again.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sanderling.stores.analytics import AnalyticsError
from sanderling.stores.analytics_ddl import (
    Both,
    add,
    binary,
    create,
    drop,
    drop_indexes,
    flag,
    index,
    json,
    long_text,
    moment,
    real,
    same,
    serial,
    text,
    whole,
)

VERSION_TABLE = "analytics_version"  # one row: the revision; the name is not that of other programs in the database
OURS = ("post_analytics", "post_comments", "crawl_errors", "processed_events", "outbox")
POSTS, ERRORS, EVENTS = "post_analytics", "crawl_errors", "processed_events"


class Migration(NamedTuple):
    """A revision: what it brings, the statements for it, and those that undo it."""

    name: str
    what: str
    up: Sequence[Both]
    down: Sequence[Both]


# --- 0001 ---

_KEY = same(f"CREATE UNIQUE INDEX uq_post_analytics_post ON {POSTS} (project_id, platform, post_id)")
_DROP_KEY = same("DROP INDEX uq_post_analytics_post")
_FIRST = Migration(
    "0001",
    "Posts and what is known about them: a row per project, platform and post.",
    up=[
        create(
            POSTS,
            serial("id"),
            text("post_id", 128),
            text("project_id", 256, "''"),
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
            flag("is_viral"),
            flag("is_kol"),
            json("aspects_breakdown", "'{}'"),
            json("keywords", "'[]'"),
            json("sentiment_probabilities", "'{}'"),
            json("impact_breakdown", "'{}'"),
            *(whole(f"{name}_count", "0") for name in ("view", "like", "comment", "share", "save", "follower")),
            whole("processing_time_ms", "0"),
            text("model_version", 256, "''"),
            same("PRIMARY KEY (id)"),
        ),
        _KEY,
    ],
    down=[same(f"DROP TABLE {POSTS}")],
)

# --- 0002 ---


# SQLite cannot change a column. It can make another, copy what was there, and give it the name. On the way down a post
# without a project stays, as one of the project ''; on the way up such a one has none again.
def _exchange_project(column: Both, value: str, postgres: Sequence[str]) -> list[Both]:
    sqlite = (
        f"ALTER TABLE {POSTS} ADD COLUMN {column.sqlite}",
        f"UPDATE {POSTS} SET project = {value}",  # noqa: S608 - ours
        f"ALTER TABLE {POSTS} DROP COLUMN project_id",
        f"ALTER TABLE {POSTS} RENAME COLUMN project TO project_id",
    )
    return [*(Both(each, "") for each in sqlite), *(Both("", each) for each in postgres)]


# All posts were fetched but for a few, so that only those few need an index.
_FETCHED = {
    "project_id": "",
    "job_id": "",
    "task_type": "",
    "fetch_status": "fetch_status <> 'success'",
    "error_code": "error_code IS NOT NULL",
}
_SECOND = Migration(
    "0002",
    "What crawlers tell: job, batch and fetch of each post, posts without a project, and items that were not fetched.",
    up=[
        _DROP_KEY,
        *_exchange_project(
            text("project", 256, empty=True),
            "nullif(project_id, '')",
            (
                f"ALTER TABLE {POSTS} ALTER COLUMN project_id DROP NOT NULL, ALTER COLUMN project_id DROP DEFAULT",
                f"UPDATE {POSTS} SET project_id = NULL WHERE project_id = ''",  # noqa: S608 - ours
            ),
        ),
        # Two posts of no project are the same, too; to an index that is made plainly they are not.
        same(
            f"CREATE UNIQUE INDEX uq_post_analytics_post ON {POSTS} (coalesce(project_id, ''), platform, post_id)",
        ),
        *add(
            POSTS,
            text("job_id", 256, "''"),
            whole("batch_index", empty=True),
            text("task_type", 256, "''"),
            text("keyword_source", 512, "''"),
            moment("crawled_at", empty=True),
            text("pipeline_version", 256, "''"),
            text("fetch_status", 16, "'success'"),
            long_text("fetch_error", empty=True),
            text("error_code", 64, empty=True),
            json("error_details", empty=True),
        ),
        *(index(name, POSTS, name, where) for name, where in _FETCHED.items()),
        create(
            ERRORS,
            serial("id"),
            text("event_id", 256),
            whole("item_index"),
            text("content_id", 128),
            text("project_id", 256, empty=True),
            text("job_id", 256),
            text("platform", 32),
            text("error_code", 64),
            text("error_category", 32),
            long_text("error_message", "''"),
            json("error_details", "'{}'"),
            text("permalink", 4096, "''"),
            moment("created_at", now=True),
            same("PRIMARY KEY (id)"),
            same("CONSTRAINT uq_crawl_errors_item UNIQUE (event_id, item_index)"),
        ),
        *(index(name, ERRORS, name) for name in ("project_id", "error_code", "created_at", "job_id")),
    ],
    down=[
        same(f"DROP TABLE {ERRORS}"),
        *drop_indexes(POSTS, _FETCHED),
        *drop(POSTS, "job_id", "batch_index", "task_type", "keyword_source", "crawled_at", "pipeline_version"),
        *drop(POSTS, "fetch_status", "fetch_error", "error_code", "error_details"),
        _DROP_KEY,
        *_exchange_project(
            text("project", 256, "''"),
            "coalesce(project_id, '')",
            (
                f"UPDATE {POSTS} SET project_id = '' WHERE project_id IS NULL",  # noqa: S608 - ours
                f"ALTER TABLE {POSTS} ALTER COLUMN project_id SET NOT NULL, ALTER COLUMN project_id SET DEFAULT ''",
            ),
        ),
        _KEY,
    ],
)

# --- 0003 ---

_SAID = ("brand_name", "keyword", "author_id")
_THIRD = Migration(
    "0003",
    "What posts say, who wrote them, which model read them, and the comments that came with them.",
    up=[
        *add(
            POSTS,
            long_text("content_text", "''"),
            long_text("content_transcription", "''"),
            real("media_duration", empty=True),
            json("hashtags", "'[]'"),
            text("permalink", 4096, "''"),
            text("author_id", 256, "''"),
            text("author_name", 512, "''"),
            text("author_username", 512, "''"),
            text("author_avatar_url", 4096, "''"),
            flag("author_is_verified"),
            text("brand_name", 512, "''"),
            text("keyword", 512, "''"),
            text("model_name", 256, "''"),
            text("skipped", 256, "''"),
        ),
        *(index(name, POSTS, name) for name in _SAID),
        create(
            "post_comments",
            serial("id"),
            whole("post_id"),
            text("comment_id", 256),
            long_text("text"),
            text("author_name", 512, "''"),
            whole("likes", "0"),
            text("sentiment", 16, "''"),
            real("sentiment_score"),
            moment("commented_at", empty=True),
            moment("created_at", now=True),
            same("PRIMARY KEY (id)"),
            same(f"FOREIGN KEY(post_id) REFERENCES {POSTS} (id) ON DELETE CASCADE"),
            # Also the index by post.
            same("CONSTRAINT uq_post_comments_comment UNIQUE (post_id, comment_id)"),
        ),
        *(index(name, "post_comments", name) for name in ("sentiment", "commented_at")),
    ],
    down=[
        same("DROP TABLE post_comments"),
        *drop_indexes(POSTS, _SAID),
        *drop(POSTS, "content_text", "content_transcription", "media_duration", "hashtags", "permalink"),
        *drop(POSTS, "author_id", "author_name", "author_username", "author_avatar_url", "author_is_verified"),
        *drop(POSTS, "brand_name", "keyword", "model_name", "skipped"),
    ],
)

# --- 0004 ---

# People always ask about one project. So an index begins with it; those without it are of no use to them, and go.
# Behind it is what a page is ordered by, and what posts are chosen by. Without the id, although pages are ordered by
# it where these are equal: PostgreSQL takes an index that ends with it for one that finds an id in a small table.
_ASKED = {
    **{f"by_{name}": name for name in ("analyzed_at", "impact_score", "view_count", "like_count")},
    **{f"of_{name}": f"{name}, analyzed_at" for name in ("risk_level", "primary_intent")},
    "of_brand": "brand_name, keyword",
    "of_time": "coalesce(published_at, analyzed_at)",
}
_BY_PUBLISHED = f"CREATE INDEX idx_{POSTS}_by_published_at ON {POSTS} (project_id, published_at"
_REPLACED, _ERRORS_REPLACED = ("project_id", "brand_name", "keyword"), ("project_id", "job_id")
_FOURTH = Migration(
    "0004",
    "Which events are in the rows, messages on their way out, and indexes for what people ask.",
    up=[
        *add(POSTS, text("event_id", 256, "''")),
        create(
            EVENTS,
            text("event_id", 256),
            text("job_id", 256),
            text("project_id", 256, empty=True),
            text("platform", 32),
            text("mode", 16),
            moment("received_at"),
            moment("processed_at"),
            whole("posts"),
            whole("errors"),
            same("PRIMARY KEY (event_id)"),
        ),
        create(
            "outbox",
            # A number is never given again, also when all messages have gone out.
            Both("number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT", f"{serial('number').postgres} PRIMARY KEY"),
            text("exchange", 256),
            text("routing_key", 256),
            binary("body"),
            moment("created_at", now=True),
        ),
        *drop_indexes(POSTS, _REPLACED),
        *(index(name, POSTS, f"project_id, {columns}") for name, columns in _ASKED.items()),
        # One whose publication is unknown comes first; so it does in SQLite without being told.
        Both(f"{_BY_PUBLISHED})", f"{_BY_PUBLISHED} NULLS FIRST)"),
        index("viral", POSTS, "project_id, analyzed_at", "is_viral"),
        *drop_indexes(ERRORS, _ERRORS_REPLACED),
        *(index(f"by_{name}", ERRORS, f"{name}, created_at") for name in _ERRORS_REPLACED),
    ],
    down=[
        *drop_indexes(ERRORS, (f"by_{name}" for name in _ERRORS_REPLACED)),
        *(index(name, ERRORS, name) for name in _ERRORS_REPLACED),
        *drop_indexes(POSTS, ("viral", "by_published_at", *_ASKED)),
        *(index(name, POSTS, name) for name in _REPLACED),
        same("DROP TABLE outbox"),
        same(f"DROP TABLE {EVENTS}"),
        *drop(POSTS, "event_id"),
    ],
)

# --- 0005 ---

# Events that were processed before have no message, and cannot be replayed. On the way down a replay that is under
# way is over: what was not kept again stays as it was. An event leaves the first index when it is marked: so whoever
# replays a million of them, some at a time, does not pass over those marked before. Nothing new comes into the second.
# Both have all that events are chosen by.
_REPLAYS = {"replayable": "NOT replayed AND message IS NOT NULL", "without_message": "message IS NULL"}
_FIFTH = Migration(
    "0005",
    "The message that brought an event, whether it is replayed, and indexes by when it was processed.",
    up=[
        *add(EVENTS, binary("message", empty=True), flag("replayed")),
        *(index(name, EVENTS, "processed_at, event_id, project_id, job_id", some) for name, some in _REPLAYS.items()),
    ],
    down=[*drop_indexes(EVENTS, _REPLAYS), *drop(EVENTS, "replayed", "message")],
)

MIGRATIONS = (_FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH)
REVISIONS = tuple(each.name for each in MIGRATIONS)
HEAD = REVISIONS[-1]
HEIGHTS = {"head": len(REVISIONS), "base": 0, **{name: height for height, name in enumerate(REVISIONS, 1)}}
MAKE_VERSION = f"""CREATE TABLE IF NOT EXISTS {VERSION_TABLE} (
    version_num VARCHAR(32) NOT NULL, CONSTRAINT {VERSION_TABLE}_pkc PRIMARY KEY (version_num))"""


def known(found: str | None, place: object) -> str | None:
    """The revision that was found. Raises AnalyticsError if it is of a later version than ours."""
    if found is not None and found not in REVISIONS:
        message = f"{place} is at revision {found[:40]!r}, this version knows up to {HEAD}; use a newer version"
        raise AnalyticsError(message, transient=False)
    return found


def check(found: str | None, place: object) -> None:
    """Raise AnalyticsError unless a database that is at this revision can be used."""
    if known(found, place) != HEAD:
        message = f"{place} is at revision {found or 'none'}, expected {HEAD}; run `sanderling events migrate head`"
        raise AnalyticsError(message, transient=False)


def steps(found: str | None, target: str, place: object) -> list[Both]:
    """The statements that bring a database from a revision to another: "head", "base", or one by name."""
    here = HEIGHTS[known(found, place) or "base"]
    there = HEIGHTS[target]
    up = [each for migration in MIGRATIONS[here:there] for each in migration.up]
    down = [each for migration in reversed(MIGRATIONS[there:here]) for each in migration.down]
    if here == there:
        return []
    noted = [same(MAKE_VERSION), same(f"DELETE FROM {VERSION_TABLE}")]  # noqa: S608 - ours
    if there:
        noted.append(same(f"INSERT INTO {VERSION_TABLE} VALUES ('{REVISIONS[there - 1]}')"))  # noqa: S608 - ours
    return [*up, *down, *noted]
