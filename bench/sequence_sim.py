"""Does the guard around the scaling policy help, and is anything lost? Five scenarios of a simulated game, our real code.

The same crawl twice: with the bare policy, and with all rules of the guard. 60 ids a second, under virtual time.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import isfinite

from harness import Report, at_most
from sequence_drive import Course, drive

from sanderling.sequence.guard import GuardRules
from sanderling.sequence.lookout import LookRules
from sanderling.sequence.system import SequenceRules
from sanderling.worlds.game import Game, GameRules
from sanderling.worlds.game_presets import backlog, gap, pause, slow, steady

HOUR = 3600.0
BUFFER = 10_000

GUARDED = SequenceRules()
BARE = SequenceRules(
    guard=GuardRules(one_window=False, dead_zone=False, slew=False, little=False, knee=False, pacing=False),
    look=LookRules(pacing=False),
)
SIDES = {"bare": BARE, "guarded": GUARDED}


@dataclass(frozen=True, slots=True)
class Scenario:
    """What happens, for how long, and from where the crawl begins."""

    what: str
    rules: Callable[[], GameRules]
    hours: float
    start: Callable[[Game, float], int]
    optimum: float = 0.0  # seconds in which nobody could have caught up sooner


def near_head(game: Game, wall: float) -> int:
    return game.head(wall) - BUFFER


def at_first(game: Game, _wall: float) -> int:
    return game.first


SCENARIOS = (
    Scenario("steady", steady, 6, near_head),
    Scenario("backlog of 1 h, limit 150/s", backlog, 2, at_first, optimum=HOUR * 60 / 90),
    Scenario("gap of 300,000 ids", partial(gap, 300_000), 2, near_head),
    Scenario("pause of 20 min", partial(pause, 1200.0), 2, near_head),
    Scenario("latency x 4, limit 150/s", partial(slow, 4.0), 2, near_head),
)
HEAD = f"{'':<30}{'changes':>9}{'revers/h':>9}{'moved/h':>9}{'behind':>9}{'caught up':>11}{'404s':>9}{'probes':>8}{'refused':>9}{'diverted':>9}{'lost':>6}{'twice':>6}"


def line(what: str, course: Course) -> str:
    caught = course.caught_up()
    return (
        f"{what:<30}{course.changes:>9.0%}{course.reversals:>9.1f}{course.travel:>9.0f}"
        f"{max(behind for _, behind in course.behind):>8.0f}s"
        f"{f'{caught / 60:.1f} min' if isfinite(caught) else 'never':>11}"
        f"{course.missing:>9,}{course.probes:>8,}{course.refused:>9,}{course.diverted:>9,}{course.lost:>6,}{course.twice:>6,}"
    )


def main() -> None:
    report = Report("sequence_sim")
    print(HEAD)
    for scenario in SCENARIOS:
        for side, rules in SIDES.items():
            began = time.perf_counter()
            course = drive(scenario.rules(), rules, scenario.hours * HOUR, scenario.start)
            print(line(f"{scenario.what} {side}", course), f"  ({time.perf_counter() - began:.0f} s)", flush=True)
            name = f"{scenario.what}, {side}"
            report.figures |= {f"{name}: 404s": course.missing, f"{name}: changes": round(course.changes, 3)}
            if side == "guarded":
                report.bars += bars(scenario, course)
    report.finish()


def bars(scenario: Scenario, course: Course) -> list:
    found = [
        at_most(f"{scenario.what}: valid ids lost", 0, course.lost),
        at_most(f"{scenario.what}: ids diverted", 0, course.diverted),
        at_most(f"{scenario.what}: decisions that change the workers", 0.3, course.changes),
    ]
    if "gap" in scenario.what:
        found.append(at_most(f"{scenario.what}: 404s", 10_000, course.missing))
    if scenario.optimum:
        found.append(at_most(f"{scenario.what}: caught up, in optima", 1.1, course.caught_up() / scenario.optimum))
    return found


if __name__ == "__main__":
    main()
