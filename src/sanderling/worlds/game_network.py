"""The simulated game in process: a client without sockets, so that under virtual time hours take seconds."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Self, cast

from sanderling.clock import Clock
from sanderling.fetch.guard import GuardRules, check_url
from sanderling.fetch.http import HttpRules
from sanderling.task import Reply, Task
from sanderling.worlds.game import Game, GameTally
from sanderling.worlds.game_answers import GameAnswer
from sanderling.worlds.site_characters import ORDINARY, Character
from sanderling.worlds.site_network import SiteNetwork
from sanderling.worlds.site_weather import Fault

if TYPE_CHECKING:
    from sanderling.worlds.site import World

NAME = "game.example"
ORIGIN = f"http://{NAME}"


@dataclass(frozen=True, slots=True)
class GameHost:
    """The one host of a game, at its address."""

    origin: str = ORIGIN
    name: str = NAME
    character: Character = ORDINARY

    def forbids(self, _path: str) -> bool:
        """Whether a path is not to be asked for: none is, since an API has no robots.txt."""
        return False


class GameWorld:
    """A game as a world of one host: what serves worlds asks for hosts by name, and on a clock of its own."""

    def __init__(self, game: Game, clock: Clock, host: GameHost | None = None) -> None:
        self.game = game
        self.hosts = (host or GameHost(),)
        self._clock = clock

    def at(self, origins: Mapping[str, str]) -> Self:
        """The same game at another address."""
        return type(self)(self.game, self._clock, GameHost(origins[NAME]))

    def __contains__(self, name: str) -> bool:
        return name == NAME

    def host(self, _name: str) -> GameHost:
        """The one there is."""
        return self.hosts[0]

    def ask(self, _host: str, path: str, _headers: Mapping[str, str], _now: float) -> GameAnswer:
        """What a GET gets. Reports say when they were made, so a game goes by the clock on the wall."""
        return self.game.ask(path, self._clock.wall())


class GameNetwork(SiteNetwork):
    """Stands where `fetch.http.Http` would: the game is at ORIGIN. `tally` says what it was asked."""

    def __init__(
        self, game: Game, clock: Clock, *, rules: HttpRules | None = None, guard: GuardRules | None = None
    ) -> None:
        # It has what a network needs of a world: hosts by name, and their answers.
        super().__init__(cast("World", GameWorld(game, clock)), clock, rules=rules, guard=guard)
        self.game = game

    async def send(self, task: Task) -> Reply:
        """The reply to `task`. Raises what `classify.of_error` understands."""
        if not task.url.startswith(f"{ORIGIN}/") or "#" in task.url or task.method != "GET" or task.most is not None:
            return await super().send(task)
        check_url(task.url, self._guard)
        tally = self.tallies[NAME]
        with tally.request(self._clock.now(), forbidden=False):
            answer = self.game.ask(task.url[len(ORIGIN) :], self._clock.wall())
            tally.note(answer)
            if self._special(task, answer):
                return await self._arrive(task, answer)
            # What nearly all come to, in one step: a simulated day has millions of them, and this halves their cost.
            await self._clock.sleep(answer.latency)
            return Reply(answer.status, answer.headers, answer.body, task.url, answer.latency)

    def _special(self, task: Task, answer: GameAnswer) -> bool:
        """Whether the client could run out of time or room, or get nothing at all."""
        rules = self._rules
        late = answer.latency >= min(rules.first_byte, rules.total, task.wait or inf)
        large = answer.times > 1 or len(answer.body) > min(rules.most_raw, rules.most_decoded)
        return late or large or answer.fault is not Fault.NONE

    @property
    def tally(self) -> GameTally:
        """What was asked, also by others who ask the same game."""
        return self.game.tally
