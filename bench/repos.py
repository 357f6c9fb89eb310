"""What do repos cost: from CAR to JSON beside the network's own SDK, crawled, and loaded into a table?

And what do they cost when two processes share a crawl, or a replay? There the CPU is *marginal*: that of a long run
less that of a short one, so that imports do not count, and both sides alternate.

Parsers alternate, and a ratio is the median of the ratios of each round, in seconds of CPU. The hosts of the crawl are
ports of one process on another core. Nothing is left out of the crawl but its pace: guard, limiter, progress in SQLite,
segments, fsync.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from car_server import did_of, repos, running, write
from harness import Report, at_least, at_most
from processes import ROOT, Cost, Failed, Program, busy, peer, ready

from sanderling.formats.rca import encode_block
from sanderling.formats.rca_writer import RcaWriter
from sanderling.formats.repo import parse_repo
from sanderling.repos.inspect import verify
from sanderling.repos.parts import all_segments
from sanderling.repos.segments import segments_in
from sanderling.worlds.pds_repos import make_repo, mix

WORK = ROOT / "bench" / "repos_work.py"
ROUNDS = 5
WARM, TIMES = 2, 5  # parses of a process that do not count, as they take its memory from the system; and all of them
LARGE = 41_000  # records; 16 MB
JOBS = 8  # repos of that size, for the threads
REPOS, PER_HOST = 20_000, 100
SEGMENT_REPOS, SEGMENT_RECORDS, SHAPES = 2_000, 500, 20
MANY = 12_000  # repos of the segment that is inspected
LIMIT = 600.0  # seconds for one run
SHARED_SHORT, SHARED_LONG = 2_000, 30_000  # repos of a crawl that is shared, at hosts of PER_HOST each
SHORT_SEGMENTS, LONG_SEGMENTS, SHARED_REPOS = 2, 10, 300  # segments of a replay that is shared, and repos of each
SHARED_ROUNDS = 2
MOST_SHARED = 1.25  # times the CPU of one process
MB = 1e6


def work(folder: Path, program: Program) -> dict[str, Any]:
    """What a program found out."""
    said = folder / "said"
    program.run(said, LIMIT)
    found: dict[str, Any] = json.loads(said.read_text().splitlines()[-1])
    return found


def ours(*arguments: object) -> Program:
    """A work of repos_work.py."""
    return Program((sys.executable, str(WORK), *map(str, arguments)), {})


def parsing(report: Report, folder: Path, rounds: int) -> None:
    """Parsers against each other, and what the one in C takes of memory."""
    car = _car(folder)
    size = car.stat().st_size
    programs = {parser: ours("parse", car, TIMES, parser) for parser in ("c", "python")}
    lacking = _lacking_sdk()
    if lacking:
        print(f"  no comparison with the SDK: {lacking}")
    else:
        programs["sdk"] = peer("atproto_parse.py", str(car), str(TIMES))
    took: dict[str, list[float]] = {name: [] for name in programs}
    first: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        made = {name: work(folder, program) for name, program in programs.items()}
        if len({(each["records"], each["bytes"]) for each in made.values()}) > 1:
            raise Failed(f"the parsers differ: {made}")
        for name, each in made.items():
            first[name].append(each["took"][0])
            took[name].append(median(each["took"][WARM:]))
    for name, seconds in took.items():
        speed, slowest, fastest, cold = (
            size / each / MB for each in (median(seconds), max(seconds), min(seconds), median(first[name]))
        )
        print(f"  {name:7} {speed:6,.1f} MB/s of one core ({slowest:,.1f}-{fastest:,.1f}); the first {cold:,.1f}")
        report.figures |= {f"parse, {name}, MB/s": round(speed, 1), f"parse, {name}, first, MB/s": round(cold, 1)}
    report.bars.append(at_least("parse: MB/s of one core, in C", 400, size / median(took["c"]) / MB))
    if not lacking:
        report.bars += [
            at_least("parse: times the speed of the SDK, in C", 8, _times(took["sdk"], took["c"])),
            at_least("parse: times the speed of the SDK, in Python", 1, _times(took["sdk"], took["python"])),
        ]
    found = work(folder, ours("peak", car))
    report.bars.append(at_most("parse: peak memory, in sizes of the CAR", 4, found["added"] / found["car"]))


def _times(slow: list[float], fast: list[float]) -> float:
    return median(one / other for one, other in zip(slow, fast, strict=True))


def _lacking_sdk() -> str | None:
    if lacking := ready():
        return lacking
    found = list((ROOT / ".venv-peers").glob("lib/*/site-packages/atproto"))
    return None if found else "it is not installed; run: make peers"


def _car(folder: Path) -> Path:
    """A large repo, made once."""
    path = folder / "large.car"
    if not path.exists():
        path.write_bytes(make_repo(Random(1), did_of(1), mix(LARGE)))
        print(f"  a repo of {LARGE:,} records, {path.stat().st_size / MB:.1f} MB")
    return path


def threading(report: Report, folder: Path, rounds: int) -> None:
    """From CAR to block in two threads, beside one."""
    if (cores := len(os.sched_getaffinity(0))) < 2:
        print(f"  threads: not measured, there is {cores} core")
        return
    found = [work(folder, ours("threads", _car(folder), JOBS)) for _ in range(rounds)]
    ratios = sorted(each["one"] / each["two"] for each in found)
    speed = median(JOBS * _car(folder).stat().st_size / each["one"] / MB for each in found)
    starved = median(each["starved"] / 2 / each["two"] for each in found)
    print(
        f"  CAR to block: {speed:,.0f} MB/s in one thread; times that in two: {', '.join(f'{r:.2f}' for r in ratios)}; "
        f"{starved:.0%} of that time others had their cores"
    )
    report.figures["CAR to block, share of time without a core"] = round(starved, 3)
    report.figures["CAR to block, MB/s"] = round(speed, 1)
    report.bars.append(at_least("CAR to block: times the speed of one thread, in two", 1.7, median(ratios)))


def crawling(report: Report, folder: Path, count: int) -> None:
    """A crawl of small repos from many hosts."""
    cars, dids = folder / "repos", folder / "dids"
    size = write(cars, repos(count))
    hosts = max(1, count // PER_HOST)  # fewer than a hundred each, and a crawl would spare them
    with running(cars, hosts) as urls:
        dids.write_text("".join(f"{did_of(number)} {urls[number % hosts]}\n" for number in range(count)))
        program = ours("crawl", dids, folder / "out")
        cost = program.run(folder / "said", LIMIT)
    found = json.loads((folder / "said").read_text().splitlines()[-1])
    kept = verify(segments_in(folder / "out"), print)
    if not found["complete"] or found["failed"] or {found["archived"], kept.repos} != {count} or kept.problems:
        raise Failed(f"a crawl of {count} repos ended with {found} and {kept}")
    print(
        f"  crawl: {count:,} repos of {size / count:,.0f} bytes from {hosts} hosts in {cost.wall:.1f} s, "
        f"CPU {cost.cpu:.1f} s ({found['cpu']:.1f} s without imports), peak {found['peak'] / MB:.0f} MB"
    )
    report.figures["crawl, CPU µs for a repo"] = round(cost.cpu / count * 1e6, 1)
    report.figures["crawl, peak MB"] = round(found["peak"] / MB, 1)
    report.bars.append(at_least("crawl: repos per second of CPU", 1_000, count / cost.cpu))


def loading(report: Report, folder: Path) -> None:
    """A segment into chDB."""
    segment = folder / "segment_0001.rca"
    _write_segment(segment, SEGMENT_REPOS)
    found = work(folder, ours("replay", segment, folder / "chdb"))
    if found["kept"] != found["records"]:
        raise Failed(f"a replay ended with {found}")
    print(f"  replay: {found['records']:,} records in {found['wall']:.1f} s, CPU {found['cpu']:.1f} s")
    report.bars.append(
        at_least("replay into chDB: records per second of CPU", 300_000, found["records"] / found["cpu"])
    )


def sharing_crawl(report: Report, folder: Path, rounds: int) -> None:
    """The command, pace and all, with one process and with two. Hosts of a hundred repos each may be asked fast."""

    def crawl(processes: int, *, long: bool) -> Cost:
        count = SHARED_LONG if long else SHARED_SHORT
        with tempfile.TemporaryDirectory(dir=folder) as name:
            dids, out = Path(name) / "dids", Path(name) / "out"
            dids.write_text("".join(f"{did_of(number)} {urls[number // PER_HOST]}\n" for number in range(count)))
            words = ("--out", str(out), "--did-file", str(dids), "--processes", str(processes))
            fast = ("--private", "--rps", "1000", "--workers", "200")
            cost = _command("repos", "crawl", *words, *fast).run(folder / "said", LIMIT)
            kept = verify(all_segments(out), print)
        if kept.repos != count or kept.problems:
            raise Failed(f"a crawl of {count} repos with {processes} processes kept {kept}")
        return cost

    cars = folder / "shared"
    write(cars, repos(SHARED_LONG))
    with running(cars, SHARED_LONG // PER_HOST) as urls:
        _share(report, "crawl", "repo", rounds, (SHARED_SHORT, SHARED_LONG), crawl)


def sharing_replay(report: Report, folder: Path, rounds: int) -> None:
    """The command with one process and with two, into files that each writes, and a database that one writes."""
    sources = {long: folder / f"segments-{long}" for long in (False, True)}
    for is_long, source in sources.items():
        source.mkdir()
        for number in range(1, (LONG_SEGMENTS if is_long else SHORT_SEGMENTS) + 1):
            _write_segment(source / f"segment_{number:04}.rca", SHARED_REPOS, number * SHARED_REPOS)
    short, long = (segments * SHARED_REPOS * SEGMENT_RECORDS for segments in (SHORT_SEGMENTS, LONG_SEGMENTS))
    for kind in ("parquet", "chdb"):

        def replay(processes: int, *, long: bool, kind: str = kind) -> Cost:
            with tempfile.TemporaryDirectory(dir=folder) as name:
                words = (str(sources[long]), "--to", f"{kind}:{name}/rows", "--processes", str(processes), "--json")
                cost = _command("repos", "replay", *words).run(folder / "said", LIMIT)
            said = json.loads((folder / "said").read_text().splitlines()[-1])
            expected = (LONG_SEGMENTS if long else SHORT_SEGMENTS) * SHARED_REPOS
            if said["repos"] != expected or said["wrong"]:
                raise Failed(f"a replay with {processes} processes ended with {said}, expected {expected} repos")
            return cost

        _share(report, f"replay into {kind}", "record", rounds, (short, long), replay)


def _command(*words: str) -> Program:
    return Program((sys.executable, "-m", "sanderling", *words), {}, cores=os.cpu_count() or 1)


def _share(
    report: Report, what: str, item: str, rounds: int, items: tuple[int, int], measure: Callable[..., Cost]
) -> None:
    """Measure one process and two in turn, each in a short run and in a long one, of so many items."""
    found: dict[int, list[float]] = {1: [], 2: []}
    for processes in (1, 2) * rounds:
        short, long = measure(processes, long=False), measure(processes, long=True)
        each, cores = (long.cpu - short.cpu) / (items[1] - items[0]) * 1e6, long.cpu / long.wall
        found[processes].append(each)
        speed = f"{items[1]:,} in {long.wall:.1f} s with {cores:.2f} of {os.cpu_count()} cores"
        print(f"  {what}, {processes} processes: {each:,.2f} µs of CPU a {item}; {speed}", flush=True)
        report.figures[f"{what}, {processes} processes, {item}s a second"] = round(items[1] / long.wall)
        report.figures[f"{what}, {processes} processes, cores"] = round(cores, 2)
    for processes, costs in found.items():
        report.figures[f"{what}, {processes} processes, CPU µs a {item}"] = round(median(costs), 2)
    ratio = median(two / one for one, two in zip(found[1], found[2], strict=True))
    report.bars.append(at_most(f"{what}: CPU of a {item} with two processes, in that with one", MOST_SHARED, ratio))


def inspecting(report: Report, folder: Path) -> None:
    """What is in a large segment."""
    segment = folder / "segment_0002.rca"
    _write_segment(segment, MANY)
    found = work(folder, ours("inspect", segment))
    print(
        f"  inspect: {found['repos']:,} repos, {found['size'] / MB:,.0f} MB in {found['inspect']:.2f} s; "
        f"every checksum in {found['verify']:.2f} s"
    )
    report.figures |= {
        "inspect, MB": round(found["size"] / MB, 1),
        "inspect, s": round(found["inspect"], 3),
        "verify, s": round(found["verify"], 3),
    }


def _write_segment(path: Path, count: int, first: int = 0) -> None:
    """So many repos, from this one on.

    A few shapes repeat themselves under other DIDs, which no checksum of a block covers.
    """
    rng = Random(2)
    blocks = []
    for number in range(SHAPES):
        found = parse_repo(make_repo(rng, did_of(number), mix(SEGMENT_RECORDS)))
        blocks.append(encode_block(found.did, "https://host.example", found.rev, number, found.collections))
    with path.open("w+b") as file:
        writer = RcaWriter(file, created_at=0)
        for number in range(first, first + count):
            shape = number % SHAPES
            writer.append(did_of(number), blocks[shape].replace(did_of(shape).encode(), did_of(number).encode(), 1))
        writer.finalise()


def main() -> None:
    """Measure every part, or those that were named."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--shared-rounds", type=int, default=SHARED_ROUNDS)
    parser.add_argument("--repos", type=int, default=REPOS)
    parser.add_argument("--parts", nargs="+", default=())
    options, sys.argv[1:] = parser.parse_known_args()  # the harness reads the rest
    report = Report("repos")
    report.figures["load"] = busy()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts: dict[str, Callable[[], None]] = {
            "parse": lambda: parsing(report, folder, options.rounds),
            "threads": lambda: threading(report, folder, options.rounds),
            "crawl": lambda: crawling(report, folder, options.repos),
            "replay": lambda: loading(report, folder),
            "inspect": lambda: inspecting(report, folder),
            "shared crawl": lambda: sharing_crawl(report, folder, options.shared_rounds),
            "shared replay": lambda: sharing_replay(report, folder, options.shared_rounds),
        }
        for part in options.parts or parts:
            parts[part]()
    report.finish()


if __name__ == "__main__":
    main()
