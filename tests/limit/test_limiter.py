import asyncio
from math import inf, isinf, nan
from random import Random
from typing import Any, Literal

import pytest
from driven import FAST, HOST, Driven, converse

from sanderling.ids import HostError
from sanderling.limit import (
    BackoffRules,
    BreakerRules,
    CircuitOpen,
    Feedback,
    HostView,
    Limiter,
    LimiterRules,
    PaceRules,
    Permit,
    Quota,
    Scope,
    Snapshot,
    WindowRules,
)
from sanderling.testing import FakeClock, LoopClock, run_virtual
from sanderling.worlds.hosts import Answer

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


# Leave to call.


def test_the_first_request_leaves_at_once_and_the_next_at_the_hosts_pace() -> None:
    async def main() -> list[float]:
        clock = LoopClock()
        limiter = Limiter(LimiterRules(pace=PaceRules(initial_rps=4)), clock=clock)
        left = []
        for _ in range(5):
            await limiter.acquire(HOST)
            left.append(clock.now())
        return left

    assert run_virtual(main()) == pytest.approx([0, 0.25, 0.5, 0.75, 1.0])


def test_hosts_do_not_hold_each_other_up() -> None:
    driven = Driven()
    driven.ask(429, retry_after=600)

    driven.take("other.example")


@pytest.mark.parametrize("prepare", ["idle", "paced", "penalised", "open", "half-open", "probed", "drained"])
def test_ready_at_says_when_try_acquire_succeeds(prepare: str) -> None:
    driven = Driven()
    prepared(driven, prepare)
    ready = driven.limiter.ready_at(HOST)

    if ready > driven.clock.now():
        assert driven.limiter.try_acquire(HOST) is None
        driven.wait_until(ready - 1e-3)
        assert driven.limiter.try_acquire(HOST) is None
        driven.wait_until(driven.limiter.ready_at(HOST))

    driven.take()


def prepared(driven: Driven, state: str) -> None:
    """Bring the host into a state."""
    match state:
        case "paced":
            driven.take()
        case "penalised":
            driven.ask(429, retry_after=77)
        case "open" | "half-open" | "probed":
            driven.trip()
            driven.clock.advance(0 if state == "open" else 400)
            if state == "probed":
                driven.take()
                driven.clock.advance(30.9)
        case "drained":
            driven.ask(429)
            driven.next()


def test_who_may_not_go_now_takes_nothing() -> None:
    driven = Driven()
    driven.take()
    before = driven.limiter.snapshot()

    for _ in range(100):
        assert driven.limiter.try_acquire(HOST) is None

    assert driven.limiter.snapshot() == before


def test_nobody_overtakes_a_waiter_by_trying() -> None:
    async def main() -> tuple[bool, bool]:
        driven = Driven()
        driven.take()
        waiter = asyncio.create_task(driven.limiter.acquire(HOST))
        await asyncio.sleep(0)
        driven.clock.advance(0.499)
        early = driven.limiter.try_acquire(HOST) is None
        driven.clock.advance(0.001)
        late = driven.limiter.try_acquire(HOST) is None
        await waiter
        return early, late

    assert run_virtual(main()) == (True, True)


def test_nobody_overtakes_a_waiter_that_is_held_up_elsewhere() -> None:
    async def main() -> tuple[Permit | None, float]:
        clock = LoopClock()
        limiter = Limiter(clock=clock)
        key = Scope("credential", "key")
        limiter.feedback(await limiter.acquire(HOST, [key]), Feedback(429, 0.1, retry_after=9, scope="credential"))
        waiter = asyncio.create_task(limiter.acquire(HOST, [key]))
        await clock.sleep(5)
        barger = limiter.try_acquire(HOST)
        await waiter
        return barger, clock.now()

    assert run_virtual(main()) == (None, 9)


def test_a_closed_circuit_says_which_host_and_until_when() -> None:
    async def main(driven: Driven) -> CircuitOpen:
        with pytest.raises(CircuitOpen, match=r"host\.example: circuit open until") as refusal:
            await driven.limiter.acquire(HOST)
        return refusal.value

    driven = Driven()
    driven.trip()

    refusal = run_virtual(main(driven))

    assert refusal.host == HOST
    assert refusal.until == driven.limiter.ready_at(HOST)
    assert 15 <= refusal.until - driven.clock.now() <= 15 * 1.3


