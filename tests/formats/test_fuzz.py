"""A few seconds of fuzzing under the address and undefined behaviour sanitizers; `make fuzz` goes on for longer."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FUZZ, FORMATS = ROOT / "fuzz", ROOT / "src/sanderling/formats"
FLAGS = ["-std=c11", "-g", "-O1", "-DREPO_FUZZ", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
RUNS, SECONDS = 25_000, 20  # whichever comes first


def compiled(compiler: str, output: Path, *sources: Path) -> subprocess.CompletedProcess[str]:
    arguments = [compiler, *FLAGS, f"-I{FORMATS}", *map(str, sources), "-o", str(output)]
    return subprocess.run(arguments, capture_output=True, text=True, check=False)  # noqa: S603 - a compiler


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The first compiler whose sanitizers work."""
    folder = tmp_path_factory.mktemp("compiler")
    (folder / "empty.c").write_text("int main(void) { return 0; }\n")
    reasons = []
    for name in ("cc", "gcc", "clang"):
        if not shutil.which(name):
            reasons.append(f"no {name}")
        elif compiled(name, folder / "empty", folder / "empty.c").returncode:
            reasons.append(f"{name} has no sanitizers")
        else:
            return name
    pytest.skip("the C parser cannot be fuzzed here: " + ", ".join(reasons))


@pytest.fixture(scope="module")
def driver(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    parser = sorted(path for path in FORMATS.glob("_repo*.c") if path.name != "_repo.c")
    output = tmp_path_factory.mktemp("driver") / "driver"

    done = compiled(compiler, output, *sorted(FUZZ.glob("*.c")), *parser)

    assert done.returncode == 0, done.stderr
    return output


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    spec = importlib.util.spec_from_file_location("corpus", FUZZ / "corpus.py")
    assert spec
    assert spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main(folder)
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
