"""One request on a connection and the head of its answer: aiohttp's connections and parser, without its session.

What a session does for a request costs twice as much as all else on the way, and none of it is wanted here: cookies,
redirects, retries and decoding are done elsewhere, each with leave. docs/why/http-client.md has the figures.
"""

import asyncio
import re
from functools import lru_cache
from typing import NamedTuple

import aiohttp
from aiohttp import hdrs, http_exceptions
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.streams import StreamReader
from yarl import URL

from sanderling.fetch.classify import NotHttp
from sanderling.fetch.guard import GuardRules, Refused, check_name, check_url
from sanderling.fetch.hosts import HostTable, HostTraffic
from sanderling.fetch.protocol import MOST_HEAD, read_leniently
from sanderling.task import Headers, Task

KNOWN = 1024  # origins of which it is remembered how they are asked
BODILESS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
FRAMING = frozenset({"content-length", "transfer-encoding"})  # which is for whoever sends the body to say
_ORIGIN = re.compile(r"[A-Za-z]+://[^/?#]*")
CONTINUES = range(100, 200)  # statuses of what comes before the answer
SWITCHED = 101


class Origin(NamedTuple):
    """How one origin, that may be asked, is asked."""

    traffic: HostTraffic  # what is set for its host
    request: aiohttp.ClientRequest  # by which the connector knows where to
    target: str  # what stands before the path: all of the address, for a proxy that is to read it
    sent: Headers  # with each request
    head: bytes  # the same, as it is written after the path


class WireAnswer(NamedTuple):
    """The head of an answer, and its body as it comes. Whoever does not read that to its end closes the connection."""

    status: int
    headers: Headers
    encoding: str | None
    body: StreamReader
    sent: Headers
    connection: Connection


class HttpWire:
    """Requests over the connections of one connector, which has made none yet, to hosts that the guard lets through."""

    def __init__(
        self, connector: aiohttp.TCPConnector, guard: GuardRules, hosts: HostTable, headers: Headers, connect: float
    ) -> None:
        read_leniently(connector)
        self._connector = connector
        self._guard = guard
        self._hosts = hosts
        self._headers = (*headers, ("Accept", "*/*"))
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect)
        self._loop = asyncio.get_running_loop()
        self._origin = lru_cache(KNOWN)(self._know)

    async def close(self) -> None:
        """End all connections."""
        await self._connector.close()

    def origin_of(self, url: str) -> Origin:
        """How the origin of an address is asked. Raises Refused if it may not be."""
        return self._origin(url[: _path_begins(url)])

    async def ask(self, task: Task, origin: Origin, headers: Headers) -> WireAnswer:
        """Send a task to its origin with these headers, once; what came back, up to its body. Raises aiohttp errors."""
        connection = await self._connect(origin)
        try:
            head, sent = _head(origin, task, headers)
            line = f"{task.method} {origin.target}{target_of(task.url)} HTTP/1.1\r\n".encode()
            message, body = await _exchange(connection, line + head + (task.body or b""), task.method)
        except BaseException:
            connection.close()
            raise
        body.on_eof(connection.release)
        # With names as they were sent, which aiohttp spells in its own way elsewhere.
        received = tuple([(_text(name), _text(value)) for name, value in message.raw_headers])
        encoding = message.headers.get(hdrs.CONTENT_ENCODING)
        return WireAnswer(message.code, received, encoding, body, sent, connection)

    async def _connect(self, origin: Origin) -> Connection:
        try:
            return await self._connector.connect(origin.request, [], self._timeout)
        except TimeoutError as expired:
            raise aiohttp.ConnectionTimeoutError(f"Connection timeout to host {origin.request.host}") from expired

    def _know(self, address: str) -> Origin:
        host = check_url(address, self._guard)
        traffic = self._hosts.of(host)
        if traffic.proxy is not None:
            check_name(host, self._guard)
        elif self._hosts.proxies and not self._guard.private and self._hosts.is_proxy(host):
            raise Refused("a proxy is not asked for pages: its address was not checked")
        proxy = None if traffic.proxy is None else URL(traffic.proxy)
        request = aiohttp.ClientRequest("GET", URL(address, encoded=True), loop=self._loop, proxy=proxy)
        sent = (("Host", request.headers[hdrs.HOST]), *self._headers)
        return Origin(traffic, request, address if proxy and not request.is_ssl() else "", sent, _written(sent))


async def _exchange(connection: Connection, said: bytes, method: str) -> tuple[RawResponseMessage, StreamReader]:
    protocol, transport = connection.protocol, connection.transport
    if protocol is None or transport is None or transport.is_closing():
        raise aiohttp.ClientConnectionResetError("the connection was closed before anything was sent")
    protocol.set_response_params(
        skip_payload=method == "HEAD",
        read_until_eof=True,
        auto_decompress=False,
        max_line_size=MOST_HEAD,
        max_field_size=MOST_HEAD,
        max_headers=MOST_HEAD,
    )
    transport.write(said)
    try:
        message, body = await protocol.read()
        while message.code in CONTINUES and message.code != SWITCHED:
            message, body = await protocol.read()
    except http_exceptions.HttpProcessingError as error:
        raise aiohttp.ClientError("what came is no HTTP") from error
    if message.code < CONTINUES.start:
        raise NotHttp(f"the status is {message.code:03}, expected 100 to 599")
    return message, body


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _path_begins(url: str) -> int:
    """Where the origin of an address ends; 0 if it has none, which may not be asked."""
    found = _ORIGIN.match(url)
    return found.end() if found else 0


def target_of(url: str) -> str:
    """What of an address a host is asked for."""
    path = url[_path_begins(url) :].partition("#")[0]
    return path if path.startswith("/") else f"/{path}"


def _head(origin: Origin, task: Task, headers: Headers) -> tuple[bytes, Headers]:
    """The headers of a request as they are written, and as they are."""
    leave = origin.request.headers.get(hdrs.PROXY_AUTHORIZATION) if origin.target else None
    if not headers and leave is None and task.body is None and task.method in BODILESS:
        return origin.head, origin.sent
    names = {name.lower() for name, _ in headers}
    own = [pair for pair in headers if pair[0].lower() not in FRAMING]
    sent = [*(pair for pair in origin.sent if pair[0].lower() not in names), *own]
    if task.body is not None and "content-type" not in names:
        sent.append(("Content-Type", "application/octet-stream"))
    if task.body is not None or task.method not in BODILESS:
        sent.append(("Content-Length", str(len(task.body or b""))))
    return _written((*sent, *(() if leave is None else ((hdrs.PROXY_AUTHORIZATION, leave),)))), tuple(sent)


def _written(headers: Headers) -> bytes:
    return ("".join(f"{name}: {value}\r\n" for name, value in headers) + "\r\n").encode()
