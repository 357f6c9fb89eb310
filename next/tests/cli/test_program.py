"""The program as a process: signals, pipes, control from outside, a terminal."""

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.real
TESTS = Path(__file__).parents[1]
COUNT = ("toys", "count", "https://a.example/", "--out", "out")


def command(*words: str) -> list[str]:
    return [sys.executable, str(TESTS / "toy_program.py"), *words]


@contextlib.contextmanager
def started(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A run that has written its first status."""
    with subprocess.Popen(command(*words), cwd=folder, text=True, stdout=-1, stderr=-1) as process:
        try:
            for _ in range(600):
                if (folder / "out" / "status.json").exists():
                    break
                assert process.poll() is None
                time.sleep(0.05)
            yield process
        finally:
            process.kill()


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*words), cwd=folder, text=True, capture_output=True, timeout=60, check=False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_lets_it_end(tmp_path: Path, number: signal.Signals) -> None:
    with started(tmp_path, *COUNT, "--items", "1000") as process:
        process.send_signal(number)
        process.send_signal(number)  # at once: a supervisor that signals the process and its group
        out, err = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "stopped" in out
    assert "Ctrl-C" in err
    assert "Traceback" not in err


def test_the_second_signal_stops_it_at_once(tmp_path: Path) -> None:
    with started(tmp_path, *COUNT, "--items", "1000", "--pause", "1h") as process:
        process.send_signal(signal.SIGINT)
        time.sleep(1)
        assert process.poll() is None, "what is in flight has an hour to end"
        process.send_signal(signal.SIGINT)
        process.wait(60)

    assert process.returncode == 130


def test_control_and_status_beside_a_run(tmp_path: Path) -> None:
    with started(tmp_path, *COUNT, "--items", "1000") as process:
        assert "block b.example: done" in run(tmp_path, "control", "out", "block", "B.example.").stdout
        assert "b.example" in run(tmp_path, "control", "out").stdout
        assert run(tmp_path, "control", "out", "pause").returncode == 0
        assert "running" in run(tmp_path, "status", "out").stdout or "paused" in run(tmp_path, "status", "out").stdout
        busy = run(tmp_path, *COUNT)
        assert (busy.returncode, "in use" in busy.stderr) == (75, True)
        assert run(tmp_path, "control", "out", "stop").returncode == 0
        process.wait(60)

    assert process.returncode == 3
    assert run(tmp_path, "control", "out", "stop").returncode == 2


def test_a_killed_run_is_known_as_killed(tmp_path: Path) -> None:
    with started(tmp_path, *COUNT, "--items", "1000") as process:
        process.kill()
        process.wait(60)

    status = run(tmp_path, "status", "out")

    assert (status.returncode, "killed" in status.stdout) == (1, True)


def test_output_that_nobody_reads_ends_the_command_quietly(tmp_path: Path) -> None:
    with subprocess.Popen(command("--help"), cwd=tmp_path, text=True, stdout=-1, stderr=-1) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        err = process.stderr.read()

    assert (process.returncode, err) == (0, "")


@pytest.mark.parametrize("columns", [20, 100])
def test_a_terminal_shows_the_live_report(tmp_path: Path, columns: int) -> None:
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns), "LINES": "30"}
    here, there = pty.openpty()
    with subprocess.Popen(
        command(*COUNT, "--items", "15"), cwd=tmp_path, stdout=there, stderr=there, env=environment
    ) as process:
        os.close(there)
        shown = b""
        while select.select([here], [], [], 60)[0]:
            try:
                shown += os.read(here, 10_000)
            except OSError:  # its end, on Linux
                break
    os.close(here)

    assert process.returncode == 0
    assert "━" in shown.decode()
    assert b"done" in shown
