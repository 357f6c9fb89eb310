"""The same seed, the same run, whatever order the interpreter keeps sets in."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def runs(hash_seed: str) -> str:
    """What a process of its own prints."""
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    command = [sys.executable, str(HERE / "same_seed.py")]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout  # noqa: S603 - ours


def test_the_same_seed_gives_the_same_run_whatever_the_hash_seed() -> None:
    first = runs("1")

    assert first.count("\n") == 12
    assert runs("4711") == first
