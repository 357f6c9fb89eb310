"""`sanderling dashboard` as a process of its own, the dashboard beside another command, and what the manual says."""

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from command_line import called, finish, running
from forked import Forked
from known_reports import host, pages
from looping import in_loop

from sanderling.cli.command_error import CommandError
from sanderling.cli.dashboard import dashboard_beside
from sanderling.clock import SystemClock
from sanderling.stores.control_file import read_control
from sanderling.stores.status_file import write_status
from sanderling.web.access import VARIABLE
from sanderling.web.house_actions import TAKES

MANUAL = (Path(__file__).parents[2] / "docs" / "dashboard.md").read_text()
TOKEN = "a-token-of-enough-characters"  # noqa: S105 - it opens nothing


def a_crawl(home: Path) -> Path:
    """One that has said something by a clock that is ahead: it runs for this hour."""
    folder, ahead = home / "crawl", SystemClock().wall() + 3600
    folder.mkdir()
    write_status(folder, pages(host(), process={"wall": ahead}))
    os.utime(folder / "status.json", (ahead, ahead))
    return folder


@asynccontextmanager
async def served(*flags: str) -> AsyncIterator[tuple[str, Forked]]:
    """The address of a dashboard that runs, as it prints it."""
    async with running("dashboard", "--port", "0", *flags) as process:
        assert process.stdout is not None
        async with asyncio.timeout(300):
            address = (await process.stdout.readline()).decode().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", address), await finish(process)
        yield address, process


async def get(session: ClientSession, url: str, expected: int = 200) -> Any:  # noqa: ANN401 - JSON
    async with session.get(url) as answer:
        assert answer.status == expected, await answer.text()
        return await answer.json(content_type=None)


@in_loop
async def test_it_serves_a_home_and_does_what_people_want_until_it_is_interrupted(tmp_path: Path) -> None:
    folder = a_crawl(tmp_path)
    async with served("--home", str(tmp_path)) as (address, process), ClientSession() as session:
        house = await get(session, f"{address}/api/house")
        word = (await get(session, f"{address}/api/session"))["csrf"]
        body = {"action": "pause_host", "system": "crawl", "host": "a.example"}
        async with session.post(f"{address}/api/actions", json=body, headers={"X-CSRF-Token": word}) as answer:
            done = await answer.json()
        process.send_signal(signal.SIGINT)
        ended = await finish(process)

    assert [(each["name"], each["running"]) for each in house["systems"]] == [("crawl", True)]
    assert done == {"done": "a.example is left alone by crawl"}
    assert read_control(folder).hosts == {"a.example"}
    assert (ended.code, ended.out) == (130, "")
    assert ended.err == f"dashboard of {tmp_path}; Ctrl-C ends it\n"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--home", "nowhere"), "--home: nowhere is no folder"),
        (("--bind", "0.0.0.0"), "bind: 0.0.0.0 can be reached from other machines and there is no token"),  # noqa: S104
        (("--token-file", "nowhere"), "sanderling: the token's file nowhere: No such file or directory"),
        (("--port", "70000"), 'Invalid value "70000" for --port'),
    ],
)
def test_what_is_called_wrongly_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)

    done = called("dashboard", *flags)

    assert done.code == 2
    assert said in done.err


# Beside another command.


@in_loop
async def test_beside_a_command_it_is_there_while_the_block_runs(tmp_path: Path) -> None:
    a_crawl(tmp_path)
    said: list[str] = []
    async with (
        asyncio.timeout(300),
        ClientSession() as session,
        dashboard_beside(0, tmp_path, say=said.append) as address,
    ):
        house = await get(session, f"{address}/api/house")

    assert said == [f"dashboard: {address}"]
    assert len(house["systems"]) == 1


@in_loop
async def test_with_a_token_in_a_file_only_its_holder_is_served(tmp_path: Path) -> None:
    a_crawl(tmp_path)
    (tmp_path / "ops.token").write_text(f"{TOKEN}\n")
    async with (
        asyncio.timeout(300),
        ClientSession() as session,
        dashboard_beside(0, tmp_path, token_file=tmp_path / "ops.token") as address,
    ):
        await get(session, f"{address}/api/house", 401)
        session.headers["Authorization"] = f"Bearer {TOKEN}"
        async with session.post(f"{address}/api/actions", json={"action": "pause", "system": "crawl"}) as answer:
            assert answer.status == 200
        (entry,) = await get(session, f"{address}/api/audit")

    assert (entry["who"], entry["done"]) == ("the token in ops.token", True)


@in_loop
async def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    async with dashboard_beside(0, tmp_path) as address:
        assert address is not None
        port = int(address.rpartition(":")[2])
        with pytest.raises(CommandError, match=f"--dashboard: port {port} of 127.0.0.1: Address already in use"):
            async with dashboard_beside(port, tmp_path):
                pass


@in_loop
async def test_nothing_is_served_without_a_port(tmp_path: Path) -> None:
    said: list[str] = []
    async with dashboard_beside(None, tmp_path, say=said.append) as address:
        pass

    assert (address, said) == (None, [])


@in_loop
async def test_the_errors_of_the_command_come_out_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="mine"):
        async with dashboard_beside(0, tmp_path):
            raise CommandError("mine", code=7)

    with pytest.raises(CommandError, match="--dashboard: port is 70000") as wrong:
        async with dashboard_beside(70_000, tmp_path):
            pass
    assert wrong.value.code == 2


@in_loop
async def test_a_home_that_goes_away_ends_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    a_crawl(home)
    async with asyncio.timeout(300), ClientSession() as session, dashboard_beside(0, home) as address:
        home.rename(tmp_path / "moved")
        while (await get(session, f"{address}/api/house"))["systems"]:  # noqa: ASYNC110 - over HTTP
            await asyncio.sleep(0.05)


@in_loop
async def test_it_is_quick_to_help() -> None:
    """What the dashboard needs is not imported by commands that do not serve it."""
    script = "import sys, sanderling.cli; print([name for name in sys.modules if 'sanderling.web' in name])"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stdout=PIPE, env=dict(os.environ))

    assert (await finish_output(process)).strip() == "[]"


async def finish_output(process: asyncio.subprocess.Process) -> str:
    async with asyncio.timeout(300):
        out, _ = await process.communicate()
    return out.decode()


# The manual.


def rows(heading: str) -> list[list[str]]:
    """The cells of a section's tables, without the backticks, and without the heads."""
    text = MANUAL.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip().replace("`", "") for cell in line.strip("|").split("|")] for line in lines]


def test_the_flags_of_the_manual_are_those_it_takes() -> None:
    shown = set(re.findall(r"--[a-z][a-z-]+", called("dashboard", "--help").out.partition("Parameters")[2]))

    assert {row[0] for row in rows("Start it")} == shown | {"--help"}


def test_the_actions_of_the_manual_are_those_there_are() -> None:
    documented = {row[0]: (set(re.findall(r"\w+", row[1].replace("or", ""))), row[2]) for row in rows("Actions")}

    known = {verb: (set(fields), ", ".join(systems) or "all") for verb, (fields, systems) in TAKES.items()}
    assert documented == known


def test_the_record_of_the_manual_is_that_which_is_written() -> None:
    assert [row[0] for row in rows("The record")] == ["at", "who", "from", "action", "system", "what", "done", "why"]
