"""Break what guards data, one small fault at a time, and see whether a test notices.

Usage: mutants.py [--number 60] [--seed 1] [--files PATTERN ...] [--only NAME ...] [--list] [--json FILE] [--seconds 90]

Faults are drawn by the rules of tools/mutation_rules.py, in turn, the same for the same seed. Each is put into a copy
of the source in build/mutants; the work tree is never touched. Of the tests that run the faulty block
(tools/mutant_tests.py) those that take --seconds in all are run, until one fails: of the file's own test file, then
the quickest. A fault that no test notices is a survivor: write the test that was missing, or say why nothing can
differ.
"""

import argparse
import fcntl
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fnmatch import fnmatch
from itertools import chain, zip_longest
from pathlib import Path
from queue import SimpleQueue

import msgspec
from mutant_tests import PYTEST, Map, copy_source, environment
from mutation_rules import RULES, Mutant, mutants_of
from near_tests import PACKAGE, ROOT

FOLDER = ROOT / "build" / "mutants"
PROCESSES = 2
running: set[subprocess.Popen[bytes]] = set()  # tests of mutants, each in a session of its own
START = 60.0  # seconds that a run may take beyond the tests: pytest starts, the machine may be busy

# What writes, by pattern below src/sanderling.
GUARDED = (
    *("engine/writer.py", "stores/durable.py", "stores/rows_file.py", "stores/frontier*.py", "stores/*_queue.py"),
    *(
        "stores/queue.py",
        "stores/rabbitmq*.py",
        "stores/sqlite_*.py",
        "stores/postgres_*.py",
        "stores/redis_progress.py",
    ),
    *("stores/analytics_writing.py", "stores/objects_*.py", "stores/control_file.py", "stores/status_file.py"),
    *("pages/output.py", "pages/folder.py", "jobs/folder.py", "stores/mailbox.py"),
    *("crawls/folder.py", "crawls/sink.py", "crawls/kept.py", "crawls/archive.py", "crawls/exchange.py"),
    *("sequence/sink.py", "sequence/state.py", "sequence/store.py", "repos/sink.py", "repos/segments.py"),
    *("polling/document_writer.py", "polling/target_sync.py", "events/sink.py", "events/outbox.py"),
    *("events/batches.py", "events/handover.py", "observe/alerts.py"),
)


class Result(msgspec.Struct, frozen=True):
    """What became of a mutant: killed, timeout (which a person would notice as well), survived, or untested."""

    name: str
    file: str
    rule: str
    fate: str
    before: str
    after: str
    tests: int
    left_out: int  # tests that --seconds had no room for


