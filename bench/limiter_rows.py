"""The hosts that the limiter is held to, row by row: what real APIs do, and what the unkind among them do.

What is allowed is what the quota gives in the long run: 5,000 an hour are 15,000 in three, however its hours lie.
"""

from random import Random

from limiter_cases import (
    HOUR,
    MINUTE,
    Case,
    Row,
    after_outage,
    bucket,
    fastest,
    first_minutes,
    hourly,
    limited,
    reaching,
    unlimited,
)

from sanderling.worlds.hosts import (
    BucketQuota,
    FixedWindowQuota,
    Host,
    SimulatedHost,
    SlidingWindowQuota,
    steady,
    steps,
)
from sanderling.worlds.hosts_hostile import (
    BanningHost,
    ChangingQuota,
    LayeredQuota,
    LyingHost,
    OnceRefusingHost,
    OutageHost,
    Outcome,
    QueueHost,
    drawn,
)

SIX = ((0.0, 20), (200.0, 6), (400.0, 20))
SIX_LATER = ((0.0, 20), (330.0, 6), (510.0, 20))  # 330 x 20 + 180 x 6 + 90 x 20 = 9,480
DOWN, UP = 180.0, 780.0  # ten minutes of outage


def draws(seed: int) -> list[tuple[float, float]]:
    """A quota between 2 and 60 a second, anew each minute for a quarter of an hour."""
    return drawn(Random(seed + 77), 2, 60, MINUTE, 15 * MINUTE)


def drawn_sum(seed: int) -> float:
    """What those allow together."""
    return sum(MINUTE * rate for _, rate in draws(seed)[:15])


def redrawn_bucket(depth: float, retry_after: float | None = None, network: float = 0.1):  # noqa: ANN201
    """A bucket whose rate is drawn."""
    return lambda seed: SimulatedHost(
        Random(seed), BucketQuota(steps(draws(seed)), depth), network=network, retry_after=retry_after
    )


def redrawn_seconds(retry_after: float | None = None):  # noqa: ANN201
    """So many in each second by the clock; the number is drawn."""

    def host(seed: int) -> Host:
        plan = [(start, FixedWindowQuota(round(rate), 1)) for start, rate in draws(seed)]
        return SimulatedHost(Random(seed), ChangingQuota(plan), retry_after=retry_after)

    return host


def in_turn(plan: tuple[tuple[float, int], ...]) -> ChangingQuota:
    """A sliding second whose limit changes."""
    return ChangingQuota([(start, SlidingWindowQuota(limit, 1)) for start, limit in plan])


def queue(**shape: float):  # noqa: ANN201
    """A server with a queue, by seed."""
    return lambda seed: QueueHost(Random(seed), **shape)  # type: ignore[arg-type]


def outage(outcome: Outcome, quota: bool) -> Case:  # noqa: FBT001
    """Ten minutes of one outcome for everybody."""

    def host(seed: int) -> Host:
        well = limited(lambda _: bucket(20, 20))(seed) if quota else unlimited(0.5)(seed)
        return OutageHost(well, DOWN, UP, outcome)

    rate = 20 if quota else fastest(0.5)
    return Case(f"{outcome}, {'20/s' if quota else 'no quota'}", host, rate * 300)


