"""`sanderling pages status`: beside a crawl, after it, after a crash, and where there never was one."""

import asyncio
import json
import re
from pathlib import Path

import pytest
from command_line import Script, called, here, page, run, running
from known_reports import PAGES, host, pages, put
from scripted_server import ScriptedServer

from sanderling.cli.report_words import report_lines
from sanderling.clock import SystemClock
from sanderling.outcome import Code, Outcome
from sanderling.pages import record
from sanderling.pages.folder import CrawlFolder, CrawlPlan
from sanderling.stores.frontier_rows import End, Ended, FoundUrl, RetryUrl

HOST = "a.example"
NO_HOST = {"set_aside": 0, "set_aside_by": {}, "again": 0, "again_by": {}}
NONE = dict.fromkeys([end.name.lower() for end in End], 0)
URLS = [f"http://{HOST}/{number}" for number in range(10)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A crawl of ten URLs that was killed: two fetched, two failed, one forbidden."""
    path = tmp_path / "crawl"
    with CrawlFolder.open(path, CrawlPlan((URLS[0],), (), 3), resume=False, wall=0.0) as crawl:
        crawl.commit([], [FoundUrl(url, HOST, 0) for url in URLS])
        kept = [ended(0, End.FETCHED, Outcome(Code.OK, 200)), ended(1, End.FETCHED, Outcome(Code.OK, 200))]
        crawl.commit([*kept, ended(2, End.FAILED, Outcome(Code.CONTENT_NOT_FOUND, 404))], [])
        crawl.commit([ended(3, End.FAILED, Outcome(Code.TLS_ERROR)), ended(4, End.REFUSED, Outcome(Code.REFUSED))], [])
    return path


def ended(number: int, end: End, outcome: Outcome) -> Ended:
    row = {"id": number + 1, "url": URLS[number], "outcome": outcome.code, "status": outcome.status, "depth": 0}
    kept = json.dumps(row).encode() if end is End.FETCHED else None
    return Ended(id=number + 1, url=URLS[number], end=end, outcome=outcome, depth=0, row=kept)


def test_beside_a_crawl_it_says_how_that_stands(tmp_path: Path) -> None:
    script: Script = {"/": [page("/a", "/b")], "/a": [page()], "/b": [[]]}  # the last never answers
    out = str(tmp_path / "out")

    async def main() -> None:
        async with (
            ScriptedServer(script) as server,
            running("pages", "crawl", server.url(), "--out", out, "--private", "--no-parquet") as process,
        ):
            shown: dict[str, dict[str, dict[str, int]]] = {}
            while not (shown.get("status") and shown["kept"]["counts"]["fetched"] == 2):
                await asyncio.sleep(0.1)
                done = await here("status", out, "--json")
                shown = json.loads(done.out) if done.code == 0 else {}
            said = await here("status", out)

        assert shown["running"]
        assert f"The crawl in {out}, running for 0:" in said.out
        assert f"as process {process.pid}" in said.out
        assert "     pages  2 fetched\n" in said.out
        assert "      urls  3 known, 66 % of them decided, 1 still to ask for\n" in said.out
        assert re.search(r"^ {7}now  asking 1 host; \d URLs? wait", said.out, re.MULTILINE)

    run(main)


def test_what_is_on_disk_counts_and_not_what_was_said_before_a_crash(folder: Path) -> None:
    put(folder, PAGES, SystemClock().wall() - 60)

    done = called("status", str(folder))
    whole = json.loads(called("status", str(folder), "--json").out)

    assert (done.code, done.err) == (0, "")
    assert " and is not running:\n" in done.out
    assert "     pages  2 fetched\n" in done.out
    assert "      urls  10 known, 50 % of them decided, 5 still to ask for\n" in done.out
    assert "    failed  2: 1 not found, 1 TLS failed\n            2 fault of the page\n" in done.out
    assert "   refused  1 by robots.txt\n" in done.out
    assert (whole["running"], whole["status"]["process"]["pid"]) == (False, PAGES.process.pid)
    counts = NONE | {"waiting": 5, "fetched": 2, "refused": 1, "failed": 2}
    reasons = {"CONTENT_NOT_FOUND": 1, "TLS_ERROR": 1}
    kept = {
        "crawl": 1,
        "finished": False,
        "known": 10,
        "counts": counts,
        "cut_off": 0,
        "failed_by": reasons,
        "records": 0,
        "requests": 0,
    }
    assert whole["kept"] == kept | NO_HOST | {"failed_by_fault": {"item": 2}}


def test_what_waits_has_the_reason_of_its_host_or_its_own(folder: Path) -> None:
    """In `pages status`, and in `pages failed`, which tells it from what failed for good."""
    with CrawlFolder.open(folder, None, resume=True, wall=0.0) as crawl:
        crawl.commit([], [FoundUrl("http://b.example/", "b.example", 0), FoundUrl("http://c.example/", "c.example", 0)])
        late = Outcome(Code.TIMEOUT, detail="slow")
        again = [RetryUrl(number + 1, URLS[number], 2, 50.0, late) for number in (5, 6)]
        crawl.ledger.commit([], [], crawl.ledger.meta.watermark, again)
        crawl.ledger.set_aside("b.example", Outcome(Code.DNS_ERROR), 99.0)
        (queued,) = crawl.ledger.take([("c.example", 0, 1)])[0]
        crawl.commit([record.unfetched(queued, Outcome(Code.REFUSED, detail="private"), End.FAILED, 0)], [])

    said = called("status", str(folder)).out
    kept = json.loads(called("status", str(folder), "--json").out)["kept"]
    failed = called("pages", "failed", str(folder)).out

    assert " set aside  1 of hosts that did not answer: 1 no such host, or no DNS\n" in said
    assert "     again  2 failed and will be asked for once more: 2 no answer in time\n" in said
    assert "            2 fault of the page, 1 our own rules\n" in said
    assert (kept["again"], kept["again_by"], kept["set_aside_by"]) == (2, {"TIMEOUT": 2}, {"DNS_ERROR": 1})
    assert kept["failed_by_fault"] == {"item": 2, "us": 1}
    assert "1 URL did not fail, and could not be asked for:\n\n    b.example  1 URL, no such host" in failed
    assert "2 URLs failed, though not for good: 2 no answer in time.\n" in failed


def test_a_crawl_that_said_nothing_yet_is_told_from_its_ledger(folder: Path) -> None:
    done = called("status", str(folder))

    assert done.out.startswith(f"The crawl in {folder}:\n\n     pages  2 fetched\n")
    assert "hosts" not in done.out


def test_one_that_is_finished_is_said_to_be(folder: Path) -> None:
    with CrawlFolder.open(folder, None, resume=True, wall=0.0) as crawl:
        crawl.ledger.leave()
        crawl.finish(0.0, True, False)  # noqa: FBT003 - by position, as its thread calls it

    said = called("status", str(folder)).out

    assert "      urls  10 known, all of them decided" in said
    assert "      left  5 because of --max-pages" in said


def test_hosts_that_are_slow_or_worse_are_named_with_the_reason() -> None:
    fine = [host(f"{number}.example") for number in range(3)]
    slow = [host(f"slow{number}.example", latency=float(number), why="it takes long") for number in range(2, 9)]
    open_ = host("down.example", state="open", why="its circuit is open", trouble="TIMEOUT")

    said = list(report_lines(pages(*fine, *slow, open_), running=True))

    assert "     hosts  11, 8 of them slow or in trouble" in said
    assert "      host  down.example, failing: TIMEOUT; its circuit is open" in said
    assert sum(", slow: it takes long" in line for line in said) == 4
    assert said[-1] == "            and 3 more: see sanderling why HOST"
    assert pages(paused=True).doing == "paused; 30 URLs wait, 2 requests in flight"


def test_a_damaged_ledger_is_a_message_and_exit_code_1(folder: Path) -> None:
    (folder / "ledger.db").write_bytes(b"SQLite format 3\0" + b"nonsense" * 1000)

    done = called("status", str(folder))

    assert (done.code, done.out) == (1, "")
    assert "ledger.db" in done.err
