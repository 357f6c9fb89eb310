"""The C modules in several interpreters of one process, and in several modules of one interpreter."""

import gc
import importlib.util
import os
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import corpus
import pytest
import sanitized

NAMES = [each.name for each in sanitized.extensions()]
for name in NAMES:
    pytest.importorskip(name, reason="the C part was not built: no compiler when the package was installed")


def made(name: str) -> tuple[ModuleType, ModuleSpec]:
    """One more module of that name, not yet executed."""
    spec = importlib.util.find_spec(name)
    assert spec
    return importlib.util.module_from_spec(spec), spec


def executed(name: str) -> ModuleType:
    module, spec = made(name)
    assert spec.loader
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(
    not (importlib.util.find_spec("_interpreters") or importlib.util.find_spec("_xxsubinterpreters")),
    reason="this Python cannot make interpreters from Python",
)
def test_each_interpreter_has_its_own(tmp_path: Path) -> None:
    for number, car in enumerate(car for car in corpus.cars() if len(car) < 3_000):
        (tmp_path / f"{number:03}.car").write_bytes(car)
    script = Path(__file__).with_name("interpreters.py")
    command = [sys.executable, str(script), str(tmp_path)]
    path = os.pathsep.join([str(sanitized.ROOT / "fuzz"), *sys.path])

    done = subprocess.run(  # noqa: S603 - ourselves
        command, capture_output=True, text=True, timeout=300, check=False, env=os.environ | {"PYTHONPATH": path}
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("name", NAMES)
def test_two_modules_share_nothing_but_functions(name: str) -> None:
    """What an interpreter has is what a module has."""
    one, other = executed(name), executed(name)

    assert one is not other
    if hasattr(one, "words_of"):
        first, again, second = (module.words_of("a word")[1] for module in (one, one, other))
        assert first is again
        assert first is not second


@pytest.mark.parametrize("name", NAMES)
def test_a_module_that_was_not_executed_refuses_its_work(name: str) -> None:
    """Python makes a module first and executes it then; whoever calls it in between must not end the process."""
    module, _ = made(name)

    calls = {"words_of": "a", "plain_words": "a", "parse_repo": b""}
    for function in calls.keys() & set(dir(module)):
        with pytest.raises(SystemError, match="was not executed"):
            getattr(module, function)(calls[function])
    if hasattr(module, "locate"):
        with pytest.raises(SystemError, match="was not executed"):
            module.locate("a", "a", 0)


@pytest.mark.parametrize("name", NAMES)
def test_a_module_that_is_gone_leaves_nothing_behind(name: str) -> None:
    def use() -> None:
        module = executed(name)
        if hasattr(module, "words_of"):
            module.words_of(" ".join(f"word{number}" for number in range(3000)))

    use()
    gc.collect()
    before = sys.getallocatedblocks()

    for _ in range(5):
        use()
    gc.collect()

    assert sys.getallocatedblocks() - before < 500
