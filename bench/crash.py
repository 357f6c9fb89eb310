"""What is left of a crawl that is killed five times? Ours beside Scrapy with a JOBDIR.

3,000 documents by a list of addresses, and as many pages by their links. `kill -9` comes after a random number of
answers; then the same command is started again, five times over, and at last left alone. Every address should have
one row.
"""

import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from harness import Report, at_least, at_most
from pages import WORKLOADS, Run, ours
from processes import Failed, Program, peer, ready
from site_server import Site, running

CRAWLS = 2  # of each workload
ITEMS = 3_000
KILLS = 5
MOST = 500  # answers between two kills: five times that is less than the whole, so no crawl ends before its fifth
DELAY = 0.1  # seconds for each answer: 64 in flight get at most 640 a second, so a life lasts longer than a commit
LIMIT = 200.0  # seconds for one life
LOOK = 0.005


def scrapy(run: Run) -> Program:
    """With its queue on disk, which is its documented way to make a crawl resumable; each item is flushed."""
    return peer("scrapy_crawl.py", *run.files, "--jobdir", str(run.folder / "job"))


SYSTEMS: dict[str, Callable[[Run], Program]] = {"ours": ours, "Scrapy with JOBDIR": scrapy}


@dataclass(frozen=True, slots=True)
class Toll:
    """What the kills did to a crawl: addresses without a row, and rows too many."""

    kills: int
    lost: int
    twice: int
    asked: int


def lives(program: Program, said: Path, site: Site, answers: int) -> bool:
    """Start the program and kill it after so many answers; whether it still lived then."""
    process, until, end = program.start(said), site.count() + answers, time.monotonic() + LIMIT
    try:
        while process.poll() is None and site.count() < until:
            if time.monotonic() > end:
                raise Failed(f"{' '.join(program.command)} did not get {answers} answers within {LIMIT:g} s")
            time.sleep(LOOK)
        return process.poll() is None
    finally:
        process.kill()
        process.wait(10)


def crawl(make: Callable[[Run], Program], workload: str, rng: random.Random) -> Toll:
    """One crawl, killed five times and then left to end."""
    with running(ITEMS, DELAY) as site, tempfile.TemporaryDirectory() as name:
        run = Run(Path(name) / "seeds", Path(name), ITEMS)
        run.seeds.write_text("\n".join(WORKLOADS[workload](site, ITEMS)) + "\n")
        program, said = make(run), run.folder / "said"
        kills = sum(lives(program, said, site, rng.randint(1, MOST)) for _ in range(KILLS))
        program.run(said, LIMIT)
        rows = Counter(run.rows())
        return Toll(kills, ITEMS - len(rows), rows.total() - len(rows), site.count())


def main() -> None:
    """Kill, count, and say."""
    if lacking := ready():
        sys.exit(lacking)
    report = Report("crash")
    print(
        f"  {'crawls of ' + format(ITEMS, ','):22} {'killed':18} {'kills':>5} {'lost':>12} {'twice':>12} {'asked':>16}"
    )
    for workload, system in product(WORKLOADS, SYSTEMS):
        # The same numbers for everybody.
        tolls = [crawl(SYSTEMS[system], workload, random.Random(number)) for number in range(CRAWLS)]
        kills = sum(toll.kills for toll in tolls)
        lost, twice, asked = ([getattr(toll, name) for toll in tolls] for name in ("lost", "twice", "asked"))
        print(f"  {workload:22} {system:18} {kills:5} {lost!s:>12} {twice!s:>12} {asked!s:>16}")
        report.figures |= {f"{workload}, {system}, lost": sum(lost), f"{workload}, {system}, twice": sum(twice)}
        if system == "ours":
            report.bars += [
                at_most(f"{workload}: addresses lost", 0, sum(lost)),
                at_most(f"{workload}: rows too many", 0, sum(twice)),
                at_least(f"{workload}: kills that hit a live crawl", KILLS * CRAWLS, kills),
            ]
    report.finish()


if __name__ == "__main__":
    main()
