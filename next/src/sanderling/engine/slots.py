"""Requests in flight, and the slots that they hold: so many at a time, and few at hosts that have not answered."""

import asyncio
from collections import deque
from dataclasses import dataclass
from math import inf
from typing import Any

from sanderling.engine.host import Host
from sanderling.engine.ports import SendPermit
from sanderling.engine.rules import EngineRules

PROBES = 8  # one slot of so many may be a probe


@dataclass(slots=True, eq=False)
class Flight:
    """A request that is out."""

    host: Host
    item: Any
    permit: SendPermit
    sent_at: float
    probe: bool
    dropped: bool  # a probe with what the host answered before: nothing comes of it
    stranger: bool  # the host had not answered, or not since it failed
    from_tail: bool
    task: asyncio.Task[None] | None = None
    lent: bool = False
    over: bool = False
    cut: bool = False


class Slots:
    """A request that is slow lends its slot to another; as many again as there are slots can be lent."""

    def __init__(self, rules: EngineRules) -> None:
        self.flights: dict[Flight, None] = {}
        self.of_parked = 0  # requests at parked hosts
        self._rules = rules
        self._young: deque[Flight] = deque()  # those that have not lent their slots, the oldest first
        self._taken = 0
        self._lent = 0
        self._strangers = 0  # of those that are taken
        self._probes = 0

    @property
    def is_full(self) -> bool:
        """Whether no slot is free."""
        return self._taken >= self._rules.slots

    @property
    def is_crowded(self) -> bool:
        """Whether hosts that have not answered have all the slots that they may have together: half."""
        return self._strangers >= max(1, self._rules.slots // 2)

    @property
    def may_probe(self) -> bool:
        """Whether one more probe may be sent."""
        return self._probes < max(1, self._rules.slots // PROBES)

    def take(self, flight: Flight) -> None:
        """A request leaves."""
        host = flight.host
        host.inflight += 1
        self._taken += 1
        self._strangers += flight.stranger
        self._probes += flight.probe
        self.of_parked += host.parked
        self.flights[flight] = None
        self._young.append(flight)

    def give_back(self, flight: Flight) -> None:
        """It is not in flight any more."""
        flight.over = True
        if flight.lent:
            self._lent -= 1
            flight.host.lent -= 1
        else:
            self._free(flight)
        self._probes -= flight.probe
        self.of_parked -= flight.host.parked
        del self.flights[flight]

    def lend(self, now: float) -> list[Host]:
        """Let requests that are slow lend their slots; the hosts that may have another request for it."""
        young, rules, found = self._young, self._rules, []
        while young and (young[0].over or young[0].sent_at + rules.slow <= now):
            flight = young.popleft()
            if flight.over or self._lent >= rules.slots or flight.host.lent >= rules.per_host:
                continue
            flight.lent = True
            self._lent += 1
            flight.host.lent += 1
            self._free(flight)
            found.append(flight.host)
        return found

    def _free(self, flight: Flight) -> None:
        self._taken -= 1
        self._strangers -= flight.stranger
        flight.host.inflight -= 1

    def due(self) -> float:
        """When the next request becomes slow; infinity if there is none."""
        while self._young and self._young[0].over:
            self._young.popleft()
        return self._young[0].sent_at + self._rules.slow if self._young else inf

    def cut(self) -> None:
        """End every request; its item waits."""
        for flight in self.flights:
            if not flight.cut and flight.task is not None:
                flight.cut = True
                flight.task.cancel()
