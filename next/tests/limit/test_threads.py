"""The limiter for threads."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Barrier

import pytest

from sanderling.limit import CircuitOpen, ThreadLimiter
from sanderling.outcome import Code, Outcome

pytestmark = pytest.mark.real
HOST = "host.example"
THREADS = 32


def in_threads(work: Callable[[int], object], threads: int = THREADS) -> None:
    with ThreadPoolExecutor(threads) as pool:
        for each in [pool.submit(work, number) for number in range(threads)]:
            each.result(timeout=60)


def until_waiting(limiter: ThreadLimiter, callers: int) -> None:
    while limiter.snapshot().hosts[0].waiting < callers:
        time.sleep(0.001)


def test_threads_get_20_000_permits_a_second_and_no_host_is_above_its_rate() -> None:
    """By the CPU they take, since other programs may have the rest; the rate by the limiter's clock."""
    rate, capacity, hosts = 400.0, 20.0, 100
    limiter = ThreadLimiter(
        policy="fixed", initial_rps=rate, min_rps=rate, max_rps=rate, token_bucket_capacity=capacity
    )
    sent: list[list[tuple[str, float]]] = [[] for _ in range(THREADS)]

    def work(thread: int) -> None:
        for number in range(1000):
            permit = limiter.acquire(f"h{(7 * number + thread) % hosts}.example")
            sent[thread].append((permit.host, permit.sent_at))
            permit.report(Outcome(Code.OK, 200), latency=0.1)

    began = time.process_time()
    in_threads(work)
    seconds = time.process_time() - began

    assert 1000 * THREADS / seconds >= 20_000
    by_host = defaultdict(list)
    for host, at in sorted((each for thread in sent for each in thread), key=lambda each: each[1]):
        by_host[host].append(at)
    for instants in by_host.values():
        for start in range(0, len(instants), 10):
            assert len(instants) - start <= capacity + 1 + rate * (instants[-1] - instants[start])


def test_threads_are_served_in_the_order_they_came() -> None:
    limiter = ThreadLimiter(policy="fixed", max_rps=1000, token_bucket_capacity=1)
    limiter.try_acquire(HOST)
    limiter.set_cap(HOST, 0.001, "so that they wait")
    order: list[int] = []

    def work(thread: int) -> None:
        if thread == 8:
            until_waiting(limiter, 8)
            limiter.set_cap(HOST, None)
            return
        if thread:
            until_waiting(limiter, thread)
        limiter.acquire(HOST)
        order.append(thread)

    in_threads(work, 9)

    assert order == list(range(8))


def test_threads_that_wait_are_told_when_the_circuit_opens() -> None:
    limiter = ThreadLimiter(policy="aimd", consecutive_fail_threshold=2, token_bucket_capacity=1, initial_rps=0.001)
    limiter.try_acquire(HOST)
    told = Counter[str]()

    def work(thread: int) -> None:
        if thread == 8:
            until_waiting(limiter, 8)
            for _ in range(2):
                limiter.feedback(HOST, status=503)
            return
        with pytest.raises(CircuitOpen):
            limiter.acquire(HOST)
        told["denied"] += 1

    in_threads(work, 9)

    assert told["denied"] == limiter.snapshot().denied == 8


def test_nothing_is_lost_between_threads() -> None:
    limiter = ThreadLimiter(policy="aimd", initial_rps=1e5, max_rps=1e5, token_bucket_capacity=1e6, max_hosts=20)
    barrier = Barrier(8)

    def work(thread: int) -> None:
        random = Random(thread)
        barrier.wait(30)
        for number in range(500):
            host = f"h{random.randrange(10)}.example"
            if number % 2:
                with limiter.attempt(host) as attempt:
                    attempt.report(random.choice((200, 404)), latency=0.01)
            elif permit := limiter.try_acquire(host):
                permit.release()
            limiter.snapshot()
            limiter.evict_idle()

    in_threads(work, 8)

    total = limiter.snapshot()
    assert total.total_requests == 8 * 500
    assert all(each.in_flight == each.waiting == 0 for each in total.hosts)


def test_what_leaves_the_body_is_learned_if_it_is_the_hosts() -> None:
    limiter = ThreadLimiter(policy="aimd")

    with pytest.raises(ConnectionError), limiter.attempt(HOST):
        raise ConnectionError
    with pytest.raises(KeyError), limiter.attempt(HOST):
        raise KeyError

    assert limiter.snapshot().hosts[0].consecutive_fails == 1
