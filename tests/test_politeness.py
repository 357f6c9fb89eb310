"""What docs/politeness.md shows for deleting does so: the SQL on tables of ours."""

import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from shell_examples import ROOT, called, inside

from sanderling.stores.instances_tables import TABLES

TEXT = (ROOT / "docs" / "politeness.md").read_text()
OLD, AUTHOR, PLAYER, _ = re.findall(r"^```sql\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def test_what_an_author_wrote_goes_with_its_comments_and_what_is_old_goes_too(tmp_path: Path) -> None:
    with inside(tmp_path):
        assert called(["events", "migrate", "head"]).code == 0
    with closing(sqlite3.connect(tmp_path / "events" / "events.db")) as database:
        for number, author, at in ((1, "7011", "-0 days"), (2, "7012", "-0 days"), (3, "7012", "-366 days")):
            fill(database, "post_analytics", id=number, post_id=str(number), platform="tiktok", author_id=author)
            fill(database, "post_comments", post_id=number, comment_id="1", author_name=f"Name {number}")
            database.execute("UPDATE post_analytics SET analyzed_at = unixepoch('now', ?) WHERE id = ?", (at, number))
        fill(database, "post_comments", post_id=2, comment_id="2", author_name="The name")

        database.executescript(AUTHOR)
        assert numbers(database, "SELECT id FROM post_analytics") == [2, 3]
        assert numbers(database, "SELECT post_id FROM post_comments") == [2, 3]
        database.executescript(OLD)
        assert numbers(database, "SELECT id FROM post_analytics") == [2]
        assert numbers(database, "SELECT post_id FROM post_comments") == [2]


def test_a_player_goes_from_every_table_and_the_others_stay(tmp_path: Path) -> None:
    player = 4611686018429
    with closing(sqlite3.connect(tmp_path / "rows.db")) as database:
        for table in TABLES:
            database.execute(table.sqlite)
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        of_players = [name for name in tables if "membership_id" in columns(database, name)]
        for who, instance in ((player, 1), (7, 2)):
            fill(database, "raw_instance", instance_id=instance)
            for name in of_players:
                given = {"membership_id": who, "instance_id": instance}
                fill(database, name, **{key: value for key, value in given.items() if key in columns(database, name)})

        database.executescript(PLAYER)

        for name in of_players:
            assert numbers(database, f"SELECT membership_id FROM {name}") == [7], name  # noqa: S608
        assert numbers(database, "SELECT instance_id FROM raw_instance") == [2]


def columns(database: sqlite3.Connection, table: str) -> dict[str, tuple[str, bool]]:
    """The columns of a table: of each its type, and whether it needs a value."""
    found = database.execute('SELECT name, type, "notnull" AND dflt_value IS NULL FROM pragma_table_info(?)', (table,))
    # An id comes by itself.
    return {name: (kind, needed and name != "id") for name, kind, needed in found}


def fill(database: sqlite3.Connection, table: str, **values: object) -> None:
    """Add a row, with something in every column that needs it."""
    needed = {name: 0 if "TEXT" not in kind else "" for name, (kind, need) in columns(database, table).items() if need}
    row = {**needed, **values}
    marks = ", ".join("?" * len(row))
    database.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))  # noqa: S608


def numbers(database: sqlite3.Connection, query: str) -> list[int]:
    rows: Iterable[tuple[int]] = database.execute(query)
    return sorted({number for (number,) in rows})
