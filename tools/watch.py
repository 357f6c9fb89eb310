"""Run the tests of what changes, as soon as it changes, those that failed last first. Ctrl-C ends it.

Usage: watch.py [PYTEST ARGUMENT ...]. Of a file of the package these are the tests that import it, or the nearest; of a
file that tests share, those that import that; of a test, itself.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import near_tests
from near_tests import PACKAGE, ROOT, TESTS

EVERY = 0.5  # seconds between two looks: one takes about 10 ms


def main() -> None:
    """Watch until somebody has had enough."""
    print("watching src/ and tests/; Ctrl-C ends it", file=sys.stderr)
    try:
        for changed in changes():
            run(changed, sys.argv[1:])
    except KeyboardInterrupt:
        print(file=sys.stderr)


def changes() -> Iterator[set[Path]]:
    """Give what was written or is new, as often as something is."""
    before = times()
    while True:
        time.sleep(EVERY)
        after = times()
        changed = {path for path, written in after.items() if before.get(path) != written}
        before = after
        if changed:
            yield changed


def times() -> dict[Path, int]:
    """When each file was last written."""
    found = {}
    for path in (*PACKAGE.rglob("*.py"), *TESTS.rglob("*.py")):
        try:
            found[path] = path.stat().st_mtime_ns
        except FileNotFoundError:
            continue  # removed while we looked
    return found


def run(changed: set[Path], arguments: list[str]) -> int:
    """Run the tests of `changed`; how that ended."""
    near_tests.forget()
    names = ", ".join(sorted(path.relative_to(ROOT).as_posix() for path in changed))
    try:
        tests = sorted({f"tests/{test}" for path in changed for test in tests_of(path)})
    except SyntaxError as error:
        print(f"\n{error.filename or names}:{error.lineno}: {error.msg}", file=sys.stderr)
        return 1
    print(f"\n{names}: {len(tests)} test files", file=sys.stderr)
    if not tests:
        return 0
    command = [sys.executable, "-m", "pytest", "-q", "--failed-first", "-x", *arguments, *tests]
    return subprocess.run(command, cwd=ROOT, check=False).returncode  # noqa: S603 - our own tests


def tests_of(path: Path) -> list[str]:
    """The tests that a change of a file concerns, by their names below tests/."""
    if path.is_relative_to(PACKAGE):
        file = path.relative_to(PACKAGE).as_posix()
        return near_tests.importing(file) or near_tests.near(file)
    if path.name.startswith("test_"):
        return [path.relative_to(TESTS).as_posix()]
    return near_tests.sharing(path)


if __name__ == "__main__":
    main()
