"""What does a crawl cost beside Scrapy, Crawlee and a bare loop over aiohttp, on one core?

Three workloads from loopback: JSON documents by a list of addresses, small HTML pages by their links, and pages of the
size of real ones, 10 to 200 KB, by theirs. Every side does the same work per page, our own extract and one row
(`peers/work.py`), with politeness off and 64 requests in flight. Ours
keeps its queue on disk and survives kill -9; of the others only Crawlee's file queue tries to.

The CPU of a request is *marginal*: that of a long run less that of a short one, by the difference in requests, so that
imports do not count. Systems alternate, and a ratio is the median of the ratios of each round.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from statistics import median

from harness import Report, at_least, at_most
from processes import ROOT, Cost, Failed, Program, busy, peer, ready
from site_server import Site, running

UNPACED = ROOT / "bench" / "unpaced.py"  # ours, as a command line
ROUNDS = 3
SHORT, LONG = 500, 4_000  # pages
REAL = "real-sized pages by link"
SIZES = {REAL: (120, 840)}  # of which each is as much work as dozens of the others: three and twenty-one of each page
LIMIT = 300.0  # seconds for one run


@dataclass(frozen=True, slots=True)
class Run:
    """One crawl to be made: where it begins, where it may write, how many pages there are."""

    seeds: Path
    folder: Path
    pages: int

    @property
    def files(self) -> tuple[str, str]:
        """What the programs of bench/peers are called with."""
        return str(self.seeds), str(self.folder / "rows.jsonl")

    def rows(self) -> list[str]:
        """The address of each row that was written, wherever the system writes them."""
        path = self.folder / "out" / "pages.jsonl"
        lines = (path if path.exists() else self.folder / "rows.jsonl").read_bytes().splitlines()
        return [json.loads(line)["url"] for line in lines]


def ours(run: Run) -> Program:
    """The crawl that people run, as fast as it goes."""
    return Program((sys.executable, str(UNPACED), str(run.seeds), str(run.folder / "out"), str(run.pages)), {})


SYSTEMS: dict[str, Callable[[Run], Program]] = {
    "ours, durable": ours,
    "bare aiohttp": lambda run: peer("aiohttp_crawl.py", *run.files),
    "Scrapy": lambda run: peer("scrapy_crawl.py", *run.files),
    "Scrapy, uvloop": lambda run: peer("scrapy_crawl.py", *run.files, "--loop", "uvloop"),
    "Crawlee, impit, memory": lambda run: peer("crawlee_crawl.py", *run.files),
    "Crawlee, impit, files": lambda run: peer("crawlee_crawl.py", *run.files, "--storage", str(run.folder / "store")),
}
OWN = "ours, durable"
SCRAPY = ("Scrapy", "Scrapy, uvloop")
CRAWLEE = ("Crawlee, impit, memory", "Crawlee, impit, files")
WORKLOADS: dict[str, Callable[[Site, int], list[str]]] = {
    "documents by list": lambda site, pages: [site.url(f"/doc/{number}") for number in range(pages)],
    "pages by link": lambda site, _pages: [site.url("/page/0")],
    REAL: lambda site, _pages: [site.url("/real/0")],
}


@dataclass(slots=True)
class Figures:
    """What the rounds of one system found: CPU microseconds per request, requests per second, peak bytes."""

    cpu: list[float] = field(default_factory=list)
    speed: list[float] = field(default_factory=list)
    peak: list[float] = field(default_factory=list)

    def add(self, short: Cost, long: Cost, sizes: tuple[int, int]) -> None:
        """Note one round."""
        self.cpu.append((long.cpu - short.cpu) / (sizes[1] - sizes[0]) * 1e6)
        self.speed.append(sizes[1] / long.wall)
        self.peak.append(long.peak)


def crawl(system: str, seeds: list[str], pages: int) -> Cost:
    """One run. Failed unless each page has its row, once."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = Run(folder / "seeds", folder, pages)
        run.seeds.write_text("\n".join(seeds) + "\n")
        cost = SYSTEMS[system](run).run(folder / "said", LIMIT)
        rows = run.rows()
        if len(rows) != pages or len(set(rows)) != pages:
            raise Failed(f"{system}: {len(rows)} rows of {len(set(rows))} addresses, expected {pages}")
    return cost


