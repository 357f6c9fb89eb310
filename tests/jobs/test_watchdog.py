"""Real processes: a call that holds the loop ends its process, and nothing else does."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sanderling.jobs.watchdog import FILE, STUCK, Stuck, Watchdog, read_stuck, write_stuck
from sanderling.stores.durable import FolderError

LONGEST = 0.6
SECONDS = 300  # for a process to end: the machine may be busy

SCRIPT = """
import asyncio, re, sys, time
from pathlib import Path
import uvloop
from sanderling.jobs.watchdog import Watchdog

def reader():
    {body}

async def main():
    with Watchdog(Path(sys.argv[1]), {longest}) as dog:
        print("begun", flush=True)
        {call}
    print("done", flush=True)

uvloop.run(main())
"""

CALL = 'dog.begin("GET /a"); reader(); dog.end()'
# What holds the loop: alone, and with the interpreter's lock.
SPINS = "while True: pass"
SLEEPS = "time.sleep(600)"
BACKTRACKS = "re.fullmatch('(a+)+b', 'a' * 60)"


def script(folder: Path, body: str, call: str = CALL, longest: float = LONGEST) -> Path:
    path = folder / "reader.py"
    path.write_text(SCRIPT.format(body=body, call=call, longest=longest))
    return path


@contextmanager
def start(path: Path) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, str(path), str(path.parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:  # noqa: S603
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "begun\n"
            yield child
        finally:
            child.kill()


@pytest.mark.parametrize("body", [SPINS, SLEEPS, BACKTRACKS])
def test_a_call_that_holds_the_loop_ends_the_process_and_is_on_disk(tmp_path: Path, body: str) -> None:
    path = script(tmp_path, body)

    with start(path) as child:
        _, said = child.communicate(timeout=SECONDS)

    stuck = read_stuck(tmp_path)["GET /a"]
    line = 1 + path.read_text().splitlines().index(f"    {body}")
    assert child.returncode == STUCK
    assert stuck.where == f"{path}:{line} in reader"
    assert not stuck.ends
    assert said.startswith(f"sanderling: GET /a has held the event loop for 600 ms at {stuck.where}.")
    assert "takes this item last" in said


def test_the_second_time_the_item_is_to_be_ended(tmp_path: Path) -> None:
    other = Stuck(1, 1.0, 30.0, "job.py:1 in f", ())
    write_stuck(tmp_path, {"GET /b": other})
    path = script(tmp_path, SLEEPS)
    for _ in range(2):
        with start(path) as child:
            _, said = child.communicate(timeout=SECONDS)

    found = read_stuck(tmp_path)

    assert found["GET /a"].ends
    assert found["GET /a"].reason.startswith("held the event loop for 600 ms, 2 times, last at ")
    assert "ends this item" in said
    assert found["GET /b"] == other


def test_a_process_that_was_stopped_is_not_stuck(tmp_path: Path) -> None:
    # By the clock and not by its work, which takes any time where the machine is busy.
    works = "end = time.monotonic() + 1.5\n    while time.monotonic() < end: time.sleep(0.01)"
    with start(script(tmp_path, works, longest=4.0)) as child:
        time.sleep(0.5)  # it is in the middle
        child.send_signal(signal.SIGSTOP)
        time.sleep(6)
        child.send_signal(signal.SIGCONT)
        said, _ = child.communicate(timeout=SECONDS)

    assert child.returncode == 0
    assert said == "done\n"
    assert read_stuck(tmp_path) == {}


def test_many_short_calls_and_a_loop_that_waits_are_not_stuck(tmp_path: Path) -> None:
    waits = "await asyncio.sleep(1.5)"
    calls = 'end = time.monotonic() + 1.5\n        while time.monotonic() < end: dog.begin("GET /a"); dog.end()'
    with start(script(tmp_path, SLEEPS, f"{waits}\n        {calls}")) as child:
        said, error = child.communicate(timeout=SECONDS)

    assert (child.returncode, said, error) == (0, "done\n", "")


def test_a_person_with_a_debugger_is_not_stuck(tmp_path: Path) -> None:
    (tmp_path / "pydevd.py").write_text("import time\ndef prompt(): time.sleep(1.5)")

    with start(script(tmp_path, "import pydevd; pydevd.prompt()")) as child:
        said, error = child.communicate(timeout=SECONDS)

    assert (child.returncode, said, error) == (0, "done\n", "")


def test_nothing_is_left_of_it_afterwards(tmp_path: Path) -> None:
    with Watchdog(tmp_path):
        assert any(thread.name == "watchdog" for thread in threading.enumerate())

    assert not any(thread.name == "watchdog" for thread in threading.enumerate())
    assert signal.getsignal(signal.SIGVTALRM) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_a_call_costs_less_than_a_microsecond(tmp_path: Path) -> None:
    with Watchdog(tmp_path) as dog:
        best = min(_seconds_of(dog, 20_000) for _ in range(20))

    assert best < 1e-6


def _seconds_of(dog: Watchdog, calls: int) -> float:
    started = time.thread_time()  # of ours alone: the machine may be busy
    for _ in range(calls):
        dog.begin("GET /a")
        dog.end()
    return (time.thread_time() - started) / calls


def test_the_list_is_removed_with_its_last_item(tmp_path: Path) -> None:
    write_stuck(tmp_path, {"a": Stuck(1, 1.0, 30.0, "job.py:1 in f", ("job.py:1 in f",))})
    assert json.loads((tmp_path / FILE).read_text())["items"].keys() == {"a"}

    write_stuck(tmp_path, {})

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (b"", "is damaged"),
        (b'{"version":1}', "is damaged"),
        (b"\xff", "is damaged"),
        (b'{"version":2,"items":{}}', "has version 2, expected 1"),
    ],
)
def test_a_list_that_cannot_be_read_is_said(tmp_path: Path, found: bytes, says: str) -> None:
    (tmp_path / FILE).write_bytes(found)

    with pytest.raises(FolderError, match=says):
        read_stuck(tmp_path)


def test_no_time_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="longest is 0"):
        Watchdog(tmp_path, 0)
