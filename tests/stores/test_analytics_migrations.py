"""From an empty database up to the last revision and back, with rows in the tables all the way; on both databases."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from analytics_play import batch, comment, error, post
from looping import in_loop
from postgres_polling_place import at, connected, fresh_schema

from sanderling.stores.analytics import AnalyticsError, EventFilter, PostFilter, Replayable
from sanderling.stores.analytics_open import migrate, open_analytics, status
from sanderling.stores.analytics_revisions import OURS, REVISIONS, VERSION_TABLE


class Database(NamedTuple):
    """An empty one. `run` is somebody who writes SQL by hand."""

    url: str
    run: Callable[[str], list[tuple[Any, ...]]]
    schema: str = ""  # in PostgreSQL


def file_at(path: Path) -> Database:
    def run(statement: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(path)) as db, db:
            return db.execute(statement).fetchall()

    return Database(f"sqlite:{path}", run)


def server_at(postgres: str, schema: str) -> Database:
    async def run(statement: str) -> list[tuple[Any, ...]]:
        async with connected(postgres, search_path=schema, synchronous_commit="off") as db:
            return [tuple(row) for row in await db.fetch(statement)]

    return Database(
        f"{at(postgres, schema)}&synchronous_commit=off", lambda statement: asyncio.run(run(statement)), schema
    )


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "sqlite":
        yield file_at(tmp_path / "analytics.db")
    else:
        url = request.getfixturevalue("postgres")
        with fresh_schema(url) as schema:
            yield server_at(url, schema)


def move(database: Database, target: str) -> None:
    asyncio.run(migrate(database.url, target))


def applied(database: Database) -> list[str]:
    return [each.name for each in asyncio.run(status(database.url)) if each.applied]


# --- what a database looks like ---

COLUMNS = """SELECT table_name, column_name, data_type, character_maximum_length, is_nullable,
    replace(column_default, '::character varying', '')
    FROM information_schema.columns WHERE table_schema = current_schema()"""
INDEXES = """SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema()"""
CHECKS = """SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = current_schema()::regnamespace"""
FILE_COLUMNS = """SELECT its.name, of.name, of.type, of."notnull", of.dflt_value
    FROM sqlite_schema AS its, pragma_table_info(its.name) AS of
    WHERE its.type = 'table' AND its.name NOT LIKE 'sqlite_%'"""
FILE_INDEXES = "SELECT tbl_name, name, sql FROM sqlite_schema WHERE type = 'index'"


def shape(database: Database) -> list[list[tuple[Any, ...]]]:
    """Columns, indexes and constraints, in whatever order they were made."""
    asked = (COLUMNS, INDEXES, CHECKS) if database.schema else (FILE_COLUMNS, FILE_INDEXES)
    return [sorted(database.run(each), key=str) for each in asked]


def tables(database: Database) -> set[str]:
    return {row[0] for row in shape(database)[0]} & set(OURS)


# --- rows, as somebody could have written them at each revision ---

OLD_POST = """INSERT INTO post_analytics (post_id, project_id, platform, overall_sentiment, primary_intent, risk_level,
    overall_sentiment_score, overall_confidence, intent_confidence, impact_score, view_count, is_viral)
    VALUES ('%s', %s, 'tiktok', 'NEUTRAL', 'LEAD', 'LOW', 0.5, 0, 0, 1.5, 5000000000, true)"""
OLD_EVENT = """INSERT INTO processed_events (event_id, job_id, platform, mode, received_at, processed_at, posts, errors)
    SELECT '%s', 'j', 'tiktok', 'new', analyzed_at, analyzed_at, 1, 0 FROM post_analytics WHERE post_id = 'of 4'"""
AT_REVISION = {
    "0001": [OLD_POST % ("of 1", "'p'")],
    "0002": [
        OLD_POST % ("of 2", "NULL"),
        "UPDATE post_analytics SET job_id = 'j', fetch_status = 'error', error_code = 'TIMEOUT' WHERE post_id = 'of 2'",
        """INSERT INTO crawl_errors (event_id, item_index, content_id, job_id, platform, error_code, error_category)
        VALUES ('e', 0, 'x', 'j', 'tiktok', 'TIMEOUT', 'network')""",
    ],
    "0003": [
        OLD_POST % ("of 3", "'p'"),
        "UPDATE post_analytics SET content_text = 'said', brand_name = 'B' WHERE post_id = 'of 3'",
        """INSERT INTO post_comments (post_id, comment_id, text, sentiment_score)
        SELECT id, 'c', 'đắt', 0 FROM post_analytics WHERE post_id = 'of 3'""",
    ],
    "0004": [
        OLD_POST % ("of 4", "'p'"),
        "UPDATE post_analytics SET event_id = 'e4' WHERE post_id = 'of 4'",
        """INSERT INTO outbox (exchange, routing_key, body) VALUES ('x', 'k', '')""",
        OLD_EVENT % "e4",
    ],
    "0005": [
        OLD_POST % ("of 5", "'p'"),
        OLD_EVENT % "e5",
        "UPDATE processed_events SET message = 'm', replayed = true WHERE event_id = 'e5'",
    ],
}


def posts(database: Database) -> list[tuple[Any, ...]]:
    asked = "SELECT post_id, project_id, impact_score, view_count, risk_level FROM post_analytics ORDER BY post_id"
    return database.run(asked)


def test_rows_live_through_every_step_up_and_down_and_up_again(database: Database) -> None:
    expected: list[tuple[Any, ...]] = []
    for number, revision in enumerate(REVISIONS, 1):
        move(database, revision)
        assert applied(database) == [*REVISIONS[:number]]
        for statement in AT_REVISION[revision]:
            database.run(statement)
        expected.append((f"of {number}", None if number == 2 else "p", 1.5, 5_000_000_000, "LOW"))
        assert posts(database) == expected
    assert database.run("SELECT post_id, brand_name FROM post_analytics WHERE content_text = 'said'") == [("of 3", "B")]

    for revision in reversed(REVISIONS[:-1]):
        move(database, revision)
        project = "" if revision == "0001" else None
        assert [row[:2] for row in posts(database)] == [
            ("of 1", "p"),
            ("of 2", project),
            ("of 3", "p"),
            ("of 4", "p"),
            ("of 5", "p"),
        ]
        assert [row[2:] for row in posts(database)] == [row[2:] for row in expected]
    move(database, "base")
    assert tables(database) == set()

    move(database, "head")
    assert tables(database) == set(OURS)


def test_what_is_in_tables_that_stay_stays(database: Database) -> None:
    move(database, "0003")
    for statement in [*AT_REVISION["0001"], *AT_REVISION["0002"], *AT_REVISION["0003"]]:
        database.run(statement)

    for revision in ("0004", "0003", "0004"):
        move(database, revision)
        assert database.run("SELECT comment_id, text FROM post_comments") == [("c", "đắt")]
        asked = "SELECT its.post_id FROM post_analytics AS its JOIN post_comments ON post_comments.post_id = its.id"
        assert database.run(asked) == [("of 3",)]
        assert database.run("SELECT content_id, error_code FROM crawl_errors") == [("x", "TIMEOUT")]
        asked = "SELECT post_id, job_id FROM post_analytics WHERE fetch_status <> 'success' AND error_code = 'TIMEOUT'"
        assert database.run(asked) == [("of 2", "j")]


def test_events_live_through_the_step_and_have_no_message_after_a_way_down_and_up(database: Database) -> None:
    move(database, "0004")
    for statement in AT_REVISION["0004"]:
        database.run(statement)
    asked = "SELECT event_id, message IS NULL, replayed FROM processed_events ORDER BY event_id"

    move(database, "0005")
    assert database.run(asked) == [("e4", True, False)]
    for statement in AT_REVISION["0005"]:
        database.run(statement)
    assert database.run(asked) == [("e4", True, False), ("e5", False, True)]

    move(database, "0004")
    assert database.run("SELECT event_id, posts FROM processed_events ORDER BY event_id") == [("e4", 1), ("e5", 1)]
    move(database, "0005")
    assert database.run(asked) == [("e4", True, False), ("e5", True, False)]


def test_events_of_earlier_revisions_cannot_be_replayed_but_forgotten(database: Database) -> None:
    move(database, "0004")
    for statement in AT_REVISION["0004"]:
        database.run(statement)
    move(database, "0005")

    async def use() -> None:
        store = await open_analytics(database.url, asyncio.to_thread)
        chosen = EventFilter(from_date=0.0)
        assert await store.processed("e4")
        assert await store.replayable(chosen) == Replayable(0, 1)
        assert await store.replay(chosen, exchange="x", routing_key="k") == 0
        assert await store.forget_events(4e9) == 1
        assert not await store.processed("e4")
        await store.close()

    asyncio.run(use())


def test_posts_without_a_project_are_of_none_again_after_a_way_down_and_up(database: Database) -> None:
    move(database, "0002")
    for name, project in (("a", "NULL"), ("b", "NULL"), ("c", "'p'")):
        database.run(OLD_POST % (name, project))

    move(database, "0001")
    database.run(OLD_POST % ("d", "''"))
    assert [row[1] for row in posts(database)] == ["", "", "p", ""]

    move(database, "head")
    assert [row[1] for row in posts(database)] == [None, None, "p", None]


def test_a_revision_has_the_same_shape_whichever_way_it_was_reached(database: Database) -> None:
    shapes = []
    for revision in REVISIONS:
        move(database, revision)
        shapes.append(shape(database))
    assert all(one != other for one, other in pairwise(shapes))

    for revision, expected in zip(reversed(REVISIONS[:-1]), reversed(shapes[:-1]), strict=True):
        move(database, revision)
        assert shape(database) == expected
    move(database, "base")
    move(database, "head")
    assert shape(database) == shapes[-1]


def test_a_post_is_there_once_per_project_also_without_one(database: Database) -> None:
    move(database, "0002")
    for project in ("'p'", "NULL"):
        database.run(OLD_POST % ("a", project))

        with pytest.raises(Exception, match=r"(?i)unique") as told:
            database.run(OLD_POST % ("a", project))
        assert type(told.value).__name__ in ("IntegrityError", "UniqueViolationError")


def test_rows_of_earlier_revisions_are_read_and_replaced_as_any_other(database: Database) -> None:
    for revision in ("0001", "0003", "0004"):
        move(database, revision)
        for statement in AT_REVISION[revision]:
            database.run(statement)
    move(database, "head")

    async def use() -> None:
        store = await open_analytics(database.url, asyncio.to_thread)
        chosen = PostFilter(project_id="p")
        page = await store.posts(chosen, sort="analyzed_at", descending=False, offset=0, most=9)
        assert [each.row.post_id for each in page.posts] == ["of 1", "of 3", "of 4"]
        assert (page.posts[0].row.job_id, page.posts[0].row.hashtags, page.posts[0].row.event_id) == ("", [], "")

        newer = post("of 1", project_id="p", crawled_at=4e9)
        assert (await store.keep(batch("new", [newer], [comment()], [error(1)]))).posts == 1
        shown = await store.post(page.posts[0].id)
        assert shown is not None
        assert (shown[0].row.event_id, len(shown[1])) == ("new", 1)
        await store.close()

    asyncio.run(use())


# --- which revision it is at ---


def test_the_list_of_revisions_is_that_of_the_steps(database: Database) -> None:
    move(database, "0002")

    found = asyncio.run(status(database.url))
    assert [(each.name, each.applied) for each in found] == [
        ("0001", True),
        ("0002", True),
        ("0003", False),
        ("0004", False),
        ("0005", False),
    ]
    assert all(each.what for each in found)


def test_a_database_that_is_behind_is_not_used_and_says_what_to_do(database: Database) -> None:
    move(database, "0001")
    before = shape(database)

    with pytest.raises(AnalyticsError, match=r"is at revision 0001, expected 0005; run `sanderling ev") as told:
        asyncio.run(open_analytics(database.url, asyncio.to_thread))
    assert not told.value.transient
    assert shape(database) == before


def test_a_database_of_a_later_version_is_left_alone(database: Database) -> None:
    move(database, "0001")
    database.run(f"UPDATE {VERSION_TABLE} SET version_num = '0099'")  # noqa: S608 - ours
    before = shape(database)

    for call in (lambda: open_analytics(database.url, asyncio.to_thread), lambda: migrate(database.url, "0001")):
        with pytest.raises(AnalyticsError, match=r"is at revision '0099', this version knows up to 0005; use a newer"):
            asyncio.run(call())
    with pytest.raises(AnalyticsError, match="0099"):
        asyncio.run(status(database.url))
    assert shape(database) == before


def test_one_that_is_back_at_the_beginning_is_made_anew(database: Database) -> None:
    move(database, "0001")
    move(database, "base")

    async def use() -> None:
        store = await open_analytics(database.url, asyncio.to_thread)
        await store.close()

    asyncio.run(use())
    assert applied(database) == [*REVISIONS]


def test_to_go_where_it_is_changes_nothing(database: Database) -> None:
    move(database, "0001")
    before = shape(database)

    move(database, "0001")
    assert shape(database) == before


@pytest.mark.parametrize("target", ["0099", "", "+1", "-1", "heads", "0002:0003"])
def test_what_is_no_revision_is_refused(tmp_path: Path, target: str) -> None:
    with pytest.raises(AnalyticsError, match=r"is no revision; expected one of head, base, 0001, 0002"):
        asyncio.run(migrate(f"sqlite:{tmp_path / 'new.db'}", target))
    assert [*tmp_path.iterdir()] == []


# --- when it goes wrong ---


def test_a_step_that_fails_leaves_nothing_half(database: Database) -> None:
    move(database, "0001")
    database.run(AT_REVISION["0001"][0])
    database.run("CREATE TABLE outbox (x integer)")  # which 0004 makes
    before = shape(database)

    with pytest.raises(AnalyticsError, match="outbox") as told:
        move(database, "head")
    assert not told.value.transient
    assert shape(database) == before
    assert applied(database) == ["0001"]

    database.run("DROP TABLE outbox")
    move(database, "head")
    assert [row[0] for row in posts(database)] == ["of 1"]


@in_loop
async def test_many_who_migrate_at_once_do_it_once(tmp_path: Path, postgres: str) -> None:
    with_server = at(postgres, f"sanderling_{tmp_path.name.replace('-', '_')[:40].lower()}")
    for url in (f"sqlite:{tmp_path / 'new.db'}", with_server):
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(migrate(url))
        assert all(each.applied for each in await status(url))
    async with connected(postgres) as db:
        await db.execute(f"DROP SCHEMA {with_server.rpartition('=')[2]} CASCADE")


@in_loop
async def test_a_file_that_another_program_holds_is_transient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect: Any = sqlite3.connect
    path = tmp_path / "held.db"
    await migrate(f"sqlite:{path}", "0001")
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **kwargs: connect(*args, **{**kwargs, "timeout": 0.05}))
    with closing(connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(AnalyticsError, match="is in use by another program") as told:
            await migrate(f"sqlite:{path}")

    assert told.value.transient
    await migrate(f"sqlite:{path}")


@in_loop
async def test_there_is_no_status_of_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(AnalyticsError, match=r"there is no .*none.db"):
        await status(f"sqlite:{tmp_path / 'none.db'}")
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize("url", ["sqlite:", "file.db", "redis://host/0", "", "mysql://u:secret@h/d"])
def test_what_is_no_database_is_refused(url: str) -> None:
    for call in (migrate, status, lambda url: open_analytics(url, asyncio.to_thread)):
        with pytest.raises(AnalyticsError, match="expected sqlite:PATH or postgresql://user@host") as told:
            asyncio.run(call(url))
        assert "secret" not in str(told.value)
