"""The demo: all systems to their end, a demo that is killed, and an upstream alone."""

import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from sanderling.cli.demo.command import UPSTREAMS
from sanderling.systems import SYSTEMS

pytestmark = pytest.mark.real


def start(*words: str) -> subprocess.Popen[str]:
    typed = [sys.executable, "-m", "sanderling", "demo", *words]
    return subprocess.Popen(typed, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def process() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for each in started:
        each.kill()
        each.communicate()


def test_each_system_has_an_upstream() -> None:
    assert set(UPSTREAMS) == {system.name for system in SYSTEMS}


def test_all_systems_have_every_record_once(tmp_path: Path) -> None:
    ended = start("--out", str(tmp_path / "demo"))
    out, err = ended.communicate(timeout=240)

    assert ended.returncode == 0, out + err
    assert out.count("0 missing, 0 there twice") == len(UPSTREAMS)
    assert "Now try:" in out


def test_nothing_outlives_a_killed_demo(tmp_path: Path, process: list[subprocess.Popen[str]]) -> None:
    process.append(start("--out", str(tmp_path / "demo")))
    assert process[0].stderr is not None
    while "$ sanderling" not in process[0].stderr.readline():
        pass
    children = Path(f"/proc/{process[0].pid}/task/{process[0].pid}/children")
    while not (readers := children.read_text().split()):
        assert process[0].poll() is None
    process[0].kill()
    process[0].wait()
    for reader in readers:
        try:
            handle = os.pidfd_open(int(reader))
        except ProcessLookupError:
            continue
        assert select.select([handle], [], [], 60)[0], "a reader outlives the demo"
        os.close(handle)


def test_an_upstream_is_served_alone(process: list[subprocess.Popen[str]]) -> None:
    process.append(start("pages", "--serve"))
    assert process[0].stdout is not None
    url = re.search(r"http://\S+", process[0].stdout.readline())
    assert url is not None
    assert b"The journal" in urlopen(url[0]).read()
    process[0].send_signal(signal.SIGINT)
    assert process[0].wait(30) == 130


@pytest.mark.parametrize("words", [("nosuch",), ("--serve",), ("--out", "tests")])
def test_what_cannot_be_shown(words: tuple[str, ...]) -> None:
    ended = start(*words)
    _, err = ended.communicate(timeout=60)

    assert ended.returncode == 2
    assert err.startswith("sanderling: ")
