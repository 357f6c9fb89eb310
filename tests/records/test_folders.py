"""Folders of all systems are read back: from any position, while nothing in them changes, and one record by its key."""

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kept_records import make_job

import sanderling
from sanderling.crawls.records import nearest_urls
from sanderling.pages import earlier
from sanderling.records.folders import open_records
from sanderling.records.parts import MARK, OLD_MARK, FolderOfParts
from sanderling.stores import frontier_file
from sanderling.stores.frontier_file import FrontierMeta
from sanderling.stores.instances import open_instances
from sanderling.stores.record_source import RecordsError, RecordSource

LEFT = Path(__file__).parents[1] / "folders" / "0.2.0" / "embedded"
# How many records each has, a key that is there, one that is not, and why.
KEYS = {
    "pages": (7, "http://127.0.0.1:28460/", "http://127.0.0.1:28460/page/11", "waiting: not asked for yet"),
    "repos": (94, "did:plc:7nasg7racpgv2e6m4f45xjm4", "did:plc:7nasg7racpgv2e6m4f45xjm3", "has not come to it"),
    "polling": (2, "1/1", "7/7", "no row and no target"),
    "events": (21, "uM4Lg9wQMuE", "nobody", "no post, no event"),
    "sequence": (8, "4", "29", "has not come to it"),
    "jobs": (3, "b", "https://api.example/7", "no record has it"),
}


