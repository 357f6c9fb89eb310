"""Who was turned away at a shared gate, and when to come back: as many as the gate will serve, and in order.

For callers who do not stand in line (`try_acquire`). A hundred hosts that share one key would otherwise all come back
for each permit of it, and whichever asks first would always be first.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from sanderling.limit.gate import Gate

LATE = 5.0  # seconds after its turn, or twice as long as it was to wait, that a ticket holds


class Ticket(NamedTuple):
    """A place in the queue of a gate."""

    number: int
    until: float  # it is void if its holder has not come back by then


class Tickets:
    """The queues of all shared gates. A host has one ticket at each, however often it comes too early."""

    def __init__(self) -> None:
        self._queues: dict[str, OrderedDict[str, Ticket]] = {}

    def turn_away(self, gate: Gate, host: str, due: float, now: float) -> None:
        """Give the host a ticket for a gate that is next `due` then; one that it has is good for longer."""
        queue = self._queues.setdefault(gate.host, OrderedDict())
        if host not in queue:
            queue[host] = Ticket(next(reversed(queue.values())).number + 1 if queue else 0, 0.0)
        held = queue[host]
        wait = self._turn(queue, gate, held, due) - now
        queue[host] = held._replace(until=now + 2 * wait + LATE)

    def waiting(self, gates: Sequence[Gate]) -> int:
        """How many requests are wanted of all of these gates by now, with the one that asks."""
        return 1 + min(len(self._queues.get(gate.host, ())) for gate in gates)

    def serve(self, gate: Gate, host: str) -> None:
        """The host has a permit of the gate."""
        if (queue := self._queues.get(gate.host)) is not None and queue.pop(host, None) is not None and not queue:
            del self._queues[gate.host]

    def turn(self, gate: Gate, host: str, due: float, now: float) -> float:
        """When the host's turn is likely to be, at a gate that is next `due` then."""
        queue = self._queues.get(gate.host)
        if queue is None:
            return due
        while queue and next(iter(queue.values())).until < now:
            queue.popitem(last=False)
        if not queue:
            del self._queues[gate.host]
        held = queue.get(host)
        return due if held is None else self._turn(queue, gate, held, due)

    def _turn(self, queue: OrderedDict[str, Ticket], gate: Gate, held: Ticket, due: float) -> float:
        """Those who left from the middle are still counted as being ahead: who comes is told again."""
        return due + gate.interval * (held.number - next(iter(queue.values())).number)
