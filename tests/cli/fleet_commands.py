"""A simulated fleet at real addresses, and `sanderling repos` against it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sanderling.clock import SystemClock
from sanderling.formats.rca_reader import RcaReader
from sanderling.worlds.pds import Fleet, FleetServer

# Small hosts get two requests a second, so there are few repos to each.
HOSTS, REPOS = 3, 6


@asynccontextmanager
async def served(*others: str, hosts: int = HOSTS, repos: int = REPOS) -> AsyncIterator[FleetServer]:
    """A fleet of a few repos."""
    async with FleetServer(Fleet.make(1, hosts, repos, others=others), SystemClock()) as server:
        yield server


def flags(folder: Path, server: FleetServer) -> list[str]:
    """What to crawl all of it with."""
    dids = folder / "dids.txt"
    dids.write_text("".join(f"{did} {host}\n" for did, host in server.fleet.directory()))
    return ["--out", str(folder / "out"), "--did-file", str(dids), "--private"]


def archived(folder: Path) -> list[str]:
    """The DIDs in the finished segments."""
    found: list[str] = []
    for path in sorted(folder.glob("*.rca")):
        with path.open("rb") as file:
            found += [block.did for block in RcaReader(file)]
    return sorted(found)


def live(fleet: Fleet) -> list[str]:
    """The DIDs that should be in there."""
    return sorted(did for did, end in fleet.expected().items() if end.archived)
