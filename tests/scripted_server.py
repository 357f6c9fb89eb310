"""A real server on a real socket that says what it is told to, byte for byte: also what no server should say."""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from socket import SO_LINGER, SOL_SOCKET
from types import TracebackType
from typing import Self

Step = bytes | float | Callable[[asyncio.StreamWriter], Awaitable[None]]


async def reset(writer: asyncio.StreamWriter) -> None:
    """Cut the connection so that the other side sees a reset and not an end."""
    writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def answer(status: int = 200, body: bytes = b"", **headers: str) -> bytes:
    """A well-formed answer; underscores in header names become hyphens."""
    said = {name.replace("_", "-"): value for name, value in headers.items()}
    said.setdefault("Content-Length", str(len(body)))
    lines = [f"HTTP/1.1 {status} Scripted", *(f"{name}: {value}" for name, value in said.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


@dataclass(slots=True)
class Request:
    """What was asked."""

    method: str
    path: str
    headers: dict[str, str]


@dataclass(slots=True)
class ScriptedServer:
    """`async with ScriptedServer({"/": [answer(200), answer(429)]}) as server`: each request gets the next answer.

    An answer is bytes, or a list of steps: bytes to send, seconds to wait, or a function of the writer. The last answer
    of a path is given again and again; a path that is not in the script gets a 404.
    """

    script: dict[str, list[bytes | list[Step]]]
    requests: list[Request] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)  # set with the first request
    connections: int = 0
    _server: asyncio.Server | None = None
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    @property
    def port(self) -> int:
        """Where it listens, on 127.0.0.1."""
        if self._server is None:
            raise RuntimeError("the server is not running")
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def url(self, path: str = "/") -> str:
        """The address of a path."""
        return f"http://127.0.0.1:{self.port}{path}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
            for writer in self._writers:
                writer.transport.abort()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            while (request := await _read(reader)) is not None:
                self.requests.append(request)
                self.asked.set()
                await self._play(self._next(request.path), writer)
        except ConnectionError:
            pass  # the client went away, or a step cut the connection
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    def _next(self, path: str) -> bytes | list[Step]:
        answers = self.script.get(path) or [answer(404)]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def _play(self, steps: bytes | list[Step], writer: asyncio.StreamWriter) -> None:
        for step in [steps] if isinstance(steps, bytes) else steps:
            if isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
            elif isinstance(step, float | int):
                await asyncio.sleep(step)
            else:
                await step(writer)


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers)
