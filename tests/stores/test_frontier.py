import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from frontier_urls import FINE, GONE, HOSTS, MEMORY, failed, fetched, found, fresh, url
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sanderling.outcome import Code, Outcome
from sanderling.stores import frontier_file
from sanderling.stores.durable import FolderError
from sanderling.stores.frontier import Body, End, Ended, Frontier, Queued
from sanderling.stores.frontier_file import Meta
from sanderling.stores.frontier_rows import KEPT, REOPENABLE, UNFETCHED, Aside, Found


@pytest.fixture
def path() -> Iterator[Path]:
    with fresh() as folder:
        yield folder / "ledger.db"


def taken(ledger: Frontier, host: str = "a.example", after: int = 0, most: int = 100) -> list[Queued]:
    (urls,) = ledger.take([(host, after, most)])
    return urls


def test_urls_wait_in_the_order_they_were_found(path: Path) -> None:
    ledger = Frontier(path)

    assert ledger.commit([], found(9, 3, 1, 6, depth=2), 0) == {"a.example": 3, "b.example": 1}
    assert ledger.waiting() == {"a.example": 3, "b.example": 1}
    assert taken(ledger) == [
        Queued(1, url(9), HOSTS[0], 2),
        Queued(2, url(3), HOSTS[0], 2),
        Queued(4, url(6), HOSTS[0], 2),
    ]
    assert [each.url for each in taken(ledger, after=1, most=1)] == [url(3)]


def test_taking_is_not_ending(path: Path) -> None:
    ledger = Frontier(path)
    ledger.commit([], found(3), 0)

    assert taken(ledger) == taken(ledger) != []


def test_each_host_gets_what_it_asked_for(path: Path) -> None:
    ledger = Frontier(path)
    ledger.commit([], found(*range(9)), 0)

    lists = ledger.take([("b.example", 0, 1), ("never.example", 0, 5), ("a.example", 2, 5), ("c.example", 0, 0)])

    assert [[each.url for each in urls] for urls in lists] == [[url(1)], [], [url(3), url(6)], []]


def test_a_url_is_known_once(path: Path) -> None:
    """Twice in a batch, again while it waits, again once it ended: one URL."""
    ledger = Frontier(path)

    assert ledger.commit([], found(3, 3), 0) == {"a.example": 1}
    assert ledger.commit([fetched(taken(ledger)[0])], found(3), 0) == {}
    assert ledger.commit([], found(3, 6), 0) == {"a.example": 1}
    assert [each.id for each in taken(ledger)] == [2]


def test_what_ended_cannot_end_again(path: Path) -> None:
    ledger = Frontier(path)
    ledger.commit([], found(3, 6), 0)
    first, second = taken(ledger)
    ledger.commit([fetched(first)], [], 7)

    with pytest.raises(ValueError, match="some had ended before"):
        ledger.commit([fetched(second), failed(first)], found(9), 8)
    with pytest.raises(ValueError, match=r"a.example/6 \(id 2\) ends twice"):
        ledger.commit([fetched(second), failed(second)], found(9), 8)

    assert ledger.counts()[End.FETCHED] == 1
    assert ledger.meta.watermark == 7
    assert taken(ledger) == [second]


def test_what_is_not_known_cannot_end(path: Path) -> None:
    ledger = Frontier(path)
    ledger.commit([], found(3), 0)

    with pytest.raises(ValueError, match="/3 with id 2 is known"):
        ledger.commit([fetched(Queued(2, url(3), "a.example", 0))], [], 0)
    with pytest.raises(ValueError, match="/6 with id 1 is known"):
        ledger.commit([fetched(Queued(1, url(6), "a.example", 0))], [], 0)


@pytest.mark.parametrize("end", [End.WAITING, End.LEFT])
def test_a_url_cannot_be_said_to_wait_or_to_be_left(end: End) -> None:
    with pytest.raises(ValueError, match=f"end {end.name}"):
        failed(Queued(1, url(3), "a.example", 0), end)


def test_a_row_belongs_to_what_was_kept() -> None:
    with pytest.raises(ValueError, match="a row is missing"):
        failed(Queued(1, url(3), "a.example", 0), End.MOVED)
    with pytest.raises(ValueError, match="a row came along"):
        fetched(Queued(1, url(3), "a.example", 0), End.FAILED)
    with pytest.raises(ValueError, match="line break"):
        Ended(id=1, url=url(3), end=End.FETCHED, outcome=FINE, depth=0, row=b"{\n}")


@pytest.mark.parametrize("suffix", ["pdf", "/../x", ".a/b", "." + "a" * 17, "..", "."])
def test_a_body_has_a_harmless_name(suffix: str) -> None:
    with pytest.raises(ValueError, match="expected 64 hex digits"):
        Body.of(b"", suffix)


