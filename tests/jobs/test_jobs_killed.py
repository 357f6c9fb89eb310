"""A job that is killed at any point of its writing, in a process of its own, misses nothing and has nothing twice."""

import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import collecting
import pytest
from collecting import EACH, PAGES
from small_api import lines

from sanderling.jobs.verify import verify_job

POINTS = (1, 2, 3, 5, 6, 7, 10)


class Handler(BaseHTTPRequestHandler):
    """Pages of ids, and an entry for each."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer."""
        split = urlsplit(self.path)
        if split.path == "/list":
            page = int(parse_qs(split.query)["page"][0])
            document: object = {"ids": [(page - 1) * EACH + each for each in range(EACH)]}
        else:
            document = {"id": int(split.path.rpartition("/")[2])}
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def collect(folder: Path, port: int, point: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, collecting.__file__, str(folder), str(port), str(point)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603 - ourselves


@pytest.mark.timeout(180)
def test_a_job_that_is_killed_anywhere_has_every_record_once(tmp_path: Path, port: int) -> None:
    folder = tmp_path / "out"

    for point in POINTS:
        ended = collect(folder, port, point)
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        proof = verify_job(folder)
        assert proof.ok, proof.problems
    last = collect(folder, port, 0)

    total = PAGES * EACH
    assert (last.returncode, last.stdout.split()) == (0, ["True", str(3 * total)]), last.stderr
    found = Counter(json.dumps(each) for each in lines(folder / "records.jsonl"))
    wanted = [{"listed": each} for each in range(total)]
    wanted += [{"id": each, "part": part} for each in range(total) for part in range(2)]
    assert found == Counter(map(json.dumps, wanted))
    proof = verify_job(folder)
    assert (proof.ok, proof.rows, proof.finished) == (True, 3 * total, True)
