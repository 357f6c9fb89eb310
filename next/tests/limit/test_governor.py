"""What the governor says of itself, keeps, and reads from headers; what it makes of failures."""

from dataclasses import dataclass
from itertools import pairwise
from random import Random

import pytest
from hosts import Faulty, Reply, Server, bucket
from limit.plays import play

from sanderling.clock import FakeClock
from sanderling.limit import Limiter
from sanderling.outcome import Code, Outcome

HOST = "host.example"
OK = Outcome(Code.OK, 200)
REFUSED = Outcome(Code.RATE_LIMITED, 429)


def respond(limiter: Limiter, clock: FakeClock, outcome: Outcome = OK, headers: dict[str, str] | None = None) -> None:
    clock.advance_to(max(clock.now(), limiter.ready_at(HOST)))
    permit = limiter.try_acquire(HOST)
    assert permit is not None
    clock.advance(0.05)
    permit.report(outcome, latency=0.05, headers=headers or {})


def learned(rate: float, responses: int) -> tuple[Limiter, FakeClock]:
    """A limiter after so many responses of a host that allows `rate` a second."""
    clock = FakeClock()
    limiter, quota = Limiter(clock=clock, random=Random(1), max_rps=100.0, initial_rps=5.0), bucket(rate, 1)
    for _ in range(responses):
        clock.advance_to(max(clock.now(), limiter.ready_at(HOST)))
        respond(limiter, clock, OK if quota.admits(clock.now()) else REFUSED)
    return limiter, clock


@pytest.mark.parametrize(
    ("responses", "said"),
    [(10, "it grows until the host objects"), (400, "just below"), (400, "a second, known from")],
)
def test_it_says_what_holds_the_rate(responses: int, said: str) -> None:
    limiter, _ = learned(10, responses)

    assert said in limiter.snapshot().hosts[0].why


def test_it_says_that_it_was_refused_and_that_nobody_asks_for_more() -> None:
    limiter, clock = learned(10, 10)
    respond(limiter, clock, REFUSED)
    assert "it said 429" in limiter.snapshot().hosts[0].why

    limiter, clock = learned(10, 10)
    for _ in range(30):
        clock.advance(1.0)
        respond(limiter, clock)
    assert limiter.snapshot().hosts[0].why == "less is asked for than it allows"


def test_it_says_that_the_limit_is_ours() -> None:
    limiter = Limiter(clock=FakeClock(), max_rps=4.0, initial_rps=4.0)
    limiter.try_acquire(HOST)

    assert limiter.snapshot().hosts[0].why == "limited by --rps 4 (max_rps)"


def test_a_limit_that_was_learned_is_not_exceeded_in_a_later_life() -> None:
    first, _ = learned(10, 400)
    saved = first.saved(HOST)
    assert saved is not None

    clock = FakeClock()
    second = Limiter(clock=clock, max_rps=100.0, initial_rps=5.0)
    second.restore(HOST, saved)
    rates = []
    for _ in range(150):
        respond(second, clock)
        rates.append(second.snapshot().hosts[0].fill_rate)

    assert rates[0] == 5
    assert 8 < max(rates) < 10.5


