"""The demo of a crawl: a real process, at many times the usual speed, on a terminal and without one."""

import fcntl
import re
from pathlib import Path
from subprocess import PIPE

import pytest
from command_line import Done, called, commands, rows
from forked import Command
from terminals import interrupted

from sanderling.cli.demos.pages import ODD_HOSTS, ORDINARY_HOSTS, small_web
from sanderling.cli.demos.shell import MARK, mark_folder

PAGES = sum(ORDINARY_HOSTS.values()) + sum(pages for pages, _ in ODD_HOSTS.values())
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
LAST_WORDS = "# how the limiter learns"


def run(*arguments: str, cwd: Path) -> Done:
    with Command(["demo", "pages", *arguments], stdout=PIPE, stderr=PIPE, text=True, cwd=cwd) as process:
        out, err = process.communicate(timeout=300)
    return Done(process.returncode, out, err)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """Where it was run, and what came of it."""
    folder = tmp_path_factory.mktemp("demo")
    return folder, run("--speed", "8", cwd=folder)


def test_every_page_is_fetched_and_the_ledger_adds_up(told: tuple[Path, Done]) -> None:
    folder, done = told

    broken = 2 * (len(ORDINARY_HOSTS) + len(ODD_HOSTS))
    assert done.code == 0
    assert f"Fetched {PAGES} pages, " in done.out
    assert f"The ledger adds up: {PAGES + broken:,} known URLs = {PAGES} fetched + {broken} failed." in done.out
    assert len(rows(folder / "sanderling-demo-pages")) == PAGES


def test_it_says_what_became_of_the_three_odd_hosts(told: tuple[Path, Done]) -> None:
    out = told[1].out

    assert re.search(r"slow \(127\.0\.0\.1:\d+\) gets 4 requests a second done", out)
    assert re.search(r"throttling \(127\.0\.0\.1:\d+\) allows 4 requests a second, and says 429 to more", out)
    assert (found := re.search(r"failing .* was sent (\d+) requests? meanwhile; a pace of 8 .* sent 96\.", out))
    assert int(found[1]) < 30
    assert "all of its 70 pages are here" in out


def test_elsewhere_than_on_a_terminal_there_are_plain_lines(told: tuple[Path, Done]) -> None:
    out, err = told[1].out, told[1].err

    assert (out + err).isascii()
    assert "\x1b" not in out + err
    assert re.match(r"11 simulated hosts, each a port of this machine: nothing leaves it\.\n0:\d\d  ", err)
    assert re.search(r"  failing \(127\.0\.0\.1:\d+\): ", err)


def test_the_commands_to_try_next_work_as_they_stand(told: tuple[Path, Done], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, done = told
    monkeypatch.chdir(folder)
    failed, verify, why, *_ = (command[: command.index("#")] for command in commands(done.out))

    assert "not found (404" in called(*failed).out
    assert called(*verify).code == 0
    assert called(*why).out.startswith("127.0.0.1:")


def test_on_a_terminal_it_is_drawn_and_ctrl_c_ends_it_early(tmp_path: Path) -> None:
    done = interrupted("demo", "pages", "--speed", "8", at="\x1b[1;31mfailing", last=LAST_WORDS, cwd=tmp_path)

    assert (done.code, done.errors) == (130, b"")
    assert "library (127.0.0.1:" in done.text
    assert "━" in done.text
    assert "Ended early, with " in done.text
    assert done.text.rindex("\x1b[?25h") > done.text.rindex("\x1b[?25l"), "the cursor is given back"
    pictures = ESCAPES.sub("", done.text).partition("Ended early")[0].replace("\r", "\n").splitlines()
    assert max(map(len, pictures)) <= 80


@pytest.mark.parametrize("name", ["pages", "sequence", "repos", "polling", "events", "house"])
def test_a_folder_that_the_demo_did_not_make_is_left_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years")
    (tmp_path / MARK).write_text("a file of the same name")

    done = called("demo", name, "--out", str(tmp_path))

    assert (done.code, done.out) == (2, "")
    assert "was not made by this demo, so it is left alone; choose another --out" in done.err
    assert (tmp_path / "thesis.txt").read_text() == "years"


def test_a_folder_in_which_a_demo_is_running_is_left_alone(tmp_path: Path) -> None:
    home = tmp_path / "demo"
    mark_folder(home, "pages")
    lock = home / "lock"

    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = called("demo", "pages", "--out", str(home))

    assert (done.code, done.out) == (2, "")
    assert "another crawl is running" in done.err
    assert lock.exists()


def test_the_web_of_the_demo_is_small_and_the_same_each_time() -> None:
    world = small_web()

    assert sum(host.pages for host in world.hosts) == PAGES
    assert [host.page("/", {}) for host in world.hosts] == [host.page("/", {}) for host in small_web().hosts]
