"""Learn a host's limit from nothing but its answers: when it refuses, how long it stays closed, how long it takes.

Terms. *Grow*: half as much again per window, until the host objects or the known ceiling is reached. *Leap*: grow to
twice as much, while the rate is low and the host has never objected, or where it held before an outage. *Cruise*: a
little below the ceiling. *Test*: a little above it, for as long as a refusal would need to show. *Drain*: after a
refusal, nothing but one probe at a time. What follows from each objection is in `trials`; whether a refusal is one at
all, in `noise`.
"""

from dataclasses import InitVar, dataclass, field
from enum import Enum
from math import ceil, inf

from sanderling.limit.lane import KEPT, Lane
from sanderling.limit.latency import Latency, Verdict
from sanderling.limit.noise import Noise
from sanderling.limit.pace import PaceRules
from sanderling.limit.trials import SOON, Evidence, Phase, Trials

MARGIN = 0.985  # of the ceiling: what jitter between us and the host would push over it stays below
GROWTH = 1.5
LEAP = 2.0  # instead, where little is at stake: a host that never objected, at a rate below SAMPLES per WINDOW
WARY, BRISK = 1.22, 40.0  # above so many a second: what leaves before a refusal is heard is many requests
WINDOW, LONGEST_WINDOW = 1.0, 8.0  # seconds; a slow host's window closes with what it has
# Latencies a window needs. Fewer while testing, where a refusal is what we look for, and before a leap.
SAMPLES, FEW, LEAST = 16, 8, 5
USED = 0.6  # less of the rate used than this proves nothing about it
SLOW_SHARE = 0.15  # latency this far above the base, as a share of it, counts as slow
SHARE_FAILED = 0.2  # of a window's answers, beyond what is usual; more failures than that look like overload
NO_BETTER = 0.7  # of the share of failures left after asking half as much: asking less did not help
IDLE = 60.0  # seconds without an answer, after which the old rate would be a bold way to knock
COMEBACK = 4  # the part of the last good rate that a host is first asked for after an outage or a long silence
FIRST_ROOM = 3  # requests in flight at a host that has shown nothing yet
AMPLE = 4.0  # times what fits into the host's own latency may be in flight at any host
ROOM = 2.0  # times what fits into the host's own latency may be in flight, once it was seen to queue

CROWD = 3.0  # times what the host can be at work on, in flight as it refuses: its queue is full

REMEMBERED = "an earlier life"  # as people are told where a ceiling came from that was saved


class Mode(Enum):
    """What the governor is doing, as people are told."""

    GROW = "growing until the host objects"
    CRUISE = "cruising just below its ceiling"
    TEST = "testing just above its ceiling"
    DRAIN = "refused; one probe at a time until it opens"


PHASES = {Mode.GROW: Phase.GROWING, Mode.CRUISE: Phase.CRUISING, Mode.TEST: Phase.TESTING}


