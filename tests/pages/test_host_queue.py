"""What waits for one host."""

import pytest

from sanderling.outcome import Code, Outcome
from sanderling.pages.hosts import MOST_BEHIND, HostQueue
from sanderling.stores.frontier_rows import Queued


def queued(number: int) -> Queued:
    return Queued(number, f"http://a.example/{number}", "a.example", 0)


def test_urls_are_taken_in_the_order_they_came() -> None:
    host = HostQueue("a.example", on_disk=3)
    host.put([queued(1), queued(2)])

    assert [host.take(0), host.take(0), host.take(0)] == [queued(1), queued(2), None]
    assert (host.after, host.on_disk) == (2, 1)


def test_what_is_put_back_is_first_again() -> None:
    host = HostQueue("a.example")
    host.put([queued(1), queued(2)])

    first = host.take(0)
    assert first is not None
    host.put_back(first)

    assert host.take(0) == queued(1)


def test_what_is_put_off_comes_behind_what_was_not() -> None:
    host = HostQueue("a.example")
    host.put([queued(1), queued(2)])
    host.put_off(queued(9), until=5)

    assert host.take(5) == queued(1)
    assert host.take(5) == queued(2)
    assert host.take(4.9) is None
    assert host.take(5) == queued(9)


def test_of_what_is_put_off_there_are_not_ever_more() -> None:
    host = HostQueue("a.example")
    host.put([queued(1)])
    for number in range(MOST_BEHIND):
        host.put_off(queued(10 + number), until=5)

    assert [host.take(5), host.take(5)] == [queued(10), queued(1)]


def test_a_probe_comes_from_the_far_end() -> None:
    host = HostQueue("a.example")
    host.put([queued(1), queued(2), queued(3)])

    assert host.take(0, probe=True) == queued(3)


def test_it_is_due_when_there_is_something_to_take() -> None:
    host = HostQueue("a.example")
    assert host.due() is None

    host.put_off(queued(1), until=7)
    assert host.due() == 7

    host.put([queued(2)])
    assert host.due() == 0


@pytest.mark.parametrize(
    "busy",
    [
        HostQueue("a", on_disk=1),
        HostQueue("a", asking=1),
        HostQueue("a", loading=True),
        HostQueue("a", closed=True),
    ],
)
def test_a_host_is_done_when_nothing_is_left_of_it_anywhere(busy: HostQueue) -> None:
    assert HostQueue("a").done
    assert not busy.done


def test_tries_are_counted_until_the_url_is_decided() -> None:
    host = HostQueue("a.example")

    assert [host.tried(queued(1), 0), host.tried(queued(1), 5), host.tried(queued(2), 6)] == [1, 2, 1]
    host.ended(queued(1))
    assert host.tried(queued(1), 7) == 1


def test_a_url_is_to_blame_if_others_were_answered_since_it_first_failed() -> None:
    host = HostQueue("a.example", on_disk=5)
    host.spoke(1)
    host.tried(queued(1), 2)
    assert not host.blames(queued(1))

    host.spoke(3)
    assert host.blames(queued(1))


def test_a_url_is_to_blame_if_nothing_else_is_left() -> None:
    host = HostQueue("a.example")
    host.tried(queued(1), 2)
    assert host.blames(queued(1))

    host.put([queued(2)])
    assert not host.blames(queued(1))


def test_silence_begins_with_the_first_failure_and_ends_with_a_good_answer() -> None:
    host, trouble = HostQueue("a.example"), Outcome(Code.TIMEOUT)
    host.failed(trouble, now=3)
    host.failed(trouble, now=8)
    assert (host.silent_since, host.trouble, host.answered) == (3, trouble, None)

    host.spoke(9)
    assert (host.silent_since, host.trouble, host.answered) == (None, None, 9)


def test_that_we_hold_back_ourselves_is_no_news_of_the_host() -> None:
    host, trouble = HostQueue("a.example"), Outcome(Code.TIMEOUT)
    host.failed(trouble, now=3)
    host.failed(Outcome(Code.DEFERRED), now=8)

    assert host.trouble == trouble
