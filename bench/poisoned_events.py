"""A thousand messages, and three whose objects are garbage, never arrive or always get a 500. For `poisoned`."""

import sys
from pathlib import Path
from random import Random

from harness import at_least, at_most
from poisoned_table import Part, Table, count, run_all
from processes import ROOT

sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests" / "events"))  # where the world is that the tests have too

from bad_objects import Bad, consume

GOOD = 1_000
SHARE = 0.9  # of the throughput without bad objects


def objects(table: Table, folder: Path, seed: int) -> None:
    """Three bad objects: the first of all, anywhere, or each alone."""
    rng = Random(f"places {seed}")
    anywhere = dict(zip(rng.sample(range(GOOD), len(Bad)), Bad, strict=True))
    places = {"clean": {}, "the first three": dict(enumerate(Bad)), f"at {', '.join(map(str, anywhere))}": anywhere}
    runs = dict(run_all(folder, consume, {case: (seed, GOOD, bad) for case, bad in places.items()}))
    clean = runs.pop("clean").speed
    table.report.figures["events, objects: messages a second without bad ones"] = round(clean, 1)
    for case, run in runs.items():
        what = "events, objects"
        table.judge(
            f"{case}: {run.speed:.0f} messages a second, clean {clean:.0f}; nothing left after {run.ended:.0f} s",
            at_least(f"{what}: good messages a second, in those without bad ones", SHARE, run.speed / clean),
            at_most(f"{what}: good messages that are not in the rows", 0, run.good - run.rows),
            count(f"{what}: good messages that were given up", run.others),
            count(f"{what}: bad ones without their own reason", (bad for bad in Bad if not run.fits(bad))),
        )


EVENTS: dict[str, Part] = {"events, objects": objects}
