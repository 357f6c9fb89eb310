"""Lists of items: every system's, by pages, whatever is asked and whatever is in the files."""

import sqlite3
import uuid
from contextlib import closing
from pathlib import Path
from urllib.parse import urlencode

import pytest
from dashboard_house import TOKEN, Answer, Dashboard, dashboard, polled, queued
from known_reports import HOSTILE, JOBS, PAGES, REPOS, SEQUENCE, put
from looping import in_loop

from sanderling.clock import SystemClock
from sanderling.sequence.retries import Missed, Reason
from sanderling.sequence.state import Fates, SequenceState
from sanderling.stores import frontier_file
from sanderling.stores.frontier_file import FrontierMeta
from sanderling.stores.ports import Unfinished
from sanderling.stores.queue import Letter
from sanderling.stores.redis_progress import RedisProgress
from sanderling.stores.sqlite_progress import SqliteProgress
from sanderling.stores.sqlite_queue import SqliteQueue
from sanderling.web import house_items
from sanderling.web.house_reach import Reach

NUMBER = 23


def a_frontier(path: Path) -> None:
    frontier_file.create(path, FrontierMeta())
    with closing(frontier_file.connect(path)) as db:
        db.execute("INSERT INTO host (id, name, partition) VALUES (1, 'a.example', 0)")
        db.execute("INSERT OR IGNORE INTO code (id, name) VALUES (99, 'GONE')")
        for number in range(1, NUMBER + 1):
            end = 5 if number % 2 else 4
            url = f"https://a.example/{number}_{HOSTILE if number == 1 else 'page'}"
            row = (number, 1, 0, end, 99, frontier_file.key_of(url), url)
            db.execute("INSERT INTO url VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            db.execute("INSERT INTO failure VALUES (?, 410, 'it is gone', 3)", (number,))
        db.execute("INSERT INTO again VALUES (1, 4, 1800000000.0, 99, 503, 'busy', 1)")
        db.execute("INSERT INTO aside VALUES (1, 99, 0, 'no answer', 1800000000.0)")


def a_home(home: Path) -> None:
    """With items of every system that keeps them in a file."""
    for name, status, file in (("pages", PAGES, "ledger.db"), ("jobs", JOBS, "frontier.db")):
        a_frontier(put(home / name, status) / file)
    SqliteProgress(put(home / "repos", REPOS) / "progress.db").close()
    with closing(sqlite3.connect(home / "repos" / "progress.db")) as db, db:
        rows = [(f"did:plc:{number:02}", "not_found" if number % 2 else "", 1, 0, None) for number in range(NUMBER)]
        again = [(f"did:web:{number:02}", "timeout", 0, number % 3, 1_800_000_000 + number % 5) for number in range(9)]
        db.executemany("INSERT INTO did VALUES (?, ?, ?, ?, ?)", [*rows, *again])
    state = SequenceState(put(home / "sequence", SEQUENCE) / "sequence.db")
    ranges = [Missed(10 * each, 10 * each + each % 2, Reason.HIDDEN, 1.0, 2.0, 3, 4.0) for each in range(NUMBER)]
    state.change(Fates(missed=[*ranges, Missed(9000, 9999, Reason.GAP, 1.0, 2.0, 3, 4.0)]))


async def ask(house: Dashboard, **query: object) -> Answer:
    return await house.ask("GET", f"/api/items?{urlencode(query)}")


async def walk(house: Dashboard, **query: object) -> list[str]:
    """All pages, from the first to the last."""
    found: list[str] = []
    after = ""
    for _ in range(200):
        page = (await ask(house, **query, after=after)).data
        found += [each["id"] for each in page["items"]]
        after = page["after"]
        if not after:
            return found
    raise AssertionError(f"{len(found)} items, and no end")


@in_loop
async def test_every_item_is_on_one_page_whatever_the_size_of_pages(tmp_path: Path) -> None:
    a_home(tmp_path)
    lists = [("pages", "failed", 12), ("jobs", "failed", 12), ("pages", "refused", 11), ("pages", "again", 1)]
    lists += [("pages", "set aside", 1), ("repos", "failed", 11), ("repos", "again", 9), ("sequence", "hidden", 23)]
    async with dashboard(tmp_path) as house:
        for system, state, number in lists:
            whole = await walk(house, system=system, state=state, limit=200)
            assert (len(whole), len(set(whole))) == (number, number), (system, state)
            for limit in (1, 4):
                assert await walk(house, system=system, state=state, limit=limit) == whole, (system, state)
        assert (await walk(house, system="sequence", state="gap")) == ["9000-9999"]


@in_loop
async def test_an_item_says_why_and_when_it_is_next(tmp_path: Path) -> None:
    a_home(tmp_path)
    async with dashboard(tmp_path) as house:
        page = (await ask(house, system="pages")).data
        waits = (await ask(house, system="jobs", state="again")).data["items"]

    assert page["states"] == ["failed", "again", "set aside", "refused", "left out"]
    assert "--retry" in page["how"]
    assert page["items"][0]["id"].endswith(HOSTILE)
    assert (page["items"][1]["why"], page["items"][1]["host"]) == ("GONE 410 it is gone", "a.example")
    assert [(each["why"], each["tries"], each["next"]) for each in waits] == [("GONE 503 busy", 4, 1_800_000_000.0)]


@in_loop
async def test_targets_and_dead_letters_are_listed_with_what_asks_for_them_again(tmp_path: Path) -> None:
    async with (
        polled(tmp_path / "polling"),
        queued(tmp_path / "events", "one", "two", "three"),
        dashboard(tmp_path) as house,
    ):
        targets = (await ask(house, system="polling", state="all")).data
        paused = (await ask(house, system="polling", state="paused")).data
        every = await walk(house, system="polling", state="all", limit=1)
        dead = (await ask(house, system="events", search="TW")).data
        letters = await walk(house, system="events", limit=1)

    assert sorted(every) == sorted(each["id"] for each in targets["items"]) == ["r1", "r2"]
    assert ([each["id"] for each in paused["items"]], paused["again"]) == (["r2"], "resume_target")
    assert ([each["id"] for each in dead["items"]], dead["again"]) == (["two"], "replay_dead")
    assert dead["items"][0]["why"] == "it makes no sense"
    assert sorted(letters) == ["one", "three", "two"]


@in_loop
async def test_records_that_sequence_could_not_store_are_listed_and_replayed(tmp_path: Path) -> None:
    a_home(tmp_path)
    folder = tmp_path / "sequence"
    async with dashboard(tmp_path) as house:
        states = (await ask(house, system="sequence")).data["states"]
        nowhere = await ask(house, system="sequence", state="given up")
        queue = SqliteQueue(folder / "instance_store.db", SystemClock())
        await queue.publish_dead(Letter("7", b"{}"), "it makes no sense")
        await queue.close()
        dead = (await ask(house, system="sequence", state="given up")).data
        done = await house.act("replay_dead", "sequence", key="7")
        none = (await ask(house, system="sequence", state="given up")).data

    assert states[-1] == "given up"
    assert (nowhere.status, "--dashboard" in nowhere.data["detail"]) == (409, True)
    assert [(each["id"], each["why"]) for each in dead["items"]] == [("7", "it makes no sense")]
    assert (done.data["done"], none["items"]) == ("1 message ready again", [])


@in_loop
async def test_progress_in_redis_is_listed_by_who_holds_it_open(tmp_path: Path, redis: str) -> None:
    put(tmp_path / "repos", REPOS)
    prefix = f"sanderling-test-{uuid.uuid4().hex}:"
    progress = RedisProgress(redis, categories=["NOT_FOUND", "TIMEOUT"], prefix=prefix)
    try:
        gone = [Unfinished(f"did:plc:gone{n}", "NOT_FOUND", permanent=True) for n in range(7)]
        late = [Unfinished(f"did:plc:late{n}", "TIMEOUT", False, n + 1, 100 + n) for n in range(5)]  # noqa: FBT003
        progress.record([], [*gone, *late], cursor=None, segment=1)
        async with dashboard(tmp_path, reach=Reach(progress={tmp_path / "repos": progress})) as house:
            failed = [await walk(house, system="repos", state="failed", limit=limit) for limit in (1, 3, 200)]
            again = (await ask(house, system="repos", state="again", limit=3)).data
            rest = (await ask(house, system="repos", state="again", after=again["after"])).data
            wrong = await ask(house, system="repos", state="failed", after="x y")
    finally:
        progress.reset()
        progress.close()

    assert all(sorted(each) == sorted(one.did for one in gone) for each in failed)
    assert [each["id"] for each in again["items"] + rest["items"]] == [each.did for each in late]
    assert [(each["why"], each["tries"], each["next"]) for each in again["items"]] == [
        ("TIMEOUT", 1, 100.0),
        ("TIMEOUT", 2, 101.0),
        ("TIMEOUT", 3, 102.0),
    ]
    assert wrong.status == 400


@in_loop
async def test_a_page_reads_a_bounded_number_of_items_and_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_home(tmp_path)
    monkeypatch.setattr(house_items, "MOST_READ", 5)
    async with dashboard(tmp_path) as house:
        first = (await ask(house, system="pages", search="/21_")).data
        found = await walk(house, system="pages", search="/21_PAGE ")

    assert (first["items"], first["read"]) == ([], 5)
    assert found == ["https://a.example/21_page"]


@in_loop
@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({}, 400),
        ({"system": "nobody"}, 404),
        ({"system": "../pages"}, 404),
        ({"system": "pages", "state": "'; DROP TABLE url; --"}, 400),
        ({"system": "pages", "limit": 0}, 400),
        ({"system": "pages", "limit": 201}, 400),
        ({"system": "pages", "other": 1}, 400),
        ({"system": "pages", "search": "x" * 301}, 400),
        ({"system": "pages", "after": "1 OR 1=1"}, 400),
        ({"system": "pages", "after": "9" * 30}, 400),
        ({"system": "pages", "after": "٣"}, 400),
        ({"system": "pages", "after": "9223372036854775808"}, 400),
        ({"system": "repos", "state": "again", "after": "x y z"}, 400),
        ({"system": "polling", "after": "[1]"}, 400),
        ({"system": "pages", "after": "9223372036854775807"}, 200),
        ({"system": "pages", "search": "%' OR '1'='1"}, 200),
        ({"system": "repos", "state": "failed", "after": HOSTILE}, 200),
    ],
)
async def test_whatever_is_asked_is_answered_or_refused(tmp_path: Path, query: dict[str, object], status: int) -> None:
    a_home(tmp_path)
    async with polled(tmp_path / "polling"), dashboard(tmp_path) as house:
        answer = await ask(house, **query)
        after = await walk(house, system="pages", state="failed")

    assert answer.status == status, answer.body
    assert len(after) == 12, "nothing was changed"
    if status == 200 and query["system"] == "pages":
        assert answer.data["items"] == []


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id, 1 AS status, '' AS detail"


