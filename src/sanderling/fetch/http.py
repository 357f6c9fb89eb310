"""One HTTP exchange: send a task, get a reply, within limits of time and size, and only to addresses that were checked.

No redirects and no retries here: each of those is a request of its own and needs leave of its own (`attempts`).
"""

import re
from dataclasses import dataclass
from importlib.metadata import version
from math import inf
from types import TracebackType
from typing import Self

import aiohttp

from sanderling.clock import Clock, SystemClock
from sanderling.fetch.attempts import moves
from sanderling.fetch.deadlines import Deadline, Deadlines
from sanderling.fetch.decode import ACCEPTED, Body, Receiver
from sanderling.fetch.digest import DigestSessions
from sanderling.fetch.guard import GuardRules
from sanderling.fetch.hosts import NO_HOSTS, NOTHING, HostTable
from sanderling.fetch.names import GuardedResolver
from sanderling.fetch.wire import HttpWire, WireAnswer, target_of
from sanderling.limit.memory import Memory
from sanderling.task import Reply, Task

CONTACT = re.compile(r"(https?://|mailto:)[!-'*-~]+")


@dataclass(frozen=True, slots=True)
class HttpRules:
    """How patient and how generous the client is. Times in seconds, sizes in bytes."""

    # Where whoever runs a host finds out who asks and whom to tell: a page, or mailto:. Part of the User-Agent.
    contact: str | None = None
    connect: float = 10.0  # to a connection, the look-up of the name included
    first_byte: float = 30.0  # from there to the answer's headers
    idle: float = 15.0  # between two pieces of the body
    total: float = 300.0  # a server that sends a byte now and then must not hold us for ever
    most_raw: int = 32 * 2**20  # of the body on the wire
    most_decoded: int = 128 * 2**20  # of the body once unpacked
    connections: int = 512
    connections_per_host: int = 8
    dns_kept: int = 60
    # By host: headers, a proxy. A proxy looks names up itself, so there the guard sees the name and no address.
    hosts: HostTable = NO_HOSTS

    def __post_init__(self) -> None:
        for name in ("connect", "first_byte", "idle", "total", "most_raw", "most_decoded", "connections"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be above 0")
        if self.connections_per_host < 1:
            raise ValueError(f"connections_per_host is {self.connections_per_host}; it must be at least 1")
        if self.contact is not None and not CONTACT.fullmatch(self.contact):
            raise ValueError(f"contact is {self.contact[:80]!r}, expected an address like https://example.org/crawler")

    @property
    def user_agent(self) -> str:
        """Our own name, and never another's."""
        return f"sanderling/{version('sanderling')}" + ("" if self.contact is None else f" (+{self.contact})")


class Http:
    """The client. `async with Http() as http: reply = await http.send(task)`."""

    def __init__(
        self,
        rules: HttpRules | None = None,
        guard: GuardRules | None = None,
        *,
        clock: Clock | None = None,
        memory: Memory | None = None,
    ) -> None:
        # What bodies hold of `memory`, under the task's holder or URL, whoever gets the reply lets go, unless it is
        # a redirect.
        self.memory = memory
        self._rules = rules or HttpRules()
        self._guard = guard or GuardRules()
        self._clock = clock or SystemClock()
        self._deadlines = Deadlines(self._clock, self._rules.total)
        self._wire: HttpWire | None = None
        self._digests = DigestSessions()

    async def __aenter__(self) -> Self:
        rules = self._rules
        self._names = GuardedResolver(self._guard, rules.hosts.proxies, clock=self._clock)
        connector = aiohttp.TCPConnector(
            resolver=self._names,
            limit=rules.connections,
            limit_per_host=rules.connections_per_host,
            ttl_dns_cache=rules.dns_kept,
        )
        headers = (("User-Agent", rules.user_agent), ("Accept-Encoding", ACCEPTED))
        self._wire = HttpWire(connector, self._guard, rules.hosts, headers, rules.connect)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._wire is not None:
            await self._wire.close()
            await self._names.close()  # which aiohttp leaves to whoever made it
            self._wire = None

    async def send(self, task: Task) -> Reply:
        """The reply to `task`, redirects included as they are. Raises what `classify.of_error` understands."""
        if self._wire is None:
            raise RuntimeError("use the client as a context manager: async with Http() as http")
        origin = self._wire.origin_of(task.url)
        traffic = origin.traffic
        if self.memory is not None:
            # What an answer holds that nobody was given: this asks for it once more.
            self.memory.release(task.holder or task.url)
        headers = task.headers if traffic is NOTHING else traffic.headers_for(task)
        session, used = None, ""
        if traffic.digest is not None and traffic.may_tell(task):
            session = self._digests.of(task.host, traffic.digest)
            line, used = session.prove(task.method, target_of(task.url))
            headers = (*headers, ("Authorization", line)) if line else headers
        wait = min(self._rules.connect + self._rules.first_byte, task.wait or inf)
        with self._deadlines.begin("first byte", wait) as deadline:
            answer = await self._wire.ask(task, origin, headers)
            latency = self._clock.now() - deadline.started
            try:
                body = await self._read(answer, deadline, task)
            except BaseException:
                answer.connection.close()
                if self.memory is not None:
                    self.memory.release(task.holder or task.url)
                raise
        # With a proxy, it is the proxy that knows.
        address = "" if traffic.proxy else self._names.address(origin.request.host)
        sent = traffic.without_secrets(answer.sent, task)
        challenged = session is not None and session.learn(answer.status, answer.headers, used)
        reply = Reply(answer.status, answer.headers, body, task.url, latency, address, sent, challenged)
        if self.memory is not None and moves(reply):
            # Whoever follows it has no use for its body, and whoever gets the end of the chase does not know of it.
            self.memory.release(task.holder or task.url)
        return reply

    async def _read(self, answer: WireAnswer, deadline: Deadline, task: Task) -> bytes:
        rules, idle = self._rules, min(self._rules.idle, task.wait or inf)
        body: Receiver | None = None
        if task.receive is not None:
            body = task.receive(answer.status, answer.headers)
        if body is None:
            body = Body(answer.encoding, most_raw=rules.most_raw, most_decoded=rules.most_decoded, wanted=task.most)
        while not body.full:
            deadline.allow("idle", idle)
            piece = await answer.body.readany()
            if not piece:
                return body.finish()
            await self._take(piece, body, deadline, task)
            if answer.body.at_eof():  # the usual case: all of it has come
                return body.finish()
        answer.connection.close()  # the rest would have to be read before another request could use the connection
        return body.finish()

    async def _take(self, piece: bytes, body: Receiver, deadline: Deadline, task: Task) -> None:
        if self.memory is None:
            body.add(piece)
            return
        who = task.holder or task.url
        for size in body.steps(piece):
            if not self.memory.take(who, size):
                await deadline.without(self.memory.room(who))
