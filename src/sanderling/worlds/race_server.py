"""The simulated race day over real HTTP, on this machine only."""

from typing import TYPE_CHECKING, cast

from sanderling.clock import Clock
from sanderling.worlds.race import RaceDay, RaceTally
from sanderling.worlds.race_network import NAME, RaceWorld
from sanderling.worlds.site_server import PATIENCE, SiteServer

if TYPE_CHECKING:
    from sanderling.worlds.site import World


class RaceServer(SiteServer):
    """`async with RaceServer(day, clock) as server`: the day, at `server.url()`. `tally` says what it was asked."""

    def __init__(self, day: RaceDay, clock: Clock, *, port: int = 0, patience: float = PATIENCE) -> None:
        # It has what a server needs of a world: hosts by name, and their answers.
        super().__init__(cast("World", RaceWorld(day, clock)), clock, first_port=port, patience=patience)
        self.day = day

    @property
    def tally(self) -> RaceTally:
        """What was asked, also by others who ask the same day."""
        return self.day.tally

    def url(self, name: str = NAME, path: str = "") -> str:
        """Where a path is found; without one, what all paths are appended to."""
        return cast("RaceWorld", self.world).host(name).origin + path
