"""Learn a host's limit from nothing but its answers: when it refuses, how long it stays closed, how long it takes.

Terms. *Grow*: half as much again per window, until the host objects or the known ceiling is reached. *Cruise*: a little
below the ceiling. *Test*: a little above it, for as long as a refusal would need to show. *Drain*: after a refusal,
nothing but one probe at a time.

Tricky bits. What a refusal proves depends on what came before it:

- A long drain means a quota counted over a window (600 a minute): the ceiling is what was served in one such window.
- A refusal soon after resuming means the level was too high while nothing was saved up on the host's side: what was
  served since the last refusal *is* the quota.
- A refusal during a test means the last level that passed is right, unless unused allowance piles up at the host (a
  deep bucket, learned by being fooled once): then short tests pass that should not, and the ceiling from before stands.
"""

from array import array
from enum import Enum
from math import inf

from sanderling.limit.latency import Latency, Verdict
from sanderling.limit.pace import PaceRules

MARGIN = 0.985  # of the ceiling: what jitter between us and the host would push over it stays below
GROWTH = 1.5
STEP = 0.04  # of the first test above the ceiling; doubled after each test that passes
PROBE, PROBE_GROWTH = 0.25, 1.6  # seconds before the first probe of a drain, and how that grows
QUOTA_WINDOWS = (1.0, 10.0, 60.0, 600.0, 3600.0, 86400.0)  # what people count quotas over
PROMPT, SOON, SETTLED = 2.0, 15.0, 60.0  # seconds to the next test: much to find, some news, nothing new
SLOW_SOON = 10.0  # the same after latency told us; such a test costs the host a short queue and no refusal
PATIENCE = 20  # times a drain's length before the next test, so that drains cost at most one part in twenty
WIDE = 1.1  # a failed test this far above the ceiling leaves much between the two: look there at once
RECENT = 10.0  # seconds after resuming in which a refusal speaks about the level resumed at
RISEN = 1.3  # tests that pass this far above the old ceiling are no saved-up allowance: the quota has grown
SAMPLES, FEW = 16, 8  # latencies a window needs; fewer while testing, where a refusal is what we look for
WINDOW, LONGEST_WINDOW = 1.0, 8.0  # seconds; a slow host's window closes with what it has
USED = 0.6  # less of the rate used than this proves nothing about it
SHARE_FAILED = 0.2  # of a window's answers, beyond what is usual; more failures than that look like overload
NO_BETTER = 0.7  # of the share of failures left after asking half as much: asking less did not help
SLOW_SHARE = 0.15  # latency this far above the base, as a share of it, counts as slow
IDLE = 60.0  # seconds without an answer, after which the old rate would be a bold way to knock
MARKS = 16  # points kept of how much was served by when


class Mode(Enum):
    """What the governor is doing, as people are told."""

    GROW = "growing until the host objects"
    CRUISE = "cruising just below its ceiling"
    TEST = "testing just above its ceiling"
    DRAIN = "refused; one probe at a time until it opens"


class Evidence(Enum):
    """What the ceiling was learned from, as people are told."""

    NOTHING = "nothing yet"
    WINDOW = "a quota that came back after a while"
    SATURATION = "what was served between two refusals"
    PASSED = "the last level that passed"
    DEPTH = "the ceiling that held before saved-up allowance ran out"
    CRUISE = "a refusal while cruising"
    QUEUE = "latency: the host began to queue"


