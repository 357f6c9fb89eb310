"""What the engine knows of one host: what is in flight there, how it has answered, and whose fault failures are."""

from collections.abc import Hashable
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

from sanderling.engine.classes import Shares
from sanderling.engine.flights import Flight
from sanderling.limit.feedback import REFUSALS
from sanderling.outcome import Code, Outcome

# Slots of a host that has not answered yet, or does not any more, while such hosts hold many: thirty that hang cannot
# fill an engine.
FIRST_SLOTS = 2
DOUBT = 20.0  # seconds without a good answer from a host that was good, until it is asked how it is
# Seconds from one probe to the next, where the limiter sets no pace; longer for a host that never answered.
PROBE_PAUSE, STRANGER_PAUSE = 20.0, 60.0


class Failing(NamedTuple):
    """An item that fails, or is refused: how many requests in a row, and since when."""

    times: int
    since: float


@dataclass(slots=True, eq=False)
class HostState:
    """One host. A source may keep more of it in a subclass."""

    name: str
    turn: float | None = None  # when its turn is, if it has a place among them
    inflight: int = 0  # requests that hold a slot
    hanging: set[Hashable] | None = None  # items whose requests have let go of theirs
    flights: dict[Hashable, Flight] | None = None  # by item, the last of each
    look_at: float = 0.0  # when those that are slow are looked at again
    shares: Shares | None = None  # made when two classes want the same permit
    answered: float | None = None  # when it last gave a good answer
    silent_since: float | None = None  # when it began to fail without a good answer in between
    stuck_since: float | None = None  # the same, but what it was asked for again only to know how it is does not count
    failed_at: float = 0.0  # the last time
    trouble: Outcome | None = None  # the last thing it said instead of a good answer
    stuck_by: Outcome | None = None  # the same, since `stuck_since`
    aside: bool = False  # without a good answer for too long: only probed
    left_alone: bool = False  # set aside since somebody wants it left alone: not even probed
    probing: bool = False  # whether a request is out that is to tell how it is
    probed_at: float = -inf  # when the last such was sent
    bad_probes: int = 0  # in a row
    proven: bool = False  # whether it has answered for an item, be it that there is none: robots.txt proves little
    good: Any = None  # work that it has answered well: by it the host is probed
    doubted: float | None = None  # when that failed since: it may have gone bad itself
    failing: dict[Hashable, Failing] | None = None  # by item
    refused: dict[Hashable, Failing] | None = None  # items that the host refused, though it may have answered others
    streak: dict[Hashable, int] | None = None  # items that failed since the last good answer; failures before that
    accused: list[tuple[Any, Outcome]] | None = None  # failed too often; whether they are to blame a probe must tell

    def failures(self, key: Hashable) -> int:
        """How many requests for the item have failed in a row."""
        return self.failing[key].times if self.failing and key in self.failing else 0

    def slotless_due(self, now: float) -> float:  # noqa: ARG002 - for those who have some
        """When work is due here that needs no slot; infinity if there is none."""
        return inf

    def hangs_after(self, work: Any) -> float:  # noqa: ANN401, ARG002 - for those who know
        """Seconds after which a request for it hangs, and lets go of its slot; infinity where it keeps that."""
        return inf

    @property
    def is_unproven(self) -> bool:
        """Whether it has not answered for any item yet, or has failed since."""
        return not self.proven or self.silent_since is not None

    @property
    def hangs(self) -> bool:
        """Whether it has never answered, and says nothing."""
        return self.answered is None and self.trouble is not None and self.trouble.code is Code.TIMEOUT

    def is_in_doubt(self, now: float) -> bool:
        """Whether one that was good has only failed for a while: too few items, maybe, for the limiter to close it."""
        if self.good is None or self.silent_since is None or self.trouble is None:
            return False
        return self.trouble.code is not Code.RATE_LIMITED and now >= self.silent_since + DOUBT

    @property
    def rests_until(self) -> float:
        """When it may be probed again, where the limiter sets no pace."""
        if self.answered is None:
            return max(self.probed_at, self.failed_at) + STRANGER_PAUSE
        return self.probed_at + PROBE_PAUSE

    def note_failure(self, outcome: Outcome, now: float) -> None:
        """No good answer. That we hold back ourselves is no news of the host."""
        if outcome.code is not Code.DEFERRED or self.trouble is None:
            self.trouble = self.stuck_by = outcome
        self.failed_at = now
        if self.silent_since is None:
            self.silent_since = now
        if self.stuck_since is None:
            self.stuck_since = now

    def fail(self, key: Hashable, now: float) -> Failing:
        """Count a failure of an item."""
        self.failing = self.failing or {}
        failures, since = self.failing.get(key, (0, now))
        self.failing[key] = found = Failing(failures + 1, since)
        self.streak = self.streak or {}
        self.streak.setdefault(key, failures)
        return found

    def refuse(self, key: Hashable, now: float) -> Failing:
        """Count a refusal of an item."""
        self.refused = self.refused or {}
        times, since = self.refused.get(key, (0, now))
        self.refused[key] = found = Failing(times + 1, since)
        return found

    def recall(self, key: Hashable, failures: int, now: float) -> None:
        """Take up what an earlier run has counted."""
        if failures:
            self.failing = self.failing or {}
            self.failing.setdefault(key, Failing(failures, now))

    def forget(self, key: Hashable) -> None:
        """The item has its end."""
        if self.failing and self.failing.pop(key, None) and not self.failing:
            self.failing = None
        if self.refused and self.refused.pop(key, None) and not self.refused:
            self.refused = None

    def forgive(self) -> None:
        """The host was at fault: what failed since its last good answer has not failed."""
        for key, before in (self.streak or {}).items():
            if self.failing and (failing := self.failing.pop(key, None)) and before:
                self.failing[key] = Failing(before, failing.since)
        self.streak = None

    def answer(self, now: float, *, known: bool = False) -> None:
        """A good answer: it is alive. To what was `known` to be good it says nothing of the rest."""
        self.answered, self.silent_since, self.trouble, self.streak, self.bad_probes = now, None, None, None, 0
        if not known:
            self.stuck_since = self.stuck_by = None

    @property
    def refuses(self) -> bool:
        """Whether it said last that it does not want to be asked: what comes so is not counted, and stays slow."""
        said = self.trouble
        return said is not None and (said.code is Code.RATE_LIMITED or said.status in REFUSALS)

    def was_asked_in_vain(self, patience: float) -> bool:
        """Whether it answers what it has answered before, and has refused all else for as long as we wait."""
        stuck, answered = self.stuck_since, self.answered
        return self.refuses and stuck is not None and answered is not None and answered - stuck > patience

    def is_hopeless(self, wait: float, patience: float, first_patience: float, longest_pace: float) -> bool:
        """Whether it has not answered for as long as we are prepared to wait, or wants us to `wait` for longer.

        What counts is when it last failed, so that a host that was left alone for long is asked once more before.
        """
        if self.stuck_since is None:  # it may have asked for quiet in an earlier run
            return wait > max(patience, longest_pace)
        if self.silent_since is None:  # it has just answered what it has answered before
            return wait > patience
        limit = min(patience, first_patience) if self.answered is None else patience
        since = self.stuck_since if self.refuses else self.silent_since
        return self.failed_at - since > limit or wait > patience
