"""Counts that triggers keep beside the rows they count: to read one costs the same however many rows there are."""

import sqlite3

from sanderling.stores.sqlite_file import transaction

# `of` is a value of the column that is counted by, `number` how many rows have it, or what is summed up of them.
TABLE = "CREATE TABLE {0}_tally (of PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID"
FILL = "INSERT INTO {0}_tally SELECT {1}, sum({2}) FROM {0} GROUP BY {1}"
CHANGE = "INSERT INTO {0}_tally VALUES ({3}.{1}, {4}({2})) ON CONFLICT DO UPDATE SET number = number + excluded.number"
INSERTED = "CREATE TRIGGER {0}_tally_inserted AFTER INSERT ON {0} BEGIN {1}; END"
DELETED = "CREATE TRIGGER {0}_tally_deleted AFTER DELETE ON {0} BEGIN {1}; END"
UPDATED = "CREATE TRIGGER {0}_tally_updated AFTER UPDATE OF {1} ON {0} BEGIN {2}; {3}; END"


def keep_tally(db: sqlite3.Connection, table: str, by: str, amount: str = "1") -> None:
    """Count the rows of `table` by a column from now on, or sum up `amount`, in which {0} stands for the row.

    A file that has no such count gets it here, in one pass over the table. All names are ours.
    """
    if _is_kept(db, table):
        return
    with transaction(db):
        if _is_kept(db, table):  # by another process, meanwhile
            return
        out, into = (
            CHANGE.format(table, by, amount.format(row), row, sign) for row, sign in (("old", "-"), ("new", ""))
        )
        db.execute(TABLE.format(table))
        db.execute(FILL.format(table, by, amount.format(table)))
        db.execute(INSERTED.format(table, into))
        db.execute(DELETED.format(table, out))
        db.execute(UPDATED.format(table, by, out, into))


def tally(db: sqlite3.Connection, table: str) -> dict[int | str, int]:
    """The counts that are not 0, by value, in the order of values."""
    rows = db.execute(f"SELECT of, number FROM {table}_tally WHERE number != 0 ORDER BY of")  # noqa: S608 - ours
    return dict(rows.fetchall())


def _is_kept(db: sqlite3.Connection, table: str) -> bool:
    found = db.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (f"{table}_tally",))
    return found.fetchone() is not None
