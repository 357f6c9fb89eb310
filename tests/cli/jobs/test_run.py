"""`sanderling run` as people call it, against a simulated API over a socket."""

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from command_line import Done, called, here, rows, run

from sanderling.clock import SystemClock
from sanderling.jobs.watchdog import STUCK, read_stuck
from sanderling.worlds.api import ApiRules, ApiServer, ApiWorld

CALM = ApiRules(posts=30, page=10, faults=0.0, latency=0.0)

JOB = """
from sanderling import Job, Request
from sanderling.jobs import Cursor

job = Job("posts", start="http://HOST/posts", paging=Cursor(path="next", param="cursor"), rps=1000,
          arguments={"since": "2026-01-01", "deep": True, "most": 3, "share": 0.5})

@job.read
def posts(reply):
    for post in reply.json()["data"]:
        yield Request(f"/posts/{post['id']}", read="detail")

@job.read
def detail(reply):
    yield reply.json()
"""


def write(folder: Path, host: str, text: str = JOB, name: str = "job.py") -> str:
    path = folder / name
    path.write_text(dedent(text).replace("HOST", host))
    return str(path)


def against(main: Callable[[ApiServer], Coroutine[Any, Any, None]], rules: ApiRules = CALM) -> ApiWorld:
    """Run a test beside a simulated API, and say what that was asked."""
    world = ApiWorld(1, rules)

    async def served() -> None:
        async with ApiServer(world, SystemClock()) as server:
            await main(server)

    run(served)
    return world


def ids(folder: Path) -> list[int]:
    return sorted(row["id"] for row in rows(folder, "records.jsonl"))


def test_what_a_function_prints_is_not_in_the_summary_for_machines(tmp_path: Path) -> None:
    async def main(server: ApiServer) -> None:
        text = JOB.replace("    yield reply.json()\n", "    print('seen')\n    yield reply.json()\n")
        job = write(tmp_path, server.host, text)
        done = await here("run", job, "--out", str(tmp_path / "out"), "--private", "--json")
        assert json.loads(done.out)["records"] == 30
        assert done.err.count("seen\n") == 30

    against(main)


def test_a_job_runs_to_its_end_and_says_what_it_has(tmp_path: Path) -> None:
    out = tmp_path / "out"

    async def main(server: ApiServer) -> None:
        job = write(tmp_path, server.host)
        first = await here("run", job, "--out", str(out), "--private", "--set", "most=5", "--set", "deep=no")
        host = await here("why", server.host, "--out", str(out))
        assert (host.code, f"{server.host} was done" in host.out) == (0, True), host
        again = await here("run", job, "--out", str(out), "--private", "--set", "most=5", "--set", "deep=no", "--json")
        other = await here("run", job, "--out", str(out), "--private")
        assert (first.code, again.code, other.code) == (0, 0, 2), (first, again, other)
        assert "posts: 30 records of 33 requests" in first.out
        assert json.loads(again.out) | {"seconds": 0} == {
            "name": "posts",
            "complete": True,
            "seconds": 0,
            "records": 30,
            "requests": 33,
            "known": 33,
            "fetched": 33,
            "failed": 0,
            "left_out": 0,
            "refused": 0,
            "passed_over": 0,
            "waiting": 0,
            "bytes": 0,
            "out": str(out),
            "failed_by": {},
            "reasons": {},
            "set_aside": 0,
            "set_aside_by": {},
            "gone": {},
            "over_budget": False,
            "spent": [],
        }
        assert "most was 5 and is 3" in other.err

    world = against(main)

    assert ids(out) == list(range(1, 31))
    assert world.asked.total() == 33
    verified = called("verify", str(out))
    assert (verified.code, verified.out.splitlines()[0]) == (0, f"{out}: 33 requests, 30 records")
    status = called("status", str(out))
    assert (status.code, "33 known, 33 sent, all of them decided" in status.out) == (0, True)
    (out / "records.jsonl").write_text((out / "records.jsonl").read_text().replace("tide", "Tide", 1))
    assert (called("verify", str(out)).code, json.loads(called("verify", str(out), "--json").out)["ok"]) == (1, False)


