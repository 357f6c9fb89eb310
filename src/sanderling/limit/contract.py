"""Keep to a rate that somebody has set: only what a host says about its limits may lower it.

For hosts that are asked on a schedule, such as one document every 200 ms. The schedule bounds the load already, so a
slow answer is not a queue of our making, and an outage says nothing about a quota: neither is looked at here.

What a refusal does. *Drain*: nothing but one probe at a time, until one is served. What follows depends on what came
before it:

- A refusal alone says "not now", and nothing of the pace. The rate is at once what it was.
- One more within a minute says that this pace is too much. The rate is *stretched* to what was served from one drain's
  end to the next one's, which is what a quota comes to whatever it is counted over; then half as much again is tried,
  window by window. After each try that is refused the next waits twice as long, up to ten times as long as the host
  seems to count over: a second, or as long as it stayed closed.
"""

from dataclasses import InitVar, dataclass, field
from math import inf

from sanderling.limit.lane import Lane
from sanderling.limit.pace import PaceRules

# Seconds before the first probe of a drain, how that grows, and how long it may get; a host that refuses for long is
# seen to open within a twentieth of that time.
PROBE, PROBE_GROWTH, LONGEST_PROBE, LATE = 0.25, 1.6, 3.0, 0.05
AT_ONCE = 1.0  # seconds at most before the next probe of a host that fails, or that says to come back now
WINDOW = 1.0  # seconds that a rate must hold before more is tried
GROWTH, MARGIN = 1.5, 0.97  # of what is tried, and of what is kept to
ALONE = 60.0  # seconds without a drain after which a refusal says nothing of the pace
SECOND = 1.0  # a host that stays closed for longer counts over more than that
DRAINING = "refused, and probed until it opens"  # as people are told
LONGEST_WAIT = 10  # times as long as the host counts over, before more is tried


@dataclass(slots=True, eq=False, repr=False)
class Contract:
    """One host's rate under a contract. `rate`, `hold` and `single` are its orders; the gate obeys them."""

    _rules: PaceRules
    lane: InitVar[Lane]
    _since: float  # the end of the last drain, or the start
    rate: float
    ceiling: float | None = None  # what held last, while the rate is stretched
    hold: float = field(init=False)
    single: bool = False  # while it drains
    _next: float = field(init=False)  # when more is tried
    _refused: float = field(init=False)  # when this drain began
    _served: int = field(init=False)  # by the end of the last one
    _drained: float = -inf  # when the last drain ended
    _probes: int = 0
    _wait: float = 0.0
    _window: float = SECOND  # what the host seems to count over
    _remembered: bool = False

    counts_refusals = False  # they are how it learns
    trusts_503 = False  # one that names no time is an outage, and no quota
    usual = None  # latency is not looked at

    def __post_init__(self, lane: Lane) -> None:
        self.hold = self._next = self._refused = self._since
        self._served = lane.delivered
        lane.open_window(self._since, WINDOW)

    @property
    def doing(self) -> str:
        """What holds the rate where it is, in words."""
        if self.single:
            return DRAINING
        if self.rate < self._rules.max_rps:
            return "stretched below the operator's cadence, and growing back to it"
        return "the operator's cadence stands"

    @property
    def learned(self) -> str | None:
        """What the ceiling was learned from, in words; None if there is none."""
        if self.ceiling is None:
            return None
        return "an earlier life" if self._remembered else "what was served between two refusals"

    def remember(self, ceiling: float) -> None:
        """Begin with what held in an earlier life; if the host allows more by now, seconds show it."""
        self.rate = self.ceiling = ceiling
        self._remembered = True
        self._drained = self._since

    def bound(self, rules: PaceRules) -> None:
        """Keep to other bounds from now on; what they allow beyond the rate is grown into."""
        self._rules = rules
        self.rate = rules.clamp(self.rate)
        self.ceiling = None if self.ceiling is None else rules.clamp(self.ceiling)

    def refused(self, lane: Lane, now: float, retry_after: float | None, *, bare: bool) -> bool:  # noqa: ARG002 - as any
        """A 429, or what names a time: stop, and let one probe at a time find out when the host opens again."""
        if self.single:
            self._probes += 1
        else:
            self.single, self._probes, self._refused = True, 0, now
        pause = self._pause(now)
        # Who names a time is asked then, and not later.
        self.hold = now + (pause if retry_after is None else max(retry_after, min(pause, AT_ONCE)))
        return True

    def expects_503(self, lane: Lane, now: float) -> bool:  # noqa: ARG002 - as any strategy
        """One that names no time is an outage."""
        return False

    def failed(self, lane: Lane, now: float) -> bool:  # noqa: ARG002 - as any strategy
        """A 5xx or no answer at all: the breaker's business; but a drain does not send the next probe right away."""
        if self.single:
            self.hold = now + min(self._pause(now), AT_ONCE)
        return self.single

    def probed(self, lane: Lane, now: float) -> bool:
        """A drain's probe was served: go on as before, or stretched if that was too much."""
        if not self.single:
            return False
        if self.ceiling is not None or self._refused - self._drained < ALONE:
            self._stretch(lane, now)
        else:
            self._wait, self._window = 0.0, SECOND
        self.single = False
        self._since, self._served = now, lane.delivered
        self._drained = now
        lane.open_window(now, WINDOW)
        return True

    def interrupted(self, lane: Lane, now: float) -> None:
        """The host is down: a drain that goes on now measures the outage and no quota."""
        self.single = False
        self.hold = now
        lane.open_window(now, WINDOW)

    def close(self, lane: Lane, now: float) -> bool:
        """A window has held; try more, if it is time and there is more that was set."""
        if self.rate < self._rules.max_rps and now >= self._next:
            self.ceiling = min(self.rate, (lane.serial - lane.sent_before) / max(WINDOW, now - lane.opened))
            self.rate = self._rules.clamp(self.rate * GROWTH)
            if self.rate == self._rules.max_rps:
                self.ceiling, self._remembered = None, False
        lane.open_window(now, WINDOW)
        return False

    def _stretch(self, lane: Lane, now: float) -> None:
        closed = self.hold - self._refused  # not to now: nobody may have wanted to ask for a while
        if closed > SECOND:
            self._window = max(self._window, closed)
        level = (lane.delivered - self._served) / max(PROBE, now - self._since)
        if self.ceiling is not None and self.rate > self.ceiling and self._window <= SECOND:
            level = max(level, self.ceiling)  # what was refused was the try
        else:
            level = min(level, self.rate) * MARGIN
        self.rate = self.ceiling = self._rules.clamp(level)
        self._remembered = False
        self._wait = min(max(self._window, 2 * self._wait), LONGEST_WAIT * self._window)
        self._next = now + self._wait

    def _pause(self, now: float) -> float:
        """Seconds to the next probe of a drain: more each time."""
        longest = max(LONGEST_PROBE, LATE * (now - self._refused))
        return min(longest, PROBE * PROBE_GROWTH ** min(self._probes, 40))
