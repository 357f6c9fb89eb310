"""What the folder of a crawl says of itself: the proof, and what failed."""

import json
from pathlib import Path

import pytest
from command_line import Done, Script, called, commands, here, page, run
from scripted_server import ScriptedServer, answer

from sanderling.outcome import Code, Outcome
from sanderling.pages.folder import CrawlFolder, CrawlPlan
from sanderling.stores.frontier_rows import End, Ended, FoundUrl

HOST = "a.example"
URLS = [f"http://{HOST}/{number}" for number in range(10)]
FAILURES = {
    3: Outcome(Code.CONTENT_NOT_FOUND, 404),
    4: Outcome(Code.CONTENT_NOT_FOUND, 404),
    5: Outcome(Code.CONTENT_NOT_FOUND, 404),
    6: Outcome(Code.CONTENT_NOT_FOUND, 404),
    7: Outcome(Code.TLS_ERROR, detail="\x1b]0;owned\x07 \u202eevil certificate"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A finished crawl of ten URLs: three fetched, five failed, one forbidden, one left."""
    path = tmp_path / "a crawl"
    with CrawlFolder.open(path, CrawlPlan((URLS[0],), (), 3), resume=False, wall=0.0) as crawl:
        crawl.commit([], [FoundUrl(url, HOST, 0) for url in URLS])
        crawl.commit([*map(kept, range(3)), *map(failed, FAILURES), forbidden(8)], [])
        crawl.ledger.leave()
        crawl.finish(0.0, True, False)  # noqa: FBT003 - by position, as its thread calls it
    return path


def kept(number: int) -> Ended:
    row = json.dumps({"id": number + 1, "url": URLS[number], "outcome": "OK", "status": 200, "depth": 0}).encode()
    return Ended(id=number + 1, url=URLS[number], end=End.FETCHED, outcome=Outcome(Code.OK, 200), depth=0, row=row)


def failed(number: int) -> Ended:
    return Ended(id=number + 1, url=URLS[number], end=End.FAILED, outcome=FAILURES[number], depth=0)


def forbidden(number: int) -> Ended:
    outcome = Outcome(Code.REFUSED, detail="robots.txt")
    return Ended(id=number + 1, url=URLS[number], end=End.REFUSED, outcome=outcome, depth=0)


def test_the_proof_is_a_sum_that_adds_up(folder: Path) -> None:
    done = called("verify", str(folder))

    cells = [line.split() for line in done.out.splitlines() if line.startswith("  ") and "---" not in line]
    counts = {name: int(number) for name, number, *_ in cells}
    assert (done.code, done.err) == (0, "")
    assert counts.pop("known") == sum(counts.values()) == 10
    assert {name: number for name, number in counts.items() if number} == {
        "fetched": 3,
        "refused": 1,
        "failed": 5,
        "left": 1,
    }
    assert "a finished crawl" in done.out
    assert "It adds up" in done.out


def test_what_does_not_add_up_is_named_and_makes_the_exit_code_1(folder: Path) -> None:
    kept_rows = (folder / "pages.jsonl").read_text().splitlines(keepends=True)
    (folder / "pages.jsonl").write_text("".join([*kept_rows[:2], "x" * (len(kept_rows[2]) - 1) + "\n"]))

    done = called("verify", str(folder))

    assert done.code == 1
    assert "  wrong: pages.jsonl" in done.out
    assert "It does not add up: " in done.out


def test_the_proof_as_json(folder: Path) -> None:
    done = called("verify", str(folder), "--json")

    proof = json.loads(done.out)
    assert done.code == 0
    assert (proof["ok"], proof["known"], proof["fetched"], proof["failed"], proof["rows"]) == (True, 10, 3, 5, 3)
    assert (proof["problems"], proof["wrong"]) == ([], 0)


@pytest.mark.parametrize(
    ("what", "says"), [("nothing", "it is not there"), ("file", "it is a file"), ("empty", "it has no ledger.db")]
)
def test_what_is_no_crawl_is_said_to_be_none(tmp_path: Path, what: str, says: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()

    done = called("pages", "failed", str(tmp_path / what))

    assert (done.code, done.out) == (2, "")
    assert called("verify", str(tmp_path / what)).code == 2
    assert done.err == f"sanderling: {tmp_path / what} is no crawl: {says}\n"
    assert list((tmp_path / "empty").iterdir()) == []


@pytest.mark.parametrize("command", [("verify",), ("pages", "failed")])
def test_a_damaged_ledger_is_a_message_and_not_a_traceback(folder: Path, command: tuple[str, ...]) -> None:
    (folder / "ledger.db").write_bytes(b"SQLite format 3\0" + b"nonsense" * 1000)

    done = called(*command, str(folder))

    assert done.code in (1, 2)
    assert "ledger.db" in done.out + done.err


def test_failures_are_grouped_by_reason_with_examples(folder: Path) -> None:
    done = called("pages", "failed", str(folder), "--private")

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"5 URLs failed in {folder}.\n")
    assert "      4  not found (404, CONTENT_NOT_FOUND), fault of the page\n" in done.out
    assert all(url in done.out for url in URLS[3:6])
    assert URLS[6] not in done.out
    assert "and 1 more" in done.out
    assert "      1  TLS failed (TLS_ERROR), fault of the page\n" in done.out
    assert URLS[8] not in done.out, "robots.txt is no failure"
    assert commands(done.out) == [["pages", "failed", str(folder), "--retry", "--private"]]


def test_what_a_host_says_does_not_reach_the_terminal_as_it_is(folder: Path) -> None:
    done = called("pages", "failed", str(folder))

    assert "owned" in done.out
    assert not any(each in done.out for each in "\x1b\x07\u202e")


def test_failures_as_json_are_one_object_each(folder: Path) -> None:
    done = called("pages", "failed", str(folder), "--json")

    told = [json.loads(line) for line in done.out.splitlines()]
    assert done.code == 0
    assert [each["url"] for each in told] == URLS[3:8]
    assert told[0] == json.loads((folder / "failed.jsonl").read_text().splitlines()[0]), "as it is in the file"
    assert (told[0]["requests"], told[0]["fault"]) == (1, "item")
    assert "\x1b" not in done.out


@pytest.mark.parametrize("flags", [(), ("--retry",)])
def test_where_nothing_failed_that_is_said(tmp_path: Path, flags: tuple[str, ...]) -> None:
    with CrawlFolder.open(tmp_path / "out", CrawlPlan((URLS[0],), (), 3), resume=False, wall=0.0) as crawl:
        crawl.commit([], [FoundUrl(URLS[0], HOST, 0)])
        crawl.commit([kept(0)], [])
        crawl.finish(0.0, True, False)  # noqa: FBT003 - by position, as its thread calls it

    done = called("pages", "failed", str(tmp_path / "out"), *flags)

    assert done == Done(0, f"Nothing failed in {tmp_path / 'out'}.\n", "")


def test_retry_asks_for_what_failed_and_for_nothing_else(tmp_path: Path) -> None:
    script: Script = {"/": [page("/late", "/never")], "/late": [answer(404), page()]}
    out = str(tmp_path / "out")

    async def main() -> None:
        async with ScriptedServer(script) as server:
            await here("pages", "crawl", server.url(), "--out", out, "--private", "--no-parquet")
            before = len(server.requests)
            again = await here("pages", "failed", out, "--retry", "--private", "--json")
            asked = [request.path for request in server.requests[before:]]

        summary = json.loads(again.out)
        assert again.code == 1
        assert asked == ["/late", "/never"]
        assert (summary["fetched"], summary["failed"], summary["crawl"]) == (2, 1, 1)
        assert called("verify", out).code == 0

    run(main)
