import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from sanderling.stores import sqlite_file
from sanderling.stores.durable import FolderError
from sanderling.stores.sqlite_file import SHORTEST_LOG, FileKind, LogBound, connect_read_only, open_file, transaction

KIND = FileKind(
    "file of a test", 0x54455354, 1, ("CREATE TABLE thing (number INTEGER)", "INSERT INTO thing VALUES (1)")
)
OPEN = """
import sys
from contextlib import closing
from pathlib import Path
from sanderling.stores.sqlite_file import FileKind, open_file
tables = ("CREATE TABLE thing (number INTEGER)", "INSERT INTO thing VALUES (1)")
kind = FileKind("file of a test", 0x54455354, 1, tables)
print("ready", flush=True)
for name in sys.stdin:
    db = open_file(Path(name.strip()), kind)
    print(db.execute("SELECT sum(number) FROM thing").fetchone()[0], flush=True)
    db.close()
"""


def test_a_file_is_made_once_and_found_again(tmp_path: Path) -> None:
    open_file(tmp_path / "new" / "a.db", KIND).close()

    db = open_file(tmp_path / "new" / "a.db", KIND)

    assert db.execute("SELECT number FROM thing").fetchall() == [(1,)]
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.close()


def test_processes_that_make_the_same_file_at_once_all_get_it(tmp_path: Path) -> None:
    openers = [
        subprocess.Popen([sys.executable, "-c", OPEN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603
        for _ in range(3)
    ]
    try:
        assert [opener.stdout.readline() for opener in openers if opener.stdout] == ["ready\n"] * 3
        for number in range(15):
            for opener in openers:
                assert opener.stdin is not None
                opener.stdin.write(f"{tmp_path / str(number)}.db\n")
                opener.stdin.flush()
            assert [opener.stdout.readline() for opener in openers if opener.stdout] == ["1\n"] * 3
    finally:
        for opener in openers:
            opener.communicate(timeout=300)


def test_a_file_of_another_kind_is_left_alone(tmp_path: Path) -> None:
    open_file(tmp_path / "a.db", KIND).close()

    with pytest.raises(FolderError, match="is no other file; choose another file"):
        open_file(tmp_path / "a.db", FileKind("other file", 0x4F544852, 1, ()))


def test_a_file_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    open_file(tmp_path / "a.db", KIND).close()
    with sqlite3.connect(tmp_path / "a.db") as db:
        db.execute("PRAGMA user_version = 7")
    db.close()

    with pytest.raises(FolderError, match="is of format 7, this version reads 1"):
        open_file(tmp_path / "a.db", KIND)


def test_the_log_of_a_small_file_stays_small_and_that_of_a_large_one_may_be_longer(tmp_path: Path) -> None:
    path, longest, peaks = tmp_path / "some.db", 12 << 20, list[int]()
    db = open_file(path, KIND)
    db.execute("PRAGMA synchronous = OFF")
    log = LogBound(db, path, longest)
    for _ in range(1500):
        log.look()
        with transaction(db):
            db.execute("INSERT INTO thing VALUES (randomblob(20000))")
        peaks.append(path.with_name("some.db-wal").stat().st_size)
    db.close()

    assert max(peaks[:350]) <= 1.1 * SHORTEST_LOG
    assert 1.9 * SHORTEST_LOG < max(peaks) <= 1.1 * longest


def half_written(folder: Path) -> Path:
    """A file whose writer was killed in the middle of a transaction, of which some had reached the file."""
    source, left = folder / "written.db", folder / "left.db"
    db = sqlite3.connect(source, isolation_level=None)
    db.execute("CREATE TABLE thing (number INTEGER, text TEXT)")
    db.executemany("INSERT INTO thing VALUES (1, ?)", [("x" * 1000,)] * 500)
    db.execute("PRAGMA cache_size = 1")
    db.execute("BEGIN IMMEDIATE")
    db.execute("UPDATE thing SET number = 2")
    for suffix in ("", "-journal"):
        shutil.copyfile(f"{source}{suffix}", f"{left}{suffix}")
    db.close()
    return left


def test_who_only_reads_finds_what_was_before_a_transaction_that_was_cut_short(tmp_path: Path) -> None:
    path = half_written(tmp_path)

    with closing(connect_read_only(path)) as db:
        assert db.execute("SELECT number, count(*) FROM thing GROUP BY 1").fetchall() == [(1, 500)]
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            db.execute("DELETE FROM thing")


def test_a_file_that_is_not_there_is_not_made_by_who_reads(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        connect_read_only(tmp_path / "none.db")


def test_one_place_opens_files_to_read_them() -> None:
    """A file that is opened elsewhere cannot be read once its writer was killed at a bad moment."""
    source = Path(sqlite_file.__file__).parents[1]
    assert [path.name for path in source.rglob("*.py") if "mode=ro" in path.read_text()] == []
