"""The transactions of a ledger as bytes: whoever applies them has the same ledger, and nothing else ever happens."""

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import msgspec
import pytest
from frontier_play import FrontierPlay
from frontier_urls import FINE, GONE, HOSTS, MEMORY, failed, fetched, found, fresh, url
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule
from test_frontier_requests import READERS, ended, request, take_all

from sanderling.outcome import Code, Outcome
from sanderling.stores.durable import FolderError
from sanderling.stores.frontier import Frontier
from sanderling.stores.frontier_requests import JobProgress, RequestFrontier, SpoiledRecords
from sanderling.stores.frontier_rows import KEPT, REOPENABLE, End, Ended, HostNote, QueuedUrl, RetryUrl
from sanderling.stores.frontier_visits import UrlVisits, VisitedFrontier
from sanderling.stores.ledger_log import SharedHead, Statement, apply_commits, head_of, pack, unpack

OWN = ("clean", "shared")  # what a file says of itself
Rows = dict[str, list[tuple[object, ...]]]


class RefusedError(Exception):
    """Whoever shares commits has refused one."""


class Shared:
    """A log of commits, and a copy of the ledger that is made from it alone."""

    def __init__(self, folder: Path, open_empty: Callable[[Path], Frontier]) -> None:
        self.ledger, self._copy = folder / "ledger.db", folder / "copy.db"
        self.commits: list[tuple[SharedHead, bytes]] = []
        self.refusing = False
        self._applied = 0
        open_empty(self._copy).close()

    def keep(self, body: bytes) -> SharedHead:
        if self.refusing:
            raise RefusedError
        head = SharedHead(len(self.commits) + 1, f"t{len(self.commits) + 1}")
        self.commits.append((head, body))
        return head

    def check(self) -> None:
        """The copy has what the ledger has, once it has the commits that are new."""
        with closing(sqlite3.connect(self._copy, isolation_level=None)) as db:
            apply_commits(db, self.commits[self._applied :])
            self._applied = len(self.commits)
            assert rows_of(self._copy) == rows_of(self.ledger)
            assert head_of(db) == (self.commits[-1][0] if self.commits else SharedHead())


def rows_of(path: Path) -> Rows:
    """All rows of all tables, with what they are known by."""
    with closing(sqlite3.connect(path)) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {name: sorted(db.execute(f"SELECT * FROM {name}"), key=repr) for name in names}  # noqa: S608 - ours
        found["rowids"] = sorted(db.execute("SELECT rowid, key FROM remembered"))
    found["meta"] = [row for row in found["meta"] if row[0] not in OWN]
    return found


# Any sequence of what can be done.


