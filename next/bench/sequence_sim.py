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

sys.path.append(str(Path(__file__).parents[1] / "tests"))
sys.path.append(str(Path(__file__).parents[1] / "simulators"))

from bars import Bar, report
from sequence.plays import Played, play
from sequence_ids import IdWorld

VARIANTS: tuple[dict[str, Any], ...] = ({"seed": 1}, {"seed": 77, "scatter": 2.0, "latency": 0.25})


def bar(what: str, need: float, seconds: float, of: Callable[[Played], float], rps: float = 40, **world: Any) -> Bar:  # noqa: ANN401
    """The worse of both variants."""
    found = []
    for variant in VARIANTS[: 1 if "--quick" in sys.argv else 2]:
        with tempfile.TemporaryDirectory() as folder:
            made: dict[str, Any] = {**world, **variant}
            found.append(of(play(Path(folder), seconds, partial(IdWorld, **made), rps=rps)))
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


if __name__ == "__main__":
    slow: dict[str, Any] = {"back": 20, "rates": ((0, 0.25),), "stamps": False}
    stop: dict[str, Any] = {"back": 2000, "rates": ((0, 4), (600, 0), (4200, 4)), "stamps": False}
    fast: dict[str, Any] = {"back": 20, "rates": ((0, 2), (600, 20), (1200, 2)), "stamps": False}
    sys.exit(
        report(
            [
                bar("requests in vain a record, 0.25 ids a second, no times", 1 / 3, 3600, vain, **slow),
                bar("lag p95 there, s", 20, 3600, p95, **slow),
                bar("requests while the head stopped for an hour", 1500, 4300, during(600, 4200), **stop),
                bar("the same with a head address", 400, 4300, during(600, 4200), head=True, **stop),
                bar("most behind, head ten times as fast for ten minutes, s", 60, 1500, behind, **fast),
                *(
                    bar(f"requests in an outage of ten minutes, {kind}", 60, 1000, during(102, 700),
                        rates=((0, 3),), troubles=((100, 700, kind),))
                    for kind in ("503", "refused", "hang", "200")
                ),
            ]
        )
    )  # fmt: skip
