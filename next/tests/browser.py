"""The browser of the tests: Debian's Chromium, installed when it is needed first and nothing forbids it."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


@cache
def chromium() -> str:
    """Its path; skips the test if it is not there and cannot be installed."""
    with (Path(tempfile.gettempdir()) / "sanderling-chromium.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = _found()
        if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
            for words in (["update"], ["install", "-y", "--no-install-recommends", "chromium", "fonts-dejavu-core"]):
                environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
                subprocess.run(
                    ["apt-get", "-qq", *words], check=False, capture_output=True, env=environment, timeout=300
                )
            found = _found()
    if found is None:
        pytest.skip("no Chromium; apt-get install chromium")
    return found


def _found() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)
