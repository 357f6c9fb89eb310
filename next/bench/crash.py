"""What is left of a crawl that was killed five times? Ours, Scrapy with a JOBDIR, Crawlee with its files.

2,000 JSON documents by a list, and as many pages by their links. `kill -9` comes after a random number of answers;
then the same command is started again, five times, and at last left alone. Each address has to have one row, by our
`verify` and by the server, which notes what it was asked.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from bars import Bar, report
from pages import PEERS, Crawl, ours, peer, served

PAGES, KILLS = 2000, 5
MOST = PAGES // (KILLS + 1)  # answers between two kills: no crawl ends before the last of them
DELAY = 0.1  # seconds of each answer: a life is longer than a commit
LIMIT = 150.0  # seconds of one life


def scrapy(crawl: Crawl) -> list[str]:
    return peer("scrapy_pages.py", "best", "none", str(crawl.folder / "job"))(crawl)


def crawlee(crawl: Crawl) -> list[str]:
    return peer("crawlee_pages.py", str(crawl.folder / "store"))(crawl)


@dataclass(frozen=True, slots=True)
class Toll:
    """What the kills did: how many hit a live crawl, addresses without a row, rows too many, requests."""

    kills: int
    lost: int
    twice: int
    requests: int
    verified: bool


def life(command: list[str], folder: Path, log: Path, answers: float) -> bool:
    """Start the program, and kill it after so many answers; whether it still lived then."""
    until, end = lines_in(log) + answers, time.monotonic() + LIMIT
    with (folder / "said.txt").open("ab") as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=sink, cwd=folder, start_new_session=True)
        while process.poll() is None and lines_in(log) < until and time.monotonic() < end:
            time.sleep(0.005)
        alive = process.poll() is None
        if alive:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return alive


def lines_in(log: Path) -> int:
    return log.read_bytes().count(b"\n") if log.exists() else 0


def rows_of(crawl: Crawl) -> Counter[str]:
    """How often each address has a row; a line that was cut is none."""
    written = Path(crawl.out) / "pages.jsonl"
    path = written if written.exists() else Path(crawl.rows)
    found: Counter[str] = Counter()
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            found[json.loads(line)["url"]] += 1
        except ValueError:
            continue
    return found


def crash(program: Callable[[Crawl], list[str]], kind: str, seed: int) -> Toll:
    random = Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        crawl, log = Crawl(folder, text=False), folder / "log.txt"
        size = 4000 if kind == "html" else 0
        with served(PAGES, size, DELAY, log) as base:
            urls = [f"{base}/json/{at}" for at in range(PAGES)] if kind == "json" else [f"{base}/html/0"]
            Path(crawl.seeds).write_text("\n".join(urls) + "\n")
            private = ["--private"] if program is ours else []
            command = [*program(crawl), *private]
            kills = sum(life(command, folder, log, random.randint(1, MOST)) for _ in range(KILLS))
            life(command, folder, log, float("inf"))
        rows, asked = rows_of(crawl), Counter(log.read_text().split())
        verified = True
        if program is ours:
            words = [sys.executable, "-m", "sanderling", "verify", crawl.out]
            verified = subprocess.run(words, capture_output=True, check=False).returncode == 0
        served_urls = {base + target for target in asked}
        lost = PAGES - len(rows.keys() & served_urls)
        return Toll(kills, lost, rows.total() - len(rows), asked.total(), verified)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="ours only, one crawl")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    programs: dict[str, Callable[[Crawl], list[str]]] = {"ours": ours}
    if not given.quick and PEERS.exists():
        programs |= {"Scrapy with a JOBDIR": scrapy, "Crawlee with files": crawlee}
    bars = []
    for kind in ("json",) if given.quick else ("json", "html"):
        for name, program in programs.items():
            toll = crash(program, kind, given.seed)
            label = f"{kind}, {name}"
            bound = 0 if name == "ours" else None
            bars += [
                Bar(f"{label}: addresses lost", toll.lost, bound),
                Bar(f"{label}: rows too many", toll.twice, bound),
                Bar(f"{label}: requests beyond one each", toll.requests - PAGES),
            ]
            if name == "ours":
                bars.append(Bar(f"{label}: kills of a live crawl", toll.kills, KILLS, least=True))
                bars.append(Bar(f"{label}: verify finds nothing wrong", toll.verified, 1, least=True))
    return report(bars)


if __name__ == "__main__":
    sys.exit(main())
