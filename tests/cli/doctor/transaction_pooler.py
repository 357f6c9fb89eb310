"""A pooler in front of a PostgreSQL that hands out a connection for each transaction, as PgBouncer does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

READY, SSL = b"Z", b"\x04\xd2\x16\x2f"  # what a server says when it waits; what a client asks first, and gets no
Wire = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Pooler:
    """Connections to the server, and those that nobody uses just now."""

    def __init__(self, url: str) -> None:
        at = urlsplit(url)
        self.host, self.port = at.hostname or "", at.port or 5432
        self.free: list[Wire] = []
        self.all: list[Wire] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Speak with a client until it leaves."""
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            first = await self._first(reader)
            if first[4:] == SSL:
                writer.write(b"N")
                first = await self._first(reader)
            self.free.append(await self._connect(first, writer))
            while said := await reader.read(65536):
                await self._transaction(said, reader, writer)
        writer.close()

    async def _first(self, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readexactly(4)
        return head + await reader.readexactly(int.from_bytes(head) - 4)

    async def _connect(self, first: bytes, writer: asyncio.StreamWriter) -> Wire:
        server = await asyncio.open_connection(self.host, self.port)
        self.all.append(server)
        server[1].write(first)
        await self._answer(server, writer)
        return server

    async def _transaction(self, said: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hand on what is said until the server is in no transaction any more."""
        server = self.free.pop()  # the one that was used last, as most poolers do
        server[1].write(said)
        async with asyncio.TaskGroup() as group:
            hearing = group.create_task(self._hand_on(reader, server[1]))
            await self._answer(server, writer)
            hearing.cancel()
        self.free.append(server)

    async def _hand_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while said := await reader.read(65536):
            writer.write(said)

    async def _answer(self, server: Wire, writer: asyncio.StreamWriter) -> None:
        """Hand on what the server says, until it waits outside of a transaction."""
        waits = False
        while not waits:
            head = await server[0].readexactly(5)
            body = await server[0].readexactly(int.from_bytes(head[1:]) - 4)
            writer.write(head + body)
            waits = head[:1] == READY and body == b"I"


@asynccontextmanager
async def pooled(url: str) -> AsyncIterator[str]:
    """The URL of the pooler in front of that server."""
    pooler = Pooler(url)
    server = await asyncio.start_server(pooler.serve, "127.0.0.1", 0)
    try:
        at = urlsplit(url)
        login = f"{at.username}@" if at.username else ""
        yield at._replace(netloc=f"{login}127.0.0.1:{server.sockets[0].getsockname()[1]}").geturl()
    finally:
        server.close()
        for _, writer in pooler.all:
            writer.close()
