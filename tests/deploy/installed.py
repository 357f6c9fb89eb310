"""What is built, and environments with it that pip made: outside of the checkout, and with nothing of it."""

import email
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

from deploy_lines import ROOT

# What is in the folder besides: environments, caches, and what a build has left there.
LEFT_OUT = shutil.ignore_patterns(
    ".*", "build", "dist", "*.egg-info", "__pycache__", "*.so", "sanderling-demo*", "secrets"
)
TAKEN = (".dockerignore",)
PIP = (
    "install",
    "--quiet",
    "--disable-pip-version-check",
    "--constraint",
    str(ROOT / "constraints.txt"),
)
NO_PARQUET = "Parquet needs pyarrow, which is not installed: pip install 'sanderling[parquet]'"
NO_COMPILER = {"CC": "/bin/false"}


class Built(NamedTuple):
    """A wheel, and the source distribution that it was built from."""

    wheel: Path
    sdist: Path

    def files(self) -> set[str]:
        with zipfile.ZipFile(self.wheel) as wheel:
            return set(wheel.namelist())

    def sources(self) -> set[str]:
        with tarfile.open(self.sdist) as sdist:
            return {name.partition("/")[2] for name in sdist.getnames()}

    def metadata(self) -> Message:
        with zipfile.ZipFile(self.wheel) as wheel:
            (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
            return email.message_from_string(wheel.read(name).decode())


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment that has it."""

    home: Path

    @property
    def python(self) -> Path:
        return self.home / "bin" / "python"

    @property
    def command(self) -> Path:
        return self.home / "bin" / "sanderling"

    def add(self, *requirements: str) -> None:
        """Install more."""
        run([sys.executable, "-m", "pip", "--python", self.python, *PIP, *requirements], self.home, pip_variables())

    def megabytes(self) -> float:
        files = [path for path in self.home.rglob("*") if path.is_file() and not path.is_symlink()]
        return sum(path.stat().st_blocks for path in files) * 512 / 1e6


def environment(folder: Path) -> dict[str, str]:
    """Variables that know nothing of this checkout."""
    return {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ} | {"HOME": str(folder)}


def pip_variables() -> dict[str, str]:
    """The same, and whatever tells pip where packages are, and where it keeps those it has seen."""
    kept = ("HOME", "XDG_CACHE_HOME", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
    return {name: value for name, value in os.environ.items() if name in kept or name.startswith("PIP_")}


def run(command: Sequence[str | Path], folder: Path, more: dict[str, str] | None = None) -> str:
    """What a command prints, in a folder and with an environment that know nothing of this checkout."""
    variables = environment(folder) | (more or {})
    done = subprocess.run(  # noqa: S603 - ours
        command, cwd=folder, env=variables, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def build(folder: Path) -> Built:
    """Both, the wheel from the source distribution, as an installer without our checkout would do it."""
    copy, out = folder / "copy", folder / "out"
    # A copy: a build writes into its folder, and others are at work in this one.
    shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
    for name in TAKEN:
        shutil.copy(ROOT / name, copy / name)
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", out, copy], folder)
    ((wheel,), (sdist,)) = out.glob("*.whl"), out.glob("*.tar.gz")
    return Built(wheel, sdist)


def install(home: Path, what: Path, python: str = sys.executable, variables: dict[str, str] | None = None) -> Installed:
    """An empty environment, and then this wheel or source distribution with all that it depends on."""
    home.mkdir(parents=True)
    run([python, "-m", "venv", "--without-pip", home], home)
    made = Installed(home)
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", made.python, *PIP, what]
    run(pip, home, pip_variables() | (variables or {}))
    return made


@functools.cache
def pythons() -> dict[str, str]:
    """Every Python of at least 3.11 that this machine has, by version."""
    folders = sorted((Path.home() / ".pyenv" / "versions").glob("3.*/bin"))
    found = {}
    for version in ("3.11", "3.12", "3.13", "3.14"):
        for folder in (None, *map(str, folders)):
            candidate = shutil.which(f"python{version}", path=folder)
            if (
                candidate
                and not subprocess.run(  # noqa: S603
                    [candidate, "-c", "import venv, ensurepip"], capture_output=True, check=False
                ).returncode
            ):
                found[version] = candidate
                break
    return found


# What many commands do is done in one process: each takes half a second to load.

CALLED = """
import contextlib, io, json, sys
from sanderling import cli

def called(*words):
    out, err, sys.argv = io.StringIO(), io.StringIO(), ["sanderling", *words]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.main()
        except SystemExit as exits:
            return exits.code, out.getvalue(), err.getvalue()

def commands(group, above=()):
    yield above
    for name in group:
        if not name.startswith("-"):
            yield from commands(group[name], (*above, name))
"""
HELPS = f"""{CALLED}
print(json.dumps([[" ".join(words), *called(*words, "--help")] for words in commands(cli.app)]))
"""
CALLS = f"""{CALLED}
print(json.dumps([called(*each.split()) for each in sys.argv[1:]]))
"""


def check_helps(there: Installed, folder: Path) -> None:
    helps = json.loads(run([there.python, "-c", HELPS], folder))
    assert len(helps) > 50  # commands and groups
    assert [(words, err) for words, code, out, err in helps if code or "Usage: sanderling" not in out] == []


def calls(there: Installed, folder: Path, words: Sequence[str]) -> list[tuple[int, str, str]]:
    """Exit code, stdout and stderr of each of these commands."""
    return [tuple(each) for each in json.loads(run([there.python, "-c", CALLS, *words], folder))]


@contextmanager
def world(there: Installed, folder: Path, *words: str) -> Iterator[list[dict[str, Any]]]:
    """What `sanderling world` says of itself, while it serves."""
    command = [str(there.command), "world", *words, "--json", "--port", "0"]
    with subprocess.Popen(  # noqa: S603 - ours
        command, cwd=folder, env=environment(folder), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            lines = [json.loads(process.stdout.readline())]
            os.set_blocking(process.stdout.fileno(), False)
            time.sleep(0.2)  # the other hosts of a world are said in the same breath
            lines += [json.loads(line) for line in process.stdout.readlines()]
            yield lines
        finally:
            process.kill()


JOB = """
from sanderling import Job
from sanderling.jobs import Cursor

job = Job("posts", start="{}/posts?limit=25", paging=Cursor(path="next", param="cursor"), rps=100)


@job.read
def posts(reply):
    yield from reply.json()["data"]
"""


def check_crawls(there: Installed, folder: Path) -> None:
    """A crawl of each system, without extras, against the world that is made for it; each ends, with its records."""
    with world(there, folder, "site", "--hosts", "1") as hosts:
        limits = ("--rps", "50", "--max-pages", "5")
        said = run(
            [there.command, "pages", "crawl", hosts[0]["address"], "--private", "--out", "site", *limits], folder
        )
    assert f"No Parquet is written: {NO_PARQUET}" in said.splitlines()
    assert len((folder / "site" / "pages.jsonl").read_text().splitlines()) >= 5
    with world(there, folder, "game", "--preset", "steady") as (game,):
        ids = ("--begin", str(game["newest"] - 200), "--until", str(game["newest"] - 150))
        said = run([there.command, "sequence", "crawl", "--base", game["address"], "--private", *ids, "--json"], folder)
        assert json.loads(said)["complete"], said
    with world(there, folder, "pds", "--hosts", "1", "--repos", "4") as (pds, *_):
        with urlopen(f"{pds['address']}/xrpc/com.atproto.sync.listRepos", timeout=30) as reply:  # noqa: S310 - http
            dids = [each["did"] for each in json.load(reply)["repos"] if each["active"]]
        (folder / "dids.txt").write_text("".join(f"{did} {pds['address']}\n" for did in dids))
        run([there.command, "repos", "crawl", "--did-file", "dids.txt", "--private", "--out", "archive"], folder)
    assert [
        code for code, out, _ in calls(there, folder, [f"repos get {did} archive" for did in dids]) if code or not out
    ] == []
    with world(there, folder, "race") as (race,):
        polling = ("polling", "run", "--once", "--trackside", race["address"], "--private", "--out", "polling")
        run([there.command, *polling], folder)
    words = ["world social --batches 2 --out events --json", "events consume --drain --out events --json"]
    made, done = (json.loads(out) for _, out, _ in calls(there, folder, words))
    assert (done["posts"], done["errors"]) == (made["posts"], made["errors"])
    assert sum(done["sentiments"].values()) > 0
    with world(there, folder, "api", "--posts", "50") as (api,):
        (folder / "posts.py").write_text(JOB.format(api["address"]))
        run([there.command, "run", "posts.py", "--private", "--out", "posts"], folder)
    assert len((folder / "posts" / "records.jsonl").read_text().splitlines()) == 50


SYSTEMS = ("pages", "sequence", "repos", "polling", "events")
# The words of each by its name, and what is there once it is under way.
DEMOS = {
    "house": ("demo house --port 0 --seconds 600 --out house", [f"house/{name}/status.json" for name in SYSTEMS]),
    "limiter": ("demo limiter", ["limiter.txt"]),
}
LOADED = "from importlib import import_module\n" + "\n".join(
    f"import_module('sanderling.cli.demos.{name}')" for name in SYSTEMS
)


def check_demos(there: Installed, folder: Path) -> None:
    """The demo of all systems gets under way, and can be ended; those of one system load, without any extra."""
    run([there.python, "-c", LOADED], folder)
    logs = {name: (folder / f"{name}.txt").open("wb") for name in DEMOS}
    started = {
        name: subprocess.Popen(  # noqa: S603 - ours
            [there.command, *words.split()],
            cwd=folder,
            env=environment(folder),
            stdout=logs[name],
            stderr=logs[name],
        )
        for name, (words, _) in DEMOS.items()
    }
    wrong = [each for name, demo in started.items() if (each := _ended(name, demo, folder))]
    for log in logs.values():
        log.close()
    assert not wrong, "\n".join(wrong)


def _ended(name: str, demo: subprocess.Popen[bytes], folder: Path) -> str:
    """End a demo once it is under way; what was wrong with it."""
    files = [folder / file for file in DEMOS[name][1]]
    try:
        until = time.monotonic() + 90
        while demo.poll() is None and time.monotonic() < until and not all(map(_has_text, files)):
            time.sleep(0.05)
        demo.send_signal(signal.SIGINT)
        demo.wait(60)
    finally:
        demo.kill()
    said = "".join(each.read_text() for each in (folder / f"{name}.txt", *folder.glob(f"{name}/logs/*.txt")))
    sound = demo.returncode == 130 and all(map(_has_text, files)) and "Traceback" not in said
    return "" if sound else f"{name} ended with {demo.returncode}:\n{said}"


def _has_text(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0
