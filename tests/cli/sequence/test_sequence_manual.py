"""The manual of `sanderling sequence` says what the code does."""

import re
from pathlib import Path

import pytest
from command_line import called

from sanderling.apis.bungie import THROTTLES
from sanderling.apis.numbered import Status
from sanderling.sequence.guard import ScalingGuardRules
from sanderling.sequence.retries import Reason
from sanderling.sequence.scaling import ScalingStrategy

MANUAL = (Path(__file__).parents[3] / "docs" / "sequence.md").read_text()


def rows(section: str) -> list[str]:
    """What stands between backticks in the first column of a section's tables."""
    text = MANUAL.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    assert text, f"no section {section}"
    firsts = re.findall(r"^\| (`[^|]+) \|", text, re.MULTILINE)
    return [name for first in firsts for name in re.findall(r"`([^`]+)`", first)]


def test_the_flags_are_those_it_takes() -> None:
    done = called("sequence", "crawl", "--help")

    shown = set(re.findall(r"--[a-z][a-z-]+", done.out.partition("Parameters")[2].partition("Example")[0]))
    assert set(rows("Flags of `crawl`")) == shown


def test_the_statuses_are_all_there() -> None:
    assert sorted(rows("What an answer means")) == sorted(Status)
    listed = MANUAL.partition("| `rate_limited` | ")[2].partition(";")[0]
    numbers = {int(first) for first in re.findall(r"\d+", listed)} | {36, 55, 56}  # within the two "to"
    assert numbers == THROTTLES


def test_the_reasons_are_all_there() -> None:
    assert sorted(rows("What is missed")) == sorted(Reason)


def test_the_strategies_and_rules_are_all_there() -> None:
    rules = [name.replace("_", "-") for name, kind in ScalingGuardRules.__annotations__.items() if kind is bool]
    assert rows("Workers") == [*ScalingStrategy, *rules]


@pytest.mark.parametrize("command", [row for row in rows("Commands") if row.startswith("sequence ")])
def test_every_command_is_one(command: str) -> None:
    done = called(*command.split(), "--help")

    assert done.code == 0
    assert f"Usage: sanderling {command}" in done.out
