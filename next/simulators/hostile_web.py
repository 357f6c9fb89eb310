"""A web server on loopback that answers exactly what it is told to, byte by byte, and writes down what it was asked."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import responses
from types import TracebackType
from typing import Self

Headers = tuple[tuple[str, str], ...]
HTML: Headers = (("Content-Type", "text/html; charset=utf-8"),)
LONGEST_HEAD = 1 << 16


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came."""

    port: int
    method: str
    target: str
    headers: Mapping[str, str]  # lower case names
    at: float
    times: int  # how often this target was asked before

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


@dataclass(frozen=True, slots=True)
class Reply:
    """What is sent. `raw` is sent as it is, with the pauses between its parts, and the connection ends."""

    body: bytes = b""
    status: int = 200
    headers: Headers = HTML
    raw: tuple[bytes | float, ...] = ()
    chunked: bool = False

    def parts(self) -> tuple[bytes | float, ...]:
        if self.raw:
            return self.raw
        lines = [f"HTTP/1.1 {self.status} {responses.get(self.status, 'Unnamed')}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        lines.append("Transfer-Encoding: chunked" if self.chunked else f"Content-Length: {len(self.body)}")
        body = self.body
        if self.chunked:
            pieces = [body[at : at + 50] for at in range(0, len(body), 50)]
            body = b"".join(b"%x;a=b\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\nX-End: yes\r\n\r\n"
        # UTF-8: what is written with other letters is a lie of the server, and browsers read it as this.
        return ("\r\n".join([*lines, "", ""]).encode("utf-8") + body,)


Answer = Reply | Callable[[Asked], Reply]
NOT_FOUND = Reply(b"<title>Gone</title>no such page", 404)


@dataclass
class Web:
    """Hosts of 127.0.0.1, each a port with its answers by target; what has none is answered by `otherwise`."""

    hosts: int
    answers: list[dict[str, Answer]] = field(init=False)
    otherwise: list[Callable[[Asked], Reply]] = field(init=False)
    ports: list[int] = field(init=False, default_factory=list)
    log: list[Asked] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.answers = [{} for _ in range(self.hosts)]
        self.otherwise = [lambda _: NOT_FOUND] * self.hosts
        self._times: dict[tuple[int, str], int] = {}
        self._started = threading.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(),), daemon=True)

    def base(self, host: int, name: str = "127.0.0.1") -> str:
        return f"http://{name}:{self.ports[host]}"

    def asked(self, host: int) -> list[Asked]:
        return [asked for asked in self.log if asked.port == self.ports[host]]

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._started.wait(10):
            raise RuntimeError("the web did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        talking: set[asyncio.Task[None]] = set()

        def talk(number: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
            async def talk_there(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                task = asyncio.current_task()
                assert task is not None
                talking.add(task)
                with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError):
                    await self._talk(number, reader, writer)
                talking.discard(task)
                writer.close()

            return talk_there

        servers = [
            await asyncio.start_server(talk(number), "127.0.0.1", 0, backlog=500) for number in range(self.hosts)
        ]
        self.ports = [server.sockets[0].getsockname()[1] for server in servers]
        self._started.set()
        await self._ended.wait()
        for server in servers:
            server.close()
        for task in talking:
            task.cancel()
        if talking:
            await asyncio.wait(talking, timeout=5)

    async def _talk(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, target, _ = head[0].split(" ", 2)
            pairs = (line.partition(":") for line in head[1:] if line)
            headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
            await reader.readexactly(int(headers.get("content-length") or 0))
            key = number, target
            asked = Asked(self.ports[number], method, target, headers, time.monotonic(), self._times.get(key, 0))
            self._times[key] = asked.times + 1
            self.log.append(asked)
            answer = self.answers[number].get(target) or self.otherwise[number]
            reply = answer if isinstance(answer, Reply) else answer(asked)
            for part in reply.parts():
                if isinstance(part, bytes):
                    writer.write(part)
                    await writer.drain()
                else:
                    await asyncio.sleep(part)
            if reply.raw:
                return