@pytest.fixture(params=KEYS)
def system(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def folder(system: str, tmp_path: Path) -> Path:
    place = tmp_path / system
    if system == "jobs":
        make_job(place, [{"id": "a"}, {"id": "b", "n": 10**30}, {"id": "b", "n": 0.1}])
        return place
    shutil.copytree(LEFT / system, place)
    if system == "sequence":  # which a command of this release brings to its format
        asyncio.run(_upgraded(place / "rows.db"))
    return place


async def _upgraded(path: Path) -> None:
    await (await open_instances(f"sqlite:{path}")).close()


@pytest.fixture
def source(folder: Path) -> Iterator[RecordSource]:
    with closing(open_records(folder)) as opened:
        yield opened


def test_reading_goes_on_behind_any_position(source: RecordSource, system: str) -> None:
    everything = [record for record in source.read() if record.json]

    assert len(everything) == KEYS[system][0]
    assert source.about.system == system
    assert source.about.notes == []
    for number, record in enumerate(everything, 1):
        assert [each.json for each in source.read(record.position) if each.json] == [
            each.json for each in everything[number:]
        ]


def test_reading_changes_no_file(source: RecordSource, folder: Path) -> None:
    def files() -> dict[str, bytes]:
        kept = (each for each in folder.rglob("*") if each.is_file() and not each.name.endswith("-shm"))
        return {str(each): each.read_bytes() for each in kept}

    before = files()
    list(source.read())

    assert {name: body for name, body in files().items() if body} == {n: b for n, b in before.items() if b}


def test_records_are_what_the_library_gives(folder: Path, source: RecordSource) -> None:
    found = sanderling.open(folder)

    assert [json.dumps(each) for each in found] == [
        json.dumps(json.loads(record.json)) for record in source.read() if record.json
    ]
    assert list(found.where("nowhere = 1")) == []
    assert next(iter(found.fields("nowhere"))) == {"nowhere": None}


def test_one_record_is_shown_or_why_there_is_none(source: RecordSource, system: str) -> None:
    _, there, missing, why = KEYS[system]

    shown = source.show(there)
    assert shown.record is not None
    assert there in shown.record.decode()
    lacking = source.show(missing)
    assert lacking.record is None
    assert why in lacking.why
    assert lacking.nearest or system == "jobs"


@pytest.mark.parametrize("system", ["polling", "jobs"], indirect=True)
def test_what_it_was_before_is_shown(source: RecordSource, system: str) -> None:
    assert len(source.show(KEYS[system][1]).history) == 1


def test_a_position_of_something_else_is_refused(source: RecordSource) -> None:
    with pytest.raises(RecordsError, match="is none of"):
        list(source.read("nonsense"))


def test_an_unfinished_end_is_not_read(tmp_path: Path) -> None:
    make_job(tmp_path, [{"id": 1}])  # with half a record behind it

    assert list(sanderling.open(tmp_path)) == [{"id": 1}]


def test_pages_of_all_crawls_come_in_their_order(tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    shutil.copytree(LEFT / "pages", folder)
    with closing(frontier_file.connect(folder / "ledger.db")) as db:
        meta = frontier_file.read_meta(db, folder / "ledger.db")
        frontier_file.disconnect(db)
    source = open_records(folder)
    first = list(source.read())
    middle = first[3].position

    for _ in earlier.begin(folder, FrontierMeta(plan=meta.plan, crawl=2)):
        pass
    row = b'{"id":1,"url":"http://127.0.0.1:28460/","outcome":"OK","status":200,"depth":0,"fetched_at":""}\n'
    (folder / "pages.jsonl").write_bytes(row)
    with closing(sqlite3.connect(folder / "ledger.db")) as db, db:
        db.execute("UPDATE meta SET value = ? WHERE name = 'watermark'", (len(row),))

    again = [json.loads(each.json)["crawl"] for each in source.read(middle)]
    assert again == [1] * (len(first) - 4) + [2]
    assert len(source.show("http://127.0.0.1:28460/").history) == 1


def _change_polling(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "polling.db")) as db, db:
        db.executescript(statement)


def test_changes_come_behind_all_rows_of_polling(tmp_path: Path) -> None:
    folder = tmp_path / "polling"
    shutil.copytree(LEFT / "polling", folder)
    source = open_records(folder)
    last = list(source.read())[-1]
    _change_polling(
        folder,
        """INSERT INTO polling_changes VALUES (3, 1.5, 'delete', 'match', '1/1', '{}', '[]', 'match', '1', 'cup');
        DELETE FROM "match" WHERE id = '1/1'; INSERT INTO "match" (id) VALUES ('9/9');
        UPDATE polling_meta SET value = 3 WHERE key = 'seq'""",
    )

    assert [json.loads(each.json)["op"] for each in source.read(last.position)] == ["delete"]
    _change_polling(folder, "DELETE FROM polling_changes WHERE seq <= 3")
    with pytest.raises(RecordsError, match="no longer has the changes from 3 to 3"):
        list(source.read(last.position))


def test_a_post_that_a_later_event_brought_comes_again(tmp_path: Path) -> None:
    folder = tmp_path / "events"
    shutil.copytree(LEFT / "events", folder)
    source = open_records(folder)
    last = list(source.read())[-1]
    with closing(sqlite3.connect(folder / "events.db")) as db, db:
        db.execute(
            """INSERT INTO processed_events (event_id, job_id, platform, mode, received_at, processed_at, posts, errors)
            VALUES ('later', 'j', 'p', 'm', 1, 1, 1, 0)"""
        )
        db.execute(
            "UPDATE post_analytics SET event_id = 'later', job_id = 'j', view_count = 9007199254740993 WHERE id = 3"
        )

    (again,) = [json.loads(each.json) for each in source.read(last.position)]
    assert (again["id"], again["view_count"]) == (3, 9007199254740993)
    assert len(list(source.read())) == 21


@pytest.mark.parametrize(
    ("make", "said"),
    [
        pytest.param(lambda path: path.rmdir(), "it is not there", id="nothing"),
        pytest.param(lambda path: (path / "status.json").touch(), "on the server", id="on a server"),
        pytest.param(lambda path: (path / "notes.txt").touch(), "expected one of these", id="somebody else's"),
        pytest.param(lambda path: shutil.copytree(LEFT / "pages", path / "p"), "name one of them", id="a home"),
        pytest.param(lambda path: shutil.copy(LEFT / "sequence" / "sequence.db", path), "has no rows.db", id="no rows"),
        pytest.param(lambda path: shutil.copy(LEFT / "sequence" / "rows.db", path), "earlier release", id="old"),
    ],
)
def test_what_holds_no_records_says_so(make: Callable[[Path], object], said: str, tmp_path: Path) -> None:
    make(tmp_path)

    with pytest.raises(RecordsError, match=said):
        open_records(tmp_path)


def test_the_mark_of_parts_is_found_under_its_old_name_and_readers_of_parquet_pass_over_it(tmp_path: Path) -> None:
    (tmp_path / OLD_MARK).write_bytes(b"{}")
    folder = FolderOfParts(tmp_path)

    assert folder.open() == b"{}"
    folder.close()
    assert sorted(each.name for each in tmp_path.iterdir() if each.name[0] != ".") == [MARK]
    assert MARK.startswith("_")


def test_what_is_known_and_has_no_record_is_not_near_to_itself() -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE host (id INTEGER PRIMARY KEY, name TEXT)")
        db.execute("CREATE TABLE url (id INTEGER PRIMARY KEY, host INTEGER, end INTEGER, url TEXT)")
        db.execute("CREATE INDEX url_known ON url (host)")
        db.execute("INSERT INTO host VALUES (1, 'a.example')")
        urls = ["https://a.example/x", "https://a.example/xy"]
        db.executemany("INSERT INTO url (host, end, url) VALUES (1, 1, ?)", [(each,) for each in urls])

        assert nearest_urls(db, urls[0]) == [urls[1]]