def test_waiters_are_turned_away_when_the_circuit_opens() -> None:
    async def main() -> list[BaseException | None]:
        driven = Driven()
        permits = [driven.next() for _ in range(5)]
        waiters = [asyncio.create_task(driven.limiter.acquire(HOST)) for _ in range(3)]
        await asyncio.sleep(0)
        for permit in permits:
            driven.report(permit, 500)
        await asyncio.wait(waiters)
        return [waiter.exception() for waiter in waiters]

    refusals = run_virtual(main())

    assert [type(refusal) for refusal in refusals] == [CircuitOpen] * 3


def test_costs_are_paid_in_time() -> None:
    async def main() -> list[float]:
        clock = LoopClock()
        limiter = Limiter(LimiterRules(pace=PaceRules(initial_rps=4)), clock=clock)
        left = []
        for cost in (0.5, 3.0, 1.0):
            await limiter.acquire(HOST, cost=cost)
            left.append(clock.now())
        return left

    assert run_virtual(main()) == pytest.approx([0, 0.125, 0.875])


@pytest.mark.parametrize("cost", [0.0, -1.0, nan, inf])
def test_a_cost_is_a_positive_number(cost: float) -> None:
    async def of_the_host() -> None:
        await Limiter(clock=LoopClock()).acquire(HOST, cost=cost)

    async def of_a_scope() -> None:
        await Limiter(clock=LoopClock()).acquire(HOST, [Scope("ip", "10.0.0.1", cost)])

    for main in (of_the_host, of_a_scope):
        with pytest.raises(ValueError, match="a cost of"):
            run_virtual(main())


@pytest.mark.parametrize(
    ("scopes", "problem"),
    [
        ([Scope("planet", "earth")], "scope 'planet'; there are domain, ip, credential"),
        ([Scope("ip", "1"), Scope("domain", "x"), Scope("ip", "1", cost=2)], "named twice: domain/x, ip/1, ip/1"),
    ],
)
def test_scopes_must_be_of_a_known_kind_and_different(scopes: list[Scope], problem: str) -> None:
    async def main() -> None:
        await Limiter(clock=LoopClock()).acquire(HOST, scopes)

    with pytest.raises(ValueError, match=problem):
        run_virtual(main())


def test_a_kind_of_scope_may_have_a_pace_of_its_own() -> None:
    async def main() -> float:
        clock = LoopClock()
        rules = LimiterRules(scopes={"credential": PaceRules(initial_rps=0.5)})
        limiter = Limiter(rules, clock=clock)
        for number in range(5):
            await limiter.acquire(f"h{number}.example", [Scope("credential", "key")])
        return clock.now()

    assert run_virtual(main()) == pytest.approx(4 / 0.5)


def test_scopes_may_be_any_iterable() -> None:
    async def main() -> tuple[str, ...]:
        permit = await Limiter(clock=LoopClock()).acquire(HOST, (Scope("ip", name) for name in "ab"))
        return tuple(part.host for part in permit.also)

    assert run_virtual(main()) == ("ip/a", "ip/b")


# What comes of it.


def test_a_permit_counts_once() -> None:
    driven = Driven()
    permit = driven.take()
    driven.report(permit, 200)
    before = driven.view()

    for status in (200, 404, 500):
        driven.report(permit, status)
    driven.report(permit, 429, retry_after=600)
    permit.release()
    permit.release(sent=True)

    assert driven.view() == before
    assert before.inflight == 0


@pytest.mark.parametrize("sent", [True, False])
def test_a_permit_that_was_given_back_teaches_nothing_any_more(*, sent: bool) -> None:
    driven = Driven()
    permit = driven.take()
    permit.release(sent=sent)
    before = driven.view()

    permit.release(sent=not sent)
    driven.report(permit, 429, retry_after=600)

    assert driven.view() == before
    assert before.inflight == 0
    assert "spent" in repr(permit)


def test_a_permit_given_back_unsent_may_be_taken_again_at_once() -> None:
    driven = Driven()

    driven.take().release()

    driven.take().release(sent=True)
    assert driven.limiter.try_acquire(HOST) is None


