"""The processes of a crawl in parts, seen from outside, and a site for them to crawl."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from sanderling.cli.processes import OWN
from sanderling.clock import SystemClock
from sanderling.crawls.parts import folders_of
from sanderling.stores.durable import FolderError, Lock
from sanderling.worlds.site import SiteServer, World


@asynccontextmanager
async def site() -> AsyncIterator[SiteServer]:
    """Ten hosts with a dozen pages each."""
    async with SiteServer(World.make(1, ordinary=10, pages=12, others=()), SystemClock()) as server:
        yield server


async def until(condition: Callable[[], object]) -> None:
    """Wait for what other processes do."""
    while not condition():  # noqa: ASYNC110 - of another process
        await asyncio.sleep(0.02)


def children(pid: int) -> list[int]:
    """The processes that a crawl has started for its parts."""
    started = [
        int(child) for task in Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()
    ]
    return [child for child in started if OWN.encode() in Path(f"/proc/{child}/environ").read_bytes()]


def is_there(pid: int) -> bool:
    """Whether a process runs."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def asked(server: SiteServer) -> int:
    """How many requests have come."""
    return sum(server.tallies[host.name].asked for host in server.world.hosts)


def is_free(out: Path) -> bool:
    """Whether no process holds a part any more."""
    try:
        for part in folders_of(out):
            Lock(part / "lock").release()
    except FolderError:
        return False
    return True
