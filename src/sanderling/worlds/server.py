"""Simulated upstreams over real HTTP, on this machine only: each host has a port, and so is a host to whoever asks it.

Raw asyncio, because the servers that frameworks make do not cut connections or end bodies early.
"""

import asyncio
import re
import socket
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from math import inf
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from sanderling.clock import Clock
from sanderling.worlds.weather import NOT_ALLOWED, TransportFault, WorldAnswer

ADDRESS = "127.0.0.1"
LARGEST_HEAD = 16_384  # bytes of a request
MOST_HEADERS = 100
MOST_CONNECTIONS = 2000  # all hosts together; who comes later is not let in
# Seconds for a client to send a request or to take a piece of the answer. More than the 15 for which aiohttp keeps an
# idle connection: it would otherwise send into one that is just being closed.
PATIENCE = 30.0
BEFORE_A_CUT = 0.05  # seconds; a reset overtakes what was sent just before it

_REQUEST = re.compile(r"([A-Z]{1,20}) (/[!-~]*) HTTP/1\.([01])")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*)")


class UpstreamHost(Protocol):
    """A host of an upstream."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def origin(self) -> str:
        """Where it is, as in http://ordinary-1.example, or with an address and a port."""

    @property
    def listens(self) -> bool:
        """Whether anyone is there to connect to."""

    def forbids(self, path: str, /) -> bool:
        """Whether its robots.txt says that the path is not to be asked for."""


class SimulatedUpstream(Protocol):
    """What can be served: hosts by name, and their answers."""

    @property
    def hosts(self) -> Sequence[UpstreamHost]:
        """All hosts."""

    def __contains__(self, name: str, /) -> bool:
        """Whether the name leads to an address."""

    def at(self, origins: Mapping[str, str]) -> Self:
        """The same at other addresses: name to http://address:port."""

    def host(self, name: str, /) -> UpstreamHost:
        """The host of that name."""

    def ask(self, host: str, path: str, headers: Mapping[str, str], now: float, /) -> WorldAnswer:
        """What a GET for the path gets that is sent at `now`."""


@dataclass(frozen=True, slots=True)
class OneHost:
    """An upstream of one host without a robots.txt."""

    name: str
    origin: str
    answer: Callable[[str, Mapping[str, str]], WorldAnswer]  # to a path, with headers whose names are in lower case
    listens: bool = True

    @property
    def hosts(self) -> tuple[Self]:
        """Itself."""
        return (self,)

    def __contains__(self, name: str) -> bool:
        return name == self.name

    def at(self, origins: Mapping[str, str]) -> Self:
        """The same at another address."""
        return replace(self, origin=origins[self.name])

    def host(self, _name: str) -> Self:
        """The one there is."""
        return self

    def forbids(self, _path: str) -> bool:
        """Nothing is forbidden."""
        return False

    def ask(self, _host: str, path: str, headers: Mapping[str, str], _now: float) -> WorldAnswer:
        """What a GET gets; it goes by a clock of its own."""
        return self.answer(path, {name.lower(): value for name, value in headers.items()})


@dataclass(slots=True)
class HostTally:
    """What one host was asked, and how it was treated. Times in seconds."""

    asked: int = 0
    forbidden: int = 0  # of these, for what its robots.txt says not to ask for
    answered: Counter[int] = field(default_factory=Counter)  # by status; what was cut on the way too
    faults: Counter[TransportFault] = field(default_factory=Counter)
    inflight: int = 0
    most_inflight: int = 0
    shortest: float = inf  # between two requests
    last: float = -inf

    @contextmanager
    def request(self, now: float, *, forbidden: bool) -> Iterator[None]:
        """Count a request for as long as it is under way."""
        self.asked += 1
        self.forbidden += forbidden
        self.inflight += 1
        self.most_inflight = max(self.most_inflight, self.inflight)
        self.shortest = min(self.shortest, now - self.last)
        self.last = now
        try:
            yield
        finally:
            self.inflight -= 1

    def note(self, answer: WorldAnswer) -> None:
        """Count what the request got."""
        if answer.status:
            self.answered[answer.status] += 1
        if answer.fault is not TransportFault.NONE:
            self.faults[answer.fault] += 1