class Governor:
    """One host's learned rate. `rate`, `hold` and `single` are its orders; the gate obeys them."""

    __slots__ = (
        "_anchor",
        "_before",
        "_began",
        "_blamed",
        "_closes",
        "_deep",
        "_delivered",
        "_directed",
        "_failed",
        "_failed_at",
        "_honest",
        "_interval",
        "_level",
        "_marks",
        "_next_test",
        "_opened",
        "_over",
        "_passed",
        "_probes",
        "_quota_window",
        "_refused_at",
        "_restore",
        "_rules",
        "_saturated",
        "_served",
        "_step",
        "_test_ends",
        "_tested",
        "_usual_failures",
        "ceiling",
        "evidence",
        "hold",
        "latency",
        "mode",
        "rate",
    )

    counts_refusals = False  # a refusal is how this strategy learns; a drain lets one request through at most anyway

    def __init__(self, rules: PaceRules, now: float, rate: float, sent: int) -> None:
        self._rules = rules
        self.rate = self._passed = self._level = self._restore = rate
        self.ceiling: float | None = None
        self.evidence = Evidence.NOTHING
        self.hold = self._refused_at = now
        self.mode = self._before = Mode.GROW
        self.latency = Latency(now, SLOW_SHARE)
        self._delivered = self._served = self._probes = 0
        self._step, self._interval = STEP, SOON
        self._next_test = self._test_ends = self._failed_at = inf  # _failed_at: the lowest rate known to be too much
        self._began = now  # when this stretch began: at first, and after each drain
        self._anchor = (now, 0)  # when the allowance was last used up, and how much had been served by then
        self._saturated = False  # whether the host was kept busy since then
        self._deep = False  # whether unused allowance piles up at the host, so that short tests pass which should not
        self._honest = False  # whether a test began just after a refusal, with nothing saved up that could fool it
        self._tested = False  # whether the level that passed last did so in a test, or merely while growing
        self._usual_failures = 0.0  # the share of answers that fail however little we ask
        self._blamed = 0.0  # the share that made us ask less
        self._over = inf  # the lowest rate that was refused with nothing saved up
        self._directed = False
        self._quota_window = QUOTA_WINDOWS[0]
        self._marks = array("d", (now, 0.0))
        self._open(now, sent)

    @property
    def single(self) -> bool:
        """Whether only one request may be in flight."""
        return self.mode is Mode.DRAIN

    def remember(self, ceiling: float) -> None:
        """Grow no further than `ceiling` at first: it was learned in an earlier life."""
        self.ceiling = ceiling

    def why(self) -> str:
        """What holds the rate where it is, in words."""
        learned = "" if self.evidence is Evidence.NOTHING else f" (learned from {self.evidence.value})"
        return f"{self.mode.value}{learned}"

    def answered(self) -> None:
        """An answer that is neither success nor trouble (a 404): it was served, and that is all it says."""
        self._delivered += 1

    def succeeded(self, now: float, latency: float, sent: int, inflight: int) -> bool:
        """Learn from a success of the current epoch; whether the rate went down, which starts the next epoch."""
        self._delivered += 1
        if self.mode is Mode.DRAIN:
            self._resume(now, sent)
            return True
        self.latency.add(latency)
        return now >= self._closes and self._close(now, sent, inflight)

    def refused(self, now: float, sent: int, retry_after: float | None) -> bool:  # noqa: ARG002 - aimd's
        """A 429 or 503: stop, and let one probe at a time find out when the host opens again."""
        if self.mode is Mode.DRAIN:
            self._probes += 1
        else:
            again = self._quota_window > WINDOW and now - self._began < RECENT
            self._before, self.mode = self.mode, Mode.DRAIN
            self._refused_at, self._probes, self._directed = now, 2 if again else 0, False
            self._served = self._delivered
        self._directed |= retry_after is not None
        self.hold = max(self._next_probe(now), now + (retry_after or 0.0))
        return True

    def failed(self, now: float, sent: int) -> bool:
        """A 5xx or no answer at all: trouble only if a good share of the window's answers are such."""
        if self.mode is Mode.DRAIN:
            return self.refused(now, sent, None)
        self._failed += 1
        answers = self._failed + self.latency.fresh
        if now < self._closes or (answers < SAMPLES and now - self._opened[0] < LONGEST_WINDOW):
            return False
        return self._blame(self._failed / answers, now, sent)

    def _blame(self, share: float, now: float, sent: int) -> bool:
        """Too large a share of the answers were failures: ask less, unless asking less did not help before."""
        if share <= max(SHARE_FAILED, self._usual_failures + SHARE_FAILED):
            return False
        before = self.rate
        self.mode = Mode.GROW  # back to the ceiling, if there is one, as soon as a window is good
        if self._blamed and share > NO_BETTER * self._blamed:
            self._usual_failures, self._blamed = share, 0.0
            self.rate = max(self.rate, self._restore)
        else:
            self._blamed, self._restore = share, self.rate
            self.rate = self._rules.clamp(self.rate * self._rules.decrease)
        self._open(now, sent)
        return self.rate < before

    def _next_probe(self, now: float) -> float:
        """Later each time, but also just when a window that began with our first request would end."""
        due = now + PROBE * PROBE_GROWTH ** min(self._probes, 40)
        ends = (self._began + window + WINDOW / 50 for window in QUOTA_WINDOWS[1:])
        return min([due, *(end for end in ends if end > now)])

    def _resume(self, now: float, sent: int) -> None:
        """The host serves us again: settle on a ceiling by what the refusal proved."""
        outage = self.hold - self._refused_at  # to when the probe was due: nobody may have wanted to ask for a while
        estimate, interval, self.evidence = self._weigh(now, outage)
        self._failed_at = self.rate
        self._anchor = (now - min(1.0, now - self._refused_at), self._delivered)
        self._saturated = True
        self._began = now
        self._passed = self.ceiling = self._rules.clamp(estimate)
        self.rate = self._rules.clamp(self.ceiling * MARGIN)
        self._cruise(now, max(interval, PATIENCE * outage) if interval > PROMPT and outage > WINDOW else interval)
        self._open(now, sent)

    def _weigh(self, now: float, outage: float) -> tuple[float, float, Evidence]:
        """The sustainable rate, the seconds to the next test, and what both rest on."""
        early = self._before is Mode.CRUISE and self._refused_at - self._began < RECENT
        if early and self._quota_window > WINDOW and outage < self._quota_window:
            # A sliding window gives back as slowly as it was used up a window ago: expected, and no news.
            return self.ceiling or self.rate, SETTLED, Evidence.WINDOW
        if outage > WINDOW and not self._directed:
            return min(self.rate, self._served_in_window(now, outage)), SETTLED, Evidence.WINDOW
        if early:
            self._deep |= self.evidence is Evidence.PASSED and self._tested
            self._over = min(self._over, self.rate)
            estimate = min(max(self._measured(), self.rate / 2), self.rate)
            return estimate, self._patience(estimate, SOON), Evidence.SATURATION
        if self._before is Mode.TEST:
            return self._weigh_test()
        if self._before is Mode.GROW:
            return self._passed, PROMPT, Evidence.PASSED
        return self.rate * (1 - STEP), SOON, Evidence.CRUISE

    def _weigh_test(self) -> tuple[float, float, Evidence]:
        if self._honest:
            self._over = min(self._over, self.rate)
        interval = min(SETTLED, max(SOON, 2 * self._interval))
        if (self._deep or self._quota_window > WINDOW) and self._passed < RISEN * self._level:
            estimate = min(self.rate, max(self._level, self._measured() if self._saturated else 0.0))
            return estimate, self._patience(estimate, interval), Evidence.DEPTH
        return self._passed, PROMPT if self.rate > WIDE * self._passed else interval, Evidence.PASSED

    def _patience(self, estimate: float, interval: float) -> float:
        """Seconds to the next test: few while more than `estimate` was never refused with nothing saved up."""
        return PROMPT if estimate * (1 + STEP) < 0.99 * self._over and self._quota_window == WINDOW else interval

    def _measured(self) -> float:
        """What was served a second between the last two times the allowance was used up."""
        since, served = self._anchor
        return (self._served - served + 1) / max(0.05, self._refused_at - since)

    def _served_in_window(self, now: float, outage: float) -> float:
        window = next((window for window in QUOTA_WINDOWS if window >= outage), QUOTA_WINDOWS[-1])
        self._quota_window = max(window, self._quota_window)
        times, counts = self._marks[::2], self._marks[1::2]
        index = max((i for i, time in enumerate(times) if time <= now - self._quota_window), default=0)
        return (self._delivered - counts[index]) / max(self._quota_window, now - times[index])

    def _open(self, now: float, sent: int) -> None:
        """Begin a window; what was seen before belongs to another rate."""
        self._opened = (now, sent, self._delivered)
        self._failed = 0
        self._closes = now + WINDOW
        self.latency.fresh = 0

    def _close(self, now: float, sent: int, inflight: int) -> bool:
        """Judge the window, if it holds enough; whether the rate went down."""
        opened, sent_before, delivered_before = self._opened
        span = now - opened
        if self.latency.fresh < (FEW if self.mode is Mode.TEST else SAMPLES) and span < LONGEST_WINDOW:
            return False
        self._mark(now)
        share = self._failed / (self._failed + self.latency.fresh)
        self._usual_failures += 0.1 * (share - self._usual_failures)
        before = self.rate
        used = sent - sent_before >= USED * self.rate * span
        self._saturated &= used
        match self.latency.close(now):
            case Verdict.OVERLOADED:
                self._relieve(now, (self._delivered - delivered_before) / span, inflight)
            case Verdict.BLAMELESS:
                self.rate = self.ceiling = self._restore
                self._cruise(now, SOON)
            case Verdict.FINE if span > IDLE:
                self._wake()
            case Verdict.FINE if used:
                self._advance(now)
        self._open(now, sent)
        return self.rate < before

    def _relieve(self, now: float, served: float, inflight: int) -> None:
        """The host queues our requests: land below what it gets done, and wait until the queue is gone."""
        if self.latency.helping:
            self._restore = self.rate
        interval = min(SETTLED, max(SLOW_SOON, 2 * self._interval)) if self.mode is Mode.TEST else SLOW_SOON
        landing = min(served, self.rate) * (0.95 if self.latency.cuts == 1 else 0.85)
        self._lower(landing, now, interval, Evidence.QUEUE)
        self.hold = now + min(10.0, max(0.0, inflight / served - (self.latency.base or 0.0)))

    def _lower(self, rate: float, now: float, interval: float, evidence: Evidence) -> None:
        self._failed_at = self.rate
        self.rate = self._passed = self.ceiling = self._rules.clamp(rate)
        self.evidence = evidence
        self._cruise(now, interval)

    def _cruise(self, now: float, interval: float) -> None:
        self.mode, self._next_test = Mode.CRUISE, now + interval
        if interval > PROMPT:
            self._interval = interval

    def _wake(self) -> None:
        """After a long silence start gently, and grow back to the ceiling."""
        self.rate = min(self.rate, max(self._rules.initial_rps, (self.ceiling or 0.0) / 2))
        self.mode = Mode.GROW

    def _advance(self, now: float) -> None:
        """The window was good and the rate was used: ask for more, if it is time."""
        if self.mode is Mode.GROW:
            self._passed, self._tested = self.rate, False
            self.rate = self._rules.clamp(min(self.rate * GROWTH, (self.ceiling or inf) * MARGIN))
            if self.ceiling is not None and self.rate >= self.ceiling * MARGIN:
                self._cruise(now, SOON)
        elif self.mode is Mode.CRUISE and now >= self._next_test:
            self.mode, self._level = Mode.TEST, self.ceiling or self.rate
            self._step = self._first_step()
            self._honest = self._saturated and now - self._began < RECENT
            self._test(self._level, now)
        elif self.mode is Mode.TEST and now >= self._test_ends:
            self._pass(now)

    def _first_step(self) -> float:
        """Half the way to what failed last, but neither too small to show in a few seconds nor more than STEP."""
        least = max(0.01, 0.25 / self.rate)
        return max(least, min(STEP, (self._failed_at / self._level - 1) / 2))

    def _pass(self, now: float) -> None:
        self._passed = self.ceiling = self.rate
        self._tested = True
        self._step = min(1.0, 2 * self._step)
        if self.rate >= self._failed_at:
            self._failed_at = inf
            self._saturated = False
        if self.rate >= RISEN * self._level or (self._honest and self.rate >= self._over):
            self._over = inf
        if self._honest:
            self._level = self.rate
        if self.rate * (1 + self._step) > 0.98 * self._failed_at:
            self._step = max(0.01, min(STEP, self._step / 2))
        self._test(self.rate, now)

    def _test(self, level: float, now: float) -> None:
        """Ask for a step more than `level`, until the excess amounts to a request or two."""
        self.rate = self._rules.clamp(level * (1 + self._step))
        shows = 1.5 / (self._step * self.rate)
        # An honest test must also outlast what was saved up during the drain before it.
        saved = 1.2 * (self._began - self._anchor[0]) / self._step if self._honest else 0.0
        self._test_ends = now + max(2.0, shows, saved, self._quota_window)

    def _mark(self, now: float) -> None:
        """Keep how much was served by when: densely for the last seconds, sparsely for the last hours."""
        marks = self._marks
        marks.extend((now, self._delivered))
        if len(marks) > 2 * MARKS:
            least = min(range(2, len(marks) - 2, 2), key=lambda i: (marks[i + 2] - marks[i - 2]) / (now - marks[i] + 1))
            del marks[least : least + 2]
