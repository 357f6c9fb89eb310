"""An outage is over for us when it is over: while something is live, whatever the outage is like."""

import asyncio
from collections.abc import Coroutine
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live_polling import Absent, Live, Outage, answer, during, refused_connection, reset, saying, silence
from race_polling import play

from sanderling.stores.polling_store import PollingStore
from sanderling.task import Reply

KINDS = [refused_connection, saying(503), saying(500), reset, silence]
BEGIN = 20.0
LONG = 90.0


def held(polling: Live, outage: Outage, seconds: float, more: float = 20.0, wanted: float = 4.9) -> None:
    """Poll through an outage."""
    back = BEGIN + seconds
    polling.upstream.outage = during(BEGIN, seconds, outage)
    polling.upstream.changes = 10.0

    polling.poll(back + more)

    assert polling.upstream.first_live(back) <= 2.0
    assert polling.upstream.longest_gap(BEGIN, back) <= 2.0
    assert min(polling.upstream.rates(back + 3.0, back + more)) >= wanted


@pytest.mark.parametrize(("outage", "seconds"), [*((outage, LONG) for outage in KINDS), (silence, 90.63)])
def test_one_live_target(tmp_path: Path, outage: Outage, seconds: float) -> None:
    polling = Live(tmp_path)

    held(polling, outage, seconds)

    asked = [at for times in polling.upstream.times.values() for at in times if BEGIN + 20.0 <= at < BEGIN + seconds]
    assert len(asked) <= 1.3 * (seconds - 20.0), "a host that is down is asked about once a second"


@pytest.mark.parametrize("outage", [saying(500), silence])
def test_the_only_target_of_a_source(tmp_path: Path, outage: Outage) -> None:
    """Nothing else there is that could find out: no list, and no other document."""
    held(Live(tmp_path, listed=False), outage, LONG)


@pytest.mark.parametrize("outage", [saying(503), reset])
def test_two_live_targets_and_some_others(tmp_path: Path, outage: Outage) -> None:
    held(Live(tmp_path, live=2, idle=10), outage, LONG)


def test_fifty_live_targets(tmp_path: Path) -> None:
    """They share the hundred requests a second that are allowed."""
    held(Live(tmp_path, live=50), silence, LONG, more=10.0, wanted=1.8)


@pytest.mark.parametrize(("live", "seconds"), [(1, 3.0), (3, 7.3), (1, 12.9)])
def test_a_silence_that_is_too_short_for_the_circuit(tmp_path: Path, live: int, seconds: float) -> None:
    held(Live(tmp_path, live), silence, seconds)


def test_a_host_that_is_back_but_slow_is_taken_up(tmp_path: Path) -> None:
    """Or nothing would ever be seen of one whose answers take longer than a look."""
    polling = Live(tmp_path, listed=False)
    polling.upstream.outage = during(BEGIN, LONG, silence)
    polling.upstream.latency = lambda now: 3.0 if now > BEGIN else 0.01

    polling.poll(BEGIN + LONG + 30.0)

    kept = sum(polling.system.measures.runs["match", code] for code in ("OK", "NOT_MODIFIED"))
    assert kept >= 5 * (BEGIN - 1) + 20
    assert polling.status.hosts[0].circuit == "closed"


def test_a_retry_after_in_the_middle_of_it_is_heeded(tmp_path: Path) -> None:
    polling, said = Live(tmp_path, live=2), during(60.0, 1.5, saying(503, Retry_After="60"))
    down = during(BEGIN, LONG, saying(503))
    polling.upstream.outage = lambda path, now: said(path, now) or down(path, now)

    polling.poll(150.0)

    everything = sorted(at for times in polling.upstream.times.values() for at in times)
    told = next(at for at in everything if at >= 60.0)
    assert not [at for at in everything if told < at < told + 60.0]
    assert polling.upstream.first_live(told + 60.0) <= 2.0
    assert min(polling.upstream.rates(told + 63.0, 150.0)) >= 4.9


@pytest.mark.parametrize("outage", [saying(503), silence])
def test_refusals_before_an_outage_make_it_no_longer(tmp_path: Path, outage: Outage) -> None:
    polling, refusing, down = Live(tmp_path, live=2), during(BEGIN, 60.0, saying(429)), during(80.0, LONG, outage)
    polling.upstream.outage = lambda path, now: refusing(path, now) or down(path, now)

    polling.poll(190.0)

    assert polling.upstream.first_live(170.0) <= 2.0
    assert min(polling.upstream.rates(173.0, 190.0)) >= 4.9


@pytest.mark.parametrize("seconds", [1.0, 20.0, LONG])
def test_bare_refusals_stretch_the_cadence_for_as_long_as_they_come(tmp_path: Path, seconds: float) -> None:
    polling, back = Live(tmp_path, live=2), BEGIN + seconds
    polling.upstream.outage = during(BEGIN, seconds, saying(429))

    polling.poll(back + 20.0)

    asked = [at for times in polling.upstream.times.values() for at in times if BEGIN + 1.0 <= at < back]
    assert len(asked) <= 3 + seconds / 2
    assert polling.upstream.first_live(back) <= 5.0
    assert min(polling.upstream.rates(back + 5.0, back + 20.0)) >= 4.9


