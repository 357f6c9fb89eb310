"""What does a request of a job cost beside one of `pages crawl`?

Two workloads from loopback. By list: both ask for the same JSON documents, all known from the start. By tree: each
answer brings ten further addresses, which a crawl reads from an HTML page and a job works out by itself.

Sides alternate. The CPU of a request is *marginal*: that of a long run less that of a short one, by the difference in
requests, so that imports do not count; a ratio is the median of the ratios of each round. `--requests N` makes the long
run longer.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

from harness import Report, at_most
from processes import ROOT, Cost, Failed, Program, busy
from site_server import Site, running

ROUNDS = 3
REQUESTS = 6_000  # of a long run
SHORT = 500
LIMIT = 600.0  # seconds for one run
MOST = 1.3  # times the CPU of pages
BENCH = ROOT / "bench"

Make = Callable[[str, Site, Path, int], Program]


def pages(shape: str, site: Site, folder: Path, count: int) -> Program:
    """The crawl that people run, as fast as it goes."""
    seeds = [f"/doc/{number}" for number in range(count)] if shape == "list" else ["/page/0"]
    (folder / "seeds").write_text("".join(f"{site.url(path)}\n" for path in seeds))
    return _program("unpaced.py", folder / "seeds", folder / "out", count)


def jobs(shape: str, site: Site, folder: Path, count: int) -> Program:
    """The same as a job."""
    return _program("unpaced_job.py", shape, site.url(""), folder / "out", count)


def _program(script: str, *arguments: object) -> Program:
    return Program((sys.executable, str(BENCH / script), *map(str, arguments)), {})


SIDES: dict[str, tuple[Make, str]] = {"pages": (pages, "pages.jsonl"), "jobs": (jobs, "records.jsonl")}


def run_side(side: str, shape: str, site: Site, count: int) -> Cost:
    """One run. Failed unless each document has its line, once."""
    make, rows = SIDES[side]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cost = make(shape, site, folder, count).run(folder / "said", LIMIT)
        urls = [json.loads(line)["url"] for line in (folder / "out" / rows).read_bytes().splitlines()]
    if len(urls) != count or len(set(urls)) != count:
        raise Failed(f"{side}, {shape}: {len(urls)} lines of {len(set(urls))} addresses, expected {count}")
    return cost


def measure(report: Report, shape: str, sites: dict[int, Site], rounds: int) -> None:
    """Both sides in turn, so many times."""
    cpu: dict[str, list[float]] = {side: [] for side in SIDES}
    for _ in range(rounds):
        for side, found in cpu.items():
            (short, few), (long, many) = ((run_side(side, shape, site, size), size) for size, site in sites.items())
            found.append((long.cpu - short.cpu) / (many - few) * 1e6)
    for side, found in cpu.items():
        print(f"  {shape}: {side:5} {median(found):6,.0f} µs of CPU a request ({min(found):,.0f}-{max(found):,.0f})")
        report.figures[f"{shape}, {side}, CPU µs"] = round(median(found), 1)
    times = median(job / page for job, page in zip(cpu["jobs"], cpu["pages"], strict=True))
    report.bars.append(at_most(f"{shape}: CPU of a request, in those of pages", MOST, times))


def main() -> None:
    """Measure both workloads."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    options, sys.argv[1:] = parser.parse_known_args()  # the harness reads the rest
    if options.requests <= SHORT:
        sys.exit(f"--requests is {options.requests}, expected more than {SHORT}")
    report = Report("jobs")
    report.figures |= {"load": busy(), "requests": options.requests}
    with running(SHORT) as small, running(options.requests) as large:
        for shape in ("list", "tree"):
            measure(report, shape, {SHORT: small, options.requests: large}, options.rounds)
    report.finish()


if __name__ == "__main__":
    main()