@dataclass(slots=True, eq=False, repr=False)
class Governor:
    """One host's learned rate. `rate`, `hold`, `single` and the lane's `room` are its orders; the gate obeys them."""

    _rules: PaceRules
    lane: InitVar[Lane]
    _began: float
    rate: float
    ceiling: float | None = None
    hold: float = field(init=False)
    mode: Mode = Mode.GROW
    _passed: float = field(init=False)
    _restore: float = field(init=False)
    _before: float = 0.0  # the rate before this one,
    _since: float = field(init=False)  # which holds since then
    _meeting: bool = True  # until the first objection of any kind, or a ceiling that was known before
    _latency: Latency = field(default_factory=lambda: Latency(SLOW_SHARE))
    _trials: Trials | None = None  # a host that never objects needs no record
    _noise: Noise | None = None
    _believed: float = 0.0  # the rate at which noise was first taken for noise
    _good: float = 0.0  # the last rate that was used and held,
    _served: float = 0.0  # and what was served a second, of late
    _usual_failures: float = 0.0  # the share of answers that fail however little we ask
    _blamed: float = 0.0  # the share that made us ask less

    counts_refusals = False  # a refusal is how this strategy learns; a drain lets one request through at most anyway
    trusts_503 = True

    def __post_init__(self, lane: Lane) -> None:
        self._passed = self._restore = self.rate
        self.hold = self._since = self._began
        lane.room = FIRST_ROOM
        lane.open_window(self._began, WINDOW)

    @property
    def single(self) -> bool:
        """Whether only one request may be in flight."""
        return self.mode is Mode.DRAIN

    @property
    def learned(self) -> str | None:
        """What the ceiling was learned from, in words; None if there is none."""
        evidence = Evidence.NOTHING if self._trials is None else self._trials.evidence
        if evidence is Evidence.NOTHING:
            return None if self.ceiling is None else REMEMBERED
        return str(evidence.value)

    @property
    def usual(self) -> float | None:
        """The latency that answers are judged by, in seconds."""
        return self._latency.base

    def remember(self, ceiling: float) -> None:
        """Grow no further than `ceiling` at first: it was learned in an earlier life."""
        self.ceiling = ceiling
        self._meeting = False

    def bound(self, rules: PaceRules) -> None:
        """Keep to other bounds from now on. What was learned above them is let go: it could not be verified."""
        self._rules = rules
        self.rate, self._passed = rules.clamp(self.rate), rules.clamp(self._passed)
        self._restore = rules.clamp(self._restore)
        self._good = min(self._good, rules.max_rps)
        self.ceiling = None if self.ceiling is None else rules.clamp(self.ceiling)

    @property
    def doing(self) -> str:
        """What holds the rate where it is, in words."""
        return self.mode.value

    # What the gate reports, of answers in the current epoch. Each says whether the rate went down.

    def probed(self, lane: Lane, now: float) -> bool:
        """A drain's probe succeeded: settle on what the refusal proved."""
        if self.mode is not Mode.DRAIN:
            return False
        ceiling = self._record.resume(self.rate, self.hold, now, lane.delivered)
        self.hold = now  # nothing was saved up meanwhile
        if ceiling is None:
            self._meeting |= not self._record.bare  # too little to conclude anything from
            self._start_over(lane, now)
        else:
            # Below the slowest that was asked for too: the host has proved it.
            self.ceiling = min(self._rules.max_rps, ceiling)
            self.rate = self._good = self.ceiling * MARGIN
            self._before, self._since = 0.0, now
            self.mode = Mode.CRUISE
            lane.open_window(now, WINDOW)
        return True

    def refused(self, lane: Lane, now: float, retry_after: float | None, *, bare: bool = False) -> bool:
        """A 429 or 503: stop, and let one probe at a time find out when the host opens again. `bare`: perhaps down."""
        record = self._record
        if self.mode is Mode.DRAIN:
            record.probes += 1
        elif self._is_crowded(lane, now):
            # The host's queue is full, and ours are in it.
            self._relieve(lane, self._served or lane.delivered / (now - self._began), now)
            self._make_room(lane, self._served)
            self.hold = max(self.hold, now + (retry_after or 0.0))
            lane.open_window(now, WINDOW)
            return True
        elif self._is_noise(lane, now):
            return False
        else:
            admitted = lane.delivered + lane.serial - lane.ended  # what is in flight left before the host said no
            new = min(1.0, now - self._since)
            record.refused(PHASES[self.mode], now, admitted, new * self.rate + (1 - new) * self._before)
            self.mode = Mode.DRAIN
        record.directed |= retry_after is not None
        record.bare |= bare
        self.hold = max(record.next_probe(now), now + (retry_after or 0.0))
        return True

    def _is_crowded(self, lane: Lane, now: float) -> bool:
        """Whether far more is in flight than the host can be at work on."""
        served = self._served or lane.delivered / max(now - self._began, WINDOW)
        return self._latency.is_slow and lane.serial - lane.ended > CROWD * served * self._latency.first + 2

    def expects_503(self, lane: Lane, now: float) -> bool:
        """Whether a 503 at this point is a quota, as it came after as many requests, or as long, before."""
        return self._trials is not None and self._trials.expects(now, lane.delivered, draining=self.single)

    def failed(self, lane: Lane, now: float) -> bool:
        """A 5xx or no answer at all: trouble only if a good share of the window's answers are such."""
        if self.mode is Mode.DRAIN:
            return self.refused(lane, now, None, bare=True)
        lane.failed += 1
        answers = lane.failed + lane.fresh
        if now < lane.closes or (answers < SAMPLES and now - lane.opened < LONGEST_WINDOW):
            return False
        return self._blame(lane, lane.failed / answers, now)

    def interrupted(self, lane: Lane, now: float) -> None:
        """The host is down: the breaker probes from now on. Come back gently."""
        self.hold = now
        self._meeting = False
        if self.mode is Mode.DRAIN:
            self._record.still_closed(now)
        else:
            self._start_over(lane, now)

    def close(self, lane: Lane, now: float) -> bool:
        """Judge the window, if it holds enough."""
        span, before = now - lane.opened, self.rate
        enough = FEW if self._leaping or self.mode is Mode.TEST else SAMPLES
        longest = max(LONGEST_WINDOW, LEAST / self.rate)
        if lane.fresh < enough and span < longest:
            # Look again when there should be enough, and not at each answer until then.
            lane.closes = lane.opened + min(longest, span * enough / lane.fresh)
            return False
        if span > 2 * longest:
            return self._wake(lane, span, now)
        self._usual_failures += 0.1 * (lane.failed / (lane.failed + lane.fresh) - self._usual_failures)
        used = lane.serial - lane.sent_before >= USED * self.rate * span
        served = (lane.delivered - lane.delivered_before) / span
        if self._trials is not None:
            self._trials.closures.mark(now, lane.delivered)
            self._trials.saturated &= used
        match self._judge(lane, now):
            case Verdict.OVERLOADED:
                self._relieve(lane, served, now)
            case Verdict.BLAMELESS:
                self.rate = self.ceiling = self._restore
                self.mode = Mode.CRUISE
                self._record.wait(now, SOON)
            case Verdict.FINE if used:
                if self.mode is not Mode.GROW or self.rate > self._good:  # else it is on its way back
                    self._good = self.rate
                self._advance(now)
        self._make_room(lane, served)
        lane.open_window(now, WINDOW)
        return self.rate < before

    def _make_room(self, lane: Lane, served: float) -> None:
        """Bound what is in flight at a host that queues: more would wait there and gain nothing."""
        self._served = max(served, 0.9 * self._served)
        queues = self._trials is not None and self._trials.queues
        # Once it was seen to queue, the rate is what it gets done; before, it may be far more.
        fits = (max(self.rate, self._served) if queues else self._served) * (self.usual or 0.0)
        spare = 0 if self._latency.is_slow else FIRST_ROOM  # quick hosts have slow answers now and then
        lane.room = max(2, ceil(ROOM * fits)) if queues else max(FIRST_ROOM, ceil(AMPLE * fits)) + spare
        if queues:
            # Where one or two fit, chance alone doubles the latency of some, and the room bounds it already.
            self._latency.share = max(SLOW_SHARE, min(1.0, 1.5 / max(fits, 0.1) - 0.5))

    def _judge(self, lane: Lane, now: float) -> Verdict:
        """What the window's latencies say; two or three say nothing."""
        if lane.fresh < LEAST - 1:
            return Verdict.FINE
        verdict = self._latency.judge(lane.window(), now)
        # Failures before it are no reason to judge by the one or two answers that there were.
        known = self._trials is not None and self._trials.evidence is not Evidence.NOTHING
        if not known and lane.delivered <= KEPT and verdict is not Verdict.SUSPECT:
            self._latency.meet(lane.kept(), now)
        return verdict

    def _wake(self, lane: Lane, silence: float, now: float) -> bool:
        """Nobody asked for a while: the window says nothing. After a long silence start gently and grow back."""
        before = self.rate
        if silence > IDLE:
            self._start_over(lane, now)
        if self._trials is not None:
            self._trials.saturated = False
        lane.open_window(now, WINDOW)
        return self.rate < before

    def _start_over(self, lane: Lane, now: float) -> None:
        """From a part of the last good rate, or where hosts start, back up to it and to the ceiling."""
        self.rate = min(max(self.rate, self._good), max(self._rules.initial_rps, self._good / COMEBACK))
        self.mode = Mode.GROW
        lane.open_window(now, WINDOW)

    def _is_noise(self, lane: Lane, now: float) -> bool:
        """Whether the refusal says nothing about our rate."""
        self._noise = self._noise or Noise()
        known = self._noise.share > 0
        noise = self._noise.explains(lane.delivered, allowed=self.mode is Mode.CRUISE and not self._record.windowed)
        if noise and not known:
            # What was learned so far was learned from noise.
            self._believed = self.rate
            self.ceiling, self.mode = None, Mode.GROW
            lane.open_window(now, WINDOW)
        elif known and not noise and self.rate < 1.5 * self._believed:
            self._noise.forget()
        self._record.noise, self._record.suspicious = self._noise.share, self._noise.suspected
        return noise

    def _blame(self, lane: Lane, share: float, now: float) -> bool:
        """Too large a share of the answers were failures: ask less, unless asking less did not help before."""
        if share <= self._usual_failures + SHARE_FAILED:
            return False
        before = self.rate
        self._meeting = False
        self.mode = Mode.GROW  # back to the ceiling, if there is one, as soon as a window is good
        if self._blamed and share > NO_BETTER * self._blamed:
            self._usual_failures, self._blamed = share, 0.0
            self.rate = max(self.rate, self._restore)
        else:
            self._blamed, self._restore = share, self.rate
            self.rate = self._rules.clamp(self.rate * self._rules.decrease)
        lane.open_window(now, WINDOW)
        return self.rate < before

    def _relieve(self, lane: Lane, served: float, now: float) -> None:
        """The host queues our requests: land below what it gets done, and wait until the queue is gone."""
        if self._latency.helping:
            self._restore = self.rate
        record = self._record
        record.queued(self.rate, now, testing=self.mode is Mode.TEST)
        landing = min(served, self.rate) * (0.95 if self._latency.cuts == 1 else 0.85)
        landing = max(landing, min(self.rate, self._rules.min_rps))
        self.rate = self.ceiling = record.passed = self._good = landing
        self.mode = Mode.CRUISE
        queued = (lane.serial - lane.ended) / served - (self._latency.base or 0.0)
        self.hold = now + min(10.0, max(0.0, queued))

    def _advance(self, now: float) -> None:
        """The window was good and the rate was used: ask for more, if it is time."""
        before = self.rate
        if self.mode is Mode.GROW:
            self._grow(now)
        else:
            self._try(now)
        if self.rate != before:
            self._before, self._since = before, now

    def _try(self, now: float) -> None:
        record = self._record
        if self.mode is Mode.CRUISE and now >= record.next_test:
            self.mode = Mode.TEST
            self.rate = min(self._rules.max_rps, record.start(self.ceiling or self.rate, now))
        elif self.mode is Mode.TEST and now >= record.test_ends:
            self.ceiling = self.rate
            self.rate = min(self._rules.max_rps, record.passes(self.rate, now))
            if record.risen:
                self.ceiling, self.mode = None, Mode.GROW

    def _grow(self, now: float) -> None:
        self._passed = self.rate
        if self._trials is not None:
            self._trials.grew(self.rate)
        known = (self.ceiling or inf) * MARGIN
        self.rate = min(self._rules.max_rps, self.rate * self._growth, known)
        if self.rate >= known:
            self.mode = Mode.CRUISE
            self._record.wait(now, SOON)

    @property
    def _growth(self) -> float:
        if self._leaping or self.rate < self._good:
            return LEAP
        return GROWTH if self.rate < BRISK else WARY

    @property
    def _leaping(self) -> bool:
        return self._meeting and self.rate < min(SAMPLES / WINDOW, self._rules.max_rps)

    @property
    def _record(self) -> Trials:
        """Made at the first objection by refusal or latency."""
        if self._trials is None:
            self._meeting = False
            self._trials = Trials(self._began, self._passed)
        return self._trials
