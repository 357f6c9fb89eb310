"""Slices of one quota: however many limiters take them, together they are no faster than one, and about as fast."""

import asyncio
from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.limit import Feedback, Limiter, LimiterRules, PaceRules, Shared
from sanderling.limit.slices import GRACE, LENGTH, NO_SLICE, QuotaState, SharedQuota, Slices, draw, hush, take
from sanderling.testing import LoopClock, run_virtual

intervals = st.sampled_from([0.001, 0.01, 0.1, 1.0, 10.0])
steps = st.lists(
    st.tuples(
        st.sampled_from(["take", "take", "take", "draw", "hush"]), st.floats(0, 3), intervals, st.integers(1, 2000)
    )
)


@given(steps)
def test_no_two_slices_overlap_and_none_begins_in_the_past_or_while_it_is_to_be_quiet(
    play: list[tuple[str, float, float, int]],
) -> None:
    state, now, taken = QuotaState(), 0.0, list[tuple[float, float]]()
    for what, later, interval, wanted in play:
        now += later
        if what == "draw":
            state = draw(state, now, interval)
        elif what == "hush":
            state = hush(state, now + interval)
        else:
            before = state
            state, found = take(state, now, interval, wanted)
            assert found.start >= max(now, before.quiet, before.free)
            assert 1 <= found.number <= wanted
            assert found.end - found.start == pytest.approx(found.number * interval)
            assert found.end - found.start <= max(LENGTH, interval) * (1 + 1e-9)
            taken.append((found.start, found.end))
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(taken))


@given(st.integers(1, 9), intervals, st.integers(0, 2**32))
def test_whoever_holds_them_never_more_leave_than_the_quota_allows(holders: int, interval: float, seed: int) -> None:
    """Each sends when it may, or somewhat later, or not at all; in any window leave two more than it has room for."""
    chance, store = Random(seed), Slices()
    quotas = [SharedQuota(store, "credential/k") for _ in range(holders)]
    due, left = [chance.uniform(0, interval) for _ in quotas], list[float]()
    now = 0.0
    while now < 60 * interval:
        who = min(range(holders), key=due.__getitem__)
        now = max(now, due[who])
        may = quotas[who].claim(now, interval, chance.randrange(1, 5))
        if may > now:
            due[who] = may + chance.choice([0.0, 0.0, chance.uniform(0, 2 * interval)])
            continue
        quotas[who].use(now, interval, 1)
        left.append(now)
        due[who] = now + chance.choice([interval, interval, chance.uniform(interval, 9 * interval)])
    for window in (interval, 5 * interval, 25 * interval):
        for start in left:
            assert sum(start <= each < start + window for each in left) <= (window + GRACE) / interval + 2


@given(st.integers(1, 9), intervals)
def test_those_who_always_want_more_get_the_same_and_nothing_is_wasted(holders: int, interval: float) -> None:
    store, number = Slices(), 20
    quotas = [SharedQuota(store, "k") for _ in range(holders)]
    due, served = dict.fromkeys(range(holders), 0.0), Counter[int]()
    end = number * holders * interval
    while (now := min(due.values())) < end:
        who = min(due, key=due.__getitem__)
        due[who] = quotas[who].claim(now, interval, 1)
        if due[who] <= now:
            quotas[who].use(now, interval, 1)
            served[who] += 1
    assert max(served.values()) - min(served.values()) <= 2  # who came first was alone at first
    assert served.total() == pytest.approx(end / interval, abs=2)


def test_what_is_used_beyond_a_slice_is_made_up_for_by_all() -> None:
    store = Slices()
    first, second = SharedQuota(store, "k"), SharedQuota(store, "k")
    assert first.claim(0.0, 1.0, 1) == 0.0
    first.use(0.0, 1.0, 5)

    assert second.claim(0.0, 1.0, 1) == 5.0
    second.put_back(1)
    assert second.claim(5.0, 1.0, 1) == 5.0  # what was not sent is still there


def test_a_slice_that_is_not_used_lapses_and_quiet_is_for_all() -> None:
    store = Slices()
    first, second = SharedQuota(store, "k"), SharedQuota(store, "k")
    assert first.claim(0.0, 1.0, 1) == 0.0
    assert second.claim(0.0, 1.0, 1) == 1.0
    first.hush(30.0)

    assert second.claim(1.0, 1.0, 1) == 30.0
    assert first.claim(1.0, 1.0, 1) == 31.0
    assert not NO_SLICE.is_good(0.0)


# Limiters.

