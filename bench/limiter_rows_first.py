"""The first rows of the limiter's simulation, A to G, and variations on them."""

from random import Random

from limiter_cases import Case, Need, Row, bucket, changing, limited

from sanderling.worlds.hosts import FixedWindowQuota, SimulatedHost, SlidingWindowQuota, steady, steps

EVERYBODY = ("plain AIMD", "AWS adaptive", "AutoThrottle 1", "AutoThrottle 8", "Gradient2", "our aimd")
SIX = [(0.0, 20), (200.0, 6), (400.0, 20)]
SLOWED = [(0.0, 40), (200.0, 12), (400.0, 40)]
OUTAGE = steps([(0, 0), (200, 1), (260, 0)])
WELL = [(0.0, 20), (200.0, 0), (260.0, 20)]


def in_bursts(now: float) -> float:
    """Ten seconds of work in each minute."""
    return now if now % 60 < 10 else (now // 60 + 1) * 60


def slowed(now: float) -> float:
    """The seconds of work for each request."""
    return 1 / steps(SLOWED)(now)


def forty(seed: int, *, random_service: bool = False) -> SimulatedHost:
    """A server that does 40 requests a second, one at a time."""
    return SimulatedHost(Random(seed), network=0.075, service=steady(0.025), random_service=random_service)


def first(name: str, case: Case, need: Need) -> Row:
    """One of A to G."""
    return Row(name, need, kept=True, rivals=EVERYBODY, cases=(case,))


def varied(name: str, case: Case) -> Row:
    """To see that it solves the problem and not the table."""
    return Row(name, {}, kept=True, rivals=(), cases=(case,))


FIRST = (
    first(
        "A 20/s, silent 429",
        Case("", limited(lambda _: bucket(20, 20)), 20),
        {"delivered": (">=", 95), "refused": ("<=", 0.2)},
    ),
    first(
        "B + Retry-After 5 s",
        Case("", limited(lambda _: bucket(20, 20), retry_after=5.0), 20),
        {"early": ("<=", 0)},
    ),
    first(
        "C 600 per minute",
        Case("", limited(lambda _: FixedWindowQuota(600, 60)), 10),
        {"delivered": (">=", 97), "refused": ("<=", 0.5)},
    ),
    first("D server 40/s, queue", Case("", forty, 40), {"delivered": (">=", 85), "median": ("<=", 0.12)}),
    first("E quota 20, 6, 20", changing("", SIX, 20), {"delivered": (">=", 90), "refused": ("<=", 0.3)}),
    first(
        "F server at 30 %",
        Case("", lambda seed: SimulatedHost(Random(seed), network=0.075, service=slowed), lambda _: SLOWED),
        {},
    ),
    first("G 10 s on, 50 s off", Case("", limited(lambda _: bucket(20, 20)), 20 / 6, wanted=in_bursts), {}),
    varied("A, counted per second", Case("", limited(lambda _: FixedWindowQuota(20, 1)), 20)),
    varied("A, sliding second", Case("", limited(lambda _: SlidingWindowQuota(20, 1)), 20)),
    varied("A, no burst at all", Case("", limited(lambda _: bucket(20, 1.5)), 20)),
    varied("A, ten times as fast", Case("", limited(lambda _: bucket(200, 200)), 200)),
    varied("A, one in two seconds", Case("", limited(lambda _: bucket(0.5, 1)), 0.5)),
    varied("A, answers in 1.5 s", Case("", limited(lambda _: bucket(20, 20), network=1.5), 20)),
    varied("A, erratic latency", Case("", limited(lambda _: bucket(20, 20), spread=1.0), 20)),
    varied("A, 2 % random 500s", Case("", limited(lambda _: bucket(20, 20), failing=steady(0.02)), 19.6)),
    varied("A, 30 % random 500s", Case("", limited(lambda _: bucket(20, 20), failing=steady(0.3)), 14)),
    varied("A, down for 60 s", Case("", limited(lambda _: bucket(20, 20), failing=OUTAGE), lambda _: WELL)),
    varied("A, 503 for 60 s", Case("", limited(lambda _: bucket(20, 20), failing=OUTAGE, failure=503), lambda _: WELL)),
    varied("C, minute by 503", Case("", limited(lambda _: FixedWindowQuota(600, 60), refusal=503), 10)),
    varied("B, counted per second", Case("", limited(lambda _: FixedWindowQuota(20, 1), retry_after=5.0), 20)),
    varied("C, sliding minute", Case("", limited(lambda _: SlidingWindowQuota(600, 60)), 10)),
    varied("C, 5000 per hour", Case("", limited(lambda _: FixedWindowQuota(5000, 3600)), 5000 / 600)),
    varied("D, random work", Case("", lambda seed: forty(seed, random_service=True), 40)),
    varied("E, shallow bucket", changing("", SIX, 6)),
)
