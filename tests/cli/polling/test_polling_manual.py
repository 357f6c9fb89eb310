"""The manual of `sanderling polling` says what the code does."""

import re
import tomllib
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from command_line import called

from sanderling.apis.json_source import JsonSource
from sanderling.apis.trackside import KINDS
from sanderling.cli.polling import app as polling
from sanderling.clock import SystemClock
from sanderling.polling.settings import Keys
from sanderling.stores.polling import RowChange
from sanderling.web.app import ROUTES
from sanderling.web.polling_api import polling_app
from sanderling.web.stream import Streams

MANUAL = (Path(__file__).parents[3] / "docs" / "polling.md").read_text()


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


def test_the_commands_are_those_there_are() -> None:
    names = [name for name in polling if not name.startswith("-")]

    assert sorted(firsts("## Commands")) == sorted(f"polling {name}" for name in names)


@pytest.mark.parametrize("command", firsts("## Commands"))
def test_every_command_is_one(command: str) -> None:
    done = called(*command.split(), "--help")

    assert done.code == 0
    assert f"Usage: sanderling {command}" in done.out


def test_the_flags_are_those_it_takes() -> None:
    done = called("polling", "run", "--help")

    shown = set(re.findall(r"--[a-z][a-z-]+", done.out.partition("Parameters")[2].partition("Example")[0]))
    assert set(firsts("## Flags")) == shown | {"--help"}


def test_the_settings_are_those_of_the_code_with_the_same_defaults_and_meanings() -> None:
    listed = [[each.key, each.default, each.meaning] for each in Keys(KINDS).listed({})]

    assert rows("## Settings") == listed


def test_the_routes_are_those_that_are_served() -> None:
    nobody = cast("Any", None)  # nothing is asked of it
    app = polling_app(nobody, SystemClock(), Streams(SystemClock()), ())

    assert sorted(firsts("## Routes")) == sorted(f"{route.method} {route.path}" for route in app[ROUTES])


def test_a_change_has_the_fields_that_are_told() -> None:
    assert firsts("### A change") == [field.name for field in msgspec.structs.fields(RowChange)]


def test_the_description_of_another_source_is_one() -> None:

    text = section("## Any JSON API").partition("```toml\n")[2].partition("```")[0]
    described: dict[str, Any] = tomllib.loads(text)

    source = JsonSource.from_settings(described["source"])

    assert [kind.name for kind in source.kinds] == ["match"]
