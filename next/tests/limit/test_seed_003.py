"""Seed 003, sentence by sentence, with its policy `aimd`: sections 6 to 18, and the tests of section 14 by number.

Tests 10 and 11 of section 14 come with the crawler. Section 1 is played in `test_measures.py`.
"""

import asyncio
from math import inf
from random import Random
from typing import Any

import msgspec
import pytest

from sanderling.clock import FakeClock, LoopClock, run_virtual
from sanderling.fetch import RequestOptions, limiter_for
from sanderling.limit import CircuitOpen, HostFigures, Limiter, LimitOptions, Permit
from sanderling.limit.bucket import Bucket
from sanderling.limit.windows import ErrorWindow

HOST = "host.example"


class Play:
    """One host, requested on a fake clock through the seed's interface."""

    def __init__(self, **fields: Any) -> None:
        self.clock = FakeClock()
        self.limiter = Limiter(clock=self.clock, random=Random(3), policy="aimd", **fields)

    def take(self) -> Permit | None:
        return self.limiter.try_acquire(HOST)

    def burst(self) -> int:
        """How many requests may leave at once."""
        count = 0
        while count < 1000 and self.take() is not None:
            count += 1
        return count

    def wait(self) -> float:
        """Seconds until the next request may leave."""
        return max(0.0, self.limiter.ready_at(HOST) - self.clock.now())

    def feed(self, *statuses: int, latency: float = 0.1, **more: Any) -> None:
        for status in statuses:
            self.limiter.feedback(HOST, status=status, latency=latency, **more)

    @property
    def host(self) -> HostFigures:
        return self.limiter.snapshot().hosts[0]

    @property
    def rate(self) -> float:
        return self.host.fill_rate


# 14.1 and section 3: normalisation.


@pytest.mark.parametrize(
    ("spelling", "same"),
    [
        ("Example.COM", "example.com"),
        ("example.com:80", "example.com"),
        ("example.com:443", "example.com"),
        ("example.com:8080", "example.com:8080"),
        ("example.com.", "example.com"),
        ("[2001:DB8::1]:443", "[2001:db8::1]"),
        ("2001:db8::1", "[2001:db8::1]"),
        ("bücher.example", "xn--bcher-kva.example"),
    ],
)
def test_14_1_domains_are_normalised(spelling: str, same: str) -> None:
    limiter = Limiter(clock=FakeClock(), policy="aimd")

    permit = limiter.try_acquire(spelling)

    assert permit is not None
    assert permit.host == same


# 14.2 and section 7.1: the token bucket.


def test_14_2_a_full_bucket_gives_its_capacity_at_once_and_refills_at_the_rate() -> None:
    play = Play(initial_rps=2, token_bucket_capacity=4)

    assert play.burst() == 4
    assert play.wait() == pytest.approx(0.5)  # (1 - tokens) / fillRate
    play.clock.advance(1.0)
    assert play.burst() == 2
    play.clock.advance(3600)
    assert play.burst() == 4  # the cap


def test_tokens_that_are_there_stay_when_the_rate_changes() -> None:
    bucket = Bucket(2.0, 4.0, 0.0)
    for _ in range(3):
        bucket.take(0.0)

    bucket.set_rate(0.5, 4.0, 0.5)

    assert bucket.tokens(0.5) == pytest.approx(2.0)
    bucket.take(0.5)
    bucket.take(0.5)
    assert bucket.ready == pytest.approx(2.5)


# 14.3 and section 7.1: AIMD.

RATES: list[tuple[str, dict[str, Any], float]] = [
    ("a fast success adds alpha", {"status": 200, "latency": 0.5}, 4.25),
    ("a redirect is one too", {"status": 304, "latency": 0.5}, 4.25),
    ("between the target and twice the target nothing changes", {"status": 200, "latency": 1.5}, 4.0),
    ("nor without a latency", {"status": 200}, 4.0),
    ("a slow success multiplies by beta", {"status": 200, "latency": 2.0}, 2.0),
    ("a 429 does", {"status": 429, "latency": 0.1}, 2.0),
    ("a 503 does", {"status": 503, "latency": 0.1}, 2.0),
    ("a 500 does, as section 9 says", {"status": 500, "latency": 0.1}, 2.0),
    ("no response does", {"error": TimeoutError()}, 2.0),
    ("other 4xx change nothing", {"status": 404, "latency": 0.1}, 4.0),
    ("slow 4xx neither", {"status": 404, "latency": 9.0}, 4.0),
    ("a Retry-After does, once", {"status": 429, "latency": 0.1, "retry_after": 9}, 2.0),
    ("neither status nor error says nothing", {"latency": 9.0}, 4.0),
]


