"""What is built is whole, and runs where there is nothing but the wheel and what it depends on.

The wheel is built once, from the source distribution, as an installer without our checkout would do it. Nothing is
downloaded: the environment it is installed in has the packages that its metadata asks for, and no others, from here.
"""

import email
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import time
import tomllib
import venv
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from email.message import Message
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

import pytest
from deploy_lines import ROOT
from markdown_it import MarkdownIt
from packaging.requirements import Requirement

SOURCE = ROOT / "src" / "sanderling"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
# What is in the folder besides: environments, caches, and what a build has left there.
LEFT_OUT = shutil.ignore_patterns(
    ".*", "build", "dist", "*.egg-info", "__pycache__", "*.so", "sanderling-demo*", "secrets"
)
TAKEN = (".dockerignore",)
SYSTEMS = ("pages", "sequence", "repos", "polling", "events")

pytestmark = pytest.mark.timeout(180)


class Built(NamedTuple):
    """What was built, and the commands of an environment that has it installed."""

    wheel: Path
    sdist: Path
    programs: Path

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


def environment(folder: Path) -> dict[str, str]:
    """Variables that know nothing of this checkout."""
    return {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ} | {"HOME": str(folder)}


def run(command: Sequence[str | Path], folder: Path) -> str:
    """What a command prints, in a folder and with an environment that know nothing of this checkout."""
    done = subprocess.run(  # noqa: S603 - ours
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("packaging")
    copy, out, home = folder / "copy", folder / "out", folder / "installed"
    # A copy: a build writes into its folder, and others are at work in this one.
    shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
    for name in TAKEN:
        shutil.copy(ROOT / name, copy / name)
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", out, copy], folder)
    ((wheel,), (sdist,)) = out.glob("*.whl"), out.glob("*.tar.gz")
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    run([sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index", wheel], folder)
    (site,) = (home / "lib").glob("python*/site-packages")
    built = Built(wheel, sdist, home / "bin")
    for name in needed(built.metadata().get_all("Requires-Dist", [])):
        link(name, site)
    return built


def needed(requirements: Sequence[str], extras: Iterable[str] = ()) -> set[str]:
    """All packages that are installed for these requirements, and for what those require."""
    names: set[str] = set()
    for requirement in map(Requirement, requirements):
        wanted = [{"extra": extra} for extra in extras or ("",)]
        if requirement.marker is None or any(map(requirement.marker.evaluate, wanted)):
            names |= {requirement.name} | needed(distribution(requirement.name).requires or [], requirement.extras)
    return names


def link(name: str, site: Path) -> None:
    """Put a package that is installed here into another environment."""
    for file in distribution(name).files or []:
        top = site / file.parts[0]
        if ".." not in file.parts and not top.exists() and file.parts[0] != "__pycache__":
            top.symlink_to(Path(str(file.locate())).parents[len(file.parts) - 1] / file.parts[0])


def test_the_wheel_has_every_module_and_every_file_that_one_reads(built: Built) -> None:
    files = built.files()

    modules = {str(path.relative_to(SOURCE.parent)) for path in SOURCE.rglob("*.py")}
    read = {"py.typed", "formats/_repo.pyi"}
    read |= {f"events/analysis/data/{name}.txt" for name in ("aspects", "intents", "lexicon")}
    assert modules - files == set()
    assert {f"sanderling/{name}" for name in read} - files == set()
    assert any(name.startswith("sanderling/stores/migrations/versions/0001") for name in files)


def test_the_wheel_has_the_parts_in_c(built: Built) -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no compiler on this machine")
    suffix = sysconfig.get_config_var("EXT_SUFFIX")

    built_parts = ("events/analysis/_scan", "formats/_repo")
    assert {f"sanderling/{part}{suffix}" for part in built_parts} <= built.files()


def test_the_wheel_has_nothing_but_the_package(built: Built) -> None:
    tops = {name.split("/")[0] for name in built.files()}

    assert tops == {"sanderling", f"sanderling-{PROJECT['version']}.dist-info"}


def test_the_source_distribution_has_all_that_it_takes_to_test_and_deploy_it(built: Built) -> None:
    sources = built.sources()

    folders = [ROOT / name for name in ("bench", "deploy", "docs", "fuzz", "tests")]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    kept = {str(path.relative_to(ROOT)) for path in files if "__pycache__" not in path.parts}
    kept = {name for name in kept if not name.startswith(("deploy/secrets/", "deploy/."))}
    assert {name for name in kept if not name.endswith(".so")} - sources == set()
    assert {"CHANGELOG.md", "LICENSE", "Makefile", "README.md", "constraints.txt", "setup.py"} <= sources
    assert {"src/sanderling/formats/_repo.h", "src/sanderling/events/analysis/_scan.c"} <= sources
    assert [name for name in sources if name.endswith((".so", ".pyc")) or "deploy/secrets" in name] == []


def test_the_version_is_said_in_one_place(built: Built) -> None:
    assert built.metadata()["Version"] == PROJECT["version"]
    assert run([built.programs / "sanderling", "--version"], built.programs.parent).strip() == PROJECT["version"]


def test_the_metadata_says_what_it_is(built: Built) -> None:
    metadata = built.metadata()

    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == PROJECT["requires-python"]
    assert set(metadata.get_all("Provides-Extra", [])) == set(EXTRAS)
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])


def test_the_readme_is_the_long_description_and_can_be_shown(built: Built) -> None:
    metadata = built.metadata()

    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload() == (ROOT / "README.md").read_text()
    html = MarkdownIt("gfm-like", {"linkify": False}).render(str(metadata.get_payload()))
    assert "<h1>Sanderling</h1>" in html
    assert "<table>" in html


def test_it_runs_where_there_is_no_checkout(built: Built, tmp_path: Path) -> None:
    where = run([built.programs / "python", "-c", "import sanderling; print(sanderling.__file__)"], tmp_path)

    assert Path(where.strip()).is_relative_to(built.programs.parent)
    assert "parser of repos  C" in run([built.programs / "sanderling", "doctor"], tmp_path) or not shutil.which("cc")


def test_events_makes_its_database_and_reads_its_lists_where_there_is_no_checkout(built: Built, tmp_path: Path) -> None:
    command = built.programs / "sanderling"

    made = json.loads(run([command, "world", "social", "--batches", "2", "--out", "there", "--json"], tmp_path))
    done = json.loads(run([command, "events", "consume", "--drain", "--out", "there", "--json"], tmp_path))

    assert (done["posts"], done["errors"]) == (made["posts"], made["errors"])
    assert sum(done["sentiments"].values()) > 0
    assert "0001  applied" in run([command, "events", "migrate", "status", "--out", "there"], tmp_path)


# Without any extra. What many commands do is done in one process: each takes half a second to load.

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
CRAWL = f"""{CALLED}
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

class Site(BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"<title>A</title><a href=/b>b</a>"
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

with HTTPServer(("127.0.0.1", 0), Site) as site:
    threading.Thread(target=site.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{{site.server_port}}/"
    print(json.dumps(called("pages", "crawl", url, "--private", "--out", "site", "--rps", "50")))
    site.shutdown()
"""


def test_there_is_nothing_installed_but_what_the_wheel_asks_for(built: Built, tmp_path: Path) -> None:
    code = "from sanderling.extras import EXTRAS, have; print([name for name in EXTRAS if have(name)])"

    assert run([built.programs / "python", "-c", code], tmp_path) == "[]\n"


def test_every_command_has_its_help_without_any_extra(built: Built, tmp_path: Path) -> None:
    helps = json.loads(run([built.programs / "python", "-c", HELPS], tmp_path))

    assert len(helps) > 70
    assert [(words, err) for words, code, out, err in helps if code or "Usage: sanderling" not in out] == []


NEEDY = {
    "sequence crawl --url http://127.0.0.1:9/{id} --begin 1 --rows postgresql://127.0.0.1:9/x": "postgres",
    "sequence crawl --url http://127.0.0.1:9/{id} --begin 1 --queue amqp://127.0.0.1:9/": "rabbitmq",
    "sequence crawl --url http://127.0.0.1:9/{id} --begin 1 --raw clickhouse://127.0.0.1:9/": "clickhouse",
    "polling run --trackside http://127.0.0.1:9 --database postgresql://127.0.0.1:9/x": "postgres",
    "events consume --database postgresql://127.0.0.1:9/x": "postgres",
    "events consume --queue amqp://127.0.0.1:9/": "rabbitmq",
    "events consume --objects s3+http://127.0.0.1:9/": "s3",
    "events consume model model.onnx": "onnx",
    "events migrate up --database postgresql://127.0.0.1:9/x": "postgres",
    "repos status redis-address 127.0.0.1:9": "redis",
    "repos crawl --directory chdb:directory": "embedded",
    "repos replay . --to parquet:records": "parquet",
    "pages crawl http://127.0.0.1:9/ --out site --parquet": "parquet",
}


def test_who_needs_an_extra_says_so_before_anything_is_begun(built: Built, tmp_path: Path) -> None:
    for name in ("segment_0001.rca", "model.onnx", "vocab.txt"):
        (tmp_path / name).touch()
    before = sorted(tmp_path.iterdir())

    said = json.loads(run([built.programs / "python", "-c", CALLS, *NEEDY], tmp_path))

    for (call, extra), (code, out, err) in zip(NEEDY.items(), said, strict=True):
        first = err.splitlines()[0]
        assert (code, out) == (2, ""), f"{call}\n{out}{err}"
        assert first.endswith(f"which is not installed: pip install 'sanderling[{extra}]'"), f"{call}\n{err}"
    assert sorted(tmp_path.iterdir()) == before


def test_a_crawl_of_pages_ends_well_and_says_why_there_is_no_parquet(built: Built, tmp_path: Path) -> None:
    code, out, err = json.loads(run([built.programs / "python", "-c", CRAWL], tmp_path))

    assert (code, "Fetched 2 pages" in out) == (0, True), out + err
    note = "No Parquet is written: Parquet needs pyarrow, which is not installed: pip install 'sanderling[parquet]'"
    assert note in err.splitlines()
    assert note in out.splitlines()


def test_doctor_is_content_with_a_plain_installation(built: Built, tmp_path: Path) -> None:
    assert run([built.programs / "sanderling", "doctor"], tmp_path).endswith("\nAll is well.\n")


# The words of each by its name, and what is there once it is under way.
DEMOS = {
    "house": ("demo house --port 0 --seconds 600 --out house", [f"house/{name}/status.json" for name in SYSTEMS]),
    "pages": ("demo pages --out pages", ["pages/status.json"]),
    "sequence": ("demo sequence --out sequence", ["sequence/status.json"]),
    "polling": ("demo polling --out polling", ["polling/status.json"]),
    "events": ("demo events --out events", ["events/status.json"]),
    "repos": ("repos crawl --demo --out repos", ["repos/status.json"]),
    "limiter": ("demo limiter", ["limiter.txt"]),
}


def test_every_demo_gets_under_way_and_can_be_ended(built: Built, tmp_path: Path) -> None:
    """Each is real, and would take up to a minute. The first is all five commands, each in a process of its own."""
    wrong = []
    for name, (words, files) in DEMOS.items():
        log = tmp_path / f"{name}.txt"
        with (
            log.open("wb") as output,
            subprocess.Popen(  # noqa: S603 - ours
                [built.programs / "sanderling", *words.split()],
                cwd=tmp_path,
                env=environment(tmp_path),
                stdout=output,
                stderr=output,
            ) as demo,
        ):
            try:
                until = time.monotonic() + 90
                while demo.poll() is None and time.monotonic() < until and not all(_there(tmp_path, files)):
                    time.sleep(0.05)
                demo.send_signal(signal.SIGINT)
                demo.wait(60)
            finally:
                demo.kill()
        said = "".join(each.read_text() for each in (log, *tmp_path.glob(f"{name}/logs/*.txt")))
        if demo.returncode != 130 or not all(_there(tmp_path, files)) or "Traceback" in said:
            wrong.append(f"{name} ended with {demo.returncode}:\n{said}")
    assert not wrong, "\n".join(wrong)


def _there(folder: Path, files: Iterable[str]) -> Iterator[bool]:
    return ((folder / file).exists() and (folder / file).stat().st_size > 0 for file in files)


# With the extras.


@pytest.mark.parametrize("extra", EXTRAS)
def test_all_that_an_extra_names_is_installed_here_in_a_version_that_will_do(extra: str) -> None:
    """So that no extra names what does not exist, or is needed in another version than the one we test."""
    wrong = []
    for requirement in map(Requirement, EXTRAS[extra]):
        if requirement.name == "sanderling":
            assert requirement.extras <= set(EXTRAS)
            continue
        if requirement.marker is not None and not requirement.marker.evaluate():
            continue
        try:
            found = distribution(requirement.name).version
        except PackageNotFoundError:
            wrong.append(f"{requirement}: not installed")
        else:
            wrong += [] if requirement.specifier.contains(found) else [f"{requirement}: found {found}"]
    assert wrong == []
