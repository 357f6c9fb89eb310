"""The wheel on every Python of this machine, without a compiler, and with each extra by itself: `make wheel`."""

import os
import sys
import tomllib
from pathlib import Path

import pytest
from deploy_lines import ROOT
from installed import (
    NO_COMPILER,
    Built,
    Installed,
    build,
    calls,
    check_crawls,
    check_demos,
    check_helps,
    install,
    pythons,
    run,
)
from wheel_extras import STARTS, files_for

EXTRAS = [
    name
    for name in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    if name != "dev"
]
pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(not os.environ.get("SANDERLING_WHEEL"), reason="takes minutes: make wheel"),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("packaging"))


def check_all(there: Installed, folder: Path, parser: str) -> None:
    check_helps(there, folder)
    assert f"parser of repos  {parser}" in run([there.command, "doctor"], folder)
    crawls, demos = folder / "crawls", folder / "demos"
    crawls.mkdir()
    demos.mkdir()
    check_crawls(there, crawls)
    check_demos(there, demos)


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_all_of_it_runs_on_every_python(built: Built, tmp_path: Path, version: str) -> None:
    """From the source distribution: the C parts are built for this Python, as where there is no wheel for it."""
    if version not in pythons():
        pytest.skip(f"there is no python{version} on this machine")

    check_all(install(tmp_path / "home", built.sdist, pythons()[version]), tmp_path, "C")


def test_all_of_it_runs_without_a_compiler(built: Built, tmp_path: Path) -> None:
    check_all(install(tmp_path / "home", built.sdist, variables=NO_COMPILER), tmp_path, "not built")


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_by_itself_is_all_that_was_missing(built: Built, tmp_path: Path, extra: str) -> None:
    there, (call, words) = install(tmp_path / "home", built.wheel), STARTS[extra]
    files_for(tmp_path)
    ((_, before_out, before_err),) = calls(there, tmp_path, [call])

    there.add(f"{built.wheel}[{extra}]")
    ((_, out, err),) = calls(there, tmp_path, [call])

    if extra != "repos":  # which only makes it quicker
        assert f"pip install 'sanderling[{extra}]'" in before_out + before_err
    assert words in out + err
    assert "not installed" not in out + err
    assert sys.executable not in out + err
