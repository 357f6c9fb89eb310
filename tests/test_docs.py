"""The documents say what the code does: every rule, move, field, file, flag and link is looked up in it.

`docs/outcomes.md` and `docs/metrics.md` are checked beside what they describe.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from sanderling.limit import (
    BackoffRules,
    BreakerRules,
    BudgetRules,
    HostView,
    LimiterRules,
    PaceRules,
    Snapshot,
)
from sanderling.limit.breaker import NEXT
from sanderling.limit.rules import STRATEGIES
from sanderling.limit.sharing import SCOPES
from sanderling.limit.snapshot import POLICIES
from sanderling.observe.report import AtFault, HostCondition, HostReport, Report
from sanderling.pages.record import PageRow
from sanderling.stores.frontier_rows import End, Failed

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "sanderling"
LIMITER = (ROOT / "docs" / "limiter.md").read_text()
TOUR = (ROOT / "docs" / "tour.md").read_text()
DASHBOARD = (ROOT / "docs" / "dashboard.md").read_text()
CRAWLING = (ROOT / "docs" / "pages.md").read_text()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

Rules = type[LimiterRules | PaceRules | BreakerRules | BackoffRules | BudgetRules]
ALL_RULES: list[Rules] = [LimiterRules, PaceRules, BreakerRules, BackoffRules, BudgetRules]


def section(page: str, heading: str) -> str:
    """Return what stands under a heading, up to the next of any rank."""
    found = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#+ |\Z)", page, re.DOTALL | re.MULTILINE)
    assert found, f"no heading {heading!r}"
    return found[1]


def rows(text: str) -> Iterator[list[str]]:
    """Give the cells of each row of the tables in `text`, without their heads."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") or (line.startswith("| ") and cells[0] not in {"field", "from", "#", "flag", "end"}):
            yield cells


def shown(value: object) -> str:
    """Return a default as the tables write it."""
    if isinstance(value, int | float):
        return f"{value:g}"
    return f"`{type(value).__name__}()`" if is_dataclass(value) else f"`{value}`"


@pytest.mark.parametrize("rules", ALL_RULES)
def test_every_rule_is_documented_with_its_default(rules: Rules) -> None:
    defaults = {field.name: shown(getattr(rules(), field.name)) for field in fields(rules)}

    documented = {name.strip("`"): default for name, default, _ in rows(section(LIMITER, rules.__name__))}

    assert documented == defaults


@pytest.mark.parametrize("rules", ALL_RULES)
def test_every_rule_has_a_reason(rules: Rules) -> None:
    assert all(len(reason) > 10 for _, _, reason in rows(section(LIMITER, rules.__name__)))


def test_the_breakers_moves_are_those_of_the_code() -> None:
    moves = {(state.value, event.value): after.value for (state, event), after in NEXT.items()}

    documented = {(state, event): after for state, event, after in rows(section(LIMITER, "The breaker"))}

    assert documented == moves


def test_every_field_of_a_snapshot_is_documented() -> None:
    documented = [(name.strip("`"), of.split(", ")) for name, of, _ in rows(section(LIMITER, "Snapshot"))]

    assert {name for name, of in documented if "all" in of} == {field.name for field in fields(Snapshot)}
    assert {name for name, of in documented if "host" in of} == {field.name for field in fields(HostView)}


def test_the_policies_are_those_of_the_code_in_the_same_words() -> None:
    listed = [cells for cells in rows(section(LIMITER, "Policies")) if cells[0].startswith("`")]

    assert {policy.strip("`"): meaning for policy, _, meaning in listed} == POLICIES


def test_every_field_of_a_report_is_documented() -> None:
    report = section(DASHBOARD, "The report")
    documented = [cells[0].strip("`") for cells in rows(report) if cells[0].startswith("`")]

    assert documented == [*Report.__struct_fields__, *HostReport.__struct_fields__]
    assert all(f"`{word}`" in report for word in (*HostCondition, *AtFault))


def test_every_strategy_and_kind_of_scope_is_named() -> None:
    assert all(f"`{name}`" in LIMITER for name in STRATEGIES)
    assert all(f"`{kind}`" in section(LIMITER, "Scopes") for kind in SCOPES)


