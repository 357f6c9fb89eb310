"""An outage is no quota: a host that was good is probed at an even pace, and random failures are no outage."""

import heapq
from enum import Enum
from itertools import count, pairwise
from math import inf
from random import Random
from statistics import fmean

import pytest
from driven import HOST, Driven
from hypothesis import given, settings
from hypothesis import strategies as st

from sanderling.limit import BreakerRules, Feedback, LimiterRules, PaceRules, Permit
from sanderling.task import Blame

HOUR = 3600.0
EVERY = 30.0  # seconds between the starts of two probes, at most, in the first hour
PROBE_WAIT = 10.0  # seconds that a client waits for the answer to a probe
TIMEOUT = 40.0  # and to any other request
WORKERS = 8


class Kind(Enum):
    """How a host is away."""

    BUSY = "503"
    ERROR = "500"
    RESET = "reset"
    REFUSED = "connection refused"
    SILENT = "accept and hang"


class Ways:
    """Workers that ask one host as soon as they may, and what they saw."""

    def __init__(self, rules: LimiterRules | None = None, *, items: int | None = None, seed: int = 1) -> None:
        self.driven = Driven(rules or LimiterRules(pace=PaceRules(initial_rps=5, max_rps=5)), seed=seed)
        self.clock = self.driven.clock
        self.items = items  # different ones there are; None where nobody says of which item a failure is
        self.starts: list[float] = []
        self.good: list[float] = []
        self.closed = 0.0  # seconds for which the circuit was not closed
        self._asked = count()

    def _lesson(self, permit: Permit, kind: Kind | None) -> tuple[float, Feedback]:
        number = next(self._asked)
        failures = int(self.items is not None and number >= self.items and kind is not None)
        blame = None if self.items is None else Blame(number % self.items, failures)
        if kind is None:
            return 0.1, Feedback(200, 0.1, blame=blame)
        status = {Kind.BUSY: 503, Kind.ERROR: 500}.get(kind, 0)
        took = (PROBE_WAIT if permit.probe else TIMEOUT) if kind is Kind.SILENT else 0.1
        return took, Feedback(status, took, None if status else kind.value, blame=blame, unsent=kind is Kind.REFUSED)

    def ask(self, until: float, kind: Kind | None = None, share: float = 1.0, rng: Random | None = None) -> None:
        """Ask until then; a `share` of requests goes wrong."""
        out: list[tuple[float, int, Permit, Feedback]] = []
        order, limiter, rng = count(), self.driven.limiter, rng or Random(1)
        while (now := self.clock.now()) < until or out:
            ready = limiter.ready_at(HOST) if len(out) < WORKERS and now < until else inf
            if ready <= now:
                permit = self.driven.take()
                took, lesson = self._lesson(permit, kind if rng.random() < share else None)
                self.starts.append(now)
                heapq.heappush(out, (now + took, next(order), permit, lesson))
                continue
            arrives = out[0][0] if out else inf
            self.driven.wait_until(min(ready, arrives, max(until, now) if not out else inf))
            self.closed += (self.clock.now() - now) * limiter.is_down(HOST)
            if self.clock.now() >= arrives:
                _, _, permit, lesson = heapq.heappop(out)
                limiter.feedback(permit, lesson)
                if lesson.status == 200:
                    self.good.append(self.clock.now())

    def gaps(self, since: float, until: float) -> list[float]:
        """Between the starts of requests."""
        starts = [at for at in self.starts if at >= since]
        return [other - one for one, other in pairwise(starts) if one < until]


@settings(max_examples=15)
@given(
    kind=st.sampled_from(Kind),
    lasts=st.floats(30, 2 * HOUR),
    items=st.sampled_from([None, 1, 3, 1000]),
    seed=st.integers(0, 2**32),
)
def test_a_host_that_was_good_is_probed_every_30_seconds_in_the_first_hour(
    kind: Kind, lasts: float, items: int | None, seed: int
) -> None:
    if items is not None and items < 5 and kind not in (Kind.BUSY, Kind.REFUSED):
        items = 1000  # few items that fail close nobody, and are asked again and again at the full pace
    world = Ways(items=items, seed=seed)
    world.ask(20.0)

    world.ask(20.0 + lasts, kind)
    while world.good[-1] < 20.0 + lasts:
        world.ask(world.clock.now() + 5.0)

    # A first row of requests may hang for as long as any request may.
    since = 20.0 + (TIMEOUT + 1 if kind is Kind.SILENT else 0)
    assert max(world.gaps(since, 20.0 + min(lasts, HOUR)), default=0) <= EVERY
    back = min(at for at in world.good if at >= 20.0 + lasts)
    longest = EVERY if lasts <= HOUR else BreakerRules().longest * 1.3 + PROBE_WAIT
    assert back <= max(20.0 + lasts, since) + longest + PROBE_WAIT


