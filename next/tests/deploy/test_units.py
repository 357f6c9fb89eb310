"""What is deployed: units that systemd takes, a file that logrotate takes, an image whose health command works."""

import http.server
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"

pytestmark = pytest.mark.real


def program(name: str, package: str) -> str:
    found = shutil.which(name, path="/usr/bin:/usr/sbin:/bin:/sbin")
    if found is None:
        pytest.skip(f"no {name}; apt-get install {package}")
    return found


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    verify = program("systemd-analyze", "systemd")
    named = list[Path]()
    for path in (DEPLOY / "systemd").glob("sanderling-*"):
        unit = tmp_path / path.name.replace("@.", "@shop.")
        # The program of the unit is not installed here.
        unit.write_text(path.read_text().replace("/usr/local/bin/sanderling", "/bin/true"))
        named.append(unit)
    assert len(named) >= 3
    done = subprocess.run([verify, "verify", *map(str, named)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_logrotate_takes_its_file() -> None:
    words = [program("logrotate", "logrotate"), "--debug", str(DEPLOY / "logrotate" / "sanderling")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "error" not in done.stderr


class Scraped(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/metrics" else 503)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_the_health_command_of_the_image() -> None:
    server = http.server.HTTPServer(("127.0.0.1", 0), Scraped)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def healthy(*words: str) -> tuple[int, str]:
        command = [sys.executable, str(DEPLOY / "container" / "healthy.py"), str(server.server_port), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    try:
        assert healthy() == (0, "")
        code, said = healthy("/other")
        assert code == 1
        assert "status 503" in said
    finally:
        server.shutdown()
        server.server_close()
    code, said = healthy()
    assert code == 1
    assert "refused" in said
