"""Each example of a job, as a process that is killed twice and run again: every record is there, once."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sanderling.clock import SystemClock
from sanderling.worlds.api import PASSWORD, ApiRules, ApiWorld
from sanderling.worlds.api_server import ApiServer

FOLDER = Path(__file__).parents[3] / "examples"
RULES = ApiRules(posts=100, page=10, faults=0.02, latency=0.02)
# By example: the requests after which it is killed, and what it must have at its end.
EXAMPLES: dict[str, tuple[tuple[int, ...], Callable[[ApiWorld], list[Any]]]] = {
    "paged_api": ((20, 60), ApiWorld.posts),
    "login": ((4, 8), ApiWorld.orders),
    "post_search": ((2, 3), lambda world: world.hits("tide")),
    "graphql_like": ((2, 5), ApiWorld.books),
}


async def start(job: Path, out: Path) -> Process:
    command = (sys.executable, "-m", "sanderling", "run", str(job), "--out", str(out), "--private")
    environment = {**os.environ, "SHOP_PASSWORD": PASSWORD}
    return await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE, env=environment, cwd=out.parent)


async def killed(process: Process, world: ApiWorld, after: int) -> None:
    """Kill -9, when the world was asked so often."""
    async with asyncio.timeout(60):
        while world.asked.total() < after:
            assert process.returncode is None, (await process.communicate())[1].decode()
            await asyncio.sleep(0.01)
    process.kill()
    await process.communicate()


async def ended(process: Process) -> str:
    async with asyncio.timeout(100):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode() + out.decode()
    return out.decode()


def in_order(records: list[Any]) -> list[str]:
    return sorted(json.dumps(each, sort_keys=True) for each in records)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", EXAMPLES)
def test_it_is_killed_and_goes_on_and_every_record_is_there_once(name: str, tmp_path: Path) -> None:
    kills, wanted = EXAMPLES[name]
    world, out = ApiWorld(2, RULES), tmp_path / "out"

    async def main() -> str:
        async with ApiServer(world, SystemClock()) as server:
            job = tmp_path / f"{name}.py"
            job.write_text((FOLDER / job.name).read_text().replace("127.0.0.1:8040", server.host))
            for after in kills:
                await killed(await start(job, out), world, after)
            return await ended(await start(job, out))

    said = asyncio.run(main())

    records = [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]
    assert in_order(records) == in_order(wanted(world))
    assert (out / "failed.jsonl").read_text() == ""
    assert f"sanderling verify {out}" in said
    assert PASSWORD not in "".join(path.read_bytes().decode("latin-1") for path in out.iterdir())
    assert "session-" not in "".join(path.read_bytes().decode("latin-1") for path in out.iterdir())
    assert list(tmp_path.rglob("__pycache__")) == []
