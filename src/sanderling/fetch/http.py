"""One HTTP exchange: send a task, get a reply, within limits of time and size, and only to addresses that were checked.

No redirects and no retries here: each of those is a request of its own and needs leave of its own (`attempts`).
"""

import asyncio
import re
from collections.abc import Awaitable
from dataclasses import dataclass
from importlib.metadata import version
from math import inf
from types import TracebackType
from typing import Self

import aiohttp
from yarl import URL

from sanderling.clock import Clock, SystemClock
from sanderling.fetch.attempts import moves
from sanderling.fetch.decode import ACCEPTED, Body, Receiver
from sanderling.fetch.digest import DigestSessions
from sanderling.fetch.guard import GuardRules, Refused, check_name, check_url
from sanderling.fetch.hosts import NO_HOSTS, NOTHING, HostTable
from sanderling.fetch.names import GuardedResolver
from sanderling.fetch.protocol import read_leniently
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
        self._memory = memory
        self._rules = rules or HttpRules()
        self._guard = guard or GuardRules()
        self._clock = clock or SystemClock()
        self._session: aiohttp.ClientSession | None = None
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
        read_leniently(connector)
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": rules.user_agent, "Accept-Encoding": ACCEPTED},
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=rules.connect, sock_read=None),
        )
        # It would send a GET again by itself when a connection is cut: a request that nobody gave leave for.
        self._session._retry_connection = False  # noqa: SLF001 - there is no public way; a test sees to it
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            await self._names.close()  # which aiohttp leaves to whoever made it
            self._session = None

    async def send(self, task: Task) -> Reply:
        """The reply to `task`, redirects included as they are. Raises what `classify.of_error` understands."""
        if self._session is None:
            raise RuntimeError("use the client as a context manager: async with Http() as http")
        check_url(task.url, self._guard)
        traffic = self._rules.hosts.of(task.host)
        if traffic.proxy is not None:
            check_name(task.host, self._guard)
        elif self._rules.hosts.proxies and not self._guard.private and self._rules.hosts.is_proxy(task.host):
            raise Refused("a proxy is not asked for pages: its address was not checked")
        if self._memory is not None:
            self._memory.release(
                task.holder or task.url
            )  # of an answer that nobody was given: this asks for it once more
        headers = task.headers if traffic is NOTHING else traffic.headers_for(task)
        session, used = None, ""
        if traffic.digest is not None and traffic.may_tell(task):
            session = self._digests.of(task.host, traffic.digest)
            line, used = session.prove(task.method, URL(task.url, encoded=True).raw_path_qs)
            headers = (*headers, ("Authorization", line)) if line else headers
        started = self._clock.now()
        async with _Phases(self._rules, self._clock, task.wait or inf) as phases:
            phases.begin("first byte", min(self._rules.connect + self._rules.first_byte, task.wait or inf))
            response = await self._session.request(
                task.method,
                URL(task.url, encoded=True),
                headers=headers,
                data=task.body,
                allow_redirects=False,
                proxy=traffic.proxy,
            )
            latency = self._clock.now() - started
            async with response:
                body = await self._read(response, phases, task)
        # With a proxy, it is the proxy that knows.
        address = "" if traffic.proxy else self._names.address(response.url.raw_host or "")
        sent = traffic.without_secrets(response.request_info.headers.items(), task)
        said = tuple(response.headers.items())
        challenged = session is not None and session.learn(response.status, said, used)
        reply = Reply(response.status, said, body, task.url, latency, address, sent, challenged)
        if self._memory is not None and moves(reply):
            # Whoever follows it has no use for its body, and whoever gets the end of the chase does not know of it.
            self._memory.release(task.holder or task.url)
        return reply

    async def _read(self, response: aiohttp.ClientResponse, phases: "_Phases", task: Task) -> bytes:
        rules, encoding = self._rules, response.headers.get("Content-Encoding")
        try:
            body: Receiver | None = None
            if task.receive is not None:
                body = task.receive(response.status, tuple(response.headers.items()))
            if body is None:
                body = Body(encoding, most_raw=rules.most_raw, most_decoded=rules.most_decoded, wanted=task.most)
            while not body.full:
                phases.begin("idle", min(rules.idle, task.wait or inf))
                piece = await response.content.readany()
                if not piece:
                    return body.finish()
                await self._take(piece, body, phases, task)
                if response.content.at_eof():  # the usual case: all of it has come
                    return body.finish()
            response.close()  # the rest would have to be read before another request could use the connection
            return body.finish()
        except BaseException:
            if self._memory is not None:
                self._memory.release(task.holder or task.url)
            raise

    async def _take(self, piece: bytes, body: Receiver, phases: "_Phases", task: Task) -> None:
        if self._memory is None:
            body.add(piece)
            return
        for size in body.steps(piece):
            await phases.without(self._memory.hold(task.holder or task.url, size))


class _Phases:
    """One timer for all the time limits of an exchange; its error says which of them it was.

    Moving a timer costs more than anything else here, and hardly any exchange ever needs one: so the limit that counts
    is a number, and a timer looks at it no later than the shortest of the limits could run out.
    """

    def __init__(self, rules: HttpRules, clock: Clock, wait: float) -> None:
        self._clock = clock
        self._step = min(rules.connect + rules.first_byte, rules.idle, wait)
        self._phase, self._end = "total", clock.now() + rules.total
        self._due = self._end
        self._timer = asyncio.timeout(None)

    async def __aenter__(self) -> Self:
        await self._timer.__aenter__()
        self._watch = self._clock.call_later(min(self._step, self._end - self._clock.now()), self._look)
        return self

    def begin(self, phase: str, seconds: float) -> None:
        """Give what follows so many seconds, but never more than are left of the total."""
        due = self._clock.now() + seconds
        self._phase, self._due = (phase, due) if due < self._end else ("total", self._end)

    async def without(self, waiting: Awaitable[None]) -> None:
        """Let what it is we who wait for take no time, of the total either."""
        since, self._due = self._clock.now(), inf
        await waiting
        self._end += self._clock.now() - since

    def _look(self) -> None:
        left = self._due - self._clock.now()
        if left > 0:
            self._watch = self._clock.call_later(min(self._step, left), self._look)
        else:
            self._timer.reschedule(0)  # which is past on the loop's clock, so it runs out now

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.cancel()
        try:
            await self._timer.__aexit__(kind, error, trace)
        except TimeoutError as expired:
            raise TimeoutError(self._phase) from expired