def test_a_mistake_is_that_requests_failure_with_its_line_and_is_asked_for_again_when_it_is_mended(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    wrong = JOB.replace(
        "    yield reply.json()", '    yield reply.json()\n    if reply.json()["id"] == 7:\n        1 / 0'
    )
    line = wrong.replace("HOST", "").splitlines().index("        1 / 0") + 1

    async def main(server: ApiServer) -> None:
        failed = await here("run", write(tmp_path, server.host, wrong), "--out", str(out), "--private")
        job = write(tmp_path, server.host)
        still = await here("run", job, "--out", str(out), "--private")
        mended = await here("run", job, "--out", str(out), "--private", "--retry")
        assert (failed.code, still.code, mended.code) == (1, 1, 0), (failed, still, mended)
        assert f"1 x ZeroDivisionError: division by zero (job.py:{line})" in failed.out
        assert f"sanderling run {job} --out {out} --retry --private" in failed.out

    against(main)

    assert ids(out) == list(range(1, 31))


def test_work_of_a_reader_that_is_gone_waits_for_it(tmp_path: Path) -> None:
    out = tmp_path / "out"
    renamed = JOB.replace("def detail", "def details").replace('read="detail"', 'read="details"')

    async def main(server: ApiServer) -> None:
        job = write(tmp_path, server.host, JOB.replace("rps=1000", "rps=1000, max_requests=3"))
        begun = await here("run", job, "--out", str(out), "--private")
        write(tmp_path, server.host, renamed)
        gone = await here("run", job, "--out", str(out), "--private")
        told = json.loads((await here("run", job, "--out", str(out), "--private", "--json")).out)
        write(tmp_path, server.host)
        back = await here("run", job, "--out", str(out), "--private")
        assert (told["set_aside"], told["set_aside_by"], list(told["gone"])) == (0, {}, ["detail"])
        assert (begun.code, gone.code, back.code) == (0, 3, 0), (begun, gone, back)
        assert "Nothing is lost; raise max_requests in the job, then:" in " ".join(begun.out.split())
        assert "wait for the reader detail, which the job has not" in gone.out

    against(main)

    assert len(set(ids(out))) == len(ids(out)) > 0


def test_records_are_tried_and_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    empty = JOB.replace("    yield reply.json()", "    return None")

    async def main(server: ApiServer) -> None:
        tried = await here("run", write(tmp_path, server.host), "--try", "4", "--private")
        nothing = await here("run", write(tmp_path, server.host, empty, "empty.py"), "--try", "2", "--private")
        both = await here("run", "job.py", "--try", "4", "--out", "x")
        assert tried.code == 0, tried
        assert [json.loads(line)["id"] in range(1, 31) for line in tried.out.splitlines()] == [True] * 4
        assert "4 records of" in tried.err
        assert (nothing.code, nothing.out) == (0, "")
        assert "0 records of 33 requests" in nothing.err
        assert (both.code, "expected one of them" in both.err) == (2, True)

    world = against(main)

    assert world.asked.total() < 66  # the first did not ask for all
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.py", "job.py"]


def test_answers_are_kept_for_the_next_run_while_a_job_is_written(tmp_path: Path) -> None:
    cache = tmp_path / "cache"

    async def main(server: ApiServer) -> None:
        job = write(tmp_path, server.host)
        for name in ("one", "two"):
            done = await here("run", job, "--out", str(tmp_path / name), "--cache", str(cache), "--private")
            assert done.code == 0, done

    world = against(main)

    assert world.asked.total() == 33
    assert ids(tmp_path / "one") == ids(tmp_path / "two") == list(range(1, 31))


BAD: list[tuple[str, tuple[str, ...], str]] = [
    ("x = (", (), "job.py:1: SyntaxError: "),
    ("import json\nx = 1 / 0", (), "job.py:2: ZeroDivisionError: division by zero"),
    ("raise SystemExit(3)", (), "job.py:1: SystemExit: 3"),
    ("class Odd(BaseException): ...\nraise Odd", (), "job.py:2: Odd"),
    ("raise __import__('asyncio').CancelledError", (), "job.py:1: CancelledError"),
    ("import nothing_of_this_name", (), "job.py:1: ModuleNotFoundError: "),
    ("from sanderling import Job\nJob('a', start='x', rps=0)", (), "job.py:2: JobError: rps of a is 0"),
    ("x = 1", (), "has no Job; expected job = Job(…)"),
    (f"{JOB}\nother = Job('other', start='http://a.example')", (), "has 2 jobs: job, other; choose one, as in "),
    ("from sanderling import Job\njob = Job('a', start='http://a.example/')", (), "a has no reader"),
    ("from sanderling import Job\njob = Job('a', start=lambda args: [])\njob.read(print)", (), "expected hosts="),
    (JOB, ("--set", "since"), "--set: 'since' has no =, expected name=value; posts has since (str), deep (bool)"),
    (JOB, ("--set", "until=1"), "posts has no argument 'until'; expected one of: since (str), deep (bool), most (int)"),
    (JOB, ("--set", "most=many"), "argument most is 'many', expected a whole number like 3"),
    (JOB, ("--set", "share=nan"), "argument share is nan, expected a number that can be written as JSON"),
    (JOB, ("--set", "share=-inf"), "argument share is -inf, expected a number"),
    (JOB, ("--set", "share=1e999"), "argument share is "),
    (JOB, ("--set", "since=\udcff"), "argument since is '\\udcff', expected a text that can be written as JSON"),
    (JOB, ("--set", "deep=perhaps"), "argument deep is 'perhaps', expected true or false"),
    (JOB, ("--set", "most=1", "--set", "most=2"), "--set: most is given twice"),
    (JOB, ("--contact", "me"), "--contact: contact is 'me'"),
    (JOB, ("--cache", "job.py/x"), "--cache: "),
]


@pytest.mark.parametrize(("text", "flags", "says"), BAD)
def test_what_is_wrong_is_said_before_anything_is_begun(
    text: str, flags: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "a.example", text)

    done = called("run", "job.py", "--out", "out", *flags)

    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert "Traceback" not in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.py"]


def test_a_file_is_loaded_with_what_is_beside_it_and_leaves_nothing_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "json.py").write_text(f"import helping_hand\n{JOB}\nother = Job('b', start='http://x.y/')\n")
    (tmp_path / "beside" / "helping_hand.py").write_text("")
    before = list(sys.path)

    done = called("run", "beside/json.py:other", "--out", "out")
    unknown = called("run", "beside/json.py:third", "--out", "out")

    assert (done.code, "b has no reader" in done.err) == (2, True), done
    assert "has no Job 'third'; expected one of: job, other" in unknown.err
    assert sys.path == before
    assert json.loads("1") == 1
    assert list(tmp_path.rglob("__pycache__")) == []


