"""Which test files are near a file of the package, by what they import."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "sanderling"
TESTS = ROOT / "tests"
# Folders whose tests run commands and whole systems: all there is, whatever is asked about.
FAR = frozenset({"cli", "deploy", "folders", "web", "worlds"})


@cache
def near(file: str) -> list[str]:
    """The test files that import `file`, or a file of the folder they mirror that does; and those that kill its system.

    Not the others of FAR.
    """
    system = file.partition("/")[0]
    found = []
    for path in _test_files():
        folder, _, name = path.relative_to(TESTS).as_posix().partition("/")
        first = imported(path)
        mirrored = [each for each in first if each.startswith(f"{folder}/")]
        imports = file in first or any(file in imported(PACKAGE / each) for each in mirrored)
        kills = "kill" in path.stem and system in path.parent.parts
        if kills or (imports and name and folder not in FAR):
            found.append(f"{folder}/{name}")
    return found


@cache
def imported(path: Path) -> frozenset[str]:
    """The files of the package that a file imports; a test also through the files that tests share."""
    ours = _met(path) if path.is_relative_to(TESTS) else {path}
    dotted = {name.partition("sanderling.")[2] for each in ours for name in _names(each)}
    files = {f"{name.replace('.', '/')}.py" for name in dotted if name}
    return frozenset(file for file in files if (PACKAGE / file).is_file())


@cache
def _met(path: Path) -> frozenset[Path]:
    """The test file, and the shared ones that it imports, at whatever remove."""
    met, waiting = {path}, [path]
    while waiting:
        shared = {_support().get(name) for name in _names(waiting.pop())}
        new = {each for each in shared if each is not None} - met
        met |= new
        waiting.extend(new)
    return frozenset(met)


def _names(path: Path) -> frozenset[str]:
    """What a file imports, in full; of `from a import b` both, for either may be the module."""
    return _names_at(path, path.stat().st_mtime_ns)


@cache
def _names_at(path: Path, written: int) -> frozenset[str]:
    del written  # tells a file from what it was before
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes(), path)):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                found |= {module, *(f"{module}.{each.name}" for each in names)}
            case ast.Import(names=names):
                found |= {each.name for each in names}
    return frozenset(found)


@cache
def _support() -> dict[str, Path]:
    """What tests share, by the name they import it under."""
    return {path.stem: path for path in TESTS.rglob("*.py") if not path.name.startswith(("test_", "__"))}


def importing(file: str) -> list[str]:
    """The test files that import a file of the package by its name, wherever they are; none without it could run."""
    return [_name(path) for path in _test_files() if file in imported(path)]


def sharing(support: Path) -> list[str]:
    """The test files that import a file that tests share, perhaps through another."""
    return [_name(path) for path in _test_files() if support in _met(path)]


def forget() -> None:
    """Look at the files again when asked next: some have changed."""
    for kept in (near, imported, _met, _support):
        kept.cache_clear()


def _test_files() -> list[Path]:
    return sorted(TESTS.rglob("test_*.py"))


def _name(path: Path) -> str:
    return path.relative_to(TESTS).as_posix()
