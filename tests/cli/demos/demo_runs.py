"""Demos that are run in this process, smaller and faster than people see them."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from command_line import Done, called, commands

from sanderling.cli.demos import shell


class DemoRun(NamedTuple):
    """What came of a demo: all that it printed as JSON, and what it would have said in words."""

    out: Path
    done: Done
    lines: list[str]
    document: Mapping[str, Any]


def run_small(name: str, out: Path, *flags: str, **constants: object) -> DemoRun:
    """Run a demo of which some constants are others."""
    ends: list[shell.DemoEnd] = []

    def tell(end: shell.DemoEnd) -> None:
        ends.append(end._replace(lines=list(end.lines)))

    with pytest.MonkeyPatch.context() as patch:
        module = import_module(f"sanderling.cli.demos.{name}")
        for constant, value in constants.items():
            patch.setattr(module, constant, value)
        patch.setattr(shell, "tell_end", tell)
        done = called("demo", name, "--out", str(out), "--json", *flags)
    assert done.code == 0, done.err
    (end,) = ends
    shown = [line for line in end.lines if isinstance(line, str)]
    suggested = [line for line in shown if line.startswith("    sanderling")]
    assert len(commands("\n".join(suggested))) == len(suggested) >= 3
    return DemoRun(out, done, shown, end.document)
