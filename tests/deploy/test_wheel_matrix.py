"""The wheel on every Python of this machine, without a compiler, and with each extra by itself: `make wheel`."""

import json
import os
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
from wheel_extras import CHECKED, COMMANDS, files_for

EXTRAS = {*tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]} - {"dev"}
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


@pytest.mark.parametrize("extra", CHECKED)
def test_a_service_is_reached_with_its_extra_alone(built: Built, tmp_path: Path, extra: str) -> None:
    there, (url, words) = install(tmp_path / "home", built.wheel), CHECKED[extra]
    without = checked(there, tmp_path, url)

    there.add(f"{built.wheel}[{extra}]")
    found = checked(there, tmp_path, url)

    assert without["advice"] == f"pip install 'sanderling[{extra}]'"
    assert words in found["found"]
    assert "pip install" not in found["advice"]
    assert found["state"] == "fail"


def checked(there: Installed, folder: Path, url: str) -> dict[str, str]:
    """What doctor finds at a URL."""
    ((_, out, err),) = calls(there, folder, [f"doctor --json --check {url}"])
    assert out, err
    (found,) = [each for each in json.loads(out) if each["what"] == "--check 1"]
    return dict(found)


@pytest.mark.parametrize("extra", COMMANDS)
def test_a_command_has_all_it_needs_with_its_extra_alone(built: Built, tmp_path: Path, extra: str) -> None:
    there, (call, before, after) = install(tmp_path / "home", built.wheel), COMMANDS[extra]
    files_for(tmp_path)
    ((_, _, without),) = calls(there, tmp_path, [call])

    there.add(f"{built.wheel}[{extra}]")
    ((_, out, err),) = calls(there, tmp_path, [call])

    assert before in without
    assert after in out + err
    assert "not installed" not in out + err


def test_repos_are_read_quicker_without_a_compiler_with_their_extra(built: Built, tmp_path: Path) -> None:
    there = install(tmp_path / "home", built.sdist, variables=NO_COMPILER)
    without = run([there.command, "doctor"], tmp_path)

    there.add("libipld", "orjson")

    assert "pip install 'sanderling[repos]'" in without
    assert "pip install 'sanderling[repos]'" not in run([there.command, "doctor"], tmp_path)


def test_every_extra_is_tried() -> None:
    assert {*CHECKED, *COMMANDS, "repos"} == EXTRAS
