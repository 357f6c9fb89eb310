"""Which tests could notice a fault in a file: those near it by their imports, and of these the ones that run its block.

The map is made by running the near tests once, on a copy of the source in which every block says that it is run. It is
kept in build/mutants/map.json; a test file is run again when it, or a file it is asked about, has changed.
"""

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path

import msgspec
import mutant_hits
import mutant_probe
from mutation_rules import AnyFunction, Mutant, blocks_of, without_docstring
from near_tests import PACKAGE, ROOT, TESTS, near

AT_ONCE = 8  # test files to a process: what one of them breaks, the others of that process may feel
LONGEST = 900.0  # seconds for such a process


class Entry(msgspec.Struct):
    """What is known of one test file."""

    digest: str
    sources: dict[str, str]  # digests of what it was run on
    tests: dict[str, tuple[float, list[str]]]  # how long each takes, and the blocks it runs


class Map:
    """Finds the tests of a mutant; `make` must have run for its file."""

    def __init__(self, folder: Path, guarded: Sequence[str]) -> None:
        self._path = folder / "map.json"
        self._folder = folder
        self._guarded = guarded
        self._entries: dict[str, Entry] = {}
        if self._path.exists():
            self._entries = msgspec.json.decode(self._path.read_bytes(), type=dict[str, Entry])

    def make(self, files: Iterable[str], processes: int) -> None:
        """Run the near tests of `files` that were not run yet on what they are now."""
        sources = {file: digest(PACKAGE / file) for file in self._guarded}
        stale = sorted({test for file in files for test in near(file) if not self._is_fresh(test, file, sources)})
        if not stale:
            return
        print(f"mapping {len(stale)} test files, once", file=sys.stderr)
        marked = copy_source(self._folder / "marked")
        for file in self._guarded:
            (marked / "sanderling" / file).write_text(mark(file, (PACKAGE / file).read_text()))
        groups = [stale[start : start + AT_ONCE] for start in range(0, len(stale), AT_ONCE)]
        with ThreadPoolExecutor(processes) as pool:
            for group, notes in pool.map(lambda number: self._run(number, groups[number], marked), range(len(groups))):
                for test in group:
                    own = {name: note for name, note in notes.items() if name.partition("::")[0] == f"tests/{test}"}
                    self._entries[test] = Entry(digest(TESTS / test), sources, own)
                self._path.write_bytes(msgspec.json.encode(self._entries))

    def tests_of(self, mutant: Mutant) -> list[tuple[float, str]]:
        """Those that run the block of a mutant, with the seconds they take: its own test file, then the quickest."""
        block = block_at(mutant.file, mutant.line)
        found = []
        for test in near(mutant.file):
            for name, (seconds, blocks) in self._entries[test].tests.items():
                # What runs when the file is imported has no block: whoever runs any of the file has it.
                hits = block in blocks if block else any(each.startswith(f"{mutant.file}:") for each in blocks)
                if hits:
                    found.append((seconds, name))
        folder, _, name = mutant.file.rpartition("/")
        mirrored = f"tests/{folder}/test_{name}::"  # the test file of the same name was written for it
        return sorted(found, key=lambda each: (not each[1].startswith(mirrored), each))

    def _is_fresh(self, test: str, file: str, sources: dict[str, str]) -> bool:
        entry = self._entries.get(test)
        return (
            entry is not None and entry.digest == digest(TESTS / test) and entry.sources.get(file) == sources.get(file)
        )

    def _run(self, number: int, tests: list[str], source: Path) -> tuple[list[str], dict[str, tuple[float, list[str]]]]:
        notes = self._folder / f"notes-{number}.json"
        notes.unlink(missing_ok=True)
        variables = {mutant_hits.FILE: str(self._folder / f"hits-{number}"), mutant_probe.NOTES: str(notes)}
        command = [*PYTEST, "-p", "mutant_probe", *(f"tests/{test}" for test in tests)]
        subprocess.run(  # noqa: S603 - our own tests
            command,
            cwd=ROOT,
            env=environment(source) | variables,
            stdout=subprocess.DEVNULL,
            timeout=LONGEST,
            check=False,
        )
        return tests, json.loads(notes.read_text())


PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]


def environment(source: Path) -> dict[str, str]:
    """For tests that shall find the package in `source`, with the same examples every time."""
    path = os.pathsep.join([str(source), str(ROOT / "tools")])
    kept = {"HYPOTHESIS_STORAGE_DIRECTORY": str(source.parent / "hypothesis"), "CI": "1"}
    return os.environ | {"PYTHONPATH": path} | kept


def copy_source(folder: Path) -> Path:
    """A copy of src/ in `folder`, made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.egg-info"))
    return folder / "src"


def digest(path: Path) -> str:
    """Tells whether a file has changed."""
    return blake2b(path.read_bytes(), digest_size=8).hexdigest()


def mark(file: str, text: str) -> str:
    """The source with a call at the start of each block of its functions."""
    tree = ast.parse(text)
    for block in list(_blocks(tree)):
        call = ast.parse(f"__import__('mutant_hits').hit({_name(file, block)!r})").body
        block[: len(block) - len(without_docstring(block))] += call
    return ast.unparse(tree)


def block_at(file: str, line: int) -> str:
    """The innermost block of a function that has the line; empty if the line is in none."""
    around = [
        block for block in _blocks(ast.parse((PACKAGE / file).read_bytes())) if block[0].lineno <= line <= _end(block)
    ]
    return _name(file, max(around, key=lambda block: block[0].lineno)) if around else ""


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for function in ast.walk(tree):
        if isinstance(function, AnyFunction):
            for node in ast.walk(function):
                if not isinstance(node, ast.ClassDef | AnyFunction) or node is function:
                    yield from blocks_of(node)


def _name(file: str, block: list[ast.stmt]) -> str:
    return f"{file}:{block[0].lineno}"


def _end(block: list[ast.stmt]) -> int:
    return block[-1].end_lineno or block[-1].lineno
