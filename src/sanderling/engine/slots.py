"""How many requests may be in flight: of all hosts, of one, of a class; and who has to leave room for others."""

from msgspec.structs import replace

from sanderling.engine.classes import Class
from sanderling.engine.flights import Dispatch
from sanderling.engine.hosts import FIRST_SLOTS, HostState
from sanderling.engine.ports import Permits
from sanderling.engine.rules import EngineRules

PROBES = 4  # the part of all slots that probes may hold: one in so many


class Slots:
    """Counts what is in flight. No step looks at all of it."""

    def __init__(self, rules: EngineRules, limiter: Permits) -> None:
        # Who learns how many these should be may set them.
        self.most, self.per_host = rules.slots, rules.per_host
        self.inflight = 0
        self.unproven = 0  # of those, at hosts that have not answered, or did not any more
        self.aside = 0  # and at hosts that were set aside
        self._slotless = 0  # and without a slot
        self._probing = 0  # and to tell how a host is
        self._of = dict.fromkeys(Class, 0)
        self._rules = rules
        self._limiter = limiter

    def count(self, host: HostState, sent: Dispatch, one: int) -> None:
        """One more is out, or one fewer."""
        self.inflight += one
        self.unproven += one * sent.unproven
        self.aside += one * sent.aside
        self._slotless += one * sent.slotless
        self._probing += one * sent.judges
        self._of[sent.of] += one
        host.inflight += one * (not sent.slotless)

    def end(self, host: HostState, sent: Dispatch) -> None:
        """One has come to its end."""
        if not sent.slotless and host.hanging and sent.work.key in host.hanging:
            host.hanging.remove(sent.work.key)
            self.count(host, replace(sent, slotless=True), -1)
        else:
            self.count(host, sent, -1)

    def let_go(self, host: HostState, sent: Dispatch) -> bool:
        """One hangs: let it go on without its slot, unless many do. Whether it may."""
        host.hanging = host.hanging or set()
        if len(host.hanging) >= self._rules.most_hanging * self.per_host:
            return False
        host.hanging.add(sent.work.key)
        host.inflight -= 1
        self._slotless += 1
        return True

    @property
    def full(self) -> bool:
        """Whether all are taken."""
        return self.inflight - self._slotless >= self.most

    def may_probe(self) -> bool:
        """Whether one more host may be probed."""
        return self._probing < max(1, self.most // PROBES)

    @property
    def strangers(self) -> int:
        """How many all hosts may have together that have not answered, or do not any more: half of the slots."""
        return max(1, self.most // 2)

    @property
    def is_crowded(self) -> bool:
        """Whether such hosts hold all that they may."""
        return self.unproven > 0 and self.unproven >= self.most // 2 and not self._rules.contract

    def of_host(self, host: HostState) -> int:
        """As many as a host may have; few for one that does not answer, while such hosts hold many already."""
        if self._rules.contract:  # at one that is down the limiter lets few through: what hangs must not stop them
            return self.most if self._limiter.is_down(host.name) else self.per_host
        crowd = 4 * self.unproven >= self.most and host.is_unproven
        return min(self.per_host, FIRST_SLOTS) if crowd else self.per_host

    def has_room(self, host: HostState) -> bool:
        """Whether the host may have one more."""
        return host.inflight < self.of_host(host)

    def is_spent(self, of: Class) -> bool:
        """Whether a class has all the slots that it may have, so that others find one when they want it."""
        share = self._rules.most_slots.get(of)
        return share is not None and self._of[of] >= max(1.0, share * self.most)
