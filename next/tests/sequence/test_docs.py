"""What docs/seeds.md says of seed 000 exists: flags can be typed, defaults, metrics, states of tasks."""

import re
from pathlib import Path
from typing import Any

import pytest
from sequence.plays import play
from sequence_ids import IdWorld

from sanderling.cli.tasks import TasksOptions
from sanderling.observe.metrics import metric_name
from sanderling.observe.report import Kind
from sanderling.sequence.options import SequenceOptions
from sanderling.sequence.system import TASK_STATES

DOCS = Path(__file__).parents[2] / "docs"
SEED_000 = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (DOCS / "seeds.md").read_text().partition("\n## Seed 000")[2].partition("\n## ")[0].splitlines()
    if line.startswith("| ") and not line.startswith("| seed ")
]
FLAGS = {f"--{each.key}" for kind in (SequenceOptions, TasksOptions) for each in kind.fields.values()}


@pytest.mark.parametrize("row", SEED_000, ids=lambda row: row[0])
def test_what_seeds_md_names_can_be_typed(row: list[str]) -> None:
    assert len(row) == 3
    named = re.findall(r"`([^`]*)`", row[1])
    assert named
    for words in named:
        assert {word for word in words.split() if word.startswith("--")} <= FLAGS
        if words.startswith("tasks"):
            assert words.split()[2] in TASK_STATES


def test_the_seeds_defaults() -> None:
    options = SequenceOptions(out=Path("x"))

    assert (options.workers, options.min_workers, options.max_workers) == (25, 5, 250)
    assert (options.buffer, options.dev_skip, options.dev, options.stride) == (10_000, 4, False, 1)
    assert SequenceOptions(out=Path("x"), dev=True).stride == 5


def test_the_seeds_metrics(tmp_path: Path) -> None:
    played = play(tmp_path, 60, lambda clock: IdWorld(clock, back=50), until=1020)

    report = played.report
    found: dict[str, Any] = {
        metric_name("sequence", fact) + "_total" * (fact.kind is Kind.COUNT): fact.value for fact in report.facts
    }
    named = {name for row in SEED_000 for name in re.findall(r"`sequence\.([a-z_]+)`", row[1])}
    assert all(name in found or f"sanderling_sequence_{name}" in found for name in named)
    assert found["pgcr_crawl_summary_status"] == {**dict.fromkeys("23456", 0), "1": 21, "9": 0, "10": 0}
    assert found["pgcr_crawl_summary_lag_bucket"]["+Inf"] == 21


def test_with_a_head_address_nothing_is_guessed(tmp_path: Path) -> None:
    played = play(
        tmp_path, 3600, lambda clock: IdWorld(clock, back=20, rates=((0, 0.25), (1200, 0), (3000, 0.25)), head=True)
    )

    during = [said for at, _, said in played.world.asked if 1210 <= at < 3000]
    assert len(during) <= 400 * 1800 / 3600
    assert set(played.counts) >= played.world.due(3570)


def test_a_head_that_stops_costs_little_and_is_met_again(tmp_path: Path) -> None:
    played = play(
        tmp_path, 5400, lambda clock: IdWorld(clock, back=2000, rates=((0, 4), (600, 0), (4200, 4)), stamps=False)
    )

    assert sum(600 < at < 4200 for at, _, _ in played.world.asked) <= 1500
    first = played.world.number(2000 + 2400)
    assert min(played.world.stored_at[each] - played.world.seen(each) for each in range(first, first + 3)) <= 10
    assert set(played.counts) >= played.world.due(5350)


def test_a_head_ten_times_as_fast(tmp_path: Path) -> None:
    played = play(
        tmp_path, 1500, lambda clock: IdWorld(clock, back=20, rates=((0, 2), (600, 20), (1200, 2)), stamps=False)
    )

    assert max(played.lags(after=590)) <= 60
