"""A plugin of pytest that notes how long each test takes and which blocks of marked source it runs.

What a fixture of a whole file runs is run for every test of that file. A test that is skipped, or fails without any
fault, can say nothing of one, and is left out.
"""

import json
import os
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import mutant_hits
import pytest

NOTES = "MUTANTS_NOTES"  # the variable that says where to write them


class Probe:
    """Watches a run of pytest."""

    def __init__(self, hits: Path, notes: Path) -> None:
        self._hits = hits
        self._notes = notes
        self._tests: dict[str, tuple[float, set[str]]] = {}
        self._shared: defaultdict[str, set[str]] = defaultdict(set)  # by file
        self._silent: set[str] = set()
        self._own: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """One test, with its fixtures."""
        self._take()  # what importing the file ran, it ran for whoever came first
        self._own, started = set(), time.monotonic()
        result = yield
        self._tests[item.nodeid] = time.monotonic() - started, self._own | self._take()
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        """What is set up for one test is its own; the rest is shared."""
        if fixturedef.scope == "function":
            return (yield)
        self._own |= self._take()
        try:
            return (yield)
        finally:
            self._shared[_file(request.node.nodeid)] |= self._take()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Leave out what did not pass."""
        if not report.passed:
            self._silent.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write all of it down."""
        everywhere = self._shared[""]
        notes = {
            test: [round(seconds, 3), sorted(blocks | self._shared[_file(test)] | everywhere)]
            for test, (seconds, blocks) in self._tests.items()
            if test not in self._silent
        }
        self._notes.write_text(json.dumps(notes))

    def _take(self) -> set[str]:
        """What was run since this was last asked."""
        mutant_hits.seen.clear()
        with self._hits.open("a+") as file:
            file.seek(0)
            blocks = set(file.read().split())
            file.truncate(0)
        return blocks


def _file(test: str) -> str:
    return test.partition("::")[0]


def pytest_configure(config: pytest.Config) -> None:
    """Watch, if somebody wants to know."""
    if NOTES in os.environ:
        config.pluginmanager.register(Probe(Path(os.environ[mutant_hits.FILE]), Path(os.environ[NOTES])))
