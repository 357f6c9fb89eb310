"""The real command of every system is told to stop, to drain, or is killed meanwhile, and is then started again."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import fleet_commands
import pytest
from aiohttp import web
from command_line import Done, here, rows, run, running, sanderling, start

from sanderling.stores.control_file import Control, read_control

Wish = Literal["stop", "drain"]
PAGES, IDS = 10, 40
SOON = 300.0  # seconds in which a process has to end: the machine may be busy


@dataclass(slots=True)
class Upstream:
    """A site, an API of ids and an API of scores at one address."""

    url: str = ""
    asked: int = 0

    async def answer(self, request: web.Request) -> web.Response:  # noqa: PLR0911 - a table
        self.asked += 1
        match request.path.split("/")[1:]:
            case [""]:
                return self.page([f"/first/{number}" for number in range(PAGES)])
            case ["first", number]:
                return self.page([f"/second/{number}"])
            case ["second", _]:
                return self.page([])
            case ["ids", number] if 1 <= int(number) <= IDS:
                return web.json_response({"id": int(number), "created": f"2026-01-01T00:00:{int(number) % 60:02}Z"})
            case ["scores", "now"]:
                return web.json_response({"current": {"id": "cup"}})
            case ["scores", "cup", "matches"]:
                return web.json_response({"matches": ["1", "2"]})
            case ["scores", "cup", "match", number]:
                return web.json_response({"id": number, "state": "over", "goals": self.asked})
        return web.Response(status=404)

    def page(self, links: list[str]) -> web.Response:
        anchors = "".join(f'<p><a href="{link}">{link}</a></p>' for link in links)
        text = f"<html><title>A page</title><body>{anchors}</body></html>"
        return web.Response(text=text, content_type="text/html")


@asynccontextmanager
async def served() -> AsyncIterator[Upstream]:
    upstream, app = Upstream(), web.Application()
    app.router.add_route("GET", "/{path:.*}", upstream.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    upstream.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield upstream
    finally:
        await runner.cleanup()


@dataclass(frozen=True, slots=True)
class System:
    """A system that is under way: its folder and command, how much it has asked, and what must be there at the end."""

    folder: Path
    command: list[str]
    asked: Callable[[], int]
    whole: Callable[[], Awaitable[bool]]  # whether all is there, and once
    last: list[str] | None = None  # another command that goes on, and ends
    codes: tuple[int, ...] = (0,)  # of one that was told to stop
    drained: tuple[int, ...] = (0, 3)  # and of one that was told to drain


@asynccontextmanager
async def pages(tmp_path: Path) -> AsyncIterator[System]:
    out = tmp_path / "out"
    async with served() as upstream:

        async def whole() -> bool:
            urls = sorted(row["url"] for row in rows(out))
            others = [f"/{kind}/{number}" for kind in ("first", "second") for number in range(PAGES)]
            proof = await here("verify", str(out))
            return urls == sorted(upstream.url + path for path in ("/", *others)) and proof.code == 0

        command = ["pages", "crawl", f"{upstream.url}/", "--out", str(out), "--private", "--no-parquet"]
        yield System(out, command, lambda: upstream.asked, whole, codes=(130,))


@asynccontextmanager
async def sequence(tmp_path: Path) -> AsyncIterator[System]:
    out = tmp_path / "out"
    async with served() as upstream:

        async def whole() -> bool:
            with closing(sqlite3.connect(out / "rows.db")) as db:
                found = db.execute("SELECT instance_id FROM instance UNION SELECT id FROM record ORDER BY 1").fetchall()
            return [number for (number,) in found] == list(range(1, IDS + 1))

        api = ("--url", f"{upstream.url}/ids/{{id}}", "--id-path", "id", "@timestamp", "created", "--private")
        pace = ("--begin", "1", "--until", str(IDS), "--rps", "10")
        command = ["sequence", "crawl", *api, *pace, "--out", str(out)]
        yield System(out, command, lambda: upstream.asked, whole, drained=(3,))


@asynccontextmanager
async def repos(tmp_path: Path) -> AsyncIterator[System]:
    async with fleet_commands.served() as fleet:
        command = ["repos", "crawl", *fleet_commands.flags(tmp_path, fleet), "@page-size", "4"]
        out = tmp_path / "out"

        async def whole() -> bool:
            return fleet_commands.archived(out) == fleet_commands.live(fleet.fleet)

        yield System(out, command, lambda: sum(each.asked for each in fleet.tallies.values()), whole, codes=(130,))


SOURCE = """[source]
name = "scores"
event_url = "{url}/scores/now"
event = "current.id"