@pytest.mark.parametrize(("feedback", "rate"), [row[1:] for row in RATES], ids=[row[0] for row in RATES])
def test_14_3_the_rate_after_one_response(feedback: dict[str, Any], rate: float) -> None:
    play = Play(initial_rps=4, latency_target=1, latency_degrade_factor=2)
    play.take()

    play.limiter.feedback(HOST, **feedback)

    assert play.rate == rate


def test_14_3_the_rate_stays_between_its_floor_and_its_ceiling() -> None:
    play = Play(initial_rps=2, min_rps=0.5, max_rps=2.5, consecutive_fail_threshold=99, min_samples_to_trip=99)
    play.take()

    play.feed(200, 200, 200)
    assert play.rate == 2.5
    play.feed(*[429] * 9)
    assert play.rate == 0.5


def test_the_latency_target_follows_the_average_and_a_response_is_compared_before_it_enters_it() -> None:
    play = Play(initial_rps=4, max_rps=100, latency_target=1, latency_degrade_factor=2)
    play.take()

    for latency in (0.1, 0.1, 0.1):  # the average: 0.82, 0.676, 0.5608
        play.feed(200, latency=latency)
    assert play.host.avg_latency == pytest.approx(0.5608)
    play.feed(200, latency=1.0)  # between once and twice the average; at first it would have been fast
    assert play.rate == pytest.approx(4.75)
    play.feed(200, latency=1.3)  # the average is 0.64864 by now; at first it would have been bearable
    assert play.rate == pytest.approx(2.375)


def test_no_response_below_20_ms_is_slow() -> None:
    play = Play(initial_rps=4, latency_target=0.001)
    play.take()

    play.feed(200, latency=0.0199)
    assert play.rate == 4
    play.feed(200, latency=0.02)
    assert play.rate == 2


def test_the_p95_is_of_the_last_64() -> None:
    play = Play()
    play.take()

    for latency in [9.0] * 10 + [0.01 * number for number in range(1, 65)]:
        play.feed(200, latency=latency)

    assert play.host.p95_latency == pytest.approx(0.61)


# 14.4 and section 7.2: the window.


def test_14_4_errors_leave_the_window_bucket_by_bucket() -> None:
    window = ErrorWindow(30.0, 2.0)
    for second in range(10):
        window.count(float(second), failed=second % 2 == 1)

    assert (window.errors, window.total, window.error_rate) == (5, 10, 0.5)
    window.expire(29.9)
    assert window.total == 10
    for now, left in ((30.0, 8), (31.9, 8), (32.0, 6), (36.0, 2), (38.0, 0)):
        window.expire(now)
        assert window.total == left
    assert window.error_rate == 0


