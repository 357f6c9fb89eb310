# ruff: noqa: ARG002, D102 - Pace says what each method does, and not all look at each argument.
"""Learn a host's limit from nothing but its responses: when it refuses, for how long, how long they take."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Any

from sanderling.limit.breaker import State
from sanderling.limit.bucket import Bucket
from sanderling.limit.evidence import (
    SLOW_SHARE,
    SOON,
    TOO_MANY,
    Consent,
    Evidence,
    LatencyVerdict,
    Limit,
    Noise,
    Phase,
    Slowness,
)
from sanderling.limit.pace import depth_of, is_failure, is_refusal
from sanderling.limit.rate_headers import Quota, Spread
from sanderling.limit.rules import LimitOptions
from sanderling.limit.windows import RING, Latencies
from sanderling.outcome import Code, Outcome

MARGIN = 0.985  # of the ceiling: what jitter between us and the host would push over it stays below
GROWTH = 1.5
LEAP = 2.0  # instead, where little is at stake: a host that never objected, at a rate below SAMPLES per WINDOW
WARY, BRISK = 1.22, 40.0  # above so many a second: what leaves before a refusal is heard is many requests
WINDOW, LONGEST_WINDOW = 1.0, 8.0  # seconds; a slow host's window closes with what it has
# Latencies a window needs. Fewer while testing, where a refusal is what we look for, and before a leap.
SAMPLES, FEW, LEAST = 16, 8, 5
USED = 0.6  # less of the rate used than this proves nothing about it
IDLE = 60.0  # seconds without a response, after which the old rate would be a bold way to knock
COMEBACK = 4  # the part of the last good rate that a host is first sent after an outage or a long silence
FIRST_ROOM = 3  # requests in flight at a host that has shown nothing yet
AMPLE = 4.0  # times what fits into the host's own latency may be in flight at any host
ROOM = 2.0  # times what fits into the host's own latency may be in flight, once it was seen to queue
CROWD = 3.0  # times what the host can be at work on, in flight as it refuses: its queue is full
HANGS = 1.0  # seconds, and twice its usual latency, without a response from a host that has no room for more
LEASE = 11.0  # seconds a probe may take: a client waits for its response for 10, and a little
SOME = 0.05  # a usual share of failures that is worth a word
EARLIER = "an earlier life"
NOT_SENT = frozenset({Code.CANCELLED, Code.DEFERRED, Code.REFUSED})


@dataclass(slots=True, eq=False)
class Governor:
    """The learned rate of one host."""

    _options: LimitOptions
    _began: float
    rate: float = field(init=False)
    _learned: float = field(init=False)
    _bucket: Bucket = field(init=False)
    _hold: float = field(init=False)  # nothing leaves before
    ceiling: float | None = None
    phase: Phase = Phase.GROWING
    room: int = sys.maxsize  # how many may be in flight: more would only wait at the host
    _circuit: State = State.CLOSED
    # What was sent.
    _sent: int = 0
    _sent_at: float = -inf
    _ended: int = 0
    _stragglers: int = 0  # of those in flight, that were out for so long that they count no more
    _probe_sent: float = -inf  # when the probe that is out was sent
    _cut_at: float = -inf  # what was sent before the rate fell says nothing of the new one
    # What came back.
    _served: int = 0
    latencies: Latencies = field(default_factory=Latencies)  # of successes
    _opened: float = field(init=False)  # when this window did,
    _closes: float = field(init=False)  # when it is to be judged, and what was seen before it and in it
    _sent_before: int = 0
    _served_before: int = 0
    _failed: int = 0
    _fresh: int = 0
    # What was learned.
    _passed: float = field(init=False)
    _restore: float = field(init=False)
    _before: float = 0.0  # the rate before this one,
    _since: float = field(init=False)  # which holds since then
    _meeting: bool = True  # until the first objection of any kind, or a ceiling that was known before
    _slowness: Slowness | None = None  # most hosts of a wide crawl never fill a window
    _limit: Limit | None = None  # a host that never objects needs none
    _noise: Noise | None = None
    _believed: float = 0.0  # the rate at which noise was first taken for noise
    _good: float = 0.0  # the last rate that was used and held,
    _throughput: float = 0.0  # and what was served a second, of late
    _consent: Consent = field(default_factory=Consent)
    _stated: Spread | None = None  # by the host's headers
    # What `why` says.
    _refusal: tuple[int, float] = (0, 0.0)  # the status of the last one, and when it came
    _used: bool = True  # whether the rate was used

    def __post_init__(self) -> None:
        self.rate = self._learned = self._passed = self._restore = self._options.initial_rps
        self._bucket = Bucket(self.rate, self._depth, self._began)
        self._hold = self._since = self._began
        self._open_window(self._began)

    # What the limiter asks and tells.

    @property
    def probing(self) -> bool:
        """Whether only one request may be in flight."""
        return self.phase is Phase.PROBING

    def ready_at(self, now: float) -> float:
        due = max(self._bucket.ready, self._hold)
        if self._stated is not None:
            due = max(due, self._stated.ready)
        if self.probing and self._probe_sent + LEASE > now:
            return max(due, self._probe_sent + LEASE)
        if not self._has_room:
            # As soon as a response makes room. Those that hang, or were never reported, block the others once.
            return max(due, self._bucket.ready - 1 / self._bucket.rate + HANGS + 2 * self.latencies.average)
        return due

    def take(self, now: float) -> None:
        if not self._has_room:
            self._stragglers = self._sent - self._ended
        self._bucket.take(now)
        if self._stated is not None:
            self._stated.take(now)
        self._sent += 1
        self._sent_at = now
        if self.probing:
            self._probe_sent = now

    def put_back(self, now: float, sent_at: float) -> None:
        self._bucket.put_back()
        self._bucket.ready = max(self._bucket.ready, self._hold)
        self._sent -= 1
        if self._probe_sent == sent_at:
            self._probe_sent = -inf

    def end(self, now: float, sent_at: float) -> None:
        self._ended += 1
        if sent_at == self._probe_sent:
            self._probe_sent = -inf

    def tokens(self, now: float) -> float:
        return self._bucket.tokens(now)

    def circuit_moved(self, now: float, state: State) -> None:
        before, self._circuit = self._circuit, state
        self._cut_at = now
        if state is State.OPEN and (before is State.HALF_OPEN or self.probing):
            # The host is down, and the circuit probes from now on: what it last said is no word on its limit.
            self._hold = now
            self._meeting = False
            self._consent.forget_outage()
            if self.probing:
                self._record.still_closed(now)
            else:
                self._start_over(now)
            self._retime(now)
        elif state is State.CLOSED:
            self._open_window(now)

    def heed(self, now: float, quota: Quota) -> None:
        """Take in what a response's headers say is left. Comes before `learn`."""
        self._stated = self._stated or Spread()
        self._stated.heed(now, quota, self._out, self._sent_at)

    def learn(self, now: float, sent_at: float, outcome: Outcome, latency: float) -> bool:
        """Take in a response. Returns whether the circuit counts it as a failure."""
        if outcome.code in NOT_SENT:
            return False
        if self.room == sys.maxsize:
            self.room = FIRST_ROOM
            self._opened, self._closes = sent_at, sent_at + WINDOW
        fresh = sent_at >= self._cut_at
        failure = down = False
        wait = outcome.retry_after
        bare = outcome.status in (503, 529) and wait is None
        faulty = bare and not self.probing and self._limit is not None and self._limit.faulty
        if not faulty and (is_refusal(outcome) or outcome.status in (503, 529)):
            self._refusal = outcome.status, now
            failure = bare and fresh and not self._expects(now)
            if fresh and not (failure and self._circuit is not State.CLOSED):
                down = self._refused(now, wait, bare=bare)
        elif is_failure(outcome):
            failure = True
            down = fresh and self._circuit is State.CLOSED and self._note_failure(now)
        elif self.probing or not fresh or not 200 <= outcome.status < 400:
            # Served, which is all it says: too old, a 404, or a probe.
            self._served += 1
            down = fresh and self.probing and self._probed(now)
        else:
            self._served += 1
            self._fresh += 1
            if 0 < latency < inf:
                self.latencies.add(latency)
            down = now >= self._closes and self._judge_window(now)
        if down:
            self._cut_at = now
        self._retime(now)
        return failure

    def why(self, now: float, wall: float) -> str:
        if self.phase is Phase.PROBING:
            status, at = self._refusal
            said = f"it said {status}" if status else "it did not respond"
            return f"{said} {max(0.0, now - at):.1f} s ago; one request at a time shows when it is open again"
        if self.rate < self._learned:
            return "its rate headers say how much is left"
        if self._learned >= self._options.max_rps:
            return f"limited by --rps {self._options.max_rps:g} (max_rps)"
        if not self._consent.granted or self._consent.usual > SOME:
            return f"{self._consent.usual:.0%} of its responses are failures, and those are no consent to more"
        if self.ceiling is None:
            return "it grows until the host objects" if self._used else "less is asked for than it allows"
        limit = f"{self.ceiling:.3g} a second, known from {self._limit.evidence.value if self._limit else EARLIER}"
        return f"{self.phase.value} {limit}"

    def save(self) -> dict[str, Any]:
        return {"ceiling": self.ceiling} if self.ceiling else {}

    def restore(self, saved: Mapping[str, Any], now: float) -> None:
        ceiling = saved.get("ceiling")
        if isinstance(ceiling, float | int) and 0 < ceiling < inf:
            self.ceiling = self._clamp(ceiling)
            self._learned = min(self._learned, self.ceiling)
            self._meeting = False
            self._retime(now)

    # Bookkeeping.

    @property
    def _depth(self) -> float:
        return depth_of(self._learned, self._options.token_bucket_capacity)

    @property
    def _has_room(self) -> bool:
        return self._out < self.room

    @property
    def _out(self) -> int:
        out = self._sent - self._ended
        return out - min(self._stragglers, out)

    def _open_window(self, now: float) -> None:
        """Count anew; what was seen before belongs to another rate."""
        self._opened = now
        self._closes = now + WINDOW
        self._sent_before = self._sent
        self._served_before = self._served
        self._failed = self._fresh = 0

    def _retime(self, now: float) -> None:
        """Bring the bucket to the learned rate."""
        bucket = self._bucket
        if bucket.rate != self._learned:
            bucket.ready += 1 / self._learned - 1 / bucket.rate
            bucket.rate = self._learned
            bucket.depth = self._depth
        bucket.ready = max(bucket.ready, self._hold)
        self.rate = self._learned
        if self._stated is not None and now < self._stated.until:
            self.rate = min(self.rate, self._stated.rate)

    def _clamp(self, rate: float) -> float:
        return min(self._options.max_rps, max(self._options.min_rps, rate))

    # Refusals and failures. Each says whether the rate went down.

    def _probed(self, now: float) -> bool:
        """A probe succeeded: settle on what the refusal proved."""
        ceiling = self._record.resume(self._learned, self._hold, now, self._served)
        self._hold = now  # nothing was saved up meanwhile
        if self._record.faulty:
            # What was learned so far was learned from failures that have nothing to do with our rate.
            self.ceiling, self._meeting = None, True
            self._consent.expect(self._record.share)
            self._learned = self._good = max(self._learned, self._passed)
            self.phase = Phase.GROWING
            self._open_window(now)
        elif ceiling is None:
            self._meeting |= not self._record.bare  # too little to conclude anything from
            self._start_over(now)
        else:
            # Below the slowest that was asked for too: the host has proved it.
            self.ceiling = min(self._options.max_rps, ceiling)
            self._learned = self._good = self.ceiling * MARGIN
            self._before, self._since = 0.0, now
            self.phase = Phase.HOLDING
            self._open_window(now)
        return True

    def _refused(self, now: float, retry_after: float | None, *, bare: bool) -> bool:
        """Stop, and let one probe at a time find out when the host opens again. `bare`: perhaps it is down."""
        record = self._record
        if self.probing:
            record.probes += 1
        elif self._is_crowded(now):
            # The host's queue is full, and ours are in it.
            self._relieve(self._throughput or self._served / (now - self._began), now)
            self._make_room(self._throughput)
            self._hold = max(self._hold, now + (retry_after or 0.0))
            self._open_window(now)
            return True
        elif self._is_noise(now):
            return False
        else:
            admitted = self._served + self._sent - self._ended  # what is in flight left before the host said no
            new = min(1.0, now - self._since)
            record.refused(self.phase, now, admitted, new * self._learned + (1 - new) * self._before)
            self.phase = Phase.PROBING
        record.directed |= retry_after is not None
        record.bare |= bare
        self._hold = max(record.next_probe(now), now + (retry_after or 0.0))
        return True

    def _is_crowded(self, now: float) -> bool:
        """Whether far more is in flight than the host can be at work on."""
        throughput = self._throughput or self._served / max(now - self._began, WINDOW)
        return self._slow.is_slow and self._sent - self._ended > CROWD * throughput * self._slow.first + 2

    def _expects(self, now: float) -> bool:
        """Whether a 503 at this point is a quota, as it came after as many requests, or as long, before."""
        if self._limit is None:
            return False
        inflight, testing = self._sent - self._ended, self.phase is Phase.TESTING
        return self._limit.expects(now, self._served, inflight, probing=self.probing, testing=testing)

    def _note_failure(self, now: float) -> bool:
        """A 5xx or no response at all: trouble only if a good share of the window's responses are such."""
        if self.probing:
            return self._refused(now, None, bare=True)
        self._failed += 1
        responses = self._failed + self._fresh
        if now < self._closes or (responses < SAMPLES and now - self._opened < LONGEST_WINDOW):
            return False
        consent = self._consent
        if not consent.is_refused(self._failed, responses):
            return False
        if self._limit is not None and self._limit.faulty and self._failed > max(TOO_MANY, self._fresh):
            self._limit.resists()
        before = self._learned
        self._meeting = False
        self.phase = Phase.GROWING  # back to the ceiling, if there is one, as soon as a window is good
        if consent.blame(self._failed / responses):
            self._restore = self._learned
            self._learned = self._clamp(self._learned * self._options.aimd_decrease)
        else:
            self._learned = max(self._learned, self._restore)
        self._open_window(now)
        return self._learned < before

    def _is_noise(self, now: float) -> bool:
        """Whether the refusal says nothing about our rate."""
        self._noise = self._noise or Noise()
        known = self._noise.share > 0
        allowed = self.phase is Phase.HOLDING and not self._record.window.is_long
        noise = self._noise.explains(self._served, allowed=allowed)
        if noise and not known:
            # What was learned so far was learned from noise.
            self._believed = self._learned
            self.ceiling, self.phase = None, Phase.GROWING
            self._open_window(now)
        elif known and not noise and self._learned < 1.5 * self._believed:
            self._noise.forget()
        self._record.noise, self._record.suspicious = self._noise.share, self._noise.suspected
        return noise

    # Windows of responses.

    def _judge_window(self, now: float) -> bool:
        """Judge the window, if it holds enough."""
        span, before = now - self._opened, self._learned
        enough = FEW if self._leaping or self.phase is Phase.TESTING else SAMPLES
        longest = max(LONGEST_WINDOW, LEAST / self._learned)
        if self._fresh < enough and span < longest:
            # Look again when there should be enough, and not at each response until then.
            self._closes = self._opened + min(longest, span * enough / self._fresh)
            return False
        if span > 2 * longest:
            return self._wake(span, now)
        consents = self._consent.judge(self._failed, self._failed + self._fresh)
        used = self._sent - self._sent_before >= USED * self._learned * span
        self._used = used
        throughput = (self._served - self._served_before) / span
        if self._limit is not None:
            self._limit.window.mark(now, self._served)
            self._limit.saturated &= used
        match self._verdict(now):
            case LatencyVerdict.QUEUES:
                self._relieve(throughput, now)
            case LatencyVerdict.BLAMELESS:
                self._learned = self.ceiling = self._restore
                self.phase = Phase.HOLDING
                self._record.wait(now, SOON)
            case LatencyVerdict.FINE if used:
                if self.phase is not Phase.GROWING or self._learned > self._good:  # else it is on its way back
                    self._good = self._learned
                if consents:
                    self._advance(now)
        self._make_room(throughput)
        self._open_window(now)
        return self._learned < before

    def _make_room(self, throughput: float) -> None:
        """Bound what is in flight at a host that queues: more would wait there and gain nothing."""
        self._throughput = max(throughput, 0.9 * self._throughput)
        queues = self._limit is not None and self._limit.queues
        # Once it was seen to queue, the rate is what it gets done; before, it may be far more.
        fits = (max(self._learned, self._throughput) if queues else self._throughput) * (self._slow.base or 0.0)
        spare = 0 if self._slow.is_slow else FIRST_ROOM  # quick hosts have slow responses now and then
        self.room = max(2, ceil(ROOM * fits)) if queues else max(FIRST_ROOM, ceil(AMPLE * fits)) + spare
        if queues:
            # Where one or two fit, chance alone doubles the latency of some, and the room bounds it already.
            self._slow.share = max(SLOW_SHARE, min(1.0, 1.5 / max(fits, 0.1) - 0.5))

    def _verdict(self, now: float) -> LatencyVerdict:
        """What the window's latencies say; two or three say nothing."""
        if self._fresh < LEAST - 1:
            return LatencyVerdict.FINE
        verdict = self._slow.judge(self.latencies.newest(self._fresh), now)
        # Failures before it are no reason to judge by the one or two responses that there were.
        known = self._limit is not None and self._limit.evidence is not Evidence.NOTHING
        if not known and self._served <= RING and verdict is not LatencyVerdict.SUSPECT:
            self._slow.meet(self.latencies.newest(RING), now)
        return verdict

    def _wake(self, silence: float, now: float) -> bool:
        """Nobody sent for a while: the window says nothing. After a long silence start gently and grow back."""
        before = self._learned
        if silence > IDLE:
            self._start_over(now)
        if self._limit is not None:
            self._limit.saturated = False
        self._open_window(now)
        return self._learned < before

    def _start_over(self, now: float) -> None:
        """From a part of the last good rate, or where hosts start, back up to it and to the ceiling."""
        gentle = max(self._options.initial_rps, self._good / COMEBACK)
        self._learned = min(max(self._learned, self._good), gentle)
        self.phase = Phase.GROWING
        self._open_window(now)

    def _relieve(self, throughput: float, now: float) -> None:
        """The host queues our requests: land below what it gets done, and wait until the queue is gone."""
        if self._slow.helping:
            self._restore = self._learned
        record = self._record
        record.queued(self._learned, now, testing=self.phase is Phase.TESTING)
        landing = min(throughput, self._learned) * (0.95 if self._slow.cuts == 1 else 0.85)
        landing = max(landing, min(self._learned, self._options.min_rps))
        self._learned = self.ceiling = record.passed = self._good = landing
        self.phase = Phase.HOLDING
        queued = (self._sent - self._ended) / throughput - (self._slow.base or 0.0)
        self._hold = now + min(10.0, max(0.0, queued))

    def _advance(self, now: float) -> None:
        """The window was good and the rate was used: ask for more, if it is time."""
        before, top = self._learned, self._options.max_rps
        if self.phase is Phase.GROWING:
            self._grow(now)
        elif self.phase is Phase.HOLDING and now >= self._record.next_test:
            self.phase = Phase.TESTING
            self._learned = min(top, self._record.start(self.ceiling or self._learned, now))
        elif self.phase is Phase.TESTING and now >= self._record.test_ends:
            self.ceiling = self._learned
            self._learned = min(top, self._record.passes(self._learned, now))
            if self._record.risen:
                self.ceiling, self.phase = None, Phase.GROWING
        if self._learned != before:
            self._before, self._since = before, now

    def _grow(self, now: float) -> None:
        self._passed = self._learned
        if self._limit is not None:
            self._limit.passed = self._learned
        known = (self.ceiling or inf) * MARGIN
        growth = LEAP if self._leaping or self._learned < self._good else GROWTH if self._learned < BRISK else WARY
        self._learned = min(self._options.max_rps, self._learned * growth, known)
        if self._learned >= known:
            self.phase = Phase.HOLDING
            self._record.wait(now, SOON)

    @property
    def _leaping(self) -> bool:
        return self._meeting and self._learned < min(SAMPLES / WINDOW, self._options.max_rps)

    @property
    def _slow(self) -> Slowness:
        """Made with the first window that is judged, or the first refusal."""
        self._slowness = self._slowness or Slowness()
        return self._slowness

    @property
    def _record(self) -> Limit:
        """Made at the first refusal or queue."""
        if self._limit is None:
            self._meeting = False
            self._limit = Limit(self._began, self._passed)
        return self._limit
