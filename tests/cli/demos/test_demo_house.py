"""All five systems at once, as real processes; only the time is made for tests."""

import asyncio
import json
import os
import signal
import socket
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from command_line import called, commands, finish, run, running

from sanderling.cli.config.settings import known
from sanderling.cli.demos.house_children import environment
from sanderling.cli.demos.house_report import HouseProof, HouseReport, prove
from sanderling.cli.demos.house_worlds import ORDER, PROJECT, HousePublisher
from sanderling.cli.everywhere import ABOUT
from sanderling.clock import SystemClock
from sanderling.stores.status_file import FILE

T = TypeVar("T")

PROOF = HouseProof(complete=True, pages=3, reports=2, posts=5, lost=0, strangers=0, twice=0)

# Begins two commands and waits to be killed.
PARENT = """
import asyncio, sys
from pathlib import Path
from sanderling.cli.demos.house_children import children_in

async def main():
    async with children_in(Path(sys.argv[1])) as children:
        for name in ("one", "two"):
            await children.begin(name, ["world", "race"])
        print(*(child.process.pid for child in children.all), flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


def told_of(home: Path) -> dict[int, str]:
    """The processes that were told of a folder and still run, by their ids."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if str(home) in line and int(path.parent.name) != os.getpid():
                found[int(path.parent.name)] = line
    return found


async def until(so: Callable[[], T]) -> T:
    """What comes of asking, once that is something."""
    async with asyncio.timeout(300):
        while not (found := so()):  # noqa: ASYNC110 - another process tells nobody
            await asyncio.sleep(0.05)
    return found


def test_all_five_work_and_nothing_is_lost_between_them(tmp_path: Path) -> None:
    home = tmp_path / "house"

    async def main() -> None:
        # From elsewhere, and set up for something else: what is set is not for a demo.
        (tmp_path / "sanderling.toml").write_text('[repos]\nsegment-size = "nonsense"\n')
        flags = ("--out", str(home), "--seconds", "3", "--port", "0", "--json", "--config", "none")
        async with running("demo", "house", *flags) as process:
            done = await finish(process)
        assert (done.code, done.err) == (0, "")
        found = json.loads(done.out)
        assert found["ok"]
        assert set(found["systems"]) == set(ORDER)
        proof = found["proof"]
        assert proof == {**proof, "complete": True, "lost": 0, "strangers": 0, "twice": 0}
        assert min(proof["pages"], proof["posts"]) > 0
        statuses = {name: json.loads((home / name / FILE).read_bytes()) for name in ORDER}
        assert [status["process"]["running"] for status in statuses.values()] == [False] * 5
        assert statuses["repos"]["facts"]["records"] > 0
        assert statuses["polling"]["facts"]["runs"]
        assert sum(statuses["sequence"]["facts"]["answers"].values()) > 0
        assert told_of(home) == {}

    run(main)


def test_it_says_who_died_and_takes_the_others_along(tmp_path: Path) -> None:
    home = tmp_path / "house"

    async def main() -> None:
        async with running("demo", "house", "--out", str(home), "--port", "0") as process:
            found = await until(lambda: [pid for pid, line in told_of(home).items() if "polling run" in line])
            os.kill(found[0], signal.SIGKILL)
            done = await finish(process)
        assert done.code == 1
        assert "polling ended early; it said:" in done.err
        assert f"All of it is in {home}/logs/polling.txt" in done.err
        assert "In a browser: http://127.0.0.1:" in done.out
        assert told_of(home) == {}

    run(main)


def test_ctrl_c_ends_all_of_it(tmp_path: Path) -> None:
    home = tmp_path / "house"

    async def main() -> None:
        async with running("demo", "house", "--out", str(home), "--port", "0") as process:
            await until((home / "logs" / "polling.txt").is_file)
            process.send_signal(signal.SIGINT)
            done = await finish(process)
        assert done.code == 130, done.err
        assert "Ended early: of the rows that events has, none are there twice, and no others are there." in " ".join(
            done.out.split()
        )
        assert told_of(home) == {}

    run(main)


def test_no_command_outlives_whoever_began_it(tmp_path: Path) -> None:
    async def main() -> None:
        command = (sys.executable, "-c", PARENT, str(tmp_path))
        parent = await asyncio.create_subprocess_exec(*command, stdout=PIPE)
        assert parent.stdout is not None
        async with asyncio.timeout(300):
            children = [Path("/proc", pid) for pid in (await parent.stdout.readline()).decode().split()]
            parent.kill()
            await parent.wait()
        await until(lambda: not any(map(_runs, children)))
        assert len(children) == 2

    run(main)


def _runs(process: Path) -> bool:
    try:
        return process.joinpath("stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_port_that_was_asked_for_must_be_free(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = called("demo", "house", "--out", str(tmp_path / "house"), "--port", str(taken.getsockname()[1]))

    assert done.code == 2
    assert done.err.startswith("sanderling: --port: ")


def test_what_sets_up_commands_is_not_handed_to_them() -> None:
    ours = {"PATH": "/bin", "SANDERLING_EVENTS_DATABASE": "postgresql://db/", "SEGMENT_SIZE": "1", "OUTPUT_DIR": "x"}

    assert environment(ours) == {"PATH": "/bin"}


# Proof and words.


@pytest.mark.parametrize("change", [{"lost": 1}, {"strangers": 1}, {"twice": 1}])
def test_what_is_not_right_is_not_called_right(change: dict[str, Any]) -> None:
    assert PROOF.ok
    assert not replace(PROOF, **change).ok


def test_what_was_ended_early_may_lack_something() -> None:
    assert replace(PROOF, complete=False, lost=1).ok
    assert not replace(PROOF, complete=False, twice=1).ok


def test_pages_that_events_does_not_have_are_lost(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    row = {"url": "http://a.example/", "outcome": "OK", "fetched_at": "2026-01-01T00:00:00Z", "text": "tide"}
    failed = {**row, "url": "http://a.example/gone", "outcome": "TIMEOUT"}
    (tmp_path / "pages" / "pages.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in (row, failed)))

    proof = prove(tmp_path, HousePublisher(tmp_path, SystemClock()), complete=True)

    assert (proof.pages, proof.lost, proof.ok) == (1, 1, False)


def test_the_commands_to_try_next_are_ours() -> None:
    said = list(HouseReport(Path("sanderling-demo"), {}, PROOF, {}).lines())
    shown = [line for line in said if line.startswith("    sanderling")]
    asked = commands("\n".join(line.partition("  #")[0] for line in shown))

    assert len(asked) == len(shown) == 9
    assert {words[0] for words in asked} >= set(ORDER)
    for words in asked:
        names = [word for word in words if not word.startswith("-")]
        # Some are groups of commands, and after the command comes what it is about.
        tables = {*known().commands, *((name,) for name in ABOUT)}
        command = next(name for n in (3, 2, 1) if (name := tuple(names[:n])) in tables)
        settings = known().commands.get(command, {})
        assert {word.removeprefix("--") for word in words if word.startswith("--")} <= {
            *settings,
            *("home", "relay", "seconds"),  # no settings
        }
    assert max(map(len, shown)) <= 110
    assert PROJECT not in "\n".join(said)
