"""Faults are made by rule, the same for the same seed, in a copy; and the tests that run their block are found."""

import ast
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import mutant_tests
import mutants
import pytest
from mutation_rules import RULES, mutants_of
from near_tests import PACKAGE, ROOT

# For each rule: what stands there, and all that it makes of it.
CASES = {
    "swap_comparison": ("x = a < b", ["x = (a <= b)"]),
    "negate_condition": ("if a:\n    b()\nwhile True:\n    b()", ["if (not (a)):\n    b()\nwhile True:\n    b()"]),
    "swap_and_or": ("x = a and b", ["x = ((a) or (b))"]),
    "drop_write": ("file.write(b)\nlog.info(b)\nread(b)", ["pass\nlog.info(b)\nread(b)"]),
    "drop_await": (
        "async def f():\n    await g()\n    x = await g()",
        ["async def f():\n    pass\n    x = await g()"],
    ),
    "drop_raise": ("raise KeyError('größer' + 1)", ["pass"]),
    "swap_writes": ("a.write(b)\nos.fsync(a)", ["os.fsync(a); a.write(b)"]),
    "return_early": (
        "def f():\n    '''Says.'''\n    a()\n    b()\n    return c",
        ["def f():\n    '''Says.'''\n    a()\n    return\n    return c"],
    ),
    "shift_by_one": ("x = y[: n - 1]", ["x = y[: n - 2]"]),
    "change_constant": ("f(a, sync=True)\nx = 0.0", ["f(a, sync=False)\nx = 0.0", "f(a, sync=True)\nx = 1"]),
}


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_makes_its_fault_and_leaves_the_rest_as_it_is(rule: str) -> None:
    before, after = CASES[rule]

    made = [mutant for mutant in mutants_of("a.py", before.encode()) if mutant.rule == rule]

    assert [mutant.applied(before.encode()).decode() for mutant in made] == after


def test_every_fault_of_what_guards_data_is_another_program_under_a_name_of_its_own() -> None:
    for file in mutants.files(["engine/writer.py", "stores/rows_file.py"]):
        source = (PACKAGE / file).read_bytes()
        made = mutants_of(file, source)

        assert len({mutant.name for mutant in made}) == len(made)
        assert {ast.dump(ast.parse(mutant.applied(source))) for mutant in made}.isdisjoint(
            {ast.dump(ast.parse(source))}
        )


def test_every_pattern_of_what_guards_data_fits_a_file() -> None:
    assert [pattern for pattern in mutants.GUARDED if not mutants.files([pattern])] == []


def drawn(number: int, seed: int) -> list[str]:
    flags = Namespace(number=number, seed=seed, files=["stores/sqlite_*.py"], only=())
    return [mutant.name for mutant in mutants.draw(flags)]


def test_the_same_seed_draws_the_same_from_every_rule() -> None:
    first = drawn(20, 1)

    assert first == drawn(20, 1) != drawn(20, 2)
    assert {name.split(":")[2] for name in first} == {*RULES}
    assert {*first} < {*drawn(40, 1)}


def test_a_block_says_that_it_is_run_and_does_what_it_did() -> None:
    source = "def f(a):\n    '''Says.'''\n    if a:\n        return 1\n    else:\n        return 2\nx = [f(0), f(1)]\n"
    hits: list[str] = []
    fake = SimpleNamespace(hit=hits.append)

    marked = mutant_tests.mark("a.py", source).replace("__import__('mutant_hits')", "fake")
    names: dict[str, object] = {"fake": fake}
    exec(marked, names)  # noqa: S102 - what is tested makes source

    assert names["x"] == [2, 1]
    assert hits == ["a.py:2", "a.py:6", "a.py:2", "a.py:4"]


SMALL = """
import sanderling.stores.durable as durable

def test_a_draft_is_beside_its_file(tmp_path):
    assert durable.draft_of(tmp_path / "a").parent == tmp_path
"""


def test_a_fault_that_a_test_notices_is_killed_in_a_copy_and_one_that_none_does_survives(tmp_path: Path) -> None:
    """With the tests of one file only: those of the suite take longer than a test may."""
    before = {path: path.read_bytes() for path in (PACKAGE / "stores").glob("*.py")}
    script = f"""
import mutant_tests, mutants, near_tests, pathlib, sys
near_tests.near.cache_clear()
mutant_tests.near = lambda file: ["stores/test_durable.py"]
mutants.FOLDER = pathlib.Path({str(tmp_path)!r})
sys.argv = ["mutants.py", "--files", "stores/durable.py", "--only", *sys.argv[1:], "--json", {str(tmp_path / "said")!r}]
mutants.main()
"""
    names = {
        mutant.name: mutant.text
        for mutant in mutants_of("stores/durable.py", (PACKAGE / "stores" / "durable.py").read_bytes())
        if mutant.rule == "drop_write"
    }
    replaced = next(name for name in names if mutants_line(name) == "draft.replace(path)")
    synced = next(name for name in names if mutants_line(name) == "os.fsync(handle)")

    done = subprocess.run(  # noqa: S603 - our own tool
        [sys.executable, "-c", script, replaced, synced],
        cwd=ROOT / "tools",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert f"killed    {replaced}" in done.stderr
    assert f"untested  {synced}" in done.stderr or f"survived  {synced}" in done.stderr
    assert (tmp_path / "said").exists()
    assert {path: path.read_bytes() for path in before} == before


def mutants_line(name: str) -> str:
    file, line = name.split(":")[:2]
    return (PACKAGE / file).read_text().splitlines()[int(line) - 1].strip()
