"""What hosts share by the rules: a key, a domain, an address; who is told of a refusal, and whose turn it is."""

import asyncio
from collections import Counter
from itertools import pairwise

import pytest
from driven import Driven, views

from sanderling.limit import Feedback, Limiter, LimiterRules, PaceRules, Quota, Scope, Shared, explain
from sanderling.limit.sharing import Drawn, Sharing
from sanderling.testing import FakeClock, LoopClock, run_virtual

A, B, OTHER = "a.example", "b.example", "other.test"
MAPS = Shared("credential", "maps", (A, B))
QUICK = PaceRules(initial_rps=100, max_rps=100)


def maps(rps: float = 5.0, **changes: object) -> LimiterRules:
    """Rules by which two hosts share a key; hosts themselves allow much more."""
    rules = {"pace": QUICK, "shared": (MAPS,), "scopes": {"credential/maps": PaceRules.contract(rps)}} | changes
    return LimiterRules(**rules)  # type: ignore[arg-type]


def drawn(*shared: Shared, host: str = A, address: str | None = None) -> list[str]:
    sharing = Sharing(shared, {}, 100)
    if address is not None:
        sharing.locate(host, address)
    return [scope.key for scope in sharing.of(host).scopes]


# What a request draws on.


@pytest.mark.parametrize(
    ("hosts", "host", "shares"),
    [
        ((A,), A, True),
        ((A,), "x.a.example", False),
        (("*.example",), A, True),
        (("*.a.example",), A, True),  # as in --allow: itself and all below it
        (("*.a.example",), "x.y.a.example", True),
        (("*.a.example",), "aa.example", False),
        (("A.Example.",), A, True),
        ((f"{A}:8080",), A, False),
        ((f"{A}:8080",), f"{A}:8080", True),
        (("*.example:8080",), f"{A}:8080", True),
        (("BÜCHER.example",), "xn--bcher-kva.example", True),
        ((B, A), A, True),
    ],
)
def test_a_credential_is_shared_by_the_hosts_that_are_named(hosts: tuple[str, ...], host: str, shares: bool) -> None:  # noqa: FBT001
    assert drawn(Shared("credential", "maps", hosts), host=host) == (["credential/maps"] if shares else [])


@pytest.mark.parametrize(
    ("name", "host", "found"),
    [
        ("example.org", "example.org", ["domain/example.org"]),
        ("example.org", "deep.er.example.org:8080", ["domain/example.org"]),
        ("*.example.org", "www.example.org", ["domain/example.org"]),
        ("example.org", "badexample.org", []),
        ("*", "www.shop.example.co.uk", ["domain/example.co.uk"]),
        ("*", "alice.github.io", ["domain/alice.github.io"]),  # whose neighbours are other people
        ("*", "203.0.113.7:8080", ["domain/203.0.113.7"]),
    ],
)
def test_a_domain_is_shared_by_all_below_it(name: str, host: str, found: list[str]) -> None:
    assert drawn(Shared("domain", name), host=host) == found


def test_of_domains_in_each_other_the_nearest_counts() -> None:
    shared = (Shared("domain", "example.org"), Shared("domain", "api.example.org"), Shared("domain", "*"))

    assert drawn(*shared, host="x.api.example.org") == ["domain/api.example.org"]
    assert drawn(*shared, host="www.example.org") == ["domain/example.org"]
    assert drawn(*shared, host="www.example.net") == ["domain/example.net"]


def test_an_address_is_shared_by_those_that_live_there_once_that_is_known() -> None:
    assert drawn(Shared("ip", "*")) == []
    assert drawn(Shared("ip", "*"), address="203.0.113.7") == ["ip/203.0.113.7"]
    assert drawn(Shared("ip", "203.0.113.7"), address="203.0.113.7") == ["ip/203.0.113.7"]
    assert drawn(Shared("ip", "203.0.113.7"), address="203.0.113.8") == []


@pytest.mark.parametrize(
    ("host", "found"),
    [("203.0.113.7:8080", ["ip/203.0.113.7"]), ("[2001:db8::1]:81", ["ip/2001:db8::1"]), ("7.example", [])],
)
def test_a_host_that_is_an_address_lives_there(host: str, found: list[str]) -> None:
    assert drawn(Shared("ip", "*"), host=host) == found


def test_a_host_may_share_several_things_and_a_refusal_is_about_the_first_that_wants_it() -> None:
    sharing = Sharing((Shared("domain", "*", refusals=False), MAPS), {}, 100)

    assert sharing.of(A) == Drawn((Scope("credential", "maps"), Scope("domain", A)), "credential")
    assert sharing.of(OTHER) == Drawn((Scope("domain", OTHER),), None)


