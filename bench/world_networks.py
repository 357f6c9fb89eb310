"""Simulated upstreams in process: clients without sockets, so that under virtual time days take minutes.

For tests and benchmarks; people are served by `sanderling.worlds.server`.
"""

import errno
import socket
from math import inf
from typing import Generic, NoReturn, TypeVar

import aiohttp
from yarl import URL

from sanderling.clock import Clock
from sanderling.fetch.decode import ACCEPTED, Body
from sanderling.fetch.guard import GuardRules, check_url
from sanderling.fetch.http import HttpRules
from sanderling.ids import Host
from sanderling.task import Reply, Task
from sanderling.worlds.game import NAME as GAME
from sanderling.worlds.game import ORIGIN as GAME_ORIGIN
from sanderling.worlds.game import Game, GameTally, game_upstream
from sanderling.worlds.game_answers import GameAnswer
from sanderling.worlds.pds import Fleet
from sanderling.worlds.race import RaceDay, RaceTally, race_upstream
from sanderling.worlds.server import HostTally, OneHost, SimulatedUpstream
from sanderling.worlds.site import World
from sanderling.worlds.weather import NOT_ALLOWED, TransportFault, WorldAnswer

U = TypeVar("U", bound=SimulatedUpstream)


class Network(Generic[U]):
    """Stands where `fetch.http.Http` would: the same replies, and the same exceptions where there are none.

    `tallies` says for each host what it was asked.
    """

    def __init__(
        self, world: U, clock: Clock, *, rules: HttpRules | None = None, guard: GuardRules | None = None
    ) -> None:
        self.world = world
        self.tallies = {host.name: HostTally() for host in world.hosts}
        self._clock = clock
        self._rules = rules or HttpRules()
        self._guard = guard or GuardRules()
        # What a client says of itself, unless a task says otherwise.
        self._headers = {"User-Agent": self._rules.user_agent, "Accept-Encoding": ACCEPTED}

    async def send(self, task: Task) -> Reply:
        """The reply to `task`, redirects included as they are. Raises what `classify.of_error` understands."""
        check_url(task.url, self._guard)
        if task.host not in self.world or not task.url.lower().startswith("http:"):
            self._not_there(task.host)
        path, tally = URL(task.url, encoded=True).raw_path_qs, self.tallies[task.host]
        with tally.request(self._clock.now(), forbidden=self.world.host(task.host).forbids(path)):
            answer = self._ask(task, path)
            tally.note(answer)
            return await self._arrive(task, answer)

    def _not_there(self, host: Host) -> NoReturn:
        name = host.partition(":")[0]
        if name in self.world:  # and listens on no other port
            raise _refused(host)
        raise socket.gaierror(socket.EAI_NONAME, f"{name}: name or service not known")

    def _ask(self, task: Task, path: str) -> WorldAnswer:
        if task.method not in ("GET", "HEAD"):
            return NOT_ALLOWED
        return self.world.ask(task.host, path, self._headers | dict(task.headers), self._clock.now())

    async def _arrive(self, task: Task, answer: WorldAnswer) -> Reply:
        rules, started, longest = self._rules, self._clock.now(), task.wait or inf
        await self._wait(answer.latency, min(rules.connect + rules.first_byte, longest), "first byte", started)
        if answer.fault is TransportFault.REFUSED:
            raise _refused(task.host)
        if answer.fault is TransportFault.RESET:
            raise ConnectionResetError(errno.ECONNRESET, "connection reset by peer")
        said = {name.lower(): value for name, value in answer.headers}
        encoding = said.get("content-encoding")
        body = Body(encoding, most_raw=rules.most_raw, most_decoded=rules.most_decoded, wanted=task.most)
        for pause, piece in answer.pieces() if task.method != "HEAD" else ():
            await self._wait(pause, min(rules.idle, longest), "idle", started)
            body.add(piece)
            if body.full:
                return Reply(answer.status, answer.headers, body.finish(), task.url, answer.latency)
        if answer.fault in (TransportFault.CUT, TransportFault.TRUNCATED) and task.method != "HEAD":
            raise aiohttp.ClientPayloadError("the body ended early")
        return Reply(answer.status, answer.headers, body.finish(), task.url, answer.latency)

    async def _wait(self, seconds: float, limit: float, phase: str, started: float) -> None:
        """Wait for what takes so long, or as long as a client would."""
        left = started + self._rules.total - self._clock.now()
        patience = min(limit, left)
        await self._clock.sleep(min(seconds, patience))
        if seconds > patience:
            raise TimeoutError(phase if limit < left else "total")


def _refused(host: Host) -> ConnectionRefusedError:
    return ConnectionRefusedError(errno.ECONNREFUSED, f"nobody listens at {host}")


class SiteNetwork(Network[World]):
    """The simulated web."""


class FleetNetwork(Network[Fleet]):
    """The simulated fleet."""

    @property
    def fleet(self) -> Fleet:
        """The fleet."""
        return self.world


class RaceNetwork(Network[OneHost]):
    """The simulated race day, at `race.ORIGIN`. `tally` says what it was asked."""

    def __init__(
        self, day: RaceDay, clock: Clock, *, rules: HttpRules | None = None, guard: GuardRules | None = None
    ) -> None:
        super().__init__(race_upstream(day, clock), clock, rules=rules, guard=guard)
        self.day = day

    @property
    def tally(self) -> RaceTally:
        """What was asked, also by others who ask the same day."""
        return self.day.tally


class GameNetwork(Network[OneHost]):
    """The simulated game, at `game.ORIGIN`. `tally` says what it was asked."""

    def __init__(
        self, game: Game, clock: Clock, *, rules: HttpRules | None = None, guard: GuardRules | None = None
    ) -> None:
        super().__init__(game_upstream(game, clock), clock, rules=rules, guard=guard)
        self.game = game

    async def send(self, task: Task) -> Reply:
        """The reply to `task`. Raises what `classify.of_error` understands."""
        url = task.url
        if not url.startswith(f"{GAME_ORIGIN}/") or "#" in url or task.method != "GET" or task.most is not None:
            return await super().send(task)
        check_url(url, self._guard)
        tally = self.tallies[GAME]
        with tally.request(self._clock.now(), forbidden=False):
            answer = self.game.ask(url[len(GAME_ORIGIN) :], self._clock.wall())
            tally.note(answer)
            if self._special(task, answer):
                return await self._arrive(task, answer)
            # What nearly all come to, in one step: a simulated day has millions of them, and this halves their cost.
            await self._clock.sleep(answer.latency)
            return Reply(answer.status, answer.headers, answer.body, url, answer.latency)

    def _special(self, task: Task, answer: GameAnswer) -> bool:
        """Whether the client could run out of time or room, or get nothing at all."""
        rules = self._rules
        late = answer.latency >= min(rules.first_byte, rules.total, task.wait or inf)
        large = answer.times > 1 or len(answer.body) > min(rules.most_raw, rules.most_decoded)
        return late or large or answer.fault is not TransportFault.NONE

    @property
    def tally(self) -> GameTally:
        """What was asked, also by others who ask the same game."""
        return self.game.tally
