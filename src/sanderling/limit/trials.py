"""What a host's objections have proved about its limit, and when to put that to the test again.

Tricky bits. What a refusal proves depends on what came before it:

- A long drain means a quota counted over a window (600 a minute): the ceiling is what was served in one such window.
- A refusal soon after resuming means the level was too high while nothing was saved up on the host's side: what was
  served since the last refusal *is* the quota.
- A refusal during a test means the last level that passed is right, unless unused allowance piles up at the host (a
  deep bucket, learned by being fooled once): then short tests pass that should not, and the ceiling from before stands.
"""

from dataclasses import dataclass, field
from enum import Enum
from math import inf
from typing import NamedTuple

from sanderling.limit.closures import LONG, PROBE, QUOTA_WINDOWS, Closures
from sanderling.limit.tempo import SETTLED, Tempo

STEP = 0.04  # of the first test above the ceiling; doubled after each test that passes
LARGEST_STEP = 0.35  # what a single test may ask for on top: beyond that the overshoot costs more than it finds
BOLDEST = 0.15  # of the first test, where much is to be found
LONG_TEST = 8.0  # seconds; rather ask for more than take longer to see whether it is too much
PROMPT, SOON = 1.5, 15.0  # seconds to the next test: much to find, some news
PATIENCE = 20  # times a drain's length before the next test, so that drains cost at most one part in twenty
WIDE = 1.05  # a failed test this far above the ceiling leaves much between the two: look there at once
APART = 1.03  # what passed with something saved up lies this far above what held: prove it with nothing saved up
GAINED = 1.02  # a level this far above another is more than chance
FEWEST = 4  # requests served, before which a closure of seconds says how slow the host is
FEW = 20  # requests served, before which a single refusal may be chance
RECENT = 10.0  # seconds after resuming in which a refusal speaks about the level resumed at
TRUST, LEAST_TRUST = 0.8, 0.3  # in what was asked in the second before a refusal
FOOLED = 1.07  # tests that pass this far above what was measured show that it was measured wrongly
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


class Finding(NamedTuple):
    """What a refusal proved: the rate that holds (None: nothing), seconds to the next test, and what both rest on."""

    ceiling: float | None
    wait: float
    evidence: Evidence


