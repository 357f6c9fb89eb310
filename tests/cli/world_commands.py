"""A simulated world as a process: what it says, and how it ends."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from forked import Command

LAST = "Ctrl-C ends it"


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """`sanderling world …` while the block runs."""
    pipe, environment = subprocess.PIPE, {**os.environ, "COLUMNS": "100"}
    with Command(["world", *arguments], stdout=pipe, stderr=pipe, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def lines(process: subprocess.Popen[str], last: str) -> list[str]:
    """What it says, up to the line that begins like that."""
    said: list[str] = []
    assert process.stdout is not None
    for line in process.stdout:
        said.append(line.rstrip("\n"))
        if said[-1].startswith(last):
            return said
    pytest.fail(f"it ended before it said {last}: {said}")


def end(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Ctrl-C; its exit code, and what else it said."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err
