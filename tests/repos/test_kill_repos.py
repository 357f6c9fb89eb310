"""kill -9 of the real command, again and again, on real sockets: every live repo is archived once, nothing is lost.

SANDERLING_SOAK=1 makes it long: a fleet of two thousand repos with every kind of host, and twenty kills.
"""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from fleet_crawl import archived
from forked import with_settings
from services.process import Missing, private_folder
from services.redis import REDIS

from sanderling.apis.atproto import AtprotoCategory
from sanderling.clock import SystemClock
from sanderling.stores.ports import ProgressView
from sanderling.stores.redis_progress import RedisProgress
from sanderling.stores.sqlite_progress import SqliteProgress
from sanderling.worlds.pds import ALL, Fleet, FleetServer

CATEGORIES = [category.value for category in AtprotoCategory]


@dataclass(frozen=True, slots=True)
class Play:
    """How large the fleet is, and how often the crawl is killed."""

    hosts: int
    repos: int
    others: tuple[str, ...]
    kills: int
    between: int  # requests from a start to its kill, at most
    seconds: float  # for one run


SHORT = Play(hosts=24, repos=64, others=("gone", "leading"), kills=3, between=12, seconds=60)
LONG = Play(hosts=20, repos=2000, others=ALL, kills=20, between=150, seconds=1800)
SOAK = "SANDERLING_SOAK" in os.environ
PLAY = LONG if SOAK else SHORT

Look = Callable[[], ProgressView]


@pytest.fixture(params=["sqlite", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[list[str], Look]]:
    """The flags that choose the store of the progress, and how to look into it."""
    if request.param == "sqlite":

        def look() -> ProgressView:
            with closing(SqliteProgress(tmp_path / "out" / "progress.db")) as progress:
                return progress.view()

        yield [], look
        return
    # One of our own: the keys are those of any crawl, and a server that was found may hold somebody's.
    with private_folder() as folder:
        try:
            with REDIS.start(Path(folder)) as server:

                def look_there() -> ProgressView:
                    with closing(RedisProgress(server.url, categories=CATEGORIES)) as progress:
                        return progress.view()

                yield ["@redis-address", server.url.removeprefix("redis://").removesuffix("/0")], look_there
        except Missing as why:
            pytest.skip(f"redis: {why}")


async def crawl(*arguments: str) -> Process:
    words, settings = with_settings(("repos", "crawl", *arguments))
    command = (sys.executable, "-W", "error", "-m", "sanderling", *words)
    return await asyncio.create_subprocess_exec(*command, stdout=DEVNULL, stderr=PIPE, env=os.environ | settings)


async def killed(server: FleetServer, arguments: list[str], more: int, part: Path | None) -> int:
    """Start the crawl, and kill it after so many more requests have come; how it ended.

    With `part`, the folder of the segments, wait further until one has just grown: then its repos are durable, or
    nearly, and the progress most likely does not know them yet.
    """
    process = await crawl(*arguments)
    until = asked(server) + more
    while process.returncode is None and asked(server) < until:  # noqa: ASYNC110 - by what the server sees
        await asyncio.sleep(0.02)
    before = part and grown(part)
    while process.returncode is None and part and grown(part) == before:  # noqa: ASYNC110 - and what is on disk
        await asyncio.sleep(0.001)
    if process.returncode is None:
        process.kill()
    await process.communicate()
    return process.returncode or 0


def asked(server: FleetServer) -> int:
    return sum(tally.asked for tally in server.tallies.values())


def grown(folder: Path) -> list[tuple[str, int]]:
    try:
        return [(path.name, path.stat().st_size) for path in folder.glob("*.part")]
    except FileNotFoundError:  # it was finalised in between
        return []


async def play(folder: Path, fleet: Fleet, flags: list[str]) -> tuple[Fleet, list[int], int]:
    """The fleet at its addresses, how the killed runs ended, and how the last one did."""
    rng, dids = Random(7), folder / "dids.txt"
    async with FleetServer(fleet, SystemClock()) as server:
        dids.write_text("".join(f"{did} {host}\n" for did, host in server.fleet.directory()))
        arguments = ["--out", str(folder / "out"), "--did-file", str(dids), "--private", "@page-size", "50"]
        arguments += ["@segment-size", "64KB", "--rps", "50", "--patience", "5", *flags]
        parts = [folder / "out" if number % 2 == 0 else None for number in range(PLAY.kills)]
        ends = [await killed(server, arguments, rng.randint(1, PLAY.between), part) for part in parts]
        process = await crawl(*arguments)
        async with asyncio.timeout(PLAY.seconds):
            _, said = await process.communicate()
        assert process.returncode in (0, 3), said.decode()
        return server.fleet, ends, process.returncode


@pytest.mark.timeout(3600 if SOAK else 120)
def test_killed_again_and_again_it_ends_with_every_live_repo_once_and_every_dead_one_in_its_category(
    tmp_path: Path, store: tuple[list[str], Look]
) -> None:
    flags, look = store

    fleet, ends, code = asyncio.run(play(tmp_path, Fleet.make(1, PLAY.hosts, PLAY.repos, others=PLAY.others), flags))

    expected = fleet.expected()
    dead = Counter(end.category.value for end in expected.values() if end.category is not None)
    assert archived(tmp_path / "out") == {did: 1 for did, end in expected.items() if end.archived}
    assert look().failed == dead
    assert look().cursor == ""
    assert code == 3 * any(not AtprotoCategory(name).permanent for name in dead)
    assert ends.count(-9) >= PLAY.kills - 1, "hardly any run was killed while it worked"
