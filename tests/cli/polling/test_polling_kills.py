"""kill -9 in the middle of a race: no change is lost, no number is there twice, and whoever listens hears all of it."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import aiohttp
import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker
from aiohttp import web
from command_line import finish, run, start
from forked import Forked as Process
from polling_commands import OFTEN, Server, database, flags, over, proven, served, until
from services.process import free_ports

from sanderling.worlds.race_day import DayRules

DAY = DayRules(pilots=6, late=0, removed=0, rounds=1, aborted=0, first=0.5, heat=7.0, pause=5.0, lap=0.6)
SCHEMA = f"polling_kills_{os.getpid()}"


class Listeners:
    """One who follows the stream and comes back with Last-Event-ID, and one who is posted to."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.heard: list[tuple[int, str]] = []  # by the one: number and change, as they came
        self.came_back = 0
        self.posted: dict[int, str] = {}  # to the other
        self.posts = 0

    async def follow(self) -> None:
        """Follow until cancelled."""
        last = ""
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while True:
                headers = {"Last-Event-ID": last} if last else {}
                try:
                    async with session.get(f"http://127.0.0.1:{self.port}/events?since=0", headers=headers) as stream:
                        self.came_back += bool(last)
                        last = await self._hear(stream, last)
                except aiohttp.ClientError:
                    await asyncio.sleep(0.05)

    async def _hear(self, stream: aiohttp.ClientResponse, last: str) -> str:
        """The position when the stream was cut; an event that is cut is none."""
        lines: list[str] = []
        try:
            async for raw in stream.content:
                line = raw.decode().rstrip("\n")
                if line:
                    lines.append(line)
                    continue
                fields = dict(each.split(": ", 1) for each in lines if not each.startswith(":"))
                assert fields.get("event", "change") == "change", fields
                last = fields.get("id", last)
                if "data" in fields:
                    self.heard.append((int(last), fields["data"]))
                lines = []
        except aiohttp.ClientError:
            pass  # it was killed
        return last

    async def post(self, request: web.Request) -> web.Response:
        """Take what is posted."""
        body = json.loads(await request.read())
        self.posts += 1
        for change in body["changes"]:
            said = json.dumps(change, sort_keys=True)
            assert self.posted.setdefault(change["seq"], said) == said, "the same number is the same change"
        return web.Response(status=204)


@asynccontextmanager
async def listening(folder: Path) -> AsyncIterator[tuple[Listeners, list[str]]]:
    """Both of them, and the flags with which they are told."""
    port, hook = free_ports(2)
    listeners = Listeners(port)
    app = web.Application()
    app.router.add_post("/hook", listeners.post)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", hook).start()
        (folder / "hook").write_text(f"http://127.0.0.1:{hook}/hook")
        async with asyncio.TaskGroup() as group:
            following = group.create_task(listeners.follow())
            yield listeners, ["--port", str(port), "@webhook-file", str(folder / "hook")]
            following.cancel()
    finally:
        await runner.cleanup()


async def killed_soon(process: Process, server: Server, rng: Random) -> int | None:
    """Kill it in the middle of the race, somewhere in a write, or between two."""
    end = server.now + rng.uniform(0.4, 0.9)
    await until(lambda: server.now > end)
    await asyncio.sleep(rng.random() * 0.2)
    process.kill()
    await process.communicate()
    return process.returncode


async def killed_again_and_again(folder: Path, seed: int, kills: int, url: str = "") -> None:
    """Poll a race under a hail of kills, and compare."""
    rng = Random(seed)
    at = ("--database", url) if url else ()
    async with served(DAY) as server, listening(folder) as (listeners, told):
        command = ("polling", "run", *flags(folder, server), *OFTEN, *told, *at, "--json")
        codes = [await killed_soon(await start(*command), server, rng) for _ in range(kills)]
        assert server.now < DAY.first + DAY.heat, "all in the middle of it"
        process = await start(*command)
        await over(server)
        async with database(folder, url) as store:
            newest = (await store.span()).newest
            await until(lambda: len(listeners.heard) >= newest and len(listeners.posted) >= newest)
            process.terminate()
            done = await finish(process)
            changes = await proven(store, server)

        assert (codes, done.code) == ([-9] * kills, 0), done.err
        assert any(change.table == "laps" for change in changes)
        numbers = [change.seq for change in changes]
        assert [number for number, _ in listeners.heard] == numbers, "each once, in order"
        assert [json.loads(said)["key"] for _, said in listeners.heard] == [change.key for change in changes]
        assert sorted(listeners.posted) == numbers, "each at least once"
        assert listeners.came_back >= kills


def test_no_change_is_lost_and_all_are_told_however_often_it_is_killed(tmp_path: Path) -> None:
    run(lambda: killed_again_and_again(tmp_path, 1, kills=3))


async def dropped(url: str) -> None:
    db = await asyncpg.connect(url)
    try:
        await db.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
    finally:
        await db.close()


def test_the_same_holds_in_a_database_server(tmp_path: Path, postgres: str) -> None:
    async def main() -> None:
        await dropped(postgres)
        mark = "&" if "?" in postgres else "?"
        try:
            await killed_again_and_again(tmp_path, 2, kills=1, url=f"{postgres}{mark}schema={SCHEMA}")
        finally:
            await dropped(postgres)

    run(main)
