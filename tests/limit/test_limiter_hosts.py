"""Hosts as people and strangers spell them, and what happens when there are many."""

import pytest
from driven import HOST, Driven

from sanderling.ids import HostError
from sanderling.limit import Limiter, LimiterRules
from sanderling.testing import run_virtual

# Hosts, as people and strangers spell them.


@pytest.mark.parametrize("spelling", ["HOST.example", " host.example ", "host.example.", "host.example:443"])
def test_two_spellings_of_a_host_share_one_gate(spelling: str) -> None:
    driven = Driven()

    driven.take(HOST)

    assert driven.limiter.try_acquire(spelling) is None
    assert driven.limiter.ready_at(spelling) == driven.limiter.ready_at(HOST)
    assert driven.limiter.snapshot().hosts == 1


def test_a_permit_names_the_host_in_its_one_spelling() -> None:
    driven = Driven()

    assert driven.take("BÜCHER.example").host == "xn--bcher-kva.example"


NO_HOSTS = ["", "a" * 10_000, "[fe80::1%eth0]", "joe:secret@host.example", "host.example:0", "host.example/path"]


@pytest.mark.parametrize("text", NO_HOSTS)
def test_what_is_no_host_is_refused_everywhere(text: str) -> None:
    async def acquired(limiter: Limiter) -> None:
        await limiter.acquire(text)

    async def attempted(limiter: Limiter) -> None:
        async with limiter.attempt(text):
            pass

    driven = Driven()
    for ask in (driven.limiter.try_acquire, driven.limiter.ready_at, driven.limiter.refund_retry):
        with pytest.raises(HostError):
            ask(text)
    with pytest.raises(HostError):
        driven.limiter.plan_retry(text, 1)
    for wait in (acquired, attempted):
        with pytest.raises(HostError):
            run_virtual(wait(driven.limiter))
    assert driven.limiter.snapshot().hosts == 0


# Many hosts.


def test_idle_hosts_go_without_being_asked() -> None:
    driven = Driven()
    for number in range(100):
        driven.take(f"h{number}.example").release(sent=True)
    driven.clock.advance(1000)

    for number in range(100):
        driven.take(f"g{number}.example").release(sent=True)

    assert driven.limiter.snapshot().hosts <= 101


def test_there_are_never_more_hosts_than_allowed() -> None:
    driven = Driven(LimiterRules(hosts=100))

    for number in range(2000):
        driven.take(f"h{number}.example").release(sent=True)
        driven.clock.advance(0.001)
        assert len(driven.limiter._gates) <= 100

    assert driven.limiter.snapshot().requests == 2000, "those let go are still counted"


def test_hosts_in_use_may_be_more_than_allowed() -> None:
    driven = Driven(LimiterRules(hosts=10))

    permits = [driven.take(f"h{number}.example") for number in range(50)]

    assert driven.limiter.snapshot().hosts == 50
    for permit in permits:
        assert permit.gate is driven.limiter._gates[permit.host]


def test_forget_idle_says_how_many_went() -> None:
    driven = Driven(LimiterRules(idle=60))
    for number in range(10):
        driven.ask(host=f"h{number}.example")
    driven.clock.advance(50)
    driven.ask(host="h3.example")

    driven.clock.advance(30)

    assert driven.limiter.forget_idle() == 9
    assert [view.host for view in driven.limiter.snapshot().top] == ["h3.example"]


def test_a_host_whose_caller_vanished_is_let_go_in_the_end() -> None:
    driven = Driven(LimiterRules(idle=60, lease=31))
    driven.take()

    driven.clock.advance(300)
    assert driven.limiter.forget_idle() == 0

    driven.clock.advance(30)
    assert driven.limiter.forget_idle() == 1
