"""What the machine does to a crawl, for real: each time one sentence and the right exit code, and nothing is lost."""

import asyncio
import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from crawl.sites import Site, page, rows, served
from kit.postgres import FaultyWay, new_name, shared_postgres

from sanderling.crawl.system import verify
from sanderling.files import Exit

pytestmark = pytest.mark.real
PROGRAM = Path(sys.executable).with_name("sanderling")
JUMP = """
import time
real, start = time.time, time.monotonic()
time.time = lambda: real() + ({jump} if time.monotonic() - start > 1.5 else 0)
"""


def site() -> Site:
    """200 pages, each of which leads to the next two, and the last one to the first."""
    return Site(
        {f"/{n}": page(f"Page {n}", "text " * 500, [f"/{(n + 1) % 200}", f"/{(n + 2) % 200}"]) for n in range(200)}
    )


def limited(what: int, most: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(what, (most, most))


async def program(*words: str, limit: Callable[[], None] | None = None, jump: str = "") -> asyncio.subprocess.Process:
    typed = [
        str(PROGRAM),
        "pages",
        "crawl",
        *words,
        "--private",
        "--rps",
        "60",
        "--depth",
        "300",
        "--policy",
        "fixed",
        "--quiet",
    ]
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *typed, stderr=pipe, stdout=pipe, preexec_fn=limit, env=os.environ | {"PYTHONPATH": jump, "COLUMNS": "200"}
    )


async def end(process: asyncio.subprocess.Process) -> tuple[int, str]:
    """Exit code and the last line that was said."""
    async with asyncio.timeout(90):
        _, said = await process.communicate()
    assert b"Traceback" not in said, said.decode()
    return process.returncode or 0, said.decode().strip().rpartition("\n")[2]


FULL = limited(resource.RLIMIT_FSIZE, 200_000), "error"  # what SQLite makes of it; a full file system is "full"
FEW = limited(resource.RLIMIT_NOFILE, 30), "ulimit -n"


@pytest.mark.parametrize(("limit", "said"), [FULL, FEW], ids=["no room", "no descriptors"])
async def test_the_next_crawl_goes_on_where_the_machine_ended_this_one(
    limit: Callable[[], None], said: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    async with served(crawled := site()):
        start = f"{crawled.base}/0"
        code, last = await end(await program(start, "--out", str(out), limit=limit))
        assert (code, said in last) == (Exit.LATER, True), last
        assert crawled.requests or limit is FEW[0]
        code, _ = await end(await program(start, "--out", str(out)))

    assert code == Exit.DONE
    assert sorted(rows(out, "pages.jsonl")) == sorted(f"{crawled.base}/{n}" for n in range(200))
    assert not (await verify(out)).faults


@pytest.mark.parametrize("jump", [86_400, -86_400])
async def test_a_clock_that_jumps_changes_nothing(jump: int, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(JUMP.format(jump=jump))
    async with served(crawled := site()):
        code, _ = await end(await program(f"{crawled.base}/0", "--out", str(tmp_path / "out"), jump=str(tmp_path)))

    assert code == Exit.DONE
    assert len(rows(tmp_path / "out", "pages.jsonl")) == len(crawled.requests) == 200
    assert not (await verify(tmp_path / "out")).faults


async def test_a_database_that_is_away_is_named_and_a_stop_does_not_wait_for_it(tmp_path: Path) -> None:
    server, out = shared_postgres(), tmp_path / "out"
    async with served(crawled := site()), FaultyWay(server.port, Random(1)) as way:
        name = new_name()
        given = [f"{crawled.base}/0", "--out", str(out), "--store", way.url, "--name", name]
        way.is_down = True
        code, last = await end(await program(*given))
        assert (code, "cannot be used now" in last, crawled.requests) == (Exit.LATER, True, []), last

        way.is_down = False
        process = await program(*given)
        while len(crawled.requests) < 30:
            await asyncio.sleep(0.05)
        way.is_down = True
        way.cut()
        while "is away" not in (out / "status.json").read_text():
            await asyncio.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        code, last = await end(process)
        assert (code, "cannot be used now" in last) == (Exit.LATER, True), last

        way.is_down = False
        server.execute(f'DELETE FROM "{name}".process')  # its lease would end in half a minute
        assert (await end(await program(*given)))[0] == Exit.DONE
        assert not (await verify(out)).faults
    assert {f"/{n}" for n in range(200)} == set(crawled.requests)
