"""`forget` of events: what is older than a time goes, all of it, and nothing else."""

import json
from pathlib import Path

import pytest
from command_line import Done, called
from events_rows import event, keep, sql

from sanderling.clock import SystemClock

DAY = 86_400.0
TABLE = {"errors": "crawl_errors", "processed": "processed_events"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With events of a hundred and of four hundred days ago, of yesterday, and of two minutes ago."""
    wall = SystemClock().wall()
    ages = {"ancient": 400 * DAY, "old": 100 * DAY, "recent": DAY, "new": 120.0}
    keep(tmp_path / "events.db", [event(name, wall - age) for name, age in ages.items()])
    return tmp_path


def forget(folder: Path, what: str, *flags: str) -> Done:
    return called("forget", str(folder), what, *flags)


def left(folder: Path, what: str) -> set[str]:
    return {name for (name,) in sql(folder / "events.db", f"SELECT event_id FROM {TABLE[what]}")}  # noqa: S608 - ours


@pytest.mark.parametrize(("what", "kept"), [("errors", {"recent", "new"}), ("processed", {"old", "recent", "new"})])
def test_what_is_older_than_usual_goes_and_the_rest_stays(folder: Path, what: str, kept: set[str]) -> None:
    done = forget(folder, what)

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"Removed {4 - len(kept)} ")
    assert left(folder, what) == kept
    (other,) = set(TABLE) - {what}
    assert left(folder, other) == {"ancient", "old", "recent", "new"}


@pytest.mark.parametrize("what", TABLE)
def test_an_age_may_be_given(folder: Path, what: str) -> None:
    wall = SystemClock().wall()

    done = forget(folder, what, "--older-than=1m", "--json")

    found = json.loads(done.out)
    assert (done.code, found["removed"]) == (0, 4)
    assert found["before"] == pytest.approx(wall - 60, abs=50)
    assert left(folder, what) == set()
    assert json.loads(forget(folder, what, "--older-than=1m", "--json").out)["removed"] == 0


@pytest.mark.parametrize("what", TABLE)
def test_what_does_not_fit_into_one_page_goes_as_well(folder: Path, what: str) -> None:
    path, table = folder / "events.db", TABLE[what]
    known = sql(path, f"PRAGMA table_info({table})")
    columns = ", ".join(name for (_, name, *_) in known if name not in ("id", "event_id"))
    numbers = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 10500)"
    copied = f"SELECT 'copy ' || n, {columns} FROM n, {table} WHERE event_id = 'old'"  # noqa: S608 - ours
    sql(path, f"INSERT INTO {table} (event_id, {columns}) {numbers} {copied}")

    done = forget(folder, what, "--older-than=5d", "--json")

    assert json.loads(done.out)["removed"] == 10_502
    assert left(folder, what) == {"recent", "new"}


@pytest.mark.parametrize("age", ["59s", "0d", "90", "3M", "-1d", "forever"])
def test_an_age_that_is_none_removes_nothing(folder: Path, age: str) -> None:
    done = forget(folder, "errors", f"--older-than={age}")

    assert done.code == 2
    assert f"--older-than is '{age}', expected an age such as 30m" in done.err
    assert len(left(folder, "errors")) == 4


@pytest.mark.parametrize("what", TABLE)
def test_where_there_is_no_database_none_is_made(tmp_path: Path, what: str) -> None:
    done = forget(tmp_path / "out", what)
    other = called("forget", "events", what, f"--database=sqlite:{tmp_path / 'other.db'}")

    assert (done.code, other.code) == (2, 2)
    assert f"nothing can be forgotten in {tmp_path / 'out'}" in done.err
    assert f"there is no sqlite:{tmp_path / 'other.db'}; choose another with --database" in other.err
    assert list(tmp_path.iterdir()) == []


def test_what_fails_midway_says_how_far_it_came(folder: Path) -> None:
    keep_one = "CREATE TRIGGER stays BEFORE DELETE ON crawl_errors BEGIN SELECT RAISE(ABORT, 'not that one'); END"
    sql(folder / "events.db", keep_one)

    done = forget(folder, "errors")

    assert done.code == 1
    assert "not that one; 0 were removed before that, run it again" in done.err


def test_a_server_that_is_away_is_told_without_a_password() -> None:
    done = called("forget", "events", "errors", "--database=postgresql://me:secret@127.0.0.1:1/x")

    assert done.code == 1
    assert "127.0.0.1:1" in done.err
    assert "secret" not in done.err


@pytest.mark.parametrize("given", [(), ("posts",), ("errors", "--dry-run")])
def test_what_is_not_to_be_forgotten_is_refused(folder: Path, given: tuple[str, ...]) -> None:
    done = called("forget", str(folder), *given)

    assert done.code == 2
    assert len(left(folder, "errors")) == 4
