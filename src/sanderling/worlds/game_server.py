"""The simulated game over real HTTP, on this machine only."""

from typing import TYPE_CHECKING, cast

from sanderling.clock import Clock
from sanderling.worlds.game import Game, GameTally
from sanderling.worlds.game_network import NAME, GameWorld
from sanderling.worlds.site_server import PATIENCE, SiteServer

if TYPE_CHECKING:
    from sanderling.worlds.site import World


class GameServer(SiteServer):
    """`async with GameServer(game, clock) as server`: the game, at `server.origin`. `tally` says what it was asked."""

    def __init__(self, game: Game, clock: Clock, *, port: int = 0, patience: float = PATIENCE) -> None:
        # It has what a server needs of a world: hosts by name, and their answers.
        super().__init__(cast("World", GameWorld(game, clock)), clock, first_port=port, patience=patience)
        self.game = game

    @property
    def tally(self) -> GameTally:
        """What was asked, also by others who ask the same game."""
        return self.game.tally

    def url(self, name: str = NAME, path: str = "") -> str:
        """Where a path is found; without one, what all paths are appended to."""
        return cast("GameWorld", self.world).host(name).origin + path