@pytest.mark.parametrize(
    ("kind", "name", "hosts", "words"),
    [
        ("planet", "earth", (), "found a scope 'planet', expected one of domain, ip, credential"),
        ("credential", "maps", (), "found no hosts of credential maps, expected hosts, as in api.example.org"),
        ("domain", "a.example", (A,), "found hosts of domain a.example, expected none: its name says which"),
        ("credential", "a/b", (A,), "expected a short name without a slash; never the key"),
        ("credential", "", (A,), "expected a short name"),
        ("credential", "*", (A,), None),
        ("credential", "maps", ("https://a.example/",), "expected a host like api.example.org, or *.example.org"),
        ("domain", "a b", (), "expected a host like api.example.org"),
        ("ip", "a.example", (), "found the address 'a.example', expected one like 203.0.113.7, or * for each"),
    ],
)
def test_what_cannot_be_shared_is_said(kind: str, name: str, hosts: tuple[str, ...], words: str | None) -> None:
    if words is None:
        Shared(kind, name, hosts)
        return
    with pytest.raises(ValueError, match="expected") as error:
        Shared(kind, name, hosts)
    assert words in str(error.value)


# What it costs.


@pytest.mark.parametrize(
    ("url", "cost"),
    [
        ("https://a.example/", 1.0),
        ("https://a.example/search", 10.0),
        ("https://a.example/search?q=1", 10.0),
        ("https://a.example/searching", 10.0),
        ("https://a.example/x/search", 1.0),
        ("https://b.example", 2.0),
        ("https://b.example/v1/users/7/orders", 5.0),
        ("https://b.example/exactly", 3.0),
        ("https://b.example/exactly/not", 2.0),
        ("https://x.b.example/", 2.0),
        ("https://c.example/api?action=parse&page=A", 4.0),
        ("https://c.example/api?action=query", 1.0),
    ],
)
def test_a_request_costs_what_the_longest_pattern_says(url: str, cost: float) -> None:
    costs = {
        "a.example/search": 10,
        "*.b.example": 2,
        "b.example/*/users/*/orders": 5,
        "b.example/exactly$": 3,
        "c.example/api?*action=parse": 4,
    }

    assert Sharing((), costs, 1).cost(url.split("/")[2], url) == cost


@pytest.mark.parametrize("cost", [0, 0.5, -1, float("nan"), float("inf"), 10_001])
def test_a_cost_is_a_number_of_requests(cost: float) -> None:
    with pytest.raises(ValueError, match=r"found a cost of .* for a.example/x, expected a number from 1 to 10,000"):
        LimiterRules(costs={"a.example/x": cost})


def test_a_permit_that_is_charged_lets_the_next_wait_longer_and_that_with_all_it_draws_on() -> None:
    driven = Driven(maps())
    driven.take(A).charge(3)

    assert driven.limiter.ready_at(A) == pytest.approx(3 / 5)
    assert driven.limiter.ready_at(B) == pytest.approx(3 / 5)
    assert driven.limiter.ready_at(OTHER) == 0


# Together, no more than the quota; and each has its turn.


def test_a_host_that_shares_nothing_has_its_turn_where_others_share() -> None:
    driven = Driven(maps())
    driven.take(OTHER)

    assert driven.limiter.turn_at(OTHER) == driven.limiter.ready_at(OTHER) == pytest.approx(0.01)


def crawl(limiter: Limiter, clock: FakeClock, hosts: list[str], seconds: float, cost: float = 1.0) -> list[str]:
    """Hosts that always have something to ask, each with one place, as a crawl has it; who was asked, in order."""
    asked, turns, tries = [], dict.fromkeys(hosts, 0.0), 0
    end = clock.now() + seconds
    while True:
        host = min(turns, key=turns.__getitem__)
        if turns[host] >= end:
            break
        clock.advance(max(0.0, turns[host] - clock.now()))
        tries += 1
        if (permit := limiter.try_acquire(host)) is None:
            turns[host] = max(limiter.turn_at(host), clock.now() + 0.01)
        else:
            permit.charge(cost)
            limiter.feedback(permit, Feedback(200, 0.1))
            asked.append(host)
            turns[host] = clock.now() + 0.001
    assert tries <= 4 * len(asked) + 3 * len(hosts), "nobody comes back for nothing all the time"
    return asked