def test_a_host_is_given_up_whole(path: Path) -> None:
    ledger = Frontier(path)
    ledger.commit([], found(*range(9)), 0)

    number = ledger.give_up("a.example", Outcome(Code.TIMEOUT, detail="connect \udcff"))

    assert number == 3
    assert ledger.waiting() == {"b.example": 3, "c.example": 3}
    assert [(each.url, each.code, each.detail) for each in ledger.failed()] == [
        (url(number), "TIMEOUT", "connect ?") for number in (0, 3, 6)
    ]
    assert ledger.give_up("never.example", GONE) == 0


def test_what_waits_for_a_host_that_is_set_aside_goes_on_waiting(path: Path) -> None:
    """Also in a ledger of a version that did not know of it; and whoever reads that finds nothing set aside."""
    Frontier(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE aside")
        assert frontier_file.aside(db) == []
    ledger = Frontier(path)
    ledger.commit([], found(*range(9)), 0)

    ledger.set_aside("a.example", Outcome(Code.TIMEOUT, detail="connect \udcff"))
    assert ledger.aside() == [Aside("a.example", 3, "TIMEOUT", 0, "connect ?")]
    assert (ledger.leave(), ledger.waiting(), list(ledger.failed())) == (6, {"a.example": 3}, [])

    ledger.clear_aside()
    assert (ledger.aside(), ledger.leave()) == ([], 3)


def test_what_was_kept_cannot_be_reopened(path: Path) -> None:
    for end in KEPT | {End.WAITING}:
        with pytest.raises(ValueError, match=f"{end.name} cannot be reopened"):
            Frontier(path).reopen(end)


def test_reasons_are_counted(path: Path) -> None:
    ledger = Frontier(path)
    ledger.commit([], found(0, 3, 6, 9), 0)
    one, two, three, _ = taken(ledger)
    ledger.commit([failed(one), failed(two, End.REFUSED, Outcome(Code.REFUSED)), fetched(three)], [], 0)

    expected = {(End.FAILED, "CONTENT_NOT_FOUND"): 1, (End.REFUSED, "REFUSED"): 1, (End.FETCHED, "OK"): 1}
    assert ledger.by_code() == expected
    ledger.close()
    assert Frontier(path).by_code() == expected


def test_redirects_are_remembered(path: Path) -> None:
    ledger = Frontier(path)
    ledger.commit([], found(0), 0)
    ledger.commit([fetched(taken(ledger)[0], End.MOVED, moved_to=url(3))], [], 0)

    assert ledger.moved_to(url(0)) == url(3)
    assert ledger.moved_to(url(3)) is None


def test_robots_are_known_at_once_and_kept_with_the_next_commit(path: Path) -> None:
    ledger = Frontier(path)
    ledger.keep_robots("https://a.example", 200, b"Disallow: /", 12.5)
    assert ledger.robots("https://a.example") == (200, b"Disallow: /", 12.5)

    ledger.commit([], [], 0)
    ledger.close()

    again = Frontier(path)
    assert again.robots("https://a.example") == (200, b"Disallow: /", 12.5)
    assert again.robots("http://a.example") is None


def next_crawl(path: Path) -> Frontier:
    """A ledger of the crawl after that in `path`."""
    following = path.with_name(f"{path.name}+")
    frontier_file.create(following, Meta(crawl=2), path)
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


def test_a_commit_that_fails_changes_nothing(path: Path) -> None:
    """A host that is new in it is not known afterwards, neither on disk nor in memory."""
    ledger = Frontier(path)
    with pytest.raises(ValueError, match="is known"):
        ledger.commit([fetched(Queued(1, url(3), "a.example", 0))], found(3), 5)
    with pytest.raises(UnicodeEncodeError):
        ledger.commit([], [*found(1, 2), *[each._replace(url="\ud800") for each in found(3)]], 5)

    assert ledger.commit([], found(2, 1), 6) == {"b.example": 1, "c.example": 1}
    assert [each.id for each in taken(ledger, "c.example")] == [1]


class Play(RuleBasedStateMachine):
    """The ledger and a plain dict do the same, and say the same."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=MEMORY))
        self.ledger = Frontier(self.folder / "ledger.db")
        self.twin: dict[str, End] = {}  # in the order of ids

    def waiting(self, host: str | None = None) -> list[str]:
        return [each for each, end in self.twin.items() if end is End.WAITING and (host or "") in each]

    def ids(self) -> dict[str, int]:
        return {each: number for number, each in enumerate(self.twin, 1)}

    @rule(numbers=st.lists(st.integers(0, 40), max_size=8))
    def find(self, numbers: list[int]) -> None:
        new = {url(number): End.WAITING for number in numbers if url(number) not in self.twin}
        assert self.ledger.commit([], found(*numbers), 0) == Counter(each.split("/")[2] for each in new)
        self.twin |= new

    @precondition(lambda self: bool(self.waiting()))
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        urls = data.draw(st.lists(st.sampled_from(self.waiting()), unique=True, max_size=5))
        ends = [data.draw(st.sampled_from(sorted(set(End) - {End.WAITING, End.LEFT}))) for _ in urls]
        queued = [Queued(self.ids()[each], each, "", 0) for each in urls]
        pairs = list(zip(queued, ends, strict=True))
        self.ledger.commit([fetched(q, e) if e in KEPT else failed(q, e) for q, e in pairs], [], 0)
        self.twin |= dict(zip(urls, ends, strict=True))

    @rule(host=st.sampled_from(HOSTS))
    def give_up(self, host: str) -> None:
        gone = self.waiting(host)
        assert self.ledger.give_up(host, GONE) == len(gone)
        self.twin |= dict.fromkeys(gone, End.FAILED)

    @rule()
    def leave(self) -> None:
        left = self.waiting()
        assert self.ledger.leave() == len(left)
        self.twin |= dict.fromkeys(left, End.LEFT)

    @rule(end=st.sampled_from(sorted(REOPENABLE)))
    def reopen(self, end: End) -> None:
        opened = [each for each, was in self.twin.items() if was is end]
        assert self.ledger.reopen(end) == Counter(each.split("/")[2] for each in opened)
        self.twin |= dict.fromkeys(opened, End.WAITING)

    @precondition(lambda self: bool(KEPT & set(self.twin.values())))
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        lost = data.draw(st.sampled_from([each for each, end in self.twin.items() if end in KEPT]))
        assert self.ledger.put_back([self.ids()[lost]], 0) == 1
        self.twin[lost] = End.WAITING

    @rule()
    def restart(self) -> None:
        self.ledger.close()
        self.ledger = Frontier(self.folder / "ledger.db")

    @invariant()
    def agree(self) -> None:
        ids = self.ids()
        lists = self.ledger.take([(host, 0, 99) for host in HOSTS])
        for host, urls in zip(HOSTS, lists, strict=True):
            assert [(each.id, each.url) for each in urls] == [(ids[each], each) for each in self.waiting(host)]
        counts = Counter(self.twin.values())
        assert self.ledger.counts() == {end: counts[end] for end in End}
        assert list(self.ledger.ends()) == [0, *self.twin.values()]
        unfetched = [(ids[each], end) for each, end in self.twin.items() if end in UNFETCHED]
        assert [(each.id, each.end) for each in self.ledger.failed()] == unfetched
        assert self.ledger.known == len(self.twin)
        reasons = Counter(end for end in self.twin.values() if end not in (End.WAITING, End.LEFT))
        assert Counter({end: n for (end, _), n in self.ledger.by_code().items()}) == reasons

    def teardown(self) -> None:
        self.ledger.close()
        shutil.rmtree(self.folder)


TestPlay = Play.TestCase
TestPlay.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)


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


def test_a_ledger_from_a_newer_version_is_refused(path: Path) -> None:
    Frontier(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 3")

    with pytest.raises(FolderError, match="of format 3, this version reads up to 2"):
        Frontier(path)


def test_a_ledger_of_the_first_format_is_gone_on_with(path: Path) -> None:
    """That one knew seven ends, and its table minds any other."""
    with closing(Frontier(path)) as ledger:
        ledger.commit(
            [], [Found("https://a.example/1", "a.example", 0), Found("https://a.example/2", "a.example", 0)], 0
        )
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_schema SET sql = replace(sql, 'BETWEEN 0 AND 7', 'BETWEEN 0 AND 6')")
        db.execute("PRAGMA user_version = 1")
    with closing(sqlite3.connect(path)) as db, pytest.raises(sqlite3.IntegrityError):
        db.execute("UPDATE url SET end = 7")

    for number in (1, 2):
        with closing(Frontier(path)) as ledger:
            url = f"https://a.example/{number}"
            ended = Ended(id=number, url=url, end=End.LEFT_OUT, outcome=Outcome(Code.REFUSED), depth=0)
            ledger.commit([ended], [], 0)
            assert ledger.counts()[End.LEFT_OUT] == number


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "ledger.db"
    ledger = Frontier(path)
    ledger.commit([], found(*range(600)), 0)
    ledger.commit([failed(each) for each in taken(ledger)], [], 0)
    ledger.close()
    return path


def test_a_page_that_was_never_written_is_found_at_once(path: Path, sound: Path) -> None:
    content = sound.read_bytes()
    path.write_bytes(content[: -4 * 4096] + bytes(4096) + content[-3 * 4096 :])

    with pytest.raises(FolderError, match=r"ledger\.db is damaged: "):
        Frontier(path)


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
