"""What bench/repos.py measures, each in a process of its own. Ends with a line of JSON.

Usage: repos_work.py parse CAR TIMES c|python | peak CAR | threads CAR TIMES | crawl DIDS OUT | replay SEGMENT DATABASE
| inspect SEGMENT.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from sanderling.formats import repo, repo_python
from sanderling.formats.rca import encode_block

PARSERS = {"c": repo.parse_repo, "python": repo_python.parse_repo}
FASTEST = 1e6  # requests a second
Numbers = dict[str, Any]


def parse(path: str, times: str, parser: str) -> Numbers:
    """Seconds of CPU from CAR to grouped JSON, each time. Keeps what the peer keeps, and checks every hash."""
    if parser == "c" and repo.ACTIVE != "c":
        sys.exit("the C parser was not built")
    data, took, found = Path(path).read_bytes(), [], None
    for _ in range(int(times)):
        found = None  # as in a crawl, where a repo is gone before the next
        began = time.process_time()
        found = PARSERS[parser](data, cids="keep")
        took.append(time.process_time() - began)
    assert found is not None
    return {"took": took, "records": found.stats.records, "bytes": found.stats.json_bytes}


def peak(path: str) -> Numbers:
    """Bytes that one parse adds at most to what the process holds with the CAR in memory."""
    data = Path(path).read_bytes()
    before = _memory("VmRSS")
    found = repo.parse_repo(data)
    return {"added": _memory("VmHWM") - before, "car": len(data), "records": found.stats.records}


def _memory(field: str) -> int:
    # Not getrusage: what it calls the peak begins with that of the process that started this one.
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024


def threads(path: str, times: str) -> Numbers:
    """Seconds of the wall for so many repos from CAR to block, in one thread and in two, on all cores there are.

    Also how long the two could not have one.
    """
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    data, jobs = Path(path).read_bytes(), int(times)

    def one(_: int) -> int:
        found = repo.parse_repo(data)
        return len(encode_block(found.did, "https://host.example", found.rev, 0, found.collections))

    took, waited = {}, {}
    for workers in (1, 2):
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(one, range(workers)))  # makes the threads, and their compressors
            began, before = time.monotonic(), _starved()
            list(pool.map(one, range(jobs)))
            took[workers], waited[workers] = time.monotonic() - began, _starved() - before
    return {"one": took[1], "two": took[2], "starved": waited[2]}


def _starved() -> float:
    """Seconds that the threads there are could have run, had others not had the cores."""
    tasks = Path("/proc/self/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[1]) for task in tasks) / 1e9


def crawl(dids: str, out: str) -> Numbers:
    """`sanderling repos crawl` without its pace, which no flag of it takes away; all else is as people run it."""
    from sanderling.cli.options import Options  # noqa: PLC0415 - the others need none of these
    from sanderling.cli.report_screen import fitting  # noqa: PLC0415
    from sanderling.cli.repos.crawl import open_stores, run_crawl  # noqa: PLC0415
    from sanderling.cli.repos.flags import ArchiveFlags, RepoNetwork  # noqa: PLC0415
    from sanderling.cli.repos.progress import ArchiveFolder  # noqa: PLC0415
    from sanderling.clock import SystemClock  # noqa: PLC0415
    from sanderling.limit import Limiter, LimiterRules, PaceRules  # noqa: PLC0415

    place, asking, keeping = ArchiveFolder(out=Path(out)), RepoNetwork(private=True), ArchiveFlags(did_file=Path(dids))
    clock, screen = SystemClock(), fitting(json=True)
    pace = PaceRules(initial_rps=FASTEST, min_rps=FASTEST, max_rps=FASTEST, burst=FASTEST)
    rules = replace(keeping.rules(asking), usual_rps=FASTEST)
    transport = replace(asking.transport(clock), limiter=Limiter(LimiterRules(pace=pace), clock=clock))
    began = time.process_time()
    with open_stores(place, asking, keeping, screen, clock) as stores:
        ran = asyncio.run(run_crawl(stores, transport, rules, Options(), clock, screen))
        stores.segments.close()
        view = stores.progress.view()
    return {
        "cpu": time.process_time() - began,
        "archived": view.total_crawled,
        "failed": sum(view.failed.values()),
        "complete": ran.complete,
        "peak": _memory("VmHWM"),
    }


def replay(segment: str, database: str) -> Numbers:
    """Seconds of CPU and of the wall to load a segment into chDB, once that is loaded itself."""
    from sanderling.repos.replay import ReplayRules, RepoReplay  # noqa: PLC0415 - an extra
    from sanderling.repos.replay_clickhouse import ClickhouseSink  # noqa: PLC0415 - an extra
    from sanderling.stores.clickhouse import open_clickhouse  # noqa: PLC0415

    with closing(open_clickhouse(f"chdb:{database}")) as store:
        run = RepoReplay(ClickhouseSink(store), _fail, rules=ReplayRules(threads=1))
        cpu, wall = time.process_time(), time.monotonic()
        done = run.run([Path(segment)])
        cpu, wall = time.process_time() - cpu, time.monotonic() - wall
        ((kept,),) = store.rows("SELECT count() FROM repo_records FINAL")
    return {"cpu": cpu, "wall": wall, "records": done.records, "kept": kept}


def inspect(segment: str) -> Numbers:
    """Seconds of CPU and of the wall to count a segment, and to compare every checksum in it."""
    from sanderling.repos.inspect import inspect as count  # noqa: PLC0415
    from sanderling.repos.inspect import verify  # noqa: PLC0415

    path = Path(segment)
    began = time.monotonic()
    found = count(path, _fail)
    counted = time.monotonic()
    verify([path], _fail)
    checked = time.monotonic()
    return {"inspect": counted - began, "verify": checked - counted, "repos": found.repos, "size": found.size}


def _fail(problem: object) -> None:
    sys.exit(str(problem))


WORKS: dict[str, Callable[..., Numbers]] = {
    work.__name__: work for work in (parse, peak, threads, crawl, replay, inspect)
}

if __name__ == "__main__":
    print(json.dumps(WORKS[sys.argv[1]](*sys.argv[2:])))
