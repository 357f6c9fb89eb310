"""What waits for one host of a job: its order, and how much of it is in memory."""

from hypothesis import given
from hypothesis import strategies as st

from sanderling.engine.backlog import FEW, MOST_HELD
from sanderling.jobs.hosts import JobHost
from sanderling.stores.frontier_requests import QueuedRequest


def queued(number: int, priority: int = 0, failures: int = 0) -> QueuedRequest:
    return QueuedRequest(number, f"http://a.example/{number}", "a.example", 0, priority, "read", None, failures)


@given(st.lists(st.tuples(st.sampled_from((-3, 0, 0, 4)), st.booleans())), st.integers(1, 5))
def test_all_come_once_the_highest_priority_first_and_then_by_id(rows: list[tuple[int, bool]], most: int) -> None:
    """However few are loaded at once, and whatever is put back."""
    host, waiting = JobHost("a.example"), [queued(number, rank) for number, (rank, _) in enumerate(rows, 1)]
    backs = {number: back for number, (_, back) in enumerate(rows, 1)}
    for each in waiting:
        host.wait_on_disk(each.priority, 1)
    taken: list[QueuedRequest] = []

    while host.is_short or host.has_new:
        while host.is_short:
            _, priority, after, number = host.want(most)
            some = [each for each in waiting if each.priority == priority and each.id > after][:number]
            host.put(some, 0.0, 0.0, 60.0)
        found = host.pop_new()
        assert found is not None
        if backs.pop(found.id, False):
            host.put_back(found)
        else:
            taken.append(found)

    assert taken == sorted(waiting, key=lambda each: (-each.priority, each.id))
    assert host.pop_new() is None


def test_what_failed_and_waits_for_its_time_bounds_what_is_loaded() -> None:
    host = JobHost("a.example")
    host.wait_on_disk(0, 10_000)
    host.want(MOST_HELD)
    host.put([queued(number, failures=1) for number in range(1, MOST_HELD + 1)], 0.0, 0.0, 60.0)
    short = [host.is_short]

    host.wait_on_disk(7, 1)
    short.append(host.is_short)
    host.line_up(queued(9_999))
    short.append(host.is_short)

    assert short == [False, False, True]  # the last, since it would else come behind what is less urgent
    assert host.want(5) == ("a.example", 7, 0, 1)


def test_few_in_memory_are_made_more() -> None:
    host = JobHost("a.example")
    host.wait_on_disk(0, FEW + 5)
    host.want(FEW)
    host.put([queued(number) for number in range(1, FEW + 1)], 0.0, 0.0, 60.0)
    assert (host.is_short, host.due()) == (False, 0.0)

    assert host.pop_last() == queued(FEW)
    assert host.is_short
    host.took_all(0)
    host.put([], 0.0, 0.0, 60.0)
    assert not host.is_short
