"""The first rows of the limiter's simulation, A to G, and variations on them."""

from random import Random

from limiter_cases import Case, Need, Row, bucket, limited

from sanderling.worlds.hosts import BucketQuota, FixedWindowQuota, SimulatedHost, SlidingWindowQuota, steady, steps

EVERYBODY = ("plain AIMD", "AWS adaptive", "AutoThrottle 1", "AutoThrottle 8", "Gradient2", "our aimd")
RISE_AND_FALL = steps([(0, 20), (200, 6), (400, 20)])
SLOWED = steps([(0, 1 / 40), (200, 1 / 12), (400, 1 / 40)])
OUTAGE = steps([(0, 0), (200, 1), (260, 0)])


def in_bursts(now: float) -> float:
    """Ten seconds of work in each minute."""
    return now if now % 60 < 10 else (now // 60 + 1) * 60


def queued(service: float, **more: bool) -> Case:
    """A server that does one thing at a time."""
    return Case("", lambda s: SimulatedHost(Random(s), network=0.075, service=steady(service), **more), 600 / service)


def first(name: str, case: Case, **need: Need) -> Row:
    """One of A to G."""
    return Row(name, (case,), need, rivals=EVERYBODY, kept=True)


def varied(name: str, case: Case) -> Row:
    """To see that it solves the problem and not the table."""
    return Row(name, (case,), {}, rivals=(), kept=True)


FIRST = (
    first(
        "A 20/s, silent 429",
        Case("", limited(lambda _: bucket(20, 20)), 12000),
        delivered=(">=", 95),
        refused=("<=", 0.2),
    ),
    first("B + Retry-After 5 s", Case("", limited(lambda _: bucket(20, 20), retry_after=5.0), 12000), early=("<=", 0)),
    first(
        "C 600 per minute",
        Case("", limited(lambda _: FixedWindowQuota(600, 60)), 6000),
        delivered=(">=", 97),
        refused=("<=", 0.5),
    ),
    first("D server 40/s, queue", queued(0.025), delivered=(">=", 85), median=("<=", 0.12)),
    first(
        "E quota 20, 6, 20",
        Case("", limited(lambda _: BucketQuota(RISE_AND_FALL, 20)), 9200),
        delivered=(">=", 90),
        refused=("<=", 0.3),
    ),
    first("F server at 30 %", Case("", lambda s: SimulatedHost(Random(s), network=0.075, service=SLOWED), 18400)),
    first("G 10 s on, 50 s off", Case("", limited(lambda _: bucket(20, 20)), 2000, wanted=in_bursts)),
    varied("A, counted per second", Case("", limited(lambda _: FixedWindowQuota(20, 1)), 12000)),
    varied("A, sliding second", Case("", limited(lambda _: SlidingWindowQuota(20, 1)), 12000)),
    varied("A, no burst at all", Case("", limited(lambda _: bucket(20, 1.5)), 12000)),
    varied("A, ten times as fast", Case("", limited(lambda _: bucket(200, 200)), 120000)),
    varied("A, one in two seconds", Case("", limited(lambda _: bucket(0.5, 1)), 300)),
    varied("A, answers in 1.5 s", Case("", limited(lambda _: bucket(20, 20), network=1.5), 12000)),
    varied("A, erratic latency", Case("", limited(lambda _: bucket(20, 20), spread=1.0), 12000)),
    varied("A, 2 % random 500s", Case("", limited(lambda _: bucket(20, 20), failing=steady(0.02)), 11760)),
    varied("A, 30 % random 500s", Case("", limited(lambda _: bucket(20, 20), failing=steady(0.3)), 8400)),
    varied("A, down for 60 s", Case("", limited(lambda _: bucket(20, 20), failing=OUTAGE), 10800)),
    varied("A, 503 for 60 s", Case("", limited(lambda _: bucket(20, 20), failing=OUTAGE, failure=503), 10800)),
    varied("C, minute by 503", Case("", limited(lambda _: FixedWindowQuota(600, 60), refusal=503), 6000)),
    varied("B, counted per second", Case("", limited(lambda _: FixedWindowQuota(20, 1), retry_after=5.0), 12000)),
    varied("C, sliding minute", Case("", limited(lambda _: SlidingWindowQuota(600, 60)), 6000)),
    varied("C, 5000 per hour", Case("", limited(lambda _: FixedWindowQuota(5000, 3600)), 5000)),
    varied("D, random work", queued(0.025, random_service=True)),
    varied("E, shallow bucket", Case("", limited(lambda _: BucketQuota(RISE_AND_FALL, 6)), 9200)),
)
