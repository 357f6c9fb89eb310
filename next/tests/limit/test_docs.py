"""What docs/limiter.md and docs/seeds.md name exists, with the default they name."""

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from sanderling.clock import FakeClock
from sanderling.fetch import RequestOptions
from sanderling.fetch.facts import limiter_facts
from sanderling.limit import HostFigures, Limiter, LimitOptions, Permit, Snapshot
from sanderling.observe.metrics import metric_name
from sanderling.observe.report import Fact, Kind

DOCS = Path(__file__).parents[2] / "docs"
FACTS = limiter_facts(Limiter(clock=FakeClock()).snapshot())


def metric(fact: Fact) -> str:
    return metric_name("pages", fact).removeprefix("sanderling_") + "_total" * (fact.kind is Kind.COUNT)


KNOWN = {
    *(f"Limiter.{name}" for name in dir(Limiter)),
    *(f"Permit.{name}" for name in dir(Permit)),
    *(f"Snapshot.{each.name}" for each in fields(Snapshot)),
    *(f"HostFigures.{each.name}" for each in fields(HostFigures)),
    *(f"limits.{name} = {each.show(each.default)}" for name, each in LimitOptions.fields.items()),
    *(f"limits.{name} = {each.default:g}" for name, each in LimitOptions.fields.items() if each.item is float),
    *(f"--{each.key}" for each in RequestOptions.fields.values()),
    *(metric(fact).replace("_", ".", 1) for fact in FACTS),
}


def rows(name: str, heading: str) -> Iterator[list[str]]:
    """The cells of the tables below a heading."""
    section = (DOCS / name).read_text().partition(f"\n## {heading}")[2].partition("\n## ")[0]
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and not set(cells[0]) <= {"-"}:
            yield cells


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]*)`", cell)


SEED_003 = list(rows("seeds.md", "Seed 003"))[1:]


@pytest.mark.parametrize("row", SEED_003, ids=lambda row: row[0])
def test_what_seeds_md_names_exists(row: list[str]) -> None:
    assert len(row) == 3
    assert names(row[1])
    assert set(names(row[1])) <= KNOWN
    assert {name for name in names(row[2]) if name.startswith(("limits.", "Limiter.", "Permit."))} <= KNOWN


def test_seeds_md_names_each_option_and_each_figure() -> None:
    named = {name.partition(" ")[0] for row in SEED_003 for cell in row for name in names(cell)}

    assert {f"limits.{name}" for name in LimitOptions.fields} <= named
    assert {f"HostFigures.{each.name}" for each in fields(HostFigures)[:9]} <= named


def test_limiter_md_has_each_option_with_its_default() -> None:
    found = {}
    for _, option, default in (row for row in rows("limiter.md", "Seed 003") if len(row) == 3):
        options = [name for name in names(option) if name in LimitOptions.fields]
        shown = default.split(", ") if len(options) > 1 else [default][: len(options)]
        found.update(dict(zip(options, shown, strict=True)))
    known = {name: each.show(each.default) for name, each in LimitOptions.fields.items()}

    assert found == known


def test_limiter_md_has_no_other_method_or_figure() -> None:
    tables = [row for row in rows("limiter.md", "Seed 003") if row[0] != "seed"]
    methods = {name for row in tables if len(row) == 2 for name in names(row[1])} - {"CircuitOpen", "release"}
    figures = {name for row in tables[-7:] for name in names(row[1])} - {"hosts[0]"}
    metrics = {name for row in tables[-7:-1] for name in names(row[2])}

    assert methods <= set(dir(Limiter))
    assert figures <= {each.name for kind in (Snapshot, HostFigures) for each in fields(kind)}
    assert {f"pages_{name}" for name in metrics} <= set(map(metric, FACTS))


def test_limiter_md_is_short_and_has_its_picture() -> None:
    text = (DOCS / "limiter.md").read_text()

    assert len(text.split()) <= 1000
    assert "(limiter.svg)" in text
    assert (DOCS / "limiter.svg").read_text().startswith("<svg ")
