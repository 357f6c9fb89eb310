"""One host: everything that decides whether it may be called now, and everything it teaches us.

Pure and synchronous. Terms. *Epoch*: since the last time the rate went down; an answer may lower the rate only if its
request left within the epoch. *Generation*: since the breaker last changed; older answers change nothing. Both are
serial numbers: a permit belongs if its own is higher. *Probe*: the one request that may be out while a breaker is
half-open or a strategy drains; it is a lease that runs out, so a caller that vanishes cannot hold it for ever.
"""

from dataclasses import dataclass, replace
from math import inf
from random import Random
from typing import Protocol

import msgspec

from sanderling.clock import Timer
from sanderling.limit.breaker import Breaker, BreakerRules, State
from sanderling.limit.budget import Budget
from sanderling.limit.hints import LONGEST, Quota
from sanderling.limit.lane import Lane, Owner, Permit
from sanderling.limit.line import Line
from sanderling.limit.pace import Cap, PaceRules
from sanderling.limit.tombstones import Tombstone
from sanderling.limit.window import WindowRules

REFUSALS = frozenset({429, 503, 529})  # "not now" in HTTP; 529 is what several APIs say for overloaded
LONGEST_HEADER_WAIT = 3600.0  # seconds to believe a header that says nothing is left
HALF_OPEN_PAUSE = 1.0  # seconds to ask again while another caller's probe is out; it usually answers sooner


class Feedback(msgspec.Struct, frozen=True):
    """How a request went. Leave out what is not known; a status of 0 without an error teaches nothing."""

    status: int = 0
    latency: float = 0.0  # seconds to the answer
    error: BaseException | str | None = None  # no answer at all: timeout, reset, refused connection
    retry_after: float | None = None  # seconds, from the header of that name
    quota: Quota | None = None  # what rate headers said
    scope: str | None = None  # the kind of scope a refusal speaks of ("credential"), if not of the host
    failed_before: bool = False  # the same item had failed already: that it fails again says nothing of the host

    @property
    def is_plain(self) -> bool:
        """Whether it is a success and nothing more."""
        good = 200 <= self.status < 400 and 0 < self.latency < inf
        return good and self.error is None and self.retry_after is None and self.quota is None


class Strategy(Protocol):
    """Moves a host's rate by what its answers say. Each report tells whether the rate went down."""

    rate: float
    hold: float
    ceiling: float | None
    counts_refusals: bool
    trusts_503: bool  # whether a 503 or 529 without a Retry-After is a refusal; else it is a failure

    @property
    def single(self) -> bool:
        """Whether only one request may be in flight."""

    def probed(self, lane: Lane, now: float) -> bool:
        """A success while only one request may be in flight."""

    def close(self, lane: Lane, now: float) -> bool:
        """The window's time is over: judge it, if it holds enough."""

    def refused(self, lane: Lane, now: float, retry_after: float | None) -> bool:
        """A refusal."""

    def failed(self, lane: Lane, now: float) -> bool:
        """A failure."""

    def interrupted(self, lane: Lane, now: float) -> None:
        """The breaker has opened: the host is down, and what it last said is no word on its limit."""

    def remember(self, ceiling: float) -> None:
        """A ceiling that was learned in an earlier life."""

    def bound(self, rules: PaceRules) -> None:
        """The bounds of the rate have moved."""

    @property
    def doing(self) -> str:
        """What holds the rate where it is, in words."""

    @property
    def learned(self) -> str | None:
        """What the ceiling was learned from, in words; None if there is none."""

    @property
    def usual(self) -> float | None:
        """The latency that answers are judged by, in seconds; None while there is none."""


class MakeStrategy(Protocol):
    """A strategy's constructor."""

    def __call__(self, rules: PaceRules, lane: Lane, now: float, rate: float) -> Strategy:
        """A strategy for a host whose first request left at `now`."""


@dataclass(frozen=True, slots=True)
class GateRules:
    """What all hosts of a limiter share."""

    pace: PaceRules
    breaker: BreakerRules
    window: WindowRules
    strategy: MakeStrategy
    lease: float
    rng: Random
    cap: Cap | None = None

    def under(self, cap: Cap) -> "GateRules":
        """The same for a host whose rate somebody has capped."""
        return replace(self, pace=self.pace.capped(cap.rps), cap=cap)


