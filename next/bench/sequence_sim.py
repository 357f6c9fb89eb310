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


def bar(
    what: str,
    need: float | None,
    seconds: float,
    of: Callable[[Played], float],
    given: dict[str, Any] | None = None,
    **world: Any,  # noqa: ANN401
) -> Bar:
    """The worse of both variants."""
    found = []
    for variant in VARIANTS[: 1 if "--quick" in sys.argv else 2]:
        with tempfile.TemporaryDirectory() as folder:
            made: dict[str, Any] = {**variant, **world}
            found.append(of(play(Path(folder), seconds, partial(IdWorld, **made), **(given or {}))))
    return Bar(what, max(found), need)


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
    atlas = {"scaling": "atlas"}
    bars = [
        bar("requests in vain a record, 0.25 ids a second, no times", 1 / 3, 3600, vain, **slow),
        bar("the same by the seed's law, ten minutes", None, 600, vain, atlas, **slow),
        bar("lag p95 there, s", 20, 3600, p95, **slow),
        bar("requests while the head stopped for an hour", 1500, 4300, during(600, 4200), **stop),
        bar("the same with a head address", 400, 4300, during(600, 4200), head=True, **stop),
        bar("the first new id after that, s", 10, 4300, first_after(4200), **stop),
        bar("the same with a head address", 10, 4300, first_after(4200), head=True, **stop),
        bar("most behind, head ten times as fast for ten minutes, s", 60, 1500, behind, **fast),
        bar("of 2,000 records between five gaps of 200,000, left out within an hour", 0, 3600, left_out, **gaps),
    ]
    for kind in ("503", "refused", "hang", "200"):
        trouble = {**outage, "troubles": ((100, 700, kind),)}
        bars += [
            bar(f"requests in an outage of ten minutes, {kind}", 60, 1000, during(102, 700), **trouble),
            bar("caught up after it, s", 150, 1000, caught_up, **trouble),
        ]
    sys.exit(report(bars))
