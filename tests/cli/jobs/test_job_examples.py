"""Each example of a job, as a process that is killed twice and run again: every record is there, once."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import Done, finish, start
from forked import Forked as Process

from sanderling.clock import SystemClock
from sanderling.worlds.api import PASSWORD, ApiRules, ApiServer, ApiWorld

FOLDER = Path(__file__).parents[3] / "examples"
RULES = ApiRules(posts=100, page=10, faults=0.02, latency=0.02)
# By example: the requests after which it is killed, and what it must have at its end.
EXAMPLES: dict[str, tuple[tuple[int, ...], Callable[[ApiWorld], list[Any]]]] = {
    "paged_api": ((20, 60), ApiWorld.posts),
    "login": ((4, 8), ApiWorld.orders),
    "post_search": ((2, 3), lambda world: world.hits("tide")),
    "graphql_like": ((2, 5), ApiWorld.books),
}


async def killed(process: Process, world: ApiWorld, after: int) -> None:
    """Kill -9, when the world was asked so often."""
    async with asyncio.timeout(60):
        while world.asked.total() < after:
            assert process.returncode is None, (await process.communicate())[1].decode()
            await asyncio.sleep(0.01)
    process.kill()
    await process.communicate()


def in_order(records: list[Any]) -> list[str]:
    return sorted(json.dumps(each, sort_keys=True) for each in records)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", EXAMPLES)
def test_it_is_killed_and_goes_on_and_every_record_is_there_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
    kills, wanted = EXAMPLES[name]
    world, out = ApiWorld(2, RULES), tmp_path / "out"

    async def main() -> Done:
        async with ApiServer(world, SystemClock()) as server:
            job = tmp_path / f"{name}.py"
            job.write_text((FOLDER / job.name).read_text().replace("127.0.0.1:8040", server.host))
            command = ("run", str(job), "--out", str(out), "--private")
            for after in kills:
                await killed(await start(*command), world, after)
            return await finish(await start(*command))

    done = asyncio.run(main())

    assert done.code == 0, done
    records = [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]
    assert in_order(records) == in_order(wanted(world))
    assert (out / "failed.jsonl").read_text() == ""
    assert f"sanderling verify {out}" in done.out
    assert PASSWORD not in "".join(path.read_bytes().decode("latin-1") for path in out.iterdir())
    assert "session-" not in "".join(path.read_bytes().decode("latin-1") for path in out.iterdir())
    assert list(tmp_path.rglob("__pycache__")) == []
