"""Sends what was given out, and ends requests whose answers come too slowly."""

import asyncio
from functools import partial
from typing import Generic, TypeVar

from sanderling.clock import Clock, Timer
from sanderling.engine.flights import LOOK_EVERY, STOPPED, Dispatch, Flight, end_slow
from sanderling.engine.hosts import HostState
from sanderling.engine.ports import Handler, Permits, Settled, Work
from sanderling.limit import Feedback
from sanderling.task import Blame

W = TypeVar("W", bound=Work)
R = TypeVar("R")


class Sender(Generic[W, R]):
    """All requests that are in flight."""

    def __init__(self, handler: Handler[W, R], limiter: Permits, clock: Clock) -> None:
        self.flights: dict[Flight, None] = {}  # the oldest first
        self.stopped: float | None = None  # when we stopped
        self._handler = handler
        self._limiter = limiter
        self._clock = clock
        self._timer: Timer | None = None

    def stop(self) -> None:
        """Wait for what arrives well, and a while for what does not."""
        self.stopped = self._clock.now() if self.stopped is None else self.stopped

    async def send(self, host: HostState, sent: Dispatch) -> Settled[R]:
        """What came of it. One that is cut off is a failure, unless we have stopped."""
        started, work, permit = self._clock.now(), sent.work, sent.permit
        blame = Blame(work.key, host.failures(work.key), of_host=sent.probe)
        limit = asyncio.timeout(None)
        flight = Flight(host.name, work.key, limit, partial(self._handler.received, work), started, sent)
        self._begin(host, flight)
        try:
            async with limit:
                return await self._handler(work, permit, blame)
        except TimeoutError:
            if flight.cut is None:
                raise
            if flight.cut is not STOPPED:
                took = self._clock.now() - started
                self._limiter.feedback(permit, Feedback(latency=took, error=flight.cut.code, blame=blame))
            return Settled(flight.cut)
        finally:
            self._end(host, flight)
            permit.release(sent=True)

    def _begin(self, host: HostState, flight: Flight) -> None:
        host.flights = host.flights or {}
        host.flights[flight.key] = flight
        self.flights[flight] = None
        if self._timer is None:
            self._timer = self._clock.call_later(LOOK_EVERY, self._look)

    def _end(self, host: HostState, flight: Flight) -> None:
        self.flights.pop(flight, None)
        if host.flights and host.flights.get(flight.key) is flight:
            del host.flights[flight.key]

    def _look(self) -> None:
        end_slow(self.flights, self._clock.now(), self.stopped)
        self._timer = self._clock.call_later(LOOK_EVERY, self._look) if self.flights else None
