"""`sanderling pages crawl` without its pace, which no flag of it takes away: the others are measured without theirs.

Usage: unpaced.py SEEDS OUT PAGES. All else is as people run it: guard, robots.txt, limiter, ledger, commits.
"""

import sys
from dataclasses import replace
from pathlib import Path

from sanderling.cli.options import Options
from sanderling.cli.pages.crawl import PagesFlags, PagesNetwork, open_folder, run_crawl
from sanderling.clock import SystemClock
from sanderling.limit import Limiter, LimiterRules, PaceRules
from sanderling.pages.folder import CrawlPlan
from sanderling.pages.urls import read_seeds

FASTEST = 1e6
PACE = PaceRules(initial_rps=FASTEST, min_rps=FASTEST, max_rps=FASTEST, burst=FASTEST)


def main(seeds: Path, out: Path, pages: int) -> None:
    """Crawl, or go on with what the folder holds."""
    network = PagesNetwork(rps=FASTEST, private=True)
    plan = CrawlPlan(tuple(read_seeds(seeds.read_text(), str(seeds))), (), depth=100)
    flags = PagesFlags(network=network, options=Options(), max_pages=pages, parquet=False)
    transport = replace(network.transport(), limiter=Limiter(LimiterRules(pace=PACE)))
    with open_folder(out, plan, resume=False, clock=SystemClock()) as folder:
        run_crawl(folder, transport, flags.rules(), flags, as_json=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