# And our own side.


def without_store(polling: Live, begin: float, end: float, seconds: float) -> None:
    polling.wrapped = lambda store: cast("PollingStore", Absent(store, begin, end, seconds))


@pytest.mark.parametrize(("seconds", "outage"), [(0.0, reset), (60.0, saying(500)), (60.0, silence)])
def test_a_database_that_is_gone_as_well(tmp_path: Path, seconds: float, outage: Outage) -> None:
    """What was live when it went is live: nothing could be stored since that says otherwise."""
    polling = Live(tmp_path, live=2)
    without_store(polling, BEGIN - 10.0, 1000.0, seconds)

    held(polling, outage, LONG, wanted=4.0 if seconds else 4.9)


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_a_database_that_is_gone_leaves_the_cadence(tmp_path: Path, seconds: float) -> None:
    polling = Live(tmp_path, live=2)
    polling.upstream.changes = 0.1
    without_store(polling, 20.0, 1000.0, seconds)

    polling.poll(120.0)

    # Of answers that nobody stores and nobody refuses, a few are waited for: then it is once a second for a while.
    assert min(polling.upstream.rates(30.0, 120.0)) >= (4.5 if seconds else 4.9)


def test_a_database_that_comes_back_has_what_was_said_since(tmp_path: Path) -> None:
    polling = Live(tmp_path)
    polling.upstream.changes = 0.5
    without_store(polling, 20.0, 80.0, 3.0)

    polling.poll(100.0)

    assert polling.upstream.rate(90.0, 100.0) >= 4.9
    assert polling.status.facts.recent[-1].at > 1_800_000_099.0


@pytest.mark.parametrize(("pause", "outage"), [(2.0, refused_connection), (60.0, saying(503)), (2.0, silence)])
def test_a_process_that_is_started_again_in_an_outage(tmp_path: Path, pause: float, outage: Outage) -> None:
    """It knows by the rows what is live, though nobody can tell it what there is."""
    polling, back = Live(tmp_path, live=2), 20.0 + pause + 90.0
    polling.upstream.outage = during(15.0, back - 15.0, outage)
    polling.settings["scheduler.fullIntervalMs"] = "60s"

    async def script() -> None:
        await polling.run(20.0)
        await polling.clock.sleep(pause)
        await polling.run(back + 20.0 - polling.clock.now())

    play(script())

    assert polling.upstream.longest_gap(20.0 + pause, back) <= 2.0
    assert polling.upstream.first_live(back) <= 2.0
    assert min(polling.upstream.rates(back + 3.0, back + 20.0)) >= 4.9


def test_a_refusal_outlives_the_process_and_the_cadence_is_back_after_it(tmp_path: Path) -> None:
    polling = Live(tmp_path, live=2)
    polling.upstream.outage = during(15.0, 2.0, saying(429, Retry_After="60"))

    async def script() -> None:
        await polling.run(20.0)
        await polling.run(80.0)

    play(script())

    everything = sorted(at for times in polling.upstream.times.values() for at in times)
    told = next(at for at in everything if at >= 15.0)
    assert not [at for at in everything if told < at < told + 60.0]
    assert min(polling.upstream.rates(told + 62.0, 100.0)) >= 4.9


GOOD = st.tuples(st.just(None), st.floats(6.0, 12.0), st.floats(0.001, 0.19))
BAD = st.tuples(st.sampled_from(KINDS), st.floats(0.2, 30.0), st.just(0.01))


@settings(max_examples=12, deadline=None)
@given(phases=st.lists(GOOD | BAD, min_size=1, max_size=6), live=st.integers(1, 3), idle=st.integers(0, 5))
def test_whatever_comes_without_a_refusal_the_cadence_is_there_whenever_the_host_is(
    tmp_path_factory: pytest.TempPathFactory, phases: list[tuple[Outage | None, float, float]], live: int, idle: int
) -> None:
    polling, now = Live(tmp_path_factory.mktemp("polled"), live, idle), BEGIN
    plan: list[tuple[float, Outage | None, float]] = [(0.0, None, 0.01)]
    for outage, seconds, latency in [*phases, (None, 10.0, 0.01)]:
        plan.append((now, outage, latency))
        now += seconds

    def at(moment: float) -> tuple[float, Outage | None, float]:
        return next(each for each in reversed(plan) if each[0] <= moment)

    polling.upstream.outage = lambda _path, moment: at(moment)[1]
    polling.upstream.latency = lambda moment: at(moment)[2]
    polling.poll(now)

    for (begin, outage, _), (end, _, _) in pairwise([*plan[1:], (now, None, 0.0)]):
        if outage is None:
            assert polling.upstream.first_live(begin) <= 2.0
            assert min(polling.upstream.rates(begin + 2.0, end)) >= 4.9 - 1 / (end - begin - 2.0)
        else:
            assert polling.upstream.longest_gap(begin, end) <= 2.0


