"""The hosts a limiter knows: met when first asked for, let go when idle, with a stone for what they taught."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import islice
from random import Random

from sanderling.ids import normalise
from sanderling.limit.breaker import State
from sanderling.limit.feedback import Feedback
from sanderling.limit.gate import Gate, GateRules
from sanderling.limit.lane import Permit
from sanderling.limit.pace import Cap
from sanderling.limit.rules import STRATEGIES, LimiterRules
from sanderling.limit.sharing import EACH, SCOPES, Scope, patterns_of
from sanderling.limit.shelves import Shelves
from sanderling.limit.slices import SharedQuota, SliceStore
from sanderling.limit.tombstones import Tombstone, Tombstones

TRIED = 8  # hosts looked at when there is no room: of those not in use, the one that was asked longest ago goes
LET_GO = 10  # times as many hosts as in memory, of which something is kept when they are let go
ABANDONED = 310.0  # seconds after which a permit will hardly be reported or released: few requests take longer
SWEPT = 4  # hosts looked at, for idleness, each time a new one is met: the sweep outruns the growth
CENSUS = 4096  # hosts looked at each time the busiest are asked for
LASTING = 2.0  # seconds of a penalty that a process which is killed must not forget; what is shorter is over by then
LEADERS = 1024  # of whom so many are remembered for the next time


class Census:
    """Who is asked most. Of very many gates each call looks at some, and at who led before: no call takes long.

    So one among a hundred thousand may be found a few calls later than it came to lead.
    """

    def __init__(self, gates: Mapping[str, Gate]) -> None:
        self._gates = gates
        self._counted = 0
        self._leaders: list[Gate] = []

    def top(self, count: int) -> list[Gate]:
        """So many gates, those with the most requests first."""
        few = list(islice(self._gates.values(), self._counted, self._counted + CENSUS))
        self._counted = self._counted + CENSUS if len(few) == CENSUS else 0
        seen = {gate.host: gate for gate in (*self._leaders, *few) if self._gates.get(gate.host) is gate}
        self._leaders = nlargest(max(count, LEADERS), seen.values(), key=lambda gate: gate.serial)
        return self._leaders[:count]


class Registry:
    """Gates by host, and by scope."""

    def __init__(
        self, rules: LimiterRules, now: Callable[[], float], rng: Random, slices: SliceStore | None = None
    ) -> None:
        self._rules = rules
        self._slices = slices
        self._now = now
        self.gates: dict[str, Gate] = {}
        self.scopes: dict[str, Gate] = {}
        self._gate_rules = {key: _gate_rules(rules, key, rng) for key in ("host", *SCOPES, *rules.scopes)}
        self._tombstones = Tombstones(LET_GO * rules.hosts)
        self._caps: Shelves[Cap] = Shelves(LET_GO * rules.hosts)  # they outlive their gates
        self._set_caps = {pattern: Cap(rps, f"set for {pattern}") for pattern, rps in rules.caps.items()}
        self._round: deque[Gate] = deque()  # each gate once; the first are the next to be looked at
        self.busiest, self.busiest_scopes = Census(self.gates), Census(self.scopes)
        self.rejected = 0  # refusals ever met
        self.troubled: dict[str, Gate] = {}  # whose circuit is not closed
        self.on_news: Callable[[], object] = lambda: None
        self._penalised: dict[str, None] = {}  # hosts of whose penalties `take_penalised` has not told yet

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
        return self.scopes.get(scope.key) or self._meet(scope.key, scope.kind, beside)

    def cap(self, host: str, cap: Cap | None) -> Gate | None:
        """Bound the rate of `host`, from now on and whenever it is met again; its gate, if it is in memory."""
        canonical = normalise(host)
        if cap is None:
            self._caps.of(canonical).pop(canonical, None)
        else:
            self._caps.put(canonical, cap)
        gate = self.gates.get(canonical)
        if gate is not None:
            gate.obey(self._rules_of(canonical, "host"), self._now())
        return gate

    def stones(self, now: float) -> Iterator[tuple[str, Tombstone]]:
        """What is worth keeping of every host that is known, or was let go, when the first is read."""
        gates = [*self.gates.values(), *self.scopes.values()]
        yield from ((host, stone) for host, stone in self._tombstones.items() if stone.says_anything(now))
        yield from ((gate.host, stone) for gate in gates if (stone := gate.stone()).says_anything(now))

    def take_penalised(self, most: int) -> Iterator[tuple[str, Tombstone]]:
        """So many hosts that have asked for quiet, or whose circuit has opened, since they were last taken."""
        for host in list(islice(self._penalised, most)):
            del self._penalised[host]
            gate = self._among(host).get(host)
            stone = self._tombstones.find(host) if gate is None else gate.stone()
            if stone is not None:
                yield host, stone

    def recall(self, stones: Iterable[tuple[str, Tombstone]], now: float) -> None:
        """Take stones up again: known hosts heed them at once, others when they are met."""
        for host, stone in stones:
            if (gate := self._among(host).get(host)) is not None:
                gate.recall(stone, now)
                self._note(gate)
            else:
                self._tombstones.bury(host, stone, now)

    def learn(self, permit: Permit, feedback: Feedback, now: float) -> None:
        """Take in how a permit's request went."""
        gate = permit.gate
        before, quiet, state = gate.rejected, gate.not_before, gate.state
        gate.learn(permit, feedback, now)
        self.rejected += gate.rejected - before
        shut = state is State.CLOSED and gate.state is State.OPEN
        if shut or gate.not_before > max(quiet, now + LASTING):
            self._penalised[gate.host] = None
            self.on_news()
        if self._among(gate.host).get(gate.host) is gate:
            self._note(gate)
        else:
            # An answer so late that its host was let go meanwhile: a penalty holds for the host that is, or will be.
            self.recall([(gate.host, gate.stone())], now)

    def forget_idle(self) -> int:
        """Let go of every idle host; how many that were."""
        now = self._now()
        idle = [gate for gate in self._round if self._idle(gate, now)]
        for gate in idle:
            self._forget(gate, now)
        self._round = deque([*self.gates.values(), *self.scopes.values()])
        return len(idle)

    def _meet(self, key: str, kind: str, beside: Sequence[Gate] = ()) -> Gate:
        now = self._now()
        self._make_room(now, beside)
        gate = self._among(key)[key] = Gate.of(key, self._rules_of(key, kind), now)
        if self._slices is not None and kind != "host":
            gate.quota = SharedQuota(self._slices, key)
        self._round.append(gate)
        if (stone := self._tombstones.exhume(key)) is not None:
            gate.recall(stone, now)
            self._note(gate)
        return gate

    def _rules_of(self, key: str, kind: str) -> GateRules:
        if kind != "host":
            return self._gate_rules.get(key) or self._gate_rules.get(f"{kind}/{EACH}") or self._gate_rules[kind]
        asked, patterns = self._caps.get(key), patterns_of(key) if self._set_caps else ()
        chosen = next((self._set_caps[each] for each in patterns if each in self._set_caps), None)
        caps = [cap for cap in (asked, chosen) if cap is not None]
        rules = self._gate_rules[kind]
        return rules.under(min(caps, key=lambda cap: cap.rps)) if caps else rules

    def _among(self, key: str) -> dict[str, Gate]:
        return self.scopes if "/" in key else self.gates

    def _make_room(self, now: float, beside: Sequence[Gate]) -> None:
        """Look at the next few gates and let the idle ones go; at the limit, those that were asked longest ago.

        Whoever stays goes to the end of the round, so that those who are in use cannot stand in the way.
        """
        known = len(self._round)
        full = known >= self._rules.hosts
        few = [self._round.popleft() for _ in range(min(TRIED if full else SWEPT, len(self._round)))]
        idle = [gate for gate in few if self._idle(gate, now) and gate not in beside]
        excess = known - len(idle) + 1 - self._rules.hosts
        if excess > 0:
            unused = (gate for gate in few if _unused(gate) and gate not in idle and gate not in beside)
            idle += sorted(unused, key=lambda gate: gate.ready)[:excess]
        for gate in idle:
            self._forget(gate, now)
            few.remove(gate)
        self._round.extend(few)

    def _idle(self, gate: Gate, now: float) -> bool:
        """Nobody asked for a while, nobody waits, nothing is out, and we owe the host no silence."""
        asked = gate.ready - gate.interval
        if now - asked < self._rules.idle or gate.wanted or gate.state is not State.CLOSED:
            return False
        return gate.inflight == 0 or now - asked > ABANDONED

    def _forget(self, gate: Gate, now: float) -> None:
        """Let go of a gate that is out of the round."""
        del self._among(gate.host)[gate.host]
        self.troubled.pop(gate.host, None)
        if gate.timer is not None:
            gate.timer[0].cancel()
        self._tombstones.bury(gate.host, gate.stone(), now)

    def _note(self, gate: Gate) -> None:
        """Say whether the gate's circuit is closed. It never opens, nor closes, but by what it learns or recalls."""
        if gate.state is State.CLOSED:
            self.troubled.pop(gate.host, None)
        else:
            self.troubled[gate.host] = gate


def _unused(gate: Gate) -> bool:
    """Nobody waits, nothing is out, and its stone says all of it: that of a half-open circuit would say closed."""
    return not gate.wanted and not gate.inflight and gate.state is not State.HALF_OPEN


def _gate_rules(rules: LimiterRules, key: str, rng: Random) -> GateRules:
    """The rules of hosts, of a kind of scope, or of one: somebody has set its pace, so it is a contract."""
    pace, strategy = rules.scopes.get(key, rules.pace), "contract" if "/" in key else rules.strategy
    return GateRules(pace, rules.breaker, STRATEGIES[strategy], rules.lease, rng)