@dataclass(slots=True, eq=False, repr=False)
class Trials:
    """One host's record. Made when it first objects; the governor acts on what this says."""

    began: float  # when this stretch began: with the first request, and after each drain
    passed: float  # the last rate that held for a window, while growing or testing
    evidence: Evidence = Evidence.NOTHING
    next_test: float = inf
    test_ends: float = inf
    risen: bool = False  # whether tests have passed so far above the ceiling that there is another one
    suspicious: bool = False  # whether refusals may be noise: then cruise and see
    noise: float = 0.0  # the share of refusals that say nothing
    queues: bool = False  # whether latency rose with our rate
    saturated: bool = False  # whether the host was kept busy since the allowance was last used up
    probes: int = 0
    directed: bool = False  # whether a Retry-After told us to wait
    bare: bool = False  # whether it was a 503 that did not, or a failure
    expected: bool = False  # whether it came after as many requests, or as long, as the one before
    closures: Closures = field(init=False)
    _step: float = STEP
    _thin: bool = True  # whether a refusal after a handful of requests is still to be taken for chance
    _refine: bool = False  # whether the next test looks between what held and what was refused
    _failed_at: float = inf  # the lowest rate known to be too much
    _over: float = inf  # the lowest rate that was refused with nothing saved up
    _deep: bool = False  # whether unused allowance piles up at the host, so that short tests pass which should not
    _again: bool = False  # whether a full second passed at the level that was refused last, and yet it was refused
    _doubts: int = 0  # tests with nothing saved up that gained nothing,
    _unproved: int = 0  # and others since
    _honest: bool = False  # whether a test began just after a refusal, with nothing saved up that could fool it
    _anchor_served: int = 0  # how much had been served when the allowance was last used up,
    _anchor_at: float = field(init=False)  # and when that was
    _giving_until: float = field(init=False)  # while a sliding window may still give back what was used up at once
    _phase: Phase = Phase.GROWING
    _refused_at: float = field(init=False)
    _refused_last: float = field(init=False)
    _served: int = 0
    _trust: float = TRUST  # how far what was asked in the last second before a refusal proved right
    _busy: float = field(init=False)  # requests of the second before the refusal
    _level: float = field(init=False)  # the ceiling a test started from
    _landed: float = field(init=False)  # the ceiling that the last refusal left
    _tempo: Tempo = field(init=False)

    def __post_init__(self) -> None:
        self.closures = Closures(self.began)
        self._anchor_at = self._giving_until = self._refused_at = self._refused_last = self.began
        self._level = self._busy = self._landed = self.passed
        self._tempo = Tempo(self.began, self.passed)

    # Tests above the ceiling.

    def wait(self, now: float, interval: float) -> None:
        """Let `interval` pass before the next test."""
        self.next_test = now + interval
        self._refine = interval <= PROMPT

    def start(self, level: float, now: float) -> float:
        """Begin a series of tests above `level`; the rate to try."""
        self._level = level
        self.risen = False
        self._honest = self.saturated and now - self.began < RECENT
        self._tempo.held(level)
        bold = min(BOLDEST, max(2 * STEP if self.noise else STEP, self._tempo.gain(level) / level / 8))
        # Half the way to what failed last, while it is news; but never too little to show in a few seconds.
        half = (self._failed_at / level - 1) / 2 if self._refine else bold
        # A queue shows at once, in latency.
        least = STEP if self.evidence is Evidence.QUEUE else max(0.01, 0.25 / level)
        self._step = min(LARGEST_STEP, max(least, half))
        return self._try(level, now)

    def passes(self, rate: float, now: float) -> float:
        """The test at `rate` went well; the rate to try next."""
        self.passed = rate
        self._step = min(LARGEST_STEP, 2 * self._step)
        if rate >= self._failed_at:
            self._failed_at = inf
        self.risen = rate >= RISEN * self._level and self.evidence is not Evidence.QUEUE
        if self.risen or (self._honest and rate >= self._over):
            self._over = inf
        return self._try(rate, now)

    def _try(self, level: float, now: float) -> float:
        """A step more than `level`, for as long as the excess needs to amount to a request or two."""
        step = self._step
        if level > self._level and level * (1 + step) > 0.98 * self._failed_at:
            # Just past what failed last: if nothing has changed, it will say so again.
            step = max(0.02, 1.01 * self._failed_at / level - 1)
        # An honest test must outlast what was saved up during the drain before it, in a few seconds.
        saved = 1.2 * (self.began - self._anchor_at) if self._honest and self._measures else 0.0
        step = max(step, min(LARGEST_STEP, saved / LONG_TEST))
        rate = level * (1 + step)
        shows = (8.0 if self.noise else 1.5) / (step * rate)
        self.test_ends = now + max(2.0 if level == self._level else 1.2, shows, saved / step, self.closures.window)
        return rate

    def grew(self, rate: float) -> None:
        """`rate` held for a window while growing."""
        self.passed = rate

    def queued(self, rate: float, now: float, *, testing: bool) -> None:
        """Latency rose at `rate`. Testing that costs the host a short queue and nobody a refusal: come back sooner."""
        self._failed_at = rate
        self.evidence = Evidence.QUEUE
        self.queues = True
        self.wait(now, min(SETTLED, max(10.0, self._tempo.rest(rate, now))) if testing else 10.0)

    # Refusals.

    def refused(self, phase: Phase, now: float, served: int, busy: float) -> None:
        """The host said no, and nothing but probes will be sent until it says yes. `busy`: of the last second."""
        # Refused again at once: the limit fell, or a sliding window has just begun to give back. No place to hurry.
        hurry = now - self.began >= RECENT or phase is Phase.GROWING
        # Where noise has to be told from a limit first, or seconds are not what counts, the last one says nothing.
        self._busy = 0.0 if self.noise or self.windowed else busy
        self._phase, self._refused_at, self._served = phase, now, served
        self.probes = 0 if hurry else 2
        self.directed = self.bare = False

    def next_probe(self, now: float) -> float:
        """When to probe a host that has just refused."""
        self._refused_last = now
        # One that serves a request in five seconds is not asked four times in the first.
        first = max(PROBE, min(LONG, 1 / self._tempo.known)) if self._settled and self._tempo.known < 1 else PROBE
        return self.closures.next_probe(self._refused_at, self.probes, first, now)

    def expects(self, now: float, served: int, *, draining: bool) -> bool:
        """Whether a 503 at this point is the end of a quota."""
        if draining:
            return self.expected
        self.expected = self.closures.recurs(now, served)
        return self.expected

    def still_closed(self, now: float) -> None:
        """Somebody else probes, and was refused."""
        self._refused_last = now

    def resume(self, rate: float, due: float, now: float, served: int) -> float | None:
        """The probe that was due at `due` succeeded: the ceiling that follows, `rate` having been refused; if any."""
        outage = due - self._refused_at  # not to now: nobody may have wanted to ask for a while
        closed = self._refused_last - self._refused_at
        self._tempo.cost, self._tempo.lost = self.probes + 1, outage
        ceiling, interval, evidence = self._weigh(rate, outage, closed, now, served)
        self._failed_at = rate
        self._anchor_at, self._anchor_served = now - min(self._short, now - self._refused_at), served
        self.saturated = True
        self.began = now
        if ceiling is None:
            return None
        self.evidence = evidence
        self.passed = self._landed = ceiling
        self._tempo.note(ceiling, now)
        if interval > PROMPT:
            interval = self._tempo.rest(ceiling, now)
            if outage > self._short:
                patience = PATIENCE * outage
                interval = max(interval, min(patience, 5 * self.closures.window) if self.windowed else patience)
        self.wait(now, interval)
        self._refine &= not self._measures  # what was measured is no guess
        return ceiling

    def _weigh(self, rate: float, outage: float, closed: float, now: float, served: int) -> Finding:
        early = self._phase is Phase.CRUISING and self._refused_at - self.began < RECENT
        if early and now < self._giving_until and outage < self.closures.window and not self.bare:
            # A sliding window gives back as slowly as it was used up a window ago: expected, and no news.
            return Finding(self.passed, SOON, Evidence.WINDOW)
        if closed > self._short and not self.directed:
            return self._weigh_closure(rate, closed, now, served)
        self._again &= early
        if self.evidence is Evidence.PASSED:
            self._trust = max(LEAST_TRUST, self._trust - 0.3) if early else min(1.0, self._trust + 0.1)
        if early:
            return self._weigh_early(rate, outage)
        match self._phase:
            case Phase.TESTING:
                return self._weigh_test(rate)
            case Phase.GROWING:
                return self._weigh_growth(rate, served)
        return Finding(min(rate, max(self._measured(), rate * (1 - STEP))), SOON, Evidence.CRUISE)

    def _weigh_closure(self, rate: float, closed: float, now: float, served: int) -> Finding:
        """It stayed closed while we probed: its window is at least as long as that, if it is a quota."""
        self.closures.close(self._refused_at, self._served)
        # So may a refusal that lasts for more than an hour be a ban; a day's quota shows itself again tomorrow.
        if (self.bare or closed > QUOTA_WINDOWS[-2]) and not self.closures.confirmed:
            self.closures.reopen(now, served)
            return Finding(None, 0.0, self.evidence)
        if served < FEWEST and closed < LONG_TEST and self.evidence is Evidence.NOTHING:
            # One request in a few seconds is a slow host, not a long window.
            return Finding(served / (now - self.began), SOON, Evidence.SATURATION)
        held = min(rate, self.closures.open(closed, now, served))
        self._giving_until = now + self.closures.window
        return Finding(held, SOON, Evidence.WINDOW)

    def _weigh_early(self, rate: float, outage: float) -> Finding:
        """Refused soon after resuming, with nothing saved up: what was served meanwhile is the quota."""
        self._over = min(self._over, rate)
        held = self._level if self.evidence is Evidence.DEPTH else 0.0
        # A handful of answers measure nothing well.
        least = rate / 2 if self._served - self._anchor_served < 6 else 0.0
        window = 0.0 if self._deep else self._by_the_second(rate, outage)
        estimate = min(max(self._measured(), least, held, window), rate)
        more = estimate * (1 + STEP) < 0.99 * self._over and not self.windowed and not self.suspicious
        return Finding(estimate, PROMPT if more else SOON, Evidence.SATURATION)

    def _weigh_growth(self, rate: float, served: int) -> Finding:
        """Refused while growing: somewhere between the last level that passed and this one."""
        if self._thin and served < FEW:
            self._thin = False
            return Finding(None, 0.0, self.evidence)
        return Finding(min(rate, self._between), SOON if self.directed else PROMPT, Evidence.PASSED)

    def _by_the_second(self, rate: float, outage: float) -> float:
        """What the host allows if it counts seconds, so that nothing is saved up while we wait."""
        again, self._again = self._again, self._refused_at - self.began > 1.0
        if not again:
            return min(self._busy, rate * (1 - STEP))
        # A full second passed, twice: perhaps it is a bucket after all. To find out is cheap while refusals are short.
        return (self._measured() + rate) / 2 if outage < 2.0 else 0.0

    def _weigh_test(self, rate: float) -> Finding:
        if self._honest:
            self._over = min(self._over, rate)
            if self.evidence is Evidence.SATURATION:
                # What was measured counts what came in while we waited. If more than that passes, nothing did.
                self._deep = self.passed < FOOLED * self._landed
        if self._deep and self.passed < RISEN * self._level:
            return self._weigh_depth(rate)
        # Only what was gained shows that there is more to be found at once.
        more = rate > WIDE * self.passed and self.passed > GAINED * self._level
        held = self.passed if self._deep else min(rate * (1 - STEP / 2), self._between)
        return Finding(held, PROMPT if more and not self.directed else SOON, Evidence.PASSED)

    def _weigh_depth(self, rate: float) -> Finding:
        """A test was refused where short tests pass that should not."""
        if self._honest:
            # Nothing was saved up: what passed is real. If nothing did, ask for such proof less often.
            self._doubts = 0 if self.passed > GAINED * self._level else min(4, self._doubts + 1)
            return Finding(max(self._level, min(rate, self.passed)), SOON, Evidence.DEPTH)
        estimate = min(rate, max(self._level, self._measured() if self.saturated else 0.0))
        self._unproved += 1
        if self.passed < APART * estimate or self._unproved < 2**self._doubts:
            return Finding(estimate, SOON, Evidence.DEPTH)
        self._unproved = 0
        return Finding(estimate, PROMPT, Evidence.DEPTH)

    @property
    def _between(self) -> float:
        """From what passed towards what was asked in the last second: all of that only where any second counts."""
        return self.passed + max(0.0, self._busy - self.passed) * self._trust

    def _measured(self) -> float:
        """What was served a second between the last two times the allowance was used up."""
        return (self._served - self._anchor_served + 1) / max(0.05, self._refused_at - self._anchor_at)

    @property
    def _settled(self) -> bool:
        return self.evidence is not Evidence.NOTHING

    @property
    def _short(self) -> float:
        """Seconds that a host may be closed without counting over more than a second: a request or two's worth."""
        return max(1.0, 2 / self._tempo.known) if self._settled else 1.0

    @property
    def _measures(self) -> bool:
        return self._deep or self.evidence is Evidence.SATURATION

    @property
    def windowed(self) -> bool:
        """Whether the host is known to count over more than a second."""
        return self.closures.window > 1.0
