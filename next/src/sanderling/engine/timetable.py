"""When is a host's next turn, and of which kind? Decides, and changes nothing."""

from typing import Any

from sanderling.clock import Clock
from sanderling.engine.host import Host
from sanderling.engine.ports import Pacer
from sanderling.engine.rules import EngineRules
from sanderling.engine.turns import Rest

MUCH_LATER = 10.0  # a host that is not due before may be forgotten: it is found again by a look
LONGEST_PROBE_PAUSE = 30.0  # between probes of a host that is down; it doubles from two seconds


class Timetable:
    """The turns of hosts, by what they answered, what waits for them, and what their limits say."""

    def __init__(self, rules: EngineRules, pacer: Pacer[Any], clock: Clock) -> None:
        self._rules = rules
        self._blame = rules.blame
        self._pacer = pacer
        self._clock = clock

    def ready_at(self, host: Host, now: float) -> float:
        """When its limits let a request leave; `now` if they do: the pacer reads the clock later."""
        ready = self._pacer.ready_at(host.name)
        return now if ready <= self._clock.now() else ready

    def is_probed(self, host: Host) -> bool:
        """Whether only probes are sent to the host."""
        if self._blame is None:
            return False
        return host.parked or host.ends.is_down(self._blame) or self._pacer.is_open(host.name)

    def is_hopeless(self, host: Host, now: float) -> bool:
        """Whether the host is to be left alone until much later."""
        return self._blame is not None and host.ends.is_hopeless(self.ready_at(host, now) - now, self._blame)

    def probe_at(self, host: Host, now: float) -> float:
        """When the host may be probed next."""
        ready = self.ready_at(host, now)
        if host.parked:
            return max(now, ready, host.parked_until)
        if host.good is not None and not host.ends.bad_probes:
            return max(now, ready)
        pause = min(LONGEST_PROBE_PAUSE, 2.0 * 2.0 ** min(host.ends.bad_probes, 16))
        since = host.probed_at if host.ends.bad_probes else host.ends.failed_at
        return max(now, ready, since + pause)

    def due(self, host: Host, now: float, *, probing: bool) -> float | None:
        """When the host's next turn is; None: not before something has happened."""
        if host.probing and (probing or not host.has_fresh):
            return None
        if not host.ready and not (probing and host.good is not None):
            if host.loading or host.more_at is None:
                return None
            return max(host.more_at, self.probe_at(host, now) if probing else now)
        if probing:
            if not (host.ready or host.more_at is not None or host.inflight or host.unwritten):
                return None  # nothing depends on how it is
            return self.probe_at(host, now)
        few = self._blame is not None and host.ends.answered_at is None
        if host.inflight >= (min(2, self._rules.per_host) if few else self._rules.per_host):
            return None
        return max(now, self.ready_at(host, now))

    def rest(self, host: Host, due: float | None, now: float) -> Rest | None:
        """Whether and why the host may be forgotten: what is on disk says when it has to be taken up again."""
        if host.is_busy:
            return None
        if due is None:
            return Rest.IDLE
        if host.parked:
            return Rest.PARKED
        # What makes a host in trouble wait, or one that has items in memory, is nowhere but here.
        is_known = not host.ready and host.ends.silent_since is None
        return Rest.LATER if is_known and host.more_at is not None and host.more_at > now + MUCH_LATER else None

    def needs_witness(self, host: Host, item: Any) -> bool:  # noqa: ANN401 - the system's item
        """Whether this would be the item's last failure, and nothing shows that the host is well meanwhile."""
        ends = host.ends
        if self._blame is None or host.good is None or host.probing or not item.failures or not ends.failing:
            return False
        failures = ends.failures_of(item.key, item.failures)
        return failures + 1 >= self._blame.limit(ends.usual) and ends.failing.get(item.key, failures) == 0