HOURLY = (
    Case("fixed", limited(lambda _: LayeredQuota([FixedWindowQuota(10, 1), FixedWindowQuota(5000, 3600)])), 15000),
    Case("sliding hour", limited(lambda _: LayeredQuota([bucket(10, 10), SlidingWindowQuota(5000, 3600)])), 15000),
    Case(
        "hours not ours",
        limited(lambda _: LayeredQuota([SlidingWindowQuota(10, 1), FixedWindowQuota(5000, 3600, phase=1500)])),
        15000,
    ),
    Case(
        "two clients",
        limited(lambda _: LayeredQuota([bucket(10, 20), FixedWindowQuota(5000, 3600)])),
        15000,
        clients=2,
    ),
)
RANDOM_429 = (
    Case("bucket", limited(lambda _: bucket(20, 20), failing=steady(0.02), failure=429), 11760),
    Case("shallow", limited(lambda _: bucket(20, 4), failing=steady(0.02), failure=429), 11760),
    Case("sliding second", limited(lambda _: SlidingWindowQuota(20, 1), failing=steady(0.02), failure=429), 11760),
    Case("slow answers", limited(lambda _: bucket(20, 20), failing=steady(0.02), failure=429, network=0.6), 11760),
)
REDRAWN = (
    Case("bucket 20", redrawn_bucket(20), drawn_sum),
    Case("bucket 60", redrawn_bucket(60, network=0.25), drawn_sum),
    Case("by the second", redrawn_seconds(), drawn_sum),
)
REDRAWN_TOLD = (
    Case("bucket 20", redrawn_bucket(20, 1.0), drawn_sum),
    Case("by the second", redrawn_seconds(1.0), drawn_sum),
)
RISE_AND_FALL = (
    Case("bucket", limited(lambda _: BucketQuota(steps(SIX), 20)), 9200),
    Case("sliding second", limited(lambda _: in_turn(SIX)), 9200),
    Case("later", limited(lambda _: BucketQuota(steps(SIX_LATER), 10)), 9480),
    Case("two clients", limited(lambda _: BucketQuota(steps(SIX), 20)), 9200, clients=2),
)
OVERLOADED = (
    Case("40/s, room for 20", queue(work=0.025, room=20), 24000),
    Case("40/s, room for 6", queue(work=0.025, room=6, vary=0.2), 24000),
    Case("8/s, room for 10", queue(work=0.125, room=10, network=0.2), 4800),
)
MINUTE_503 = (
    Case("fixed", limited(lambda _: FixedWindowQuota(600, 60), refusal=503), 6000),
    Case("minutes not ours", limited(lambda _: FixedWindowQuota(600, 60, phase=37), refusal=503), 6000),
    Case("sliding", limited(lambda _: SlidingWindowQuota(600, 60), refusal=503), 6000),
)
TWELVE = (
    Case("fixed, min 0.25", limited(lambda _: FixedWindowQuota(12, 60)), 2160, min_rps=0.25),
    Case("fixed, min 1", limited(lambda _: FixedWindowQuota(12, 60, phase=41)), 2160, min_rps=1.0),
    Case("sliding, min 1", limited(lambda _: SlidingWindowQuota(12, 60)), 2160, min_rps=1.0),
    Case("bucket, min 0.25", limited(lambda _: bucket(0.2, 3)), 2160, min_rps=0.25),
)
ONE_WORKER = (
    Case("room for 8", queue(work=1.0, room=8), 1800),
    Case("room for 20, varied", queue(work=1.0, room=20, vary=0.2, network=0.2), 1800),
    Case("any number", queue(work=1.0), 1800),
)
ONE_REFUSAL = (
    Case("the first, 1 s", lambda s: OnceRefusingHost(unlimited(0.05)(s), 1, 1.0), 500 * 60),
    Case("the third, 2 s", lambda s: OnceRefusingHost(unlimited(0.03)(s), 3, 2.0), 500 * 60),
    Case("the fifth, 5 s", lambda s: OnceRefusingHost(unlimited(0.05)(s), 5, 5.0), 500 * 60),
)
RANDOM_500 = (
    Case(
        "no quota, 0.25 s", limited(lambda _: bucket(1e9, 1e9), failing=steady(0.3), network=0.25), 420 * fastest(0.25)
    ),
    Case("no quota, 0.6 s", limited(lambda _: bucket(1e9, 1e9), failing=steady(0.3), network=0.6), 420 * fastest(0.6)),
    Case("20/s", limited(lambda _: bucket(20, 20), failing=steady(0.3)), 8400),
    Case("20/s, sliding", limited(lambda _: SlidingWindowQuota(20, 1), failing=steady(0.3)), 8400),
)
FAST = (
    Case("bucket", limited(lambda _: bucket(150, 150), network=0.03), 90000),
    Case("shallow", limited(lambda _: bucket(150, 15), network=0.03), 90000),
    Case("sliding second", limited(lambda _: SlidingWindowQuota(150, 1), network=0.03), 90000),
)
OUTAGES = tuple(outage(outcome, quota) for outcome in (503, 500, "reset", "silence") for quota in (True, False))
FIRST_CONTACT = (
    Case("fixed", limited(lambda _: FixedWindowQuota(600, 60)), 6000),
    Case("minutes not ours", limited(lambda _: FixedWindowQuota(600, 60, phase=37)), 6000),
    Case("sliding", limited(lambda _: SlidingWindowQuota(600, 60)), 6000),
)
THRASHING = (
    Case("40/s, beyond 8", queue(work=0.025, healthy=8, strain=0.1), 24000),
    Case("40/s, room for 30", queue(work=0.025, healthy=4, strain=0.2, room=30, vary=0.2), 24000),
)
BANS = (
    Case("ten in a minute", lambda s: BanningHost(limited(lambda _: bucket(20, 20))(s)), 12000),
    Case("five in 10 s", lambda s: BanningHost(limited(lambda _: SlidingWindowQuota(20, 1))(s), 5, 10), 12000),
)
LIARS = (
    Case("says 1, closed for 5", lambda s: LyingHost(limited(lambda _: bucket(20, 20))(s), 5, 1), 24000),
    Case("says 30, closed for 5", lambda s: LyingHost(limited(lambda _: bucket(20, 20))(s), 5, 30), 24000),
    Case("says 0, closed for 5", lambda s: LyingHost(limited(lambda _: bucket(20, 20))(s), 5, 0), 24000),
)
WINDOWS = (
    Case("600 a minute", limited(lambda _: FixedWindowQuota(600, 60)), 12000),
    Case("minutes not ours", limited(lambda _: FixedWindowQuota(600, 60, phase=37)), 12000),
    Case("sliding minute", limited(lambda _: SlidingWindowQuota(600, 60)), 12000),
    Case("100 in ten seconds", limited(lambda _: FixedWindowQuota(100, 10, phase=3)), 12000),
    Case("sliding ten seconds", limited(lambda _: SlidingWindowQuota(100, 10)), 12000),
)