def test_permits_given_back_late_do_not_add_up_to_a_burst() -> None:
    """Their time is over: workers that are cancelled together must not let as many others go in one instant."""
    driven = Driven()
    held = [driven.next() for _ in range(20)]
    driven.clock.advance(0.5)

    sent = 0
    for permit in held:
        sent += len(driven.take_all())
        permit.release()

    assert sent + len(driven.take_all()) == 1


def test_who_is_given_a_permit_and_cancelled_before_waking_gives_it_back() -> None:
    async def main() -> tuple[int, bool]:
        driven = Driven()
        driven.take().release(sent=True)
        waiter = asyncio.create_task(driven.limiter.acquire(HOST))
        await asyncio.sleep(0)
        driven.clock.advance(0.5)
        waiter.cancel()
        await asyncio.wait([waiter])
        return driven.view().inflight, driven.limiter.try_acquire(HOST) is not None

    assert run_virtual(main()) == (0, True)


def test_a_status_of_zero_without_an_error_teaches_nothing() -> None:
    driven = Driven()
    permit = driven.take()
    before = driven.view()

    driven.limiter.feedback(permit, Feedback())

    assert driven.view().why == before.why == "not asked yet"
    assert driven.view().inflight == 0


@pytest.mark.parametrize("status", [200, 204, 301, 304])
def test_a_success_is_a_success(status: int) -> None:
    driven = Driven()

    converse(driven, lambda _now: Answer(status, 0.1), 20)

    assert driven.view().rate == pytest.approx(8)
    assert driven.view().latency == pytest.approx(0.1)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_an_answer_that_is_neither_success_nor_trouble_leaves_the_rate(status: int) -> None:
    driven = Driven()

    converse(driven, lambda _now: Answer(status, 0.1), 20)

    assert driven.view().rate == pytest.approx(2)
    assert driven.view().state == "closed"
    assert driven.view().error_rate == 0


@pytest.mark.parametrize(
    "feedback", [Feedback(500), Feedback(502, 3.0), Feedback(error="reset"), Feedback(200, error="x")]
)
def test_failures_open_the_circuit(feedback: Feedback) -> None:
    driven = Driven()

    for _ in range(5):
        if driven.limiter.snapshot().open == 0:
            driven.limiter.feedback(driven.next(), feedback)

    assert driven.view().state == "open"
    assert driven.view().error_rate == 1


def test_any_served_answer_ends_a_drain() -> None:
    """Even a 404, or a success whose latency nobody measured: the host serves us again."""
    for served in (Feedback(404, 0.1), Feedback(200)):
        driven = Driven()
        driven.ask(429)

        driven.limiter.feedback(driven.next(), served)

        assert driven.view().why.startswith("cruising")


@pytest.mark.parametrize("latency", [0.0, -1.0, nan, inf])
def test_a_latency_that_is_none_is_not_taken_for_one(latency: float) -> None:
    driven = Driven()

    driven.limiter.feedback(driven.take(), Feedback(200, latency))

    assert driven.view().latency is None
    assert driven.view().p95 is None
    assert driven.view().state == "closed"


# Attempts.


async def attempt(limiter: Limiter, error: BaseException | None = None, status: int = 0) -> None:
    async with limiter.attempt(HOST) as call:
        await asyncio.sleep(0.25)
        if status:
            call.report(status)
        if error is not None:
            raise error


def seen_after(error: BaseException | None = None, status: int = 0) -> HostView:
    """How the host looks after one attempt."""

    async def main() -> HostView:
        limiter = Limiter(clock=LoopClock())
        try:
            await attempt(limiter, error, status)
        except BaseException as raised:
            if raised is not error:
                raise
        return limiter.snapshot().top[0]

    return run_virtual(main())


@pytest.mark.parametrize("error", [OSError("reset"), ConnectionRefusedError(), TimeoutError()])
def test_an_os_error_counts_as_a_failure_of_the_host(error: OSError) -> None:
    seen = seen_after(error)

    assert seen.failures == 1
    assert seen.inflight == 0


