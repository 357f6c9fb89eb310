"""Why a host is slow: which crawl is asked, what it says, and how old that is."""

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from command_line import called
from known_reports import EVENTS, RACE, changed, host, pages, polling

from sanderling.clock import SystemClock
from sanderling.observe.report import AnyReport
from sanderling.outcome import Code, Outcome
from sanderling.stores.control_file import change_control
from sanderling.stores.frontier import Frontier
from sanderling.stores.frontier_rows import FoundUrl, RetryUrl
from sanderling.stores.status_file import write_status

THROTTLED = host(
    "quota.example",
    rejected=3,
    ceiling=4.0,
    waiting=1200,
    learned="the last level that passed",
    why="told to wait another 3.0 s",
    not_before=3.0,
    trouble="RATE_LIMITED 429 \x1b[2J",
)


def published(folder: Path, now: AnyReport, *, age: float = 5.0) -> Path:
    folder.mkdir()
    write_status(folder, changed(now, wall=SystemClock().wall() - age))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return published(tmp_path / "out", pages(THROTTLED, host("library.example"), pid=os.getpid()))


def ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_it_says_in_words_what_holds_the_host_back(folder: Path) -> None:
    done = called("why", "quota.example", "--out", str(folder))

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("quota.example is throttled: 5.")
    assert f" ago, in the crawl in {folder} (process {os.getpid()}).\n" in done.out
    assert "Not called now: told to wait another 3.0 s. Policy crawl: " in done.out
    assert " Its ceiling is 4.0 requests a second" in done.out
    assert "1,200 URLs of it still to be asked for." in done.out
    assert "instead of a good answer: RATE_LIMITED 429 \ufffd[2J" in done.out
    assert "\x1b" not in done.out


def test_it_says_whose_fault_it_is_that_pages_wait(folder: Path) -> None:
    def said(*flags: str) -> str:
        return called("why", "quota.example", "--out", str(folder), *flags).out

    urls, why = ["http://quota.example/1", "http://quota.example/2"], Outcome(Code.TIMEOUT, detail="slow")
    with closing(Frontier(folder / "ledger.db")) as frontier:
        frontier.commit([], [FoundUrl(url, "quota.example", 0) for url in urls], 0)
        frontier.commit([], [], 0, [RetryUrl(2, urls[1], 1, 0.0, why)])
        item, as_json = said(), json.loads(said("--json"))
        frontier.set_aside("quota.example", why, SystemClock().wall() + 3600)

    assert "1 URL of it failed and will be asked for once more: 1 no answer in time.\n" in item
    assert (as_json["set_aside"], as_json["again_by"]) == (None, {"TIMEOUT": 1})
    assert "It was set aside, by no fault of what it was asked for: no answer in time; it is next asked in " in said()
    aside = json.loads(said("--json"))["set_aside"]
    assert (aside["code"], aside["detail"], aside["waiting"]) == ("TIMEOUT", "slow", 2)


def test_it_says_that_somebody_wants_the_host_left_alone(folder: Path) -> None:
    assert "left alone" not in called("why", "quota.example", "--out", str(folder)).out
    change_control(folder, lambda control: control.after("leave", "quota.example"))

    said, machine = (called("why", "quota.example", "--out", str(folder), *flags) for flags in ((), ("--json",)))

    assert f"until somebody says: sanderling control {folder} let-go quota.example\n" in said.out
    assert json.loads(machine.out)["left_alone"] is True
    (folder / "control.json").write_text("{")
    assert called("why", "quota.example", "--out", str(folder)).code == 0


def test_a_crawl_that_has_ended_is_said_to_have(tmp_path: Path) -> None:
    folder = published(tmp_path / "out", pages(THROTTLED, pid=ended_process()), age=600)

    done = called("why", "quota.example", "--out", str(folder))

    assert done.code == 0
    assert done.out.startswith(f"quota.example was throttled 10 min ago, in the crawl in {folder}, which does not run")


@pytest.mark.parametrize("spelled", ["QUOTA.example", "https://quota.example/some/page", "quota.example:80"])
def test_a_host_may_be_spelled_as_people_do(folder: Path, spelled: str) -> None:
    assert called("why", spelled, "--out", str(folder)).code == 0