@pytest.mark.parametrize(("cost", "expected"), [(1.0, 300), (2.0, 150)])
def test_two_hosts_with_one_key_are_asked_no_more_than_it_allows_and_neither_starves(
    cost: float, expected: int
) -> None:
    clock = FakeClock(0.0)
    limiter = Limiter(maps(), clock=clock)

    asked = crawl(limiter, clock, [A, B], 60, cost)

    assert len(asked) == pytest.approx(expected, abs=2)
    assert max(map(asked.count, (A, B))) - min(map(asked.count, (A, B))) <= 2


@pytest.mark.parametrize("number", [3, 30, 300])
def test_however_many_share_a_quota_each_has_its_turn(number: int) -> None:
    clock = FakeClock(0.0)
    hosts = [f"h{each}.example" for each in range(number)]
    shared = Shared("domain", "example")
    limiter = Limiter(maps(shared=(shared,), scopes={"domain/example": PaceRules.contract(5)}), clock=clock)

    asked = Counter(crawl(limiter, clock, hosts, 2 * number))

    assert asked.total() == pytest.approx(10 * number, rel=0.02, abs=3)
    assert max(asked.values()) <= 1.3 * min(asked.values()) + 2


def test_who_does_not_come_back_holds_nobody_up() -> None:
    clock = FakeClock(0.0)
    limiter = Limiter(
        maps(shared=(Shared("domain", "example"),), scopes={"domain/example": PaceRules.contract(5)}), clock=clock
    )
    for number in range(1000):
        limiter.try_acquire(f"gone{number}.example")
    clock.advance(500)

    asked = crawl(limiter, clock, [A, B], 60)

    assert len(asked) >= 250


def test_those_who_wait_in_line_share_it_in_turn_too() -> None:
    async def main() -> list[tuple[float, str]]:
        clock = LoopClock()
        limiter = Limiter(maps(), clock=clock)
        asked = []
        for number in range(20):
            limiter.feedback(await limiter.acquire((A, B)[number % 2]), Feedback(200, 0.1))
            asked.append((clock.now(), (A, B)[number % 2]))
        return asked

    asked = run_virtual(main())

    assert min(after - before for (before, _), (after, _) in pairwise(asked)) >= 0.2 - 1e-9


def test_a_redirect_to_a_host_that_shares_draws_on_that_too() -> None:
    async def main() -> list[str]:
        limiter = Limiter(maps(), clock=LoopClock())
        permit = await limiter.acquire(OTHER)
        permit.release(sent=True)
        return [part.host for part in (await permit.more(A)).also]

    assert run_virtual(main()) == ["credential/maps"]


def test_what_a_caller_names_counts_once_with_what_the_rules_name() -> None:
    driven = Driven(maps())

    permit = driven.limiter.try_acquire(A, [Scope("credential", "maps", cost=2), Scope("domain", "example")])

    assert permit is not None
    assert [(part.host, part.cost) for part in permit.also] == [("domain/example", 1.0), ("credential/maps", 2)]


# Whom a refusal is about.


def waits(limiter: Limiter) -> dict[str, float]:
    return {view.host: view.not_before for view in views(limiter)}


@pytest.mark.parametrize(
    "feedback",
    [
        Feedback(429, 0.1, retry_after=60),
        Feedback(503, 0.1, retry_after=60),
        Feedback(200, 0.1, quota=Quota(0, 60)),
        Feedback(404, 0.1, quota=Quota(0, 60)),
        Feedback(200, 0.1, retry_after=60),
    ],
)
@pytest.mark.parametrize("refusals", [True, False])
def test_a_refusal_is_that_of_the_key_if_the_rules_say_so(feedback: Feedback, refusals: bool) -> None:  # noqa: FBT001
    driven = Driven(maps(shared=(Shared("credential", "maps", (A, B), refusals=refusals),)))

    driven.limiter.feedback(driven.take(A), feedback)

    assert waits(driven.limiter) == {A: 0 if refusals else 60, "credential/maps": 60 if refusals else 0}
    assert driven.limiter.ready_at(B) == pytest.approx(60 if refusals else 0.2)


@pytest.mark.parametrize("feedback", [Feedback(500, 0.1), Feedback(503, 0.1), Feedback(error="reset")])
def test_whether_a_host_is_well_is_its_own_affair(feedback: Feedback) -> None:
    driven = Driven(maps())
    for _ in range(20):
        driven.wait_until(driven.limiter.ready_at(A))
        driven.limiter.feedback(driven.take(A), feedback)
        if driven.limiter.is_down(A):
            break

    assert driven.limiter.is_down(A)
    assert driven.limiter.ready_at(B) <= driven.clock.now() + 0.2


