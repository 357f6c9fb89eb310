import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from frontier_urls import fetched, found, fresh
from kept import PLAN, crawl, wait

from sanderling.crawls.verify import MOST_PROBLEMS
from sanderling.pages import parquet
from sanderling.pages.folder import CrawlFolder
from sanderling.pages.verify import verify
from sanderling.stores.durable import FolderError
from sanderling.stores.frontier_rows import End


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished crawl: 28 URLs fetched, 4 moved, 8 failed, the first of them id 6; with bodies and Parquet."""
    path = tmp_path_factory.mktemp("sound") / "crawl"
    crawl(path, many=40)
    parquet.write_parquet(path)
    return path


@pytest.fixture
def path(sound: Path) -> Iterator[Path]:
    with fresh() as folder:
        yield shutil.copytree(sound, folder / "crawl")


def test_a_sound_crawl_is_proved(path: Path) -> None:
    before = {each: each.stat() for each in path.rglob("*")}

    proof = verify(path)

    assert (proof.ok, proof.problems, proof.wrong, proof.unproven) == (True, [], 0, [])
    assert (proof.known, proof.rows, proof.bodies, proof.finished) == (40, 32, 3, True)
    assert proof.counts == dict.fromkeys(End, 0) | {End.FETCHED: 28, End.MOVED: 4, End.FAILED: 8}
    assert {each: each.stat().st_mtime_ns for each in path.rglob("*")} == {
        each: was.st_mtime_ns for each, was in before.items()
    }


def edit(name: str, change: Callable[[list[str]], list[str]]) -> Callable[[Path], object]:
    def damage(path: Path) -> None:
        lines = (path / name).read_text().splitlines(keepends=True)
        (path / name).write_text("".join(change(lines)))

    return damage


def sql(statement: str) -> Callable[[Path], object]:
    def damage(path: Path) -> None:
        with closing(sqlite3.connect(path / "ledger.db")) as db, db:
            db.execute(statement)

    return damage


def body(change: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda path: change(min(path.glob("bodies/*/*")))


def with_field(line: str, **fields: object) -> str:
    return json.dumps(json.loads(line) | fields) + "\n"


def first(**fields: object) -> Callable[[list[str]], list[str]]:
    return lambda lines: [with_field(lines[0], **fields), *lines[1:]]


def same_length(line: str, old: str, new: str) -> str:
    assert len(old) == len(new)
    assert old in line
    return line.replace(old, new)


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a row is lost": (edit("pages.jsonl", lambda lines: lines[:-1]), "no row of https://"),
    "rows are cut": (lambda p: (p / "pages.jsonl").write_bytes(b""), "pages.jsonl: has 0 bytes, expected "),
    "rows are gone": (lambda p: (p / "pages.jsonl").unlink(), "pages.jsonl: has 0 bytes, expected "),
    "half a row too many": (edit("pages.jsonl", lambda lines: [*lines, "{"]), "pages.jsonl: has "),
    "a row is garbled": (
        edit("pages.jsonl", lambda lines: [lines[0], same_length(lines[1], "{", "("), *lines[2:]]),
        "pages.jsonl line 2 (byte ",
    ),
    "a row is there twice": (
        edit("pages.jsonl", lambda lines: [lines[0], *lines]),
        "pages.jsonl line 2 (byte 75): a second row of id 1, expected one",
    ),
    "a row of another id": (
        edit("pages.jsonl", lambda lines: [same_length(lines[0], '"id":1,', '"id":6,'), *lines[1:]]),
        "pages.jsonl line 1 (byte 0): a row of id 6, which is FAILED, expected none",
    ),
    "a row of no id": (
        edit("pages.jsonl", lambda lines: [lines[0], same_length(lines[1], '"id":3,', '"id":0,'), *lines[2:]]),
        "pages.jsonl line 2 (byte 75): id 0 is not known",
    ),
    "a row of another url": (
        edit("pages.jsonl", lambda lines: [same_length(lines[0], "b.example/1", "b.example/7"), *lines[1:]]),
        "line 1 (byte 0): url of id 1 is https://b.example/7, expected https://b.example/1",
    ),
    "a body path that leads elsewhere": (
        edit("pages.jsonl", first(body_path="bodies/../../etc/passwd")),
        "body_path is 'bodies/../../etc/passwd', expected ",
    ),
    "a body is gone": (body(Path.unlink), "bin is not there"),
    "a body is another": (body(lambda p: p.write_bytes(b"other")), "its content has sha256 "),
    "a failure is gone": (edit("failed.jsonl", lambda lines: lines[1:]), "failed.jsonl: no row of "),
    "all failures are gone": (lambda p: (p / "failed.jsonl").unlink(), "failed.jsonl: no row of "),
    "a failure is there twice": (edit("failed.jsonl", lambda lines: [*lines, lines[0]]), "failed.jsonl line 9 (byte "),
    "a failure for another reason": (
        edit("failed.jsonl", first(outcome="TIMEOUT")),
        "outcome of id 6 is ['TIMEOUT', 404, 'not there'], expected ['CONTENT_NOT_FOUND', 404, 'not there']",
    ),
    "a failure of another url": (
        edit("failed.jsonl", first(url="https://x.example/")),
        "is https://x.example/, expected",
    ),
    "a failure of what was fetched": (edit("failed.jsonl", first(id=1)), "a second row of id 1"),
    "a failure that is no row": (edit("failed.jsonl", first(id="x")), "failed.jsonl line 1 (byte 0): Expected `int`"),
    "Parquet is short": (
        lambda p: parquet.files(p)[0].replace(p / "pages-00001.parquet"),
        "pages-00001.parquet to pages-00001.parquet: 8 rows, expected 32",
    ),
    "Parquet is garbled": (lambda p: (p / "failed.parquet").write_bytes(b"PAR1"), "failed.parquet: "),
    "a reason is gone": (sql("DELETE FROM failure WHERE id = 6"), "expected ['CONTENT_NOT_FOUND', None, None]"),
    "a URL is gone": (sql("DELETE FROM url WHERE id = 2"), "ends add up to 39, expected 40"),
    "a URL waits again": (sql("UPDATE url SET end = 0 WHERE id = 1"), "1 wait, expected none where all is finished"),
    "a URL is kept that has no row": (sql("UPDATE url SET end = 2 WHERE id = 6"), "pages.jsonl: no row of "),
    "the index of known URLs is wrong": (
        lambda p: break_index(p / "ledger.db"),
        "ledger.db: ",
    ),
    "the ledger is no database": (lambda p: (p / "ledger.db").write_bytes(b"x" * 9999), "ledger.db is damaged, or no"),
    "the ledger is cut": (lambda p: cut(p / "ledger.db"), "ledger.db"),
    "the ledger is gone": (lambda p: (p / "ledger.db").unlink(), "cannot use "),
    "a move was cut short": (
        lambda p: shutil.copy(p / "ledger.db", p / "ledger.next"),
        "ledger.next: the move",
    ),
}


def break_index(path: Path) -> None:
    """Say that the index is of something else than it was made of."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute(
            "UPDATE sqlite_master SET sql = 'CREATE INDEX url_waiting ON url (depth)' WHERE name = 'url_waiting'"
        )


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5000])


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_found(path: Path, name: str) -> None:
    damage, expected = DAMAGES[name]
    damage(path)

    proof = verify(path)

    assert not proof.ok
    assert any(expected in problem for problem in proof.problems), proof.problems


