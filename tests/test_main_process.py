"""How a process begins and ends: with Ctrl-C while it is being loaded, and streams that are closed, full or gone."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

# Ctrl-C at a known place instead of after some time: as soon as that module is being imported.
INTERRUPTED = """
import os, signal, sys

def interrupt(event, arguments):
    if event == "import" and arguments[0] == MODULE:
        os.kill(os.getpid(), signal.SIGINT)

import sanderling.__main__ as command
MODULE, sys.argv = sys.argv[1], ["sanderling", *sys.argv[2:]]
sys.addaudithook(interrupt)
command.main()
"""
MUCH = "config show"  # which prints some 500 lines


def shell(line: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """What comes of a line in which `sanderling` is ours."""
    line = f'sanderling() {{ "{sys.executable}" -m sanderling "$@"; }}; {line}'
    known = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"} | environment
    return subprocess.run(["sh", "-c", line], cwd=folder, env=known, capture_output=True, text=True, timeout=300)  # noqa: PLW1510, S603, S607


@pytest.mark.parametrize("module", ["cyclopts", "uvloop"])
def test_ctrl_c_ends_it_without_a_word_while_it_is_loaded(module: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED, module, "status", "--home", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)  # noqa: S603

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_who_ignores_ctrl_c_goes_on_to(tmp_path: Path) -> None:
    """As what a shell runs in the background does."""
    command = [sys.executable, "-c", INTERRUPTED, "cyclopts", "--version"]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)  # noqa: S603
    finally:
        signal.signal(signal.SIGINT, before)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (f"sanderling {MUCH} >/dev/full", 1, "sanderling: cannot write to stdout: No space left on device\n"),
        (
            "PYTHONUNBUFFERED=1 sanderling --version >/dev/full",
            1,
            "sanderling: cannot write to stdout: No space left on device\n",
        ),
        ("sanderling --help >&-", 1, "sanderling: cannot write to stdout: Bad file descriptor\n"),
        (f"{{ sanderling {MUCH}; echo $? >&2; }} | true", 0, "130\n"),  # who reads has gone before it writes
        ("sanderling config show nonsense 2>/dev/full", 2, ""),
        ("sanderling config show nonsense <&- >&- 2>&-", 2, ""),
        ("sanderling --version 2>&- >/dev/null", 0, ""),
    ],
)
def test_a_stream_that_cannot_be_used_is_no_traceback(line: str, code: int, said: str, tmp_path: Path) -> None:
    done = shell(line, tmp_path)

    assert (done.returncode, done.stdout, done.stderr) == (code, "", said)


@pytest.mark.parametrize(
    ("line", "environment", "code", "said"),
    [
        ("mkdir gone && cd gone && rmdir ../gone && sanderling status", {}, 2, "the folder that this was called in is"),
        ("sanderling pages crawl --help", {"PYTHONIOENCODING": "ascii"}, 0, ""),
        ("unset HOME TERM; sanderling doctor", {}, 0, ""),
        ("sanderling status --home \udce9", {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}, 2, "?"),
        ("sanderling repos reset <&-", {}, 0, ""),
    ],
)
def test_an_odd_place_is_no_traceback(
    line: str, environment: dict[str, str], code: int, said: str, tmp_path: Path
) -> None:
    done = shell(line, tmp_path, **environment)

    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr
