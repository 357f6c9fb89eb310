"""The simulated web over real HTTP, on this machine only: each host has a port, and so is a host to whoever crawls it.

Raw asyncio, because the servers that frameworks make do not cut connections or end bodies early.
"""

import asyncio
import re
import socket
import struct
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from types import TracebackType
from typing import Self

from sanderling.clock import Clock
from sanderling.worlds.site import NOT_ALLOWED, Answer, World
from sanderling.worlds.site_tally import Tally
from sanderling.worlds.site_weather import Fault

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


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked; the names of the headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    stays: bool  # whether the client wants to ask more on this connection


class PortError(Exception):
    """A port cannot be had. The message says which and why."""


class SiteServer:
    """`async with SiteServer(world, clock) as server`: every host of the world, at `server.url(name)`.

    `first_port` is that of the first host, the others follow; 0 takes any that are free. `tallies` says for each host
    what it was asked.
    """

    def __init__(self, world: World, clock: Clock, *, first_port: int = 0, patience: float = PATIENCE) -> None:
        self.world = world
        self.tallies = {host.name: Tally() for host in world.hosts}
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
        return self.world.host(name).tree.origin + path

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
            if host.character.listens:
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
            await self._send(writer, _head(Answer(request, (("Content-Length", "0"),), b"", 0.0), stays=False))
            return False
        tally, forbidden = self.tallies[name], self.world.host(name).forbids(request.path)
        with tally.request(self._clock.now(), forbidden=forbidden):
            answer = self._ask(name, request)
            tally.note(answer)
            await self._clock.sleep(answer.latency)
            return await self._deliver(request, answer, writer)

    async def _read(self, reader: asyncio.StreamReader) -> Request | HTTPStatus:
        """The next request, or what to say to something that is none."""
        try:
            async with asyncio.timeout(self._patience):
                head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        return _parsed(head.decode("latin-1"))

    def _ask(self, name: str, request: Request) -> Answer:
        if request.method not in ("GET", "HEAD"):
            return NOT_ALLOWED
        return self.world.ask(name, request.path, request.headers, self._clock.now())

    async def _deliver(self, request: Request, answer: Answer, writer: asyncio.StreamWriter) -> bool:
        if answer.fault is Fault.RESET:
            _reset(writer)
            return False
        await self._send(writer, _head(answer, stays=request.stays))
        if request.method == "HEAD":
            return request.stays
        for pause, piece in answer.pieces():
            await self._clock.sleep(pause)
            await self._send(writer, piece)
        if answer.fault is Fault.CUT:
            await self._clock.sleep(BEFORE_A_CUT)
            _reset(writer)
        return request.stays and answer.fault not in (Fault.CUT, Fault.TRUNCATED)

    async def _send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        async with asyncio.timeout(self._patience):
            writer.write(data)
            await writer.drain()


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
        raise PortError(f"port {port} of {ADDRESS}: {error.strerror}") from None
    return made


def _parsed(head: str) -> Request | HTTPStatus:
    first, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
    request, pairs = _REQUEST.fullmatch(first), [found for line in lines if (found := _HEADER.fullmatch(line))]
    if request is None or len(pairs) < len(lines) or len(pairs) > MOST_HEADERS:
        return HTTPStatus.BAD_REQUEST
    headers = {pair[1].lower(): pair[2].rstrip(" \t") for pair in pairs}
    if "transfer-encoding" in headers or headers.get("content-length", "0") != "0":
        return HTTPStatus.REQUEST_ENTITY_TOO_LARGE  # nothing here takes a body
    stays = request[3] == "1" and "close" not in headers.get("connection", "").lower()
    return Request(request[1], request[2], headers, stays)


def _head(answer: Answer, *, stays: bool) -> bytes:
    lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in answer.headers]
    lines += [] if stays else ["Connection: close"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _reset(writer: asyncio.StreamWriter) -> None:
    """Cut the connection so that the other side sees a reset and not an end."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
