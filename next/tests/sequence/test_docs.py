"""What docs/seeds.md says of seed 000 exists: flags can be typed, defaults, metrics, states of tasks."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sequence.plays import play
from sequence_ids import IdWorld

from sanderling.observe.metrics import metric_name
from sanderling.observe.report import Kind
from sanderling.sequence.database import _GAME_TABLES, tables
from sanderling.sequence.options import SequenceOptions, StoreOptions
from sanderling.sequence.retries import Reason
from sanderling.sequence.system import TASK_STATES
from sanderling.systems import SYSTEMS

SYSTEMS_BY_NAME = {each.name: each for each in SYSTEMS}
DOCS = Path(__file__).parents[2] / "docs"
SEED_000 = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (DOCS / "seeds.md").read_text().partition("\n## Seed 000")[2].partition("\n## ")[0].splitlines()
    if line.startswith("| ") and not line.startswith("| seed ")
]
FLAGS = {f"--{each.key}": each for kind in (SequenceOptions, StoreOptions) for each in kind.fields.values()}
COLUMNS = {f"{name}.{column}" for name, columns in _GAME_TABLES.items() for column in columns}  # what `tables` makes


@pytest.mark.parametrize("row", SEED_000, ids=lambda row: row[0])
def test_what_seeds_md_names_exists(row: list[str], tmp_path: Path) -> None:
    assert len(row) == 3
    named = re.findall(r"`([^`]*)`", row[1])
    assert named
    for words in named:
        match words.split():
            case [flag] if flag.startswith("--"):
                assert flag in FLAGS
            case [flag, value] if flag.startswith("--"):
                each = FLAGS[flag]
                assert value in (str(each.default), *each.choices)
            case ["tasks", "FOLDER", state, *code]:
                assert state in TASK_STATES
                assert code == [] or code[1] in list(Reason)
            case ["sequence", *command]:
                assert " ".join(["sequence", command[0]]) in {each.words for each in SYSTEMS_BY_NAME["sequence"].runs}
            case [name]:
                assert name in COLUMNS or name.startswith("sequence.")  # metrics are looked up below


def test_every_row_of_the_seed_is_there() -> None:
    leading = [re.match(r"(0\.\d+, )*0\.\d+", row[0]) for row in SEED_000]
    numbers = [number for found in leading if found is not None for number in found[0].split(", ")]

    assert sorted(numbers, key=lambda each: int(each[2:])) == [f"0.{number}" for number in range(1, 44)]


def test_the_tables_have_these_columns() -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        for each in tables(game=True, views="CREATE VIEW IF NOT EXISTS"):
            db.execute(each)
        made = {f"{name}.{column[1]}" for name in _GAME_TABLES for column in db.execute(f"PRAGMA table_info({name})")}
        assert db.execute("SELECT count(*) FROM player_stats").fetchone() == (0,)

    assert made == COLUMNS


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
