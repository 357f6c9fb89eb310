"""kill -9 of the real command, again and again, on real sockets: nothing is lost, and nothing is there twice."""

import asyncio
from pathlib import Path
from random import Random

from command_line import QUICK, here, rows, run, start

from sanderling.clock import SystemClock
from sanderling.pages.verify import verify
from sanderling.worlds.site import SiteServer, World

KILLS = 3


def test_killed_again_and_again_it_ends_with_every_url_exactly_once(tmp_path: Path) -> None:
    rng, out = Random(5), tmp_path / "out"

    async def main() -> tuple[set[str], list[int]]:
        async with SiteServer(World.make(1, ordinary=10, pages=12, others=()), SystemClock()) as server:
            names = [host.name for host in server.world.hosts]
            urls = [server.url(name) for name in names]
            killed = []
            for _ in range(KILLS):
                process = await start("pages", "crawl", *urls, "--out", str(out), *QUICK)
                asked = server.tallies[names[0]].asked + rng.randint(1, 4)
                while server.tallies[names[0]].asked < asked and process.returncode is None:  # noqa: ASYNC110 - a number
                    await asyncio.sleep(0.02)  # until it is under way; by what the server sees, not by the clock
                if process.returncode is None:
                    process.kill()
                await process.communicate()
                killed.append(process.returncode or 0)
            done = await here("pages", "crawl", *urls, "--out", str(out), *QUICK)
            assert done.code == 1, done.err  # two broken links on each host
            expected = {server.url(host.name, path) for host in server.world.hosts for path, _ in host.ends()}
            return expected, killed

    expected, killed = run(main)

    kept = [row["url"] for row in (*rows(out), *rows(out, "failed.jsonl"))]
    assert len(kept) == len(set(kept))
    assert set(kept) == expected
    assert verify(out).ok
    assert killed.count(-9) >= KILLS - 1, "hardly any run was killed while it worked"
