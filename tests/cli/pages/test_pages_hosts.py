"""Hosts as people look at them: moods, ranks, paces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statuses import host, status

from sanderling.cli.pages.hosts import Mood, Pace, mood, ranked, words_of
from sanderling.engine.host_report import HostStatus

FAILING = host("failing.example", state="open", trouble="HOST_UNAVAILABLE 500")
THROTTLED = host("throttled.example", rejected=3, ceiling=4.0, learned="the last level that passed")
SLOW = host("slow.example", ceiling=4.0, learned="latency: the host began to queue")
DONE = host("done.example", queued=0, inflight=0)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (host(), Mood.GOING),
        (DONE, Mood.DONE),
        (host(queued=0, inflight=0, waiting=1), Mood.GOING),
        (FAILING, Mood.FAILING),
        (host(state="half-open"), Mood.FAILING),
        (host(trouble="TIMEOUT", error_rate=0.5), Mood.FAILING),
        (host(trouble="TIMEOUT", error_rate=0.2), Mood.FLAKY),
        (host(trouble="TIMEOUT"), Mood.GOING),
        (host(queued=0, inflight=0, trouble="TIMEOUT"), Mood.FAILED),
        (THROTTLED, Mood.THROTTLED),
        (host(not_before=4.0), Mood.THROTTLED),
        (host(rejected=3), Mood.GOING),
        (SLOW, Mood.SLOW),
        (host(latency=1.5), Mood.SLOW),
        (host(cap=0.5, cap_why="robots.txt asks for 2 s between requests"), Mood.CAPPED),
    ],
)
def test_the_mood_of_a_host(seen: HostStatus, expected: Mood) -> None:
    assert mood(seen) is expected


def test_the_worst_come_first_then_the_busiest_then_those_that_are_done() -> None:
    busy, busier = host("busy.example", requests=5), host("busier.example", requests=50)

    order = ranked([DONE, busy, SLOW, THROTTLED, busier, FAILING], room=9)

    assert order == [FAILING, THROTTLED, SLOW, busier, busy, DONE]


def test_trouble_leaves_room_for_those_that_go() -> None:
    troubled = [host(f"{number}.example", state="open") for number in range(5)]

    order = ranked([*troubled, host("busy.example")], room=2)

    assert [each.view.host for each in order[:3]] == ["0.example", "1.example", "busy.example"]


moods = st.sampled_from([FAILING, THROTTLED, SLOW, DONE, host("busy.example")])


@given(st.lists(moods, max_size=20), st.integers(0, 10))
def test_nobody_is_lost_by_ranking(hosts: list[HostStatus], room: int) -> None:
    assert sorted(each.view.host for each in ranked(hosts, room)) == sorted(each.view.host for each in hosts)


def test_the_words_say_what_the_host_last_said_and_what_holds_it_back() -> None:
    seen = host(why="circuit open for another 4.0 s after failures", trouble="HOST_UNAVAILABLE 500 \x1b[2J")

    assert words_of(seen) == "HOST_UNAVAILABLE 500 \ufffd[2J; circuit open for another 4.0 s after failures"


def test_the_pace_is_that_of_the_last_seconds() -> None:
    pace = Pace()
    for second in range(31):
        fetched = {"fetched": 7 * second, "unchanged": 0, "failed": 0}
        pace.take(status(host(requests=3 * second), wall=float(second), counts=fetched))

    assert pace.kept == 7
    assert pace.requests("a.example") == 3
    assert pace.requests("never.example") == 0


def test_a_host_that_stopped_shows_it_before_the_average_does() -> None:
    pace = Pace()
    for second in range(11):
        pace.take(status(host(requests=8 * min(second, 5)), wall=float(second)))

    assert pace.requests("a.example") == 0


def test_there_is_no_pace_before_there_is_time() -> None:
    pace = Pace()
    assert (pace.kept, pace.requests("a.example")) == (0, None)

    pace.take(status(host()))
    pace.take(status(host(requests=200), wall=1000.1))
    assert (pace.kept, pace.requests("a.example")) == (0, None)


def test_a_clock_that_was_set_back_begins_anew() -> None:
    pace = Pace()
    for wall in (1000.0, 1001.0, 10.0, 11.0):
        pace.take(status(host(requests=int(wall)), wall=wall))

    assert pace.requests("a.example") == 1
