"""A wire to a server of ours, which can be cut."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class Wire:
    """Carries bytes between us and the server, until it is cut: by `cut`, or instead of what `before` recognises."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname, parts.port or 5432)
        self._ends: list[asyncio.StreamWriter] = []
        self._near: list[asyncio.StreamWriter] = []  # those that are ours
        self._kept: list[asyncio.StreamWriter] = []  # those that stay open though nobody is behind them
        self.before: Callable[[bytes], bool] = lambda _: False

    @asynccontextmanager
    async def laid(self, url: str) -> AsyncIterator[str]:
        """The URL by which the server is reached through it."""
        async with await asyncio.start_server(self._carry, "127.0.0.1", 0) as listener:
            port = listener.sockets[0].getsockname()[1]
            yield re.sub(r"(?<=[@/])[^@/]*(?=/[^/]*$)", f"127.0.0.1:{port}", url)
            self.cut()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(*self._server)
        self._ends += [writer, far_writer]
        self._near.append(writer)
        async with asyncio.TaskGroup() as both_ways:
            both_ways.create_task(self._pump(reader, far_writer))
            both_ways.create_task(self._pump(far_reader, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                if self.before(data):
                    self.cut()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            if writer not in self._kept:
                writer.close()

    def cut(self) -> None:
        for end in self._ends:
            end.transport.abort()
        self._ends.clear()

    def cut_near(self) -> None:
        """Cut what there is on our side: the server hears nothing of it."""
        self._kept += [end for end in self._ends if end not in self._near]
        for end in self._near:
            end.transport.abort()
        self._near.clear()
