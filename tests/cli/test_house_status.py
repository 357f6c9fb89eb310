"""`sanderling status`: all systems of a home, in words and as JSON, and whether all is well."""

import asyncio
import json
import time
from pathlib import Path

import pytest
from command_line import called
from known_reports import host, pages, sequence

from sanderling.cli.house_words import block, ended
from sanderling.cli.status import looked
from sanderling.clock import SystemClock
from sanderling.observe.report import AnyReport
from sanderling.stores.status_file import write_status
from sanderling.testing.clock import FakeClock

HOSTILE = "\x1b[31mred\u202e.example"


def put(folder: Path, status: AnyReport) -> None:
    folder.mkdir(parents=True)
    write_status(folder, status)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody writes a second status here, so there is nothing to wait for."""
    monkeypatch.setattr("sanderling.cli.status.PATIENCE", 0.0)


def test_those_that_run_come_first_with_what_they_do_and_what_moves_and_their_numbers(tmp_path: Path) -> None:
    now = time.time()
    put(tmp_path / "a", pages(wall=now, running=False))
    put(tmp_path / "ids", sequence(wall=now, started=now - 125, pid=4711))

    done = called("status", "--home", str(tmp_path))

    heading, _, title, doing, flow, numbers, _, ended = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert heading == f"{tmp_path}: 1 running, 1 ended"
    assert title == "ids (sequence): running for 2 min 5 s, process 4711"
    assert "catching up, 5,500 ids behind; 50 workers" in doing
    assert "7 waiting" in flow
    assert "lag 2 min" in numbers
    assert "workers 50" in numbers
    assert ended.startswith("a (pages): ended a moment ago; ended with 60 pages, 30 URLs left")


def test_trouble_of_one_that_runs_is_said_and_is_the_exit_code(tmp_path: Path) -> None:
    failing = host("b.example", state="open", trouble="TIMEOUT")
    put(tmp_path / "pages", pages(failing, wall=time.time(), started=time.time()))

    done = called("status", "--home", str(tmp_path))

    assert done.code == 1
    assert "1 in trouble" in done.out
    assert "  trouble  b.example: TIMEOUT" in done.out


def test_trouble_of_one_that_ended_is_no_trouble_any_more(tmp_path: Path) -> None:
    put(tmp_path / "pages", pages(host(state="open", trouble="TIMEOUT"), wall=time.time(), running=False))

    assert called("status", "--home", str(tmp_path)).code == 0


def test_one_that_fell_silent_is_in_trouble(tmp_path: Path) -> None:
    put(tmp_path / "pages", pages(wall=time.time() - 200))

    done = called("status", "--home", str(tmp_path))

    assert done.code == 1
    assert "pages: silent for 3 min 20 s; silent; it was: asking" in done.out


def test_an_empty_home_says_what_to_run_next(tmp_path: Path) -> None:
    done = called("status", "--home", str(tmp_path))

    assert (done.code, done.out) == (2, "")
    assert f"nothing has run in {tmp_path} yet" in done.err
    assert f"    sanderling demo sequence --home {tmp_path}\n" in done.err


def test_a_home_that_is_not_there_is_said_to_be_none(tmp_path: Path) -> None:
    assert f"there is no folder {tmp_path / 'x'}" in called("status", "--home", str(tmp_path / "x")).err


def test_the_home_may_be_this_folder_or_that_of_the_environment_and_a_flag_counts_for_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "here" / "pages", pages(wall=time.time(), running=False))
    put(tmp_path / "there" / "ids", sequence(wall=time.time(), running=False))
    monkeypatch.chdir(tmp_path / "here")

    assert "pages: ended" in called("status").out
    monkeypatch.setenv("SANDERLING_HOME", str(tmp_path / "there"))
    assert "ids (sequence): ended" in called("status").out
    assert "pages: ended" in called("status", "--home", str(tmp_path / "here")).out


def test_machines_get_the_house(tmp_path: Path) -> None:
    put(tmp_path / "pages", pages(host(), wall=time.time(), started=time.time() - 5))

    done = called("status", "--home", str(tmp_path), "--json")

    house = json.loads(done.out)
    (system,) = house["systems"]
    assert (done.code, done.err) == (0, "")
    assert (house["home"], house["secured"]) == (tmp_path.name, False)
    assert (system["name"], system["system"], system["running"]) == ("pages", "pages", True)
    assert system["facts"]["counts"]["fetched"] == 60
    assert system["history"]["waiting"] == [30]


def test_machines_get_an_empty_house_too(tmp_path: Path) -> None:
    done = called("status", "--home", str(tmp_path), "--json")

    assert (done.code, json.loads(done.out)["systems"]) == (2, [])


def test_what_strangers_wrote_cannot_move_the_cursor(tmp_path: Path) -> None:
    put(tmp_path / "pages", pages(host(HOSTILE, state="open", trouble=HOSTILE), wall=time.time()))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "status.json").write_text(json.dumps({"system": HOSTILE, "wall": 1}))

    done = called("status", "--home", str(tmp_path))

    assert done.out.replace("\n", "").isprintable()
    assert "its status cannot be read" in done.out
    seen = asyncio.run(looked(tmp_path, SystemClock())).seen
    broken, crawl = (next(each for each in seen.systems if each.name == name) for name in ("broken", "pages"))
    assert "".join(block(crawl, seen.wall)).isprintable()
    assert ended(broken, seen.found["broken"], seen.wall).isprintable()


def test_it_looks_until_each_that_runs_has_spoken_again_and_so_has_rates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sanderling.cli.status.PATIENCE", 3.0)
    wall = time.time()
    put(tmp_path / "pages", pages(wall=wall, started=wall - 9, counts={"fetched": 60}))

    class Writing(FakeClock):
        """While somebody sleeps, the crawl goes on: 20 pages within 2 s."""

        async def sleep(self, seconds: float) -> None:
            if self.now() == 0:
                write_status(tmp_path / "pages", pages(wall=wall + 2, started=wall - 9, counts={"fetched": 80}))
            self.advance(seconds)

    clock = Writing(wall=wall)

    live = asyncio.run(looked(tmp_path, clock))

    (system,) = live.seen.systems
    assert (system.flow.kept, clock.now() < 1) == (10.0, True)
