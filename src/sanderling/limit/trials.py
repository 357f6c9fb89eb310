"""What a host's objections have proved about its limit, and when to put that to the test again.

Tricky bits. What a refusal proves depends on what came before it:

- A long drain means a quota counted over a window (600 a minute): the ceiling is what was served in one such window.
- A refusal soon after resuming means the level was too high while nothing was saved up on the host's side: what was
  served since the last refusal *is* the quota.
- A refusal during a test means the last level that passed is right, unless unused allowance piles up at the host (a
  deep bucket, learned by being fooled once): then short tests pass that should not, and the ceiling from before stands.
"""

from enum import Enum
from math import inf

PROBE, PROBE_GROWTH = 0.25, 1.6  # seconds before the first probe of a drain, and how that grows
LONGEST_PROBE = 600.0  # a host that refused all day may open any minute
STEP = 0.04  # of the first test above the ceiling; doubled after each test that passes
LARGEST_STEP = 0.35  # what a single test may ask for on top: beyond that the overshoot costs more than it finds
QUOTA_WINDOWS = (1.0, 10.0, 60.0, 600.0, 3600.0, 86400.0)  # what people count quotas over
PROMPT, SOON, SETTLED = 2.0, 15.0, 50.0  # seconds to the next test: much to find, some news, nothing new
PATIENCE = 20  # times a drain's length before the next test, so that drains cost at most one part in twenty
WIDE = 1.05  # a failed test this far above the ceiling leaves much between the two: look there at once
APART = 1.1  # what was refused with nothing saved up lies this far above what held: try between the two
RECENT = 10.0  # seconds after resuming in which a refusal speaks about the level resumed at
RISEN = 1.5  # tests that pass this far above the old ceiling are no saved-up allowance: the quota has grown


class Evidence(Enum):
    """What the ceiling was learned from, as people are told."""

    NOTHING = "nothing yet"
    WINDOW = "a quota that came back after a while"
    SATURATION = "what was served between two refusals"
    PASSED = "the last level that passed"
    DEPTH = "the ceiling that held before saved-up allowance ran out"
    CRUISE = "a refusal while cruising"
    QUEUE = "latency: the host began to queue"


class Phase(Enum):
    """What we were doing when the host objected."""

    GROWING = 1
    CRUISING = 2
    TESTING = 3