@in_loop
@pytest.mark.parametrize("how", ["missing", "text", "foreign", "endless", "link", "folder"])
async def test_a_file_of_somebody_else_is_refused_in_words(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(house_items, "PATIENCE", 1.0)
    ledger = put(tmp_path / "pages", PAGES) / "ledger.db"
    match how:
        case "text":
            ledger.write_text("no database at all" * 100)
        case "foreign" | "endless":
            with closing(sqlite3.connect(ledger)) as db, db:
                if how == "endless":
                    db.execute(f"PRAGMA application_id = {frontier_file.APPLICATION}")
                    db.execute(f"CREATE VIEW failure AS {ENDLESS} FROM n WHERE i < 0")
                for name in ("url", "host", "code"):
                    db.execute(f"CREATE TABLE {name} (id INTEGER, name, url, host, code, end)")
        case "link":
            a_frontier(tmp_path / "elsewhere.db")
            ledger.symlink_to(tmp_path / "elsewhere.db")
        case "folder":
            ledger.mkdir()
    async with dashboard(tmp_path) as house:
        answer = await ask(house, system="pages")
        well = await house.ask("GET", "/health")

    assert (answer.status, well.status) == (503, 200)
    assert answer.headers["Content-Type"].startswith("application/problem+json")


@in_loop
async def test_items_need_the_token(tmp_path: Path) -> None:
    a_home(tmp_path)
    async with dashboard(tmp_path, token=TOKEN, bearer=False) as house:
        assert (await ask(house, system="pages")).status == 401
    async with dashboard(tmp_path, token=TOKEN) as house:
        assert (await ask(house, system="pages")).status == 200


@in_loop
@pytest.mark.parametrize(
    ("given", "status"),
    [
        ("0-1000", 200),
        ("20", 200),
        ("5", 404),
        ("9-1", 400),
        ("1; DROP", 400),
        ("9" * 19, 400),
        ("-1", 400),
        ("٣", 400),
    ],
)
async def test_missed_ids_are_asked_at_once(tmp_path: Path, given: str, status: int) -> None:
    a_home(tmp_path)
    async with dashboard(tmp_path) as house:
        before = await walk(house, system="sequence", state="hidden", limit=200)
        answer = await house.act("retry_missed", "sequence", id=given)
        after = await walk(house, system="sequence", state="hidden", limit=200)
        (tmp_path / "sequence" / "sequence.db").unlink()
        missing = await house.act("retry_missed", "sequence", id="20")

    assert (answer.status, missing.status) == (status, 503)
    assert not (tmp_path / "sequence" / "sequence.db").exists()
    assert len(before) == len(after) == NUMBER
