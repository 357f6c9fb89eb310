"""The changelog: in the usual form, and with a heading for the version that we are."""

import re
import tomllib
from itertools import pairwise

from deploy_lines import ROOT

CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
HEADINGS = re.findall(r"^## (.*)$", CHANGELOG, re.MULTILINE)
SORTS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_version_of_the_package_has_a_heading() -> None:
    assert any(heading.startswith(f"[{VERSION}]") for heading in HEADINGS)


def test_what_is_to_come_is_first_and_versions_follow_downwards() -> None:
    assert HEADINGS[0] == "[Unreleased]"
    released = [re.fullmatch(r"\[(\d+)\.(\d+)\.(\d+)\](?: - \d{4}-\d\d-\d\d)?", heading) for heading in HEADINGS[1:]]

    assert all(released)
    numbers = [tuple(map(int, each.groups())) for each in released if each]
    assert all(newer > older for newer, older in pairwise(numbers))


def test_changes_are_of_the_usual_sorts_and_none_is_empty() -> None:
    sorts = re.findall(r"^### (.*)$", CHANGELOG, re.MULTILINE)

    assert sorts
    assert set(sorts) <= SORTS
    assert not re.search(r"^### .*\n+(?=#|\Z)", CHANGELOG, re.MULTILINE)


def test_every_system_is_spoken_of() -> None:
    assert all(f"`{system}`" in CHANGELOG for system in ("pages", "sequence", "repos", "polling", "events"))