@pytest.mark.parametrize(
    "headers",
    [
        {"X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "40", "X-RateLimit-Reset": "10"},
        {"RateLimit-Limit": "60, 60;w=60", "RateLimit-Remaining": "40", "RateLimit-Reset": "10"},
        {"RateLimit": "limit=60, remaining=40, reset=10"},
        {"RateLimit": '"default";r=40;t=10', "RateLimit-Policy": '"default";q=60;w=60'},
    ],
)
def test_what_is_left_less_a_twentieth_is_spread_to_the_reset(headers: dict[str, str]) -> None:
    clock = FakeClock()
    limiter = Limiter(clock=clock, max_rps=100.0, initial_rps=50.0)
    respond(limiter, clock, OK, headers)

    reset, sent = clock.now() + 10, []
    while limiter.ready_at(HOST) < reset:
        clock.advance_to(max(clock.now(), limiter.ready_at(HOST)))
        permit = limiter.try_acquire(HOST)
        assert permit is not None
        sent.append(clock.now())
        permit.report(OK, latency=0.0)

    assert 36 <= len(sent) <= 38
    assert min(later - earlier for earlier, later in pairwise(sent)) > 0.25


def test_headers_that_promise_much_make_nothing_faster_than_learned() -> None:
    clock = FakeClock()
    limiter = Limiter(clock=clock, max_rps=100.0, initial_rps=5.0)
    respond(limiter, clock, OK, {"X-RateLimit-Remaining": "100000", "X-RateLimit-Reset": "10"})

    assert limiter.ready_at(HOST) == pytest.approx(0.2)


@dataclass
class Evenly:
    """Three responses in five fail."""

    bad: int
    requests: int = 0

    def request(self, now: float) -> Reply:
        self.requests += 1
        return Reply(self.bad if self.requests % 5 in (1, 3, 4) else 200, 0.1)


@pytest.mark.parametrize("bad", [500, 503])
def test_a_host_of_which_three_responses_in_five_fail_is_never_requested_faster_than_at_the_start(bad: int) -> None:
    played = play({HOST: Evenly(bad)}, 600, policy="governor", max_rps=100.0, initial_rps=5.0)

    sent = sorted(at for at, _ in played.responses[HOST])
    assert max(sum(start <= at < start + 0.999 for at in sent) for start in sent) <= 5
    assert played.opened[HOST]


def test_a_host_that_has_always_failed_a_little_may_be_requested_faster() -> None:
    played = play(
        {HOST: Server(Random(1), failing=((0.0, 0.2),))}, 60, policy="governor", max_rps=100.0, initial_rps=5.0
    )

    assert sum(at > 50 for at, _ in played.responses[HOST]) > 500


@pytest.mark.parametrize(("every", "bunch", "requests"), [(7, 1, 100), (5, 1, 100), (14, 1, 130), (7, 3, 220)])
def test_bare_503s_that_do_not_depend_on_the_rate_are_no_limit(every: int, bunch: int, requests: int) -> None:
    host = Faulty(Server(Random(3)), every, bunch)

    played = play({HOST: host}, 120, policy="governor", max_rps=20.0, initial_rps=2.0)

    sent = [at for at, _ in played.responses[HOST]]
    assert sent[requests + 40] - sent[requests] <= 40 / (0.9 * 20)
    assert len(sent) - requests >= 0.9 * 20 * (120 - sent[requests])
    assert not played.opened[HOST]


@pytest.mark.parametrize(("item", "grows"), [("the same", True), ("", False)])
def test_an_item_that_fails_again_and_again_says_nothing_about_the_rate(item: str, grows: bool) -> None:
    clock = FakeClock()
    limiter = Limiter(clock=clock, random=Random(1), max_rps=100.0, initial_rps=5.0)
    for number in range(200):
        clock.advance_to(max(clock.now(), limiter.ready_at(HOST)))
        permit = limiter.try_acquire(HOST)
        assert permit is not None
        clock.advance(0.01)
        fails = number % 50 == 5
        outcome = Outcome(Code.HOST_UNAVAILABLE, 503) if fails else OK
        permit.report(outcome, latency=0.01, item=(item or number) if fails else number)

    assert (limiter.snapshot().hosts[0].fill_rate > 30.0) == grows


def test_bare_503s_above_a_rate_are_a_limit() -> None:
    played = play(
        {HOST: Server(Random(3), bucket(8, 4), refusal=503)}, 120, policy="governor", max_rps=20.0, initial_rps=2.0
    )

    late = [status for at, status in played.responses[HOST] if at >= 20]
    assert late.count(200) >= 0.9 * 8 * 100
    assert late.count(503) <= 0.02 * len(late)


def test_a_host_that_says_503_to_everything_is_probed_each_half_minute() -> None:
    played = play(
        {HOST: Server(Random(3), failing=((0.0, 0.0), (20.0, 1.0)), failure=503)},
        1500,
        policy="governor",
        workers=1,
        max_rps=20.0,
        consecutive_fail_threshold=1000,
        min_samples_to_trip=1000,
    )

    sent = [at for at, _ in played.responses[HOST]]
    assert max(later - earlier for earlier, later in pairwise(sent)) <= 30