KEY = Shared("credential", "maps", ("*.example",))
QUICK = PaceRules(initial_rps=100, max_rps=100)


def rules(rps: float, *more: Shared, **scopes: float) -> LimiterRules:
    paces = {"credential/maps": PaceRules.contract(rps)}
    paces |= {key.replace("_", "/"): PaceRules.contract(each) for key, each in scopes.items()}
    return LimiterRules(pace=QUICK, shared=(KEY, *more), scopes=paces)


async def ask(limiters: list[Limiter], seconds: float, *, stand: bool = False, refuse_at: float = -1.0) -> list[float]:
    """Three hosts for each limiter, all of whom want all they can get; when requests leave."""
    clock, left, refused = LoopClock(), list[float](), False

    async def host(limiter: Limiter, name: str) -> None:
        nonlocal refused
        while clock.now() < seconds:
            permit = await limiter.acquire(name) if stand else limiter.try_acquire(name)
            if permit is None:
                await clock.sleep(max(0.001, limiter.turn_at(name) - clock.now()))
                continue
            left.append(clock.now())
            await clock.sleep(0.01)
            if not refused and 0 <= refuse_at <= clock.now():
                refused = True
                limiter.feedback(permit, Feedback(429, 0.01, retry_after=5.0))
            else:
                limiter.feedback(permit, Feedback(200, 0.01))

    async with asyncio.TaskGroup() as group:
        for number, limiter in enumerate(limiters):
            for each in range(3):
                group.create_task(host(limiter, f"h{number}x{each}.example"))
    return [each for each in left if each < seconds]


def test_limiters_that_all_log_in_at_a_host_share_its_pace_and_no_other_hosts() -> None:
    plain = LimiterRules(pace=PaceRules(initial_rps=4, max_rps=4), caps={"*.slow.example": 0.5})
    of = plain.with_logins(("tokens.example", "sso.slow.example", "tokens.example"))
    store = Slices()

    async def main() -> dict[str, list[float]]:
        clock, left = LoopClock(), dict[str, list[float]]()

        async def log_in(limiter: Limiter, name: str) -> None:
            permit = await limiter.acquire(name)
            left.setdefault(name, []).append(clock.now())
            limiter.feedback(permit, Feedback(200, 0.01))

        async with asyncio.TaskGroup() as group:
            for limiter in limiters(4, of, store):
                for name in ("tokens.example", "sso.slow.example", "other.example"):
                    group.create_task(log_in(limiter, name))
        return left

    left = run_virtual(main())

    assert left == {
        "tokens.example": pytest.approx([0.0, 0.25, 0.5, 0.75]),
        "sso.slow.example": pytest.approx([0.0, 2.0, 4.0, 6.0]),
        "other.example": pytest.approx([0.0] * 4),
    }


def limiters(number: int, of: LimiterRules, store: Slices | None) -> list[Limiter]:
    return [Limiter(of, clock=LoopClock(), rng=Random(each), slices=store) for each in range(number)]


def densest(left: list[float], window: float) -> int:
    return max(sum(start <= each < start + window for each in left) for start in left)


@pytest.mark.parametrize("stand", [False, True])
@pytest.mark.parametrize("rps", [2.0, 10.0, 80.0])
def test_limiters_that_share_a_key_are_together_as_fast_as_it_allows(rps: float, stand: bool) -> None:  # noqa: FBT001
    async def main(store: Slices | None) -> list[float]:
        return await ask(limiters(8, rules(rps), store), 20.0, stand=stand)

    left = run_virtual(main(Slices()))

    assert densest(left, 1.0) <= rps * (1.0 + GRACE) + 2
    assert len(left) >= 0.9 * rps * 20
    if rps < 80.0:
        assert len(run_virtual(main(None))) > 3 * rps * 20, "so that it is the slices that this is about"


def test_who_shares_two_quotas_keeps_to_both_and_is_served() -> None:
    domain = Shared("domain", "example")

    async def main() -> list[float]:
        both = rules(10.0, domain, domain_example=6.0)
        return await ask(limiters(8, both, Slices()), 30.0)

    left = run_virtual(main())

    assert densest(left, 1.0) <= 6 * (1 + GRACE) + 2
    assert len(left) >= 0.7 * 6 * 30


def test_a_refusal_that_one_limiter_hears_is_heeded_by_all() -> None:
    async def main() -> list[float]:
        return await ask(limiters(8, rules(10.0), Slices()), 20.0, refuse_at=5.0)

    left = run_virtual(main())

    assert [each for each in left if 5.02 < each < 9.9] == []
    assert [each for each in left if each > 11]
