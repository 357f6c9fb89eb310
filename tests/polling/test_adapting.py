from dataclasses import replace

import pytest
from scheduled import entry

from sanderling.polling.adaptive import Adapter
from sanderling.polling.settings import PollingSettings
from sanderling.polling.targets import ScheduledTarget

SHARED = PollingSettings(budget=1.0, fastest=0.5, slowest=100.0)


def runs(adapter: Adapter, each: ScheduledTarget, changed: int, of: int, since: float = 10.0) -> None:
    for number in range(of):
        adapter.ran(each, since, changed=number * changed // of != (number + 1) * changed // of)


def test_without_a_budget_intervals_are_what_they_are() -> None:
    adapter = Adapter()
    each = entry(seconds=7.0)
    runs(adapter, each, 50, 50)

    assert adapter.interval(each) == 7.0
    assert each.polls > 10
    assert each.hits == pytest.approx(each.polls), "it is counted all the same, for when there is one"


def test_what_changes_more_is_asked_more_often_but_not_in_proportion() -> None:
    adapter = Adapter()
    adapter.tune(SHARED)
    busy, calm = entry(1), entry(2)
    runs(adapter, busy, 50, 100)
    runs(adapter, calm, 5, 100)

    fast, slow = adapter.interval(busy), adapter.interval(calm)

    assert fast < slow < 10 * fast
    assert 1 / fast + 1 / slow == pytest.approx(1.0, rel=0.05), "the budget is used, and no more"


def test_what_an_admin_set_and_what_is_live_is_left_alone() -> None:
    adapter = Adapter()
    adapter.tune(SHARED)
    fixed, live = entry(1, set_seconds=3.0), entry(2)
    live.until = 100.0
    runs(adapter, fixed, 100, 100)
    runs(adapter, live, 100, 100)

    assert adapter.interval(fixed) == 3.0
    assert adapter.interval(live) == 10.0
    assert (live.polls, fixed.polls) == (0.0, 0.0)


def test_one_that_is_set_later_gives_its_share_back() -> None:
    adapter = Adapter()
    adapter.tune(SHARED)
    one, other = entry(1), entry(2)
    runs(adapter, one, 10, 100)
    runs(adapter, other, 10, 100)
    shared = adapter.interval(other)
    one.fixed = True
    adapter.ran(one, 10.0, changed=True)

    assert adapter.interval(other) == pytest.approx(shared / 2, rel=0.1)
    adapter.forget(one.id)  # harmless


def test_a_budget_that_is_withdrawn_gives_the_old_intervals_back() -> None:
    adapter = Adapter()
    adapter.tune(SHARED)
    each = entry(seconds=7.0)
    runs(adapter, each, 100, 100)
    assert adapter.interval(each) != 7.0

    adapter.tune(replace(SHARED, budget=0.0))

    assert adapter.interval(each) == 7.0


def test_a_larger_budget_is_shared_at_once() -> None:
    adapter = Adapter()
    adapter.tune(SHARED)
    each = entry()
    runs(adapter, each, 50, 100)
    before = adapter.interval(each)

    adapter.tune(replace(SHARED, budget=2.0))

    assert adapter.interval(each) == pytest.approx(before / 2, rel=0.1)