class SharedPlay(FrontierPlay):
    """As any frontier, with a model beside it; and a copy behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=MEMORY))
        self.shared = Shared(self.folder, VisitedFrontier)

    def opened(self) -> Frontier:
        frontier = VisitedFrontier(self.shared.ledger)
        frontier.share(self.shared.keep)
        return frontier

    @rule(host=st.sampled_from(HOSTS), number=st.integers(0, 9))
    def learn_robots(self, host: str, number: int) -> None:
        self.frontier.keep_robots(f"https://{host}", 200, b"%d" % number, float(number))

    @precondition(lambda self: any(each.url not in self.twins for each in found(*range(12))))
    @rule(watermark=st.integers(0, 99))
    def be_refused(self, watermark: int) -> None:
        """What could not be shared was not done, and can be done again."""
        before, self.shared.refusing = rows_of(self.shared.ledger), True
        with pytest.raises(RefusedError):
            self.frontier.commit([], found(*range(12)), watermark)
        self.shared.refusing = False
        assert rows_of(self.shared.ledger) == before

    @invariant()
    def the_copy_is_the_same(self) -> None:
        self.shared.check()

    def teardown(self) -> None:
        self.frontier.close()
        shutil.rmtree(self.folder)


TestPlay = SharedPlay.TestCase
TestPlay.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)


class VisitsPlay:
    """All that a frontier of pages does, with visits and validators, by chance."""

    def __init__(self, chance: Random, shared: Shared) -> None:
        self.chance, self.shared = chance, shared
        self.open()

    def open(self) -> None:
        self.frontier = VisitedFrontier(self.shared.ledger)
        self.frontier.share(self.shared.keep)
        self.frontier.wall = lambda: 1000.0

    def step(self) -> None:
        acts = (self.find, self.find, self.end, self.end, self.put_off, self.note_hosts, self.reopen, self.visit)
        rare = (self.leave, self.lose, self.restart, self.begin_visits, self.note_budgets, self.nothing)
        self.chance.choice(acts if self.chance.random() < 0.8 else rare)()
        self.shared.check()

    def some_waiting(self) -> list[QueuedUrl]:
        queued = [each for some in self.frontier.take([(host, 0, 99) for host in HOSTS]) for each in some]
        return [each for each in queued if self.chance.random() < 0.5]

    def find(self) -> None:
        self.frontier.commit([], found(*self.chance.choices(range(300), k=self.chance.choice((3, 120)))), 0)

    def end(self) -> None:
        done = [self.ended(each) for each in self.some_waiting()]
        ids = [each.id for each in done if each.end in KEPT]
        taught = [UrlVisits(each, self.chance.uniform(0, 9), 1.0, 1.0, 2.0, 1, 0, 1, b"x") for each in ids]
        self.frontier.inbox = f'{{"{self.chance.randrange(9)}":1}}'
        new = found(*self.chance.choices(range(300), k=9))
        self.frontier.commit_visits(done, new, self.chance.randrange(99), [], taught)

    def ended(self, queued: QueuedUrl) -> Ended:
        match self.chance.randrange(4):
            case 0:
                return failed(queued, self.chance.choice((End.FAILED, End.REFUSED, End.LEFT_OUT)), GONE, 3)
            case 1:
                return fetched(queued, End.MOVED, moved_to=url(self.chance.randrange(9)))
            case 2:
                return fetched(queued, etag=f'"{self.chance.random()}"', links=(url(1), url(2)))
            case _:
                return fetched(queued)

    def put_off(self) -> None:
        again = [RetryUrl(each.id, each.url, 2, self.chance.uniform(0, 9), GONE) for each in self.some_waiting()]
        self.frontier.commit([], [], 0, again)

    def note_hosts(self) -> None:
        outcome = self.chance.choice((None, Outcome(Code.TIMEOUT, detail="late")))
        self.frontier.note_hosts([HostNote(self.chance.choice(HOSTS), outcome, 5.0)])

    def reopen(self) -> None:
        self.frontier.reopen(self.chance.choice(sorted(REOPENABLE)))
        self.frontier.reopen_at(["not"])  # the first word of GONE

    def visit(self) -> None:
        self.frontier.take_due(self.chance.uniform(0, 12), 5)

    def begin_visits(self) -> None:
        self.frontier.begin_visits(UrlVisits(0, 3.0, 1.0, 1.0, 2.0, 1, 0, 1, None))

    def leave(self) -> None:
        self.frontier.leave()

    def lose(self) -> None:
        kept = [number for number, end in enumerate(self.frontier.ends()) if End(end) in KEPT]
        self.frontier.put_back(self.chance.sample(kept, min(3, len(kept))), 5)
        self.frontier.lose_versions(dict.fromkeys(list(self.frontier.visits(kept))[:2], 0))

    def note_budgets(self) -> None:
        self.frontier.note_budgets({"depth": self.chance.random()})

    def nothing(self) -> None:
        """A transaction that changes nothing is no commit."""
        before = len(self.shared.commits)
        self.frontier.clear_aside("never.example")
        assert len(self.shared.commits) <= before + 1  # that it was not closed in order is noted

    def restart(self) -> None:
        self.frontier.close()
        self.open()


@given(st.integers(0, 2**32))
@settings(max_examples=25)
def test_a_copy_of_pages_and_their_visits_is_the_same(seed: int) -> None:
    with fresh() as folder:
        play = VisitsPlay(Random(seed), Shared(folder, VisitedFrontier))
        try:
            for _ in range(25):
                play.step()
        finally:
            play.frontier.close()


@given(st.integers(0, 2**32))
@settings(max_examples=25)
def test_a_copy_of_the_requests_of_a_job_is_the_same(seed: int) -> None:
    chance = Random(seed)
    with fresh() as folder:
        shared = Shared(folder, lambda path: RequestFrontier(path, READERS))
        for step in range(15):
            with closing(RequestFrontier(shared.ledger, READERS)) as frontier:
                frontier.share(shared.keep)
                waiting = [each for each in take_all(frontier) if chance.random() < 0.4]
                new = [request(chance.randrange(60), chance.choice((0, 0, 5)), chance.randrange(2)) for _ in range(9)]
                done = [ended(each, End.FETCHED, *new[5:]) for each in waiting[::2]]
                done += [ended(each, chance.choice((End.FAILED, End.LEFT_OUT))) for each in waiting[1::4]]
                again = [RetryUrl(each.id, each.url, 1, 3.0, GONE) for each in waiting[3::4]]
                frontier.commit_requests(done, new[:5], JobProgress(step, step, step, step), again)
                if chance.random() < 0.3 and (left := take_all(frontier)):
                    frontier.put_last(chance.choice(left))
                if chance.random() < 0.3:
                    frontier.reopen(End.FAILED)
                frontier.note(begun=True)
            shared.check()


def test_records_that_were_spoiled_and_addresses_that_moved_are_in_the_copy() -> None:
    with fresh() as folder:
        shared = Shared(folder, lambda path: RequestFrontier(path, READERS))
        with closing(RequestFrontier(shared.ledger, READERS)) as frontier:
            frontier.share(shared.keep)
            frontier.commit_requests([], [request(0), request(1, 5)], JobProgress(0, 0, 0, 0))
            one, two = take_all(frontier)
            first = msgspec.structs.replace(ended(one), spoiled=SpoiledRecords(request(7), GONE))
            second = msgspec.structs.replace(ended(two), alias=request(8), records=(b"{}", b"{}"))
            frontier.commit_requests([first, second], [], JobProgress(6, 2, 1, 2))
        shared.check()


# What is refused.


@pytest.fixture
def ledger() -> Iterator[Path]:
    with fresh() as folder:
        path = folder / "ledger.db"
        with closing(Frontier(path)) as frontier:
            frontier.commit([], found(0, 3, 6), 0)
        yield path


def refuse(ledger: Path, *bodies: bytes) -> FolderError:
    """Apply them; the ledger is as it was, and nothing is beside it."""
    before = rows_of(ledger)
    with closing(sqlite3.connect(ledger, isolation_level=None)) as db:
        with pytest.raises(FolderError) as raised:
            apply_commits(db, [(SharedHead(number, "t"), body) for number, body in enumerate(bodies, 1)])
        assert not db.in_transaction
        assert head_of(db) == SharedHead()
        db.execute("CREATE TABLE mine (x)")  # it is bound by nothing afterwards
        db.execute("DROP TABLE mine")
    assert rows_of(ledger) == before
    assert [each.name for each in ledger.parent.iterdir()] == [ledger.name]
    return raised.value


ADD: Statement = ("INSERT INTO meta VALUES (?, ?)", [["added", 1]])


@pytest.mark.parametrize(
    "sql",
    [
        "ATTACH 'stolen.db' AS stolen",
        "DETACH main",
        "PRAGMA user_version = 99",
        "PRAGMA writable_schema = ON",
        "CREATE TABLE more (x)",
        "CREATE TABLE more AS SELECT * FROM url",
        "CREATE TEMP TABLE more (x)",
        "CREATE TRIGGER often AFTER INSERT ON url BEGIN DELETE FROM host; END",
        "CREATE VIEW seen AS SELECT * FROM url",
        "CREATE VIRTUAL TABLE more USING fts5(x)",
        "DROP TABLE url",
        "ALTER TABLE url ADD COLUMN more",
        "VACUUM",
        "VACUUM INTO 'stolen.db'",
        "REINDEX",
        "ANALYZE",
        "SAVEPOINT one",
        "COMMIT",
        "ROLLBACK",
        "BEGIN",
        "SELECT 1",
        "",
        "no statement at all",
        "INSERT INTO meta VALUES ('a', load_extension('/tmp/stolen.so'))",
        "INSERT INTO meta VALUES ('a', 1); DROP TABLE url",
        "INSERT INTO meta VALUES ('a', '\0')",
        "INSERT INTO sqlite_master VALUES ('table', 'a', 'a', 1, 'CREATE TABLE a (x)')",
        "UPDATE sqlite_master SET sql = ''",
        "INSERT INTO pragma_user_version VALUES (1)",
        "INSERT INTO meta WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x, x FROM n",
        "INSERT INTO nowhere VALUES (1)",
    ],
)
def test_a_body_changes_rows_and_nothing_else(ledger: Path, sql: str) -> None:
    assert "cannot be taken over" in str(refuse(ledger, pack([ADD]), pack([(ADD[0], [["other", 1]]), (sql, [[]])])))


@pytest.mark.parametrize("value", [2**63, 2**64 - 1, [1], {"a": 1}])
def test_values_that_no_ledger_has_are_refused(ledger: Path, value: object) -> None:
    refuse(ledger, pack([ADD, ("INSERT INTO meta VALUES ('a', ?)", [[value]])]))


def test_another_number_of_values_is_refused(ledger: Path) -> None:
    refuse(ledger, pack([ADD, ("INSERT INTO meta VALUES (?, ?)", [["a"]])]))


def test_a_url_that_is_known_already_is_refused(ledger: Path) -> None:
    with closing(sqlite3.connect(ledger)) as db:
        ((host, known),) = db.execute("SELECT host, url FROM url WHERE id = 1")
    sql = "INSERT INTO url (id, host, depth, end, code, key, url) VALUES (?1, ?2, ?3, 0, 0, key_of(?4), ?4)"
    refuse(ledger, pack([ADD, (sql, [[99, host, 0, known]])]))


@given(st.integers(0, 200), st.binary(max_size=8))
@settings(max_examples=60)
def test_torn_and_hostile_bytes_are_refused(cut: int, junk: bytes) -> None:
    good = pack([("INSERT OR REPLACE INTO meta VALUES (?, ?)", [[f"name {number}", number] for number in range(30)])])
    torn = [good[: min(cut, len(good) - 1)], good + junk + b"x", junk, good[:cut] + junk + good[cut + len(junk) + 1 :]]
    for body in torn:
        if body != good:
            with pytest.raises(FolderError, match=r"damaged|cannot be taken over"):
                apply_to_nothing(body)


def apply_to_nothing(body: bytes) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.execute("CREATE TABLE other (x)")  # so even good statements fail
        apply_commits(db, [(SharedHead(1, "t"), body)])


def test_a_body_that_grows_without_bound_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sanderling.stores.ledger_log.LARGEST", 100_000)
    assert len(unpack(pack([("x", [["a" * 50_000]])]))) == 1
    with pytest.raises(FolderError, match="larger than"):
        unpack(pack([("x", [["a" * 200_000]])]))


def test_all_commits_are_taken_over_or_none(ledger: Path) -> None:
    refuse(ledger, pack([ADD]), pack([("UPDATE meta SET value = 7 WHERE name = 'added'", [[]])]), b"torn")


def test_a_refused_share_leaves_everything_as_it_was() -> None:
    """Also what is kept in memory: hosts, counts, what was learned of robots."""
    with fresh() as folder:
        shared = Shared(folder, VisitedFrontier)
        with closing(VisitedFrontier(shared.ledger)) as frontier:
            frontier.share(shared.keep)
            frontier.commit([], found(0, 3), 0)
            (queued, _), before = frontier.take([(HOSTS[0], 0, 9)])[0], rows_of(shared.ledger)
            counts, meta, hosts = frontier.counts(), frontier.meta, frontier.hosts_known
            frontier.keep_robots("https://a.example", 200, b"", 1.0)
            shared.refusing = True
            for act in (
                lambda: frontier.commit([fetched(queued)], found(1, 2, 5), 9),
                lambda: frontier.set_aside(HOSTS[0], FINE),
                frontier.leave,
                lambda: frontier.note(finished=True),
            ):
                with pytest.raises(RefusedError):
                    act()
                assert (frontier.counts(), frontier.meta, frontier.hosts_known) == (counts, meta, hosts)
                assert rows_of(shared.ledger) == before
            shared.refusing = False
            assert frontier.commit([fetched(queued)], found(1, 2, 5), 9) == {"b.example": 1, "c.example": 2}
        shared.check()
        assert rows_of(shared.ledger)["robots"] == [("https://a.example", 200, b"", 1.0)]