@pytest.mark.parametrize("error", [ValueError("ours"), KeyboardInterrupt(), asyncio.CancelledError()])
def test_another_error_teaches_nothing_and_its_request_counts_as_sent(error: BaseException) -> None:
    seen = seen_after(error)

    assert (seen.failures, seen.inflight, seen.why) == (0, 0, "not asked yet")
    assert seen.tokens == pytest.approx(0.5), "a quarter of a second at two a second"


def test_a_cancelled_attempt_teaches_nothing_and_its_request_counts_as_sent() -> None:
    async def main() -> HostView:
        limiter = Limiter(clock=LoopClock())
        task = asyncio.create_task(attempt(limiter))
        await asyncio.sleep(0.125)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        return limiter.snapshot().top[0]

    seen = run_virtual(main())

    assert (seen.failures, seen.inflight, seen.why) == (0, 0, "not asked yet")
    assert seen.tokens == pytest.approx(0.25)


def test_an_attempt_that_ends_in_silence_has_sent_nothing() -> None:
    seen = seen_after()

    assert (seen.inflight, seen.tokens, seen.why) == (0, 1, "not asked yet")


@pytest.mark.parametrize("error", [None, ValueError(), OSError(), asyncio.CancelledError()])
def test_what_was_reported_counts_whatever_is_raised_afterwards(error: BaseException | None) -> None:
    seen = seen_after(error, status=200)

    assert (seen.inflight, seen.failures) == (0, 0)
    assert seen.latency == pytest.approx(0.25), "the time since the permit was given"


def test_an_attempt_may_state_its_latency_and_what_the_host_asked_for() -> None:
    async def main() -> HostView:
        limiter = Limiter(clock=LoopClock())
        async with limiter.attempt(HOST) as call:
            call.report(200, latency=3.0)
        async with limiter.attempt(HOST) as call:
            call.report(429, retry_after=60)
        return limiter.snapshot().top[0]

    seen = run_virtual(main())

    assert seen.latency == 3
    assert seen.not_before == pytest.approx(60)


def seen_after_headers(headers: dict[str, str], retry_after: float | None = None) -> HostView:
    """How the host looks after an answer with these headers."""

    async def main() -> HostView:
        limiter = Limiter(clock=LoopClock())
        async with limiter.attempt(HOST) as call:
            call.report(429, headers, latency=0.1, retry_after=retry_after)
        return limiter.snapshot().top[0]

    return run_virtual(main())


@pytest.mark.parametrize("name", ["Retry-After", "retry-after", "RETRY-AFTER"])
def test_an_attempt_reads_what_the_headers_ask_for_in_whichever_case(name: str) -> None:
    assert seen_after_headers({name: "60"}).not_before == pytest.approx(60)


def test_a_date_is_measured_by_the_clock_of_the_server() -> None:
    headers = {"date": "Sun, 06 Nov 1994 08:49:37 GMT", "retry-after": "Sun, 06 Nov 1994 08:50:07 GMT"}

    assert seen_after_headers(headers).not_before == pytest.approx(30)


def test_rate_headers_are_heeded_and_retry_after_goes_before_them() -> None:
    rate = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "600"}

    assert seen_after_headers(rate).not_before == pytest.approx(600)
    assert seen_after_headers(rate | {"Retry-After": "10"}).not_before == pytest.approx(10)


def test_what_the_caller_says_goes_before_the_headers() -> None:
    assert seen_after_headers({"Retry-After": "10"}, retry_after=20).not_before == pytest.approx(20)


def test_headers_that_cannot_be_read_are_ignored() -> None:
    assert seen_after_headers({"Retry-After": "soon", "X-RateLimit-Remaining": "few"}).not_before == 0


def test_a_closed_circuit_never_enters_the_body() -> None:
    async def main(driven: Driven) -> None:
        async with driven.limiter.attempt(HOST):
            raise AssertionError("entered")

    driven = Driven()
    driven.trip()

    with pytest.raises(CircuitOpen):
        run_virtual(main(driven))


# What the host says about its pace.


@pytest.mark.parametrize("retry_after", [-1.0, nan, None, -inf])
def test_a_retry_after_that_is_none_is_ignored(retry_after: float | None) -> None:
    driven = Driven()

    driven.ask(429, retry_after=retry_after)

    assert driven.view().not_before == 0
    assert driven.limiter.ready_at(HOST) < 1


