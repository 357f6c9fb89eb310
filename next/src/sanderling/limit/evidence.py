# ruff: noqa: E501
"""What a host's responses prove about its limit. Numbers in, numbers out; `governor.py` acts on it.

`Noise`: refusals that come whatever we send. `Consent`: whether the host serves enough of what it is sent. `Slowness`: a
queue at the host, found by latency. `QuotaWindow`: over how many seconds a quota is counted. `Limit`: the rate that holds,
and when to test a higher one.
"""

from dataclasses import dataclass, field
from enum import Enum
from math import inf, log, sqrt

# Noise.

BY_QUOTA = 0.002  # of the responses at a rate that is allowed: the share a quota refuses all the same, by jitter
APART = 10  # served between two refusals; closer together they are one event, such as a quota that fell
SUSPECT, ENOUGH = 2.9, 5  # refusals at rates that are allowed, before anything is made of them
CERTAIN = 6.0  # how much likelier noise must be than a quota, as a logarithm: 400 times
ALARM = 4.5  # how much likelier a limit must be than noise, of late, as a logarithm
MOST_NOISE, LEAST_NOISE = 0.2, 0.003  # of the responses: beyond these it is no noise
EXCESS = 0.03  # a limit refuses this share of the responses on top of the noise, or as many again
KEPT = 0.98  # of the counts, at each refusal: what noise there was an hour ago is forgotten


@dataclass(slots=True, eq=False)
class Noise:
    """Refusals that say nothing about our rate: a faulty node, a filter that guesses.

    To slow down for those would never end, as it does not help. Wald's sequential test finds them: do refusals at rates
    that are known to be allowed come more often than a quota explains? From then on Page's test watches for a limit: do
    they come more often than the noise does?
    """

    share: float = 0.0  # of all responses that are such refusals; 0 while nothing shows that there are any
    _shown: float = 0.0  # as it was when it was shown
    _certain: float = CERTAIN
    _seen: int = 0  # served at the last refusal
    _refused: float = 0.0  # at rates that are allowed,
    _served: float = 0.0
    _score: float = 0.0

    @property
    def suspected(self) -> bool:
        """Whether there may be noise: a few more responses at the same rate would tell."""
        return not self.share and self._refused >= SUSPECT and self._refused > 2 * BY_QUOTA * self._served

    def explains(self, served: int, *, allowed: bool) -> bool:
        """Whether this refusal is noise, `served` being all that was. `allowed`: the rate is known to be."""
        since, self._seen = served - self._seen, served
        counts = allowed and since >= APART
        self._refused = KEPT * self._refused + 1 if counts else self._refused
        self._served = KEPT * self._served + since if counts else self._served + since
        if not self.share:
            return counts and self._is_shown()
        if counts:
            self.share = min(1.5 * self._shown, self._refused / (self._refused + self._served))
        if self.share < LEAST_NOISE:
            self.forget()
            return False
        more = self.share + max(EXCESS, self.share)
        self._score = max(0.0, self._score + since * log((1 - more) / (1 - self.share))) + log(more / self.share)
        if self._score <= ALARM:
            return True
        self._score = 0.0
        return False

    def forget(self) -> None:
        """It was none. Next time more is needed to believe it."""
        self.share = self._score = self._refused = self._served = 0.0
        self._certain *= 2

    def _is_shown(self) -> bool:
        share = self._refused / (self._refused + self._served)
        likelier = self._refused * log(share / BY_QUOTA) + self._served * log((1 - share) / (1 - BY_QUOTA))
        if BY_QUOTA < share < MOST_NOISE and self._refused > ENOUGH - 1 and likelier > self._certain:
            self.share = self._shown = share
        return self.share > 0


# Failures.

SHARE_FAILED = 0.2  # of a window's responses, beyond what is usual; more failures than that look like overload
NO_BETTER = 0.7  # of the share of failures left after sending half as much: sending less did not help
USUAL, USUAL_FROM, USUAL_OVER = 0.01, 4, 256  # the usual share: at first, as if of 4 responses, averaged over 256
EXPECTED = 16  # responses that a share which was shown by other means counts for
UNUSUAL = 2.0  # standard deviations above the usual share
MOST_USUAL, GRANTED = 0.38, 0.33  # a share above the first is no consent until it has fallen below the second


