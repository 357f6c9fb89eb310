import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from progress_contract import EMPTY, Opens, ProgressContract
from recording import CATEGORIES, batch, crawl, did

from sanderling.stores.ports import Finished, ProgressError, Unfinished
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

    with pytest.raises(ProgressError, match=r"is of format 9, this version reads 1; use a newer version"):
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
    assert progress.pending(batch(0)) == [did(1), did(3)]
    crawl(progress, 1)
    assert progress.view().segment == 2


def test_a_page_of_failures_reads_no_more_than_a_page(opens: Opens) -> None:
    progress = opens()
    assert isinstance(progress, SqliteProgress)
    statements: list[str] = []
    progress._db.set_trace_callback(statements.append)
    progress.failed(CATEGORIES, did(1), 5)
    progress.pending([did(1)])
    progress._db.set_trace_callback(None)

    plans = [
        step for each in statements for (*_, step) in progress._db.execute(f"EXPLAIN QUERY PLAN {each}").fetchall()
    ]

    assert any("SEARCH did USING INDEX did_failed (did>?)" in step for step in plans), plans
    assert any("SEARCH did USING PRIMARY KEY (did=?)" in step for step in plans), plans
    assert not [step for step in plans if "SCAN did" in step or "TEMP B-TREE" in step]
