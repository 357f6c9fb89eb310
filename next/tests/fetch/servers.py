"""Servers on loopback that say exactly what a test wants, byte by byte."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from sanderling.fetch import Client, HttpRequest, HttpResponse, RequestOptions
from sanderling.fetch.messages import LARGEST

# Bytes, or what writes them itself.
Reply = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Upstream:
    """A server that has gone through its replies repeats the last."""

    replies: list[Reply]
    keep: bool = False  # leave connections open
    heads: list[str] = field(default_factory=list)  # of the requests that came
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head.decode())
                reply = self.replies[min(len(self.heads), len(self.replies)) - 1]
                if isinstance(reply, bytes):
                    writer.write(reply)
                    await writer.drain()
                else:
                    await reply(writer)
                if not self.keep:
                    return
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            return  # the test is over
        finally:
            writer.close()

    def header(self, name: str, request: int = -1) -> str | None:
        """A header that came with a request."""
        for line in self.heads[request].split("\r\n")[1:]:
            found, _, value = line.partition(": ")
            if found.lower() == name:
                return value
        return None


@asynccontextmanager
async def upstream(
    *replies: Reply, keep: bool = False, tls: ssl.SSLContext | None = None, at: str = "127.0.0.1"
) -> AsyncIterator[Upstream]:
    it = Upstream(list(replies), keep)
    server = await asyncio.start_server(it.serve, at, 0, ssl=tls)
    it.port = server.sockets[0].getsockname()[1]
    try:
        yield it
    finally:
        server.close()


def says(status: str = "200 OK", headers: Iterable[str] = (), body: bytes = b"") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def moves(to: str, status: int = 302, *headers: str) -> bytes:
    return says(f"{status} Moved", (f"Location: {to}", *headers))


async def fetch(
    url: str, *, largest: int = LARGEST, cut: bool = False, headers: tuple[tuple[str, str], ...] = (), **options: object
) -> HttpResponse:
    """One request of a client of its own."""
    async with Client(RequestOptions(**{"private": True, "policy": "none", "timeout": 5.0, **options})) as client:
        return await client.send(HttpRequest(url, headers=headers, largest=largest, cut=cut))