class Gate(Lane):
    """One host's state. What a host never needed is never made: an idle one is a few hundred bytes."""

    __slots__ = (
        "_rules",
        "allowance",
        "breaker",
        "budget",
        "host",
        "line",
        "not_before",
        "probe",
        "probe_until",
        "rejected",
        "strategy",
        "timer",
        "wanted",
    )

    def __init__(self, host: str, rules: GateRules, now: float) -> None:
        pace = rules.pace
        super().__init__(now, 1 / pace.initial_rps, pace.slack(pace.initial_rps))
        self.host = host
        self._rules = rules
        self.strategy: Strategy | None = None
        self.breaker: Breaker | None = None
        self.budget: Budget | None = None
        self.line: Line | None = None
        self.wanted = 0  # callers who wait, in this line or on their way to it
        self.timer: tuple[Timer, float] | None = None  # and when it fires
        self.allowance: tuple[float, float] | None = None  # the pace that rate headers gave, and until when
        self.not_before = now
        self.rejected = 0
        self.probe = 0  # serial of the probe that is out
        self.probe_until = 0.0

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

    def tokens(self, now: float) -> float:
        """Requests that could leave this instant; below one while the next is still to come due."""
        return 1 + (now - max(self.ready, now - self.slack)) / self.interval

    def refusal(self, now: float) -> float | None:
        """When to ask again, if the breaker lets nobody through; else None."""
        if self.breaker is None or self.breaker.state is State.CLOSED:
            return None
        if self.breaker.rested(now, self._rules.rng):
            self.generation = self.serial
        if self.breaker.state is State.OPEN:
            return self.breaker.until
        return min(self.probe_until, now + HALF_OPEN_PAUSE) if self._probing(now) else None

    def due(self, now: float) -> float:
        """When the next request may leave, as things stand."""
        if self._single and self._probing(now):
            return self.probe_until
        if self.strategy is not None and self.strategy.hold > self.ready:
            return self.strategy.hold
        return self.ready

    def grant(self, owner: Owner, now: float, cost: float) -> Permit:
        """The permit for a request that is due."""
        if self.cap is not None:
            cost = max(1.0, cost)  # who asks for ten seconds between requests counts requests
        serial = self.take(now, cost)
        if self._single or self.state is State.HALF_OPEN:
            self.probe, self.probe_until = serial, now + self._rules.lease
        return Permit(owner, self, serial, cost)

    def settle(self) -> None:
        """Say whether the fast path may be taken."""
        single = self._single
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

    def penalise(self, until: float) -> None:
        """Let nothing leave before `until`. Never shortens what was said before."""
        if until > self.not_before:
            self.not_before = until
            self.ready = max(self.ready, until)
            if self.breaker is not None:
                self.breaker.hold(until)

    def close_window(self, now: float) -> None:
        """The fast path has counted successes until the window's time was over: let the strategy judge it."""
        if self.strategy is not None:
            if self.strategy.close(self, now):
                self.epoch = self.serial
            self._retime(now)
            self.settle()

    def obey(self, rules: GateRules, now: float) -> None:
        """Keep to other rules from now on; who waits already waits by them too."""
        interval, slack = self.interval, self.slack
        self._rules = rules
        if self.strategy is not None:
            self.strategy.bound(rules.pace)
        self._retime(now)
        if self.interval > interval:
            # Counting from when the last request really left, which may have been ahead of its pace.
            self.ready += slack
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
        openings = 0 if self.breaker is None else self.breaker.openings
        until = -inf if self.breaker is None or self.breaker.state is State.CLOSED else self.breaker.until
        # Its pace too: else a host that is let go and met again in between could be asked faster for it.
        return Tombstone(ceiling or 0.0, max(self.not_before, self.ready), until, openings)

    def recall(self, stone: Tombstone, now: float) -> None:
        """Take up an earlier life: its penalties in full, its rate with care."""
        rules = self._rules
        if stone.ceiling > 0 and self.strategy is None:
            rate = rules.pace.clamp(min(rules.pace.initial_rps, stone.ceiling / 2))
            self.strategy = rules.strategy(rules.pace, self, now, rate)
            self.strategy.remember(rules.pace.clamp(stone.ceiling))
            self._retime(now)
        if stone.openings:
            self.breaker = self.breaker or Breaker(rules.breaker, rules.window, now)
            self.breaker.reopen(stone.openings, stone.open_until)
        self.penalise(stone.not_before)
        self.settle()

    def _tell(self, strategy: Strategy, permit: Permit, feedback: Feedback, wait: float | None, now: float) -> bool:
        """Report to the strategy and the breaker; whether the rate went down."""
        status, fresh = feedback.status, permit.serial > self.epoch
        if feedback.error is None and status < 500 and status != 429:
            return self._served(strategy, feedback, now, fresh=fresh)
        bare_503 = status != 429 and wait is None
        refused = status in REFUSALS and feedback.error is None
        told_before = feedback.failed_before and (bare_503 or not refused)
        if told_before and self.state is State.CLOSED and not strategy.single:
            return False
        if refused and (strategy.trusts_503 or not bare_503):
            self.rejected += 1
            # A directed refusal is the host steering us, not failing; neither is one the strategy learns from.
            if wait is None and (strategy.counts_refusals or bare_503) and self._opened_by_failure(now):
                return True
            return fresh and strategy.refused(self, now, wait)
        return self._opened_by_failure(now) or (fresh and strategy.failed(self, now))

    def _served(self, strategy: Strategy, feedback: Feedback, now: float, *, fresh: bool) -> bool:
        if self.breaker is not None and self.breaker.succeeded(now, self._rules.rng):
            self.generation = self.serial
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

    def _opened_by_failure(self, now: float) -> bool:
        """Count a failure; whether the breaker has opened, and the strategy was told so."""
        if self.breaker is None:
            rules = self._rules
            self.breaker = Breaker(rules.breaker, rules.window, now)
            # It is made at the first failure; what went well just before must count too.
            self.breaker.window.record(now, answers=int(min(self.ended - 1, self.rate * rules.window.span)))
        if not self.breaker.failed(now, self._rules.rng):
            return False
        self.generation = self.serial
        self.probe = 0
        self.breaker.hold(self.not_before)
        self.ready = max(self.ready, self.breaker.until)
        if self.strategy is not None:
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


def _sane(retry_after: float | None) -> float | None:
    """The seconds to wait, if that is what it is: not negative, not NaN, and never more than a year."""
    if retry_after is None or not retry_after >= 0:
        return None
    return min(retry_after, LONGEST)
