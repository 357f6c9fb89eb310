"""Whose turn is it: hosts with work, strangers in a crowd, hosts that are probed, and hosts that were set aside.

Probes come first, so that the return of a host is seen in time however many others want the slots; and they are few, so
that many hosts which hang at once cost the others no more than a part of the slots. *Strangers*, hosts that have not
answered, wait apart while such hosts hold all the slots that they may, so that a slot they let go is taken at once.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from sanderling.engine.hosts import HostState
from sanderling.engine.ports import Permits
from sanderling.engine.turns import Turns

H = TypeVar("H", bound=HostState)


class HostQueues(Generic[H]):
    """Each host has one place in one of four queues, at the time it may next be asked."""

    def __init__(self, limiter: Permits, *, contract: bool) -> None:
        self._limiter = limiter
        self._contract = contract  # no host is only probed
        self.work: Turns[H] = Turns()
        self.strangers: Turns[H] = Turns()  # with work, and no slot for hosts that have not answered
        self._doubt: Turns[H] = Turns()  # of hosts that are probed
        self._aside: Turns[H] = Turns()  # and of such as were set aside, which keep nobody alive

    def __len__(self) -> int:
        """How many hosts that were not set aside have a turn to come."""
        return len(self.work) + len(self.strangers) + len(self._doubt)

    def __bool__(self) -> bool:
        return bool(self.work or self.strangers or self._doubt)

    def is_probed(self, host: H, now: float) -> bool:
        """Whether the host is only to be asked how it is."""
        if self._contract:
            return False
        if host.silent_since is not None and host.is_in_doubt(now):
            return True
        return host.aside or host.accused is not None or self._limiter.is_down(host.name)

    def add(self, host: H, due: float, *, probed: bool) -> None:
        """Give the host its place, unless it has one."""
        self._queue_of(host, probed=probed).add(host, due)

    def hasten(self, host: H, due: float) -> None:
        """Let a host that has a later place have this one."""
        for queue in (self.work, self._doubt):
            if host in queue:
                queue.hasten(host, due)

    def leave_others(self, host: H, now: float) -> None:
        """Take the host's place away if it is in another queue than it should be by now."""
        if host.turn is not None:
            own = self._queue_of(host, probed=self.is_probed(host, now))
            for queue in (self.work, self.strangers, self._doubt, self._aside):
                if queue is not own and host in queue:
                    queue.remove(host)

    def next(self, now: float, *, probes: Callable[[], bool], aside: Callable[[], bool], strangers: bool) -> H | None:
        """The host whose turn it is, among those that may be asked: some are probed, strangers, or set aside."""
        host = self._doubt.next(now) if self._doubt and probes() else None
        if host is None and self._aside and aside():
            host = self._aside.next(now)
        if host is None and strangers and self.strangers:
            host = self.strangers.next(now)  # it had its turn, and waited
        return self.work.next(now) if host is None else host

    def due(self, *, probes: Callable[[], bool], aside: Callable[[], bool]) -> float | None:
        """When the next turn is."""
        due = self.work.due()
        if self._doubt and probes() and (other := self._doubt.due()) is not None:
            due = other if due is None else min(due, other)
        if self._aside and aside() and (other := self._aside.due()) is not None:
            due = other if due is None else min(due, other)
        return due

    def _queue_of(self, host: H, *, probed: bool) -> Turns[H]:
        if host.aside:
            return self._aside
        return self._doubt if probed else self.work