def test_after_an_hour_pauses_grow_to_five_minutes() -> None:
    world = Ways()
    world.ask(20.0)

    world.ask(3 * HOUR, Kind.ERROR)

    late = [gap for gap in world.gaps(HOUR, 3 * HOUR) if gap > EVERY]
    bases = [30, 60, 120, 240, *[300] * (len(late) - 4)]
    assert len(late) > 10
    assert all(base <= gap <= 1.3 * base + 1 for base, gap in zip(bases, late, strict=True))


def test_a_host_that_never_answered_is_asked_less_and_less() -> None:
    world = Ways()

    world.ask(HOUR, Kind.ERROR)

    assert world.gaps(1200, HOUR)
    assert min(world.gaps(1200, HOUR)) >= 300


@pytest.mark.parametrize("off", [1.0, 600.0, 2 * HOUR])
@pytest.mark.parametrize("known", [True, False], ids=["was good", "never answered"])
def test_a_restart_knows_that_the_host_was_good_and_when_its_outage_began(off: float, *, known: bool) -> None:
    before = Ways()
    before.ask(20.0 if known else 0.0)
    before.ask(120.0, Kind.ERROR)

    after = Ways(seed=2)
    after.clock.set_wall(before.clock.wall() + off)
    after.driven.limiter.restore(before.driven.limiter.save())
    after.ask(HOUR / 2, Kind.ERROR)

    steady = known and 100.0 + off < HOUR
    assert (max(after.gaps(0.0, HOUR / 2)) <= EVERY) == steady


def test_a_host_with_a_ceiling_of_an_earlier_life_was_good() -> None:
    before = Ways()
    before.ask(20.0)
    permit = before.driven.next()
    before.driven.report(permit, 429)
    before.ask(40.0)
    assert before.driven.view().ceiling

    after = Ways(seed=2)
    after.driven.limiter.restore(before.driven.limiter.save())
    after.ask(HOUR / 2, Kind.ERROR)

    assert max(after.gaps(0.0, HOUR / 2)) <= EVERY


def test_a_caller_may_vouch_for_a_host_of_an_earlier_run() -> None:
    world = Ways()
    world.driven.limiter.vouch(HOST)

    world.ask(HOUR / 2, Kind.REFUSED)

    assert max(world.gaps(0.0, HOUR / 2)) <= EVERY


def test_no_probe_leaves_before_a_retry_after_has_passed() -> None:
    world = Ways()
    world.ask(20.0)
    world.ask(100.0, Kind.ERROR)
    probe = world.driven.next()
    now = world.clock.now()

    world.driven.report(probe, 503, retry_after=500.0)
    world.ask(now + 1000.0, Kind.ERROR)

    assert min(at for at in world.starts if at > now) >= now + 500.0


# Random failures.


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_random_failures_close_a_host_for_three_percent_of_the_time_at_most(share: float) -> None:
    def closed(seed: int) -> float:
        rules = LimiterRules(pace=PaceRules(initial_rps=20, min_rps=20, max_rps=20))
        world = Ways(rules, seed=seed)
        world.ask(600.0, Kind.ERROR, share, Random(seed))
        return world.closed / 600.0

    assert fmean(closed(seed) for seed in range(4)) <= 0.03


@settings(max_examples=10)
@given(st.integers(0, 2**32))
def test_an_outage_closes_a_clean_host_after_five_and_a_shaky_one_after_fifteen(seed: int) -> None:
    rng = Random(seed)

    def failures_until_closed(share: float) -> int:
        driven = Driven(LimiterRules(pace=PaceRules(initial_rps=100, min_rps=100, max_rps=100)))
        for _ in range(1000):
            driven.ask(500 if rng.random() < share else 200)
        driven.ask()
        failures = 0
        while not driven.limiter.is_down(HOST):
            driven.ask(500)
            failures += 1
        return failures

    assert 5 <= failures_until_closed(0.01) <= 6
    assert 9 <= failures_until_closed(0.3) <= 16


@settings(max_examples=10)
@given(st.integers(5, 100))
def test_an_outage_does_not_excuse_itself(outages: int) -> None:
    driven = Driven()
    for _ in range(30):
        driven.ask()

    for _ in range(outages):
        driven.trip()
        driven.ask(500)
        driven.ask(500)
        for _ in range(5):
            driven.ask()

    driven.trip()


def test_a_false_alarm_is_remembered() -> None:
    """An opening that its first probe undoes was none: such rows happen here."""
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=100, min_rps=100, max_rps=100)))
    driven.ask()

    alarms = 0
    for _ in range(20):
        for _ in range(5):
            driven.ask(500)
        alarms += driven.limiter.is_down(HOST)
        driven.ask()

    assert 1 <= alarms <= 4