@pytest.mark.parametrize("retry_after", [-1.0, nan])
def test_a_retry_after_that_is_none_directs_nobody(retry_after: float) -> None:
    driven = Driven()

    for _ in range(3):
        driven.ask(503, retry_after=retry_after)

    assert driven.view().state == "open"


@pytest.mark.parametrize("retry_after", [1e18, inf, 400 * 86_400.0])
def test_a_retry_after_of_ages_is_a_year(retry_after: float) -> None:
    driven = Driven()

    driven.ask(429, retry_after=retry_after)

    assert driven.view().not_before == 366 * 86_400


def test_a_retry_after_is_never_shortened() -> None:
    driven = Driven()
    permits = [driven.next() for _ in range(3)]

    for permit, wait in zip(permits, (10, 600, 5), strict=True):
        driven.report(permit, 429, retry_after=wait)

    assert driven.view().not_before == pytest.approx(600)


@pytest.mark.parametrize("strategy", ["governor", "aimd"])
def test_a_permit_given_back_does_not_shorten_it(strategy: Literal["governor", "aimd"]) -> None:
    driven = Driven(LimiterRules(strategy=strategy))
    answered, given_back = driven.next(), driven.next()
    driven.report(answered, 200, retry_after=60)

    given_back.release()

    assert driven.limiter.ready_at(HOST) >= driven.clock.now() + 60


@pytest.mark.parametrize("strategy", ["governor", "aimd"])
def test_a_rate_that_rises_does_not_shorten_it(strategy: Literal["governor", "aimd"]) -> None:
    driven = Driven(LimiterRules(strategy=strategy, pace=PaceRules(initial_rps=20, max_rps=100)))
    converse(driven, lambda _now: Answer(200, 0.01), 0.999)

    driven.ask(200, latency=0.05, retry_after=60)

    assert driven.view().rate > 20
    assert driven.limiter.ready_at(HOST) >= driven.clock.now() + 60


@pytest.mark.parametrize("status", [200, 301, 429, 503])
def test_a_retry_after_is_heeded_with_any_status(status: int) -> None:
    driven = Driven()

    driven.ask(status, retry_after=60)

    assert driven.view().not_before == pytest.approx(60)
    assert driven.view().why.startswith("told to wait another 60")


def quota(driven: Driven, remaining: float, resets_in: float, window: float | None = None) -> None:
    permit = driven.next()
    driven.limiter.feedback(permit, Feedback(200, 0.1, quota=Quota(remaining, resets_in, window=window)))


def test_what_remains_is_spread_over_the_time_to_the_reset() -> None:
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=8)))

    quota(driven, remaining=100, resets_in=100)

    assert driven.view().rate == pytest.approx(0.95), "with a reserve of a twentieth"
    assert driven.view().why == "its rate headers say how much is left"


def test_a_generous_quota_raises_nothing() -> None:
    driven = Driven()

    quota(driven, remaining=10_000, resets_in=1)

    assert driven.view().rate == pytest.approx(2)


def test_after_the_reset_the_learned_rate_counts_again() -> None:
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=8)))
    quota(driven, remaining=30, resets_in=60)

    driven.clock.advance(60)
    driven.ask()

    assert driven.view().rate >= 8


def test_when_nothing_remains_we_stay_away_until_the_reset() -> None:
    driven = Driven()

    quota(driven, remaining=0, resets_in=60)

    assert driven.view().not_before == pytest.approx(60)


@pytest.mark.parametrize(("window", "wait"), [(60.0, 60.0), (None, 3600.0)])
def test_a_reset_further_off_than_its_window_is_not_believed(window: float | None, wait: float) -> None:
    driven = Driven()

    quota(driven, remaining=0, resets_in=1e6, window=window)

    assert driven.view().not_before == pytest.approx(wait)


def test_retry_after_goes_before_the_rate_headers() -> None:
    driven = Driven()
    permit = driven.take()

    driven.limiter.feedback(permit, Feedback(429, 0.1, retry_after=10, quota=Quota(0, 600)))

    assert driven.view().not_before == pytest.approx(10)


# Clocks.


