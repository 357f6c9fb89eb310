"""The manual of `sanderling events` says what the code does."""

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from command_line import called
from cyclopts import App

from sanderling.cli.events import app as events
from sanderling.clock import SystemClock
from sanderling.events.analysis.preprocess import SHORT, TOP_COMMENTS
from sanderling.events.taxonomy import RULES, classify
from sanderling.outcome import Category, Retry
from sanderling.stores.analytics_revisions import OURS
from sanderling.web.app import ROUTES
from sanderling.web.events_api import events_app

MANUAL = (Path(__file__).parents[3] / "docs" / "events.md").read_text()


def section(heading: str) -> str:
    """What stands under a heading, up to the next one as high."""
    marks = heading.partition(" ")[0]
    text = MANUAL.partition(f"\n{heading}\n")[2]
    assert text, f"no section {heading}"
    return re.split(rf"\n#{{2,{len(marks)}}} ", text)[0]


def rows(heading: str) -> list[list[str]]:
    """The cells of a section's tables, without the backticks, and without the heads."""
    lines = [line for line in section(heading).splitlines() if line.startswith("| `")]
    return [[cell.strip().strip("`") for cell in line.strip("| ").split(" | ")] for line in lines]


def firsts(heading: str) -> list[str]:
    return [row[0] for row in rows(heading)]


def commands(app: App, name: str) -> Iterator[str]:
    """All commands below one, by their whole names."""
    for each in app:
        if not each.startswith("-"):
            below = list(commands(app[each], f"{name} {each}"))
            yield from below or [f"{name} {each}"]


def test_the_commands_are_those_there_are() -> None:
    assert sorted(firsts("## Commands")) == sorted(commands(events, "events"))


@pytest.mark.parametrize("command", firsts("## Commands"))
def test_every_command_is_one_and_has_an_example(command: str) -> None:
    done = called(*command.split(), "--help")

    assert done.code == 0
    assert f"Usage: sanderling {command}" in done.out
    assert "Example" in done.out


def test_the_flags_are_those_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")  # a flag that is broken at the end of a line would be another
    done = called("events", "consume", "--help")

    shown = set(re.findall(r"--[a-z][a-z-]+", done.out.partition("Parameters")[2].partition("Example")[0]))
    assert set(firsts("## Flags")) == shown | {"--help"}


def test_the_routes_are_those_that_are_served() -> None:
    nobody = cast("Any", None)  # nothing is asked of it
    app = events_app(nobody, nobody, nobody, SystemClock(), Random(1))

    assert sorted(firsts("## Routes")) == sorted(f"{route.method} {route.path}" for route in app[ROUTES])


def test_the_categories_are_those_of_the_code_with_all_that_follows() -> None:
    again = {Retry.YES: "yes", Retry.NO: "no", Retry.MAYBE: "maybe"}
    told = {row[0]: row[1:] for row in rows("## Errors")}

    assert set(told) == {each.value for each in Category}
    for category, (codes, retry, action) in told.items():
        for code in codes.split(", "):
            assert code in RULES
            rule = classify(code)
            assert (rule.category.value, again[rule.retry], rule.action.value) == (category, retry, action)
    assert sum(len(codes.split(", ")) for codes, _, _ in told.values()) == 21


def test_the_tables_are_those_that_are_made() -> None:
    assert firsts("## Where things are") == list(OURS)


def test_the_numbers_of_the_analysis_are_those_of_the_code() -> None:
    assert (SHORT, TOP_COMMENTS) == (10, 5)
    assert "below ten characters" in section("## Analysis")
    assert "the five comments" in section("## Analysis")