@dataclass(slots=True, eq=False)
class Consent:
    """Whether the host serves what it is sent. Failures are no consent: a rate may grow only where their share is usual."""

    usual: float = USUAL  # the share of responses that fail, however little we send
    granted: bool = True  # whether that share is one to grow with at all
    _seen: int = USUAL_FROM
    _blamed: float = 0.0  # the share that made us send less
    _before: float = USUAL  # what was usual when the rate might last grow

    def judge(self, failed: int, responses: int) -> bool:
        """Take in a window of responses. Returns whether the rate may grow."""
        share, usual = failed / responses, self.usual
        self._seen = min(self._seen + responses, USUAL_OVER)
        self._learn(usual + (share - usual) * min(1.0, responses / self._seen))
        consents = self.granted and share <= usual + UNUSUAL * sqrt(usual * (1 - usual) / responses)
        if consents:
            self._before = self.usual
        return consents

    def forget_outage(self) -> None:
        """What failed until the circuit opened was an outage, and is nothing that is usual."""
        self.usual, self.granted, self._blamed = self._before, True, 0.0

    def is_refused(self, failed: int, responses: int) -> bool:
        """Whether so many failures look like overload."""
        return failed > (self.usual + SHARE_FAILED) * responses

    def expect(self, share: float) -> None:
        """So many fail, whatever we send."""
        self._seen = max(self._seen, EXPECTED)
        self._learn(max(share, self.usual))

    def blame(self, share: float) -> bool:
        """Whether to send less because such a share failed: not if that did not help the last time."""
        if self._blamed and share > NO_BETTER * self._blamed:
            self._blamed = 0.0
            self._learn(share)
            return False
        self._blamed = share
        return True

    def _learn(self, usual: float) -> None:
        self.usual = max(USUAL, usual)
        self.granted = self.usual < (MOST_USUAL if self.granted else GRANTED)


# A host that is slower than its own best.

SLOW_SHARE = 0.15  # this far above the base, as a share of it, counts as slow
# Medians are smoothed before their minimum is taken: the minimum of many noisy medians lies well below the truth,
# and every window would look slow against it.
SETTLING = 0.15
REMEMBERED = 150.0  # the base is the lowest median of this many seconds, twice over: hosts do change
DOUBT = 3.5  # standard errors above the base: suspect
CERTAINTY = 5.0  # standard errors, and four times the share: one window is enough
WHIM = 0.002  # seconds; a scheduler's whim, not a queue
ALIKE = 0.2  # of the base: a handful of responses may happen to be alike, and the next would look slow beside them
ALONE = 3.0  # times the quickest of the first few responses: more is a queue of our own making
SLOW = 0.25  # seconds for a response
FASTER = 0.7  # a median this far below what was taken for usual at first shows that it was a queue; once
NO_FASTER = 0.95  # a cut that leaves this much of the median did not help; two such, and the slowness is not our doing
FUTILE_CUTS = 2


class LatencyVerdict(Enum):
    """What a window of latencies says about the host."""

    FINE = "fine"
    SUSPECT = "suspect"  # slow once, and not plainly; wait for a second window
    QUEUES = "queues"  # slower than it can be: send less
    BLAMELESS = "blameless"  # still as slow after we sent less, twice: this is its pace now


