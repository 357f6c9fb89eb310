"""Sends what was given out, and ends requests whose answers come too slowly, or too late."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from typing import Any, Generic, TypeVar

from sanderling.clock import Clock, Timer
from sanderling.engine.flights import LOOK_EVERY, SUPERSEDED, Dispatch, Flight, end_slow
from sanderling.engine.hosts import HostState
from sanderling.engine.ports import Handler, Permits, Settled, Work
from sanderling.engine.rules import EngineRules
from sanderling.limit import Feedback
from sanderling.outcome import Code
from sanderling.task import Blame

W = TypeVar("W", bound=Work)
R = TypeVar("R")
H = TypeVar("H", bound=HostState)


class Sender(Generic[H, W, R]):
    """All requests that are in flight. `let_go` is told of those that hang, and says whether they may go on."""

    def __init__(
        self,
        handler: Handler[W, R],
        limiter: Permits,
        clock: Clock,
        rules: EngineRules,
        let_go: Callable[[H, Dispatch], bool],
    ) -> None:
        self.flights: dict[Flight, None] = {}  # the oldest first
        self.stopped: float | None = None  # when we stopped
        self._handler = handler
        self._received = handler.received
        self._limiter = limiter
        self._clock = clock
        self._rules = rules
        self._let_go = let_go
        self._timer: Timer | None = None

    def stop(self) -> None:
        """Wait for what arrives well, and a while for what does not."""
        self.stopped = self._clock.now() if self.stopped is None else self.stopped

    async def send(self, host: H, sent: Dispatch) -> Settled[R]:
        """What came of it. One that is cut off is a failure, unless we have stopped or know better by now."""
        started, work, permit = self._clock.now(), sent.work, sent.permit
        blame = Blame(work.key, host.failures(work.key) if host.failing else 0, of_host=sent.probe)
        # Not by asyncio.timeout, which costs more than all else here: hardly any request is ever cut off.
        task: Any = asyncio.current_task()
        flight = Flight(host.name, work.key, task, self._received, started, sent, started)
        hangs = self._begin(host, flight)
        try:
            settled = await self._handler(work, permit, blame)
        except asyncio.CancelledError:
            if flight.cut is None or not flight.cancelled or task.uncancel():
                raise  # somebody else cancels us
            if flight.cut.code is Code.TIMEOUT:
                took = self._clock.now() - started
                self._limiter.feedback(permit, Feedback(latency=took, error=flight.cut.code, blame=blame))
            return Settled(flight.cut)
        finally:
            if hangs is not None:
                hangs.cancel()
            self._end(host, flight)
            if permit.live:
                permit.release(sent=True)
        if settled.outcome.code.ok and (flight.older is not None or sent.down or host.hanging):
            self._end_older(host, flight)
        return settled

    def _begin(self, host: H, flight: Flight) -> Timer | None:
        """Take it in; the timer that goes off when it hangs."""
        host.flights = host.flights or {}
        flight.older = host.flights.get(flight.key)
        host.flights[flight.key] = flight
        self.flights[flight] = None
        if self._timer is None:
            self._timer = self._clock.call_later(LOOK_EVERY, self._look)
        hangs = self._rules.hangs if flight.sent.slotless else host.hangs_after(flight.sent.work)
        return None if hangs == inf else self._clock.call_later(hangs, partial(self._hangs, host, flight))

    def _end(self, host: H, flight: Flight) -> None:
        flight.over = True
        self.flights.pop(flight, None)
        flights = host.flights or {}
        if (last := flights.get(flight.key)) is not flight:
            for each in _chain(last):
                each.older = flight.older if each.older is flight else each.older
        elif flight.older is None:
            del flights[flight.key]
        else:
            flights[flight.key] = flight.older

    def _hangs(self, host: H, flight: Flight) -> None:
        """It takes long: let others be asked for meanwhile, unless many hang already."""
        if sum(each.let_go for each in _chain(flight.older)) >= self._rules.most_hanging:
            flight.end(SUPERSEDED)
            return
        flight.let_go = True
        if not self._let_go(host, flight.sent):
            flight.end(SUPERSEDED)

    def _end_older(self, host: H, flight: Flight) -> None:
        """A good answer: what was asked for earlier would be old, and what hung then hangs for good.

        At a host that was down, that is all there is.
        """
        older = list(_chain(flight.older))
        for each in (each for last in (host.flights or {}).values() for each in _chain(last)):
            hangs = each.let_go and not each.sent.slotless
            if each.began < flight.began and (flight.sent.down or hangs):
                older.append(each)
        for each in older:
            each.end(SUPERSEDED)

    def _look(self) -> None:
        end_slow(self.flights, self._clock.now(), self.stopped)
        self._timer = self._clock.call_later(LOOK_EVERY, self._look) if self.flights else None


def _chain(flight: Flight | None) -> Iterator[Flight]:
    """A request, and those for the same item that left before it."""
    while flight is not None:
        yield flight
        flight = flight.older
