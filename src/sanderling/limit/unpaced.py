"""Permits without a pace, for services of our own: an object store, a database. A breaker closes one that is down.

Each service has a gate as a host has one. Only its breaker is asked; its rate is not. So whose fault a failure is, when
a service counts as down and how it is probed are found out as for a host.
"""

from random import Random

from sanderling.clock import Clock
from sanderling.limit.breaker import BreakerRules, State
from sanderling.limit.contract import Contract
from sanderling.limit.feedback import Feedback
from sanderling.limit.gate import Gate, GateRules
from sanderling.limit.lane import Permit
from sanderling.limit.pace import PaceRules

LEASE = 60.0  # seconds a probe may take; after that another may be sent


class Unpaced:
    """Gives permits at once, except for a service whose breaker is open."""

    def __init__(self, rules: BreakerRules, clock: Clock, rng: Random) -> None:
        self.granted = 0
        self._rules = GateRules(PaceRules(), rules, Contract, LEASE, rng)
        self._clock = clock
        self._gates: dict[str, Gate] = {}

    def try_acquire(self, host: str) -> Permit | None:
        """A permit, or None while the breaker lets nobody through."""
        gate, now = self._gate(host), self._clock.now()
        if gate.refusal(now) is not None:
            return None
        self.granted += 1
        return gate.grant(self, now, 1.0)

    def feedback(self, permit: Permit, feedback: Feedback) -> None:
        """Learn how it went. A permit counts once."""
        if permit.live:
            permit.live = False
            permit.gate.learn(permit, feedback, self._clock.now())

    def ready_at(self, host: str) -> float:
        """When `try_acquire` may next succeed; 0, which is past, if it may now."""
        return self._gate(host).refusal(self._clock.now()) or 0.0

    def turn_at(self, host: str) -> float:
        """The same: nobody stands in line."""
        return self.ready_at(host)

    def is_down(self, host: str) -> bool:
        """Whether the breaker has opened, and no probe has closed it yet."""
        return self._gate(host).state is not State.CLOSED

    def most_failures(self, host: str) -> int:
        """How many failures in a row of one item are improbable."""
        return self._gate(host).most_failures

    def excuse(self, host: str, failures: int) -> None:
        """An item was answered well after so many failures in a row."""
        self._gate(host).excused += failures

    def probe_now(self, host: str) -> bool:
        """Let the first probe of a breaker that has just opened leave at once; whether that was done."""
        return self._gate(host).probe_now(self._clock.now())

    def vouch(self, host: str) -> None:
        """Say that the service has answered before."""
        self._gate(host).vouch()

    def _gate(self, host: str) -> Gate:
        if host not in self._gates:
            self._gates[host] = Gate.of(host, self._rules, self._clock.now())
        return self._gates[host]

    # What a permit asks of whoever gave it.

    def _give_back(self, permit: Permit, *, sent: bool) -> None:
        permit.live = False
        permit.gate.refund(permit, sent=sent)

    async def _more(self, permit: Permit, host: str) -> Permit:  # noqa: ARG002 - nothing is shared
        self.granted += 1
        return self._gate(host).grant(self, self._clock.now(), 1.0)

    def _charge(self, permit: Permit, cost: float) -> None:
        """Nothing has a price."""