@dataclass(slots=True, eq=False)
class Slowness:
    """The latency that windows are judged by: the lowest median of the last minutes, of successes only.

    A refusal comes back fast and would make the host look fast; a failure says nothing of a queue.
    """

    share: float = SLOW_SHARE
    base: float | None = None
    cuts: int = 0  # times it was said that the host queues, since it was last fine
    first: float = 0.0  # the quickest of the first few responses: they waited for none of ours
    _futile: int = 0
    _suspicions: int = 0
    _trouble: float = inf  # the median that last made us send less
    _settled: float = 0.0
    _doubtful: bool = True
    _low: float = inf  # the lowest settled median of this period,
    _lower: float = inf  # and of the one before
    _turned: float = 0.0
    _met: int = 0  # responses that the base rests on, while the host is new
    _spread: float = 0.0  # of those

    @property
    def is_slow(self) -> bool:
        """Whether the host takes its time: then its quickest response measures its work."""
        return self.first > SLOW

    @property
    def helping(self) -> bool:
        """Whether sending less has helped so far."""
        return self._futile == 0

    def judge(self, ordered: list[float], now: float) -> LatencyVerdict:
        """What a window's latencies, in order of size, say."""
        median = ordered[len(ordered) // 2]
        if self.base is None:
            self._rebase(median, now)
        # While a host is new the spread is that of all responses before: a queue that grows within the window would
        # look like noise in its own.
        if self._met:
            error = 1.25 * self._spread * sqrt(1 / len(ordered) + 1 / self._met)
        else:
            error = 1.25 * spread_of(ordered) / sqrt(len(ordered))
        verdict = self._compare(median, error)
        self._met = 0
        if verdict is LatencyVerdict.BLAMELESS:
            self._rebase(median, now)
        elif verdict is not LatencyVerdict.QUEUES:
            self._settle(median, now)
        return verdict

    def meet(self, ordered: list[float], now: float) -> None:
        """Take all responses of a new host so far for what is usual: a window of few alone would be too noisy."""
        median = ordered[len(ordered) // 2]
        self.first = self.first or ordered[0]
        # The first response waited for nobody: what a queue of our own making adds to the others is not usual.
        self.base = self._settled = self._low = min(median, ALONE * self.first) if self.is_slow else median
        self._lower, self._turned = inf, now
        self._met = len(ordered)
        self._spread = max(spread_of(ordered), ALIKE * self.base)

    def _rebase(self, median: float, now: float) -> None:
        self.base = self._settled = self._low = median
        self._lower = self._trouble = inf
        self._turned = now
        self._suspicions = self._futile = self.cuts = 0

    def _compare(self, median: float, error: float) -> LatencyVerdict:
        base = self.base or median
        above = median - base
        if above <= max(self.share * base, DOUBT * error, WHIM):
            self._suspicions = self._futile = self.cuts = 0
            self._trouble = inf
            return LatencyVerdict.FINE
        self._suspicions += 1
        if self._suspicions < 2 and above <= max(4 * self.share * base, CERTAINTY * error):
            return LatencyVerdict.SUSPECT
        self._suspicions = 0
        self._futile = 0 if median <= NO_FASTER * self._trouble else self._futile + 1
        self._trouble = median
        self.cuts += 1
        return LatencyVerdict.BLAMELESS if self._futile >= FUTILE_CUTS else LatencyVerdict.QUEUES

    def _settle(self, median: float, now: float) -> None:
        if self.is_slow and self._doubtful and median < FASTER * self._settled:
            self._settled, self._doubtful = median, False
        self._settled += SETTLING * (median - self._settled)
        if now - self._turned > REMEMBERED:
            self._lower, self._low, self._turned = self._low, inf, now
        self._low = min(self._low, self._settled)
        self.base = min(self._low, self._lower)


def spread_of(ordered: list[float]) -> float:
    """The standard deviation, from the middle half of the samples: outliers do not widen it."""
    count = len(ordered)
    return (ordered[3 * count // 4] - ordered[count // 4]) / 1.35


# How long a host stays closed, and what that says.

WINDOWS = (1.0, 10.0, 60.0, 600.0, 3600.0, 86400.0)  # seconds that quotas are counted over
PROBE, PROBE_GROWTH = 0.25, 1.8  # seconds before the first probe of a closure, and how that grows
KNOWN_GROWTH = 2.0  # of the pauses at a host that is known to count over a window: it will end when that does
LATE = 0.12  # of a closure's length so far: the longest pause between two probes of a longer one
LONG = 20.0  # seconds; a pause between probes that is no longer than this is never too late
TELLING = 10  # requests, or seconds, between two closures: after fewer they may have come alike by chance
LONGEST_PROBE = 600.0  # seconds; a host that refused all day may open any minute


class QuotaWindow:
    """How many seconds a host counts its quota over, found by how long it stays closed.

    A 429 without a time counts: a closure that probes had to wait out is a window of its quota. A bare 503, or a
    Retry-After, may be an outage or a whim, and is a quota once it recurs: after the same count, or the same time.
    Counts are per window: a shorter closure never resets a longer one's.
    """

    __slots__ = ("_count", "_mark", "_openings", "_period", "confirmed", "recurred", "seconds")

    def __init__(self, began: float) -> None:
        self._openings = [(began, 0)]  # when the host opened and how much it had served: first contact, then the latest
        self._mark = (began, 0)  # a point one window back, or two
        self._count = self._period = 0.0  # served before the last closure, and the time from the opening before it
        self.seconds = WINDOWS[0]  # the longest that is known to be counted over
        self.recurred = False  # whether the last closure came as the one before it did,
        self.confirmed = False  # and whether any did

    @property
    def is_long(self) -> bool:
        """Whether the host counts over more than a second."""
        return self.seconds > WINDOWS[0]

    def next_probe(self, refused_at: float, probes: int, first: float, now: float) -> float:
        """When to probe next: later each time, or when a window ends that began as the host opened."""
        growth = KNOWN_GROWTH if self.is_long else PROBE_GROWTH
        pause = min(LONGEST_PROBE, first * growth ** min(probes, 40))
        pause = min(pause, max(LONG, LATE * (now - refused_at)))
        ends = [at + window + 0.02 for at, _ in self._openings for window in WINDOWS[1:]]
        if self.is_long:
            last = self._openings[-1][0]
            ends.append(last + ((now - last) // self.seconds + 1) * self.seconds + 0.02)
        end = min((end for end in ends if end > now), default=inf)
        # Rather a little later and just after the end than just before it.
        return end if end < now + 1.25 * pause else now + pause

    def recurs(self, refused_at: float, served: int, admitted: int) -> bool:
        """Whether a closure at this point comes after as many requests, or as long, as the one before it."""
        at, before = self._openings[-1]
        pairs = ((served - before, admitted - before, self._count), (refused_at - at, refused_at - at, self._period))
        return any(
            other >= TELLING and low <= other + max(2.0, 0.03 * other) and high >= other - max(2.0, 0.03 * other)
            for low, high, other in pairs
        )

    def close(self, refused_at: float, served: int) -> None:
        """The host has closed: remember after how much."""
        at, before = self._openings[-1]
        self.recurred = self.recurs(refused_at, served, served)
        self.confirmed |= self.recurred
        self._count, self._period = served - before, refused_at - at

    def open(self, closed: float, now: float, served: int) -> float:
        """The host has opened after `closed` seconds of a quota; what it serves a second, over its window."""
        window = next((window for window in WINDOWS if window >= closed), WINDOWS[-1])
        self.seconds = max(window, self.seconds)
        # Count from the latest opening that lies a window back, else from the first; and from the mark.
        whole = [each for each in self._openings if now - each[0] >= 0.9 * self.seconds]
        points = [whole[-1] if whole else self._openings[0]]
        if now - self._mark[0] >= self.seconds:
            points.append(self._mark)
        rate = max((served - before) / max(self.seconds, now - at) for at, before in points)
        self.reopen(now, served)
        return rate

    def reopen(self, now: float, served: int) -> None:
        """The host has opened, for whatever reason it was closed."""
        self._openings = [*self._openings[-3:], (now, served)]

    def mark(self, now: float, served: int) -> None:
        """Keep how much was served by when, about a window back."""
        if now - self._mark[0] > 2 * self.seconds:
            self._mark = (now, served)


# How often to look for a higher limit.

SETTLED = 50.0  # seconds between two tests at most
SPARED = 300.0  # requests between two tests of a host so slow that SETTLED would be fewer
PRICE = 40.0  # requests served that one refusal is worth
LASTING = 100.0  # seconds that a limit holds, before anything is known of how this host's changes
SAME_CHANGE = 15.0  # seconds in which a ceiling that goes on moving is still finding its new place
MEETING = 60.0  # seconds in which a ceiling that moves is still being found
CHANGED = 1.35  # a ceiling that moved this far is another limit
BEST_KEPT = 0.99  # of the best ceiling, at each test: what was allowed an hour ago is forgotten
LIKELY = 0.3  # of a level: what a rise may bring if nothing better was ever seen


class Tests:
    """When a higher rate is worth a test: as often as limits change at this host, and as it pays."""

    __slots__ = ("_best", "_changed_at", "_first", "_lasting", "_moved", "known", "lost", "refused")

    def __init__(self, began: float, ceiling: float) -> None:
        self.known = ceiling  # the ceiling when it last became another
        self.refused, self.lost = 1, 0.0  # requests of the last closure, and its seconds
        self._best = 0.0  # the highest ceiling of late
        self._first = self._changed_at = began
        self._lasting = LASTING  # seconds that a ceiling holds, about
        self._moved = False  # whether it was ever seen to change

    def rest(self, level: float, now: float) -> float:
        """Seconds to the next test, where nothing calls for one.

        The square root is where what refusals cost and what is lost by missing a rise are least in sum.
        """
        lasting = max(self._lasting, (now - self._changed_at) / (2 if self._moved else 1))
        price = PRICE * min(1.0, lasting / LASTING) ** 2  # where limits change all the time, one expects refusals
        cost = price * max(1, self.refused) + level * self.lost
        return min(max(SETTLED, SPARED / level), sqrt(2 * cost * lasting / self.gain(level)))

    def gain(self, level: float) -> float:
        """What a rise may bring: up to the best of late, or a part more than now."""
        return max(LIKELY * level, self._best - level)

    def held(self, level: float) -> None:
        """`level` has held for as long as we rested."""
        self._best = max(level, BEST_KEPT * self._best)

    def note(self, ceiling: float, now: float) -> None:
        """The ceiling is this from now on: has the limit changed, and after how long?"""
        if max(ceiling, self.known) < CHANGED * min(ceiling, self.known):
            return
        lasted = now - self._changed_at
        if lasted > SAME_CHANGE:
            if now - self._first > MEETING:
                self._lasting = (self._lasting + lasted) / 2 if self._moved else lasted
                self._moved = True
            if self._best:  # else nothing was tested yet, and it may be as far as we came before the first refusal
                self._best = max(self._best, self.known)
        self.known, self._changed_at = ceiling, now


# Where the limit lies.

STEP = 0.04  # of the first test above the ceiling; doubled after each test that passes
LARGEST_STEP = 0.35  # what a single test may add: beyond that the overshoot costs more than it finds
BOLDEST = 0.15  # of the first test, where much is to be found
LONG_TEST = 8.0  # seconds; rather ask for more than take longer to see whether it is too much
PROMPT, SOON = 1.5, 15.0  # seconds to the next test: much to find, some news
PATIENCE = 20  # times a closure's length before the next test, so that closures cost at most one part in twenty
WIDE = 1.05  # a failed test this far above the ceiling leaves much between the two: look there at once
PROVE = 1.03  # what passed with something saved up lies this far above what held: prove it with nothing saved up
GAINED = 1.02  # a level this far above another is more than chance
FEWEST = 4  # requests served, before which a closure of seconds says how slow the host is
BARE = 8  # probes without a pause that grows, where a 503 may mean that the host is down
USUAL_503S = 3  # bare 503s in a row that no slowing down has kept away: the host's usual failures, and no limit
SOON_AGAIN = 30  # requests served between two of those at most
BRIEF = 4.0  # times as long as a host may be closed by a quota of a second: some come in bunches
TOO_MANY = 8  # failures in a window, and more than good responses: perhaps those 503s are a limit after all
FEW = 20  # requests served, before which a single refusal may be chance
RECENT = 10.0  # seconds after resuming in which a refusal speaks about the level resumed at
TRUST, LEAST_TRUST = 0.8, 0.3  # in what was sent in the second before a refusal
FOOLED = 1.07  # tests that pass this far above what was measured show that it was measured wrongly
RISEN = 1.5  # tests that pass this far above the old ceiling are no saved-up allowance: the quota has grown


class Evidence(Enum):
    """What the ceiling was learned from."""

    NOTHING = "nothing yet"
    WINDOW = "a quota that came back after a while"
    SERVED = "what was served between two refusals"
    PASSED = "the last rate that passed"
    DEPTH = "the ceiling that held before saved-up allowance ran out"
    HOLDING = "a refusal at a rate that had held"
    QUEUE = "latency: the host began to queue"


class Phase(Enum):
    """What the governor is doing, as people are told."""

    GROWING = "growing back to"  # the ceiling, if there is one
    HOLDING = "just below"
    TESTING = "testing a little above"
    PROBING = "probing"  # after a refusal, one request at a time


@dataclass(slots=True, eq=False)
class Limit:
    """What a host's refusals have proved about its limit. Made when it first refuses or queues.

    What a refusal proves depends on what came before it:

    - The host stayed closed for long: a quota counted over a window; the ceiling is what was served in one window.
    - Refused soon after resuming, when nothing was saved up on the host's side: the level was too high, and what was
      served since the last refusal *is* the quota.
    - Refused during a test: the last level that passed holds, unless unused allowance piles up at the host (a deep
      bucket, found by being fooled once): then short tests pass that should not, and the ceiling from before stands.
    """

    began: float  # when this stretch began: with the first request, and after each closure
    passed: float  # the last rate that held, while growing or testing
    window: QuotaWindow = field(init=False)
    evidence: Evidence = Evidence.NOTHING
    next_test: float = inf
    test_ends: float = inf
    risen: bool = False  # tests have passed so far above the ceiling that there is another one
    suspicious: bool = False  # refusals may be noise: then hold and see
    noise: float = 0.0  # the share of refusals that say nothing
    queues: bool = False  # latency rose with our rate
    saturated: bool = False  # the host was kept busy since the allowance was last used up
    probes: int = 0
    directed: bool = False  # a Retry-After told us to wait
    bare: bool = False  # it was a 503 that did not, or a failure
    expected: bool = False  # it came after as many requests, or as long, as the one before
    faulty: bool = False  # bare 503s come whatever our rate: they are failures like any other
    share: float = 0.0  # of all responses that are such
    _unhelped_since: int = 0  # what was served before them
    _unhelped: int = 0  # bare 503s that came as often after we had slowed down for the one before
    _convincing: int = USUAL_503S
    _step: float = STEP
    _thin: bool = True  # a refusal after a handful of requests is still to be taken for chance
    _refine: bool = False  # the next test looks between what held and what was refused
    _failed_at: float = inf  # the lowest rate known to be too much
    _over: float = inf  # the lowest rate that was refused with nothing saved up
    _deep: bool = False  # unused allowance piles up at the host, so that short tests pass which should not
    _again: bool = False  # a full second passed at the level that was refused last, and yet it was refused
    _doubts: int = 0  # tests with nothing saved up that gained nothing,
    _unproved: int = 0  # and others since
    _honest: bool = False  # a test began just after a refusal, with nothing saved up that could fool it
    _resumed_at: int = 0  # what was served when it last resumed
    _anchor_served: int = 0  # what was served when the allowance was last used up
    _anchor_at: float = field(init=False)
    _giving_until: float = field(init=False)  # while a sliding window may still give back what was used up at once
    _phase: Phase = Phase.GROWING
    _refused_at: float = field(init=False)
    _refused_last: float = field(init=False)
    _served: int = 0
    _trust: float = TRUST
    _busy: float = field(init=False)  # sent in the last second
    _level: float = field(init=False)  # where tests began
    _landed: float = field(init=False)  # where we landed
    _tests: Tests = field(init=False)

    def __post_init__(self) -> None:
        self.window = QuotaWindow(self.began)
        self._anchor_at = self._giving_until = self._refused_at = self._refused_last = self.began
        self._busy = self._level = self._landed = self.passed
        self._tests = Tests(self.began, self.passed)

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
        self._tests.held(level)
        bold = min(BOLDEST, max(2 * STEP if self.noise else STEP, self._tests.gain(level) / level / 8))
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
        # An honest test must outlast what was saved up during the closure before it, in a few seconds.
        saved = 1.2 * (self.began - self._anchor_at) if self._honest and self._measures else 0.0
        step = max(step, min(LARGEST_STEP, saved / LONG_TEST))
        rate = level * (1 + step)
        shows = (8.0 if self.noise else 1.5) / (step * rate)
        self.test_ends = now + max(2.0 if level == self._level else 1.2, shows, saved / step, self.window.seconds)
        return rate

    def queued(self, rate: float, now: float, *, testing: bool) -> None:
        """Latency rose at `rate`. A test that costs the host a short queue and nobody a refusal may come sooner."""
        self._failed_at = rate
        self.evidence = Evidence.QUEUE
        self.queues = True
        self.wait(now, min(SETTLED, max(10.0, self._tests.rest(rate, now))) if testing else 10.0)

    # Refusals.

    def refused(self, phase: Phase, now: float, served: int, busy: float) -> None:
        """The host said no, and nothing but probes is sent until it says yes. `busy`: sent in the last second."""
        # Refused again at once: the limit fell, or a sliding window has just begun to give back. No place to hurry.
        hurry = now - self.began >= RECENT or phase is Phase.GROWING
        # Where noise has to be told from a limit first, or seconds are not what counts, the last one says nothing.
        self._busy = 0.0 if self.noise or self.window.is_long else busy
        self._phase, self._refused_at, self._served = phase, now, served
        self.probes = 0 if hurry else 2
        self.directed = self.bare = False

    def next_probe(self, now: float) -> float:
        """When to probe a host that has just refused."""
        self._refused_last = now
        # One that serves a request in five seconds is not probed four times in the first.
        known = self._tests.known
        first = max(PROBE, min(LONG, 1 / known)) if self._is_settled and known < 1 else PROBE
        # Is it down, or is it a quota? Five such in a row say that it is down, and soon.
        probes = 0 if self.bare and not self.expected and self.probes < BARE else self.probes
        due = self.window.next_probe(self._refused_at, probes, first, now)
        # An outage may end any moment.
        return min(due, now + LONG) if self.bare and not self.expected else due

    def resists(self) -> None:
        """Bare 503s have become far more than is usual: perhaps they are a limit after all."""
        self.faulty, self._unhelped = False, 0
        self._convincing *= 2

    def expects(self, now: float, served: int, inflight: int, *, probing: bool, testing: bool) -> bool:
        """Whether a 503 at this point is the end of a quota."""
        if not probing:
            # A test that asks for more than a known quota is answered by it.
            self.expected = testing and self.window.confirmed
        since = self._refused_at if probing else now
        self.expected = self.expected or self.window.recurs(since, served, served + inflight)
        return self.expected

    def still_closed(self, now: float) -> None:
        """Somebody else probes, and was refused."""
        self._refused_last = now

    def resume(self, rate: float, due: float, now: float, served: int) -> float | None:
        """The probe due at `due` succeeded: the ceiling that follows, `rate` having been refused; if any."""
        closed_for = due - self._refused_at  # not to now: nobody may have wanted to send for a while
        refused_for = self._refused_last - self._refused_at
        self._tests.refused, self._tests.lost = self.probes + 1, closed_for
        if not self.bare or refused_for > BRIEF * self._short or self._served - self._resumed_at > SOON_AGAIN:
            self._unhelped, self._unhelped_since = 0, served  # it was closed, or lived with our rate for a while
        elif self._phase is Phase.HOLDING:
            self._unhelped += 1
        self._resumed_at = served
        if self._unhelped >= self._convincing:
            self.faulty = True
            self.share = self._unhelped / (self._unhelped + served - self._unhelped_since)
            return None
        ceiling, interval, evidence = self._weigh(rate, closed_for, refused_for, now, served)
        self._failed_at = rate
        self._anchor_at, self._anchor_served = now - min(self._short, now - self._refused_at), served
        self.saturated = True
        self.began = now
        if ceiling is None:
            return None
        self.evidence = evidence
        self.passed = self._landed = ceiling
        self._tests.note(ceiling, now)
        if interval > PROMPT:
            interval = self._tests.rest(ceiling, now)
            if closed_for > self._short:
                patience = PATIENCE * closed_for
                interval = max(interval, min(patience, 5 * self.window.seconds) if self.window.is_long else patience)
        self.wait(now, interval)
        self._refine &= not self._measures  # what was measured is no guess
        return ceiling

    def _weigh(
        self, rate: float, closed_for: float, refused_for: float, now: float, served: int
    ) -> tuple[float | None, float, Evidence]:
        """The rate that holds (None: nothing was proved), seconds to the next test, and what both rest on."""
        early = self._phase is Phase.HOLDING and self._refused_at - self.began < RECENT
        if early and now < self._giving_until and closed_for < self.window.seconds and not self.bare:
            # A sliding window gives back as slowly as it was used up a window ago: expected, and no news.
            return self.passed, SOON, Evidence.WINDOW
        if refused_for > self._short and not self.directed:
            return self._weigh_closure(rate, refused_for, now, served)
        self._again &= early
        if self.evidence is Evidence.PASSED:
            self._trust = max(LEAST_TRUST, self._trust - 0.3) if early else min(1.0, self._trust + 0.1)
        if early:
            return self._weigh_early(rate, closed_for)
        if self._phase is Phase.TESTING:
            return self._weigh_test(rate)
        if self._phase is Phase.HOLDING:
            return min(rate, max(self._measured(), rate * (1 - STEP))), SOON, Evidence.HOLDING
        if self._thin and served < FEW:
            self._thin = False
            return None, 0.0, self.evidence
        return min(rate, self._between), SOON if self.directed else PROMPT, Evidence.PASSED

    def _weigh_closure(
        self, rate: float, refused_for: float, now: float, served: int
    ) -> tuple[float | None, float, Evidence]:
        """It stayed closed while we probed: its window is at least as long as that, if it is a quota."""
        self.window.close(self._refused_at, self._served)
        # So may a refusal that lasts for more than an hour be a ban; a day's quota shows itself again tomorrow.
        known = self.window.recurred or (self.bare and self.expected)
        if (self.bare or refused_for > WINDOWS[-2]) and not known:
            self.window.reopen(now, served)
            return None, 0.0, self.evidence
        if served < FEWEST and refused_for < LONG_TEST and self.evidence is Evidence.NOTHING:
            # One request in a few seconds is a slow host, not a long window.
            return served / (now - self.began), SOON, Evidence.SERVED
        held = min(rate, self.window.open(refused_for, now, served))
        self._giving_until = now + self.window.seconds
        return held, SOON, Evidence.WINDOW

    def _weigh_early(self, rate: float, closed_for: float) -> tuple[float, float, Evidence]:
        """Refused soon after resuming, with nothing saved up: what was served meanwhile is the quota."""
        self._over = min(self._over, rate)
        held = self._level if self.evidence is Evidence.DEPTH else 0.0
        # A handful of responses measure nothing well.
        least = rate / 2 if self._served - self._anchor_served < 6 else 0.0
        by_second = 0.0 if self._deep else self._by_the_second(rate, closed_for)
        estimate = min(max(self._measured(), least, held, by_second), rate)
        more = estimate * (1 + STEP) < 0.99 * self._over and not self.window.is_long and not self.suspicious
        return estimate, PROMPT if more else SOON, Evidence.SERVED

    def _by_the_second(self, rate: float, closed_for: float) -> float:
        """What the host allows if it counts seconds, so that nothing is saved up while we wait."""
        again, self._again = self._again, self._refused_at - self.began > 1.0
        if not again:
            return min(self._busy, rate * (1 - STEP))
        # A full second passed, twice: perhaps it is a bucket after all. To find out is cheap while refusals are short.
        return (self._measured() + rate) / 2 if closed_for < 2.0 else 0.0

    def _weigh_test(self, rate: float) -> tuple[float, float, Evidence]:
        if self._honest:
            self._over = min(self._over, rate)
            if self.evidence is Evidence.SERVED:
                # What was measured counts what came in while we waited. If more than that passes, nothing did.
                self._deep = self.passed < FOOLED * self._landed
        if self._deep and self.passed < RISEN * self._level:
            return self._weigh_depth(rate)
        # Only what was gained shows that there is more to be found at once.
        more = rate > WIDE * self.passed and self.passed > GAINED * self._level
        held = self.passed if self._deep else min(rate * (1 - STEP / 2), self._between)
        return held, PROMPT if more and not self.directed else SOON, Evidence.PASSED

    def _weigh_depth(self, rate: float) -> tuple[float, float, Evidence]:
        """A test was refused where short tests pass that should not."""
        if self._honest:
            # Nothing was saved up: what passed is real. If nothing did, ask for such proof less often.
            self._doubts = 0 if self.passed > GAINED * self._level else min(4, self._doubts + 1)
            return max(self._level, min(rate, self.passed)), SOON, Evidence.DEPTH
        estimate = min(rate, max(self._level, self._measured() if self.saturated else 0.0))
        self._unproved += 1
        if self.passed < PROVE * estimate or self._unproved < 2**self._doubts:
            return estimate, SOON, Evidence.DEPTH
        self._unproved = 0
        return estimate, PROMPT, Evidence.DEPTH

    @property
    def _between(self) -> float:
        """From what passed towards what was sent in the last second: all of that only where any second counts."""
        return self.passed + max(0.0, self._busy - self.passed) * self._trust

    def _measured(self) -> float:
        """What was served a second between the last two times the allowance was used up."""
        return (self._served - self._anchor_served + 1) / max(0.05, self._refused_at - self._anchor_at)

    @property
    def _is_settled(self) -> bool:
        return self.evidence is not Evidence.NOTHING

    @property
    def _short(self) -> float:
        """Seconds that a host may be closed without counting over more than a second: a request or two's worth."""
        return max(1.0, 2 / self._tests.known) if self._is_settled else 1.0

    @property
    def _measures(self) -> bool:
        return self._deep or self.evidence is Evidence.SERVED
