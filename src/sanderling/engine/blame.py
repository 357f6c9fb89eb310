"""Whose fault is it? What an outcome says of the item and of its host, and what follows for each.

A failure is first the item's. That its host is at fault is found out by different items that fail in a row, which the
limiter's breaker counts, and then by a probe: of known good work, or of work that has not failed. A good probe leaves
the blame where it was; a probe that fails forgives all that failed since the last good answer.
"""

from collections.abc import Sequence
from enum import Enum
from math import inf
from typing import Generic, TypeVar

from sanderling.engine.hosts import HostState
from sanderling.engine.ports import Permits, Settled, Source, Work
from sanderling.engine.rules import EngineRules
from sanderling.fetch.classify import retry_soon
from sanderling.outcome import Code, Outcome

H = TypeVar("H", bound=HostState)
W = TypeVar("W", bound=Work)
R = TypeVar("R")

BIG = 2**20  # bytes of an answer; larger ones are no probe
LEFT_ALONE = Outcome(Code.CANCELLED, detail="left alone, as sanderling control says")
ASKED_FOR_QUIET = Outcome(Code.RATE_LIMITED, detail="asked to be left alone, in an earlier run")


class Standing(Enum):
    """Four words for what came of a request."""

    ANSWERED = "answered"
    REFUSED = "refused"
    FAILED = "failed"
    UNASKED = "unasked"


def standing_of(outcome: Outcome) -> Standing:
    """The word for an outcome."""
    if outcome.code.ok:
        return Standing.ANSWERED
    if outcome.code is Code.RATE_LIMITED:
        return Standing.REFUSED
    if outcome.code in (Code.DEFERRED, Code.CANCELLED):
        return Standing.UNASKED
    return Standing.FAILED if retry_soon(outcome) else Standing.ANSWERED


