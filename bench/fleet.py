"""What does a crawl cost that several machines share: a page, a URL, a takeover; and how far does one server carry it?

A PostgreSQL of its own, and a folder as object store. Workers are processes with the real engines, ledgers and commits
on a site without HTTP (`fleet_drive.py`): 30 links a page, one of them new, half of those to another host.

The CPU of the server is that of all its processes, vacuum and checkpoints among them, and *marginal*: that of a long
crawl less that of a short one, by the difference in pages. `fleet_growth.py` compares it with what it is when 100
million pages are behind it, for a cost that grows with what is known is a defect. The simulation at the end takes the
costs that were measured here, and says where 10, 100 and 500 workers are held up.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import asyncpg  # type: ignore[import-untyped]  # ships neither stubs nor a marker
from fleet_growth import growth
from fleet_simulation import Costs, servers_for, simulate
from harness import Report, arguments, at_most
from processes import ROOT, Failed, busy

sys.path.insert(0, str(ROOT / "tests"))  # where it is known how to start each server

from services.postgres import POSTGRES
from services.process import private_folder

from sanderling.stores.fleet import WorkerIdentity
from sanderling.stores.postgres_fleet import PostgresFleet

SHORT, LONG, HOSTS, PARTS = 5, 25, 2_000, 16  # pages of each host; hosts; parts
LEASE = 4.0  # seconds, of the crawl whose worker is killed
TICK = os.sysconf("SC_CLK_TCK")
LIMIT = 240.0  # seconds for one run
MOST_SERVER, MOST_GROWTH, MOST_PROCESS = 15.0, 1.25, 1.25  # µs a page; times; times
SIMULATED = (10, 100, 500)  # workers
MANY, MOST_PARTS = 10**9, 1_024  # URLs of a crawl that is worked out from what was measured, and its parts
LOOKS = 3_000


@dataclass(frozen=True, slots=True)
class Run:
    """What one crawl cost."""

    pages: int
    server: float  # seconds of CPU, of all processes of the server
    workers: float  # the same of all workers
    wall: float


class Server:
    """A PostgreSQL of ours."""

    def __init__(self, url: str, pid: int) -> None:
        self.url = url
        self._pid = pid

    def cpu(self) -> float:
        """Seconds of CPU that it has used, those of processes that have ended among them."""
        own = _times(self._pid)
        children = Path(f"/proc/{self._pid}/task/{self._pid}/children").read_text(encoding="ascii").split()
        return sum(own) + sum(sum(_times(int(child))[:2]) for child in children)

    def ask(self, sql: str, *values: object) -> object:
        """What one statement gives."""

        async def asked() -> object:
            db = await asyncpg.connect(self.url)
            try:
                return await db.fetchval(sql, *values)
            finally:
                await db.close()

        return asyncio.run(asked())


def _times(pid: int) -> list[float]:
    """User, system, and both of children that have ended; nothing for one that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except FileNotFoundError:
        return [0.0] * 4
    return [int(each) / TICK for each in fields[11:15]]


@contextmanager
def served() -> Iterator[Server]:
    """A server that only this benchmark uses."""
    with private_folder() as folder, POSTGRES.start(Path(folder)) as running:
        yield Server(running.url, running.pid)


def crawl(server: Server, folder: Path, name: str, pages: int, workers: int = 1) -> Run:
    """Crawl with so many workers."""
    before = server.cpu()
    started = time.monotonic()
    running = [_start(server, folder, name, each, pages) for each in range(workers)]
    said = [each.communicate(timeout=LIMIT)[0].split() for each in running]
    wall = time.monotonic() - started
    if any(each.returncode for each in running) or int(said[0][0]) != HOSTS * pages:
        raise Failed(f"{said}, expected {HOSTS * pages} pages")
    return Run(HOSTS * pages, server.cpu() - before, sum(float(each[1]) for each in said), wall)


def _start(
    server: Server, folder: Path, name: str, worker: int, pages: int, lease: float = 30.0
) -> subprocess.Popen[bytes]:
    script, copies = Path(__file__).with_name("fleet_drive.py"), folder / f"{name}-{worker}"
    command = [sys.executable, str(script), server.url, f"file:{folder}/objects", name, str(copies)]
    numbers = map(str, (HOSTS, pages, PARTS, lease))
    return subprocess.Popen([*command, *numbers], stdout=subprocess.PIPE)  # noqa: S603 - ours


def marginal(short: Run, long: Run) -> tuple[float, float, float]:
    """µs of CPU a page of the server and of the workers, and pages a second."""
    pages = long.pages - short.pages
    server, workers = (long.server - short.server) / pages * 1e6, (long.workers - short.workers) / pages * 1e6
    return server, workers, pages / (long.wall - short.wall)


def take_over(server: Server, folder: Path) -> float:
    """Leases from the death of a worker until others have all of its parts."""
    name = "killed"
    running = [_start(server, folder, name, each, LONG, LEASE) for each in range(2)]
    try:
        _until(lambda: len(_holders(server, name)) == len(running), "both have parts")
        victim = running.pop()
        dead = _holders(server, name)
        os.kill(victim.pid, signal.SIGKILL)
        victim.wait()
        killed = time.monotonic()
        _until(lambda: len(_holders(server, name)) < len(dead), "one has all parts")
        return (time.monotonic() - killed) / LEASE
    finally:
        for each in running:
            each.kill()
            each.wait()


