"""No C is forgotten: each file is built, looked at by `make lint-c`, run under the sanitizers, and fuzzed."""

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import sanitized

ROOT = sanitized.ROOT
MAKE = shutil.which("make") or pytest.skip("there is no make", allow_module_level=True)


def c_files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for folder in ("src", "fuzz") for path in (root / folder).rglob("*.c")}


def built(root: Path) -> set[str]:
    """What the modules are made of: when they are installed, in the tests under sanitizers, and in `make fuzz`."""
    return {source for each in runpy.run_path(str(root / "setup.py"))["EXTENSIONS"] for source in each.sources}


def make(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make as if the environment were ready, with the tools of the environment that runs the tests."""
    tools = f"BIN={Path(sys.executable).parent}"
    command = [MAKE, "-C", str(root), "-o", ".venv/.ready", "CC=cc", tools, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours


def in_recipe(root: Path, target: str) -> set[str]:
    """The files that a target names."""
    done = make(root, "-n", target)
    assert done.returncode == 0, done.stderr
    shown = done.stdout.replace("fuzz/*.c", " ".join(path for path in c_files(root) if path.startswith("fuzz/")))
    return set(re.findall(r"(?:src|fuzz)/[\w/]+\.c\b", shown))


def test_every_file_of_the_package_is_built_and_so_runs_under_the_sanitizers() -> None:
    assert {path for path in c_files(ROOT) if path.startswith("src/")} == built(ROOT)


def test_every_module_is_fuzzed() -> None:
    targets = re.search(r"^TARGET = (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    twins = pytest.importorskip("twins", reason="a C part was not built: no compiler when the package was installed")

    modules = {each.name.rpartition(".")[2].removeprefix("_") for each in sanitized.extensions()}

    assert modules == set(twins.RUNS)
    assert targets
    assert modules <= set(targets[1].split())


def test_every_file_is_in_lint_c() -> None:
    assert in_recipe(ROOT, "lint-c") == c_files(ROOT)


def test_all_that_does_not_need_python_is_fuzzed_without_it() -> None:
    without = {
        path
        for path in c_files(ROOT)
        if path.startswith("fuzz/") or ("_repo" in path and "Python.h" not in (ROOT / path).read_text())
    }

    assert in_recipe(ROOT, "fuzz-parser") == without


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The project, as far as its C is concerned."""
    for path in ["Makefile", "setup.py", *c_files(ROOT)]:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    return tmp_path


def test_a_new_file_is_taken_along(copy: Path) -> None:
    part, stray = "src/sanderling/formats/_repo_new.c", "src/sanderling/flow/_other.c"
    for path in (part, stray, "fuzz/fuzz_new.c"):
        (copy / path).parent.mkdir(exist_ok=True)
        (copy / path).write_text("")

    assert in_recipe(copy, "lint-c") == c_files(copy)
    assert {part, stray, "fuzz/fuzz_new.c"} <= c_files(copy)
    assert part in built(copy)
    # Whoever adds another module is told so by the first test above.
    assert stray not in built(copy)


WRONG = {
    "a warning": "int f(long a); int f(long a) { return a; }\n",
    "memory that is lost": "#include <stdlib.h>\nint f(void); int f(void) { char *a = malloc(1); return a == 0; }\n",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=list(WRONG))
def test_lint_c_fails_if_a_file_is_not_sound(text: str, tmp_path: Path) -> None:
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler")
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "fuzz").mkdir()
    (tmp_path / "src").mkdir()
    (tmp_path / "src/file.c").write_text(text)
    if "malloc" in text and "-fanalyzer" not in make(tmp_path, "-n", "lint-c").stdout:
        pytest.skip("this compiler cannot analyse")

    done = make(tmp_path, "lint-c")

    assert done.returncode != 0
    assert "src/file.c" in done.stderr
