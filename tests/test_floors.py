"""Imports only point down, and units on one floor do not know each other: the floors of the design, enforced."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "sanderling"

# What `import sanderling` gives, which is sanderling/__init__.py.
ROOT = "sanderling"

# Between the systems and what people touch: may use floors 0 to 4, and only floors 5 and 6 (and tests) may use it.
ASIDE = 4.5

FLOORS: dict[str, float] = {
    # The words are files and not folders, and a word may be made of simpler ones: half steps keep them without a ring.
    "ids": 0,
    "clock": 0,
    "words": 0,
    "redact": 0,
    "extras": 0,
    "moments": 0,
    "executor": 0,
    "outcome": 0.3,
    "task": 0.6,
    "limit": 1,
    "formats": 1,
    "stores": 1,
    "observe": 1,
    "fetch": 2,
    "apis": 2,
    "engine": 3,
    # What the two systems on a frontier share.
    "crawls": 3.2,
    "pages": 4,
    "sequence": 4,
    "repos": 4,
    "polling": 4,
    "events": 4,
    # A job may read pages, by the same robots.txt and the same reader.
    "jobs": 4.1,
    # Above the systems, whose folders it reads, and below the package's names, of which one is its own.
    "records": 4.2,
    ROOT: ASIDE,
    "worlds": ASIDE,
    "testing": ASIDE,
    "web": 5,
    # A command opens the house that the web is served from, and nothing of the web knows of commands.
    "cli": 6,
    # `python -m sanderling` is the command line.
    "__main__": 7,
}


def unit_of(file: Path) -> str:
    """Return the unit a file belongs to; `file` is relative to the package."""
    first = file.parts[0].removesuffix(".py")
    return ROOT if first == "__init__" else first


def imports(source: str, file: Path) -> Iterator[tuple[int, str]]:
    """Give line and unit of every import of ours in `source`, wherever in the file it stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{absolute(node, file)}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == ROOT:
                yield node.lineno, unit_named(parts)


def absolute(node: ast.ImportFrom, file: Path) -> str:
    """Return the module after `from`, with leading dots resolved."""
    if node.level == 0:
        return node.module or ""
    folders = (ROOT, *file.parts[:-1])
    above = folders[: len(folders) - node.level + 1]
    return ".".join((*above, node.module) if node.module else above)


def unit_named(parts: list[str]) -> str:
    """Return the unit of a dotted name of ours: `from sanderling import limit` names one, `import Limiter` the root."""
    named_in_full = len(parts) > 2
    return parts[1] if named_in_full or (len(parts) == 2 and parts[1] in FLOORS) else ROOT


def violations(source: str, file: Path) -> Iterator[str]:
    """Say which imports of `file` do not point down."""
    unit = unit_of(file)
    if unit not in FLOORS:
        yield f"{file}:1: the unit {unit!r} has no floor; put it into the table FLOORS of {Path(__file__).name}"
        return
    for line, other in imports(source, file):
        if other not in FLOORS:
            yield f"{file}:{line}: imports sanderling.{other}, which has no floor; put it into the table FLOORS"
        elif other != unit and FLOORS[other] >= FLOORS[unit]:
            yield f"{file}:{line}: {unit} (floor {FLOORS[unit]:g}) must not import {other} (floor {FLOORS[other]:g})"


def test_imports_of_the_package_only_point_down() -> None:
    files = sorted(PACKAGE.rglob("*.py"))
    assert files, f"no source under {PACKAGE}"

    found = [problem for file in files for problem in violations(file.read_text(), file.relative_to(PACKAGE))]

    assert not found, "".join(f"\nsrc/sanderling/{problem}" for problem in found)


def inside(unit: str) -> dict[str, set[str]]:
    """Which parts of a unit, its files and folders, import which others when they are loaded."""
    found: dict[str, set[str]] = {}
    for file in sorted((PACKAGE / unit).rglob("*.py")):
        part = file.relative_to(PACKAGE / unit).parts[0].removesuffix(".py")
        found.setdefault(part, set()).update(parts_named(ast.parse(file.read_text()).body, unit))
    return {part: others - {part} for part, others in found.items()}


