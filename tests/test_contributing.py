"""What contributors are told exists: every file, target, command, flag and hook is looked up."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]  # its stubs are a package of their own
from test_floors import ASIDE, FLOORS

ROOT = Path(__file__).parents[1]
TEXTS = {name: (ROOT / name).read_text() for name in ("CONTRIBUTING.md", "SECURITY.md")}
TARGETS = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
HOOKS = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
PATHS = re.compile(r"(?<![\w/.])((?:\.ci|bench|docs|src|tests|tools)/[\w/.-]*\w/?)")


@pytest.mark.parametrize("name", TEXTS)
def test_every_path_and_link_is_there(name: str) -> None:
    links = re.findall(r"\]\(([^)#]+)", TEXTS[name])

    assert [path for path in (*PATHS.findall(TEXTS[name]), *links) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("name", [*TEXTS, ".pre-commit-config.yaml"])
def test_every_target_is_one_of_the_makefile(name: str) -> None:
    text = (ROOT / name).read_text()
    named = re.findall(r"(?:`|^)make ((?:[a-z-]+ ?)+)", text, re.MULTILINE)

    assert {target for each in named for target in each.split() if target not in TARGETS} == set()


@pytest.mark.parametrize("tool", ["mutants.py", "reference.py"])
def test_every_flag_of_a_tool_is_one_it_takes(tool: str) -> None:
    said = [*TEXTS.values(), (ROOT / ".pre-commit-config.yaml").read_text(), (ROOT / "Makefile").read_text()]
    named = {
        flag for text in said for rest in re.findall(rf"{tool}(.*)", text) for flag in re.findall(r"--[a-z]+", rest)
    }

    assert named
    assert {flag for flag in named if f'"{flag}"' not in (ROOT / "tools" / tool).read_text()} == set()


def test_hooks_run_what_ci_runs_from_our_environment() -> None:
    """`make lint` is what CI runs, with the tests."""
    hooks = [hook for repo in HOOKS for hook in repo["hooks"]]
    entries = [hook["entry"] for hook in hooks]
    lint = re.findall(r"\$\(BIN\)/((?:ruff|mypy)[^\n]*)", (ROOT / "Makefile").read_text())
    installed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["dev"]

    assert [repo["repo"] for repo in HOOKS] == ["local"]
    assert {hook["language"] for hook in hooks} == {"system"}
    assert all(entry.startswith(".venv/bin/") for entry in entries)
    for command in lint:  # `ruff check .`: pre-commit gives the files instead of the point
        assert any(entry.startswith(f".venv/bin/{command.removesuffix(' .')}") for entry in entries), command
    for entry in entries:
        program = entry.split()[0].removeprefix(".venv/bin/")
        assert program == "python" or any(each.startswith(program) for each in installed), program
        assert [path for path in PATHS.findall(entry) if not (ROOT / path).exists()] == []


def test_the_floors_are_those_that_are_enforced() -> None:
    table = TEXTS["CONTRIBUTING.md"].partition("## The floors")[2].partition("\n## ")[0]
    said = {
        unit: floors
        for floors, units in re.findall(r"^\| ([\d, ]+|aside) \| (.+) \|$", table, re.MULTILINE)
        for unit in re.findall(r"`(\w+)`", units)
    }

    assert {*said} == {*FLOORS} - {"sanderling"}
    for unit, floors in said.items():
        wanted = "aside" if FLOORS[unit] == ASIDE else f"{int(FLOORS[unit])}"
        assert wanted in floors.split(", "), unit


def test_the_editor_is_told_the_length_of_a_line_that_ruff_demands() -> None:
    length = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["line-length"]

    assert f"max_line_length = {length}\n" in (ROOT / ".editorconfig").read_text()