def test_as_json_it_is_one_object(folder: Path) -> None:
    told = json.loads(called("why", "quota.example", "--out", str(folder), "--json").out)

    assert (told["host"], told["state"], told["queued"], told["running"]) == ("quota.example", "throttled", 1200, True)
    assert 5 <= told["age"] < 65
    assert told["view"]["ceiling"] == 4.0
    assert "Not called now" in told["why"]


def test_an_unknown_host_gets_the_nearest_known(folder: Path) -> None:
    done = called("why", "qouta.example", "--out", str(folder))

    assert (done.code, done.out) == (1, "")
    assert "no host qouta.example is known; of the 2 hosts that are, nearest: quota.example, " in done.err


def test_before_anything_was_asked_there_is_nothing_near(tmp_path: Path) -> None:
    done = called("why", "quota.example", "--out", str(published(tmp_path / "out", pages())))

    assert done.code == 1
    assert "nothing was asked yet" in done.err


def test_without_a_folder_the_crawl_here_is_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)

    assert called("why", "quota.example").code == 0


def test_else_the_freshest_one_folder_down_that_knows_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published(tmp_path / "1-old", pages(THROTTLED), age=100)
    published(tmp_path / "2-new", pages(THROTTLED), age=10)
    published(tmp_path / "3-newest", pages(host("other.example")), age=1)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "status.json").write_text("{")
    monkeypatch.chdir(tmp_path)

    assert json.loads(called("why", "quota.example", "--json").out)["out"] == "2-new"


def polled(folder: Path, *, age: float = 5.0, **view: Any) -> Path:  # noqa: ANN401 - fields of the view
    folder.mkdir()
    held = msgspec.structs.replace(RACE, policy="contract", why="the operator's cadence stands", usual=None, **view)
    wall = SystemClock().wall() - age
    now = polling(hosts=(held,), wall=wall, pid=os.getpid(), problems=(), subscribers=())
    write_status(folder, now)
    return folder


def test_a_host_that_is_polled_says_that_its_cadence_is_a_contract(tmp_path: Path) -> None:
    folder = polled(tmp_path / "polling")

    said, as_json = (called("why", "race.example", "--out", str(folder), *flag).out for flag in ((), ("--json",)))

    assert said.startswith("race.example is going: 5.")
    assert f" ago, polled into {folder} (process {os.getpid()}).\n" in said
    assert (
        "Up to 20.0 requests a second: the operator's cadence stands. Policy contract: the operator's cadence" in said
    )
    assert "Race be0e8021 is live: asked for every 200 ms.\n" in said
    told = json.loads(as_json)
    assert (told["host"], told["state"], told["running"]) == ("race.example", "going", True)
    assert told["view"]["policy"] == "contract"


def test_a_host_that_is_crawled_says_that_its_pace_is_learned(folder: Path) -> None:
    said = called("why", "quota.example", "--out", str(folder)).out

    assert "Policy crawl: its pace is learned from refusals, latency and failures." in said


@pytest.mark.parametrize(("age", "policy"), [(1.0, "contract"), (500.0, "crawl")])
def test_of_a_host_that_is_both_crawled_and_polled_the_freshest_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age: float, policy: str
) -> None:
    published(tmp_path / "crawled", pages(host("race.example")), age=100)
    polled(tmp_path / "polled", age=age)
    monkeypatch.chdir(tmp_path)

    assert json.loads(called("why", "race.example", "--json").out)["view"]["policy"] == policy


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["quota.example"], "nothing was crawled or polled here or in the folders directly below; say --out DIR"),
        (["quota.example", "--out", "nothing"], "nothing was crawled or polled in nothing"),
        (["no host!", "--out", "out"], "host 'no host!'"),
        ([], "HOST"),
    ],
)
def test_bad_usage_says_what_to_do_and_exits_with_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    (tmp_path / "empty").mkdir()
    published(tmp_path / "empty" / "out" if "out" in arguments else tmp_path / "out", pages(THROTTLED))
    monkeypatch.chdir(tmp_path / "empty")

    done = called("why", *arguments)

    assert (done.code, done.out) == (2, "")
    assert says in done.err


def test_a_folder_of_what_asks_no_hosts_is_said_to_be_one(tmp_path: Path) -> None:
    write_status(tmp_path, EVENTS)

    done = called("why", "a.example", "--out", str(tmp_path))

    assert done.code == 2
    assert "its status.json is of events, which has no hosts to tell of" in done.err