class Judge(Generic[H, W, R]):
    """Tells the source what becomes of each item, and keeps what is known of its host."""

    def __init__(self, source: Source[H, W, R], limiter: Permits, rules: EngineRules) -> None:
        self._source = source
        self._limiter = limiter
        self._rules = rules
        self._accusing: dict[str, H] = {}  # hosts with items of which a probe must tell whether they are to blame

    def settle(self, host: H, work: W, settled: Settled[R], now: float, *, probe: bool, dropped: bool) -> None:
        """An item was asked for; as a `probe`, or only to know how the host is (`dropped`)."""
        if self._rules.contract:
            self._settle_on_contract(host, work, settled, now)
            return
        match Standing.ANSWERED if settled.flawed else standing_of(settled.outcome):
            case Standing.ANSWERED:
                self._answered(host, work, settled, now, dropped=dropped)
            case Standing.FAILED:
                self._failed(host, work, settled, now, probe=probe, dropped=dropped)
            case Standing.REFUSED:
                host.note_failure(settled.outcome, now)
                self._vouch(host)
                host.doubted = now if dropped else host.doubted  # it may be refused for ever itself
                self._postpone(host, work, settled, now, wait=self._refusal(host, work, now), dropped=dropped)
            case Standing.UNASKED:
                self._postpone(host, work, settled, now, wait=settled.outcome.retry_after or 0.0, dropped=dropped)
        if host.aside and not host.left_alone and host.failed_at == now:
            self._source.leave(host, host.trouble or host.stuck_by or ASKED_FOR_QUIET, self.probe_due(host))

    def _settle_on_contract(self, host: H, work: W, settled: Settled[R], now: float) -> None:
        """The source says when the item is next due, whatever came of it; of the host is kept how it answers."""
        outcome, standing = settled.outcome, standing_of(settled.outcome)
        self._postpone(host, work, settled, now, wait=outcome.retry_after or 0.0, dropped=False)
        if standing is Standing.ANSWERED and (outcome.ok or outcome.status):
            host.answer(now)
        elif standing is not Standing.UNASKED:
            host.note_failure(outcome, now)

    def _refusal(self, host: H, work: W, now: float) -> float:
        """Seconds until an item that was refused is asked again: soon at first, and behind others from then on.

        Some items are refused for ever, while their host answers all others. One that answers nothing is set aside.
        """
        times, since = host.refuse(work.key, now)
        if now - since > self._rules.patience and (host.answered or -inf) > since:
            return inf
        return 0.0 if times == 1 else self._rules.pause(times - 1)

    def _postpone(self, host: H, work: W, settled: Settled[R], now: float, *, wait: float, dropped: bool) -> None:
        """It has not failed: ask again after so long, unless the source knows better."""
        if settled.decided and not dropped:
            self._source.settled(host, work, settled, now)
        elif not dropped:
            self._source.later(host, work, settled.outcome, now + wait)

    def _answered(self, host: H, work: W, settled: Settled[R], now: float, *, dropped: bool) -> None:
        if not dropped and not settled.flawed:
            if host.failing and (failures := host.failures(work.key)):
                self._limiter.excuse(host.name, failures)
            self._source.settled(host, work, settled, now)
            if host.failing or host.refused:
                host.forget(work.key)
        if settled.outcome.code.ok or settled.outcome.status:  # a 404 is an answer; our own guard's refusal is none
            host.answer(now, known=dropped)
            if host.aside and not host.left_alone:
                self._welcome(host)
            if not settled.of_host:
                self._proved_well(host, work, settled)
        if settled.flawed and not dropped:
            self._blame(host, work, settled.outcome, now)

    def _proved_well(self, host: H, work: W, settled: Settled[R]) -> None:
        """The host answers for items: who was accused is to blame."""
        host.proven = True
        if settled.size <= BIG and settled.outcome.code.ok:
            host.good, host.doubted = work, None
        if host.accused is not None:
            for each, outcome in self._take_accused(host):
                self._end(host, each, outcome)

    def _failed(self, host: H, work: W, settled: Settled[R], now: float, *, probe: bool, dropped: bool) -> None:
        outcome = settled.outcome
        host.note_failure(outcome, now)
        if probe or dropped:
            self._count_bad_probe(host, now)
            self._postpone(host, work, settled, now, wait=self._rules.pause(1), dropped=dropped)
        elif settled.decided or outcome.unsent:
            self._postpone(host, work, settled, now, wait=self._rules.pause(1), dropped=dropped)
        else:
            self._blame(host, work, outcome, now)
        self._vouch(host)
        if host.good is not None and host.doubted is None and self._limiter.is_down(host.name):
            self._limiter.probe_now(host.name)  # with known good work a false alarm costs one request and no time

    def _vouch(self, host: H) -> None:
        """Let the limiter know that the host has answered before, be it in an earlier run."""
        if host.answered is not None and self._limiter.is_down(host.name):
            self._limiter.vouch(host.name)

    def _count_bad_probe(self, host: H, now: float) -> None:
        """One is enough where failures are rare: then what failed since the last good answer is the host's fault."""
        host.bad_probes += 1
        if 4 * host.bad_probes >= self._limiter.most_failures(host.name):
            host.doubted = now
            host.forgive()
            self.release(host, now)

    def release(self, host: H, now: float) -> None:
        """Let those who were accused be asked for again."""
        for each, outcome in self._take_accused(host):
            self._source.later(host, each, outcome, now + self._rules.pause(1))

    def release_all(self, now: float) -> None:
        """We end: who was accused has not failed."""
        for host in list(self._accusing.values()):
            self.release(host, now)

    def _take_accused(self, host: H) -> Sequence[tuple[W, Outcome]]:
        self._accusing.pop(host.name, None)
        accused, host.accused = host.accused or (), None
        return accused

    def _blame(self, host: H, work: W, outcome: Outcome, now: float) -> None:
        """Count a failure of the item; it ends when that many in a row are improbable, and its host is well."""
        failures, since = host.fail(work.key, now)
        if failures < self._limiter.most_failures(host.name):
            self._source.failed(host, work, outcome, failures, now + self._rules.pause(failures))
        elif self._limiter.is_down(host.name) or (host.good is not None and (host.answered or 0.0) < since):
            host.accused = [*(host.accused or ()), (work, outcome)]
            self._accusing[host.name] = host
        else:
            self._end(host, work, outcome)

    def _end(self, host: H, work: W, outcome: Outcome) -> None:
        failures = host.failures(work.key)
        host.forget(work.key)
        host.stuck_since = host.silent_since  # that it is the item's fault is news as well
        self._source.failed(host, work, outcome, failures, None)

    def is_hopeless(self, host: H, now: float) -> bool:
        """Whether it should be set aside: see `HostState.is_hopeless`."""
        rules = self._rules
        if rules.contract:
            return False
        wait = self._limiter.ready_at(host.name) - now
        return host.is_hopeless(wait, rules.patience, rules.first_patience, rules.longest_pace)

    def is_overdue(self, host: H, now: float) -> bool:
        """The same of one that has failed for too long already, whatever it wants us to wait.

        One that answers what it has answered before, and nothing else, is not waited for either.
        """
        rules = self._rules
        if rules.contract or host.stuck_since is None:
            return False
        if host.silent_since is None:
            return self.is_hopeless(host, now)
        return host.is_hopeless(0.0, rules.patience, rules.first_patience, rules.longest_pace)

    def probe_due(self, host: H) -> float:
        """When the host may be probed: at the limiter's pace where it is closed, and at once to clear the accused."""
        ready = self._limiter.ready_at(host.name)
        if host.accused is not None or self._limiter.is_down(host.name):
            return ready
        return max(ready, host.rests_until)

    def may_vouch(self, host: H, now: float) -> bool:
        """Whether what the host has answered before can be asked for first: all that is left may be bad items."""
        if host.good is None or host.doubted == host.failed_at or host.was_asked_in_vain(self._rules.patience):
            return False
        return self._limiter.ready_at(host.name) - now <= self._rules.patience

    def set_aside(self, host: H, now: float, why: Outcome | None = None) -> None:
        """Leave what waits for the host on disk, with its reason."""
        host.forgive()
        self._source.leave(host, why or host.trouble or host.stuck_by or ASKED_FOR_QUIET, self.probe_due(host))
        host.aside = True
        self.release(host, now)

    def leave_alone(self, host: H, now: float) -> None:
        """Somebody wants it left alone: set it aside, so that no run waits for it, where hosts may be."""
        if self._rules.gives_up and not host.aside:
            host.left_alone = True
            self.set_aside(host, now, LEFT_ALONE)

    def let_go(self, host: H) -> None:
        """Nobody wants it left alone any more."""
        if host.left_alone:
            host.left_alone = False
            self._welcome(host)

    def _welcome(self, host: H) -> None:
        host.aside = False
        host.stuck_since = None  # all our patience is for it again
        self._source.welcome(host)