# What is not live.


async def maintenance() -> Reply:
    """The same page for whatever is asked."""
    return answer(200, b"<html>Back soon</html>", Content_Type="text/html")


def late_after(polling: Live, back: float) -> float:
    """Seconds after `back` until the last of the documents was asked for."""
    return max(min(at for at in times if at >= back) - back for times in polling.upstream.times.values())


@pytest.mark.parametrize(
    ("outage", "seconds"), [(maintenance, 10.0), (saying(404), 61.3), (saying(500), 10.0), (silence, 61.3)]
)
def test_an_outage_of_the_host_makes_no_target_pause(tmp_path: Path, outage: Outage, seconds: float) -> None:
    polling, back = Live(tmp_path, live=0, idle=20), BEGIN + seconds
    polling.settings = {"scheduler.matchIdleMs": "2000"}
    polling.upstream.outage = during(BEGIN, seconds, outage)

    polling.poll(back + 30.0)

    del polling.upstream.times["/list"]
    assert late_after(polling, back) <= 2.0 + 2.0


def test_a_document_that_is_wrong_beside_good_ones_is_asked_for_less_often(tmp_path: Path) -> None:
    polling = Live(tmp_path, live=0, idle=5)
    polling.settings = {"scheduler.matchIdleMs": "2000"}
    polling.upstream.outage = during(BEGIN, 1e9, maintenance, "idle3")

    polling.poll(220.0)

    assert polling.upstream.rate(BEGIN, 220.0, "idle3") <= 0.1
    assert polling.upstream.rate(BEGIN, 220.0, "idle2") >= 0.48


def test_the_only_document_of_a_host_that_is_wrong_is_asked_for_less_often(tmp_path: Path) -> None:
    polling = Live(tmp_path, live=0, idle=1)
    polling.settings = {"scheduler.matchIdleMs": "2000"}
    polling.upstream.outage = during(BEGIN, 1e9, maintenance, "idle0")

    polling.poll(220.0)

    assert polling.upstream.rate(BEGIN, 220.0, "idle0") <= 0.1


@pytest.mark.parametrize("seconds", [0.7, 3.0])
def test_a_short_hang_costs_others_no_timeout(tmp_path: Path, seconds: float) -> None:
    polling, back = Live(tmp_path, live=0, idle=20), BEGIN + seconds
    polling.settings = {"scheduler.matchIdleMs": "2000"}
    polling.upstream.outage = during(BEGIN, seconds, silence)

    polling.poll(back + 30.0)

    del polling.upstream.times["/list"]
    assert late_after(polling, back) <= 2.0 + 1.2


def test_a_host_that_is_slow_is_asked_for_no_more_at_once_than_was_set(tmp_path: Path) -> None:
    polling = Live(tmp_path, live=0, idle=20)
    polling.upstream.latency = lambda _: 2.5

    polling.poll(BEGIN)
    polling.upstream.most_at_once = 0
    play(polling.run(100.0))

    assert polling.upstream.most_at_once <= 3  # and the list


def test_a_document_that_became_slow_is_had_all_the_same(tmp_path: Path) -> None:
    polling = Live(tmp_path, live=0, idle=10)
    polling.settings = {"scheduler.matchIdleMs": "2000"}
    polling.upstream.outage = during(BEGIN, 1e9, slowly, "idle0")

    polling.poll(BEGIN + 60.0)

    entry = next(each for each in polling.system.schedule.entries.values() if each.source_id == "idle0")
    assert entry.status == "ok"
    assert entry.failures == 0


async def slowly() -> Reply:
    """The document, after a while."""
    await asyncio.sleep(3.0)
    return answer(200, b'{"id": "idle0", "state": "over", "version": 1}')


def test_what_is_found_while_the_database_is_away_is_asked_for_when_it_is_back(tmp_path: Path) -> None:
    polling, back = Live(tmp_path, live=0, idle=1), BEGIN + 64.0
    polling.settings = {"scheduler.fullIntervalMs": "30000"}
    without_store(polling, BEGIN, back, 0.0)

    async def add() -> None:
        await asyncio.sleep(BEGIN + 5.0)
        polling.upstream.ids["late"] = "over"

    play(beside(polling.run(back + 30.0), add()))

    assert polling.upstream.times["/match/late"][0] <= back + 2.5
    assert len(polling.upstream.times["/list"]) <= 5, "the host is asked no more often for that"


def test_a_database_that_hangs_is_said_within_seconds(tmp_path: Path) -> None:
    polling, said = Live(tmp_path), list[str]()
    without_store(polling, BEGIN, 1000.0, 60.0)

    async def look() -> None:
        await asyncio.sleep(BEGIN + 8.0)
        said.append(polling.system.trouble)

    play(beside(polling.run(BEGIN + 10.0), look()))

    assert said == ["the database has not answered for 8 s"]


async def beside(polls: Coroutine[Any, Any, None], looks: Coroutine[Any, Any, None]) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(polls)
        group.create_task(looks)
