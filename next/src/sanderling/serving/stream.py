"""Server-sent events, as WHATWG's HTML standard has them: an answer that goes on as long as its reader reads."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import NamedTuple

from aiohttp import web

from sanderling.serving.routes import Problem

_log = logging.getLogger(__name__)
MOST_STREAMS = 1000
PATIENCE = 30.0  # seconds for a reader that does not read
HEADERS = {"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}  # the latter for nginx, which would collect


class StreamEvent(NamedTuple):
    """One event. Without a name it only says how far the stream is: nothing has happened for a while."""

    position: int
    name: str = ""
    data: bytes = b""  # one line, as JSON is

    def encode(self) -> bytes:
        """As it is sent."""
        if not self.name:
            return b": alive\nid: %d\n\n" % self.position
        return b"id: %d\nevent: %s\ndata: %s\n\n" % (self.position, self.name.encode(), self.data)


class Streams:
    """All streams of a server. A reader that is slow is dropped, and slows no other."""

    def __init__(self, most: int = MOST_STREAMS) -> None:
        self.most = most
        self._open: set[asyncio.Task[object]] = set()

    async def send(self, request: web.Request, events: AsyncGenerator[StreamEvent]) -> web.StreamResponse:
        """Answer with events until the reader goes, or there are no more. They should come every ten seconds."""
        if len(self._open) >= self.most:
            raise Problem(503, f"{self.most} streams are open, which is all there may be", {"Retry-After": "5"})
        response = web.StreamResponse(headers=HEADERS)
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a stream needs a task")
        self._open.add(task)
        try:
            async with aclosing(events):
                await response.prepare(request)
                await response.write(b"retry: 1000\n\n")
                async for event in events:
                    async with asyncio.timeout(PATIENCE):
                        await response.write(event.encode())
        except TimeoutError:
            _log.info("a stream was dropped: its reader has not read for %g s", PATIENCE)
            if request.transport is not None:
                request.transport.abort()  # what waits there would never leave
        except ConnectionError:
            pass  # the reader's way to end it
        finally:
            self._open.discard(task)
        return response

    async def close(self) -> None:
        """End all of them."""
        for task in tuple(self._open):
            task.cancel()