def look(server: Server) -> float:
    """Seconds of the server's CPU for one look of a worker into the inboxes of its parts."""

    async def looked() -> float:
        fleet = PostgresFleet(server.url, "first", WorkerIdentity("bench", "bench", "1"))
        await fleet.open()
        try:
            await fleet.find("first")
            before = server.cpu()
            for _ in range(LOOKS):
                await fleet.receive(range(PARTS), [], 1000)
            return (server.cpu() - before) / LOOKS
        finally:
            await fleet.close()

    return asyncio.run(looked())


def _holders(server: Server, name: str) -> set[str]:
    sql = "SELECT coalesce(string_agg(DISTINCT holder, ' '), '') FROM lease WHERE scope LIKE $1 AND holder <> ''"
    return set(str(server.ask(sql, f"{name}-%")).split())


def _until(is_so: Callable[[], bool], what: str) -> None:
    ends = time.monotonic() + LIMIT
    while not is_so():
        if time.monotonic() > ends:
            raise Failed(f"not within {LIMIT:g} s: {what}")
        time.sleep(0.05)


def main() -> None:
    """Measure, and simulate the rest."""
    rounds = arguments("rounds", 2, "of each measurement").rounds
    report, found = Report("fleet"), dict[str, list[tuple[float, float, float]]]()
    report.figures["load"] = busy()
    with served() as server, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        crawl(server, folder, "first", SHORT)  # which makes the tables
        for turn in range(rounds):
            for what, workers in (("one", 1), ("two", 2)):
                measure(server, folder, what, turn, workers, found)
        report.figures["bytes of the server a page"] = _size(server) / (HOSTS * (SHORT + LONG) * rounds * 2)
        report.figures["bytes of objects a page"] = round(
            _bytes_in(folder / "objects", "*") / (HOSTS * (SHORT + LONG) * rounds * 2)
        )
        report.figures["bytes of a ledger a URL"] = round(_bytes_in(folder / f"one0-{LONG}-0", "*.db") / (HOSTS * LONG))
        grown = asyncio.run(growth(server.url, server.cpu))
        leases = take_over(server, folder)
        report.figures["server µs a look into inboxes"] = round(look(server) * 1e6, 1)
    finish(report, found, leases, grown)


def measure(
    server: Server,
    folder: Path,
    what: str,
    turn: int,
    workers: int,
    found: dict[str, list[tuple[float, float, float]]],
) -> None:
    """One measurement, short and long."""
    runs = [crawl(server, folder, f"{what}{turn}-{pages}", pages, workers) for pages in (SHORT, LONG)]
    found.setdefault(what, []).append(marginal(*runs))
    cpu, own, speed = found[what][-1]
    print(f"  {what}: {cpu:.1f} µs of the server, {own:.0f} of workers a page; {speed:,.0f} a second", flush=True)


def _bytes_in(folder: Path, pattern: str) -> int:
    return sum(path.stat().st_size for path in folder.rglob(pattern) if path.is_file())


def _size(server: Server) -> float:
    sql = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relname LIKE 'fleet_%' AND relkind = 'r'"
    return float(str(server.ask(sql)))


def finish(report: Report, found: dict[str, list[tuple[float, float, float]]], leases: float, grown: float) -> None:
    """Bars and the simulation."""
    middle = {what: [median(numbers) for numbers in zip(*each, strict=True)] for what, each in found.items()}
    for what, (server, workers, speed) in middle.items():
        report.figures[f"{what}, server µs a page"] = round(server, 2)
        report.figures[f"{what}, worker µs a page"] = round(workers, 1)
        report.figures[f"{what}, pages a second"] = round(speed)
    one, two = middle["one"], middle["two"]
    report.bars.append(at_most("CPU of the server, µs a page", MOST_SERVER, max(one[0], two[0])))
    report.bars.append(at_most("the same with 100 million pages behind, in that without", MOST_GROWTH, grown))
    report.bars.append(at_most("CPU of a page with two workers, in that with one", MOST_PROCESS, two[1] / one[1]))
    report.bars.append(at_most("leases until the parts of a dead worker have another", 2.0, leases))
    costs = Costs(one[1] / 1e6, one[0] / 1e6, report.figures["server µs a look into inboxes"] / 1e6)
    for workers in SIMULATED:
        load = simulate(workers, costs)
        report.figures[f"simulated, {workers} workers, pages a second"] = round(load.pages)
        report.figures[f"simulated, {workers} workers, server busy"] = round(load.busy, 3)
        report.figures[f"simulated, {workers} workers, servers of one core that carry them"] = servers_for(
            workers, costs
        )
        report.figures[f"10^9 URLs, {workers} workers, hours"] = round(MANY / load.pages / 3600, 1)
        print(f"  {workers} workers: {load.pages:,.0f} pages a second, the server {load.busy:.0%} busy", flush=True)
    ledger, objects = (report.figures[f"bytes of {what}"] for what in ("a ledger a URL", "objects a page"))
    report.figures["10^9 URLs, MB of the ledger of each of 1,024 parts"] = round(MANY / MOST_PARTS * ledger / 1e6)
    report.figures["10^9 URLs, GB of objects"] = round(MANY * objects / 1e9)
    report.finish()


if __name__ == "__main__":
    main()
