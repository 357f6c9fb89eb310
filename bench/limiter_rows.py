"""What the limiter is held to, row by row, and the hosts: what real APIs do, and what the unkind among them do.

What is allowed is what the quota gives in the long run: 5,000 an hour are 15,000 in three, however its hours lie.
"""

from dataclasses import replace

from hostile_hosts import (
    BanningHost,
    LayeredQuota,
    LyingHost,
    OnceRefusingHost,
    SharedQuota,
)
from limiter_cases import (
    HOUR,
    MINUTE,
    Case,
    Draw,
    Need,
    Row,
    after_outage,
    at_first,
    bucket,
    changing,
    changing_window,
    fastest,
    hourly,
    limited,
    outage,
    queue,
    reaching_half,
    redrawn,
    unlimited,
)

from sanderling.worlds.hosts import FixedWindowQuota, SlidingWindowQuota, steady


def share(delivered: float, refused: float) -> Need:
    """Delivered at least, refused at most, both in percent."""
    return {"delivered": (">=", delivered), "refused": ("<=", refused)}


EACH_HOUR: Need = {"hour 2": (">=", 92), "hour 3": (">=", 92)}
BACK: Need = {"before": (">=", 18), "gap": ("<=", 30), "back": ("<=", 60)}
TABLE = (
    Row("10 a second and 5,000 an hour", share(92, 0.6) | EACH_HOUR, 3 * HOUR, hourly),
    Row("20 a second, 2 % random 429", share(80, 3)),
    Row("redrawn each minute", share(85, 1), 15 * MINUTE),
    Row("redrawn, Retry-After 1", share(85, 1) | {"early": ("<=", 0)}, 15 * MINUTE),
    Row("quota 20, 6, 20", share(92, 0.3)),
    Row("503 when overloaded", share(86, 0.6)),
    Row("minute quota by 503", share(85, 1)),
    Row("12 a minute, min_rps above", share(92, 2), 3 * HOUR),
    Row("one worker of 1 s", share(85, 0.3) | {"median": ("<=", 2.2)}, 30 * MINUTE),
    Row("no limit, one 429", {"at 250/s": ("<=", 20)}, MINUTE, reaching_half),
    Row("30 % random 500s", {"delivered": (">=", 60)}),
    Row("150 a second at 30 ms", share(95, 0.1)),
    Row("ten minutes of outage", BACK, 15 * MINUTE, after_outage),
    Row("first contact, 600 a minute", {"at first": ("<=", 15)}, more=at_first),
    Row("thrashing", {"delivered": (">=", 80)}, kept=True),
    Row("banned for a minute", {"delivered": (">=", 95)}, kept=True),
    Row("lying Retry-After", {"delivered": (">=", 85)}, 20 * MINUTE, kept=True),
    Row("minutes and ten seconds", share(97, 0.4), 20 * MINUTE, kept=True),
)

