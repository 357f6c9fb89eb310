"""Objects of a part that nothing speaks of: whoever has the part next finds them, and deletes them.

Rows are put before the commit that has them, and a snapshot before the server is told of it. Who dies in between, or
has lost the part, leaves an object for nobody. So does a snapshot that another has replaced.

What may go: its epoch is over, or it is a snapshot of ours; and the server, asked under our lease, knows no commit and
no snapshot that names it. Then nobody can ever commit it there. A replica that takes the server's place may know
neither us nor the last snapshot. So nothing goes before it was for nobody for some leases: longer than a replica is
behind.

What that costs does not grow with the rows of a part. Commits follow each other, so what an owner leaves has the number
behind the head at which the next one begins, or some beyond it if the server has forgotten commits. Rows are in folders
by the number of their commit, and only those around the head are listed.
"""

import re
from collections.abc import AsyncIterator, Collection
from math import inf

from sanderling.clock import Clock
from sanderling.crawls.fleet import FleetStores
from sanderling.crawls.fleet_log import ObjectPlace, captures_of, rows_folder, rows_of
from sanderling.stores.fleet import FleetStore
from sanderling.stores.leases import HeldLease, Lease, LeasesAwayError
from sanderling.stores.objects import ObjectError

LATER = 4  # leases, for which nothing is deleted that was of use before
SPREAD = 0.618  # of these, by which two parts look at another time: who gets many at once does not look at all at once
AROUND = (-1, 0, 1)  # folders of rows, from that of the commit behind the head
_NAME = re.compile(r"(?P<epoch>[0-9]{6,})-(?P<number>[0-9]{9,})-[0-9a-f]+", re.ASCII)


def snapshot_folder(part: int) -> str:
    """Where the snapshots of a part are."""
    return f"snapshots/{part:04}"


def snapshot_key(lease: Lease, number: int, token: str) -> str:
    """The name of a snapshot that ends with this commit."""
    return f"{snapshot_folder(lease.part)}/{lease.epoch:06}-{number:09}-{token}"


async def delete_orphans(server: FleetStore, place: ObjectPlace, lease: Lease, spared: Collection[str]) -> int:
    """Delete what nothing names, but for what is spared; how many objects that were.

    `lease` is as it was when the part became ours, and no snapshot of ours is being put. Raises LeasesAwayError,
    ObjectError.
    """
    at, deleted = lease.head + 1, 0
    rows = {rows_folder(lease.part, at, step) for step in AROUND}
    # Of rows and captures, those of our own epoch may be about to be committed.
    folders = {snapshot_folder(lease.part): lease.epoch}
    folders |= dict.fromkeys((*rows, *map(captures_of, rows)), lease.epoch - 1)
    for folder, epochs in folders.items():
        found = {rows_of(name): (number, name) async for number, name in _objects(place, folder, epochs)}
        asked = [(number, key) for key, (number, _) in found.items() if key not in spared]
        for key in await server.unnamed(lease, asked):
            await place.delete(found[key][1])
            deleted += 1
    return deleted


async def _objects(place: ObjectPlace, folder: str, epochs: int) -> AsyncIterator[tuple[int, str]]:
    """Number and name of the objects in a folder, of epochs up to one. What is called otherwise is not ours."""
    async for name in place.names(folder):
        said = _NAME.fullmatch(name.removeprefix(f"{folder}/"))
        if said is not None and int(said["epoch"]) <= epochs:
            yield int(said["number"]), name


class OrphanSearch:
    """When to look for orphans of a part that is ours: some leases after it became ours, or a snapshot was replaced."""

    def __init__(self, fleet: FleetStores, held: HeldLease, place: ObjectPlace, clock: Clock) -> None:
        """Made when the part has become ours, and nothing was committed."""
        self.deleted = 0
        self._fleet = fleet
        self._place = place
        self._clock = clock
        self._lease = held.lease
        self._wait = LATER * held.seconds
        self._replaced: dict[str, float] = {}  # snapshots, and when
        first = self._wait * (1 + held.lease.part * SPREAD % 1)
        self._due = clock.now() + first if held.lease.epoch > 1 else inf  # else nobody was before us

    def replace(self, snapshot: str) -> None:
        """Another has taken the place of that snapshot now, if there was one."""
        if snapshot:
            self._replaced[snapshot] = self._clock.now()
            self._due = min(self._due, self._clock.now() + self._wait)

    async def look(self) -> None:
        """Delete what there is, if it is time to. While a server or the store is away nothing is, until later."""
        now = self._clock.now()
        if now < self._due:
            return
        lately = {key: at for key, at in self._replaced.items() if at + self._wait > now}
        server = self._fleet.server_of(self._lease.part)
        try:
            self.deleted += await self._fleet.call(delete_orphans(server, self._place, self._lease, lately))
        except (LeasesAwayError, ObjectError):
            self._due = now + self._wait
        else:
            self._replaced = lately
            self._due = min(lately.values(), default=inf) + self._wait
