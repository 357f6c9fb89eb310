"""What waits for one host."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from sanderling.pages.hosts import PageHost
from sanderling.pages.rules import CrawlRules
from sanderling.stores.frontier_rows import QueuedUrl

LONGEST = 60.0


def queued(number: int, failures: int = 0, due: float = 0.0) -> QueuedUrl:
    return QueuedUrl(number, f"http://a.example/{number}", "a.example", 0, failures=failures, due=due)


def filled(urls: Sequence[QueuedUrl], *, on_disk: int = 0) -> PageHost:
    host = PageHost("a.example", on_disk=on_disk)
    host.put(list(urls), now=0.0, wall=1000.0, longest=LONGEST)
    return host


def test_urls_are_taken_in_the_order_they_came() -> None:
    host = filled([queued(1), queued(2)], on_disk=3)

    assert [host.pop_new(), host.pop_new(), host.pop_new()] == [queued(1), queued(2), None]
    assert (host.after, host.on_disk) == (2, 1)


def test_a_probe_comes_from_the_far_end() -> None:
    assert filled([queued(1), queued(2), queued(3)]).pop_last() == queued(3)


def test_what_is_put_back_is_first_again_unless_it_has_failed() -> None:
    host = filled([queued(1), queued(2)])
    first, second = host.pop_new(), host.pop_new()
    assert first is not None
    assert second is not None
    host.fail(second.id, 0.0)

    host.put_back(second)
    host.put_back(first)

    assert (host.pop_new(), host.pop_new(), host.pop_again(0.0)) == (first, None, second)


def test_what_is_put_off_comes_when_it_is_due() -> None:
    host = filled([])
    assert host.due() is None
    host.put_off(queued(9), until=5)

    assert (host.due(), host.has_again(4.9), host.pop_again(4.9)) == (5, False, None)
    assert (host.has_again(5), host.pop_again(5), host.due()) == (True, queued(9), None)


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12))
def test_what_failed_in_an_earlier_run_waits_for_its_time_but_never_longer_than_we_put_off(due: float) -> None:
    """The clock may have been set meanwhile."""
    host = filled([queued(1, failures=2, due=due)])

    assert host.failures(1) == 2
    assert host.pop_new() is None
    assert 0 <= (host.due() or 0.0) <= LONGEST


def test_an_origin_whose_rules_are_unavailable_for_too_long_is_shut_for_the_whole_run() -> None:
    host, rules = filled([]), CrawlRules(patience=100, first_patience=10)
    origin = "http://a.example"

    assert not host.shut_out(origin, 0.0, rules)
    assert host.shut_until(origin, 1.0) == (0.0, 2.0, False)
    assert host.shut_until(origin, 3.0) is None, "then it is asked for again"
    assert host.shut_out(origin, 11.0, rules)
    assert host.shut_until(origin, 1e9) is not None
    assert host.shut_until("https://a.example", 11.0) is None, "the other scheme may be well"
