import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from frontier_contract import FrontierContract, Opens, taken
from frontier_play import FrontierPlay
from frontier_urls import FINE, HOSTS, MEMORY, failed, fetched, found, fresh, url
from hypothesis import given, settings
from hypothesis import strategies as st

from sanderling.outcome import Code, Outcome
from sanderling.stores import frontier_file
from sanderling.stores.durable import FolderError
from sanderling.stores.frontier import Frontier
from sanderling.stores.frontier_file import FrontierMeta
from sanderling.stores.frontier_rows import BodyFile, End, Ended, QueuedUrl


@pytest.fixture
def path() -> Iterator[Path]:
    with fresh() as folder:
        yield folder / "ledger.db"


class TestFrontier(FrontierContract):
    @pytest.fixture
    def opens(self, path: Path) -> Opens:
        return lambda: Frontier(path)


class Play(FrontierPlay):
    """The same in a file."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=MEMORY))

    def opened(self) -> Frontier:
        return Frontier(self.folder / "ledger.db")

    def teardown(self) -> None:
        self.frontier.close()
        shutil.rmtree(self.folder)


TestPlay = Play.TestCase
TestPlay.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)


@pytest.mark.parametrize("end", [End.WAITING, End.LEFT])
def test_a_url_cannot_be_said_to_wait_or_to_be_left(end: End) -> None:
    with pytest.raises(ValueError, match=f"end {end.name}"):
        failed(QueuedUrl(1, url(3), "a.example", 0), end)


def test_a_row_belongs_to_what_was_kept() -> None:
    with pytest.raises(ValueError, match="a row is missing"):
        failed(QueuedUrl(1, url(3), "a.example", 0), End.MOVED)
    with pytest.raises(ValueError, match="a row came along"):
        fetched(QueuedUrl(1, url(3), "a.example", 0), End.FAILED)
    with pytest.raises(ValueError, match="line break"):
        Ended(id=1, url=url(3), end=End.FETCHED, outcome=FINE, depth=0, row=b"{\n}")


@pytest.mark.parametrize("suffix", ["pdf", "/../x", ".a/b", "." + "a" * 17, "..", "."])
def test_a_body_has_a_harmless_name(suffix: str) -> None:
    with pytest.raises(ValueError, match="expected 64 hex digits"):
        BodyFile.of(b"", suffix)


def next_crawl(path: Path) -> Frontier:
    """A ledger of the crawl after that in `path`."""
    following = path.with_name(f"{path.name}+")
    frontier_file.create(following, FrontierMeta(crawl=2), path)
    ledger = Frontier(following)
    ledger.commit([], found(0, 3, 6), 0)
    return ledger


def test_the_next_crawl_gets_the_validators_of_the_last(path: Path) -> None:
    ledger = Frontier(path)
    ledger.commit([], found(0, 3, 6), 0)
    one, two, three = taken(ledger)
    learned = fetched(one, etag='"x"', links=(url(3), url(6)))
    ledger.commit([learned, fetched(two, modified="Sun, 01 Mar 2026 12:00:00 GMT"), fetched(three)], [], 0)
    ledger.close()

    following = next_crawl(path)

    assert [(each.etag, each.modified) for each in taken(following)] == [
        ('"x"', None),
        (None, "Sun, 01 Mar 2026 12:00:00 GMT"),
        (None, None),
    ]
    assert following.remembered_links(url(0)) == (url(3), url(6))
    assert following.remembered_links(url(3)) == following.remembered_links(url(6)) == ()


def test_validators_last_until_the_page_comes_without(path: Path) -> None:
    """Unchanged and failed keep them; a page that comes whole without any, or has moved, has none any more."""
    ledger = Frontier(path)
    ledger.commit([], found(0, 3, 6, 9), 0)
    ledger.commit([fetched(each, etag='"x"') for each in taken(ledger)], [], 0)
    ledger.close()
    ledger = next_crawl(path)
    ledger.commit([], found(9), 0)
    one, two, three, four = taken(ledger)
    ledger.commit([fetched(one, End.UNCHANGED), failed(two), fetched(three), fetched(four, End.MOVED)], [], 0)
    ledger.close()

    ledger = next_crawl(Path(f"{path}+"))
    ledger.commit([], found(9), 0)

    assert [each.etag for each in taken(ledger)] == ['"x"', '"x"', None, None]


def test_a_validator_that_is_no_text_is_forgotten(path: Path) -> None:
    ledger = Frontier(path)
    ledger.commit([], found(0), 0)
    ledger.commit([fetched(taken(ledger)[0], etag='"\udcff"')], [], 0)
    ledger.close()

    assert taken(next_crawl(path))[0].etag is None


def test_more_hosts_than_are_held_in_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sanderling.stores.frontier.HOSTS_HELD", 2)
    ledger = Frontier(path)
    for number in range(9):
        ledger.commit([], found(number), 0)

    assert ledger.waiting() == dict.fromkeys(HOSTS, 3)
    assert [len(urls) for urls in ledger.take([(host, 0, 9) for host in HOSTS])] == [3, 3, 3]


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.write_bytes(b"no database at all" * 100)

    with pytest.raises(FolderError, match=r"ledger.db is damaged, or not one of ours"):
        Frontier(path)


@pytest.mark.parametrize("content", [b"", b"SQLite"])
def test_an_empty_file_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)

    with pytest.raises(FolderError, match=r"no ledger of a crawl|not one of ours"):
        Frontier(path)


def test_the_database_of_something_else_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (x)")

    with pytest.raises(FolderError, match="is no ledger of a crawl"):
        Frontier(path)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "ledger.db"
    ledger = Frontier(path)
    ledger.commit([], found(*range(600)), 0)
    ledger.commit([failed(each) for each in taken(ledger)], [], 0)
    ledger.close()
    return path


def test_a_page_that_was_never_written_is_found_at_once(path: Path, sound: Path) -> None:
    path.write_bytes(holed(sound.read_bytes()))

    with pytest.raises(FolderError, match=r"ledger\.db is damaged: "):
        Frontier(path)


def test_a_large_file_is_read_whole_only_if_its_writer_was_killed(
    path: Path, sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frontier_file, "SMALL", 0)
    shutil.copy(sound, path)
    with closing(Frontier(path)) as ledger:
        ledger.commit([], found(1000), 0)
        ledger._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        killed = path.read_bytes()
    closed = path.read_bytes()

    path.write_bytes(holed(closed))
    with closing(Frontier(path)) as ledger:
        assert (ledger.known, ledger.counts()[End.FAILED]) == (601, 100)

    path.write_bytes(holed(killed))
    with pytest.raises(FolderError, match=r"ledger\.db is damaged: "):
        Frontier(path)


def holed(content: bytes) -> bytes:
    """A file one page of which was never written."""
    return content[: -4 * 4096] + bytes(4096) + content[-3 * 4096 :]


def use(path: Path) -> None:
    """Do what a crawl does, and complain of nothing but damage."""
    ledger = Frontier(path)
    try:
        ledger.waiting()
        ledger.commit([fetched(each) for each in taken(ledger)], found(*range(700)), 0)
        list(ledger.failed())
        ledger.reopen(End.FAILED)
    finally:
        ledger.close()


@given(st.floats(0, 1, exclude_max=True))
def test_a_ledger_that_was_cut_short_is_refused(sound: Path, part: float) -> None:
    with fresh() as folder:
        path = folder / "ledger.db"
        content = sound.read_bytes()
        path.write_bytes(content[: int(len(content) * part)])

        with pytest.raises(FolderError, match=r"ledger\.db"):
            use(path)


@settings(max_examples=100)
@given(st.integers(0, 2**20), st.binary(min_size=1, max_size=64))
def test_a_garbled_ledger_is_used_or_refused_but_breaks_nothing(sound: Path, where: int, noise: bytes) -> None:
    with fresh() as folder:
        path = folder / "ledger.db"
        content = sound.read_bytes()
        at = where % (len(content) - len(noise))
        path.write_bytes(content[:at] + noise + content[at + len(noise) :])

        # A name that was garbled is another name, which nobody knows.
        with suppress(FolderError, ValueError):
            use(path)


def test_hosts_are_read_by_when_they_are_due(path: Path) -> None:
    """Since something waits for them; if they were set aside, when they are worth asking again."""
    with closing(Frontier(path)) as frontier:
        for wall, number in ((30.0, 2), (20.0, 1), (10.0, 0)):
            frontier.wall = lambda wall=wall: wall  # type: ignore[misc]
            frontier.commit([], found(number, number + 3), 0)
        first, second = taken(frontier, HOSTS[0])
        frontier.commit([fetched(first)], [], 0)

        def due(after: tuple[float, int] = (-1.0, 0), most: int = 9, wall: float = 99.0) -> list[tuple[str, float]]:
            return [(each.name, each.due) for each in frontier.waiting_hosts(after, most, wall)]

        assert due() == [(HOSTS[0], 10.0), (HOSTS[1], 20.0), (HOSTS[2], 30.0)]
        assert due((10.0, 3), 1) == [(HOSTS[1], 20.0)]
        assert due(wall=20.0) == due(most=2)
        frontier.commit([fetched(second)], [], 0)
        assert due(most=1) == [(HOSTS[1], 20.0)], "nothing waits for the first"
        frontier.wall = lambda: 40.0
        frontier.commit([], found(9), 0)
        frontier.set_aside(HOSTS[1], Outcome(Code.TIMEOUT), 50.0)
        assert due() == [(HOSTS[2], 30.0), (HOSTS[0], 40.0), (HOSTS[1], 50.0)]
        frontier.clear_aside()
        assert due() == [(HOSTS[1], 0.0), (HOSTS[2], 30.0), (HOSTS[0], 40.0)]
        assert frontier.hosts_known == 3
