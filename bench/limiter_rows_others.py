"""The same rows with other hosts, which nobody tunes by: other sizes, depths, phases, latencies, ways of counting."""

from dataclasses import replace

from hostile_hosts import (
    BanningHost,
    LayeredQuota,
    LyingHost,
    OnceRefusingHost,
    SharedQuota,
    SmoothedWindowQuota,
    StrictWindowQuota,
)
from limiter_cases import (
    Case,
    Draw,
    bucket,
    changing,
    changing_window,
    fastest,
    limited,
    outage,
    queue,
    redrawn,
    unlimited,
)
from limiter_rows import TABLE

from sanderling.worlds.hosts import FixedWindowQuota, SlidingWindowQuota, steady

SHALLOW = limited(lambda _: bucket(25, 5), network=0.07)
COUNTED = limited(lambda _: FixedWindowQuota(28, 1, phase=0.4), network=0.15)
OTHERS: dict[str, tuple[Case, ...]] = {
    "10 a second and 5,000 an hour": (
        Case(
            "8/s and 3,600",
            limited(lambda _: LayeredQuota([SlidingWindowQuota(8, 1), SlidingWindowQuota(3600, 3600)]), network=0.2),
            1,
        ),
        Case(
            "15/s and 9,000, 20 min in",
            limited(lambda _: LayeredQuota([bucket(15, 5), FixedWindowQuota(9000, 3600, phase=2400)])),
            2.5,
            since=2400,
        ),
        Case(
            "with 200 a minute between",
            limited(
                lambda _: LayeredQuota([bucket(10, 10), SlidingWindowQuota(200, 60), FixedWindowQuota(5000, 3600)])
            ),
            5000 / 3600,
        ),
    ),
    "20 a second, 2 % random 429": (
        Case("35/s", limited(lambda _: bucket(35, 12), failing=steady(0.02), failure=429, network=0.06), 34.3),
        Case(
            "12/s, fixed",
            limited(lambda _: FixedWindowQuota(12, 1, phase=0.3), failing=steady(0.02), failure=429),
            11.76,
        ),
        Case(
            "14/s, neighbours",
            limited(lambda rng: SharedQuota(bucket(18, 36), rng, 4), failing=steady(0.02), failure=429, network=0.3),
            13.72,
        ),
    ),
    "redrawn each minute": (
        redrawn("bucket 10, other draws", Draw(apart=5077), 10),
        redrawn("4 to 45, by the second", Draw(4, 45, 6077), None, network=0.05),
        redrawn("bucket 30, slow answers", Draw(apart=7077), 30, network=0.4),
    ),
    "redrawn, Retry-After 1": (
        redrawn("bucket 10, other draws", Draw(apart=5077), 10, 1.0, 0.15),
        redrawn("4 to 45, by the second", Draw(4, 45, 6077), None, 1.0),
    ),
    "quota 20, 6, 20": (
        changing("30, 8, 30", [(0.0, 30), (140.0, 8), (390.0, 30)], 15, 0.06),
        changing_window("by the second", [(0.0, 18), (260.0, 5), (430.0, 18)], FixedWindowQuota),
        changing("slow answers", [(0.0, 20), (90.0, 6), (300.0, 20)], 20, 0.4),
        changing_window("24, 7, 24, sliding", [(0.0, 24), (215.0, 7), (405.0, 24)], SlidingWindowQuota),
    ),
    "503 when overloaded": (
        Case("60/s, room for 25", queue(1 / 60, 25, network=0.05), 60),
        Case("15/s, room for 6", queue(1 / 15, 6, vary=0.1, network=0.12), 15),
        Case("25/s, room for 12, varied", queue(0.04, 12, vary=0.4), 25),
    ),
    "minute quota by 503": (
        Case("300, minutes not ours", limited(lambda _: FixedWindowQuota(300, 60, phase=22), refusal=503), 5),
        Case("900, smoothed", limited(lambda _: SmoothedWindowQuota(900, 60), refusal=503, network=0.2), 15),
    ),
    "12 a minute, min_rps above": (
        Case("10, min 0.25", limited(lambda _: SlidingWindowQuota(10, 60), network=0.3), 1 / 6, min_rps=0.25),
        Case("20, min 1", limited(lambda _: FixedWindowQuota(20, 60, phase=13)), 1 / 3, min_rps=1.0),
        Case("15, min 0.5", limited(lambda _: bucket(0.25, 1.5)), 0.25, min_rps=0.5),
    ),
    "one worker of 1 s": (
        Case("room for 5", queue(1.0, 5, network=0.05), 1),
        Case("room for 12, varied", queue(1.0, 12, vary=0.3, network=0.15), 1),
        Case("0.9 s, any number", queue(0.9, vary=0.1), 1 / 0.9),
    ),
    "no limit, one 429": (
        Case("the second, 3 s", lambda seed: OnceRefusingHost(unlimited(0.04)(seed), 2, 3.0), 500),
        Case("the fourth, 1 s", lambda seed: OnceRefusingHost(unlimited(0.07)(seed), 4, 1.0), 500),
    ),
    "30 % random 500s": (
        Case("no quota, 0.4 s", unlimited(0.4, failing=0.3), 0.7 * fastest(0.4)),
        Case("35/s", limited(lambda _: bucket(35, 10), failing=steady(0.3), network=0.2), 24.5),
        Case("no quota, named", unlimited(0.4, failing=0.3), 0.7 * fastest(0.4), named=True),
        Case("12/s, fixed", limited(lambda _: FixedWindowQuota(12, 1, phase=0.6), failing=steady(0.3)), 8.4),
    ),
    "150 a second at 30 ms": (
        Case("200 at 20 ms", limited(lambda _: bucket(200, 60), network=0.02), 200),
        Case("120 at 45 ms, fixed", limited(lambda _: FixedWindowQuota(120, 1, phase=0.7), network=0.045), 120),
        Case("strict second", limited(lambda _: StrictWindowQuota(150, 1), network=0.03), 150),
    ),
    "ten minutes of outage": (
        *(outage(outcome, SHALLOW, 25, "25/s", 200) for outcome in (503, "silence")),
        *(outage(outcome, COUNTED, 28, "28/s", 170) for outcome in (500, "reset")),
        *(outage(outcome, unlimited(0.3), fastest(0.3), "no quota", 150) for outcome in (503, 500, "reset", "silence")),
    ),
    "first contact, 600 a minute": (
        Case("minutes not ours", limited(lambda _: FixedWindowQuota(600, 60, phase=11), network=0.06), 10),
        Case("smoothed", limited(lambda _: SmoothedWindowQuota(600, 60), network=0.2), 10),
        Case("strict", limited(lambda _: StrictWindowQuota(600, 60)), 10),
        Case("shared", limited(lambda rng: SharedQuota(SlidingWindowQuota(720, 60), rng, 2)), 10),
    ),
    "thrashing": (
        Case("30/s, beyond 6", queue(1 / 30, healthy=6, strain=0.15, network=0.1), 30),
        Case("60/s, beyond 10", queue(1 / 60, healthy=10, strain=0.1, network=0.05), 60),
    ),
    "banned for a minute": (
        Case("eight in a minute", lambda seed: BanningHost(limited(lambda _: bucket(12, 12))(seed), 8), 12),
        Case(
            "503, ten in 30 s", lambda seed: BanningHost(limited(lambda _: bucket(30, 15))(seed), 10, 30, 60, 503), 30
        ),
    ),
    "lying Retry-After": (
        Case("says 2, closed for 8", lambda seed: LyingHost(limited(lambda _: bucket(25, 25))(seed), 8, 2), 25),
        Case("says 20, closed for 3", lambda seed: LyingHost(limited(lambda _: bucket(15, 10))(seed), 3, 20), 15),
    ),
    "minutes and ten seconds": (
        Case("900 a minute", limited(lambda _: FixedWindowQuota(900, 60, phase=52)), 15),
        Case("sliding minute of 420", limited(lambda _: SlidingWindowQuota(420, 60)), 7),
        Case("smoothed minute", limited(lambda _: SmoothedWindowQuota(600, 60)), 10),
        Case("150 in ten seconds", limited(lambda _: FixedWindowQuota(150, 10, phase=6.5)), 15),
        Case("sliding ten seconds of 80", limited(lambda _: SlidingWindowQuota(80, 10), network=0.2), 8),
    ),
}
OTHER_ROWS = tuple(replace(row, cases=OTHERS[row.name]) for row in TABLE)
