"""A host's circuit: nothing is sent to a host that fails, until probes show that it is well again."""

from collections.abc import Hashable
from enum import Enum, StrEnum
from math import inf, log
from random import Random

from sanderling.limit.rules import LimitOptions
from sanderling.limit.windows import ErrorWindow


class State(StrEnum):
    """Where a circuit stands."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


class Event(Enum):
    """What moves it."""

    TRIPPED = "the error rate or the failures in a row reached their threshold"
    RESTED = "its time was over"
    PROBES_OK = "enough probes succeeded"
    PROBE_FAILED = "a probe failed"


NEXT = {
    (State.CLOSED, Event.TRIPPED): State.OPEN,
    (State.OPEN, Event.RESTED): State.HALF_OPEN,
    (State.HALF_OPEN, Event.PROBES_OK): State.CLOSED,
    (State.HALF_OPEN, Event.PROBE_FAILED): State.OPEN,
}

# The careful circuit, of all policies but `aimd`, which is seed 003 to the letter:
UNREACHED = 3  # failures in a row before a request was sent: those are the host's, whatever the item
IMPROBABLE = 1e-6  # the likelihood of failures in a healthy host that opens the circuit
BEARABLE, SURE = 0.3, 4.5  # the whole window opens it if its failures are improbable at a share that can be lived with
MOST_IN_A_ROW = 20  # failures that open it, however usual they are
USUAL, USUAL_FROM, USUAL_OVER = 0.01, 25, 128  # the usual share of failures: at first, as if of 25, averaged over 128
KNOWN = 45  # of which 20 are real: before, nobody knows what is usual here
LONGEST_OPEN = 300.0  # seconds; the time doubles with each failed probe
JITTER = 0.15  # up to this share longer, so that hosts behind one cause are not probed in one second
STEADY = 3600.0  # seconds of an outage for which a host that has answered before is probed at an even pace


class Breaker:
    """One host's circuit. Permits carry the `generation` in which they were given; older responses change nothing.

    `careful`: any recent part of the window opens it, more failures in a row are needed where failures are usual, one
    good probe closes it, and the open time grows.
    """

    __slots__ = (
        "_items",
        "_options",
        "_probes",
        "_random",
        "_seen",
        "_since",
        "_successes",
        "_unreached",
        "_usual",
        "answered",
        "careful",
        "failures",
        "generation",
        "openings",
        "state",
        "until",
        "window",
    )

    def __init__(self, options: LimitOptions, random: Random, *, careful: bool) -> None:
        self.state = State.CLOSED
        self.generation = 0
        self.failures = 0  # in a row
        self.until = -inf  # when an open circuit may be probed
        self.openings = 0  # in a row, without closing
        self.answered = False  # whether the host has ever given a good response
        self.careful = careful
        self.window = ErrorWindow(options.stats_window, options.stats_bucket)
        self._options = options
        self._random = random
        self._probes: tuple[float, ...] = ()  # when the lease of each probe in flight ends
        self._successes = 0  # of probes
        self._since = inf  # when the outage began
        self._unreached = 0
        self._items: set[Hashable] | None = None  # that failed, with nothing good since
        self._seen, self._usual = USUAL_FROM, USUAL

    def rest(self, now: float) -> bool:
        """Let an open circuit whose time is over be probed; whether that changed its state."""
        return self.state is State.OPEN and now >= self.until and self._move(Event.RESTED, now)

    def ready_at(self, now: float) -> float:
        """When a request may leave by the circuit alone; -inf if it may leave now.

        Not `now`: the caller's own clock is a little behind it, and would wait for that again and again.
        """
        if self.state is State.CLOSED:
            return -inf
        if self.state is State.OPEN:
            return self.until
        self._probes = tuple([end for end in self._probes if end > now])
        return -inf if len(self._probes) < self._most_probes else min(self._probes)

    def take(self, now: float, lease: float) -> bool:
        """A request leaves; whether it is a probe."""
        if self.state is not State.HALF_OPEN:
            return False
        self._probes = (*self._probes, now + lease)
        return True

    def end_probe(self, sent_at: float, lease: float, generation: int) -> None:
        """A probe has ended, with or without a response: its place is free."""
        end = sent_at + lease
        if generation == self.generation and end in self._probes:
            at = self._probes.index(end)
            self._probes = self._probes[:at] + self._probes[at + 1 :]

    def succeed(self, now: float, generation: int) -> bool:
        """Count a response that was no failure; whether the state changed."""
        if generation != self.generation or self.state is State.OPEN:
            return False
        self.answered = True
        self.window.count(now, failed=False)
        if self.careful and self.openings <= 1:  # after a failed probe it was an outage, and not what is usual
            for _ in self._items or ():
                self._learn_usual(1.0)
            self._learn_usual(0.0)
        self.failures = self._unreached = 0
        self._items = None
        if self.state is State.CLOSED:  # the response may be the one that makes enough samples
            return self._trips_by_window() and self._move(Event.TRIPPED, now)
        self._successes += 1
        return self._successes >= self._most_probes and self._move(Event.PROBES_OK, now)

    def fail(self, now: float, generation: int, item: Hashable | None = None, *, of_host: bool = False) -> bool:
        """Count a failure of `item`, or `of_host` whatever the item; whether the state changed."""
        if generation != self.generation or self.state is State.OPEN:
            return False
        self.window.count(now, failed=True)
        self.failures += 1
        if self.state is State.HALF_OPEN:
            return self._move(Event.PROBE_FAILED, now)
        again = item is not None and self._items is not None and item in self._items
        if self.careful:
            self._unreached += of_host
            self._items = self._items or set()
            self._items.add(object() if item is None else item)
        return self._trips(again=again) and self._move(Event.TRIPPED, now)

    def hurry(self, now: float) -> None:
        """Let the first probe leave at once, at a host that has answered before."""
        if self.careful and self.answered and self.state is State.OPEN and self.openings == 1:
            self.until = now

    def hold(self, until: float) -> None:
        """Stay open at least until then: a Retry-After outlasts the circuit's own time. Seed 003's time is exact."""
        if self.careful and self.state is State.OPEN:
            self.until = max(self.until, until)

    def reopen(self, until: float, openings: int, *, answered: bool) -> None:
        """Take up an earlier life. Open also if its time is over: no probe has shown that the host is well."""
        self.openings = max(1, openings, self.openings)
        self.answered |= answered
        self.until = max(self.until, until)
        self.generation += 1
        self.state = State.OPEN

    @property
    def _most_probes(self) -> int:
        """Probes that may be in flight, and as many must succeed."""
        return 1 if self.careful else self._options.half_open_probes

    def _trips_by_window(self) -> bool:
        options, window = self._options, self.window
        if window.total < options.min_samples_to_trip or window.error_rate < options.error_rate_threshold:
            return False
        # Of ten responses five fail now and then by chance at a host where three in ten usually do.
        return not self.careful or _surprise(window.errors, window.total, BEARABLE) > SURE

    def _trips(self, *, again: bool) -> bool:
        """Whether a failure opens it; `again`: of an item that has failed since the last good response."""
        options = self._options
        if self._trips_by_window():
            return True
        if not self.careful:
            return self.failures >= options.consecutive_fail_threshold
        clean = max(5, options.consecutive_fail_threshold)
        more = max(0, self._improbable_row() - clean)
        row = options.consecutive_fail_threshold + more
        if len(self._items or ()) >= row or self._unreached >= UNREACHED + more:
            return True
        return (
            self._seen >= KNOWN
            and not again
            and any(
                errors >= row
                and errors >= options.error_rate_threshold * total
                and _surprise(errors, total, self._usual) > -log(IMPROBABLE)
                for total, errors in self.window.recent()
            )
        )

    def _improbable_row(self) -> int:
        """How many failures in a row are improbable, by what is known of the usual share; little is known at first."""
        failed, likelihood, row = self._usual * self._seen, 1.0, 0
        while likelihood > IMPROBABLE and row < MOST_IN_A_ROW:
            likelihood *= (failed + row) / (self._seen + row)
            row += 1
        return row

    def _learn_usual(self, failed: float) -> None:
        self._seen = min(self._seen + 1, USUAL_OVER)
        self._usual = min(0.99, max(USUAL, self._usual + (failed - self._usual) / self._seen))

    def _move(self, event: Event, now: float) -> bool:
        self.state = NEXT[self.state, event]
        self.generation += 1
        self._probes, self._successes = (), 0
        if self.state is State.OPEN:
            self.until = now + self._open_time(now)
            self.openings += 1
        elif self.state is State.CLOSED:
            # Else the failures before would open it again at once.
            self.window.clear()
            self.failures = self.openings = 0
            self._since = inf
        return True

    def _open_time(self, now: float) -> float:
        seconds = self._options.open_state_duration
        if not self.careful:
            return seconds
        self._since = min(self._since, now)
        if not (self.answered and now - self._since < STEADY):
            seconds = min(max(seconds, LONGEST_OPEN), seconds * 2.0 ** min(self.openings, 32))
        return seconds * (1 + JITTER * self._random.random())


def _surprise(errors: int, total: int, usual: float) -> float:
    """How improbable so many errors are where that share is usual, as a logarithm, by Chernoff's bound."""
    share = errors / total
    if share <= usual:
        return 0.0
    return total * (share * log(share / usual) + (0.0 if share == 1 else (1 - share) * log((1 - share) / (1 - usual))))
