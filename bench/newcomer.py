"""What a newcomer spends to see a first record, beside Scrapy and dlt: CPU, bytes installed, commands, lines to write.

Each side is installed by pip into an empty environment of its own, from our wheel or by its name, and does four jobs on
simulated hosts of this machine. The CPU is that of the commands until the first record is on disk; the clock is said
too, but a busy machine stretches it. A side that cannot be installed is left out, and the output says so.
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

from harness import Report, arguments, at_most
from newcomer_jobs import JOBS, SIDES, Way

ROOT = Path(__file__).parents[1]
MOST_COMMANDS = 2  # of ours: pip, and one more
MOST_MEGABYTES = 150  # of ours
LIMIT = 60.0  # seconds that a job may take
STEP = 0.02
WORLDS = {
    "site": ("site", "--hosts", "1"),
    "api": ("api", "--faults", "0"),
    "pds": ("pds", "--hosts", "1", "--repos", "4"),
}
PIP = ("install", "--quiet", "--disable-pip-version-check")
TICK = os.sysconf("SC_CLK_TCK")


class Spent(NamedTuple):
    """Seconds of CPU and of the clock until the first record was there."""

    cpu: float
    wall: float


def main() -> None:
    """Install each side, do each job, print a table."""
    report = Report("newcomer")
    arguments()
    with tempfile.TemporaryDirectory(prefix="newcomer-") as name:
        folder = Path(name)
        sides = {side: home for side in SIDES if (home := _install(side, folder, report)) is not None}
        if "sanderling" not in sides:
            sys.exit("Sanderling could not be installed, so there is nothing to measure")
        with _worlds(sides["sanderling"], folder) as addresses:
            for number, (job, (world, ways)) in enumerate(JOBS.items()):
                print(f"  {job}")
                for side, home in sides.items():
                    place = folder / f"{side}-{number}"
                    place.mkdir()
                    _measure(report, job, side, ways[side], _do(ways[side], home, place, addresses[world]))
    megabytes = report.figures["sanderling: megabytes installed"]
    report.bars.append(at_most("megabytes that pip installs", MOST_MEGABYTES, megabytes))
    report.finish()


def _measure(report: Report, job: str, side: str, way: Way, spent: Spent | None) -> None:
    if side == "sanderling":
        report.bars.append(at_most(f"{job}: commands to the first record", MOST_COMMANDS, way.commands))
        report.bars.append(at_most(f"{job}: no record within a minute", 0, spent is None))
    if spent is None:
        print(f"    {side:11} no record within {LIMIT:.0f} s")
        return
    typed = f"{way.commands} commands, {way.lines:2} lines to write"
    print(f"    {side:11} {typed}, {spent.cpu:5.2f} s of CPU, {spent.wall:5.1f} s")
    report.figures |= {
        f"{job}, {side}: commands": way.commands,
        f"{job}, {side}: lines to write": way.lines,
        f"{job}, {side}: CPU seconds": round(spent.cpu, 2),
        f"{job}, {side}: seconds": round(spent.wall, 1),
    }


def _install(side: str, folder: Path, report: Report) -> Path | None:
    """The environment with this side; None if pip could not install it."""
    what = [SIDES[side]]
    if side == "sanderling":
        what = ["--constraint", str(ROOT / "constraints.txt"), str(_wheel(folder))]
    home, before, started = folder / f"{side}-home", _used_by_children(), time.monotonic()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)  # noqa: S603
    empty = _bytes(home)
    command = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), *PIP, *what]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        print(f"  {side} is left out, pip could not install it: {done.stderr.strip().splitlines()[-1]}")
        return None
    cpu, wall, megabytes = _used_by_children() - before, time.monotonic() - started, (_bytes(home) - empty) / 1e6
    print(f"  {side:11} {megabytes:.0f} MB, installed with {cpu:.1f} s of CPU in {wall:.0f} s")
    report.figures[f"{side}: megabytes installed"] = round(megabytes, 1)
    report.figures[f"{side}: CPU seconds of pip"] = round(cpu, 1)
    return home


def _wheel(folder: Path) -> Path:
    """Our wheel, built from a copy: a build writes into its folder."""
    copy = folder / "copy"
    left_out = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "*.so", "sanderling-demo*")
    shutil.copytree(ROOT, copy, ignore=left_out)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(copy)]
    subprocess.run(command, capture_output=True, check=True)  # noqa: S603
    return next(folder.glob("*.whl"))


@contextmanager
def _worlds(home: Path, folder: Path) -> Iterator[dict[str, dict[str, str]]]:
    """What to fill in, by the name of a world, while all of them serve."""
    started: dict[str, subprocess.Popen[str]] = {}
    try:
        for name, words in WORLDS.items():
            command = [str(home / "bin" / "sanderling"), "world", *words, "--json", "--port", "0"]
            started[name] = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)  # noqa: S603
        found = {name: {"address": _first(process)["address"], "did": ""} for name, process in started.items()}
        listed = urlopen(f"{found['pds']['address']}/xrpc/com.atproto.sync.listRepos", timeout=30)  # noqa: S310 - http
        with listed:
            found["pds"]["did"] = next(each["did"] for each in json.load(listed)["repos"] if each["active"])
        yield found
    finally:
        for process in started.values():
            process.kill()
            process.wait()


def _first(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    found: dict[str, Any] = json.loads(process.stdout.readline())
    return found


def _do(way: Way, home: Path, folder: Path, filled: dict[str, str]) -> Spent | None:
    """Do the job until its first record is on disk; None if there is none within the limit."""
    for name, text in way.files.items():
        (folder / name).write_text(text.format(**filled))
    variables = {"PATH": f"{home / 'bin'}:{os.environ['PATH']}", "HOME": str(folder)}
    # Of dlt: nothing leaves this machine, and nothing is taken up that an earlier run left elsewhere.
    variables |= {"RUNTIME__DLTHUB_TELEMETRY": "false", "DLT_DATA_DIR": str(folder / "state")}
    started = time.monotonic()
    with (folder / "said.txt").open("wb") as said:
        process = subprocess.Popen(  # noqa: S602 - as it is typed
            way.command.format(**filled),
            shell=True,
            cwd=folder,
            env=variables,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    try:
        while time.monotonic() - started < LIMIT:
            # It is not waited for, so that what it used can still be read once it has ended.
            ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
            if way.done(folder):
                return Spent(_used_by_session(process.pid), time.monotonic() - started)
            if ended:
                break
            time.sleep(STEP)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    print((folder / "said.txt").read_text(errors="replace")[-1000:])
    return None


def _used_by_session(session: int) -> float:
    """Seconds of CPU of all processes of a session that still run, and of their children that have ended."""
    used = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(") ")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        if int(fields[3]) == session:
            used += sum(map(int, fields[11:15]))
    return used / TICK


def _used_by_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _bytes(home: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in home.rglob("*"))


if __name__ == "__main__":
    main()
