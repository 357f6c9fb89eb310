"""What is built is whole, and works where there is no checkout: nothing is downloaded for that.

The wheel is built once, from the source distribution, as an installer without our checkout would do it.
"""

import email
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Sequence
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


def run(command: Sequence[str | Path], folder: Path) -> str:
    """What a command prints, in a folder and with an environment that know nothing of this checkout."""
    environment = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ} | {"HOME": str(folder)}
    done = subprocess.run(  # noqa: S603 - ours
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
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
    # What it depends on is where we run; behind our own, and without what is installed there as a checkout.
    (site,) = (home / "lib").glob("python*/site-packages")
    (site / "others.pth").write_text(sysconfig.get_path("purelib"))
    return Built(wheel, sdist, home / "bin")


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
