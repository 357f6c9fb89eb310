"""Attempts that report for themselves however they end, and the retries after them."""

import asyncio

import pytest
from driven import HOST, Driven

from sanderling.limit import BackoffRules, CircuitOpen, HostView, Limiter, LimiterRules
from sanderling.testing import LoopClock, run_virtual

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


def test_a_closed_circuit_never_enters_the_body() -> None:
    async def main(driven: Driven) -> None:
        async with driven.limiter.attempt(HOST):
            raise AssertionError("entered")

    driven = Driven()
    driven.trip()

    with pytest.raises(CircuitOpen):
        run_virtual(main(driven))


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
