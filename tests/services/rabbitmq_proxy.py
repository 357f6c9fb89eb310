"""A wire to a RabbitMQ that can be cut, or fall silent."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Self
from urllib.parse import urlsplit


class Proxy:
    """Stands between us and the server, and can cut, refuse or fall silent."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 5672
        self._login = parts.netloc.rpartition("@")[0]
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._speaks = asyncio.Event()
        self._speaks.set()
        self.refuses = False
        self.cut_after = sys.maxsize  # bytes to the server

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        if self._serving:
            await asyncio.wait(self._serving, timeout=5)

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"amqp://{self._login}@127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"

    def cut(self) -> None:
        """End all connections."""
        self._speaks.set()
        self.cut_after = sys.maxsize
        for writer in self._writers:
            writer.transport.abort()

    def silence(self) -> None:
        """Connections stay, and nothing goes through them to the server."""
        self._speaks.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refuses:
            writer.transport.abort()
            return
        there, back = await asyncio.open_connection(self._host, self._port)
        self._writers |= {writer, back}
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._carry(reader, back, self._pass))
                group.create_task(self._carry(there, writer, None))
        finally:
            self._writers -= {writer, back}
            self._serving.discard(task)
            writer.transport.abort()
            back.transport.abort()

    async def _pass(self, size: int) -> None:
        await self._speaks.wait()
        self.cut_after -= size
        if self.cut_after < 0:
            self.cut()

    @staticmethod
    async def _carry(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, may: Callable[[int], Awaitable[None]] | None
    ) -> None:
        try:
            while data := await reader.read(1024):
                if may is not None:
                    await may(len(data))
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()