@pytest.mark.parametrize(("wanted", "says"), [("none.py", "there is no such file"), (".", "it is a folder")])
def test_what_is_no_file_is_said(wanted: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    done = called("run", wanted, "--out", "out")

    assert (done.code, says in done.err) == (2, True)
    assert called("run", "job.py").code == 2
    assert "is no folder of a crawl of pages or repos, or of a job" in called("verify", str(tmp_path)).err


# Held without work: what matters is that nobody else comes to their turn.
HOLDING = '    while reply.json()["id"] == 7: __import__("time").sleep(0.1)'
STUCK_JOB = JOB.replace("    yield reply.json()", f"{HOLDING}\n    yield reply.json()")
QUICKER = "import sys; from sanderling.cli.jobs import run; run.LONGEST = 2.0; from sanderling.cli import main; main()"


def test_an_item_that_holds_the_loop_is_taken_last_and_then_ended(tmp_path: Path) -> None:
    out = tmp_path / "out"

    async def main(server: ApiServer) -> None:
        job = write(tmp_path, server.host, STUCK_JOB)
        said = [await once(job, out) for _ in range(3)]
        assert [done.code for done in said] == [STUCK, STUCK, 1], said
        line = STUCK_JOB.splitlines().index(HOLDING) + 1
        assert f"{job}:{line} in detail" in said[0].err
        assert "takes this item last" in said[0].err
        assert "ends this item" in said[1].err
        assert f"held the event loop for 2.0 s, 2 times, last at {job}:{line} in detail" in said[2].out
        assert len(ids(out)) == 29

    against(main)

    assert ids(out) == [number for number in range(1, 31) if number != 7]
    assert read_stuck(out) == {}


async def once(job: str, out: Path) -> Done:
    command = (sys.executable, "-c", QUICKER, "run", job, "--out", str(out), "--private")
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    async with asyncio.timeout(60):
        said, error = await process.communicate()
    return Done(process.returncode or 0, said.decode(), error.decode())
