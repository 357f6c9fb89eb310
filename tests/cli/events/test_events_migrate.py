"""`events migrate`: up, down, and how it stands; on both databases."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker
import pytest
from command_line import Done, called
from events_rows import event, keep, sql
from looping import in_loop

from sanderling.stores.analytics_revisions import HEAD, REVISIONS

FIRST, LAST_BUT_ONE = REVISIONS[0], REVISIONS[-2]


def migrate(flags: tuple[str, ...], *command: str) -> Done:
    return called("events", "migrate", *command, *flags)


def applied(flags: tuple[str, ...]) -> list[str]:
    done = migrate(flags, "--json")
    found = json.loads(done.out)
    names = [each["name"] for each in found["revisions"] if each["applied"]]
    assert done.code == (0 if names == list(REVISIONS) else 1)
    assert (found["at"], found["head"]) == (names[-1] if names else None, HEAD)
    return names


@pytest.fixture(params=["sqlite", "postgres"])
def flags(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, ...]]:
    if request.param == "sqlite":
        yield (f"--out={tmp_path / 'out'}",)
        return
    url, schema = request.getfixturevalue("postgres"), f"sanderling_{uuid4().hex}"
    yield (f"--database={url}{'&' if urlsplit(url).query else '?'}schema={schema}", f"--out={tmp_path / 'out'}")
    drop(url, schema)


@in_loop
async def drop(url: str, schema: str) -> None:
    db = await asyncpg.connect(url)
    try:
        await db.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    finally:
        await db.close()


@pytest.fixture
def embedded(tmp_path: Path) -> tuple[str, ...]:
    return (f"--out={tmp_path / 'out'}",)


def test_up_down_and_up_again(flags: tuple[str, ...]) -> None:
    assert applied(flags) == []

    up = migrate(flags, "head")
    assert (up.code, up.err) == (0, "")
    assert up.out.count("  applied  ") == len(REVISIONS)
    assert up.out.endswith(f" is at revision {HEAD} now.\n")
    assert applied(flags) == list(REVISIONS)

    down = json.loads(migrate(flags, LAST_BUT_ONE, "--yes", "--json").out)
    assert down == {"before": HEAD, "now": LAST_BUT_ONE, "undone": [HEAD]}
    assert applied(flags) == list(REVISIONS[:-1])

    base = json.loads(migrate(flags, "base", "--yes", "--json").out)
    assert base == {"before": LAST_BUT_ONE, "now": None, "undone": [*REVISIONS[-2::-1]]}
    assert applied(flags) == []

    some = json.loads(migrate(flags, FIRST, "--json").out)
    assert some == {"before": None, "now": FIRST, "applied": [FIRST]}
    assert applied(flags) == [FIRST]
    assert migrate(flags, "head").code == 0
    assert applied(flags) == list(REVISIONS)


def test_looking_makes_nothing_and_says_what_to_do(embedded: tuple[str, ...], tmp_path: Path) -> None:
    done = migrate(embedded)

    assert done.code == 1
    assert [line.split()[:3] for line in done.out.splitlines()] == [[name, "not", "yet"] for name in REVISIONS]
    assert list(tmp_path.iterdir()) == []
    assert "has no tables of ours yet; bring it up: sanderling events migrate head" in done.err
    _, _, way = done.err.partition("bring it up: sanderling ")
    assert called(*way.split()).code == 0
    assert (tmp_path / "out" / "events.db").is_file()
    shown = migrate(embedded)
    assert (shown.code, shown.err) == (0, "")
    assert [line.split()[1] for line in shown.out.splitlines()] == ["applied"] * len(REVISIONS)


def test_nothing_is_lost_without_a_yes(embedded: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "out" / "events.db"
    keep(path, [event("e", 1.75e9)])

    done = migrate(embedded, REVISIONS[-3])

    assert (done.code, done.out) == (2, "")
    told = [line.split()[0] for line in done.err.splitlines() if line.startswith("    ")]
    assert told == [HEAD, LAST_BUT_ONE]
    assert "this undoes 2 revisions of " in done.err
    assert "say --yes" in done.err
    assert applied(embedded) == list(REVISIONS)
    assert sql(path, "SELECT count(*) FROM crawl_errors") == [(1,)]


def test_where_it_is_already_nothing_is_done(embedded: tuple[str, ...]) -> None:
    migrate(embedded, "head")

    up, down = migrate(embedded, "head"), migrate(embedded, HEAD)
    migrate(embedded, "base", "--yes")
    lowest = migrate(embedded, "base")

    for done in (up, down):
        assert done.code == 0
        assert done.out.endswith(f"is at revision {HEAD} already, nothing was changed.\n")
    assert lowest.out.endswith("has no tables of ours already, nothing was changed.\n")


def test_what_is_no_revision_is_refused(embedded: tuple[str, ...], tmp_path: Path) -> None:
    done = migrate(embedded, "9999")

    assert done.code == 2
    assert f"'9999' is no revision, expected one of base, {', '.join(REVISIONS)}, head" in done.err
    assert list(tmp_path.iterdir()) == []


def test_where_there_is_none_there_is_nothing_to_bring_down(embedded: tuple[str, ...], tmp_path: Path) -> None:
    done = migrate(embedded, "base", "--yes")

    assert done.code == 2
    assert f"there is no {tmp_path / 'out' / 'events.db'}" in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_database_of_a_later_version_is_left_alone(embedded: tuple[str, ...], tmp_path: Path) -> None:
    migrate(embedded, "head")
    sql(tmp_path / "out" / "events.db", "UPDATE analytics_version SET version_num = '9999'")

    for command in (("head",), ("base", "--yes"), ()):
        done = migrate(embedded, *command)
        assert done.code == 2
        assert f"is at revision '9999', this version knows up to {HEAD}; use a newer version" in done.err


@pytest.mark.parametrize("command", [("head",), ()])
def test_a_server_that_is_away_is_told_without_a_password(command: tuple[str, ...], tmp_path: Path) -> None:
    done = migrate(("--database=postgresql://me:secret@127.0.0.1:1/x", f"--out={tmp_path / 'out'}"), *command)

    assert done.code == 1
    assert "--database: " in done.err
    assert "127.0.0.1:1" in done.err
    assert "secret" not in done.err
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database, but long enough to be taken for one" * 50)

    for url, found in (
        ("mysql://me:secret@db/x", "'mysql' is no kind"),
        (f"sqlite:{tmp_path / 'notes.txt'}", "notes.txt"),
    ):
        done = migrate((f"--database={url}",), "head")
        assert done.code == 2
        assert "--database: " in done.err
        assert found in done.err
        assert "secret" not in done.err
