"""What every frontier promises. A subclass says only how to open one."""

from collections.abc import Callable

import pytest
from frontier_urls import HOSTS, failed, fetched, found, url

from sanderling.outcome import Code, Outcome
from sanderling.stores.frontier import Frontier
from sanderling.stores.frontier_rows import KEPT, Aside, End, Fault, QueuedUrl, RetryUrl

Opens = Callable[[], Frontier]
SLOW = Outcome(Code.TIMEOUT, detail="connect \udcff")
BUSY = Outcome(Code.HOST_UNAVAILABLE, 503, "busy")


def taken(ledger: Frontier, host: str = "a.example", after: int = 0, most: int = 100) -> list[QueuedUrl]:
    (urls,) = ledger.take([(host, after, most)])
    return urls


def put_off(queued: QueuedUrl, failures: int = 1, due: float = 100.0, outcome: Outcome = BUSY) -> RetryUrl:
    return RetryUrl(queued.id, queued.url, failures, due, outcome)


def faults(frontier: Frontier) -> dict[str, tuple[Fault, str]]:
    """Whose fault it is that a URL waits, and the reason."""
    return {each.url: (each.fault, each.detail) for each in frontier.waiting_rows()}


class FrontierContract:
    def test_urls_wait_in_the_order_they_were_found(self, opens: Opens) -> None:
        ledger = opens()

        assert ledger.commit([], found(9, 3, 1, 6, depth=2), 0) == {"a.example": 3, "b.example": 1}
        assert ledger.waiting() == {"a.example": 3, "b.example": 1}
        assert taken(ledger) == [
            QueuedUrl(1, url(9), HOSTS[0], 2),
            QueuedUrl(2, url(3), HOSTS[0], 2),
            QueuedUrl(4, url(6), HOSTS[0], 2),
        ]
        assert [each.url for each in taken(ledger, after=1, most=1)] == [url(3)]

    def test_taking_is_not_ending(self, opens: Opens) -> None:
        ledger = opens()
        ledger.commit([], found(3), 0)

        assert taken(ledger) == taken(ledger) != []

    def test_each_host_gets_what_it_asked_for(self, opens: Opens) -> None:
        ledger = opens()
        ledger.commit([], found(*range(9)), 0)

        lists = ledger.take([("b.example", 0, 1), ("never.example", 0, 5), ("a.example", 2, 5), ("c.example", 0, 0)])

        assert [[each.url for each in urls] for urls in lists] == [[url(1)], [], [url(3), url(6)], []]

    def test_a_url_is_known_once(self, opens: Opens) -> None:
        """Twice in a batch, again while it waits, again once it ended: one URL."""
        ledger = opens()

        assert ledger.commit([], found(3, 3), 0) == {"a.example": 1}
        assert ledger.commit([fetched(taken(ledger)[0])], found(3), 0) == {}
        assert ledger.commit([], found(3, 6), 0) == {"a.example": 1}
        assert [each.id for each in taken(ledger)] == [2]

    def test_what_ended_cannot_end_again(self, opens: Opens) -> None:
        ledger = opens()
        ledger.commit([], found(3, 6), 0)
        first, second = taken(ledger)
        ledger.commit([fetched(first)], [], 7)

        with pytest.raises(ValueError, match="some had ended before"):
            ledger.commit([fetched(second), failed(first)], found(9), 8)
        with pytest.raises(ValueError, match=r"a.example/6 \(id 2\) ends twice"):
            ledger.commit([fetched(second), failed(second)], found(9), 8)

        assert ledger.counts()[End.FETCHED] == 1
        assert ledger.meta.watermark == 7
        assert taken(ledger) == [second]

    def test_what_is_not_known_cannot_end(self, opens: Opens) -> None:
        ledger = opens()
        ledger.commit([], found(3), 0)

        with pytest.raises(ValueError, match="/3 with id 2 is known"):
            ledger.commit([fetched(QueuedUrl(2, url(3), "a.example", 0))], [], 0)
        with pytest.raises(ValueError, match="/6 with id 1 is known"):
            ledger.commit([fetched(QueuedUrl(1, url(6), "a.example", 0))], [], 0)

    def test_what_was_kept_cannot_be_reopened(self, opens: Opens) -> None:
        for end in KEPT | {End.WAITING}:
            with pytest.raises(ValueError, match=f"{end.name} cannot be reopened"):
                opens().reopen(end)

    def test_reasons_are_counted(self, opens: Opens) -> None:
        ledger = opens()
        ledger.commit([], found(0, 3, 6, 9), 0)
        one, two, three, _ = taken(ledger)
        ledger.commit([failed(one), failed(two, End.REFUSED, Outcome(Code.REFUSED)), fetched(three)], [], 0)

        expected = {(End.FAILED, "CONTENT_NOT_FOUND"): 1, (End.REFUSED, "REFUSED"): 1, (End.FETCHED, "OK"): 1}
        assert ledger.by_code() == expected
        ledger.close()
        assert opens().by_code() == expected

    def test_redirects_are_remembered(self, opens: Opens) -> None:
        ledger = opens()
        ledger.commit([], found(0), 0)
        ledger.commit([fetched(taken(ledger)[0], End.MOVED, moved_to=url(3))], [], 0)

        assert ledger.moved_to(url(0)) == url(3)
        assert ledger.moved_to(url(3)) is None

    def test_robots_are_known_at_once_and_kept_with_the_next_commit(self, opens: Opens) -> None:
        ledger = opens()
        ledger.keep_robots("https://a.example", 200, b"Disallow: /", 12.5)
        assert ledger.robots("https://a.example") == (200, b"Disallow: /", 12.5)

        ledger.commit([], [], 0)
        ledger.close()

        again = opens()
        assert again.robots("https://a.example") == (200, b"Disallow: /", 12.5)
        assert again.robots("http://a.example") is None

    def test_a_commit_that_fails_changes_nothing(self, opens: Opens) -> None:
        """A host that is new in it is not known afterwards, neither on disk nor in memory."""
        ledger = opens()
        with pytest.raises(ValueError, match="is known"):
            ledger.commit([fetched(QueuedUrl(1, url(3), "a.example", 0))], found(3), 5)
        with pytest.raises(UnicodeEncodeError):
            ledger.commit([], [*found(1, 2), *[each._replace(url="\ud800") for each in found(3)]], 5)

        assert ledger.commit([], found(2, 1), 6) == {"b.example": 1, "c.example": 1}
        assert [each.id for each in taken(ledger, "c.example")] == [1]

    def test_what_failed_waits_with_its_reason_and_its_time(self, opens: Opens) -> None:
        """Also for the next process, until it ends; replaced when it fails once more."""
        frontier = opens()
        frontier.commit([], found(0, 3, 6), 0)
        one, two, three = taken(frontier)
        frontier.commit([], [], 0, [put_off(one, 1, 100.5), put_off(two, 1, 200.0)])
        frontier.commit([fetched(two)], [], 0, [put_off(one, 2, 300.25, SLOW)])
        frontier.close()

        frontier = opens()

        assert taken(frontier) == [one._replace(failures=2, due=300.25), three]
        assert faults(frontier) == {one.url: ("item", "connect ?"), three.url: ("", "")}
        (row, _) = frontier.waiting_rows()
        assert row == (one.id, one.url, "a.example", 0, "item", "TIMEOUT", 0, "connect ?", 2)

    def test_what_does_not_wait_cannot_be_put_off(self, opens: Opens) -> None:
        frontier = opens()
        frontier.commit([], found(0, 3, 6), 0)
        one, two, _ = taken(frontier)
        frontier.commit([fetched(one)], [], 0)

        for ended, again in (([], [one]), ([fetched(two)], [two]), ([], [two._replace(url=url(9))])):
            with pytest.raises(ValueError, match=r"had ended before|is known"):
                frontier.commit(ended, found(1), 7, [put_off(each) for each in again])

        assert (frontier.known, frontier.meta.watermark) == (3, 0)
        assert [each.failures for each in taken(frontier)] == [0, 0]

    def test_what_ended_and_is_opened_again_has_not_failed(self, opens: Opens) -> None:
        frontier = opens()
        frontier.commit([], found(0, 3), 0)
        one, two = taken(frontier)
        frontier.commit([], [], 0, [put_off(one), put_off(two)])
        frontier.commit([failed(one)], [], 0)

        frontier.reopen(End.FAILED)
        assert taken(frontier) == [one, two._replace(failures=1, due=100.0)]
        frontier.leave()
        frontier.reopen(End.LEFT)
        assert taken(frontier) == [one, two]

    def test_the_failures_of_a_host_that_is_set_aside_were_its_own(self, opens: Opens) -> None:
        frontier = opens()
        frontier.commit([], found(0, 3, 1), 0)
        one, two = taken(frontier)
        (other,) = taken(frontier, "b.example")
        frontier.commit([], [], 0, [put_off(one), put_off(other)])

        frontier.set_aside("a.example", SLOW, 500.5)

        assert frontier.aside() == [Aside("a.example", 2, "TIMEOUT", 0, "connect ?", 500.5)]
        assert taken(frontier) == [one, two]
        why: tuple[Fault, str] = ("host", "connect ?")
        assert faults(frontier) == {one.url: why, two.url: why, other.url: ("item", "busy")}

    def test_what_fails_while_its_host_is_aside_waits_with_the_reason_of_the_host(self, opens: Opens) -> None:
        """It says how often all the same: whoever asked for it then has a reason to count."""
        frontier = opens()
        frontier.commit([], found(0), 0)
        frontier.set_aside("a.example", SLOW)

        frontier.commit([], [], 0, [put_off(taken(frontier)[0], 2)])

        (row,) = frontier.waiting_rows()
        assert (row.fault, row.code, row.failures) == ("host", "TIMEOUT", 2)
        assert frontier.leave() == 0

    def test_one_host_answers_again_and_the_others_stay_aside(self, opens: Opens) -> None:
        frontier = opens()
        frontier.commit([], found(0, 1, 2), 0)
        for host in HOSTS:
            frontier.set_aside(host, SLOW)

        frontier.clear_aside("b.example")
        frontier.clear_aside("never.example")
        assert [each.host for each in frontier.aside()] == ["a.example", "c.example"]
        frontier.clear_aside()
        assert frontier.aside() == []

    def test_a_failure_says_how_often_it_was_asked_for_and_whose_fault_it_is(self, opens: Opens) -> None:
        frontier = opens()
        frontier.commit([], found(0, 3, 6, 9, 1), 0)
        one, two, three, _ = taken(frontier)
        guard = Outcome(Code.REFUSED, detail="private")
        forbidden = [failed(two, End.REFUSED, guard), failed(three, End.LEFT_OUT, guard)]
        frontier.commit([failed(one, requests=4), *forbidden], [], 0)
        (first,) = taken(frontier, "b.example")
        frontier.commit([failed(first, End.FAILED, guard)], [], 0)

        assert [(each.url, each.requests, each.fault) for each in frontier.failed()] == [
            (url(0), 4, "item"),
            (url(3), 0, "us"),
            (url(6), 0, "us"),
            (url(1), 0, "us"),
        ]

    def test_ids_that_another_has_given_are_not_given_again(self, opens: Opens) -> None:
        frontier = opens()
        frontier.commit([], found(0, 3), 0)
        frontier.note(last_id=1000)
        frontier.close()

        frontier = opens()

        assert frontier.commit([], found(0, 3, 6, 9), 0) == {"a.example": 2}
        assert [each.id for each in taken(frontier)] == [1, 2, 1001, 1002]
        assert (frontier.known, len(frontier.ends())) == (4, 1003)