def main() -> None:
    """Draw, run and report."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    flags = _flags()
    mutants = draw(flags)
    if not mutants:
        sys.exit("mutants: none fits; `tools/mutants.py --list` shows all there are")
    if flags.list:
        for mutant in mutants:
            before, after = shown(mutant)
            print(f"{mutant.name}\n    - {before}\n    + {after}")
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"mutants: another run is at work in {FOLDER}; wait until it has ended")
        results = run(mutants, flags.seconds)
    print(table(results))
    if flags.json:
        flags.json.write_bytes(msgspec.json.format(msgspec.json.encode(results)) + b"\n")


def _flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=60, help="how many to draw")
    parser.add_argument("--seed", type=int, default=1, help="the same seed draws the same")
    parser.add_argument("--files", nargs="+", default=GUARDED, help="patterns below src/sanderling")
    parser.add_argument("--only", nargs="+", default=(), help="run these, by the names that --list shows")
    parser.add_argument("--list", action="store_true", help="show what would be run")
    parser.add_argument("--json", type=Path, help="also write the results there")
    parser.add_argument("--seconds", type=float, default=90, help="of tests for each mutant")
    return parser.parse_args()


def draw(flags: argparse.Namespace) -> list[Mutant]:
    """Take from each rule in turn, so that the rules that fit everywhere do not crowd out the others."""
    every = [mutant for file in files(flags.files) for mutant in mutants_of(file, (PACKAGE / file).read_bytes())]
    if flags.only:
        unknown = set(flags.only) - {mutant.name for mutant in every}
        if unknown:
            sys.exit(
                f"mutants: there is no {', '.join(sorted(unknown))}; `tools/mutants.py --list --number 99999` has all"
            )
        return [mutant for mutant in every if mutant.name in flags.only]
    shuffled = []
    for rule in RULES:
        fitting = [mutant for mutant in every if mutant.rule == rule]
        random.Random(f"{flags.seed} {rule}").shuffle(fitting)
        shuffled.append(fitting)
    in_turn = [mutant for mutant in chain.from_iterable(zip_longest(*shuffled)) if mutant is not None]
    return sorted(in_turn[: flags.number])


def files(patterns: Sequence[str]) -> list[str]:
    """The files that a pattern fits, by their names below src/sanderling."""
    names = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
    return [name for name in names if any(fnmatch(name, pattern) for pattern in patterns)]


def run(mutants: Sequence[Mutant], seconds: float) -> list[Result]:
    """The fate of each, which is said as soon as it is known."""
    tests = Map(FOLDER, sorted({*files(GUARDED), *(mutant.file for mutant in mutants)}))
    tests.make({mutant.file for mutant in mutants}, PROCESSES)
    copies: SimpleQueue[Path] = SimpleQueue()
    for number in range(PROCESSES):
        copies.put(copy_source(FOLDER / f"copy-{number}"))

    def tried(mutant: Mutant) -> Result:
        source = copies.get()
        try:
            result = attempt(mutant, tests.tests_of(mutant), source, seconds)
        finally:
            copies.put(source)
        print(f"{result.fate:9} {result.name}", file=sys.stderr, flush=True)
        return result

    with ThreadPoolExecutor(PROCESSES) as pool:
        try:
            return list(pool.map(tried, mutants))
        except BaseException:  # Ctrl-C, or an end from outside: what we started ends with us
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(running):
                _end(process)
            raise


def attempt(mutant: Mutant, tests: list[tuple[float, str]], source: Path, seconds: float) -> Result:
    """Put the fault into a copy, run the tests, and take it out again."""
    chosen: list[str] = []
    spent = 0.0
    for takes, name in tests:
        spent += takes
        if chosen and spent > seconds:
            break
        chosen.append(name)
    path = source / "sanderling" / mutant.file
    path.write_bytes(mutant.applied((PACKAGE / mutant.file).read_bytes()))
    _forget_bytecode(path)
    try:
        fate = _fate(chosen, source, START + 4 * min(spent, seconds)) if chosen else "untested"
    finally:
        shutil.copy(PACKAGE / mutant.file, path)
        _forget_bytecode(path)
    before, after = shown(mutant)
    return Result(mutant.name, mutant.file, mutant.rule, fate, before, after, len(chosen), len(tests) - len(chosen))


def _forget_bytecode(path: Path) -> None:
    """Python tells by size and second whether bytecode is of its source; a fault may change neither."""
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def _fate(tests: list[str], source: Path, limit: float) -> str:
    wanted = source.parent / "tests"
    wanted.write_text("\n".join(tests))
    command = [*PYTEST, "-x", f"@{wanted}"]
    with (source.parent / "said").open("w") as said:
        process = subprocess.Popen(  # noqa: S603 - our own tests
            command, cwd=ROOT, env=environment(source), stdout=said, stderr=said, start_new_session=True
        )
        running.add(process)
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            return "timeout"
        finally:
            running.discard(process)
            _end(process)
    return "survived" if code == 0 else "killed"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the tests, and with them whatever they started and left."""
    with suppress(ProcessLookupError):  # all of them have ended
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def shown(mutant: Mutant) -> tuple[str, str]:
    """The line before and after, as far as a person needs it."""
    source = (PACKAGE / mutant.file).read_bytes()
    start = source.rfind(b"\n", 0, mutant.start) + 1
    end = source.find(b"\n", mutant.end)
    before = source[start:end].decode()
    after = (source[start : mutant.start] + mutant.text.encode() + source[mutant.end : end]).decode()
    return " ".join(before.split()), " ".join(after.split())


def table(results: Sequence[Result]) -> str:
    """Fates by file, and every survivor in full."""
    counted = Counter((result.file, result.fate) for result in results)
    fates = ("killed", "timeout", "survived", "untested")
    lines = [f"{'file':40}" + "".join(f"{fate:>10}" for fate in fates)]
    for file in sorted({result.file for result in results}):
        lines += [f"{file:40}" + "".join(f"{counted[file, fate]:>10}" for fate in fates)]
    totals = Counter(result.fate for result in results)
    lines.append(f"{'all':40}" + "".join(f"{totals[fate]:>10}" for fate in fates))
    for result in results:
        if result.fate in {"survived", "untested"}:
            lines.append(f"\n{result.name}: {result.fate}, {result.tests} tests run, {result.left_out} left out")
            lines += [f"    - {result.before}", f"    + {result.after}"]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
