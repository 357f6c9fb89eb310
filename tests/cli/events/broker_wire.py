"""A RabbitMQ that goes away and comes back, as its clients see it: what takes a node twelve seconds of work."""

import asyncio
import signal
import struct
from contextlib import suppress
from urllib.parse import urlsplit

# What a node that shuts down tells every client: connection.close, on channel 0.
REASON = b"CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"
CLOSE = struct.pack(">HHHB", 10, 50, 320, len(REASON)) + REASON + struct.pack(">HH", 0, 0)
GOODBYE = struct.pack(">BHI", 1, 0, len(CLOSE)) + CLOSE + b"\xce"


class BrokerWire:
    """A port by which a broker is reached until that is stopped: then it says goodbye and refuses."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._broker = (parts.hostname, parts.port or 5672)
        self._login = parts.netloc.rpartition("@")[0]
        self._port = 0
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        """Where it is, once it was started."""
        return f"amqp://{self._login}@127.0.0.1:{self._port}/"

    async def start(self) -> None:
        """Listen, at the same port each time."""
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self, _how: signal.Signals = signal.SIGTERM) -> None:
        """Close all connections, and refuse others."""
        assert self._server is not None
        self._server.close()
        for client in list(self._clients):
            client.write(GOODBYE)
            client.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_connection(*self._broker)
        self._clients.add(writer)
        try:
            async with asyncio.TaskGroup() as both_ways:
                both_ways.create_task(_pump(reader, ours))
                both_ways.create_task(_pump(theirs, writer))
        finally:
            self._clients.discard(writer)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            if writer.is_closing():
                break
            writer.write(data)
            await writer.drain()
    writer.close()