@pytest.mark.parametrize("back", [0.1, 100.0, 1e9])
def test_a_clock_that_goes_back_neither_frees_nor_blocks(back: float) -> None:
    driven = Driven(now=1000)
    driven.take()

    driven.clock.jump_back(back)
    assert driven.limiter.try_acquire(HOST) is None

    driven.clock.advance(0.4)
    assert driven.limiter.try_acquire(HOST) is None
    driven.clock.advance(0.2)
    driven.take()


def test_a_penalty_is_served_in_full_on_a_clock_that_goes_back() -> None:
    driven = Driven(now=1000)
    driven.ask(429, retry_after=10)

    driven.clock.jump_back(500)
    driven.limiter.ready_at(HOST)
    driven.clock.advance(9.9)
    assert driven.limiter.try_acquire(HOST) is None

    driven.clock.advance(0.5)
    driven.take()


def test_a_waiter_is_served_on_a_clock_that_goes_back() -> None:
    """What passed between the last look and the jump is lost, so it may wait as long again, but no longer."""

    async def main() -> bool:
        driven = Driven(now=1000)
        driven.take()
        waiter = asyncio.create_task(driven.limiter.acquire(HOST))
        await asyncio.sleep(0)
        driven.clock.jump_back(500)
        driven.clock.advance(1.0)
        await asyncio.sleep(0)
        return waiter.done()

    assert run_virtual(main())


@pytest.mark.parametrize("now", [-1e6, -1.0, 0.0, 1e9])
def test_a_clock_may_count_from_anywhere(now: float) -> None:
    driven = Driven(now=now)

    driven.take().release()
    driven.ask()
    driven.ask(429, retry_after=10)

    assert driven.clock.now() < now + 1
    assert driven.limiter.ready_at(HOST) == pytest.approx(driven.clock.now() + 10, abs=0.5)


def test_the_system_clock_is_the_default() -> None:
    async def main() -> Permit:
        return await Limiter().acquire(HOST)

    assert asyncio.run(main()).host == HOST


class WallClock(FakeClock):
    """Counts where nothing should be read."""

    reads = 0

    def wall(self) -> float:
        self.reads += 1
        return super().wall()


def test_leave_to_call_does_not_hang_on_the_wall_clock() -> None:
    clock = WallClock()
    limiter = Limiter(clock=clock)
    limiter.try_acquire(HOST)
    limiter.snapshot()
    limiter.forget_idle()
    assert clock.reads == 0

    limiter.restore(limiter.save())

    assert clock.reads == 2


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

    for number in range(10_000):
        driven.take(f"h{number}.example").release(sent=True)
        driven.clock.advance(0.001)
        assert len(driven.limiter._gates) <= 100

    assert driven.limiter.snapshot().requests == 10_000, "those let go are still counted"


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


# Retries.


def test_a_retry_waits_with_full_jitter_and_ends() -> None:
    driven = Driven(LimiterRules(backoff=BackoffRules(base=1, longest=3, attempts=3)))

    assert 0 <= (driven.limiter.plan_retry(HOST, 1) or 9) <= 1
    assert 0 <= (driven.limiter.plan_retry(HOST, 2) or 9) <= 2
    assert driven.limiter.plan_retry(HOST, 3) is None
    assert driven.limiter.snapshot().retries == 2


def test_a_refund_for_a_host_without_a_budget_is_harmless() -> None:
    driven = Driven()

    driven.limiter.refund_retry(HOST)

    assert driven.limiter.snapshot().retries == 0


# Looking at it.


def test_a_new_limiter_has_nothing_to_show() -> None:
    snapshot = Driven().limiter.snapshot()

    assert snapshot.top == ()
    assert (snapshot.requests, snapshot.hosts, snapshot.open, snapshot.half_open) == (0, 0, 0, 0)
    assert isinf(snapshot.waits[-1][0])


def test_a_host_is_shown_as_it_stands() -> None:
    driven = Driven(LimiterRules(pace=PaceRules(initial_rps=2)))
    driven.ask(200, latency=0.25)
    driven.ask(200, latency=0.25)
    driven.ask(500)
    driven.next()

    seen = driven.view()

    assert seen.host == HOST
    assert (seen.requests, seen.rejected, seen.inflight, seen.waiting) == (4, 0, 1, 0)
    assert (seen.state, seen.failures, seen.not_before) == ("closed", 1, 0)
    assert (seen.rate, seen.tokens) == (2, 0)
    assert (seen.latency, seen.p95, seen.ceiling) == (0.25, 0.25, None)
    assert seen.error_rate == pytest.approx(1 / 3)
    assert seen.why == "growing until the host objects"


