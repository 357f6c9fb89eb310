"""Server-sent events: answers that go on for as long as the client reads, and end when it does not, or when we close.

The format is that of the WHATWG's HTML standard. An `id` without `data` is no event, but moves the position that a
client comes back with: so keep-alives say how far a stream is whose client wants only few of the events.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from aiohttp import web

from sanderling.clock import Clock
from sanderling.observe import logs
from sanderling.web.problems import problem

log = logs.get(__name__)

HEADERS = {"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}  # the latter for nginx, which would collect
RETRY = b"retry: 1000\n\n"  # milliseconds until a client comes back
COME_BACK = {"Retry-After": "5"}
# Streams that send in one round of the loop. Each takes some 40 us, most of it in the kernel: a thousand that hear of
# the same change would keep everybody else waiting for 40 ms.
AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class StreamRules:
    """Bounds of streams."""

    most: int = 1_000  # at once
    alive: float = 10.0  # seconds between two keep-alives; proxies cut what is silent for 30 to 60
    patience: float = 30.0  # seconds for a client that does not read


class TooSlow(Exception):  # noqa: N818 - it is the client's way, and no error
    """The client does not read."""


class _Closed(Exception):  # noqa: N818 - the way out
    """All streams end."""


class Wire(Protocol):
    """Where a stream is written to."""

    @property
    def busy(self) -> bool:
        """Whether something is being sent."""

    async def send(self, data: bytes) -> None:
        """Return when there is room for more. Raises ConnectionError, or TooSlow."""


def event(name: str, data: bytes, position: int) -> bytes:
    """An event; `data` must be one line, as JSON is."""
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (position, name.encode(), data)


def alive(position: int) -> bytes:
    """What is sent when there is nothing to say: no event, but how far we are."""
    return b": alive\nid: %d\n\n" % position


class SendTurns:
    """Lets a few go in each round of the loop, in the order in which they came; what comes in is heard in between."""

    def __init__(self) -> None:
        self._left = AT_ONCE  # of this round
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Return when it is one's turn."""
        if self._left == AT_ONCE:
            asyncio.get_running_loop().call_soon(self._next_round)
        if self._left:
            self._left -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    def _next_round(self) -> None:
        self._left = AT_ONCE
        while self._waiting and self._left:
            turn = self._waiting.popleft()
            if not turn.done():  # whose client has gone needs none
                turn.set_result(None)
                self._left -= 1
        if self._left < AT_ONCE:
            asyncio.get_running_loop().call_soon(self._next_round)


class Streams:
    """All streams that are open."""

    def __init__(self, clock: Clock, rules: StreamRules | None = None) -> None:
        self.count = 0
        self.counted: Callable[[int], object] = lambda _: None  # is told how many there are
        self._clock = clock
        self._rules = rules or StreamRules()
        self._closed = asyncio.Event()
        self._turns = SendTurns()

    def __repr__(self) -> str:
        return f"<Streams: {self.count} of {self._rules.most}{', closed' if self._closed.is_set() else ''}>"

    def close(self) -> None:
        """End all of them, and let no more begin."""
        self._closed.set()

    async def serve(
        self, request: web.Request, told: AsyncGenerator[bytes, None], silent: Callable[[], bytes]
    ) -> web.StreamResponse:
        """Answer with all that is told, and with `silent()` now and then. Raises ProblemError if there is no room."""
        if self.count >= self._rules.most or self._closed.is_set():
            found = "the server is closing" if self._closed.is_set() else f"{self.count} streams are open"
            raise problem(503, f"{found}, expected fewer than {self._rules.most}", COME_BACK)
        response = web.StreamResponse(headers=HEADERS)
        self._add(1)
        try:
            await response.prepare(request)
            await self.run(Socket(request, response, self._rules.patience), told, silent)
        finally:
            self._add(-1)
        return response

    def _add(self, number: int) -> None:
        self.count += number
        self.counted(self.count)

    async def run(self, wire: Wire, told: AsyncGenerator[bytes, None], silent: Callable[[], bytes]) -> None:
        """Send until the client has gone, or was too slow, or there is nothing more to tell, or all are closed."""
        try:
            async with asyncio.TaskGroup() as group, aclosing(told):
                others = [
                    group.create_task(self._keep_alive(wire, silent)),
                    group.create_task(self._until_closed()),
                ]
                async for data in told:
                    await self._turns.take()
                    await wire.send(data)
                for task in others:
                    task.cancel()
        except* (ConnectionError, _Closed):
            pass  # the client's way to end it, and ours
        except* TooSlow:
            log.info("stream_dropped", why="the client does not read", seconds=self._rules.patience)

    async def _keep_alive(self, wire: Wire, silent: Callable[[], bytes]) -> None:
        while True:
            await self._clock.sleep(self._rules.alive)
            await self._turns.take()
            # What is being sent already keeps it alive, and says how far we are only when it has gone.
            if not wire.busy:
                await wire.send(silent())

    async def _until_closed(self) -> None:
        await self._closed.wait()
        raise _Closed


class Socket:
    """The wire of a real stream."""

    def __init__(self, request: web.Request, response: web.StreamResponse, patience: float) -> None:
        self.busy = False
        self._request = request
        self._response = response
        self._patience = patience

    async def send(self, data: bytes) -> None:
        """Send, and wait until there is room for more."""
        self.busy = True
        try:
            async with asyncio.timeout(self._patience):
                await self._response.write(data)
                # `write` alone waits only when much was written: a full line would take keep-alives for hours.
                await self._request.writer.drain()
        except TimeoutError:
            if self._request.transport is not None:
                self._request.transport.abort()  # what waits there would never leave
            raise TooSlow from None
        finally:
            self.busy = False