def parts_named(body: list[ast.stmt], unit: str) -> Iterator[str]:
    """The parts of a unit that the imports at the top of a file name; `__init__` is what the unit itself has."""
    for node in body:
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"{ROOT}.{unit}."):
            below = (node.module or "").split(".")[2:3]
            names = below or [alias.name for alias in node.names]
            yield from (name if is_part(unit, name) else "__init__" for name in names)


def is_part(unit: str, name: str) -> bool:
    return (PACKAGE / unit / f"{name}.py").is_file() or (PACKAGE / unit / name).is_dir()


@pytest.mark.parametrize("unit", ["cli", "stores"])
def test_no_ring_is_inside(unit: str) -> None:
    """What is imported late, or for types only, is no ring: it works, and says so where it stands."""
    parts = inside(unit)
    assert len(parts) > 10

    try:
        TopologicalSorter(parts).prepare()
    except CycleError as ring:
        pytest.fail(f"{unit}/: {' -> '.join(ring.args[1])}")


@pytest.mark.parametrize(
    ("file", "source"),
    [
        pytest.param("limit/gate.py", "from sanderling.fetch.http import get", id="upward"),
        pytest.param("limit/gate.py", "import sanderling.fetch.http", id="upward, plain import"),
        pytest.param("limit/gate.py", "from sanderling import fetch", id="upward, unit by name"),
        pytest.param("limit/gate.py", "from ..fetch import http", id="upward, relative"),
        pytest.param("events/analysis/mood.py", "from ...cli import main", id="upward, relative from a deep folder"),
        pytest.param("ids.py", "from . import outcome", id="upward among the words"),
        pytest.param("limit/gate.py", "from sanderling.formats import rca", id="sideways"),
        pytest.param("web/app.py", "from sanderling.cli import main", id="a command from the web"),
        pytest.param("limit/gate.py", "from sanderling.worlds import hosts", id="a world from floor 1"),
        pytest.param("repos/crawl.py", "import sanderling.testing.clock", id="a fake from floor 3"),
        pytest.param("__init__.py", "from sanderling.worlds import hosts", id="a world from the package's names"),
        pytest.param("__init__.py", "from sanderling.cli import main", id="a command from the package's names"),
        pytest.param("worlds/game.py", "from sanderling.testing import clock", id="a fake from a world"),
        pytest.param("worlds/game.py", "from sanderling.cli import main", id="a command from a world"),
        pytest.param("limit/gate.py", "from sanderling import Limiter", id="the package's names from within"),
        pytest.param("limit/gate.py", "def late():\n    from sanderling.fetch import http", id="inside a function"),
        pytest.param(
            "limit/gate.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from sanderling.fetch import http",
            id="for types only",
        ),
        pytest.param("limit/gate.py", "from sanderling.novel import thing", id="a unit without a floor"),
    ],
)
def test_the_checker_catches(file: str, source: str) -> None:
    line = len(source.splitlines())

    (problem,) = violations(source, Path(file))

    assert problem.startswith(f"{file}:{line}: ")


def test_a_unit_without_a_floor_is_told_to_take_one() -> None:
    (problem,) = violations("", Path("novel/thing.py"))

    assert problem == "novel/thing.py:1: the unit 'novel' has no floor; put it into the table FLOORS of test_floors.py"


@pytest.mark.parametrize(
    ("file", "source"),
    [
        pytest.param("limit/gate.py", "from sanderling.limit.bucket import Bucket", id="itself"),
        pytest.param("limit/gate.py", "from . import bucket\nfrom .bucket import Bucket", id="itself, relative"),
        pytest.param("repos/crawl.py", "from sanderling.fetch import http\nfrom sanderling import ids", id="down"),
        pytest.param("task.py", "from sanderling.ids import Host", id="a simpler word"),
        pytest.param("__init__.py", "from sanderling.limit import x\nfrom .repos import y", id="the package's names"),
        pytest.param(
            "cli/demos/limiter.py", "from sanderling.worlds import game\nimport sanderling", id="a world from a command"
        ),
        pytest.param("cli/serve.py", "from sanderling.web import app", id="the web from a command"),
        pytest.param("testing/clock.py", "from sanderling.polling import poll", id="floor 3 from aside"),
        pytest.param("limit/gate.py", "import asyncio\nfrom cli import main\nimport sanderlings", id="not ours"),
    ],
)
def test_the_checker_allows(file: str, source: str) -> None:
    assert list(violations(source, Path(file))) == []
