"""Does a follower of ids keep up, cost little and lose nothing? Hours of hosts in virtual time.

Each row is played on a second variant of its host as well (another seed, jitter and rate), which nobody tunes by; the
worse of both counts. `--quick` plays the first variant only.
"""

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bars import Bar, report

# In place of this folder, whose sequence.py would hide the tests' folder of that name.
sys.path[:1] = [str(Path(__file__).parents[1] / name) for name in ("tests", "simulators")]

from sequence.plays import Played, play  # noqa: E402
from sequence_ids import IdWorld  # noqa: E402

VARIANTS: tuple[dict[str, Any], ...] = ({"seed": 1}, {"seed": 77, "scatter": 2.0, "latency": 0.25})


Figure = tuple[str, float | None, Callable[[Played], float]]  # what, at most, and how it is read from a play


def bars(seconds: float, *figures: Figure, scaling: str = "guarded", **world: Any) -> list[Bar]:  # noqa: ANN401
    """Figures of one host: the worse of both variants."""
    found: list[list[float]] = [[] for _ in figures]
    for variant in VARIANTS[: 1 if "--quick" in sys.argv else 2]:
        with tempfile.TemporaryDirectory() as folder:
            made: dict[str, Any] = {**variant, **world}
            played = play(Path(folder), seconds, partial(IdWorld, **made), rps=40, scaling=scaling)
            for values, (_, _, of) in zip(found, figures, strict=True):
                values.append(of(played))
    return [Bar(what, max(values), need) for values, (what, need, _) in zip(found, figures, strict=True)]


def vain(played: Played) -> float:
    return played.world.said["none"] / max(1, played.world.said["ok"])


def p95(played: Played) -> float:
    lags = played.lags(after=60)
    return lags[int(len(lags) * 0.95)]


def during(start: float, end: float) -> Callable[[Played], float]:
    return lambda played: sum(start < at < end for at, _, _ in played.world.asked)


def behind(played: Played) -> float:
    return max(played.lags(after=590))


def first_after(second: float) -> Callable[[Played], float]:
    """Seconds until the first record that is visible after a second is stored."""

    def of(played: Played) -> float:
        seen = {number: played.world.seen(number) for number in played.world.stored_at}
        first = min((number for number in seen if seen[number] > second), key=seen.__getitem__)
        return played.world.stored_at[first] - seen[first]

    return of


def caught_up(played: Played) -> float:
    """Seconds after the end of the outage until everything of it is stored."""
    return max(at for number, at in played.world.stored_at.items() if played.world.seen(number) < 700) - 700


def left_out(played: Played) -> float:
    return len(played.world.due(1) - set(played.counts))


if __name__ == "__main__":
    slow: dict[str, Any] = {"back": 20, "rates": ((0, 0.25),), "stamps": False}
    stop: dict[str, Any] = {"back": 2000, "rates": ((0, 4), (600, 0), (4200, 4)), "stamps": False}
    fast: dict[str, Any] = {"back": 20, "rates": ((0, 2), (600, 20), (1200, 2)), "stamps": False}
    gaps: dict[str, Any] = {
        "back": 2000,
        "block": (400, 200_000),
        "rates": ((0, 0.1),),
        "stamps": False,
        "latency": 3.0,
    }
    outage: dict[str, Any] = {"rates": ((0, 3),)}
    paused, first = during(600, 4200), first_after(4200)
    rows = bars(
        3600, ("requests in vain a record, 0.25 ids a second, no times", 1 / 3, vain), ("lag p95 there, s", 20, p95),
        **slow,
    )  # fmt: skip
    rows += bars(600, ("the same by the seed's law, ten minutes", None, vain), scaling="atlas", **slow)
    rows += bars(
        4300, ("requests while the head stopped for an hour", 1500, paused), ("the first new id after, s", 10, first),
        **stop,
    )  # fmt: skip
    rows += bars(
        4300, ("the same with a head address", 400, paused), ("the first new id after, s", 10, first), head=True, **stop
    )
    rows += bars(1500, ("most behind, head ten times as fast for ten minutes, s", 60, behind), **fast)
    rows += bars(
        3600, ("of 2,000 records between gaps of 200,000, 3 s a response, left out in an hour", 0, left_out), **gaps
    )
    for kind in ("503", "refused", "hang", "200"):
        rows += bars(
            1000, (f"requests in an outage of ten minutes, {kind}", 60, during(102, 700)),
            ("caught up after it, s", 150, caught_up), troubles=((100, 700, kind),), **outage,
        )  # fmt: skip
    sys.exit(report(rows))
