"""Run a program to its end on one core or several, within a time limit, and say what it cost."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PEERS = ROOT / ".venv-peers" / "bin" / "python"
STEP = 0.01  # seconds between two looks at a running program


class Failed(Exception):  # noqa: N818 - it names what was found
    """A program did not end well; the message has its last words."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run cost: seconds of CPU, of the program and its children; of the wall; and its largest size in bytes."""

    cpu: float
    wall: float
    peak: int


@dataclass(frozen=True, slots=True)
class Program:
    """A command line, and the environment it needs beyond ours."""

    command: tuple[str, ...]
    env: Mapping[str, str]
    cores: int = 1

    def start(self, said: Path) -> subprocess.Popen[bytes]:
        """Start it on the last cores of this machine, away from the server; what it says goes to a file."""
        cores = sorted(os.sched_getaffinity(0))[-self.cores :]
        with said.open("wb") as out:
            return subprocess.Popen(  # noqa: S603 - our own command lines
                self.command,
                env={**os.environ, **self.env},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                preexec_fn=lambda: os.sched_setaffinity(0, cores),  # noqa: PLW1509 - one thread here
            )

    def run(self, said: Path, limit: float) -> Cost:
        """Run it to its end. Failed if it ends with another code than 0, or not within `limit` seconds."""
        started = time.monotonic()
        process = self.start(said)
        code, cost = _wait(process, started, limit)
        if code != 0:
            raise Failed(f"{' '.join(self.command)} ended with code {code} after {cost.wall:.0f} s\n{_tail(said)}")
        return cost


def _wait(process: subprocess.Popen[bytes], started: float, limit: float) -> tuple[int, Cost]:
    killed = False
    while True:
        # Not process.wait: only wait4 tells what the process and its children used.
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        took = time.monotonic() - started
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, Cost(used.ru_utime + used.ru_stime, took, used.ru_maxrss * 1024)
        if took > limit and not killed:
            os.kill(process.pid, signal.SIGKILL)
            killed = True
        time.sleep(STEP)


def peer(script: str, *arguments: str, **env: str) -> Program:
    """A program of bench/peers, in the interpreter of the peers, which can import our source too."""
    path = ROOT / "bench" / "peers" / script
    return Program((str(PEERS), str(path), *arguments), {"PYTHONPATH": str(ROOT / "src"), **env})


def ready() -> str | None:
    """Why nothing can be measured against the peers, if so."""
    return None if (PEERS.parent.parent / ".ready").exists() else "the peers are not installed; run: make peers"


def busy() -> float:
    """The load average; warns, on standard output, when a figure of time would be worth little."""
    load = os.getloadavg()[0]
    print(f"  load average {load:.2f} at the start" + ("; WARNING: the machine is not idle" if load > 1.5 else ""))
    return load


def _tail(said: Path) -> str:
    return said.read_text(errors="replace")[-2000:]