def share(delivered: float, refused: float) -> dict[str, tuple[str, float]]:
    """Delivered at least, refused at most, both in percent."""
    return {"delivered": (">=", delivered), "refused": ("<=", refused)}


ROWS = (
    Row(
        "10 a second and 5,000 an hour",
        HOURLY,
        share(92, 0.6) | {"hour 2": (">=", 92), "hour 3": (">=", 92)},
        3 * HOUR,
        hourly(5000),
    ),
    Row("20 a second, 2 % random 429", RANDOM_429, share(80, 3)),
    Row("redrawn each minute", REDRAWN, share(85, 1), 15 * MINUTE),
    Row("redrawn, Retry-After 1", REDRAWN_TOLD, share(85, 1) | {"early": ("<=", 0)}, 15 * MINUTE),
    Row("quota 20, 6, 20", RISE_AND_FALL, share(92, 0.3)),
    Row("503 when overloaded", OVERLOADED, share(86, 0.6)),
    Row("minute quota by 503", MINUTE_503, share(85, 1)),
    Row("12 a minute", TWELVE, share(92, 2), 3 * HOUR),
    Row("one worker of 1 s", ONE_WORKER, share(85, 0.3) | {"median": ("<=", 2.2)}, 30 * MINUTE),
    Row("no limit, one 429", ONE_REFUSAL, {"at 250/s": ("<=", 20)}, MINUTE, reaching(250)),
    Row("30 % random 500s", RANDOM_500, {"delivered": (">=", 60)}),
    Row("150 a second at 30 ms", FAST, share(95, 0.1)),
    Row(
        "ten minutes of outage",
        OUTAGES,
        {"before": (">=", 18), "gap": ("<=", 30), "back": ("<=", 60)},
        15 * MINUTE,
        after_outage(DOWN, UP),
    ),
    Row("first contact, 600 a minute", FIRST_CONTACT, {"at first": ("<=", 15)}, more=first_minutes(2)),
    Row("thrashing", THRASHING, {"delivered": (">=", 80)}, kept=True),
    Row("banned for a minute", BANS, {"delivered": (">=", 95)}, kept=True),
    Row("lying Retry-After", LIARS, {"delivered": (">=", 85)}, 20 * MINUTE, kept=True),
    Row("minutes and ten seconds", WINDOWS, share(97, 0.4), 20 * MINUTE, kept=True),
)
