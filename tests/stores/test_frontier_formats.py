"""Files of earlier formats are gone on with, and read as they are by whoever only reads."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from frontier_contract import SLOW, put_off, taken
from frontier_urls import failed, fetched, found, fresh, url
from killed import killed

from sanderling.ids import partition_of
from sanderling.outcome import Code, Outcome
from sanderling.stores import frontier_file, frontier_reading, frontier_tables
from sanderling.stores.durable import FolderError
from sanderling.stores.frontier import Frontier
from sanderling.stores.frontier_file import APPLICATION, key_of
from sanderling.stores.frontier_rows import Aside, End, Ended, WaitingRow
from sanderling.stores.frontier_tables import VERSION
from sanderling.stores.sqlite_file import version_of

# As releases have made them. Those of format 1 minded ends above 6; some of format 2 have no table `aside`.
TABLES = """
    CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE host (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE code (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE url (
        id INTEGER PRIMARY KEY, host INTEGER NOT NULL, depth INTEGER NOT NULL,
        end INTEGER NOT NULL CHECK (end BETWEEN 0 AND 7), code INTEGER NOT NULL,
        key BLOB NOT NULL, url TEXT NOT NULL);
    CREATE UNIQUE INDEX url_known ON url (host, key);
    CREATE INDEX url_waiting ON url (host) WHERE end = 0;
    CREATE TABLE failure (id INTEGER PRIMARY KEY, status INTEGER NOT NULL, detail TEXT NOT NULL);
    CREATE TABLE moved (key BLOB PRIMARY KEY, target TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE remembered (key BLOB NOT NULL UNIQUE, etag TEXT, modified TEXT, links BLOB NOT NULL);
    CREATE TABLE robots (
        origin TEXT PRIMARY KEY, status INTEGER NOT NULL, body BLOB NOT NULL, fetched_at REAL NOT NULL);
"""
ASIDE = """CREATE TABLE aside (
    host INTEGER PRIMARY KEY, code INTEGER NOT NULL, status INTEGER NOT NULL, detail TEXT NOT NULL)"""
ROWS = """
    INSERT INTO meta VALUES ('plan', '{}'), ('crawl', 1), ('watermark', 7), ('finished', 0), ('closed', 0),
        ('started', 1.5), ('ended', NULL), ('moved_hosts', '[]');
    INSERT INTO host VALUES (1, 'a.example'), (2, 'b.example');
    INSERT INTO code VALUES (0, ''), (1, 'OK'), (2, 'TIMEOUT'), (3, 'CONTENT_NOT_FOUND');
"""
URLS = [(1, 1, 1, 1, 0), (2, 1, 5, 3, 3), (3, 1, 0, 0, 6), (4, 2, 0, 0, 1)]  # id, host, end, code, number


def older(path: Path, version: int, *, aside: bool = False) -> None:
    """Make a file as a release of that format would have left it."""
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(TABLES.replace("AND 7", "AND 6") if version == 1 else TABLES)
        db.executescript(ROWS)
        rows = [(number, host, end, code, key_of(url(at)), url(at)) for number, host, end, code, at in URLS]
        db.executemany("INSERT INTO url VALUES (?, ?, 0, ?, ?, ?, ?)", rows)
        db.execute("INSERT INTO failure VALUES (2, 404, 'not there')")
        if aside:
            db.execute(ASIDE)
            db.execute("INSERT INTO aside VALUES (2, 2, 0, 'late')")
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute(f"PRAGMA user_version = {version}")


def of_format_3(path: Path) -> None:
    """Make a file with partitions and blame, and without requests."""
    older(path, 3, aside=True)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("ALTER TABLE host ADD COLUMN partition INTEGER NOT NULL DEFAULT 0")
        rows = [(partition_of(name), name) for name in ("a.example", "b.example")]
        db.executemany("UPDATE host SET partition = ? WHERE name = ?", rows)
        db.execute("CREATE INDEX host_partition ON host (partition)")
        db.execute("ALTER TABLE failure ADD COLUMN requests INTEGER NOT NULL DEFAULT 0")
        db.execute("ALTER TABLE aside ADD COLUMN due REAL NOT NULL DEFAULT 0")
        for statement in frontier_tables.AGAIN:
            db.execute(statement)
        db.execute("INSERT INTO meta VALUES ('known', 4), ('last_id', 4)")


def of_format_4(path: Path) -> None:
    """Make a file with requests, and without sums."""
    of_format_3(path)
    with closing(sqlite3.connect(path)) as db, db:
        for statement in frontier_tables.REQUESTS:
            db.execute(statement)
        db.execute("PRAGMA user_version = 4")


def of_format_5(path: Path) -> None:
    """Make a file with sums, and without second visits."""
    of_format_4(path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("ALTER TABLE host ADD COLUMN waiting INTEGER NOT NULL DEFAULT 0")
        db.execute("ALTER TABLE host ADD COLUMN fetched INTEGER NOT NULL DEFAULT 0")
        db.execute(frontier_tables.TALLY)
        db.execute("INSERT INTO tally VALUES (0, 0, 2), (1, 1, 1), (5, 3, 1)")
        db.execute("UPDATE host SET waiting = 1, fetched = id = 1")
        db.execute("PRAGMA user_version = 5")


def of_format_6(path: Path) -> None:
    """Make a file with second visits, and without due times of hosts."""
    of_format_5(path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(frontier_tables.VISITS)
        db.execute(frontier_tables.DUE)
        db.execute("UPDATE aside SET due = 77.0")
        db.execute("PRAGMA user_version = 6")


OLDER: dict[str, Callable[[Path], None]] = {
    "format 1": lambda path: older(path, 1),
    "format 1, with aside": lambda path: older(path, 1, aside=True),
    "format 2": lambda path: older(path, 2),
    "format 2, with aside": lambda path: older(path, 2, aside=True),
    "format 3": of_format_3,
    "format 4": of_format_4,
    "format 5": of_format_5,
    "format 6": of_format_6,
}


@pytest.fixture
def path() -> Iterator[Path]:
    with fresh() as folder:
        yield folder / "ledger.db"


@pytest.fixture(params=OLDER)
def left(request: pytest.FixtureRequest, path: Path) -> Path:
    """What an earlier release has left."""
    OLDER[request.param](path)
    return path


def said(db: sqlite3.Connection) -> list[object]:
    """All that can be read of a file."""
    read = frontier_reading
    rows = [list(read.failed(db)), read.aside(db), list(read.waiting_rows(db)), read.tally(db), read.ends(db)]
    return [frontier_file.read_meta(db, Path("ledger.db")), *rows]


def test_a_file_of_an_earlier_format_is_read_as_it_is(left: Path) -> None:
    before = left.read_bytes()

    with closing(frontier_file.connect_to_read(left)) as db:
        meta, failures, aside, waiting, tally, ends = said(db)
        assert frontier_reading.blamed(db) == ({"item": 1} if version_of(db) >= 3 else {}, {})

    assert left.read_bytes() == before
    assert meta.known == meta.last_id == 4  # type: ignore[attr-defined]
    assert failures == [(2, url(3), "a.example", 0, End.FAILED, "CONTENT_NOT_FOUND", 404, "not there", 0, "item")]
    assert aside in ([], *([Aside("b.example", 1, "TIMEOUT", 0, "late", due)] for due in (0.0, 77.0)))
    why = ("host", "TIMEOUT", 0, "late", 0) if aside else ("", "", 0, "", 0)
    assert waiting == [
        WaitingRow(3, url(6), "a.example", 0, "", "", 0, "", 0),
        WaitingRow(4, url(1), "b.example", 0, *why),  # type: ignore[arg-type]
    ]
    assert (sum(tally.values()), list(ends)) == (4, [0, 1, 5, 0, 0])  # type: ignore[attr-defined, call-overload]


def test_a_file_of_an_earlier_format_says_the_same_when_it_is_upgraded(left: Path) -> None:
    with closing(frontier_file.connect_to_read(left)) as db:
        before = said(db)

    Frontier(left).close()

    with closing(frontier_file.connect_to_read(left)) as db:
        assert said(db) == before
        assert version_of(db) == VERSION
        assert dict(db.execute("SELECT name, partition FROM host")) == {
            name: partition_of(name) for name in ("a.example", "b.example")
        }
        sums = db.execute("SELECT name, waiting, fetched FROM host ORDER BY id").fetchall()
        assert sums == [("a.example", 1, 1), ("b.example", 1, 0)]


def test_a_file_of_an_earlier_format_is_gone_on_with(left: Path) -> None:
    for _ in range(2):
        Frontier(left).close()
    with closing(Frontier(left)) as frontier:
        frontier.commit([], found(0, 3, 9, 2), 9, [put_off(taken(frontier, "b.example")[0])])
        third, fifth = taken(frontier)
        forbidden = Ended(id=third.id, url=third.url, end=End.LEFT_OUT, outcome=Outcome(Code.REFUSED), depth=0)
        frontier.commit([forbidden, failed(fifth, requests=4)], [], 9)
        frontier.set_aside("c.example", SLOW, 12.5)

    with closing(Frontier(left)) as frontier:
        assert [(each.id, each.requests, each.fault) for each in frontier.failed()] == [
            (2, 0, "item"),
            (3, 0, "us"),
            (5, 4, "item"),
        ]
        assert taken(frontier, "b.example")[0].failures == 1
        assert frontier.aside()[-1] == Aside("c.example", 1, "TIMEOUT", 0, "connect ?", 12.5)
        assert (frontier.known, frontier.meta.watermark) == (6, 9)


class Killed(BaseException):
    """Nothing of ours runs any more."""


class Mortal(sqlite3.Connection):
    """Dies before the statement whose turn it is."""

    left = 0

    def execute(self, *args: object) -> sqlite3.Cursor:
        if self.left == 0:
            raise Killed
        self.left -= 1
        return super().execute(*args)  # type: ignore[arg-type]


def test_an_upgrade_that_is_killed_before_any_statement_is_made_up_for(left: Path) -> None:
    """Before each in turn, until there are none left; what was killed says the same as before, and can be opened."""
    with closing(frontier_file.connect_to_read(left)) as db:
        before = said(db)
    content, steps, killed = left.read_bytes(), 0, True
    while killed:
        left.write_bytes(content)
        db = sqlite3.connect(left, isolation_level=None, factory=Mortal)
        db.left = steps
        try:
            frontier_tables.upgrade(db)
            killed = False
        except Killed:
            steps += 1
        db.left = -1
        db.close()  # which takes back what was not committed, as the next reader would

        with closing(frontier_file.connect_to_read(left)) as reader:
            assert said(reader) == before
        with closing(Frontier(left)) as frontier:
            frontier.commit([fetched(taken(frontier, "b.example")[0])], [], 0)
            assert frontier.counts()[End.FETCHED] == 2
    assert steps > 3


UPGRADES = """
import sqlite3, sys
from sanderling.stores import frontier_tables
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.set_progress_handler(lambda: print("on", flush=True), 40)
frontier_tables.upgrade(db)
while True:
    print("on", flush=True)
"""


@pytest.mark.parametrize("after", [1, 20, 60, 100, 140, 400])
def test_an_upgrade_that_is_killed_for_good_is_made_up_for(path: Path, after: int) -> None:
    """By the operating system, wherever it is."""
    older(path, 1, aside=True)
    with closing(frontier_file.connect_to_read(path)) as db:
        before = said(db)

    killed(["-c", UPGRADES, path], after=after)

    with closing(Frontier(path)) as frontier:
        assert frontier.known == 4
    with closing(frontier_file.connect_to_read(path)) as db:
        assert (said(db), version_of(db)) == (before, VERSION)


def test_a_row_that_an_earlier_format_has_lost_is_missed(path: Path) -> None:
    older(path, 2)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM url WHERE id = 3")

    for _ in range(2):
        with pytest.raises(FolderError, match="it has 3 URLs, expected 4"):
            Frontier(path)


def test_a_row_that_was_lost_is_missed(path: Path) -> None:
    """Whichever it is: ids may have gaps, and are counted."""
    for lost in (1, 3):
        with closing(Frontier(path)) as frontier:
            frontier.commit([], found(0, 3, 6), 0)
        content = path.read_bytes()
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("DELETE FROM url WHERE id = ?", (lost,))

        with pytest.raises(FolderError, match="it has 2 URLs, expected 3"):
            Frontier(path)
        path.write_bytes(content)


def test_an_id_that_was_never_given_is_damage(path: Path) -> None:
    with closing(Frontier(path)) as frontier:
        frontier.commit([], found(0, 3, 6), 0)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE url SET id = 9 WHERE id = 3")

    with pytest.raises(FolderError, match="its last id is 9, expected 3 at most"):
        Frontier(path)


def test_a_file_of_a_later_format_is_refused(path: Path) -> None:
    Frontier(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")

    with pytest.raises(FolderError, match=f"of format {VERSION + 1}, this version reads up to {VERSION}"):
        Frontier(path)


def test_all_rows_of_a_partition_are_found_by_indexes(path: Path) -> None:
    """So that a file can be split without reading those that stay."""
    with closing(Frontier(path)) as frontier:
        frontier.commit([], found(*range(9)), 0)
        frontier.commit([], [], 0, [put_off(taken(frontier)[0])])
    wanted = "FROM host JOIN {0} ON {0}.host = host.id WHERE host.partition = ?"
    with closing(sqlite3.connect(path)) as db:
        for table in ("url", "again"):
            sql = f"SELECT {table}.id {wanted.format(table)}"
            plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", (0,))]
            assert "USING COVERING INDEX host_partition" in plan[0], plan
            assert not any(step.startswith("SCAN") or "AUTOMATIC" in step for step in plan), plan
        sql = f"SELECT url.url {wanted.format('url')}"
        rows = db.execute(sql, (partition_of("a.example"),)).fetchall()
        assert sorted(rows) == [(url(0),), (url(3),), (url(6),)]
