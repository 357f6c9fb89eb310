"""Why a host is slow, in sentences: of views written by hand, and of hosts as they come."""

import re
from dataclasses import replace
from typing import Any

import pytest
from driven import BOTH, FAST, HOST, Driven, Strategy, converse, prepared
from hypothesis import given
from hypothesis import strategies as st

from sanderling.limit import Feedback, HostView, LimiterRules, Quota, explain
from sanderling.worlds.hosts import HostAnswer

GROWING = HostView(
    host=HOST,
    requests=120,
    rejected=0,
    rate=4.0,
    ceiling=None,
    tokens=0.5,
    latency=0.1,
    p95=0.2,
    error_rate=0.0,
    state="closed",
    failures=0,
    not_before=0.0,
    inflight=2,
    waiting=30,
    why="growing until the host objects",
    learned=None,
    usual=0.1,
    cap=None,
    cap_why=None,
)
CRAWL = "Policy crawl: its pace is learned from refusals, latency and failures."
CONTRACT = (
    "Policy contract: the operator's cadence stands; only refusals, Retry-After and rate headers stretch it, "
    "and a failed host is asked about once a second."
)
PASSED = "the last level that passed"
ROBOTS = "robots.txt asks for 10 s between requests"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {},
            (
                f"4.0 requests a second now: growing until the host objects. {CRAWL} 30 waiting, 2 in flight. "
                "Its answers take 0.1 s, usually 0.1 s."
            ),
        ),
        (
            {"why": f"cruising just below its ceiling (learned from {PASSED})", "learned": PASSED, "ceiling": 4.06},
            (
                f"4.0 requests a second now: cruising just below its ceiling (learned from {PASSED}). {CRAWL} "
                "Its ceiling is 4.1 requests a second. 30 waiting, 2 in flight. Its answers take 0.1 s, usually 0.1 s."
            ),
        ),
        (
            {
                "why": "circuit open for another 12.5 s after failures",
                "state": "open",
                "not_before": 12.5,
                "ceiling": 10.0,
                "learned": PASSED,
                "error_rate": 0.45,
                "inflight": 0,
            },
            (
                f"Not called now: circuit open for another 12.5 s after failures. {CRAWL} "
                f"Its ceiling is 10.0 requests a second, learned from {PASSED}. 30 waiting, nothing in flight. "
                "Its answers take 0.1 s, usually 0.1 s; 45% of its last answers failed."
            ),
        ),
        (
            {"why": "told to wait another 30.0 s", "not_before": 30.0, "rejected": 1, "waiting": 0, "inflight": 0},
            (
                f"Not called now: told to wait another 30.0 s. {CRAWL} It refused 1 of 120 requests. "
                "Nobody waits, and nothing is in flight. Its answers take 0.1 s, usually 0.1 s."
            ),
        ),
        (
            {"why": ROBOTS, "rate": 0.1, "cap": 0.1, "cap_why": ROBOTS, "requests": 1, "latency": None, "usual": None},
            f"One request in 10 s now: {ROBOTS}. {CRAWL} 30 waiting, 2 in flight.",
        ),
        (
            {"rate": 0.05, "cap": 0.1, "cap_why": ROBOTS, "rejected": 1, "requests": 1, "waiting": 0},
            (
                f"One request in 20 s now: growing until the host objects. {CRAWL} "
                f"At most one request in 10 s: {ROBOTS}; it refused 1 of 1 request. Nobody waiting, 2 in flight. "
                "Its answers take 0.1 s, usually 0.1 s."
            ),
        ),
        (
            {"latency": 0.4213, "usual": 0.1},
            (
                f"4.0 requests a second now: growing until the host objects. {CRAWL} 30 waiting, 2 in flight. "
                "Its answers take 0.421 s, usually 0.1 s."
            ),
        ),
        (
            {"latency": 0.25, "usual": None, "why": "adding a little after each good window"},
            (
                f"4.0 requests a second now: adding a little after each good window. {CRAWL} 30 waiting, 2 in flight. "
                "Its answers take 0.25 s."
            ),
        ),
        (
            {"latency": None, "usual": None, "error_rate": 1.0},
            (
                f"4.0 requests a second now: growing until the host objects. {CRAWL} 30 waiting, 2 in flight. "
                "100% of its last answers failed."
            ),
        ),
        (
            {"policy": "contract", "why": "the operator's cadence stands", "rate": 100.0, "usual": None},
            (
                f"Up to 100.0 requests a second: the operator's cadence stands. {CONTRACT} 30 waiting, 2 in flight. "
                "Its answers take 0.1 s."
            ),
        ),
    ],
)
def test_a_view_is_put_into_words(changes: dict[str, Any], words: str) -> None:
    assert explain(replace(GROWING, **changes)) == words