SIX = [(0.0, 20), (200.0, 6), (400.0, 20)]
HOURLY = 5000 / 3600
TWENTY = limited(lambda _: bucket(20, 20))
CASES: dict[str, tuple[Case, ...]] = {
    "10 a second and 5,000 an hour": (
        Case("fixed", limited(lambda _: LayeredQuota([FixedWindowQuota(10, 1), FixedWindowQuota(5000, 3600)])), HOURLY),
        Case("sliding hour", limited(lambda _: LayeredQuota([bucket(10, 10), SlidingWindowQuota(5000, 3600)])), HOURLY),
        Case(
            "hours not ours",
            limited(lambda _: LayeredQuota([SlidingWindowQuota(10, 1), FixedWindowQuota(5000, 3600, phase=1500)])),
            HOURLY,
            since=1500,
        ),
        Case(
            "two clients",
            limited(lambda _: LayeredQuota([bucket(10, 20), FixedWindowQuota(5000, 3600)])),
            HOURLY,
            clients=2,
        ),
    ),
    "20 a second, 2 % random 429": (
        Case("bucket", limited(lambda _: bucket(20, 20), failing=steady(0.02), failure=429), 19.6),
        Case("shallow", limited(lambda _: bucket(20, 4), failing=steady(0.02), failure=429), 19.6),
        Case("sliding second", limited(lambda _: SlidingWindowQuota(20, 1), failing=steady(0.02), failure=429), 19.6),
        Case("slow answers", limited(lambda _: bucket(20, 20), failing=steady(0.02), failure=429, network=0.6), 19.6),
        Case(
            "neighbours",
            limited(lambda rng: SharedQuota(bucket(30, 30), rng, 10), failing=steady(0.02), failure=429),
            19.6,
        ),
    ),
    "redrawn each minute": (
        redrawn("bucket 20", Draw(), 20),
        redrawn("bucket 60, slower", Draw(), 60, network=0.25),
        redrawn("by the second", Draw(), None),
    ),
    "redrawn, Retry-After 1": (
        redrawn("bucket 20", Draw(), 20, 1.0),
        redrawn("by the second", Draw(), None, 1.0),
    ),
    "quota 20, 6, 20": (
        changing("bucket", SIX, 20),
        changing_window("sliding second", SIX, SlidingWindowQuota),
        changing("later, shallow", [(0.0, 20), (330.0, 6), (510.0, 20)], 10),
        replace(changing("two clients", SIX, 20), clients=2),
    ),
    "503 when overloaded": (
        Case("40/s, room for 20", queue(0.025, 20), 40),
        Case("40/s, room for 6", queue(0.025, 6, vary=0.2), 40),
        Case("8/s, room for 10", queue(0.125, 10, network=0.2), 8),
    ),
    "minute quota by 503": (
        Case("fixed", limited(lambda _: FixedWindowQuota(600, 60), refusal=503), 10),
        Case("minutes not ours", limited(lambda _: FixedWindowQuota(600, 60, phase=37), refusal=503), 10),
        Case("sliding", limited(lambda _: SlidingWindowQuota(600, 60), refusal=503), 10),
    ),
    "12 a minute, min_rps above": (
        Case("fixed, min 0.25", limited(lambda _: FixedWindowQuota(12, 60)), 0.2, min_rps=0.25),
        Case("fixed, min 1", limited(lambda _: FixedWindowQuota(12, 60, phase=41)), 0.2, min_rps=1.0),
        Case("sliding, min 1", limited(lambda _: SlidingWindowQuota(12, 60)), 0.2, min_rps=1.0),
        Case("bucket, min 0.25", limited(lambda _: bucket(0.2, 3)), 0.2, min_rps=0.25),
    ),
    "one worker of 1 s": (
        Case("room for 8", queue(1.0, 8), 1),
        Case("room for 20, varied", queue(1.0, 20, vary=0.2, network=0.2), 1),
        Case("any number", queue(1.0), 1),
    ),
    "no limit, one 429": (
        Case("the first, 1 s", lambda seed: OnceRefusingHost(unlimited(0.05)(seed), 1, 1.0), 500),
        Case("the third, 2 s", lambda seed: OnceRefusingHost(unlimited(0.03)(seed), 3, 2.0), 500),
        Case("the fifth, 5 s", lambda seed: OnceRefusingHost(unlimited(0.05)(seed), 5, 5.0), 500),
    ),
    "30 % random 500s": (
        Case("no quota, 0.25 s", unlimited(0.25, failing=0.3), 0.7 * fastest(0.25)),
        Case("no quota, 0.6 s", unlimited(0.6, failing=0.3), 0.7 * fastest(0.6)),
        Case("20/s", limited(lambda _: bucket(20, 20), failing=steady(0.3)), 14),
        Case("20/s, items named", limited(lambda _: bucket(20, 20), failing=steady(0.3)), 14, named=True),
        Case("20/s, sliding", limited(lambda _: SlidingWindowQuota(20, 1), failing=steady(0.3)), 14),
    ),
    "150 a second at 30 ms": (
        Case("bucket", limited(lambda _: bucket(150, 150), network=0.03), 150),
        Case("shallow", limited(lambda _: bucket(150, 15), network=0.03), 150),
        Case("sliding second", limited(lambda _: SlidingWindowQuota(150, 1), network=0.03), 150),
    ),
    "ten minutes of outage": (
        *(outage(outcome, TWENTY, 20, "20/s") for outcome in (503, 500, "reset", "silence")),
        *(outage(outcome, unlimited(0.5), fastest(0.5), "no quota") for outcome in (503, 500, "reset", "silence")),
    ),
    "first contact, 600 a minute": (
        Case("fixed", limited(lambda _: FixedWindowQuota(600, 60)), 10),
        Case("minutes not ours", limited(lambda _: FixedWindowQuota(600, 60, phase=37)), 10),
        Case("sliding", limited(lambda _: SlidingWindowQuota(600, 60)), 10),
    ),
    "thrashing": (
        Case("40/s, beyond 8", queue(0.025, healthy=8, strain=0.1), 40),
        Case("40/s, room for 30", queue(0.025, 30, healthy=4, strain=0.2, vary=0.2), 40),
    ),
    "banned for a minute": (
        Case("ten in a minute", lambda seed: BanningHost(TWENTY(seed)), 20),
        Case("five in 10 s", lambda seed: BanningHost(limited(lambda _: SlidingWindowQuota(20, 1))(seed), 5, 10), 20),
    ),
    "lying Retry-After": (
        Case("says 1, closed for 5", lambda seed: LyingHost(TWENTY(seed), closed=5, says=1), 20),
        Case("says 30, closed for 5", lambda seed: LyingHost(TWENTY(seed), closed=5, says=30), 20),
        Case("says 0, closed for 5", lambda seed: LyingHost(TWENTY(seed), closed=5, says=0), 20),
    ),
    "minutes and ten seconds": (
        Case("600 a minute", limited(lambda _: FixedWindowQuota(600, 60)), 10),
        Case("minutes not ours", limited(lambda _: FixedWindowQuota(600, 60, phase=37)), 10),
        Case("sliding minute", limited(lambda _: SlidingWindowQuota(600, 60)), 10),
        Case("100 in ten seconds", limited(lambda _: FixedWindowQuota(100, 10, phase=3)), 10),
        Case("sliding ten seconds", limited(lambda _: SlidingWindowQuota(100, 10)), 10),
    ),
}
ROWS = tuple(replace(row, cases=CASES[row.name]) for row in TABLE)
