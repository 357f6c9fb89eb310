"""One host: everything that decides whether it may be called now, and everything it teaches us.

Pure and synchronous. Terms. *Epoch*: since the last time the rate went down; an answer may lower the rate only if its
request left within the epoch. *Generation*: since the breaker last changed; older answers change nothing. Both are
serial numbers: a permit belongs if its own is higher. *Probe*: the one request that may be out while a breaker is
half-open or a strategy drains; it is a lease that runs out, so a caller that vanishes cannot hold it for ever.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from random import Random
from typing import Self

from sanderling.clock import Timer
from sanderling.limit.breaker import Breaker, BreakerRules, State, improbable
from sanderling.limit.budget import Budget
from sanderling.limit.feedback import REFUSALS, Feedback
from sanderling.limit.hints import LONGEST, Quota
from sanderling.limit.lane import AMPLE_ROOM, Lane, Owner, Permit
from sanderling.limit.line import Line
from sanderling.limit.pace import Cap, PaceRules
from sanderling.limit.slices import SharedQuota
from sanderling.limit.strategy import MakeStrategy, Strategy
from sanderling.limit.tombstones import Tombstone

LONGEST_HEADER_WAIT = 3600.0  # seconds to believe a header that says nothing is left
HALF_OPEN_PAUSE = 1.0  # seconds to ask again while another caller's probe is out; it usually answers sooner
HANGS = 1.0  # seconds, and twice its usual latency, without an answer from a host that has no room for more
FEWEST_FAILURES = 4  # in a row, before an item may be given up


@dataclass(frozen=True, slots=True)
class GateRules:
    """What all hosts of a limiter share."""

    pace: PaceRules
    breaker: BreakerRules
    strategy: MakeStrategy
    lease: float
    rng: Random
    cap: Cap | None = None

    def under(self, cap: Cap) -> "GateRules":
        """The same for a host whose rate somebody has capped."""
        return replace(self, pace=self.pace.capped(cap.rps), cap=cap)


@dataclass(slots=True, eq=False, repr=False)
class Gate(Lane):
    """One host's state. What a host never needed is never made: an idle one is a few hundred bytes."""

    host: str = field(kw_only=True)
    _rules: GateRules = field(kw_only=True)
    not_before: float = field(kw_only=True)
    strategy: Strategy | None = None
    breaker: Breaker | None = None
    budget: Budget | None = None
    line: Line | None = None
    wanted: int = 0  # callers who wait, in this line or on their way to it
    timer: tuple[Timer, float] | None = None  # and when it fires
    allowance: tuple[float, float] | None = None  # the pace that rate headers gave, and until when
    rejected: int = 0
    excused: int = 0  # failed requests of items that were answered later
    vouched: bool = False  # whether it has answered in an earlier life
    probe: int = 0  # serial of the probe that is out
    probe_until: float = 0.0
    quota: SharedQuota | None = None  # where other limiters draw on the same

    @classmethod
    def of(cls, host: str, rules: GateRules, now: float) -> Self:
        """The gate of a host that is met now."""
        rate = rules.pace.initial_rps
        return cls(now, 1 / rate, rules.pace.slack(rate), host=host, _rules=rules, not_before=now)

    @property
    def rate(self) -> float:
        """Requests a second, right now."""
        return 1 / self.interval

    @property
    def cap(self) -> Cap | None:
        """What somebody has asked us not to exceed."""
        return self._rules.cap

    @property
    def inflight(self) -> int:
        """Permits given and not yet reported or released."""
        return self.serial - self.ended

    @property
    def state(self) -> State:
        """The breaker's."""
        return State.CLOSED if self.breaker is None else self.breaker.state

    @property
    def most_failures(self) -> int:
        """How many failures in a row of one item are improbable here, by the failures of items that were answered.

        An item that still fails never counts: bad items cannot excuse themselves.
        """
        return max(FEWEST_FAILURES, improbable((self.excused + 0.2) / (self.excused + self.delivered + 20)))

    def tokens(self, now: float) -> float:
        """Requests that could leave this instant; below one while the next is still to come due."""
        return 1 + (now - max(self.ready, now - self.slack)) / self.interval

    def refusal(self, now: float) -> float | None:
        """When to ask again, if the breaker lets nobody through; else None."""
        if self.breaker is None or self.breaker.state is State.CLOSED:
            return None
        if self.breaker.rested(now, self._rules.rng):
            self.generation = self.serial
            self.ready = max(self.ready, self.breaker.until)  # nothing was saved up while it was open
        if self.breaker.state is State.OPEN:
            return self.breaker.until
        return min(self.probe_until, now + HALF_OPEN_PAUSE) if self._probing(now) else None

    def due(self, now: float) -> float:
        """When the next request may leave, as things stand."""
        if self._single and self._probing(now):
            return self.probe_until
        due = self.ready if self.strategy is None else max(self.ready, self.strategy.hold)
        if not self.has_room:
            # As soon as an answer makes room. Those that hang, or were never reported, block the others once.
            return max(due, self.ready - self.interval + HANGS + 2 * self.mean)
        return due

    def claim(self, at: float, wanted: int) -> float:
        """From when on a request may leave, not before `at`: also by what other limiters leave of the quota."""
        if self.quota is None:
            return at
        due = self.quota.claim(at, self.interval, wanted)
        self.ready = max(self.ready, due)
        return due

    def grant(self, owner: Owner, now: float, cost: float) -> Permit:
        """The permit for a request that is due."""
        if self.cap is not None:
            cost = max(1.0, cost)  # who asks for ten seconds between requests counts requests
        if self.quota is not None:
            self.quota.use(now, self.interval, cost)
        if not self.has_room:
            self.stragglers = self.inflight
        serial = self.take(now, cost)
        probe = self._single or self.state is State.HALF_OPEN
        if probe:
            self.probe, self.probe_until = serial, now + self._rules.lease
        return Permit(owner, self, serial, cost, probe=probe)

    def probe_now(self, now: float) -> bool:
        """Let the next probe of a circuit that has just opened leave at once, unless the host asked for quiet."""
        return self.breaker is not None and self.not_before <= now and self.breaker.cut_short(now)

    def vouch(self) -> None:
        """It has answered before, whether or not that was seen here."""
        self.vouched = True
        if self.breaker is not None:
            self.breaker.good = True

    def settle(self) -> None:
        """Say whether the fast path may be taken."""
        single = self._single
        if "/" in self.host:
            self.room = AMPLE_ROOM  # what hosts share is no place where requests could wait
        self.plain = not self.line and not single and self.state is State.CLOSED
        self.calm = self.strategy is not None and not single and self.breaker is None

    def refund(self, permit: Permit, *, sent: bool) -> None:
        """Take back a permit without a result: nothing is learned, a probe's place is free again."""
        self.ended += 1
        if permit.serial == self.probe:
            self.probe = 0
        if not sent and permit.serial == self.serial > self.epoch:
            # Only the last one: the time of an earlier one is over, and to give it again would make a burst. Nor after
            # the rate went down: what was booked then was less than what a token is worth now.
            self.ready = max(self.ready - self.interval * permit.cost, self.not_before, self._hold)
            if self.quota is not None:
                self.quota.put_back(permit.cost)

    def charge(self, cost: float, now: float) -> None:
        """A request that has its permit counts for so much more."""
        self.ready += self.interval * cost
        if self.quota is not None:
            self.quota.use(now, self.interval, cost)

    def penalise(self, until: float) -> None:
        """Let nothing leave before `until`. Never shortens what was said before."""
        if until > self.not_before:
            self.not_before = until
            self.ready = max(self.ready, until)
            if self.breaker is not None:
                self.breaker.hold(until)
            if self.quota is not None:
                self.quota.hush(until)

    def close_window(self, now: float) -> None:
        """The fast path has counted successes until the window's time was over: let the strategy judge it."""
        if self.strategy is not None:
            if self.strategy.close(self, now):
                self.epoch = self.serial
            self._retime(now)
            self.settle()

    def obey(self, rules: GateRules, now: float) -> None:
        """Keep to other rules from now on; who waits already waits by them too."""
        interval = self.interval
        self._rules = rules
        if self.strategy is not None:
            self.strategy.bound(rules.pace)
        self._retime(now)
        if rules.cap is not None:
            # Counting from when the last request really left, which may have been ahead of its pace.
            self.ready = max(self.ready, self.left + self.interval - self.slack)
        if self.interval > interval:
            self.epoch = self.serial
        self.settle()

    def learn(self, permit: Permit, feedback: Feedback, now: float) -> None:
        """Take in how a permit's request went."""
        self.ended += 1
        if permit.serial == self.probe:
            self.probe = 0
        wait = _sane(feedback.retry_after)
        if wait is not None:
            # Also from an answer that is too old to teach anything else: the host has asked for quiet.
            self.penalise(now + wait)
        if permit.serial <= self.generation or not (feedback.status or feedback.error):
            return
        strategy = self.strategy or self._first(feedback, now)
        down = self._tell(strategy, permit, feedback, wait, now)
        if down:
            self.epoch = self.serial
        if feedback.quota is not None and wait is None:
            self._heed(feedback.quota, now)
        self._retime(now)
        self.settle()

    def stone(self) -> Tombstone:
        """What must not be forgotten of this host."""
        ceiling = None if self.strategy is None else self.strategy.ceiling
        # Its pace too: else a host that is let go and met again in between could be asked faster for it.
        quiet, breaker = max(self.not_before, self.ready), self.breaker
        if breaker is None or breaker.state is State.CLOSED:
            return Tombstone(ceiling or 0.0, quiet, -inf, 0)
        since = breaker.since if breaker.good else inf
        return Tombstone(ceiling or 0.0, quiet, breaker.until, max(1, breaker.pauses), since)

    def recall(self, stone: Tombstone, now: float) -> None:
        """Take up an earlier life: its penalties in full, its rate with care."""
        rules = self._rules
        if stone.ceiling > 0 and self.strategy is None:
            rate = rules.pace.clamp(min(rules.pace.initial_rps, stone.ceiling / 2))
            self.strategy = rules.strategy(rules.pace, self, now, rate)
            self.strategy.remember(rules.pace.clamp(stone.ceiling))
            self._retime(now)
        if stone.ceiling > 0 or stone.down_since < inf:
            self.vouch()
        if stone.open_until > -inf:
            self.breaker = self.breaker or Breaker(rules.breaker, now, good=self.vouched)
            self.breaker.reopen(stone.openings, stone.open_until, stone.down_since)
        self.penalise(stone.not_before)
        self.settle()

    def _tell(self, strategy: Strategy, permit: Permit, feedback: Feedback, wait: float | None, now: float) -> bool:
        """Report to the strategy and the breaker; whether the rate went down."""
        status, fresh = feedback.status, permit.serial > self.epoch
        if feedback.error is None and status < 500 and status != 429:
            return self._served(strategy, feedback, now, fresh=fresh)
        bare_503 = status != 429 and wait is None
        refused = status in REFUSALS and feedback.error is None
        # What one item does again and again is no news of the host; but a drain must know how its probe went.
        news = fresh and (strategy.single or not feedback.is_repeated)
        if refused and (strategy.trusts_503 or not bare_503):
            self.rejected += 1
            # A directed refusal is the host steering us, not failing; neither is one the strategy learns from.
            # What left before the first of them was heard is the same event.
            outage = bare_503 and news and not strategy.expects_503(self, now)
            counts = wait is None and (strategy.counts_refusals or outage)
            if counts and self._opened_by_failure(feedback, now):
                return True
            return (news or (fresh and not bare_503)) and strategy.refused(self, now, wait, bare=bare_503)
        return self._opened_by_failure(feedback, now) or (news and strategy.failed(self, now))

    def _served(self, strategy: Strategy, feedback: Feedback, now: float, *, fresh: bool) -> bool:
        if self.breaker is not None and self.breaker.succeeded(now, self._rules.rng):
            self.generation = self.serial
            self.failed = 0  # an opening that its first probe undoes has taught nothing, and others began anew already
        if strategy.single or not fresh or not 200 <= feedback.status < 400:
            # Served, which is all it says: too old, a 404, or a probe.
            self.delivered += 1
            return fresh and strategy.probed(self, now)
        if 0 < feedback.latency < inf:
            self.sample(feedback.latency)
        else:
            # A success all the same: who does not measure may still be told that more is fine.
            self.delivered += 1
            self.fresh += 1
        return now >= self.closes and strategy.close(self, now)

    def _opened_by_failure(self, feedback: Feedback, now: float) -> bool:
        """Count a failure; whether the breaker has opened.

        The strategy is told when a probe fails, or when the breaker opens while it drains: it would go on to take the
        outage for a quota. Not when it opens otherwise, which may be a false alarm.
        """
        if self.breaker is None:
            # It is made at the first failure; what went well before must count too.
            good = self.vouched or self.delivered > 0
            self.breaker = Breaker(self._rules.breaker, now, self.ended - 1, good=good)
        item = object() if feedback.blame is None else feedback.blame.item
        if not self.breaker.failed(now, self._rules.rng, item, of_host=feedback.blames_host, single=self._single):
            return False
        self.generation = self.serial
        self.probe = 0
        self.breaker.hold(self.not_before)
        if self.strategy is not None and (self.breaker.openings > 1 or self.strategy.single):
            self.strategy.interrupted(self, now)
        return True

    def _first(self, feedback: Feedback, now: float) -> Strategy:
        """A strategy is made with the first answer; it began when that request left."""
        began = now - feedback.latency if 0 < feedback.latency < inf else now
        self.strategy = self._rules.strategy(self._rules.pace, self, began, self.rate)
        self.sent_before = 0
        return self.strategy

    def _heed(self, quota: Quota, now: float) -> None:
        """Spread what the headers say is left over the time until it is renewed."""
        if quota.remaining:
            self.allowance = (quota.pace(), now + quota.resets_in)
        else:
            # A reset further off than the window it ends is a lie, or a clock gone wrong; then one request asks again.
            self.penalise(now + min(quota.resets_in, quota.window or LONGEST_HEADER_WAIT))

    def _retime(self, now: float) -> None:
        """Bring the pacer to the strategy's rate, counting from when the last request left."""
        bounds = self._rules.pace
        rate = bounds.initial_rps if self.strategy is None else self.strategy.rate
        if self.allowance is not None:
            pace, until = self.allowance
            if now >= until:
                self.allowance = None
            else:
                rate = max(bounds.min_rps, min(rate, pace))
        interval = 1 / rate
        if interval != self.interval:
            self.ready += interval - self.interval
            self.interval = interval
            self.slack = bounds.slack(rate)
        self.ready = max(self.ready, self.not_before, self._hold)

    @property
    def _single(self) -> bool:
        return self.strategy is not None and self.strategy.single

    @property
    def _hold(self) -> float:
        return self.not_before if self.strategy is None else self.strategy.hold

    def _probing(self, now: float) -> bool:
        return self.probe != 0 and now < self.probe_until


def claim_all(gates: Sequence[Gate], now: float, wanted: int) -> float:
    """When a request may leave that draws on all of these: at each, within a slice of what other limiters draw on too.

    A slice that would lapse before another one begins is of no use, and taken anew; each step goes forward.
    """
    at = now
    for _ in range(len(gates) + 1):
        before = at
        for gate in gates:
            at = gate.claim(at, wanted)
        if at == before:
            break
    return at


def _sane(retry_after: float | None) -> float | None:
    """The seconds to wait, if that is what it is: not negative, not NaN, and never more than a year."""
    if retry_after is None or not retry_after >= 0:
        return None
    return min(retry_after, LONGEST)