@BOTH
@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("idle", f"2.0 requests a second now: not asked yet. {CRAWL} Nobody waits, and nothing is in flight."),
        ("paced", f"2.0 requests a second now: not asked yet. {CRAWL} Nobody waiting, 1 in flight."),
        ("penalised", f"Not called now: told to wait another 77.0 s. {CRAWL} It refused 1 of 1 request."),
        ("open", "Not called now: circuit open for another"),
        ("half-open", "Not called now: circuit open until a probe passes."),
        ("probed", "circuit half open: one probe at a time."),
    ],
)
def test_the_words_are_those_of_the_host_as_it_stands(strategy: Strategy, state: str, words: str) -> None:
    driven = Driven(LimiterRules(strategy=strategy))
    driven.limiter.ready_at(HOST)

    prepared(driven, state)

    assert words in explain(driven.view())


def under_contract(answers: list[int]) -> str:
    """What is said of a host that was asked on a schedule and answered so."""
    driven = Driven(LimiterRules.contract(100.0))
    driven.limiter.ready_at(HOST)
    for status in answers:
        driven.ask(status, latency=0.05)
    return explain(driven.view())


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([], "Up to 100.0 requests a second: not asked yet."),
        ([200, 200], "Up to 100.0 requests a second: the operator's cadence stands."),
        ([500] * 3, "Up to 100.0 requests a second: the operator's cadence stands."),
        ([500] * 10, "Not called now: circuit open for another "),
        ([200, 429], "One request at a time: refused, and probed until it opens."),
        (
            [200, 429, 200, 429, 200],
            ": stretched below the operator's cadence, and growing back to it (learned from what was served between",
        ),
    ],
)
def test_a_contract_says_so_from_the_start_and_what_stretches_it(answers: list[int], words: str) -> None:
    said = under_contract(answers)

    assert words in said
    assert CONTRACT in said


def test_a_half_open_circuit_that_was_told_to_wait_says_for_how_long() -> None:
    driven = Driven()
    driven.trip()
    driven.clock.advance(400)

    driven.ask(429, retry_after=50, latency=0.01)

    assert "Not called now: circuit half open: one probe at a time, the next in 50.0 s." in explain(driven.view())


def test_rate_headers_are_named() -> None:
    driven = Driven(LimiterRules(pace=FAST))

    driven.limiter.feedback(driven.take(), Feedback(200, 0.1, quota=Quota(10, 19.0)))

    assert explain(driven.view()).startswith("One request in 2 s now: its rate headers say how much is left.")


def test_latency_is_told_against_what_is_usual() -> None:
    driven = Driven(LimiterRules(pace=FAST))
    converse(driven, lambda _now: HostAnswer(200, 0.1), 20)

    converse(driven, lambda _now: HostAnswer(200, 0.5), 1.5)

    assert re.search(r"Its answers take 0\.[2-5]\d* s, usually 0\.1 s\.", explain(driven.view()))


def test_a_ceiling_says_what_it_was_learned_from_also_in_another_life() -> None:
    driven, later = Driven(LimiterRules(pace=FAST)), Driven(LimiterRules(pace=FAST))
    converse(driven, lambda _now: HostAnswer(200, 0.1), 10)
    driven.ask(429)
    driven.ask(200)
    assert f"learned from {driven.view().learned}" in explain(driven.view())

    later.limiter.restore(driven.limiter.save())
    later.limiter.ready_at(HOST)
    later.clock.advance(10)

    assert "learned from an earlier life" in explain(later.view())


@given(
    st.builds(
        HostView,
        requests=st.integers(1, 10**9),
        rejected=st.integers(0, 10**9),
        inflight=st.integers(0, 10**9),
        waiting=st.integers(0, 10**9),
        rate=st.floats(1e-9, 1e6),
        ceiling=st.none() | st.floats(1e-9, 1e6),
        latency=st.none() | st.floats(0, 1e6),
        usual=st.none() | st.floats(0, 1e6),
        cap=st.none() | st.floats(1e-9, 1e6),
        cap_why=st.just(ROBOTS),
        why=st.sampled_from(["a reason", ROBOTS]),
        learned=st.none() | st.just(PASSED),
        error_rate=st.floats(0, 1),
    )
)
def test_there_are_three_to_five_sentences_whatever_the_host_does(view: HostView) -> None:
    sentences = re.split(r"(?<=\.) (?=[A-Z0-9])", explain(view).replace("robots.txt", "robots"))

    assert 3 <= len(sentences) <= 5
    assert all(sentence.endswith(".") and not sentence[0].islower() for sentence in sentences)
