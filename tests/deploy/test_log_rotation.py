"""A log in a file can be cut while the process writes to it."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from deploy_lines import DEPLOY

ROTATION = DEPLOY / "logrotate" / "sanderling"
LINES = """
import sys, time
from sanderling.observe import logs

logs.configure("json", "info")
log = logs.get("rotation")
for number in range(100_000):
    log.info("line", number=number)
    time.sleep(0.002)
"""


def seen(path: Path) -> list[int]:
    """The numbers of the lines that are whole; the last may still be written."""
    *whole, _ = path.read_bytes().split(b"\n")
    return [json.loads(line)["number"] for line in whole]


def grown(path: Path, process: "subprocess.Popen[bytes]") -> list[int]:
    """The same, once there are some."""
    until = time.monotonic() + 300
    while len(found := seen(path)) < 20:
        assert process.poll() is None, "it ended"
        assert time.monotonic() < until, f"only {len(found)} lines"
        time.sleep(0.01)
    return found


def rotate(folder: Path) -> None:
    """Rotate the logs of a folder as our example says, at once."""
    program = shutil.which("logrotate") or shutil.which("logrotate", path="/usr/sbin:/sbin")
    if program is None:
        pytest.skip("there is no logrotate on this machine")
    rules = folder / "rules"
    # Only the owner may write the rules, or logrotate does not believe them.
    rules.touch(mode=0o600)
    rules.write_text(ROTATION.read_text().replace("/var/log/sanderling", str(folder)))
    command = [program, "--force", "--state", str(folder / "state"), str(rules)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)  # noqa: S603 - ours


def test_a_process_goes_on_when_its_log_is_rotated(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    with log.open("ab") as appended:
        process = subprocess.Popen([sys.executable, "-c", LINES], stderr=appended)  # noqa: S603 - ourselves
    try:
        before = grown(log, process)
        rotate(tmp_path)
        after = grown(log, process)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()

    kept = seen(tmp_path / "x.log.1")
    assert kept[: len(before)] == before
    # From its beginning, without a hole of zeros, and with what follows.
    assert log.read_bytes()[:1] == b"{"
    assert after[0] > kept[-1]
    assert after == list(range(after[0], after[0] + len(after)))


def test_the_example_cuts_and_does_not_move() -> None:
    rules = ROTATION.read_text().partition("{")[2].split()

    assert "copytruncate" in rules
    assert "create" not in rules