def measure(workload: str, sites: dict[int, Site], rounds: int, systems: int) -> dict[str, Figures]:
    """The first so many systems in turn, so many times."""
    found = {system: Figures() for system in islice(SYSTEMS, systems)}
    for _ in range(rounds):
        for system, figures in found.items():
            short, long = (crawl(system, WORKLOADS[workload](site, size), size) for size, site in sites.items())
            figures.add(short, long, (min(sites), max(sites)))
    return found


def times(found: dict[str, Figures], system: str) -> float:
    """How many times the CPU of ours a system takes."""
    return median(theirs / own for theirs, own in zip(found[system].cpu, found[OWN].cpu, strict=True))


def show(workload: str, found: dict[str, Figures]) -> None:
    """The table for people."""
    print(f"  {workload:28} {'CPU µs/request':>20} {'x ours':>7} {'requests/s':>11} {'peak MB':>8}")
    for system, each in found.items():
        spread = f"{median(each.cpu):,.0f} ({min(each.cpu):,.0f}-{max(each.cpu):,.0f})"
        size, speed = median(each.peak) / 2**20, median(each.speed)
        print(f"    {system:26} {spread:>20} {times(found, system):7.2f} {speed:11,.0f} {size:8.0f}")


def judge(report: Report, workload: str, found: dict[str, Figures], ceiling: float) -> None:
    """Figures and bars of one workload."""
    for system, each in found.items():
        report.figures[f"{workload}, {system}, CPU µs"] = round(median(each.cpu), 1)
        report.figures[f"{workload}, {system}, peak MB"] = round(median(each.peak) / 2**20, 1)
    scrapy = min(times(found, system) for system in SCRAPY)
    memory, files = (times(found, system) for system in CRAWLEE)
    loops = 1.8 if workload.startswith("documents") else 2
    fastest = 1e6 / min(median(each.cpu) for each in found.values())
    smallest = min(median(found[system].peak) for system in (*SCRAPY, *CRAWLEE))
    if workload == REAL:
        # Reading them is most of the work, and all sides do that with the same reader.
        report.bars += [
            at_least(f"{workload}: times the speed of Scrapy, the faster of two", 1.5, scrapy),
            at_least(f"{workload}: times the speed of Crawlee in memory", 1, memory),
            at_most(f"{workload}: CPU, in bare loops over aiohttp", 1.8, 1 / times(found, "bare aiohttp")),
        ]
        return
    report.bars += [
        at_least(f"{workload}: requests per second of one core", 1_500, 1e6 / median(found[OWN].cpu)),
        at_least(f"{workload}: times the speed of Scrapy, the faster of two", 4, scrapy),
        at_least(f"{workload}: times the speed of Crawlee with a file queue", 8, files),
        at_least(f"{workload}: times the speed of Crawlee in memory", 1.2, memory),
        at_most(
            f"{workload}: CPU, in bare loops over aiohttp",
            loops,
            1 / times(found, "bare aiohttp"),
        ),
        at_most(f"{workload}: peak memory, in that of the smallest peer", 1, median(found[OWN].peak) / smallest),
        at_least(f"{workload}: times the server outruns the fastest client", 5, ceiling / fastest),
    ]


def main() -> None:
    """Measure all workloads."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", choices=WORKLOADS, help="one workload")
    parser.add_argument("--systems", type=int, default=len(SYSTEMS), help="the first so many; then nothing is judged")
    options, sys.argv[1:] = parser.parse_known_args()  # the harness reads the rest
    if lacking := ready():
        sys.exit(lacking)
    report = Report("pages")
    report.figures["load"] = busy()
    asked = [name for name in WORKLOADS if options.only in (None, name)]
    for workload in asked:
        sizes = SIZES.get(workload, (SHORT, LONG))
        with running(sizes[0]) as small, running(sizes[1]) as large:
            path = WORKLOADS[workload](large, 2)[-1].removeprefix(large.url(""))
            found = measure(workload, dict(zip(sizes, (small, large), strict=True)), options.rounds, options.systems)
            show(workload, found)
            if options.systems == len(SYSTEMS):
                judge(report, workload, found, large.ceiling(path))
    report.finish()


if __name__ == "__main__":
    main()
