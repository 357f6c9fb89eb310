"""Permits without a pace: as many as are wanted, until the breaker opens, and again as soon as a probe is answered."""

from random import Random

from sanderling.limit import BreakerRules, Feedback, Unpaced
from sanderling.task import Blame
from sanderling.testing import FakeClock

STORE, OTHER = "store", "other"
RULES = BreakerRules(consecutive=3, unreached=1, open_for=1.0, longest=1.0, jitter=0.0)
OK = Feedback(200)


def failed(item: str, *, unsent: bool = False) -> Feedback:
    return Feedback(error="500", blame=Blame(item), unsent=unsent)


class Asked:
    """A service that is asked, on a clock that is moved by hand."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.permits = Unpaced(RULES, self.clock, Random(1))

    def ask(self, feedback: Feedback, host: str = STORE) -> bool:
        """Whether it might be asked."""
        permit = self.permits.try_acquire(host)
        if permit is not None:
            self.permits.feedback(permit, feedback)
        return permit is not None


def test_there_is_no_pace_and_no_end_of_permits_in_one_instant() -> None:
    asked = Asked()
    held = [asked.permits.try_acquire(STORE) for _ in range(10_000)]
    assert all(held)
    # The clock may have gone on by then: what may be asked now must not seem to come.
    assert asked.permits.ready_at(STORE) == asked.permits.turn_at(STORE) <= asked.clock.now()


def test_one_item_closes_nothing_and_different_ones_do() -> None:
    asked = Asked()
    assert all(asked.ask(failed("bad")) for _ in range(20))
    assert asked.ask(failed("second"))
    assert not asked.permits.is_down(STORE)
    assert asked.ask(failed("third"))
    assert asked.permits.is_down(STORE)
    assert not asked.ask(OK), "nobody but a probe, a second later"
    assert asked.ask(OK, OTHER), "others are none the worse"
    assert asked.permits.ready_at(STORE) == asked.clock.now() + 1.0


def test_nobody_there_closes_it_at_once_and_a_good_probe_opens_it() -> None:
    asked = Asked()
    assert asked.ask(failed("any", unsent=True))
    assert asked.permits.is_down(STORE)
    assert asked.permits.probe_now(STORE)
    probe = asked.permits.try_acquire(STORE)
    assert probe is not None
    assert probe.probe
    assert asked.permits.try_acquire(STORE) is None, "one at a time"
    asked.permits.feedback(probe, failed("any", unsent=True))
    assert not asked.permits.probe_now(STORE), "not twice"
    asked.clock.advance(1.0)
    assert asked.ask(OK)
    assert not asked.permits.is_down(STORE)


def test_a_probe_that_is_given_back_leaves_its_place_to_the_next() -> None:
    asked = Asked()
    asked.ask(failed("any", unsent=True))
    asked.clock.advance(1.0)
    probe = asked.permits.try_acquire(STORE)
    assert probe is not None
    probe.release(sent=True)
    probe.release(sent=True)
    assert asked.ask(OK)
    assert not asked.permits.is_down(STORE)
