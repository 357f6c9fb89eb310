"""Whatever changes, the tests that it concerns are run, and no others."""

import os
from collections.abc import Callable
from pathlib import Path

import near_tests
import pytest
import watch
from near_tests import PACKAGE, TESTS


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        (PACKAGE / "stores" / "durable.py", "stores/test_durable.py"),  # by its name
        (PACKAGE / "events" / "sink.py", "events/test_consume.py"),  # nobody imports it: through its system
        (TESTS / "stores" / "frontier_play.py", "stores/test_frontier.py"),  # what tests share
        (TESTS / "stores" / "test_durable.py", "stores/test_durable.py"),  # itself
    ],
    ids=lambda each: Path(each).stem,
)
def test_a_change_has_its_tests(changed: Path, wanted: str) -> None:
    tests = watch.tests_of(changed)

    assert wanted in tests
    assert "limit/test_backoff.py" not in tests
    assert all((TESTS / test).is_file() for test in tests)


def test_what_is_written_and_what_is_new_is_seen_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = tmp_path / "old.py", tmp_path / "new.py"
    old.touch()
    monkeypatch.setattr(watch, "PACKAGE", tmp_path)
    monkeypatch.setattr(watch, "TESTS", tmp_path / "tests")
    between: list[Callable[[], object]] = [lambda: None, lambda: os.utime(old, (1, 1)), lambda: None, new.touch]
    monkeypatch.setattr("watch.time.sleep", lambda _: between.pop(0)())

    changes = watch.changes()

    assert [next(changes), next(changes)] == [{old}, {new}]


def test_a_file_that_is_half_written_is_said_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test_half.py").write_text("import sanderling.ids\ndef half(")
    monkeypatch.setattr(near_tests, "TESTS", tmp_path)

    assert watch.run({PACKAGE / "ids.py"}, []) == 1
    near_tests.forget()
