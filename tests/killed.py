"""Run a script of ours, and kill it while it works."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def killed(command: Sequence[str | Path], *, after: int) -> None:
    """Kill -9, wherever it is, when it has said so many lines."""
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE) as child:  # noqa: S603 - ourselves
        assert child.stdout is not None
        for _ in range(after):
            assert child.stdout.readline(), "it ended by itself"
        child.kill()
