# ruff: noqa: ANN401 - what a host is made with is checked where it is made.
"""The hosts that the limiter's simulation is played on: what real APIs do, and what the unkind among them do.

Each row asks the same of a limiter on several hosts. What is allowed is what the quota gives in the long run: 5,000 an
hour are 15,000 in three, however its hours lie. Each row has `others` of other sizes, depths, phases, latencies and
ways of counting; nobody tunes by those.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import exp, inf
from pathlib import Path
from random import Random
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "simulators"))

from hosts import (
    Banning,
    BoundedQueue,
    Changing,
    Faulty,
    FixedWindow,
    Host,
    Layers,
    Lying,
    Outage,
    Plan,
    Quota,
    RefusesOnce,
    Server,
    Shared,
    Shedding,
    SlidingWindow,
    SmoothedWindow,
    at,
    bucket,
)
from hosts import Bucket as QuotaBucket

MINUTE, HOUR = 60.0, 3600.0
OUTAGE = 10 * MINUTE
WORKERS = 32
CAP = 500.0  # requests a second that most rows allow us
Maker = Callable[[int], Host]  # a host, by seed


@dataclass(frozen=True, slots=True)
class Case:
    """One host of a row."""

    name: str
    host: Maker
    allowed: float | Plan | Callable[[int], Plan]  # a second, in the long run; or how it changes, perhaps by seed
    since: float = 0.0  # when the host's first full hour begins, or its outage
    limits: Mapping[str, float] = field(default_factory=dict)  # of ours, where they are not the usual ones
    clients: int = 1  # who know nothing of each other
    named: bool = False  # our limiter is told which item a request is for, and items that failed are sent again
    wanted: Callable[[float], float] = lambda now: now  # when there is next something to request

    def allows(self, seed: int, seconds: float) -> float:
        """How many requests it allows in the first `seconds`."""
        allowed = self.allowed(seed) if callable(self.allowed) else self.allowed
        plan = [(0.0, allowed)] if isinstance(allowed, int | float) else [each for each in allowed if each[0] < seconds]
        return sum(rate * (end - start) for (start, rate), (end, _) in pairwise([*plan, (seconds, 0.0)]))


@dataclass(frozen=True, slots=True)
class Row:
    """Hosts that ask the same of a limiter; what must be delivered at least and refused at most, in percent."""

    name: str
    cases: Sequence[Case]
    others: Sequence[Case] = ()
    delivered: float | None = None
    refused: float | None = None
    more: Mapping[str, float] = field(default_factory=dict)  # what else: the hour's share, seconds, refusals
    minutes: float = 10.0


def limited(quota: Callable[[Random], Quota], **more: Any) -> Maker:
    """A host with a quota."""

    def host(seed: int) -> Host:
        rng = Random(seed)
        return Server(rng, quota(rng), **more)

    return host


def by_bucket(rate: float, depth: float, **more: Any) -> Maker:
    return limited(lambda _: bucket(rate, depth), **more)


def by_window(limit: int, seconds: float = 1.0, phase: float = 0.0, **more: Any) -> Maker:
    return limited(lambda _: FixedWindow(limit, seconds, phase), **more)


def sliding(limit: int, seconds: float = 1.0, *, strict: bool = False, **more: Any) -> Maker:
    return limited(lambda _: SlidingWindow(limit, seconds, strict), **more)


def smoothed(limit: int, seconds: float, **more: Any) -> Maker:
    return limited(lambda _: SmoothedWindow(limit, seconds), **more)


def layers(*quotas: Callable[[], Quota], **more: Any) -> Maker:
    return limited(lambda _: Layers([each() for each in quotas]), **more)


def shared(quota: Callable[[], Quota], rate: float, **more: Any) -> Maker:
    """Others take `rate` requests a second of the quota."""
    return limited(lambda rng: Shared(quota(), rng, rate), **more)


def unlimited(network: float, failing: float = 0.0) -> Maker:
    """A host without a limit: as fast as the workers get their responses."""
    return lambda seed: Server(Random(seed), None, network, failing=[(0.0, failing)])


def fastest(network: float, spread: float = 0.35) -> float:
    """Requests a second that the workers can make where nothing else limits them."""
    return min(CAP, WORKERS / (network * exp(spread**2 / 2)))


def queue(work: float, room: float = inf, **more: Any) -> Maker:
    """One worker, with a queue."""
    return lambda seed: BoundedQueue(Random(seed), work, room, **more)


def worker(plan: Plan, *, random_work: bool = False) -> Maker:
    """One worker that does so many requests a second, and refuses nobody."""
    return lambda seed: Server(Random(seed), network=0.075, work=lambda now: 1 / at(plan, now), random_work=random_work)


def changing(name: str, plan: Plan, depth: float, network: float = 0.1) -> Case:
    """A bucket whose rate changes."""
    return Case(name, limited(lambda _: QuotaBucket(plan, depth), network=network), plan)


def counted(plan: Plan, kind: Callable[[int, float], Quota]) -> Quota:
    """A quota that is counted second by second, and changes."""
    return Changing([(start, kind(int(rate), 1.0)) for start, rate in plan])


def changing_window(name: str, plan: Plan, kind: Callable[[int, float], Quota]) -> Case:
    return Case(name, limited(lambda _: counted(plan, kind)), plan)


def redrawn(
    name: str,
    depth: float | None,
    retry_after: float | None = None,
    network: float = 0.1,
    *,
    low: int = 2,
    high: int = 60,
    apart: int = 77,
) -> Case:
    """A bucket, or without a depth a window of a second, whose rate is drawn anew each minute: 2 to 60 a second."""

    def draw(seed: int) -> Plan:
        rng = Random(seed + apart)
        return [(number * MINUTE, round(rng.uniform(low, high))) for number in range(15)]

    def host(seed: int) -> Host:
        plan = draw(seed)
        quota = QuotaBucket(plan, depth) if depth else counted(plan, FixedWindow)
        return Server(Random(seed), quota, network, retry_after=retry_after)

    return Case(name, host, draw)


def outage(ending: int | str, well: Maker, rate: float, what: str, since: float = 3 * MINUTE) -> Case:
    """Ten minutes in which all requests end alike."""
    plan = [(0.0, rate), (since, 0.0), (since + OUTAGE, rate)]
    return Case(f"{ending}, {what}", lambda seed: Outage(well(seed), since, since + OUTAGE, ending), plan, since)


TWENTY_OURS = {"max_rps": 20.0, "initial_rps": 2.0}


def one_refusal(name: str, network: float, which: int, retry_after: float) -> Case:
    return Case(name, lambda seed: RefusesOnce(unlimited(network)(seed), which, retry_after), CAP)


def faulty(name: str, every: int, bunch: int = 1, network: float = 0.1) -> Case:
    """A host that says 503 to some requests and has no limit but ours: 20 a second."""
    host = unlimited(network)
    return Case(name, lambda seed: Faulty(host(seed), every, bunch), 20 * (1 - 1 / every), limits=TWENTY_OURS)


def faulty_by_chance(name: str, share: float, network: float = 0.1) -> Case:
    failing = [(0.0, share)]
    return Case(
        name,
        lambda seed: Server(Random(seed), None, network, failing=failing, failure=503),
        20 * (1 - share),
        limits=TWENTY_OURS,
    )


def banning(name: str, host: Maker, rate: float, *rules: Any) -> Case:
    return Case(name, lambda seed: Banning(host(seed), *rules), rate)


def lying(name: str, rate: float, depth: float, closed: float, says: float) -> Case:
    return Case(name, lambda seed: Lying(by_bucket(rate, depth)(seed), closed, says), rate)


NOISY: dict[str, Any] = {"failing": [(0.0, 0.02)], "failure": 429}
FAULTY: dict[str, Any] = {"failing": [(0.0, 0.3)]}
SIX = [(0.0, 20.0), (200.0, 6.0), (400.0, 20.0)]
SLOWED = [(0.0, 40.0), (200.0, 12.0), (400.0, 40.0)]
DOWN = [(0.0, 0.0), (200.0, 1.0), (260.0, 0.0)]  # the share that fails,
WELL = [(0.0, 20.0), (200.0, 0.0), (260.0, 20.0)]  # and what is allowed meanwhile
HOURLY = 5000 / 3600
TWENTY = by_bucket(20, 20)
SHALLOW = by_bucket(25, 5, network=0.07)
COUNTED = by_window(28, 1, 0.4, network=0.15)
PLAIN = {"max_rps": 8.0, "initial_rps": 2.0}  # what is not set by anybody


def alone(
    name: str,
    host: Maker,
    allowed: float | Plan,
    delivered: float | None = None,
    refused: float | None = None,
    **more: Any,
) -> Row:
    """A row of one host."""
    return Row(name, [Case("", host, allowed, **more)], (), delivered, refused)


FIRST = (
    alone("A 20/s, silent 429", TWENTY, 20, 95, 0.2),
    replace(alone("B + Retry-After 5 s", by_bucket(20, 20, retry_after=5.0), 20), more={"early": 0}),
    alone("C 600 per minute", by_window(600, 60), 10, 97, 0.5),
    replace(alone("D server 40/s, queue", worker([(0.0, 40)]), 40, 85), more={"median": 0.12}),
    Row("E quota 20, 6, 20", [changing("", SIX, 20)], (), 90, 0.3),
    alone("F server at 30 %", worker(SLOWED), SLOWED),
    alone("G 10 s on, 50 s off", TWENTY, 20 / 6, wanted=lambda now: now if now % 60 < 10 else (now // 60 + 1) * 60),
    alone("A, counted per second", by_window(20), 20),
    alone("A, sliding second", sliding(20), 20),
    alone("A, no burst at all", by_bucket(20, 1.5), 20),
    alone("A, ten times as fast", by_bucket(200, 200), 200),
    alone("A, one in two seconds", by_bucket(0.5, 1), 0.5),
    alone("A, answers in 1.5 s", by_bucket(20, 20, network=1.5), 20),
    alone("A, erratic latency", by_bucket(20, 20, spread=1.0), 20),
    alone("A, 2 % random 500s", by_bucket(20, 20, failing=[(0.0, 0.02)]), 19.6),
    alone("A, 30 % random 500s", by_bucket(20, 20, **FAULTY), 14),
    alone("A, down for 60 s", by_bucket(20, 20, failing=DOWN), WELL),
    alone("A, 503 for 60 s", by_bucket(20, 20, failing=DOWN, failure=503), WELL),
    alone("C, minute by 503", by_window(600, 60, refusal=503), 10),
    alone("B, counted per second", by_window(20, retry_after=5.0), 20),
    alone("C, sliding minute", sliding(600, 60), 10),
    alone("C, 5000 per hour", by_window(5000, 3600), 5000 / 600),
    alone("D, random work", worker([(0.0, 40)], random_work=True), 40),
    Row("E, shallow bucket", [changing("", SIX, 6)]),
)
ROWS = (
    *FIRST,
    Row(
        "10 a second and 5,000 an hour",
        [
            Case("fixed", layers(lambda: FixedWindow(10, 1), lambda: FixedWindow(5000, HOUR)), HOURLY),
            Case("sliding hour", layers(lambda: bucket(10, 10), lambda: SlidingWindow(5000, HOUR)), HOURLY),
            Case(
                "hours not ours",
                layers(lambda: SlidingWindow(10, 1), lambda: FixedWindow(5000, HOUR, 1500)),
                HOURLY,
                since=1500,
            ),
            Case("two clients", layers(lambda: bucket(10, 20), lambda: FixedWindow(5000, HOUR)), HOURLY, clients=2),
        ],
        [
            Case(
                "8/s and 3,600", layers(lambda: SlidingWindow(8, 1), lambda: SlidingWindow(3600, HOUR), network=0.2), 1
            ),
            Case(
                "15/s and 9,000, 20 min in",
                layers(lambda: bucket(15, 5), lambda: FixedWindow(9000, HOUR, 2400)),
                2.5,
                since=2400,
            ),
            Case(
                "with 200 a minute between",
                layers(lambda: bucket(10, 10), lambda: SlidingWindow(200, 60), lambda: FixedWindow(5000, HOUR)),
                HOURLY,
            ),
        ],
        92,
        0.6,
        {"hour 2": 92, "hour 3": 92},
        180,
    ),
    Row(
        "20 a second, 2 % random 429",
        [
            Case("bucket", by_bucket(20, 20, **NOISY), 19.6),
            Case("shallow", by_bucket(20, 4, **NOISY), 19.6),
            Case("sliding second", sliding(20, **NOISY), 19.6),
            Case("slow answers", by_bucket(20, 20, network=0.6, **NOISY), 19.6),
            Case("neighbours", shared(lambda: bucket(30, 30), 10, **NOISY), 19.6),
        ],
        [
            Case("35/s", by_bucket(35, 12, network=0.06, **NOISY), 34.3),
            Case("12/s, fixed", by_window(12, 1, 0.3, **NOISY), 11.76),
            Case("14/s, neighbours", shared(lambda: bucket(18, 36), 4, network=0.3, **NOISY), 13.72),
        ],
        80,
        3,
    ),
    Row(
        "redrawn each minute",
        [redrawn("bucket 20", 20), redrawn("bucket 60, slower", 60, network=0.25), redrawn("by the second", None)],
        [
            redrawn("bucket 10, other draws", 10, apart=5077),
            redrawn("4 to 45, by the second", None, network=0.05, low=4, high=45, apart=6077),
            redrawn("bucket 30, slow answers", 30, network=0.4, apart=7077),
        ],
        85,
        1,
        {},
        15,
    ),
    Row(
        "redrawn, Retry-After 1",
        [redrawn("bucket 20", 20, 1.0), redrawn("by the second", None, 1.0)],
        [
            redrawn("bucket 10, other draws", 10, 1.0, 0.15, apart=5077),
            redrawn("4 to 45, by the second", None, 1.0, low=4, high=45, apart=6077),
        ],
        85,
        1,
        {"early": 0},
        15,
    ),
    Row(
        "quota 20, 6, 20",
        [
            changing("bucket", SIX, 20),
            changing_window("sliding second", SIX, SlidingWindow),
            changing("later, shallow", [(0.0, 20), (330.0, 6), (510.0, 20)], 10),
            replace(changing("two clients", SIX, 20), clients=2),
        ],
        [
            changing("30, 8, 30", [(0.0, 30), (140.0, 8), (390.0, 30)], 15, 0.06),
            changing_window("by the second", [(0.0, 18), (260.0, 5), (430.0, 18)], FixedWindow),
            changing("slow answers", [(0.0, 20), (90.0, 6), (300.0, 20)], 20, 0.4),
            changing_window("24, 7, 24, sliding", [(0.0, 24), (215.0, 7), (405.0, 24)], SlidingWindow),
        ],
        92,
        0.3,
    ),
    Row(
        "503 when overloaded",
        [
            Case("40/s, room for 20", queue(0.025, 20), 40),
            Case("40/s, room for 6", queue(0.025, 6, vary=0.2), 40),
            Case("8/s, room for 10", queue(0.125, 10, network=0.2), 8),
        ],
        [
            Case("60/s, room for 25", queue(1 / 60, 25, network=0.05), 60),
            Case("15/s, room for 6", queue(1 / 15, 6, vary=0.1, network=0.12), 15),
            Case("25/s, room for 12, varied", queue(0.04, 12, vary=0.4), 25),
        ],
        86,
        0.6,
    ),
    Row(
        "bare 503 above a rate",
        [
            Case("bucket", by_bucket(20, 20, refusal=503), 20),
            Case("shallow", by_bucket(20, 4, refusal=503), 20),
            Case("by the second", by_window(20, refusal=503), 20),
            Case("sliding second", sliding(20, refusal=503), 20),
            Case("sheds at random", limited(lambda rng: Shedding(20, rng), refusal=503), 20),
        ],
        [
            Case("35/s", by_bucket(35, 12, network=0.06, refusal=503), 35),
            Case("7/s, fixed", by_window(7, 1, 0.3, network=0.2, refusal=503), 7),
            Case("sliding 50", sliding(50, network=0.05, refusal=503), 50),
            Case("sheds above 12", limited(lambda rng: Shedding(12, rng, 3.0), network=0.2, refusal=503), 12),
        ],
        86,
        1,
    ),
    Row(
        "bare 503s at any rate",
        [
            faulty("every seventh", 7),
            faulty("three in 21", 7, 3),
            faulty_by_chance("14 % by chance", 0.14),
            faulty_by_chance("14 %, slow answers", 0.14, 0.6),
        ],
        [
            faulty("every tenth", 10, network=0.05),
            faulty("two in ten", 5, 2, 0.3),
            faulty_by_chance("25 % by chance", 0.25, 0.2),
            faulty_by_chance("6 % by chance", 0.06),
        ],
        86,
    ),
    Row(
        "429s that take 2 s",
        [
            Case("bucket", by_bucket(20, 20, refusal_time=20.0), 20),
            Case("shallow", by_bucket(20, 4, refusal_time=20.0), 20),
            Case("by the second", by_window(20, refusal_time=20.0), 20),
            Case("sliding second", sliding(20, refusal_time=20.0), 20),
            Case("600 a minute", by_window(600, 60, refusal_time=20.0), 10),
        ],
        [
            Case("35/s", by_bucket(35, 12, network=0.05, refusal_time=40.0), 35),
            Case("12/s, fixed", by_window(12, 1, 0.3, network=0.2, refusal_time=10.0), 12),
            Case("sliding ten seconds of 80", sliding(80, 10, refusal_time=20.0), 8),
        ],
        85,
        1,
    ),
    Row(
        "nothing set: 2 to 8 a second",
        [
            Case("5/s", by_bucket(5, 5), 5, limits=PLAIN),
            Case("5/s, shallow", by_bucket(5, 1.5), 5, limits=PLAIN),
            Case("5/s, by the second", by_window(5), 5, limits=PLAIN),
            Case("3/s, sliding", sliding(3), 3, limits=PLAIN),
            Case("2/s", by_bucket(2, 4), 2, limits=PLAIN),
            Case("1/s", by_bucket(1, 5), 1, limits=PLAIN),
            Case("120 a minute", by_window(120, 60), 2, limits=PLAIN),
            Case("300 a minute", by_window(300, 60), 5, limits=PLAIN),
            Case("1,000 an hour", by_window(1000, HOUR), 1000 / 600, limits=PLAIN),
            Case("20/s", TWENTY, 8, limits=PLAIN),
        ],
        [
            Case("6/s", by_bucket(6, 10, network=0.2), 6, limits=PLAIN),
            Case("4/s, fixed", by_window(4, 1, 0.6), 4, limits=PLAIN),
            Case("1.5/s", by_bucket(1.5, 2, network=0.3), 1.5, limits=PLAIN),
            Case("200 a minute, sliding", sliding(200, 60), 200 / 60, limits=PLAIN),
            Case("30 in ten seconds", by_window(30, 10, 6.5), 3, limits=PLAIN),
        ],
        80,
        1,
    ),
    Row(
        "minute quota by 503",
        [
            Case("fixed", by_window(600, 60, refusal=503), 10),
            Case("minutes not ours", by_window(600, 60, 37, refusal=503), 10),
            Case("sliding", sliding(600, 60, refusal=503), 10),
        ],
        [
            Case("300, minutes not ours", by_window(300, 60, 22, refusal=503), 5),
            Case("900, smoothed", smoothed(900, 60, refusal=503, network=0.2), 15),
        ],
        85,
        1,
    ),
    Row(
        "12 a minute, min_rps above",
        [
            Case("fixed, min 0.25", by_window(12, 60), 0.2, limits={"min_rps": 0.25}),
            Case("fixed, min 1", by_window(12, 60, 41), 0.2, limits={"min_rps": 1.0}),
            Case("sliding, min 1", sliding(12, 60), 0.2, limits={"min_rps": 1.0}),
            Case("bucket, min 0.25", by_bucket(0.2, 3), 0.2, limits={"min_rps": 0.25}),
        ],
        [
            Case("10, min 0.25", sliding(10, 60, network=0.3), 1 / 6, limits={"min_rps": 0.25}),
            Case("20, min 1", by_window(20, 60, 13), 1 / 3, limits={"min_rps": 1.0}),
            Case("15, min 0.5", by_bucket(0.25, 1.5), 0.25, limits={"min_rps": 0.5}),
        ],
        92,
        2,
        {},
        180,
    ),
    Row(
        "one worker of 1 s",
        [
            Case("room for 8", queue(1.0, 8), 1),
            Case("room for 20, varied", queue(1.0, 20, vary=0.2, network=0.2), 1),
            Case("any number", queue(1.0), 1),
        ],
        [
            Case("room for 5", queue(1.0, 5, network=0.05), 1),
            Case("room for 12, varied", queue(1.0, 12, vary=0.3, network=0.15), 1),
            Case("0.9 s, any number", queue(0.9, vary=0.1), 1 / 0.9),
        ],
        85,
        0.3,
        {"median": 2.2},
        30,
    ),
    Row(
        "no limit, one 429",
        [
            one_refusal("the first, 1 s", 0.05, 1, 1.0),
            one_refusal("the third, 2 s", 0.03, 3, 2.0),
            one_refusal("the fifth, 5 s", 0.05, 5, 5.0),
        ],
        [one_refusal("the second, 3 s", 0.04, 2, 3.0), one_refusal("the fourth, 1 s", 0.07, 4, 1.0)],
        more={"at 250/s": 20},
        minutes=1,
    ),
    Row(
        "30 % random 500s",
        [
            Case("no quota, 0.25 s", unlimited(0.25, 0.3), 0.7 * fastest(0.25)),
            Case("no quota, 0.6 s", unlimited(0.6, 0.3), 0.7 * fastest(0.6)),
            Case("20/s", by_bucket(20, 20, **FAULTY), 14),
            Case("20/s, items named", by_bucket(20, 20, **FAULTY), 14, named=True),
            Case("20/s, sliding", sliding(20, **FAULTY), 14),
        ],
        [
            Case("no quota, 0.4 s", unlimited(0.4, 0.3), 0.7 * fastest(0.4)),
            Case("35/s", by_bucket(35, 10, network=0.2, **FAULTY), 24.5),
            Case("no quota, named", unlimited(0.4, 0.3), 0.7 * fastest(0.4), named=True),
            Case("12/s, fixed", by_window(12, 1, 0.6, **FAULTY), 8.4),
        ],
        60,
    ),
    Row(
        "150 a second at 30 ms",
        [
            Case("bucket", by_bucket(150, 150, network=0.03), 150),
            Case("shallow", by_bucket(150, 15, network=0.03), 150),
            Case("sliding second", sliding(150, network=0.03), 150),
        ],
        [
            Case("200 at 20 ms", by_bucket(200, 60, network=0.02), 200),
            Case("120 at 45 ms, fixed", by_window(120, 1, 0.7, network=0.045), 120),
            Case("strict second", sliding(150, strict=True, network=0.03), 150),
        ],
        95,
        0.1,
    ),
    Row(
        "ten minutes of outage",
        [
            *(outage(ending, TWENTY, 20, "20/s") for ending in (503, 500, "reset", "silence")),
            *(outage(ending, unlimited(0.5), fastest(0.5), "no quota") for ending in (503, 500, "reset", "silence")),
        ],
        [
            *(outage(ending, SHALLOW, 25, "25/s", 200) for ending in (503, "silence")),
            *(outage(ending, COUNTED, 28, "28/s", 170) for ending in (500, "reset")),
            *(
                outage(ending, unlimited(0.3), fastest(0.3), "no quota", 150)
                for ending in (503, 500, "reset", "silence")
            ),
        ],
        more={"before": 18, "gap": 30, "back": 60},
        minutes=15,
    ),
    Row(
        "first contact, 600 a minute",
        [
            Case("fixed", by_window(600, 60), 10),
            Case("minutes not ours", by_window(600, 60, 37), 10),
            Case("sliding", sliding(600, 60), 10),
        ],
        [
            Case("minutes not ours", by_window(600, 60, 11, network=0.06), 10),
            Case("smoothed", smoothed(600, 60, network=0.2), 10),
            Case("strict", sliding(600, 60, strict=True), 10),
            Case("shared", shared(lambda: SlidingWindow(720, 60), 2), 10),
        ],
        more={"at first": 15},
    ),
    Row(
        "thrashing",
        [
            Case("40/s, beyond 8", queue(0.025, healthy=8, strain=0.1), 40),
            Case("40/s, room for 30", queue(0.025, 30, healthy=4, strain=0.2, vary=0.2), 40),
        ],
        [
            Case("30/s, beyond 6", queue(1 / 30, healthy=6, strain=0.15, network=0.1), 30),
            Case("60/s, beyond 10", queue(1 / 60, healthy=10, strain=0.1, network=0.05), 60),
        ],
        80,
    ),
    Row(
        "banned for a minute",
        [banning("ten in a minute", TWENTY, 20), banning("five in 10 s", sliding(20), 20, 5, 10)],
        [
            banning("eight in a minute", by_bucket(12, 12), 12, 8),
            banning("503, ten in 30 s", by_bucket(30, 15), 30, 10, 30, 60, 503),
        ],
        95,
    ),
    Row(
        "lying Retry-After",
        [
            lying("says 1, closed for 5", 20, 20, 5, 1),
            lying("says 30, closed for 5", 20, 20, 5, 30),
            lying("says 0, closed for 5", 20, 20, 5, 0),
        ],
        [lying("says 2, closed for 8", 25, 25, 8, 2), lying("says 20, closed for 3", 15, 10, 3, 20)],
        85,
        minutes=20,
    ),
    Row(
        "minutes and ten seconds",
        [
            Case("600 a minute", by_window(600, 60), 10),
            Case("minutes not ours", by_window(600, 60, 37), 10),
            Case("sliding minute", sliding(600, 60), 10),
            Case("100 in ten seconds", by_window(100, 10, 3), 10),
            Case("sliding ten seconds", sliding(100, 10), 10),
        ],
        [
            Case("900 a minute", by_window(900, 60, 52), 15),
            Case("sliding minute of 420", sliding(420, 60), 7),
            Case("smoothed minute", smoothed(600, 60), 10),
            Case("150 in ten seconds", by_window(150, 10, 6.5), 15),
            Case("sliding ten seconds of 80", sliding(80, 10, network=0.2), 8),
        ],
        97,
        0.4,
        {},
        20,
    ),
)
