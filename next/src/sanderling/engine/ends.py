"""What a host's last requests ended with: all that blame knows about it."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum
from math import inf

from sanderling.engine.rules import BlameRules
from sanderling.outcome import Code, Outcome

# As if so many requests had shown the usual share of failures, and over so many it is averaged.
_KNOWN_BEFORE, _AVERAGED = 20, 128


class Standing(Enum):
    """What a response says about the item."""

    ANSWERED = "answered"
    REFUSED = "refused"
    FAILED = "failed"
    UNSENT = "unsent"


def standing_of(outcome: Outcome) -> Standing:
    """What a response says about the item."""
    if outcome.code.ok:
        return Standing.ANSWERED
    if outcome.code is Code.RATE_LIMITED:
        return Standing.REFUSED
    if outcome.code in (Code.CANCELLED, Code.DEFERRED):
        return Standing.UNSENT
    # For a record 401 and 403 are worth a retry within hours; for a request within seconds they are answers.
    if outcome.worth_retrying and outcome.code not in (Code.AUTH_FAILED, Code.ACCESS_DENIED):
        return Standing.FAILED
    return Standing.ANSWERED


@dataclass(frozen=True, slots=True)
class Ended:
    """One request that has ended."""

    key: Hashable  # of its item
    failures: int  # of its item in a row, before this
    outcome: Outcome
    at: float
    probe: bool = False  # it was sent to find out how the host is
    of_host: bool = False  # it was for one of the host's own documents
    standing: Standing = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "standing", standing_of(self.outcome))

    @property
    def shows_life(self) -> bool:
        """Whether the host responded well, be it with a body that was cut; our own guard's refusal shows nothing."""
        if self.standing is Standing.FAILED:
            return 200 <= self.outcome.status < 500
        return self.is_good

    @property
    def is_good(self) -> bool:
        """Whether the host responded, and to the end."""
        return self.standing is Standing.ANSWERED and (self.outcome.ok or self.outcome.status > 0)

    @property
    def blames_host(self) -> bool:
        """Whether the item cannot be at fault: it was not sent, or it is the host's own document, or a probe."""
        return (self.probe and not self.shows_life) or self.of_host or not self.outcome.sent


@dataclass(slots=True, eq=False)
class HostEnds:
    """What the last requests to one host ended with."""

    answered_at: float | None = None  # its last good response
    silent_since: float | None = None  # its first failure or refusal without a good response since
    failed_at: float = -inf
    trouble: Outcome | None = None  # its last response, if nothing good came since
    row: int = 0  # failures since the last good response
    own_row: int = 0  # of those so many cannot be an item's
    bad_probes: int = 0  # since the last good response
    failing: dict[Hashable, int] = field(default_factory=dict)  # items that failed since then, with failures before
    forgiven: dict[Hashable, int] = field(default_factory=dict)  # failures that count, of items the host failed
    refused: dict[Hashable, tuple[int, float]] = field(default_factory=dict)  # items: times in a row, since when
    usual: float = 0.01  # the share of requests that fails while the host is well
    _seen: int = _KNOWN_BEFORE

    def failures_of(self, key: Hashable, stored: int) -> int:
        """The failures in a row that count, of those stored with an item."""
        return min(stored, self.forgiven.get(key, stored)) if self.forgiven else stored

    def is_down(self, rules: BlameRules) -> bool:
        """Whether the host is at fault for what fails."""
        if not self.row:
            return False
        if self.bad_probes or self.own_row >= rules.own_row:
            return True
        return len(self.failing) >= max(rules.row, rules.limit(self.usual))

    def is_hopeless(self, wait: float, rules: BlameRules) -> bool:
        """Whether to park the host: no good response for our patience, or it wants us to wait longer than that."""
        if wait > rules.patience:
            return True
        if self.silent_since is None:
            return False
        patience = rules.patience if self.answered_at is not None else min(rules.patience, rules.first_patience)
        # Until its last failure, so that a host that was not requested for long gets one more request.
        return self.failed_at - self.silent_since > patience

    def note(self, ended: Ended) -> None:
        """Take in how a request ended."""
        if ended.shows_life:
            self._note_life(ended)
        if ended.standing is Standing.ANSWERED:
            self.forget(ended.key)
        elif ended.standing is not Standing.UNSENT and not ended.shows_life:
            self._note_trouble(ended)

    def forget(self, key: Hashable) -> None:
        """The item has ended."""
        if self.refused:
            self.refused.pop(key, None)
        if self.forgiven:
            self.forgiven.pop(key, None)

    def _note_life(self, ended: Ended) -> None:
        if ended.standing is Standing.ANSWERED:
            for _ in range(ended.failures):
                self._learn(1.0)  # they were by chance: items that always fail say nothing about the rest
            self._learn(0.0)
        self.answered_at = ended.at
        if ended.is_good:
            self.silent_since, self.trouble = None, None
        else:  # nothing but bodies that are cut are waited for as long as nothing at all
            self._note_failure(ended)
            self.forgiven.pop(ended.key, None)  # this one counts
        if self.row:
            self.row = self.own_row = self.bad_probes = 0
            self.failing.clear()

    def _note_trouble(self, ended: Ended) -> None:
        self._note_failure(ended)
        if ended.standing is Standing.REFUSED:
            times, since = self.refused.get(ended.key, (0, ended.at))
            self.refused[ended.key] = times + 1, since
            return
        self.row += 1
        self.own_row += ended.of_host or not ended.outcome.sent
        if ended.probe:
            self.bad_probes += 1
            self.forgiven.update(self.failing)
            self.failing.clear()
        elif not ended.blames_host:
            self.failing.setdefault(ended.key, ended.failures)
            self.forgiven.pop(ended.key, None)

    def _note_failure(self, ended: Ended) -> None:
        self.trouble, self.failed_at = ended.outcome, ended.at
        if self.silent_since is None:
            self.silent_since = ended.at

    def _learn(self, failed: float) -> None:
        self._seen = min(self._seen + 1, _AVERAGED)
        self.usual += (failed - self.usual) / self._seen
