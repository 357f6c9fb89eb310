"""Hosts of repos that refuse everything, are dead or fail half, beside 20 good ones. For `poisoned`."""

import sys
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path

from harness import Bar, at_most
from poisoned_table import Part, Table, count, run_all
from processes import ROOT

sys.path.insert(0, str(ROOT / "tests" / "repos"))  # where the world is that the tests have too

from bad_fleet import CASES, DEAD, REFUSED, BadRun, crawl_case

from sanderling.apis.atproto import PERMANENT, AtprotoCategory

ABOUT = 30  # repos of a good host
SEEDS = 2
WHOLE = 30.0  # minutes for a crawl
THROTTLED = [case for case in CASES if case.startswith(("429", "503"))]


def throttled(table: Table, folder: Path, seed: int) -> None:
    """A host that refuses its five repos for ever."""
    for case, run, alone in crawl_all(folder, seed, THROTTLED):
        what = "repos, throttled"
        table.judge(
            f"{case}: {show(run, alone)}, {run.listed.get(AtprotoCategory.RATE_LIMITED, 0)} listed as rate limited",
            *usual_bars(what, run, alone),
            at_most(
                f"{what}: repos that are not listed as rate limited", 0, REFUSED - run.listed.get("rate_limited", 0)
            ),
            at_most(f"{what}: repos that are not due some time", 0, REFUSED - run.due),
            at_most(f"{what}: requests before Retry-After", 0, run.impatient if "Retry-After" in case else 0),
        )


def dead(table: Table, folder: Path, seed: int) -> None:
    """Hosts that refuse connections, have no address or never answer; and the next run, when all are well."""
    what = "repos, dead"
    # No bar: as long as nobody has answered, who will hang is not known, and there are 50 requests in flight at most.
    for case, run, alone in crawl_all(folder / "hang", seed, ["40 that hang"]):
        print(f"        {case}: {show(run, alone)}")
        table.report.figures[f"{what}: {case}: last good repo, in times of alone"] = round(run.last_good / alone, 2)
    for case, run, alone in crawl_all(folder, seed, ["dead"]):
        table.judge(
            f"{case}: {show(run, alone)}",
            *usual_bars(what, run, alone),
            count(f"{what}: reasons that are not theirs", set(run.listed) - PERMANENT - set(DEAD)),
        )
    for case, run, _ in crawl_all(folder, seed, ["dead"], well=True):
        table.judge(
            f"{case}, the next run: all after {run.seconds:.0f} s",
            count(f"{what}: repos not archived by the next run", run.missing),
            count(f"{what}: repos that are archived twice", run.twice),
        )


def half(table: Table, folder: Path, seed: int) -> None:
    """Hosts that fail half of their requests."""
    what = "repos, half"
    for case, run, alone in crawl_all(folder, seed, ["half"]):
        table.judge(
            f"{case}: {show(run, alone)}, {len(run.missing)} not archived",
            *usual_bars(what, run, alone),
            count(f"{what}: repos with a reason", set(run.listed) - PERMANENT),
        )


def crawl_all(folder: Path, seed: int, cases: list[str], *, well: bool = False) -> Iterator[tuple[str, BadRun, float]]:
    """Crawl each case for some seeds; with when the good hosts were done that had no others beside them."""
    jobs = {
        f"seed {each}, {case}": (each, case, ABOUT)
        for each, case in product(range(seed, seed + SEEDS), ["none", *cases])
    }
    alone = 0.0
    for case, run in run_all(folder, partial(crawl_case, well=well), jobs):
        if case.endswith(", none"):
            alone = run.last_good
        else:
            yield case, run, alone


def show(run: BadRun, alone: float) -> str:
    """The times of a crawl, for people."""
    return f"last good repo after {run.last_good:.0f} s, alone {alone:.0f}; all after {run.seconds / 60:.1f} min"


def usual_bars(what: str, run: BadRun, alone: float) -> tuple[Bar, ...]:
    """What holds whatever the bad hosts are like."""
    return (
        at_most(f"{what}: last good repo, in times of the good hosts alone", 1.1, run.last_good / alone),
        at_most(f"{what}: minutes of the whole crawl", WHOLE, run.seconds / 60),
        count(f"{what}: repos not archived", run.missing),
        count(f"{what}: repos that are archived twice", run.twice),
    )


REPOS: dict[str, Part] = {"repos, throttled": throttled, "repos, dead": dead, "repos, half": half}
