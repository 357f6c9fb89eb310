"""What a repo costs in a reader: a CAR parsed with every check, and made a block; and two readers beside one.

The repos are drawn (simulators/atproto_repos.py): three in four records are likes, reposts and follows. CPU of one
process, the best of interleaved rounds; beside it the AT Protocol SDK for Python, which reads the CAR into objects and
neither walks the tree nor checks hashes (`make peers`). Readers are measured by the clock: 48 repos of 0.8 MB.
"""

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from random import Random
from time import perf_counter

from bars import Bar, report

sys.path.append(str(Path(__file__).parents[1] / "simulators"))

from atproto_repos import make_repo

from sanderling.clock import SystemClock, cpu_seconds
from sanderling.formats.rca import encode_block
from sanderling.formats.repo import parse_repo
from sanderling.readers.pool import Readers
from sanderling.readers.reader import ReaderLimits

QUICK = "--quick" in sys.argv
PEERS = Path(__file__).parents[1] / ".venv-peers" / "bin" / "python"
DID = "did:plc:abcdefghijklmnopqrstuvwx"
ROUNDS = 3 if QUICK else 7
SDK = """
import sys, time
from atproto import CAR
car = open(sys.argv[1], "rb").read()
before = time.process_time()
CAR.from_bytes(car)
print(time.process_time() - before)
"""


PARSE = """
import sys
from sanderling.formats.repo import parse_repo
car = open(sys.argv[1], "rb").read()
peak = lambda: next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmHWM"))
before = peak()
parse_repo(car)
print((peak() - before) / len(car))
"""


def make_block(car: bytes) -> bytes:
    repo = parse_repo(car)
    return encode_block(repo.did, "https://pds.example", repo.rev, 1, repo.collections)


def open_work(_argument: bytes) -> Callable[[bytes, bytes], bytes]:
    """What a reader does here."""
    return lambda _head, body: make_block(body)


def cpu_of(act: Callable[[], object]) -> float:
    before = cpu_seconds()
    act()
    return cpu_seconds() - before


def alone(python: str | Path, script: str, path: str) -> float:
    """What a process of its own prints about the CAR in that file."""
    return float(subprocess.run([python, "-c", script, path], capture_output=True, text=True, check=True).stdout)


async def wall_of(count: int, cars: list[bytes]) -> float:
    """Seconds until so many readers have read all repos."""
    limits = ReaderLimits(cpu=60, host_cpu=1e9)
    async with Readers("repos:open_work", b"", count=count, clock=SystemClock(), limits=limits) as readers:
        await readers.run("warm", b"", cars[0])
        before = perf_counter()
        async with asyncio.TaskGroup() as group:
            for place, car in enumerate(cars):
                group.create_task(readers.run(f"host{place % 4}", b"", car))
        return perf_counter() - before


def main() -> int:
    size = 40_000 if QUICK else 190_000
    car = make_repo(Random(1), DID, size)
    small = [make_repo(Random(number), DID, 2000) for number in range(4)] * (6 if QUICK else 12)
    acts = {
        "every check": lambda: parse_repo(car),
        "--no-verify": lambda: parse_repo(car, verify=False),
        "to a block": lambda: make_block(car),
    }
    rounds = [[cpu_of(act) for act in acts.values()] for _ in range(ROUNDS)]
    best = dict(zip(acts, map(min, zip(*rounds, strict=True)), strict=True))
    walls = [[asyncio.run(wall_of(count, small)) for count in (1, 2)] for _ in range(ROUNDS)]
    one, two = map(min, zip(*walls, strict=True))
    millions = len(car) / 1e6
    need = 65 if find_spec("cbrrr") else 45
    bars = [
        Bar(f"MB/s of a CAR of {millions:.0f} MB, every check", millions / best["every check"], need, least=True),
        Bar("MB/s of it without hashes (--no-verify)", millions / best["--no-verify"], 50, least=True),
        Bar("records per CPU second, from the CAR to a block", size / best["to a block"], 80_000, least=True),
        Bar("times as fast with two readers as with one", one / two, 1.7, least=True),
        Bar("repos of 0.8 MB a second, two readers", len(small) / two),
    ]
    with tempfile.NamedTemporaryFile() as file:
        file.write(car)
        file.flush()
        bars.append(Bar("times its size is the memory that parsing takes", alone(sys.executable, PARSE, file.name), 5))
        if PEERS.exists():
            seconds = min(alone(PEERS, SDK, file.name) for _ in range(3))
            bars.append(Bar("MB/s of the Python SDK, which checks nothing", millions / seconds))
    return report(bars)


if __name__ == "__main__":
    sys.exit(main())
