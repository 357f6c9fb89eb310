"""The measures of seed 003's section 1, played for `aimd` and `governor`, and what an overload does."""

from dataclasses import dataclass
from random import Random

import pytest
from hosts import Reply, Server, bucket
from limit.plays import Alternating, Played, play

from sanderling.clock import FakeClock
from sanderling.limit import Limiter

HOST = "host.example"
POLICIES = ("aimd", "governor")


def limited(refusal: int | str, rate: float, depth: float) -> Server | Alternating:
    server = Server(Random(5), bucket(rate, depth), refusal=refusal if isinstance(refusal, int) else 429)
    return server if isinstance(refusal, int) else Alternating(server)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("refusal", [429, 503, "both"])
@pytest.mark.parametrize(("rate", "depth"), [(3, 1), (3, 3), (5, 1), (5, 5)])
def test_more_than_nine_in_ten_succeed_after_stabilising(
    policy: str, refusal: int | str, rate: float, depth: float
) -> None:
    played = play({HOST: limited(refusal, rate, depth)}, 300, policy=policy)

    assert played.success(HOST, since=60) > 0.9


@pytest.mark.parametrize("policy", POLICIES)
def test_a_bad_host_slows_no_other(policy: str) -> None:
    def requests(*bad: Server) -> list[tuple[float, int]]:
        hosts = {HOST: Server(Random(5), bucket(5, 5))} | {f"bad{at}.example": host for at, host in enumerate(bad)}
        return play(hosts, 120, policy=policy).responses[HOST]

    alone = requests()

    assert len(alone) > 300
    down, slow = Server(Random(6), failing=((0.0, 1.0),)), Server(Random(7), network=9.0)
    assert requests(down, slow, Server(Random(8), bucket(0.5, 1), retry_after=30.0)) == alone


def test_a_transient_failure_costs_fewer_than_three_retries() -> None:
    limiter, random = Limiter(policy="aimd", clock=FakeClock(), random=Random(1)), Random(2)
    failures = 0
    for _ in range(2000):
        attempts = 1
        while random.random() < 0.4:
            failures += attempts == 1
            if limiter.plan_retry(HOST, attempts, status=503) is None:
                break
            attempts += 1

    assert limiter.snapshot().retries / failures < 2


@dataclass
class Overloaded:
    """Good for a minute; then for half a minute all but the share `good` is bad; then good again."""

    random: Random
    bad: int
    good: float = 0.0
    retry_after: float | None = None

    def request(self, now: float) -> Reply:
        if not 60 <= now < 90 or self.random.random() < self.good:
            return Reply(200, 0.1)
        return Reply(self.bad, 0.1, self.retry_after)


def overload(policy: str, host: Overloaded, seed: int = 1, seconds: float = 200.0) -> Played:
    """At 10 requests a second, of 20 that are allowed at most."""
    return play({HOST: host}, seconds, policy=policy, every=0.1, seed=seed, max_rps=20.0, initial_rps=10.0)


@pytest.mark.parametrize(
    ("policy", "bad"), [("aimd", 429), ("aimd", 500), ("aimd", 503), ("governor", 500), ("governor", 503)]
)
def test_the_circuit_opens_within_five_seconds_of_an_overload_and_closes_after_it(policy: str, bad: int) -> None:
    played = overload(policy, Overloaded(Random(1), bad))

    assert 60 <= played.opened[HOST][0] <= 65
    assert 90 <= played.closed[HOST][-1] <= 140
    assert played.success(HOST, since=played.closed[HOST][-1]) == 1


@pytest.mark.parametrize(
    ("policy", "bad", "plays"), [("aimd", 500, 0.6), ("governor", 500, 1.0), ("governor", 503, 1.0)]
)
def test_one_good_response_in_ten_hides_no_overload(policy: str, bad: int, plays: float) -> None:
    """Seed 003's rows of five are broken by each good response: four plays in five open in time."""
    opened = [overload(policy, Overloaded(Random(seed), bad, good=0.1), seed, 66).opened[HOST] for seed in range(30)]

    assert sum(bool(each) and each[0] <= 65 for each in opened) >= plays * len(opened)


@pytest.mark.parametrize("policy", POLICIES)
def test_refusals_with_retry_after_alone_open_no_circuit(policy: str) -> None:
    for host in (Overloaded(Random(1), 429, retry_after=3), Overloaded(Random(1), 503, retry_after=3)):
        assert not overload(policy, host).opened[HOST]