class Trials:
    """One host's record. Made when it first objects; the governor acts on what this says."""

    __slots__ = (
        "_anchor_at",
        "_anchor_served",
        "_began_served",
        "_deep",
        "_failed_at",
        "_giving_until",
        "_honest",
        "_interval",
        "_level",
        "_mark_at",
        "_mark_served",
        "_over",
        "_phase",
        "_quota_window",
        "_refused_at",
        "_refused_last",
        "_served",
        "_step",
        "_tested",
        "began",
        "directed",
        "evidence",
        "next_test",
        "passed",
        "probes",
        "saturated",
        "test_ends",
    )

    def __init__(self, began: float, passed: float) -> None:
        self.began = began  # when this stretch began: with the first request, and after each drain
        self._began_served = 0
        self.passed = passed  # the last rate that held for a window, while growing or testing
        self._tested = False  # whether it did so in a test
        self.evidence = Evidence.NOTHING
        self._step, self._interval = STEP, SOON
        self.next_test = self.test_ends = inf
        self._failed_at = inf  # the lowest rate known to be too much
        self._over = inf  # the lowest rate that was refused with nothing saved up
        self._level = passed  # the ceiling a test started from
        self._deep = False  # whether unused allowance piles up at the host, so that short tests pass which should not
        self._honest = False  # whether a test began just after a refusal, with nothing saved up that could fool it
        self.saturated = False  # whether the host was kept busy since the allowance was last used up
        self._anchor_at, self._anchor_served = began, 0  # when that was, and how much had been served by then
        self._mark_at, self._mark_served = began, 0  # a point one quota window back, or two
        self._quota_window = QUOTA_WINDOWS[0]
        self._giving_until = began  # while a sliding window may still be giving back what was used up at once
        self._phase = Phase.GROWING
        self._refused_at = self._refused_last = began
        self._served = 0
        self.probes = 0
        self.directed = False  # whether a Retry-After told us to wait

    # Tests above the ceiling.

    def wait(self, now: float, interval: float) -> None:
        """Let `interval` pass before the next test."""
        self.next_test = now + interval
        if interval > PROMPT:
            self._interval = interval

    def start(self, level: float, now: float) -> float:
        """Begin a series of tests above `level`; the rate to try."""
        self._level = level
        self._honest = self.saturated and now - self.began < RECENT
        # Half the way to what failed last, but neither too small to show in a few seconds nor more than STEP.
        half = min(STEP, (self._failed_at / level - 1) / 2)
        self._step = min(LARGEST_STEP, max(0.01, 0.25 / level, half))
        return self._try(level, now)

    def passes(self, rate: float, now: float) -> float:
        """The test at `rate` went well; the rate to try next."""
        self.passed, self._tested = rate, True
        self._step = min(LARGEST_STEP, 2 * self._step)
        if rate >= self._failed_at:
            self._failed_at = inf
        if rate >= RISEN * self._level or (self._honest and rate >= self._over):
            self._over = inf
        if rate * (1 + self._step) > 0.98 * self._failed_at:
            # Just past what failed last: if nothing has changed, it will say so again.
            self._step = max(0.01, 1.01 * self._failed_at / rate - 1)
        return self._try(rate, now)

    def _try(self, level: float, now: float) -> float:
        """A step more than `level`, for as long as the excess needs to amount to a request or two."""
        rate = level * (1 + self._step)
        shows = 1.5 / (self._step * rate)
        # An honest test must also outlast what was saved up during the drain before it.
        saved = 1.2 * (self.began - self._anchor_at) / self._step if self._honest else 0.0
        self.test_ends = now + max(2.0, shows, saved, self._quota_window)
        return rate

    def grew(self, rate: float) -> None:
        """`rate` held for a window while growing."""
        self.passed, self._tested = rate, False

    def queued(self, rate: float, now: float, *, testing: bool) -> None:
        """Latency rose at `rate`. Testing that costs the host a short queue and nobody a refusal: come back sooner."""
        self._failed_at = rate
        self.evidence = Evidence.QUEUE
        self.wait(now, min(SETTLED, max(10.0, 2 * self._interval)) if testing else 10.0)

    # Refusals.

    def refused(self, phase: Phase, now: float, served: int) -> None:
        """The host said no, and nothing but probes will be sent until it says yes."""
        # A sliding window that has just begun to give back is no place to hurry.
        hurry = now >= self._giving_until or now - self.began >= RECENT
        self._phase, self._refused_at, self._served = phase, now, served
        self.probes = 0 if hurry else 2
        self.directed = False

    def next_probe(self, now: float) -> float:
        """When to probe a host that has just refused: later each time, or when a window ends that began with us."""
        self._refused_last = now
        gap = min(LONGEST_PROBE, PROBE * PROBE_GROWTH ** min(self.probes, 40))
        ends = (self.began + window + 0.02 for window in QUOTA_WINDOWS[1:])
        end = min((end for end in ends if end > now), default=inf)
        # Rather a little later and just after the end than just before it.
        return end if end < now + 1.25 * gap else now + gap

    def resume(self, rate: float, due: float, now: float, served: int) -> float:
        """The probe that was due at `due` succeeded: the ceiling that follows, `rate` having been refused."""
        outage = due - self._refused_at  # not to now: nobody may have wanted to ask for a while
        ceiling, interval, self.evidence = self._weigh(rate, outage, now, served)
        self._failed_at = rate
        self._anchor_at, self._anchor_served = now - min(1.0, now - self._refused_at), served
        self.saturated = True
        self.began, self._began_served = now, served
        self.passed = ceiling
        if interval > PROMPT and outage > QUOTA_WINDOWS[0]:
            patience = PATIENCE * outage
            interval = max(interval, min(patience, 5 * self._quota_window) if self._windowed else patience)
        self.wait(now, interval)
        return ceiling

    def _weigh(self, rate: float, outage: float, now: float, served: int) -> tuple[float, float, Evidence]:
        """The sustainable rate, the seconds to the next test, and what both rest on."""
        early = self._phase is Phase.CRUISING and self._refused_at - self.began < RECENT
        if early and now < self._giving_until and outage < self._quota_window:
            # A sliding window gives back as slowly as it was used up a window ago: expected, and no news.
            return self.passed, SETTLED, Evidence.WINDOW
        # The window is at least as long as the time over which probes were refused.
        closed = self._refused_last - self._refused_at
        if closed > QUOTA_WINDOWS[0] and not self.directed:
            return min(rate, self._served_in_window(closed, now, served)), SETTLED, Evidence.WINDOW
        if early:
            self._deep |= self.evidence is Evidence.PASSED and self._tested
            self._over = min(self._over, rate)
            held = self._level if self.evidence is Evidence.DEPTH else 0.0
            estimate = min(max(self._measured(), rate / 2, held), rate)
            return estimate, self._patience(estimate, SOON), Evidence.SATURATION
        if self._phase is Phase.TESTING:
            return self._weigh_test(rate)
        if self._phase is Phase.GROWING:
            return self.passed, PROMPT, Evidence.PASSED
        return rate * (1 - STEP), SOON, Evidence.CRUISE

    def _weigh_test(self, rate: float) -> tuple[float, float, Evidence]:
        if self._honest:
            self._over = min(self._over, rate)
        interval = min(SETTLED, max(SOON, 2 * self._interval))
        if self._deep and self.passed < RISEN * self._level:
            estimate = min(rate, max(self._level, self._measured() if self.saturated else 0.0))
            self._level = estimate
            if APART * estimate < self._over < inf:
                # Nothing is saved up now: half the way to what was refused is put to the proof at once.
                estimate = (estimate + self._over) / 2
            return estimate, interval, Evidence.DEPTH
        # Only what was gained shows that there is more to be found at once.
        more = rate > WIDE * self.passed and self.passed > 1.02 * self._level
        return self.passed, PROMPT if more else interval, Evidence.PASSED

    def _patience(self, estimate: float, interval: float) -> float:
        """Seconds to the next test: few while more than `estimate` was never refused with nothing saved up."""
        return PROMPT if estimate * (1 + STEP) < 0.99 * self._over and not self._windowed else interval

    def _measured(self) -> float:
        """What was served a second between the last two times the allowance was used up."""
        return (self._served - self._anchor_served + 1) / max(0.05, self._refused_at - self._anchor_at)

    def _served_in_window(self, closed: float, now: float, served: int) -> float:
        window = next((window for window in QUOTA_WINDOWS if window >= closed), QUOTA_WINDOWS[-1])
        self._quota_window = max(window, self._quota_window)
        self._giving_until = now + self._quota_window
        points = ((self.began, self._began_served), (self._mark_at, self._mark_served))
        return max((served - count) / max(self._quota_window, now - at) for at, count in points)

    def mark(self, now: float, served: int) -> None:
        """Keep how much was served by when, about a quota window back."""
        if now - self._mark_at > 2 * self._quota_window:
            self._mark_at, self._mark_served = now, served

    @property
    def _windowed(self) -> bool:
        """Whether the host is known to count over more than a second."""
        return self._quota_window > QUOTA_WINDOWS[0]
