"""The frontier of a job against a slow, obvious twin; and what it does when a commit cannot be made."""

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import pytest
from frontier_urls import fresh
from hypothesis import given
from hypothesis import strategies as st

from sanderling.outcome import Code, Outcome
from sanderling.stores.frontier_requests import (
    LAST,
    EndedRequest,
    FoundRequest,
    JobProgress,
    QueuedRequest,
    RequestFrontier,
)
from sanderling.stores.frontier_rows import End, RetryUrl

READERS = ("listing", "detail")
HOSTS = ("a.example", "b.example")
FINE, LATE = Outcome(Code.OK, 200), Outcome(Code.TIMEOUT, detail="late")


def request(number: int, priority: int = 0, host: int = 0) -> FoundRequest:
    """One of some requests, which are known by their number."""
    key = blake2b(b"%d" % number, digest_size=16).digest()
    data = b'{"data":%d}' % number if number % 2 else None
    url = f"https://{HOSTS[host]}/search"  # the same for all: what tells them apart is the key
    return FoundRequest(url, HOSTS[host], number % 3, key, READERS[number % 2], priority, data)


def ended(queued: QueuedRequest, end: End = End.FETCHED, *found: FoundRequest) -> EndedRequest:
    """The request has its end."""
    outcome = FINE if end is End.FETCHED else LATE
    given = {"id": queued.id, "url": queued.url, "depth": queued.depth, "priority": queued.priority}
    return EndedRequest(end=end, outcome=outcome, found=found, **given)  # type: ignore[arg-type]


@dataclass
class Twin:
    """All requests, in the order in which they were found."""

    rows: list[tuple[FoundRequest, End]] = field(default_factory=list)

    def add(self, found: list[FoundRequest]) -> Counter[tuple[str, int]]:
        new: Counter[tuple[str, int]] = Counter()
        for each in found:
            if not any((row.host, row.key) == (each.host, each.key) for row, _ in self.rows):
                self.rows.append((each, End.WAITING))
                new[each.host, each.priority] += 1
        return new

    def waiting(self, host: str, priority: int) -> list[int]:
        return [
            number
            for number, (row, end) in enumerate(self.rows, 1)
            if (row.host, row.priority, end) == (host, priority, End.WAITING)
        ]

    def counts(self) -> dict[End, int]:
        return {end: sum(found is end for _, found in self.rows) for end in End}


PRIORITIES = st.sampled_from((0, 0, 0, 5, -5))
FOUND = st.lists(st.builds(request, st.integers(0, 40), PRIORITIES, st.integers(0, 1)), max_size=8)
STEPS = st.lists(st.tuples(FOUND, st.integers(0, 5), st.sampled_from((End.FETCHED, End.FAILED, End.LEFT_OUT))))


@given(STEPS)
def test_a_frontier_does_what_its_twin_does(steps: list[tuple[list[FoundRequest], int, End]]) -> None:
    twin = Twin()
    with fresh() as folder:
        for step, (found, number, end) in enumerate(steps):
            with closing(RequestFrontier(folder / "frontier.db", READERS)) as frontier:
                queued = take_all(frontier)
                done = queued[:number]
                for each in done:
                    row, _ = twin.rows[each.id - 1]
                    twin.rows[each.id - 1] = row, end
                progress = JobProgress(step, 2 * step, 3 * step, 4 * step)
                new = frontier.commit_requests([ended(each, end) for each in done], found, progress)
                assert Counter(new) == twin.add(found)
                assert_same(frontier, twin)
                meta = frontier.meta
                assert (meta.watermark, meta.records, meta.checksum, meta.requests) == progress
                if step % 3 == 2:
                    assert frontier.reopen_at({"early"}) == 0
                    frontier.reopen_at({"early", LATE.detail})
                    twin.rows = [(row, End.WAITING if was is End.LEFT_OUT else was) for row, was in twin.rows]
                    assert_same(frontier, twin)


def take_all(frontier: RequestFrontier) -> list[QueuedRequest]:
    wants = [(host, priority, 0, 100) for host in HOSTS for priority in (5, 0, -5)]
    return [each for some in frontier.take_requests(wants) for each in some]


def assert_same(frontier: RequestFrontier, twin: Twin) -> None:
    assert frontier.counts() == twin.counts()
    waiting = {(host, priority): twin.waiting(host, priority) for host in HOSTS for priority in (5, 0, -5)}
    assert frontier.waiting_by_priority() == {key: len(ids) for key, ids in waiting.items() if ids}
    for (host, priority), ids in waiting.items():
        after = ids[0] if ids else 0
        (some,) = frontier.take_requests([(host, priority, after, 2)])
        assert [each.id for each in some] == ids[1:3]
        for each in some:
            row, _ = twin.rows[each.id - 1]
            assert each[1:7] == (row.url, row.host, row.depth, row.priority, row.reader, row.data)


@pytest.fixture
def frontier(tmp_path: Path) -> RequestFrontier:
    made = RequestFrontier(tmp_path / "frontier.db", READERS)
    made.commit_requests([], [request(1), request(2, 5)], JobProgress(0, 0, 0, 0))
    return made


def test_a_commit_that_cannot_be_made_leaves_everything_as_it_was(frontier: RequestFrontier) -> None:
    first, second = take_all(frontier)
    before = frontier.counts(), frontier.meta, frontier.waiting_by_priority()

    for bad in ([ended(first), ended(first)], [ended(first), ended(second._replace(id=9))]):
        with pytest.raises(ValueError, match=r"ends twice|is known, so it cannot end"):
            frontier.commit_requests(bad, [request(3)], JobProgress(9, 9, 9, 9))
        assert (frontier.counts(), frontier.meta, frontier.waiting_by_priority()) == before
        assert take_all(frontier) == [first, second]
    frontier.close()


def test_what_failed_waits_with_its_due_time_and_what_is_put_last_is_last(frontier: RequestFrontier) -> None:
    ranked, plain = take_all(frontier)
    frontier.commit_requests([], [], JobProgress(0, 0, 0, 0), [RetryUrl(plain.id, plain.url, 2, 77.0, LATE)])
    frontier.put_last(ranked)

    assert frontier.waiting_by_priority() == {("a.example", 0): 1, ("a.example", LAST): 1}
    ((again,), (last,)) = frontier.take_requests([("a.example", 0, 0, 5), ("a.example", LAST, 0, 5)])
    assert (again.failures, again.due) == (2, 77.0)
    assert (last.id, last.priority, frontier.waiting_request(last.id)) == (ranked.id, LAST, last)
    frontier.commit_requests([ended(last, End.FAILED)], [], JobProgress(0, 0, 0, 0))
    assert frontier.waiting_by_priority() == {("a.example", 0): 1}
    assert frontier.waiting_request(last.id) is None
    assert [(each.id, each.code, reader) for each, reader in frontier.failed_requests()] == [
        (last.id, "TIMEOUT", last.reader)
    ]
    frontier.close()


def test_records_come_with_a_good_end_only() -> None:
    with pytest.raises(ValueError, match="ended FAILED with records or further work, expected neither"):
        EndedRequest(id=1, url="u", end=End.FAILED, outcome=LATE, depth=0, records=(b"{}",))
