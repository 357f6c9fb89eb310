"""The hosts a limiter knows: met when first asked for, let go when idle, with a stone for what they taught."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from random import Random

from sanderling.ids import normalise
from sanderling.limit.breaker import State
from sanderling.limit.gate import Gate, GateRules
from sanderling.limit.pace import Cap
from sanderling.limit.rules import SCOPES, STRATEGIES, LimiterRules, Scope
from sanderling.limit.tombstones import Tombstone, Tombstones

TRIED = 16  # unused hosts of which the one that was asked longest ago goes, when there is no room
LET_GO = 10  # times as many hosts as in memory, of which something is kept when they are let go
ABANDONED = 310.0  # seconds after which a permit will hardly be reported or released: few requests take longer
SWEPT = 4  # hosts looked at, for idleness, each time a new one is met: the sweep outruns the growth


class Registry:
    """Gates by host, and by scope."""

    def __init__(self, rules: LimiterRules, now: Callable[[], float], rng: Random) -> None:
        self._rules = rules
        self._now = now
        self.gates: dict[str, Gate] = {}
        self._gate_rules = {kind: _gate_rules(rules, kind, rng) for kind in ("host", *SCOPES)}
        self._tombstones = Tombstones(LET_GO * rules.hosts)
        self._caps: dict[str, Cap] = {}  # longest known first; they outlive their gates
        self._sweep: list[str] = []
        self._gone_rejected = 0

    @property
    def rejected(self) -> int:
        """Refusals ever met."""
        return self._gone_rejected + sum(gate.rejected for gate in self.gates.values())

    def gate(self, host: str) -> Gate:
        """The gate of `host`, in whichever spelling. Raises HostError for what is no host."""
        gate = self.gates.get(host)
        if gate is None:
            canonical = normalise(host)
            # The caller's own string if it is the same: one less to keep.
            gate = self.gates.get(canonical) or self._meet(host if host == canonical else canonical, "host")
        return gate

    def scope(self, scope: Scope, beside: Sequence[Gate] = ()) -> Gate:
        """The gate of a scope. Those `beside` it are about to be used and not let go to make room for it."""
        key = f"{scope.kind}/{scope.name}"  # no host contains a slash
        return self.gates.get(key) or self._meet(key, scope.kind, beside)

    def cap(self, host: str, cap: Cap | None) -> Gate | None:
        """Bound the rate of `host`, from now on and whenever it is met again; its gate, if it is in memory."""
        canonical = normalise(host)
        self._caps.pop(canonical, None)
        if cap is not None:
            self._caps[canonical] = cap
        if len(self._caps) > LET_GO * self._rules.hosts:
            del self._caps[next(iter(self._caps))]
        gate = self.gates.get(canonical)
        if gate is not None:
            gate.obey(self._rules_of(canonical, "host"), self._now())
        return gate

    def stones(self, now: float) -> Iterator[tuple[str, Tombstone]]:
        """What is worth keeping of every host, known or let go."""
        kept = Tombstones(len(self.gates) + len(self._tombstones) + 1)
        for host, stone in self._tombstones.items():
            kept.bury(host, stone, now)
        for host, gate in self.gates.items():
            kept.bury(host, gate.stone(), now)
        return kept.items()

    def recall(self, stones: Iterable[tuple[str, Tombstone]], now: float) -> None:
        """Take stones up again: known hosts heed them at once, others when they are met."""
        for host, stone in stones:
            if (gate := self.gates.get(host)) is not None:
                gate.recall(stone, now)
            else:
                self._tombstones.bury(host, stone, now)

    def forget_idle(self) -> int:
        """Let go of every idle host; how many that were."""
        now = self._now()
        idle = [host for host, gate in self.gates.items() if self._idle(gate, now)]
        for host in idle:
            self._forget(host, now)
        return len(idle)

    def _meet(self, key: str, kind: str, beside: Sequence[Gate] = ()) -> Gate:
        now = self._now()
        self._make_room(now, beside)
        gate = self.gates[key] = Gate(key, self._rules_of(key, kind), now)
        if (stone := self._tombstones.exhume(key)) is not None:
            gate.recall(stone, now)
        return gate

    def _rules_of(self, key: str, kind: str) -> GateRules:
        rules, cap = self._gate_rules[kind], self._caps.get(key)
        return rules if cap is None else rules.under(cap)

    def _make_room(self, now: float, beside: Sequence[Gate]) -> None:
        """Look at a few hosts and let the idle ones go; at the limit, anyone who is not in use."""
        self._sweep = self._sweep or list(self.gates)
        for _ in range(min(SWEPT, len(self._sweep))):
            host = self._sweep.pop()
            if (gate := self.gates.get(host)) is not None and gate not in beside and self._idle(gate, now):
                self._forget(host, now)
        if len(self.gates) >= self._rules.hosts:
            unused = (host for host, gate in self.gates.items() if _unused(gate) and gate not in beside)
            few = list(islice(unused, TRIED))
            if few:
                self._forget(min(few, key=lambda host: self.gates[host].ready), now)

    def _idle(self, gate: Gate, now: float) -> bool:
        """Nobody asked for a while, nobody waits, nothing is out, and we owe the host no silence."""
        asked = gate.ready - gate.interval
        if now - asked < self._rules.idle or gate.wanted or gate.state is not State.CLOSED:
            return False
        return gate.inflight == 0 or now - asked > ABANDONED

    def _forget(self, host: str, now: float) -> None:
        gate = self.gates.pop(host)
        self._gone_rejected += gate.rejected
        if gate.timer is not None:
            gate.timer[0].cancel()
        self._tombstones.bury(host, gate.stone(), now)


def _unused(gate: Gate) -> bool:
    """Nobody waits, nothing is out, and its stone says all of it: that of a half-open circuit would say closed."""
    return not gate.wanted and not gate.inflight and gate.state is not State.HALF_OPEN


def _gate_rules(rules: LimiterRules, kind: str, rng: Random) -> GateRules:
    pace = rules.scopes.get(kind, rules.pace)
    return GateRules(pace, rules.breaker, STRATEGIES[rules.strategy], rules.lease, rng)
