"""What hosts share binds a crawl through the engine: together they are asked no more than that, and each in turn."""

from collections import Counter
from dataclasses import replace

import pytest
from machines import play
from worlds import Fault, Item, Plan, Rules, Spell, World, limits

from sanderling.engine.rules import EngineRules
from sanderling.limit import Limiter, LimiterRules, PaceRules, Shared


def shared(rps: float) -> LimiterRules:
    """Hosts below `example` may be asked so often together, and each of them much more often."""
    return replace(
        limits(100.0), shared=(Shared("domain", "example"),), scopes={"domain/example": PaceRules.contract(rps)}
    )


def crawled(hosts: int, items: int, rps: float, *, faults: tuple[Spell, ...] = ()) -> World:
    plans = [Plan(f"h{number}.example", spells=faults if number == 0 else ()) for number in range(hosts)]
    work = [Item(plan.name, f"i{number}") for plan in plans for number in range(items)]
    world = World(plans, work, Rules(EngineRules(slots=64), limits=shared(rps)))
    play(world)
    assert not world.wrong
    return world


@pytest.mark.parametrize("hosts", [2, 40])
def test_hosts_that_share_a_quota_are_asked_no_more_than_that_together_and_none_starves(hosts: int) -> None:
    world = crawled(hosts, 400 // hosts, 5.0)

    times = sorted(request.at for request in world.sent)
    busiest = max(sum(at <= each < at + 1 for each in times) for at in times)
    half = Counter(request.item.host for request in world.sent if request.at <= times[-1] / 2)

    assert len(times) == 400
    assert busiest <= 6, "five a second, and the one at the very beginning"
    assert times[-1] == pytest.approx(400 / 5, rel=0.1), "and no less than it allows"
    assert len(half) == hosts
    assert max(half.values()) <= 1.2 * min(half.values()) + 2


def test_no_host_comes_back_again_and_again_for_what_another_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = Counter[str]()
    original = Limiter.try_acquire

    def counting(limiter: Limiter, host: str) -> object:
        tries[host] += 1
        return original(limiter, host)

    monkeypatch.setattr(Limiter, "try_acquire", counting)

    world = crawled(100, 8, 5.0)

    assert tries.total() <= 4 * len(world.sent)


def test_a_host_that_refuses_for_itself_holds_up_nobody_that_shares_with_it() -> None:
    world = World(
        [Plan("bad.example", spells=(Spell(Fault.ERROR),)), Plan("good.example")],
        [Item(f"{host}.example", f"i{number}") for host in ("bad", "good") for number in range(100)],
        Rules(limits=shared(5.0)),
    )

    play(world, drive=None)

    assert not world.wrong
    good = [request.at for request in world.sent if request.item.host == "good.example"]
    assert max(good) <= 100 / 5 * 1.5


def test_a_quota_that_was_told_to_wait_is_waited_for_by_all_that_share_it() -> None:
    world = crawled(3, 20, 5.0, faults=(Spell(Fault.BUSY_FOR, 2.0, 3.0),))

    refused = min(request.ended for request in world.sent if request.fault is Fault.BUSY_FOR)
    after = [request.at for request in world.sent if refused < request.at]
    assert min(after) >= refused + 20, "not only by the host that said so"