[source.kinds.match]
url = "{url}/scores/{{event}}/match/{{id}}"
ids_url = "{url}/scores/{{event}}/matches"
ids = "matches"
items = "."
id = "id"
seconds = 1.0
"""


@asynccontextmanager
async def polling(tmp_path: Path) -> AsyncIterator[System]:
    out, source = tmp_path / "out", tmp_path / "source.toml"
    async with served() as upstream:
        source.write_text(SOURCE.format(url=upstream.url))

        async def whole() -> bool:
            targets = await here("polling", "targets", "--json", "--out", str(out))
            return targets.code == 0 and len(json.loads(targets.out.splitlines()[-1])) > 0

        flags = ["--out", str(out), "--source", str(source), "--private"]
        last = ["polling", "run", "--once", *flags]
        yield System(out, ["polling", "run", *flags], lambda: upstream.asked, whole, last)


@asynccontextmanager
async def events(tmp_path: Path) -> AsyncIterator[System]:
    out = tmp_path / "out"
    made = await sanderling("world", "social", "--batches", "40", "--json", "--out", str(out))
    expected = json.loads(made.out)

    def count(table: str) -> int:
        try:
            with closing(sqlite3.connect(out / "events.db")) as db:
                ((number,),) = db.execute(f"SELECT count(*) FROM {table}")  # noqa: S608 - ours
        except sqlite3.OperationalError:
            return 0
        return int(number)

    async def whole() -> bool:
        return (count("post_analytics"), count("crawl_errors")) == (expected["posts"], expected["errors"])

    command = ["events", "consume", "--out", str(out), "--batches", "1"]
    yield System(out, command, lambda: count("post_analytics"), whole, [*command, "--drain"])


JOB = """
from sanderling import Job, Request

job = Job("numbers", start="{url}/ids/1")


@job.read
def number(reply):
    found = reply.json()
    yield found
    for following in (2 * found["id"], 2 * found["id"] + 1):
        if following <= {ids}:
            yield Request(f"/ids/{{following}}", read="number")