@dataclass(frozen=True, slots=True)
class WorldRequest:
    """What was asked; the names of the headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    stays: bool  # whether the client wants to ask more on this connection
    body: bytes = b""


class WorldPortError(Exception):
    """A port cannot be had. The message says which and why."""


U = TypeVar("U", bound=SimulatedUpstream)


class WorldServer(Generic[U]):
    """`async with WorldServer(world, clock) as server`: every host of the world, at `server.url(name)`.

    `first_port` is that of the first host, the others follow; 0 takes any that are free. `tallies` says for each host
    what it was asked.
    """

    most_body = 0  # bytes that a request may carry

    def __init__(self, world: U, clock: Clock, *, first_port: int = 0, patience: float = PATIENCE) -> None:
        self.world = world
        self.tallies = {host.name: HostTally() for host in world.hosts}
        self._clock = clock
        self._first_port = first_port
        self._patience = patience
        self._servers: list[asyncio.Server] = []
        self._busy: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await self._open(stack)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self._servers:
            server.close()
        self._servers.clear()
        for writer, task in self._busy.items():
            task.cancel()
            writer.transport.abort()  # for a task that had not begun yet
        # Without the error: the group within would wrap it into one of its own.
        await self._stack.aclose()

    def url(self, name: str, path: str = "/") -> str:
        """Where a path of a host is found."""
        return self.world.host(name).origin + path

    async def _open(self, stack: AsyncExitStack) -> None:
        sockets = {
            host.name: stack.enter_context(_bound(self._first_port and self._first_port + number))
            for number, host in enumerate(self.world.hosts)
        }
        ports = {name: each.getsockname()[1] for name, each in sockets.items()}
        self.world = self.world.at({name: f"http://{ADDRESS}:{port}" for name, port in ports.items()})
        group = await stack.enter_async_context(asyncio.TaskGroup())
        for host in self.world.hosts:
            # One that does not listen keeps its port all the same, so that nobody else listens there.
            if host.listens:
                welcome = partial(self._welcome, group, host.name)
                listening = await asyncio.start_server(welcome, sock=sockets[host.name], limit=LARGEST_HEAD)
                self._servers.append(await stack.enter_async_context(listening))

    def _welcome(
        self, group: asyncio.TaskGroup, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Give a connection a task of its own, unless there are too many or all are being closed."""
        if not self._servers or len(self._busy) >= MOST_CONNECTIONS:
            writer.transport.abort()
            return
        self._busy[writer] = group.create_task(self._serve(name, reader, writer))

    async def _serve(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # What was written is gone once `drain` returns: nothing waits in memory for a client that does not read.
        writer.transport.set_write_buffer_limits(0)
        try:
            while await self._exchange(name, reader, writer):
                pass
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError):
            pass  # the client has gone, or was too slow, or this was a fault of ours on purpose
        finally:
            del self._busy[writer]
            writer.transport.abort()

    async def _exchange(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether there may be another on this connection."""
        request = await self._read(reader)
        if isinstance(request, HTTPStatus):
            await self._send(writer, _head(WorldAnswer(request, (("Content-Length", "0"),), b"", 0.0), stays=False))
            return False
        tally, forbidden = self.tallies[name], self.world.host(name).forbids(request.path)
        with tally.request(self._clock.now(), forbidden=forbidden):
            answer = self._ask(name, request)
            tally.note(answer)
            await self._clock.sleep(answer.latency)
            return await self._deliver(request, answer, writer)

    async def _read(self, reader: asyncio.StreamReader) -> WorldRequest | HTTPStatus:
        """The next request, or what to say to something that is none."""
        try:
            async with asyncio.timeout(self._patience):
                head = await reader.readuntil(b"\r\n\r\n")
                request = _parse(head.decode("latin-1"))
                if isinstance(request, HTTPStatus) or not (length := request.headers.get("content-length")):
                    return request
                if not length.isdecimal() or int(length) > self.most_body:
                    return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
                return replace(request, body=await reader.readexactly(int(length)))
        except asyncio.LimitOverrunError:
            return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE

    def _ask(self, name: str, request: WorldRequest) -> WorldAnswer:
        if request.method not in ("GET", "HEAD"):
            return NOT_ALLOWED
        return self.world.ask(name, request.path, request.headers, self._clock.now())

    async def _deliver(self, request: WorldRequest, answer: WorldAnswer, writer: asyncio.StreamWriter) -> bool:
        if answer.fault is TransportFault.RESET:
            _reset(writer)
            return False
        await self._send(writer, _head(answer, stays=request.stays))
        if request.method == "HEAD":
            return request.stays
        for pause, piece in answer.pieces():
            await self._clock.sleep(pause)
            await self._send(writer, piece)
        if answer.fault is TransportFault.CUT:
            await self._clock.sleep(BEFORE_A_CUT)
            _reset(writer)
        return request.stays and answer.fault not in (TransportFault.CUT, TransportFault.TRUNCATED)

    async def _send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        async with asyncio.timeout(self._patience):
            writer.write(data)
            await writer.drain()


class OneHostServer(WorldServer[OneHost]):
    """A server of a single host."""

    @property
    def host(self) -> str:
        """Its address and port."""
        return self.world.origin.removeprefix("http://")

    def url(self, name: str = "", path: str = "") -> str:  # noqa: ARG002 - there is one host
        """Where a path is found; without one, what all paths are appended to."""
        return self.world.origin + path


def _bound(port: int) -> socket.socket:
    """A socket that has its port and does not listen yet."""
    # The protocol by name: asyncio sends small pieces at once only where it stands there.
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setblocking(False)  # noqa: FBT003 - the socket's own signature
        made.bind((ADDRESS, port))
    except OSError as error:
        made.close()
        raise WorldPortError(f"port {port} of {ADDRESS}: {error.strerror}") from None
    return made


def _parse(head: str) -> WorldRequest | HTTPStatus:
    first, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
    request, pairs = _REQUEST.fullmatch(first), [found for line in lines if (found := _HEADER.fullmatch(line))]
    if request is None or len(pairs) < len(lines) or len(pairs) > MOST_HEADERS:
        return HTTPStatus.BAD_REQUEST
    headers = {pair[1].lower(): pair[2].rstrip(" \t") for pair in pairs}
    if "transfer-encoding" in headers:
        return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    stays = request[3] == "1" and "close" not in headers.get("connection", "").lower()
    return WorldRequest(request[1], request[2], headers, stays)


def _head(answer: WorldAnswer, *, stays: bool) -> bytes:
    lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in answer.headers]
    lines += [] if stays else ["Connection: close"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _reset(writer: asyncio.StreamWriter) -> None:
    """Cut the connection so that the other side sees a reset and not an end."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
