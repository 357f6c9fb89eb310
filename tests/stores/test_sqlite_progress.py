import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from progress_contract import EMPTY, Opens, ProgressContract
from recording import batch, crawl, did

from sanderling.stores.ports import FIRST, Due, Finished, ProgressError, Unfinished
from sanderling.stores.sqlite_progress import SqliteProgress


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "progress.db"


@pytest.fixture
def opens(path: Path) -> Iterator[Opens]:
    with ExitStack() as opened:
        yield lambda: opened.enter_context(closing(SqliteProgress(path)))


class TestSqliteProgress(ProgressContract):
    @pytest.fixture
    def argument(self, path: Path) -> str:
        return str(path)


def test_two_files_do_not_see_each_other(opens: Opens, tmp_path: Path) -> None:
    crawl(opens(), 1)

    with closing(SqliteProgress(tmp_path / "other.db")) as other:
        assert other.view() == EMPTY
        other.reset()

    assert opens().view().completed == 18


def test_it_can_be_viewed_while_it_is_written(opens: Opens) -> None:
    writer, viewer = opens(), opens()

    crawl(writer, 1)

    assert viewer.view() == writer.view() != EMPTY


@pytest.mark.parametrize("content", [b"no database" * 100, b"SQLite format 3\0" + bytes(5000)])
def test_a_file_that_is_none_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "progress.db"
    path.write_bytes(content)

    with pytest.raises(ProgressError, match=r"progress.db is damaged, or not one of ours"):
        SqliteProgress(path)
    assert path.read_bytes() == content


def test_the_database_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "progress.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (x)")
    before = path.read_bytes()

    with pytest.raises(ProgressError, match=r"progress.db is no progress of a crawl of repos; choose another"):
        SqliteProgress(path)
    assert path.read_bytes() == before


def test_a_later_version_is_refused(path: Path) -> None:
    SqliteProgress(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 9")

    with pytest.raises(ProgressError, match=r"is of format 9, this version reads 2; use a newer version"):
        SqliteProgress(path)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ProgressError, match=r"cannot use .*: unable to open database file"):
        SqliteProgress(tmp_path)


def test_a_record_that_fails_changes_nothing(opens: Opens) -> None:
    """Half of it was written when the disk, here a constraint, refuses."""
    progress = opens()
    crawl(progress, 1)
    before = progress.view()

    with pytest.raises(ProgressError):
        progress.record([Finished(did(1), 1)], [Unfinished(did(500), "", permanent=False)], cursor=did(900), segment=9)

    assert progress.view() == before
    assert progress.pending(batch(0)) == [did(3)]
    crawl(progress, 1)
    assert progress.view().segment == 2


def test_no_look_reads_more_than_it_returns(opens: Opens) -> None:
    progress = opens()
    assert isinstance(progress, SqliteProgress)
    statements: list[str] = []
    progress._db.set_trace_callback(statements.append)
    progress.due(Due(3, 1, did(1)), 9, 5)
    progress.last_due()
    progress.pending([did(1)])
    progress.aside(3)
    progress.aside_of("a.example")
    progress._db.set_trace_callback(None)

    plans = [
        step for each in statements for (*_, step) in progress._db.execute(f"EXPLAIN QUERY PLAN {each}").fetchall()
    ]

    assert any("SEARCH did USING COVERING INDEX did_due ((due,failures,did)>(?,?,?)" in step for step in plans), plans
    assert any("SEARCH did USING PRIMARY KEY (did=?)" in step for step in plans), plans
    assert not [step for step in plans if step.startswith("SCAN did") or "TEMP B-TREE" in step], plans


def test_a_file_of_release_0_2_0_is_upgraded_in_place(path: Path) -> None:
    """What failed for now is due at once, and what is complete stays so."""
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as db:
        for statement in V1:
            db.execute(statement)
        db.commit()

    for _ in range(2):
        with closing(SqliteProgress(path)) as progress:
            assert progress.due(FIRST, 0, 10) == [Due(0, 0, did(2)), Due(0, 0, did(4))]
            assert progress.pending([did(number) for number in range(1, 6)]) == [did(5)]
            view = progress.view()
            assert (view.cursor, view.segment, view.bytes_written, view.total_crawled) == (did(4), 7, 99, 1)
            assert (view.completed, view.failed) == (2, {"not_found": 1, "timeout": 2})
            assert (view.scheduled, view.due, view.hosts_aside) == (2, 0, 0)


V1 = (
    "CREATE TABLE crawl (cursor TEXT NOT NULL, segment INTEGER NOT NULL, bytes_written INTEGER NOT NULL)",
    f"INSERT INTO crawl VALUES ('{did(4)}', 7, 99)",  # noqa: S608 - ours
    """CREATE TABLE did (
        did TEXT PRIMARY KEY, category TEXT NOT NULL, complete INTEGER NOT NULL,
        CHECK (complete = 1 OR complete = 0 AND category != '')) WITHOUT ROWID""",
    "CREATE INDEX did_failed ON did (did, category) WHERE complete = 0",
    "CREATE TABLE tally (category TEXT, complete INTEGER, dids INTEGER NOT NULL, PRIMARY KEY (category, complete))",
    f"INSERT INTO did VALUES ('{did(1)}', '', 1), ('{did(2)}', 'timeout', 0), ('{did(3)}', 'not_found', 1)",  # noqa: S608
    f"INSERT INTO did VALUES ('{did(4)}', 'timeout', 0)",  # noqa: S608
    "INSERT INTO tally VALUES ('', 1, 1), ('timeout', 0, 2), ('not_found', 1, 1)",
    f"PRAGMA application_id = {0x53414E50}",
    "PRAGMA user_version = 1",
)