def test_the_hosts_asked_most_come_first() -> None:
    driven = Driven()
    for number, requests in enumerate((2, 5, 1, 4)):
        for _ in range(requests):
            driven.ask(host=f"h{number}.example")

    snapshot = driven.limiter.snapshot(top=3)

    assert [(view.host, view.requests) for view in snapshot.top] == [
        ("h1.example", 5),
        ("h3.example", 4),
        ("h0.example", 2),
    ]
    assert snapshot.hosts == 4
    assert snapshot.requests == 12


def test_circuits_are_counted_by_state() -> None:
    driven = Driven()
    driven.trip("half.example")
    driven.clock.advance(400)
    driven.take("half.example")
    driven.trip("open.example")
    driven.take("closed.example")

    snapshot = driven.limiter.snapshot()

    assert (snapshot.open, snapshot.half_open) == (1, 1)


def test_refusals_are_counted_even_after_their_host_is_gone() -> None:
    driven = Driven(LimiterRules(hosts=1))
    driven.ask(429, host="a.example")
    driven.ask(503, host="b.example")
    driven.ask(500, host="c.example")

    assert driven.limiter.snapshot().rejected == 2
    assert driven.limiter.snapshot().requests == 3


async def waits(limiter: Limiter, callers: int) -> Snapshot:
    async with asyncio.TaskGroup() as group:
        for _ in range(callers):
            group.create_task(limiter.acquire(HOST))
    return limiter.snapshot()


def test_waits_add_up_to_the_requests() -> None:
    async def main() -> Snapshot:
        limiter = Limiter(clock=LoopClock())
        limiter.try_acquire("other.example")
        return await waits(limiter, 12)

    snapshot = run_virtual(main())

    assert snapshot.requests == sum(count for _, count in snapshot.waits) == 13
    assert dict(snapshot.waits) == {0.01: 2, 0.05: 0, 0.1: 0, 0.5: 1, 1.0: 1, 5.0: 8, 10.0: 1, 60.0: 0, inf: 0}
    assert snapshot.throttled == 11
    assert snapshot.waited == pytest.approx(sum(range(12)) / 2)


def test_a_waiter_is_shown_while_it_waits() -> None:
    async def main() -> tuple[int, str]:
        clock = LoopClock()
        limiter = Limiter(clock=clock)
        async with asyncio.TaskGroup() as group:
            for _ in range(5):
                group.create_task(limiter.acquire(HOST))
            await clock.sleep(0.6)
            return limiter.snapshot().top[0].waiting, repr(limiter)

    assert run_virtual(main()) == (3, "<Limiter governor, 1 hosts, 3 waiting>")


def test_who_was_turned_away_is_counted_as_denied() -> None:
    async def main(driven: Driven) -> None:
        for _ in range(3):
            with pytest.raises(CircuitOpen):
                await driven.limiter.acquire(HOST)

    driven = Driven()
    driven.trip()
    run_virtual(main(driven))

    assert driven.limiter.snapshot().denied == 3


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ("idle", "not asked yet"),
        ("penalised", "told to wait another 77.0 s"),
        ("open", "circuit open for another"),
        ("probed", "circuit half open: one probe at a time"),
        ("drained", "refused; one probe at a time until it opens"),
    ],
)
def test_a_snapshot_says_why_in_words(state: str, why: str) -> None:
    driven = Driven()
    driven.limiter.ready_at(HOST)

    prepared(driven, state)

    assert driven.view().why.startswith(why)


def test_a_live_permit_says_so() -> None:
    assert repr(Driven().take()) == "<Permit 1 for host.example, live>"


# Rules that contradict themselves.


