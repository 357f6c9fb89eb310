"""The door: a socket, connections within bounds, and an orderly end."""

import asyncio
import errno
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple

from aiohttp import web

from sanderling.observe import logs
from sanderling.web.access import SAFE_HEADERS, VARIABLE, Access, AccessError, Token, is_loopback
from sanderling.web.app import ACCESS, CLOCK
from sanderling.web.problems import answer, problem

log = logs.get(__name__)

BACKLOG = 512  # connections that wait to be let in


@dataclass(frozen=True, slots=True)
class ServeRules:
    """Bounds of connections."""

    most: int = 2_000  # at once: twice as many as streams; who comes later is not let in
    idle: float = 20.0  # seconds until the head of the next request is complete
    lingering: float = (
        5.0  # seconds that the rest of a body is read for, which nobody wants, so that the answer arrives
    )
    closing: float = 5.0  # seconds for requests that are under way when it ends


class AddressError(Exception):
    """An address cannot be had. The message says which and why."""


class ForeignError(AddressError):
    """It is none of this machine's, whatever the port."""


class Address(NamedTuple):
    """Where it is served."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """What all paths are appended to."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


@asynccontextmanager
async def serving(
    app: web.Application, host: str, port: int, token: Token | None, rules: ServeRules | None = None
) -> AsyncIterator[Address]:
    """Serve the application while the block runs. Port 0 takes any that is free.

    Raises AccessError for an address that others can reach if there is no token, and AddressError if it cannot be had.
    """
    rules = rules or ServeRules()
    bound = await _bound(host, port, token)
    app[ACCESS] = Access(token, app[CLOCK])
    # The server waits this long twice: for requests to end, and then for their connections.
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=rules.closing / 2)
    try:
        with bound:
            await runner.setup()
            listening = await _listen(runner, bound, rules)
            address = Address(*bound.getsockname()[:2])
            log.info("serving", address=address.url, secured=token is not None)
            try:
                yield address
            finally:
                listening.close()
    finally:
        await runner.cleanup()


async def _listen(runner: web.AppRunner, bound: socket.socket, rules: ServeRules) -> asyncio.Server:
    server, loop = runner.server, asyncio.get_running_loop()
    if server is None:
        raise RuntimeError("the runner is not set up")

    def connection() -> asyncio.BaseProtocol:
        if len(server.connections) >= rules.most:
            return _Refused()
        return _Connection(
            server,
            loop=loop,
            access_log=None,  # type: ignore[arg-type] # which means none
            keepalive_timeout=rules.idle,
            lingering_time=rules.lingering,
            auto_decompress=False,  # no route takes what is compressed, and unpacking a bomb costs as much as taking it
        )

    return await loop.create_server(connection, sock=bound, backlog=BACKLOG)


class _Refused(asyncio.Protocol):
    """A connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


class _Connection(web.RequestHandler):
    """A connection whose errors look like all others, and of which nothing is logged that a client wrote."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - it quotes what was sent
    ) -> web.StreamResponse:
        log.debug("connection_error", peer=request.remote, status=status, error=type(exc).__name__)
        if request.writer.output_size > 0:
            raise ConnectionResetError("the answer ended early")
        detail = "this is no HTTP request that can be read" if status == 400 else "this is a mistake of ours"
        response = answer(problem(status, detail, SAFE_HEADERS))
        response.force_close()
        return response


async def _bound(host: str, port: int, token: Token | None) -> socket.socket:
    """A socket that has the address and does not listen yet."""
    family, address = await _resolved(host, port)
    if token is None and not is_loopback(str(address[0])):
        raise AccessError(
            f"{host} can be reached from other machines and there is no token; set {VARIABLE}, or serve on 127.0.0.1"
        )
    # The protocol by name: asyncio sends small pieces at once only where it stands there.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setblocking(False)  # noqa: FBT003 - the socket's own signature
        bound.bind(address)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise ForeignError(f"{host} is no address of this machine; 0.0.0.0 means all that it has") from None
        raise AddressError(f"port {port} of {host}: {error.strerror}; choose another port, or 0 for any") from None
    return bound


async def _resolved(host: str, port: int) -> tuple[int, tuple[str | int | bytes, ...]]:
    """The address that a name means; if it means several, the first of the older kind, which all clients can reach."""
    if not 0 <= port <= 65_535:
        raise AddressError(f"port is {port}, expected 0 to 65535")
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise ForeignError(f"host {host[:100]!r}: {error.strerror}") from None
    family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return family, address