"""


@asynccontextmanager
async def jobs(tmp_path: Path) -> AsyncIterator[System]:
    out, file = tmp_path / "out", tmp_path / "numbers.py"
    async with served() as upstream:
        file.write_text(JOB.format(url=upstream.url, ids=IDS))

        async def whole() -> bool:
            return sorted(row["id"] for row in rows(out, "records.jsonl")) == list(range(1, IDS + 1))

        command = ["run", str(file), "--out", str(out), "--private"]
        yield System(out, command, lambda: upstream.asked, whole, codes=(130,))


SYSTEMS = {"pages": pages, "sequence": sequence, "repos": repos, "polling": polling, "events": events, "jobs": jobs}


async def under_way(system: System) -> None:
    """Return when it has begun: by what its upstream sees, not by the clock."""
    async with asyncio.timeout(SOON):
        before = system.asked()
        while system.asked() < before + 3 or not (system.folder / "status.json").exists():  # noqa: ASYNC110 - a number
            await asyncio.sleep(0.02)


async def told(system: System, wish: Wish, *, kill: bool) -> Done:
    """Start it, say it, and wait for the end."""
    async with running(*system.command) as process:
        await under_way(system)
        said = await here("control", str(system.folder), wish)
        assert said.code == 0, said.err
        if kill:
            process.kill()
        async with asyncio.timeout(SOON):
            out, err = await process.communicate()
        assert process.returncode is not None
        return Done(process.returncode, out.decode(), err.decode())


@pytest.mark.parametrize(("wish", "kill"), [("stop", False), ("drain", False), ("drain", True)])
@pytest.mark.parametrize("name", SYSTEMS)
def test_one_that_is_told_to_end_ends_and_the_next_goes_on(
    tmp_path: Path,
    name: str,
    wish: Wish,
    kill: bool,  # noqa: FBT001
) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            system = await stack.enter_async_context(SYSTEMS[name](tmp_path))
            ended = await told(system, wish, kill=kill)
            left = read_control(system.folder)
            again = await here(*(system.last or system.command))

            codes = (-9,) if kill else system.drained if wish == "drain" else system.codes
            assert ended.code in codes, ended.err
            assert left.ending == wish
            assert again.code == 0, again.err
            assert f"an earlier process was told to {wish}; that is over" in again.err
            assert read_control(system.folder) == Control()
            assert await system.whole()

    run(main)


def test_a_pause_outlives_the_process_and_the_stop_does_not(tmp_path: Path) -> None:
    async def main() -> None:
        async with pages(tmp_path) as system:
            async with running(*system.command):
                await under_way(system)
                await here("control", str(system.folder), "pause")
            await here("control", str(system.folder), "stop")
            process = await start(*system.command)
            before = system.asked()
            await asyncio.sleep(3.0)  # more than a start and a look take
            during = system.asked()
            await here("control", str(system.folder), "resume")
            async with asyncio.timeout(SOON):
                _, err = await process.communicate()

            assert (during, process.returncode) == (before, 0)
            assert f"sanderling control {system.folder} resume" in err.decode()
            assert await system.whole()

    run(main)


@pytest.mark.parametrize("name", SYSTEMS)
def test_one_without_room_on_its_disk_says_so_and_goes_on_when_there_is_room(tmp_path: Path, name: str) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            system = await stack.enter_async_context(SYSTEMS[name](tmp_path))
            ballast, status = system.folder / "ballast", system.folder / "status.json"
            if name not in NEW_FOLDER:
                fill(ballast)
            process = await stack.enter_async_context(running(*system.command, "--max-disk", "20MB"))
            await until(status.exists)
            if name in NEW_FOLDER:
                fill(ballast)
            await until(lambda: disk_trouble(status))
            trouble, before = disk_trouble(status), system.asked()
            seen = await here("status", "--home", str(tmp_path), "--json")
            shown = await here("status", str(system.folder))
            ballast.unlink()
            await until(lambda: not disk_trouble(status) and system.asked() > before)
            process.kill()
            _, err = await process.communicate()

            assert trouble == f"{system.folder} has the 21.0 MB that --max-disk allows: make room there, or allow more"
            assert name in NEW_FOLDER or before == 0
            (found,) = json.loads(seen.out)["systems"]
            assert (seen.code, found["paused"], found["troubles"][0]) == (1, True, trouble)
            assert f"trouble  {trouble}" in shown.out
            assert f"paused: {trouble}" in err.decode()
            assert "the disk has room again" in err.decode()

    run(main)


NEW_FOLDER = ("pages", "jobs")  # that begin in no folder with the files of others


def fill(ballast: Path) -> None:
    ballast.parent.mkdir(exist_ok=True)
    ballast.write_bytes(bytes(20 << 20))


def disk_trouble(status: Path) -> str:
    found = json.loads(status.read_text())["troubles"]
    return next((str(each["text"]) for each in found if "--max-disk" in each["text"]), "")


async def until(seen: Callable[[], object]) -> None:
    async with asyncio.timeout(SOON):
        while not seen():  # noqa: ASYNC110 - what another process writes
            await asyncio.sleep(0.05)