def test_a_refusal_without_a_time_is_learned_from_by_the_key_and_not_by_the_host() -> None:
    driven = Driven(maps())
    for number in range(30):
        host = (A, B)[number % 2]
        driven.wait_until(driven.limiter.ready_at(host))
        driven.limiter.feedback(driven.take(host), Feedback(429 if number > 25 else 200, 0.01))

    seen = {view.host: view for view in views(driven.limiter)}

    assert [seen[host].rejected for host in ("credential/maps", A, B)] == [4, 0, 0]
    assert driven.limiter.ready_at(A) > driven.clock.now() + 0.2, "all that share it go slowly for a while"
    assert seen[A].rate >= 100


def test_nothing_is_lost_of_it_across_a_restart() -> None:
    before = Driven(maps())
    before.limiter.feedback(before.take(A), Feedback(429, 0.1, retry_after=60))

    after = Driven(maps())
    after.limiter.restore(before.limiter.save())

    assert after.limiter.ready_at(B) == pytest.approx(60)


# Addresses.


def test_the_first_request_of_a_host_is_counted_when_its_address_is_known() -> None:
    rules = LimiterRules(pace=QUICK, shared=(Shared("ip", "*"),), scopes={"ip/*": PaceRules.contract(2)})
    driven = Driven(rules)
    first, second = driven.take(A), driven.take(B)

    for permit in (first, second):
        driven.limiter.locate(permit, "203.0.113.7")

    assert driven.limiter.ready_at(A) == driven.limiter.ready_at(B) == pytest.approx(2 / 2)
    for permit in (first, second):
        driven.report(permit)
    assert [(view.host, view.requests, view.inflight) for view in driven.limiter.snapshot().shared] == [
        ("ip/203.0.113.7", 2, 0)
    ]


def test_who_stood_in_line_before_an_address_was_known_is_counted_too() -> None:
    async def main() -> tuple[float, float]:
        clock = LoopClock()
        rules = LimiterRules(pace=QUICK, shared=(Shared("ip", "*"),), scopes={"ip/*": PaceRules.contract(2)})
        limiter = Limiter(rules, clock=clock)

        async def ask() -> None:
            permit = await limiter.acquire(A)
            await clock.sleep(1)
            limiter.locate(permit, "203.0.113.7")
            limiter.feedback(permit, Feedback(200, 1.0))

        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(ask())
        return clock.now(), limiter.ready_at(A)

    ended, ready = run_virtual(main())

    assert ended < 1.1
    assert ready == pytest.approx(1 + 4 / 2, abs=0.1)


def test_a_host_that_has_moved_shares_what_is_allowed_where_it_lives_now() -> None:
    rules = LimiterRules(pace=QUICK, shared=(Shared("ip", "*"),), scopes={"ip/*": PaceRules.contract(2)})
    driven = Driven(rules)
    driven.limiter.locate(driven.take(A), "203.0.113.7")
    driven.clock.advance(10)
    driven.limiter.locate(driven.take(A), "203.0.113.8")
    driven.clock.advance(10)

    assert [part.host for part in driven.take(A).also] == ["ip/203.0.113.8"]


# What is said of it.


def test_more_is_not_permitted_than_what_a_host_shares() -> None:
    """By which a crawl says how many workers are of use."""
    driven = Driven(maps(3.0))
    assert driven.limiter.snapshot().permitted == 0

    driven.report(driven.take(A))

    assert driven.limiter.snapshot().permitted == pytest.approx(3.0)
    driven.clock.advance(1)
    for _ in range(3):
        driven.take_all(OTHER)
        driven.clock.advance(1)
    assert driven.limiter.snapshot().permitted == pytest.approx(100)


def test_it_is_said_in_words_what_a_host_shares_and_what_it_waits_for() -> None:
    driven = Driven(maps())
    driven.report(driven.take(A))
    held = driven.view(A)
    driven.clock.advance(60)
    free = driven.view(A)
    driven.limiter.feedback(driven.take(B), Feedback(429, 0.1, retry_after=30))
    told = driven.view(A)

    assert held.shares == ("credential/maps",)
    assert held.why == "waiting for the credential maps: 5.0 requests a second for all that share it"
    assert "It shares the credential maps" in explain(free)
    assert told.why == "waiting for the credential maps: told to wait another 30.0 s"
    assert [view.host for view in driven.limiter.snapshot().shared] == ["credential/maps"]
    assert [view.host for view in driven.limiter.snapshot().top] == [A, B]
