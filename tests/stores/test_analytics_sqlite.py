import asyncio
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from analytics_contract import AnalyticsContract
from analytics_play import NOW, TABLES, Place, all_posts, batch, comment, error, message, post
from looping import in_loop
from test_sqlite_instances import full_disk

from sanderling.executor import in_threads
from sanderling.stores.analytics import AnalyticsError, BatchResult, PostFilter, Sort
from sanderling.stores.analytics_open import migrate, open_analytics
from sanderling.stores.analytics_questions import counted_events, next_to_replay, page_of_posts
from sanderling.stores.analytics_store import AnalyticsStore
from sanderling.stores.analytics_writing import OF_EVENT, OLD_ERRORS, old_events
from sanderling.stores.database import SQLITE, SqlCondition
from sanderling.stores.sqlite_database import SqliteDatabase

MEANT = SqlCondition("project_id = ? AND processed_at >= ?", ())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with tables and nothing in them: to make one takes its time."""
    path = tmp_path_factory.mktemp("made") / "analytics.db"
    asyncio.run(migrate(f"sqlite:{path}"))
    return path


@pytest.fixture
def path(tmp_path: Path, made: Path) -> Path:
    shutil.copy(made, tmp_path / "analytics.db")
    return tmp_path / "analytics.db"


@pytest.fixture
def place(path: Path) -> Place:
    @asynccontextmanager
    async def opens() -> AsyncIterator[AnalyticsStore]:
        with ThreadPoolExecutor(3) as threads:
            store = await open_analytics(f"sqlite:{path}", in_threads(threads))
            try:
                yield store
            finally:
                await store.close()

    def run(statement: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(path)) as db, db:
            return db.execute(statement).fetchall()

    async def sql(statement: str) -> list[tuple[Any, ...]]:
        return await asyncio.to_thread(run, statement)

    async def wipe() -> None:
        with closing(sqlite3.connect(path)) as db, db:
            for name in TABLES:
                db.execute(f"DELETE FROM {name}")  # noqa: S608 - ours

    async def until_idle() -> None:
        """The system takes the locks of whoever it ends."""

    return Place(opens, sql, wipe, f"sqlite:{path}", until_idle)


class TestSqliteAnalytics(AnalyticsContract):
    pass


LARGE = batch(posts=[post(str(n), content_text="x" * 20_000) for n in range(50)], errors=[error(50)])


@in_loop
async def test_a_full_disk_is_transient_and_leaves_nothing_half(place: Place) -> None:
    async with place.opens() as store:
        await store.keep(batch("evt_0", [post("first")]))
        with full_disk(500_000), pytest.raises(AnalyticsError, match=r"disk is well and not full|disk is full") as told:
            await store.keep(LARGE)
        assert told.value.transient
        assert [each.row.post_id for each in await all_posts(store)] == ["first"]
        assert not await store.processed("evt_1")

        assert await store.keep(LARGE) == BatchResult(new=True, posts=50, errors=1)


@in_loop
async def test_a_file_that_another_program_holds_is_transient(
    place: Place, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect: Any = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **kwargs: connect(*args, **{**kwargs, "timeout": 0.05}))
    async with place.opens() as store:
        with closing(connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(AnalyticsError, match="is in use by another program") as told:
                await store.keep(LARGE)
            await store.ping()

        assert told.value.transient
        assert (await store.keep(LARGE)).new


@in_loop
async def test_a_batch_is_on_disk_when_it_was_kept(place: Place) -> None:
    async with place.opens() as store:
        assert isinstance(store, AnalyticsStore)
        assert isinstance(store._database, SqliteDatabase)
        await store.sent([1])
        await store.keep(batch())

        assert store._database.db.execute("PRAGMA synchronous").fetchone() == (2,), "FULL"
        assert store._database.db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert store._database.db.execute("PRAGMA foreign_keys").fetchone() == (1,)


@in_loop
async def test_whoever_looks_waits_for_nobody_who_writes(place: Place, path: Path) -> None:
    async with place.opens() as store:
        await store.keep(batch(posts=[post("a")]))
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            other.execute("DELETE FROM post_analytics")

            assert len(await all_posts(store)) == 1


@in_loop
async def test_a_table_that_is_gone_is_not_the_batchs_fault(place: Place) -> None:
    async with place.opens() as store:
        await place.sql("DROP TABLE crawl_errors")

        with pytest.raises(AnalyticsError) as told:
            await store.keep(LARGE)
        assert not told.value.transient
        assert await place.sql("SELECT count(*) FROM processed_events") == [(0,)]


@pytest.mark.parametrize("sort", ["analyzed_at", "published_at", "impact_score", "view_count", "like_count"])
@pytest.mark.parametrize("descending", [False, True])
def test_an_index_gives_a_page_in_order(path: Path, sort: Sort, *, descending: bool) -> None:
    asked = page_of_posts(SqlCondition("project_id = ?", ("p",)), sort, (descending, 0, 20), SQLITE)
    with closing(sqlite3.connect(path)) as db:
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {asked.sql}", asked.values)]

    assert plan == [f"SEARCH post_analytics USING INDEX idx_post_analytics_by_{sort} (project_id=?)"]


@pytest.mark.parametrize(
    ("statement", "values", "index"),
    [
        (next_to_replay(MEANT, 9).sql, ("p", 0.0, 9), "INDEX idx_processed_events_replayable (processed_at>?)"),
        (counted_events(MEANT)[0].sql, ("p", 0.0), "INDEX idx_processed_events_replayable (processed_at>?)"),
        (
            counted_events(MEANT)[1].sql,
            ("p", 0.0),
            "INDEX idx_processed_events_without_message (processed_at>?)",
        ),
        (old_events(SQLITE)[0], (0.0, 9), "INDEX idx_processed_events_without_message (processed_at<?)"),
        (old_events(SQLITE)[1], (0.0, 9), "INDEX idx_processed_events_replayable (processed_at<?)"),
        (OF_EVENT, ("j", "e"), "INDEX idx_post_analytics_job_id (job_id=?)"),
        (OLD_ERRORS, ("e",), "INDEX sqlite_autoindex_crawl_errors_1 (event_id=?)"),
    ],
)
def test_what_is_replayed_or_forgotten_is_found_by_an_index(
    path: Path, statement: str, values: tuple[object, ...], index: str
) -> None:
    with closing(sqlite3.connect(path)) as db:
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {statement}", values)]

    assert any(index in step for step in plan), plan
    assert not any(step.startswith("SCAN") or "TEMP B-TREE" in step for step in plan), plan


@in_loop
async def test_a_file_has_two_connections_whatever_is_asked_for(path: Path) -> None:
    store = await open_analytics(f"sqlite:{path}", asyncio.to_thread, writers=9, readers=9)
    assert store.connections == 2
    await store.close()


@pytest.mark.parametrize("sizes", [{"writers": 0}, {"readers": 0}, {"writers": -1, "readers": 5}])
def test_there_must_be_connections(path: Path, sizes: dict[str, int]) -> None:
    for url in (f"sqlite:{path}", "postgresql://127.0.0.1:1/db"):
        with pytest.raises(ValueError, match=r"connections to write and .* to look, expected 1 or more of each"):
            asyncio.run(open_analytics(url, asyncio.to_thread, **sizes))


def test_the_database_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (x)")
    before = path.read_bytes()

    with pytest.raises(AnalyticsError, match=r"other.db is no store of analytics; choose another") as told:
        asyncio.run(open_analytics(f"sqlite:{path}", at_once))
    assert path.read_bytes() == before
    assert not told.value.transient


async def at_once(work: Any, /, *args: Any) -> Any:  # noqa: ANN401 - any function
    return work(*args)


def test_a_new_file_has_its_tables_at_once_also_for_many(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "new.db"

    async def use() -> list[AnalyticsStore]:
        async with asyncio.TaskGroup() as group:
            opening = [group.create_task(open_analytics(f"sqlite:{path}", asyncio.to_thread)) for _ in range(3)]
        stores: list[AnalyticsStore] = [task.result() for task in opening]
        assert (await stores[0].keep(batch(posts=[post("a")]))).new
        return stores

    for store in asyncio.run(use()):
        asyncio.run(store.close())


def test_a_file_that_is_ready_is_opened_without_loading_what_makes_it(path: Path) -> None:
    script = f"""
import asyncio, sys
from sanderling.stores.analytics_open import open_analytics
async def use():
    store = await open_analytics("sqlite:{path}", asyncio.to_thread)
    await store.close()
asyncio.run(use())
print([name for name in ("sqlalchemy", "alembic", "asyncpg") if name in sys.modules])
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    assert ran.stdout.strip() == "[]"


@in_loop
async def test_a_damaged_file_is_said_to_be(place: Place, path: Path) -> None:
    async with place.opens() as store:
        await store.keep(batch(posts=[post("a")], comments=[comment()], outbox=[message(created_at=NOW)]))
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 4000)

    with pytest.raises(AnalyticsError, match="is damaged, or not one of ours") as told:
        async with place.opens() as store:
            await store.summary(PostFilter(project_id="p"))
    assert not told.value.transient


@contextmanager
def version_of_sqlite(version: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "sqlite_version_info", version)
        yield


def test_a_sqlite_that_is_too_old_is_said_to_be(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        version_of_sqlite((3, 34, 1), monkeypatch),
        pytest.raises(AnalyticsError, match=r"SQLite here is .*, expected 3.35.0 or later"),
    ):
        asyncio.run(open_analytics(f"sqlite:{path}", at_once))
