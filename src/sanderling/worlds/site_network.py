"""The simulated web in process: a client without sockets, so that under virtual time days take minutes."""

import errno
import socket
from math import inf
from typing import NoReturn

import aiohttp
from yarl import URL

from sanderling.clock import Clock
from sanderling.fetch.decode import ACCEPTED, Body
from sanderling.fetch.guard import GuardRules, check_url
from sanderling.fetch.http import HttpRules
from sanderling.ids import Host
from sanderling.task import Reply, Task
from sanderling.worlds.site import NOT_ALLOWED, Answer, World
from sanderling.worlds.site_tally import Tally
from sanderling.worlds.site_weather import Fault


class SiteNetwork:
    """Stands where `fetch.http.Http` would: the same replies, and the same exceptions where there are none.

    `tallies` says for each host what it was asked.
    """

    def __init__(
        self, world: World, clock: Clock, *, rules: HttpRules | None = None, guard: GuardRules | None = None
    ) -> None:
        self.world = world
        self.tallies = {host.name: Tally() for host in world.hosts}
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

    def _ask(self, task: Task, path: str) -> Answer:
        if task.method not in ("GET", "HEAD"):
            return NOT_ALLOWED
        return self.world.ask(task.host, path, self._headers | dict(task.headers), self._clock.now())

    async def _arrive(self, task: Task, answer: Answer) -> Reply:
        rules, started, longest = self._rules, self._clock.now(), task.wait or inf
        await self._wait(answer.latency, min(rules.connect + rules.first_byte, longest), "first byte", started)
        if answer.fault is Fault.REFUSED:
            raise _refused(task.host)
        if answer.fault is Fault.RESET:
            raise ConnectionResetError(errno.ECONNRESET, "connection reset by peer")
        said = {name.lower(): value for name, value in answer.headers}
        encoding = said.get("content-encoding")
        body = Body(encoding, most_raw=rules.most_raw, most_decoded=rules.most_decoded, wanted=task.most)
        for pause, piece in answer.pieces() if task.method != "HEAD" else ():
            await self._wait(pause, min(rules.idle, longest), "idle", started)
            body.add(piece)
            if body.full:
                return Reply(answer.status, answer.headers, body.finish(), task.url, answer.latency)
        if answer.fault in (Fault.CUT, Fault.TRUNCATED) and task.method != "HEAD":
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