def test_each_failure_mode_has_its_tests() -> None:
    written = "\n".join(path.read_text() for path in (ROOT / "tests" / "limit").glob("test_*.py"))
    modes = [
        (int(number), tests.strip("`")) for number, _, _, tests in rows(section(LIMITER, "What goes wrong elsewhere"))
    ]

    assert [number for number, _ in modes] == list(range(1, 19))
    assert all(tests == f"test_{number:02}_" for number, tests in modes)
    assert [tests for _, tests in modes if f"def {tests}" not in written] == []


def test_what_is_measured_says_how() -> None:
    assert "bench/limiter_sim.py" in section(LIMITER, "Measured")
    assert "bench/limiter.py" in section(LIMITER, "Measured")


def modules() -> Iterator[str]:
    for path in sorted(PACKAGE.rglob("*.py")):
        if not path.name.startswith("__"):
            yield str(path.relative_to(PACKAGE))


def test_the_tour_passes_every_file() -> None:
    """Those of `limit` by their name alone, as the tour says."""
    assert [module for module in modules() if f"`{module.removeprefix('limit/')}" not in TOUR] == []


def test_every_file_of_the_tour_exists() -> None:
    named = set(re.findall(r"`([\w/]+\.(?:py|pyi|c))[:`]", TOUR))
    folders = (PACKAGE, PACKAGE / "limit", ROOT)

    assert len(named) > 100
    assert {name for name in named if not any((folder / name).is_file() for folder in folders)} == set()


def flags_of(*command: str) -> set[str]:
    """The flags that a command's help names, without those that switch one off."""
    asked = [sys.executable, "-m", "sanderling", *command, "--help"]
    # As wide as it takes: a flag that is broken at the end of a line would be another.
    said = subprocess.run(  # noqa: S603 - our own command
        asked, capture_output=True, text=True, timeout=300, check=True, env={**os.environ, "COLUMNS": "250"}
    ).stdout
    return {flag for flag in re.findall(r"--[a-z-]+", said) if not flag.startswith("--no-")}


@pytest.mark.parametrize("name", ["Makefile", "README.md", "CHANGELOG.md", "zensical.toml", "pyproject.toml"])
def test_every_script_that_is_named_exists(name: str) -> None:
    """What only `make soak` runs is not missed by any other test."""
    named = re.findall(
        r"(?<![\w/.])(?:bench|deploy|examples|fuzz|tests|tools)/[\w/]+\.(?:py|sh|c)\b", (ROOT / name).read_text()
    )

    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_flags_of_the_demo_are_those_it_takes() -> None:
    documented = {flag.strip("`") for flag, _ in rows(section(TOUR, "Watching it"))}

    assert documented == flags_of("demo")


def test_the_flags_of_a_crawl_of_pages_are_those_it_takes() -> None:
    documented = {flag.strip("`") for flag, _ in rows(section(CRAWLING, "Flags"))}

    assert documented == flags_of("pages", "crawl")


def test_the_fields_of_a_row_are_those_that_are_written() -> None:
    documented = [name.strip("`") for name, _ in rows(section(CRAWLING, "A row"))]

    assert documented == list(PageRow.__struct_fields__)


def test_the_fields_of_a_row_that_only_failures_have_are_documented() -> None:
    documented = {name.strip("`") for name, _ in rows(section(CRAWLING, "A row of what was not fetched"))}

    assert documented == {*Failed._fields} - {*PageRow.__struct_fields__, "code"}


def test_every_end_of_a_url_is_documented() -> None:
    documented = {name.strip("`") for name, _, _ in rows(section(CRAWLING, "How a URL ends"))}

    assert documented == {end.name.lower() for end in End if end is not End.WAITING}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)", page.read_text())

    assert [link for link in links if not (page.parent / link).exists()] == []


# Words that praise and say nothing.
PRAISE = re.compile(
    r"\b(powerful|robust|seamless|comprehensive|cutting-edge|blazing|effortless|elegant|state-of-the-art|simply|easily)\b",
    re.IGNORECASE,
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_nothing_is_praised(page: Path) -> None:
    text = page.read_text()

    assert PRAISE.findall(text) == []
    assert not re.search("[\U0001f300-\U0001faff\u2600-\u27bf]", text), "an emoji"