@pytest.mark.parametrize("value", [0.0, -1.0, nan, inf])
@pytest.mark.parametrize(
    "name", ["initial_rps", "min_rps", "max_rps", "burst", "increase", "latency_target", "degrade_factor", "decrease"]
)
def test_every_number_of_a_pace_is_positive_and_finite(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        PaceRules(**{name: value})


@pytest.mark.parametrize(
    ("rules", "field"),
    [
        ({"min_rps": 3.0}, "min_rps 3.0, initial_rps 2.0"),
        ({"initial_rps": 9.0}, "initial_rps 9.0, max_rps 8.0"),
        ({"burst": 0.5}, "burst is 0.5"),
        ({"degrade_factor": 1.0}, "degrade_factor is 1.0"),
        ({"decrease": 1.0}, "decrease is 1.0"),
    ],
)
def test_a_pace_that_contradicts_itself_is_refused(rules: dict[str, float], field: str) -> None:
    with pytest.raises(ValueError, match=field):
        PaceRules(**rules)


@pytest.mark.parametrize(
    ("rules", "field"),
    [
        ({"consecutive": 0}, "consecutive is 0"),
        ({"probes": 0}, "probes 0"),
        ({"error_share": 0}, "error_share is 0"),
        ({"error_share": 1}, "error_share is 1"),
        ({"error_share": nan}, "error_share is nan"),
        ({"open_for": 0}, "open_for is 0"),
        ({"open_for": 301}, "open_for is 301, longest 300"),
        ({"open_for": nan}, "open_for is nan"),
        ({"longest": inf}, "longest inf"),
        ({"jitter": -0.1}, "jitter is -0.1"),
        ({"jitter": nan}, "jitter is nan"),
    ],
)
def test_a_breaker_that_contradicts_itself_is_refused(rules: dict[str, int], field: str) -> None:
    with pytest.raises(ValueError, match=field):
        BreakerRules(**rules)


@pytest.mark.parametrize(
    ("rules", "field"),
    [
        ({"span": 0}, "span is 0"),
        ({"span": nan}, "span is nan"),
        ({"bucket": inf}, "bucket is inf"),
        ({"bucket": 31}, "bucket 31 s is longer than the span"),
        ({"bucket": 0.001}, "over 1000 buckets"),
    ],
)
def test_a_window_that_contradicts_itself_is_refused(rules: dict[str, float], field: str) -> None:
    with pytest.raises(ValueError, match=field):
        WindowRules(**rules)


@pytest.mark.parametrize(
    ("rules", "field"),
    [
        ({"strategy": "guess"}, "strategy is 'guess'; there are aimd, governor"),
        ({"idle": 0}, "idle is 0"),
        ({"idle": inf}, "idle is inf"),
        ({"lease": nan}, "lease is nan"),
        ({"hosts": 0}, "hosts is 0"),
        ({"scopes": {"planet": PaceRules()}}, r"scopes \['planet'\]; there are domain, ip, credential"),
    ],
)
def test_a_limiter_that_contradicts_itself_is_refused(rules: dict[str, Any], field: str) -> None:
    with pytest.raises(ValueError, match=field):
        LimiterRules(**rules)


@pytest.mark.parametrize(("strategy", "rate"), [("aimd", 2.5), ("governor", 5.0)])
def test_the_strategy_can_be_chosen(strategy: Literal["aimd", "governor"], rate: float) -> None:
    """After a refusal one goes on at half the rate, the other stops and probes."""
    driven = Driven(LimiterRules(strategy=strategy, pace=FAST))

    driven.ask(429, retry_after=0.0)

    assert driven.view().rate == pytest.approx(rate)


def test_what_was_not_saved_by_a_limiter_is_refused() -> None:
    limiter = Limiter(clock=FakeClock(), rng=Random(1))

    with pytest.raises(ValueError, match="not a saved limiter"):
        limiter.restore(b"{")


@pytest.mark.parametrize("strategy", ["governor", "aimd"])
def test_who_does_not_measure_latency_may_still_go_faster(strategy: Literal["governor", "aimd"]) -> None:
    clock = FakeClock()
    limiter = Limiter(LimiterRules(strategy=strategy), clock=clock)

    for _ in range(400):
        clock.advance(0.1)
        if (permit := limiter.try_acquire(HOST)) is not None:
            limiter.feedback(permit, Feedback(status=200))

    assert limiter.snapshot().top[0].rate > 2.5
