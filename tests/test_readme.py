"""The README is short, and what it shows runs as it is written."""

import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
TEXT = README.read_text()
(CODE,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


class Visits(ThreadingHTTPServer):
    """A host that notes when it is asked, and answers its first request as it is told to."""

    def __init__(self, first: int, headers: dict[str, str]) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.first, self.headers = first, headers
        self.times: list[float] = []

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{self.server_port}/{number}" for number in range(3)]


class Answer(BaseHTTPRequestHandler):
    server: Visits

    def do_GET(self) -> None:
        self.server.times.append(time.monotonic())
        first = len(self.server.times) == 1
        self.send_response(self.server.first if first else 200)
        for name, value in self.server.headers.items() if first else ():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def visited(first: int = 200, **headers: str) -> Iterator[Visits]:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    with Visits(first, names) as host:
        thread = threading.Thread(target=host.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield host
        finally:
            host.shutdown()
            thread.join()


def run_code(folder: Path, *urls: str) -> list[str]:
    (folder / "fetch.py").write_text(CODE)
    command = [sys.executable, "-W", "error", str(folder / "fetch.py"), *urls]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)  # noqa: S603
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_the_code_runs_as_written_and_keeps_the_pace(tmp_path: Path) -> None:
    with visited() as host:
        printed = run_code(tmp_path, *host.urls)

    assert sorted(printed) == [f"200 {url}" for url in host.urls]
    # Two a second is how a host is first asked; on a busy machine the first request arrives late.
    assert host.times[-1] - host.times[0] > 0.4


def test_the_code_heeds_retry_after(tmp_path: Path) -> None:
    with visited(429, Retry_After="2") as host:
        printed = run_code(tmp_path, *host.urls)

    assert sorted(line.split()[0] for line in printed) == ["200", "200", "429"]
    assert host.times[1] - host.times[0] > 1.4


def test_a_url_that_is_refused_says_why_and_the_others_are_printed(tmp_path: Path) -> None:
    refused, wrong = "http://127.0.0.1:9/", "nowhere"
    with visited() as host:
        printed = run_code(tmp_path, host.urls[0], refused, wrong, host.urls[1])

    assert {f"200 {url}" for url in host.urls[:2]} < set(printed)
    assert [line for line in printed if line.startswith(f"ClientConnectorError {refused} ")]
    assert [line for line in printed if line.startswith(f"HostError {wrong} ")]


def test_the_code_is_short() -> None:
    assert len([line for line in CODE.splitlines() if line]) <= 15


def test_it_can_be_read_in_two_minutes() -> None:
    lines = TEXT.splitlines()

    assert len(lines) <= 120
    assert len(TEXT.split()) <= 500
    assert next(number for number, line in enumerate(lines, 1) if line.startswith("```")) < 30
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize("target", re.findall(r"^make (\w+)", TEXT, re.MULTILINE))
def test_every_command_is_a_target_of_the_makefile(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_it_names_the_two_commands() -> None:
    assert re.findall(r"^make (\w+)", TEXT, re.MULTILINE) == ["run", "test"]


def test_the_map_names_every_folder_of_the_package_and_no_other() -> None:
    package = ROOT / "src" / "sanderling"
    folders = {path.name for path in package.iterdir() if path.is_dir() and path.name != "__pycache__"}

    assert set(re.findall(r"`src/sanderling/(\w+)`", TEXT)) == folders
