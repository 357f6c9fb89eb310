"""A few seconds of fuzzing under the address and undefined behaviour sanitizers; `make fuzz` goes on for longer."""

import subprocess
import sys
from pathlib import Path

import corpus as repos
import pytest
import sanitized

ROOT = sanitized.ROOT
FUZZ, FORMATS = ROOT / "fuzz", ROOT / "src/sanderling/formats"
RUNS, SECONDS = 25_000, 20  # whichever comes first
RUNS_OF_TWINS = {"complexity": 500, "repo": 2_000, "scan": 2_000}


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> str:
    try:
        return sanitized.find_compiler(tmp_path_factory.mktemp("compiler"))
    except sanitized.NoSanitizersError as error:
        pytest.skip(f"the C cannot be fuzzed here: {error}")


@pytest.fixture(scope="module")
def driver(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    parser = sorted(path for path in FORMATS.glob("_repo*.c") if path.name != "_repo.c")
    output = tmp_path_factory.mktemp("driver") / "driver"

    done = sanitized.compiled(compiler, output, "-DREPO_FUZZ", *sorted(FUZZ.glob("*.c")), *parser)

    assert done.returncode == 0, done.stderr
    return output


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    repos.main(folder)
    return folder


def run(driver: Path, corpus: Path, folder: Path, *, seed: int, runs: int) -> str:
    arguments = [str(driver), str(corpus), str(SECONDS), str(seed), str(runs)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, cwd=folder)  # noqa: S603 - ours
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nothing_breaks_in_a_few_seconds(driver: Path, corpus: Path, tmp_path: Path) -> None:
    assert "nothing broke" in run(driver, corpus, tmp_path, seed=1, runs=RUNS)


def test_one_seed_does_one_thing(driver: Path, corpus: Path, tmp_path: Path) -> None:
    """Else what was found once might never be found again."""
    first, again, other = (run(driver, corpus, tmp_path, seed=seed, runs=500) for seed in (1, 1, 2))

    assert first == again
    assert first != other


@pytest.fixture(scope="module")
def package(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package whose C is under the sanitizers."""
    folder = tmp_path_factory.mktemp("sanitized")
    sanitized.build(folder, compiler)
    return folder


def run_sanitized(compiler: str, package: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        variables = sanitized.environment(package, compiler)
    except sanitized.NoSanitizersError as error:
        pytest.skip(f"the C cannot be run with Python here: {error}")
    return subprocess.run(  # noqa: S603 - ourselves
        [sys.executable, *arguments], env=variables, cwd=package, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("target", RUNS_OF_TWINS)
def test_the_modules_and_their_twins_say_the_same(target: str, compiler: str, package: Path) -> None:
    """On input that is random, broken or hostile, and without memory."""
    runs = RUNS_OF_TWINS[target]

    done = run_sanitized(compiler, package, str(FUZZ / "twins.py"), target, "--runs", str(runs), "--seconds", "300")

    again = package / f"crash-{target}"
    assert done.returncode == 0, done.stderr + (again.read_text() if again.exists() else "")
    assert f"{runs} runs of {package}" in done.stdout
    assert "nothing broke" in done.stdout


OUT_OF_BOUNDS = """
import ctypes
from sanderling.formats import _repo
library = ctypes.PyDLL(_repo.__file__)
print(hasattr(library, "__asan_init"), _repo.float_text(0.5))
ctypes.memmove(ctypes.create_string_buffer(8), b"x" * 64, 64)
"""


def test_what_is_written_out_of_bounds_is_seen(compiler: str, package: Path) -> None:
    """Else the tests above could not fail."""
    done = run_sanitized(compiler, package, "-c", OUT_OF_BOUNDS)

    assert done.stdout == "True 0.5\n"
    assert "heap-buffer-overflow" in done.stderr
    assert done.returncode != 0
