"""The simulated fleet over real HTTP, on this machine only: each host has a port, and so have relay and directory."""

from typing import TYPE_CHECKING, cast

from sanderling.clock import Clock
from sanderling.worlds.pds import Fleet
from sanderling.worlds.site_server import PATIENCE, SiteServer

if TYPE_CHECKING:
    from sanderling.worlds.site import World


class FleetServer(SiteServer):
    """`async with FleetServer(fleet, clock) as server`: every host of the fleet, at `server.url(name)`.

    `first_port` is that of the first host, the others follow; 0 takes any that are free. `tallies` says for each host
    what it was asked. Use `server.fleet` for the addresses: its directory and what is expected of it are those served.
    """

    def __init__(self, fleet: Fleet, clock: Clock, *, first_port: int = 0, patience: float = PATIENCE) -> None:
        # A fleet has what a server needs of a world: hosts by name, and their answers.
        super().__init__(cast("World", fleet), clock, first_port=first_port, patience=patience)

    @property
    def fleet(self) -> Fleet:
        """The fleet at its addresses."""
        return cast("Fleet", self.world)

    def url(self, name: str, path: str = "/") -> str:
        """Where a path of a host is found."""
        return self.fleet.host(name).origin + path