@pytest.mark.parametrize(("window", "bucket"), [(30.0, 2.0), (30.0, 7.0), (1.0, 1.0), (2.5, 1.0), (3e4, 1e4)])
def test_the_window_counts_what_counting_would(window: float, bucket: float) -> None:
    random, counted, now = Random(window + bucket), ErrorWindow(window, bucket), 0.0
    seen: list[tuple[int, bool]] = []
    for _ in range(500):
        now += random.expovariate(1.0) * random.choice((0.1, 1.0, 20.0))
        failed = random.random() < 0.3
        counted.count(now, failed=failed)
        seen.append((int(now // bucket), failed))
        buckets = -(-window // bucket)
        kept = [failed for index, failed in seen if index > now // bucket - buckets]
        assert (counted.errors, counted.total) == (sum(kept), len(kept))


# 14.5, sections 6.3 and 7.3: the circuit. Its table is in `test_breaker.py`.


def test_14_5_the_circuit_through_all_its_states() -> None:
    play = Play(open_state_duration=15, half_open_probes=3, token_bucket_capacity=100, max_rps=100)
    play.take()
    play.feed(503, 429, 500, 503)
    assert play.host.state == "closed"
    play.limiter.feedback(HOST, error="connection reset")
    assert play.host.state == "open"  # five in a row
    assert play.take() is None

    play.clock.advance(14.999)
    assert play.take() is None
    play.clock.advance(0.001)
    assert play.burst() == 3  # as many probes as are configured
    assert play.host.state == "half-open"
    play.feed(200, 503)
    assert play.host.state == "open"  # by the first failure
    assert play.wait() == 15.0  # exactly, and not for longer than the first time

    play.clock.advance(15)
    for _ in range(3):
        assert play.host.state != "closed"
        assert play.take() is not None
        play.feed(200)
    assert play.host.state == "closed"
    assert (play.host.error_rate, play.host.consecutive_fails) == (0, 0)  # closing empties the window
    play.feed(503)
    assert play.host.state == "closed"


def test_the_share_of_failures_opens_the_circuit_once_there_are_enough_samples() -> None:
    play = Play(error_rate_threshold=0.5, min_samples_to_trip=10, consecutive_fail_threshold=99)
    play.take()

    play.feed(503, 200, 503, 200, 503, 200, 503, 200, 503)
    assert play.host.state == "closed"  # 5 of 9
    play.feed(200)
    assert play.host.state == "open"  # 5 of 10: a success may be the sample that was missing


def test_responses_of_before_the_circuit_moved_are_no_probes() -> None:
    play = Play(consecutive_fail_threshold=1, half_open_probes=1, token_bucket_capacity=9)
    early, late = play.take(), play.take()
    assert early
    assert late
    play.feed(503)
    play.clock.advance(15)
    probe = play.take()
    assert probe
    assert probe.probe

    assert play.take() is None
    early.release()
    assert play.take() is None  # its place is not the probe's
    probe.release()
    assert play.take() is not None


# 14.6, sections 7.4 and 12: retries.


def test_14_6_pauses_double_up_to_the_longest_and_are_drawn_from_nothing_to_the_whole() -> None:
    play = Play(retry_base_delay=0.2, retry_max_delay=1.0, retry_max_attempts=6)

    for attempts, longest in enumerate((0.2, 0.4, 0.8, 1.0, 1.0), 1):
        drawn = [play.limiter.plan_retry(HOST, attempts, status=503) for _ in range(300)]
        pauses = [pause for pause in drawn if pause is not None]
        assert len(pauses) == 300
        assert 0 <= min(pauses) < 0.05 * longest
        assert 0.95 * longest < max(pauses) <= longest
        assert sum(pauses) / 300 == pytest.approx(longest / 2, rel=0.1)
    assert play.limiter.plan_retry(HOST, 6, status=503) is None
    assert play.limiter.snapshot().retries == 5 * 300


@pytest.mark.parametrize(
    ("status", "again"),
    [(429, True), (502, True), (503, True), (504, True), (500, False), (200, False)]
    + [(status, False) for status in (400, 401, 403, 404)],
)
def test_12_transient_and_permanent_codes(status: int, again: bool) -> None:
    assert (Play().limiter.plan_retry(HOST, 1, status=status) is not None) is again


def test_12_codes_are_configurable_and_errors_are_transient() -> None:
    limiter = Play(transient_codes=(404, 500), permanent_codes=(500,)).limiter

    assert limiter.plan_retry(HOST, 1, status=404) is not None
    assert limiter.plan_retry(HOST, 1, status=500) is None  # a code that is both is permanent
    assert limiter.plan_retry(HOST, 1, status=503) is None
    assert limiter.plan_retry(HOST, 1, error=TimeoutError()) is not None
    assert limiter.plan_retry(HOST, 3, error=TimeoutError()) is None
    with pytest.raises(ValueError, match="attempts"):
        limiter.plan_retry(HOST, 0, status=404)


# 14.7 and section 7.5: Retry-After.


def test_14_7_acquire_waits_for_a_retry_after() -> None:
    async def play() -> list[float]:
        clock = LoopClock()
        limiter = Limiter(clock=clock, policy="aimd")
        permit = await limiter.acquire(HOST)
        limiter.feedback(HOST, status=429, retry_after=40)
        limiter.feedback(HOST, status=429, retry_after=10)  # never shortens it
        permit.release()
        assert limiter.snapshot().hosts[0].next_earliest_ms == 40_000
        await limiter.acquire(HOST)
        return [clock.now()]

    assert run_virtual(play()) == [40.0]


def test_14_7_a_retry_after_lowers_the_rate_once_and_opens_no_circuit() -> None:
    play = Play(initial_rps=4, consecutive_fail_threshold=2, min_samples_to_trip=2, token_bucket_capacity=9)
    permits = [play.take() for _ in range(9)]

    for status, permit in zip((429, 503) * 4, permits, strict=False):
        assert permit
        play.clock.advance(0.01)
        play.feed(status, latency=0.1, retry_after=5)
        permit.release()

    assert (play.host.state, play.rate) == ("closed", 2.0)
    assert (play.host.consecutive_fails, play.host.error_rate) == (0, 0.0)  # counted in neither condition
    play.clock.advance(10)
    play.take()
    play.feed(429, latency=0.1, retry_after=5)  # of a request that left after the last decrease
    assert play.rate == 1.0


# 14.8 and section 13: eviction.


def test_14_8_idle_hosts_are_evicted_and_active_ones_are_not() -> None:
    clock = FakeClock()
    limiter = Limiter(clock=clock, policy="aimd", domain_state_ttl=120)
    for name in ("idle.example", "busy.example", "waiting.example"):
        permit = limiter.try_acquire(name)
        assert permit
        if name != "busy.example":
            permit.release()
    clock.advance(119)
    limiter.try_acquire("new.example")
    assert limiter.evict_idle() == 0

    clock.advance(1)
    assert limiter.evict_idle() == 2

    assert {each.host for each in limiter.snapshot().hosts} == {"busy.example", "new.example"}


def test_16_there_is_a_cap_on_hosts_and_the_least_recently_used_goes() -> None:
    clock = FakeClock()
    limiter = Limiter(clock=clock, policy="aimd", max_hosts=3)
    for number in (0, 1, 2, 0, 3, 4):
        permit = limiter.try_acquire(f"h{number}.example")
        assert permit
        permit.release()
        clock.advance(10)

    assert [each.host for each in limiter.snapshot().hosts] == ["h4.example", "h3.example", "h0.example"]


def test_hosts_that_are_in_use_are_not_evicted_and_hide_none_that_are_idle() -> None:
    clock = FakeClock()
    limiter = Limiter(clock=clock, policy="aimd", max_hosts=4)
    busy = [limiter.try_acquire(f"busy{number}.example") for number in range(2)]
    for number in range(9):
        clock.advance(10)
        permit = limiter.try_acquire(f"h{number}.example")
        assert permit
        permit.release()

    names = {each.host for each in limiter.snapshot().hosts}

    assert {"busy0.example", "busy1.example"} < names
    assert len(names) == 4
    for permit in busy:
        assert permit
        permit.release()
    clock.advance(10)
    for number in range(3):
        limiter.try_acquire(f"new{number}.example")
    assert "busy0.example" not in {each.host for each in limiter.snapshot().hosts}


def test_what_must_not_be_forgotten_outlives_eviction() -> None:
    play = Play(consecutive_fail_threshold=2, domain_state_ttl=1)
    play.take()
    play.feed(429, retry_after=500)
    play.limiter.try_acquire("down.example")
    for _ in range(2):
        play.limiter.feedback("down.example", status=503)
    play.limiter.set_cap("slow.example", 0.01, "robots.txt")
    play.limiter.try_acquire("slow.example")
    play.clock.advance(11)
    for name in (HOST, "down.example", "slow.example"):
        permit = play.limiter.try_acquire(name)
        assert permit is None
    play.clock.advance(1000)
    play.limiter.try_acquire("slow.example")

    assert play.limiter.evict_idle() >= 2
    assert play.limiter.is_open("down.example")
    assert play.limiter.ready_at("slow.example") > play.clock.now()


# 14.9 and section 13: many callers at once. Threads are in `test_threads.py`.


def test_14_9_many_callers_of_many_hosts_at_once() -> None:
    async def play() -> None:
        clock, random = LoopClock(), Random(9)
        limiter = Limiter(clock=clock, policy="aimd", max_rps=50, initial_rps=20, throttled_after=0.5)
        served: list[tuple[str, float]] = []
        denied = 0

        async def call(name: str) -> None:
            nonlocal denied
            for _ in range(5):
                try:
                    permit = await limiter.acquire(name)
                except CircuitOpen as error:
                    denied += 1
                    await clock.sleep(error.until - clock.now())
                    continue
                served.append((name, clock.now()))
                await clock.sleep(random.random())
                limiter.feedback(name, status=random.choice((200, 200, 200, 503)), latency=0.1)
                permit.release()

        async with asyncio.TaskGroup() as group:
            for number in range(100):
                group.create_task(call(f"h{number % 4}.example"))

        total = limiter.snapshot()
        assert (total.total_requests, total.denied) == (len(served), denied)
        assert len(served) + denied == 500
        assert sum(each.requests for each in total.hosts) == len(served)
        assert all(each.in_flight == each.waiting == 0 for each in total.hosts)

    run_virtual(play())


# Section 11: the snapshot.


def test_11_the_snapshot_has_the_figures_of_the_seed() -> None:
    play = Play(initial_rps=4, token_bucket_capacity=4)
    for _ in range(3):
        play.take()
    play.feed(200, 503, 503, latency=0.5)
    play.limiter.plan_retry(HOST, 1, status=503)
    for number in range(20):
        play.clock.advance(1)
        play.limiter.try_acquire(f"h{number}.example")
    play.clock.advance(1)
    play.take()

    total = play.limiter.snapshot(top=5)

    assert (total.total_requests, total.throttled_requests, total.denied, total.retries) == (24, 0, 0, 1)
    assert (total.open_circuits, total.half_open_circuits, total.hosts_in_memory) == (0, 0, 21)
    assert [each.host for each in total.hosts] == [HOST, *(f"h{number}.example" for number in (19, 18, 17, 16))]
    host = msgspec.to_builtins(total.hosts[0])
    assert {name: host[name] for name in list(host)[:10]} == {
        "host": HOST,
        "fill_rate": 1.0625,
        "tokens": pytest.approx(3),
        "avg_latency": pytest.approx(0.756),
        "p95_latency": 0.5,
        "error_rate": pytest.approx(2 / 3),
        "state": "closed",
        "consecutive_fails": 2,
        "next_earliest_ms": 0.0,
        "last_activity": 0.0,
    }


def test_11_circuits_and_waits_are_counted() -> None:
    async def play() -> None:
        clock = LoopClock()
        limiter = Limiter(
            clock=clock, policy="aimd", initial_rps=1, token_bucket_capacity=1, consecutive_fail_threshold=1,
            throttled_after=1.5,
        )  # fmt: skip
        for name in ("open.example", "half.example"):
            (await limiter.acquire(name)).release()
            limiter.feedback(name, status=503)
        assert limiter.snapshot().open_circuits == 2
        with pytest.raises(CircuitOpen):
            await limiter.acquire("open.example")
        await clock.sleep(15)
        await limiter.acquire("half.example")
        async with asyncio.TaskGroup() as group:
            for _ in range(4):  # they wait for 0, 1, 2 and 3 seconds
                group.create_task(limiter.acquire("host.example"))
        total = limiter.snapshot()
        assert (total.denied, total.half_open_circuits) == (1, 1)
        assert total.throttled_requests == 2
        assert total.waited == pytest.approx(6.0)

    run_virtual(play())


def test_11_snapshots_come_as_a_stream_and_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def play() -> list[int]:
        clock = LoopClock()
        limiter = Limiter(clock=clock, policy="aimd")
        counts = []
        async with asyncio.TaskGroup() as group:
            logging = group.create_task(limiter.log_snapshots(10))
            async for snapshot in limiter.stream(4):
                counts.append(snapshot.total_requests)
                if len(counts) == 6:
                    break
                await limiter.acquire(HOST)
            logging.cancel()
        return counts

    caplog.set_level("INFO", logger="sanderling.limit")

    assert run_virtual(play()) == [0, 1, 2, 3, 4, 5]
    logged = [msgspec.json.decode(record.getMessage().partition(" ")[2]) for record in caplog.records]
    assert [each["total_requests"] for each in logged] == [2, 4]


# Section 10: the configuration.

DEFAULTS = {
    "enabled": True, "initial_rps": 2.0, "min_rps": 0.25, "max_rps": 8.0, "token_bucket_capacity": 4.0,
    "aimd_increase": 0.25, "aimd_decrease": 0.5, "latency_target": 1.0, "latency_degrade_factor": 2.0,
    "error_rate_threshold": 0.5, "min_samples_to_trip": 10, "consecutive_fail_threshold": 5,
    "open_state_duration": 15.0, "half_open_probes": 3, "retry_base_delay": 0.2, "retry_max_delay": 5.0,
    "retry_max_attempts": 3, "stats_window": 30.0, "stats_bucket": 2.0, "domain_state_ttl": 120.0, "shards": 16,
}  # fmt: skip
OTHERS = {
    "enabled": False, "initial_rps": 3.0, "min_rps": 1.0, "max_rps": 4.0, "token_bucket_capacity": 2.0,
    "aimd_increase": 0.5, "aimd_decrease": 0.8, "latency_target": 0.2, "latency_degrade_factor": 3.0,
    "error_rate_threshold": 0.6, "min_samples_to_trip": 8, "consecutive_fail_threshold": 3,
    "open_state_duration": 9.0, "half_open_probes": 1, "retry_base_delay": 0.1, "retry_max_delay": 0.3,
    "retry_max_attempts": 2, "stats_window": 6.0, "stats_bucket": 5.0, "domain_state_ttl": 12.0, "shards": 32,
}  # fmt: skip


def trace(**fields: object) -> list[object]:
    """All that can be seen of a host that fails every other time at first, later for a while, and is slow at last."""
    play, random, seen, requests = Play(**fields), Random(10), list[object](), 0
    for second in range(160):
        for _ in range(4):
            permit = play.take()
            if permit is None:
                continue
            requests += 1
            failing = (second < 30 and requests % 2 == 1) or 90 <= second < 100
            status = 503 if failing else 429 if random.random() < 0.05 else 200
            play.feed(status, latency=random.choice((0.1, 0.3, 0.4, 0.9, 2.5) if second > 120 else (0.1, 0.2)))
            permit.release()
            seen.append(play.limiter.plan_retry(HOST, 1 + second % 4, status=status))
        seen.append((play.host.fill_rate, play.host.state, play.host.error_rate, play.wait()))
        play.clock.advance(30.0 if second == 140 else 1.0)
        seen.append(play.limiter.evict_idle())
        play.limiter.ready_at(HOST)
    return seen


def test_10_the_defaults_are_the_seeds() -> None:
    options = LimitOptions()

    assert list(LimitOptions.fields)[:21] == list(DEFAULTS)
    assert {name: getattr(options, name) for name in DEFAULTS} == DEFAULTS


@pytest.mark.parametrize("name", list(DEFAULTS))
def test_10_each_field_changed_alone_changes_a_trace(name: str) -> None:
    changed = trace(**{name: OTHERS[name]})

    assert (changed == trace()) is (name == "shards")


def test_10_all_fields_are_keys_of_tables() -> None:
    keys = {name.replace("_", "-"): value for name, value in OTHERS.items()}

    options = LimitOptions.from_table(keys, "[limits]")
    hosts = RequestOptions.from_table({"hosts": {"API.example.org": keys}}, "sanderling.toml").hosts

    assert {name: getattr(options, name) for name in OTHERS} == OTHERS
    assert hosts["api.example.org"].limits(LimitOptions(), "api.example.org") == options


def test_10_tables_of_hosts_go_over_each_other_and_rps_over_both() -> None:
    document = {
        "rps": 6,
        "limits": {"initial-rps": 5, "token-bucket-capacity": 9},
        "hosts": {"*.example.org": {"min-rps": 1, "rps": 3}, "api.example.org": {"max-rps": 7, "initial-rps": 4}},
    }
    limiter = limiter_for(RequestOptions.from_table(document, "sanderling.toml"), clock=FakeClock())

    own, general = (limiter._memory.find(host).options for host in ("api.example.org", "a.example"))

    assert (own.min_rps, own.initial_rps, own.max_rps, own.token_bucket_capacity) == (1, 3, 3, 9)
    assert (general.min_rps, general.initial_rps, general.max_rps) == (0.25, 5, 6)


def test_policy_none_says_so_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    for more in ({"policy": "none"}, {"limits": {"enabled": False}}, {}, {"policy": "aimd"}):
        limiter_for(RequestOptions.from_table(more, "sanderling.toml"))

    assert [str(record.msg).count("'unpaced'") for record in caplog.records] == [1, 1]


def test_10_a_host_has_limits_of_its_own_and_else_those_of_all() -> None:
    clock = FakeClock()
    limiter = Limiter(
        LimitOptions(token_bucket_capacity=3, initial_rps=4),
        policy="aimd",
        hosts={"*.example.org": LimitOptions(initial_rps=1), "own.example.org": LimitOptions(enabled=False)},
        clock=clock,
    )

    for host, burst, rate in (("www.example.net", 3, 4.0), ("a.b.example.org", 3, 1.0), ("own.example.org", 9, inf)):
        clock.advance(1)
        taken = [limiter.try_acquire(host) for _ in range(9)]
        assert (9 - taken.count(None), limiter.snapshot(1).hosts[0].fill_rate) == (burst, rate)