def test_a_hundred_problems_are_enough_and_all_are_counted(path: Path) -> None:
    (path / "pages.jsonl").write_text("x\n" * 2000)

    proof = verify(path)

    assert len(proof.problems) == MOST_PROBLEMS
    assert proof.wrong > 1000


def test_a_crawl_is_proved_while_it_runs() -> None:
    """What stands behind the watermark is not looked at, and what is made at the end is not expected."""
    with fresh() as path, CrawlFolder.open(path, PLAN, resume=False, wall=0.0) as folder:
        folder.commit([], found(1, 2, 3))
        queued = wait(folder)
        folder.commit([fetched(queued[0])], [])
        folder.rows.write([fetched(queued[1])])

        proof = verify(path)

        assert proof.ok, proof.problems
        assert (proof.rows, proof.counts[End.WAITING], proof.finished) == (1, 2, False)
        assert len(proof.unproven) == 1
        folder.commit([fetched(queued[2])], [])


def test_a_crawl_is_proved_whose_ids_have_gaps() -> None:
    with fresh() as path:
        for number in (1, 50, 999):
            with CrawlFolder.open(path, PLAN, resume=False, wall=0.0) as folder:
                folder.commit([], found(number, number + 1))
                folder.commit([fetched(wait(folder)[0])], [])
                folder.ledger.note(last_id=10 * number)
                folder.finish(1.0, complete=False)

        proof = verify(path)

        assert proof.ok, proof.problems
        assert (proof.known, proof.rows) == (6, 3)
        (path / "pages.jsonl").write_bytes(b"")
        with CrawlFolder.open(path, PLAN, resume=False, wall=0.0) as folder:
            assert folder.put_back == 3


def test_without_pyarrow_parquet_is_unproven(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "have_parquet", lambda: False)

    assert verify(path).unproven == ["Parquet: pyarrow is not installed"]


def test_no_folder_is_no_crawl(path: Path) -> None:
    with pytest.raises(FolderError, match="there is no folder"):
        verify(path / "nothing")
