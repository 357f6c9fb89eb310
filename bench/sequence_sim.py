"""Does the guard around the scaling policy help, and is anything lost? Five scenarios of a simulated game.

Our real code but for the sockets, under virtual time, twice: with the bare policy, and with all rules of the guard. The
game makes 60 ids a second; its quota of 150 requests a second is counted over ten seconds. `--only WORD` runs the
scenarios that have the word in their name, `--hours` shortens them.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import isfinite

from harness import Report, at_most
from sequence_drive import Course, drive

from sanderling.sequence.guard import ScalingGuardRules
from sanderling.sequence.lookout import LookRules
from sanderling.sequence.system import SequenceRules
from sanderling.worlds.game import Game, GameRules
from sanderling.worlds.game_presets import backlog, gap, pause, slow, steady

HOUR = 3600.0
BUFFER = 10_000

GUARDED = SequenceRules()
BARE = SequenceRules(
    guard=ScalingGuardRules(one_window=False, dead_zone=False, slew=False, little=False, knee=False, pacing=False),
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
    catches_up: bool = False


def near_head(game: Game, wall: float) -> int:
    """As far behind as a crawl begins that knows the head."""
    return game.head(wall) - BUFFER


def at_first(game: Game, _wall: float) -> int:
    """With all that there is before it."""
    return game.first


SCENARIOS = (
    Scenario("steady", steady, 6, near_head),
    Scenario("backlog of 1 h, limit 150/s", backlog, 2, at_first, catches_up=True),
    Scenario("gap of 300,000 ids", partial(gap, 300_000), 2, near_head),
    Scenario("pause of 20 min", partial(pause, 1200.0), 2, near_head),
    Scenario("latency x 4, limit 150/s", partial(slow, 4.0), 2, near_head),
)
COLUMNS = ("changes", "turns/h", "moved/h", "behind", "caught up", "404s", "probes", "refused", "diverted", "lost")


def line(course: Course) -> str:
    """The columns of one course."""
    caught = course.caught_up()
    cells = (
        f"{course.changes:.0%}",
        f"{course.reversals:.1f}",
        f"{course.travel:.0f}",
        f"{max(behind for _, behind in course.behind):.0f} s",
        f"{caught / 60:.1f} min" if isfinite(caught) else "never",
        *(f"{number:,}" for number in (course.missing, course.probes, course.refused, course.diverted, course.lost)),
    )
    return "".join(f"{cell:>10}" for cell in cells)


def main() -> None:
    """Run the scenarios, and say whether the bars are met."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--only", default="")
    parser.add_argument("--hours", type=float, default=float("inf"))
    given, sys.argv[1:] = parser.parse_known_args()  # the harness reads the rest
    report = Report("sequence_sim")
    print(f"{'':38}" + "".join(f"{name:>10}" for name in COLUMNS))
    for scenario in (each for each in SCENARIOS if given.only in each.what):
        for side, rules in SIDES.items():
            hours = min(given.hours, scenario.hours)
            course = drive(scenario.rules(), rules, hours * HOUR, scenario.start)
            print(f"{scenario.what + ', ' + side:38}{line(course)}", flush=True)
            report.figures |= {
                f"{scenario.what}, {side}: {name}": round(float(getattr(course, name)), 3)
                for name in ("changes", "reversals", "travel", "missing", "refused", "diverted", "lost", "twice")
            }
            if side == "guarded":
                judge(report, scenario, course)
    report.finish()


def judge(report: Report, scenario: Scenario, course: Course) -> None:
    """What we hold ourselves to."""
    what = scenario.what
    report.bars += [
        at_most(f"{what}: valid ids lost", 0, course.lost),
        at_most(f"{what}: records queued twice", 0, course.twice),
        at_most(f"{what}: ids diverted", 0, course.diverted),
        at_most(f"{what}: share of decisions that change the workers", 0.3, course.changes),
    ]
    if "gap" in what:
        report.bars.append(at_most(f"{what}: not found, in all", 10_000, course.missing))
    if scenario.catches_up:
        ratio = course.caught_up() / course.optimum
        report.bars.append(at_most(f"{what}: caught up, in the least possible time", 1.1, ratio))


if __name__ == "__main__":
    main()
