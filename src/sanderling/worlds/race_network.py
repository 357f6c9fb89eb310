"""The simulated race day in process: a client without sockets, so that under virtual time a whole day takes seconds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, cast

from sanderling.clock import Clock
from sanderling.fetch.guard import GuardRules
from sanderling.fetch.http import HttpRules
from sanderling.worlds.race import RaceAnswer, RaceDay, RaceTally
from sanderling.worlds.site_characters import ORDINARY, Character
from sanderling.worlds.site_network import SiteNetwork

if TYPE_CHECKING:
    from sanderling.worlds.site import World

NAME = "race.example"
ORIGIN = f"http://{NAME}"


@dataclass(frozen=True, slots=True)
class RaceHost:
    """The one host of a race day, at its address."""

    origin: str = ORIGIN
    name: str = NAME
    character: Character = ORDINARY

    def forbids(self, _path: str) -> bool:
        """Whether a path is not to be asked for: none is, since there is no robots.txt."""
        return False


class RaceWorld:
    """A race day as a world of one host: what serves worlds asks for hosts by name, and on a clock of its own."""

    def __init__(self, day: RaceDay, clock: Clock, host: RaceHost | None = None) -> None:
        self.day = day
        self.hosts = (host or RaceHost(),)
        self._clock = clock

    def at(self, origins: Mapping[str, str]) -> Self:
        """The same day at another address."""
        return type(self)(self.day, self._clock, RaceHost(origins[NAME]))

    def __contains__(self, name: str) -> bool:
        return name == NAME

    def host(self, _name: str) -> RaceHost:
        """The one there is."""
        return self.hosts[0]

    def ask(self, _host: str, path: str, headers: Mapping[str, str], _now: float) -> RaceAnswer:
        """What a GET gets. Races say when they started, so a day goes by the clock on the wall."""
        lowered = {name.lower(): value for name, value in headers.items()}
        return self.day.ask(path, lowered, self._clock.wall() - self.day.began)


class RaceNetwork(SiteNetwork):
    """Stands where `fetch.http.Http` would: the day is at ORIGIN. `tally` says what it was asked."""

    def __init__(
        self, day: RaceDay, clock: Clock, *, rules: HttpRules | None = None, guard: GuardRules | None = None
    ) -> None:
        # It has what a network needs of a world: hosts by name, and their answers.
        super().__init__(cast("World", RaceWorld(day, clock)), clock, rules=rules, guard=guard)
        self.day = day

    @property
    def tally(self) -> RaceTally:
        """What was asked, also by others who ask the same day."""
        return self.day.tally
