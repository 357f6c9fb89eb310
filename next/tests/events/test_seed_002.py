"""What docs/seeds.md says of seed 002 can be typed, requested or found in the tables, with its default."""

import re
import sqlite3
from pathlib import Path
from typing import get_args

import pytest
from events.plays import make_consumer

from sanderling.events import system, watch
from sanderling.events.api import PostsApi
from sanderling.events.batches import SIZES
from sanderling.events.options import EventsOptions
from sanderling.events.queues import DEAD, LEGACY_QUEUE, PARKED
from sanderling.events.report import make_report
from sanderling.events.tables import TABLES, VERSION_TABLE, create
from sanderling.formats.envelope import EXCHANGE, KEY, QUEUE, Mode
from sanderling.observe.metrics import metric_name
from sanderling.observe.report import Kind
from sanderling.systems import SYSTEMS

SEEDS = (Path(__file__).parents[2] / "docs" / "seeds.md").read_text()
ROWS = [
    line.strip("|").split("|")
    for line in SEEDS.partition("## Seed 002")[2].partition("\n## ")[0].splitlines()
    if line.startswith("| 2.")
]


def known() -> set[str]:
    play = make_consumer()
    options = EventsOptions(out=Path("x"))
    facts = make_report(play.consumer, options, play.readers.report(), "", 0.0, running=True).facts
    base = sqlite3.connect(":memory:")
    for table in TABLES:
        for each in create("sqlite", table):
            base.execute(each)
    every = EventsOptions.fields.values()
    labels = {each.name: f"{{{each.by}}}" if each.by else "" for each in facts}
    return {
        *(f"{table}.{row[1]}" for table in TABLES for row in base.execute(f"PRAGMA table_info({table})")),
        *(f"index {name}" for (name,) in base.execute("SELECT name FROM sqlite_schema WHERE type = 'index'")),
        *(f"--{flag}={each.show(each.default)}" for each in every for flag in each.flags),
        *(f"--{flag}" for each in every for flag in each.flags),
        *(f"${name}" for each in every for names in each.variables("events") for name in names),
        *(f"{metric_name('events', each)}{'_total' * (each.kind is Kind.COUNT)}{labels[each.name]}" for each in facts),
        *(f"tasks {state}" for state in system.TASK_STATES),
        *(command.words for each in SYSTEMS for command in each.runs),
        *(f"size {platform} = {size}" for platform, size in SIZES.items()),
        *(f"mode {each}" for each in get_args(Mode)),
        *(f"alert {title}" for title in re.findall(r'"([A-Z][a-z ]+)"', Path(watch.__file__).read_text())),
        *(f"queue {name}" for name in (QUEUE, QUEUE + PARKED, QUEUE + DEAD, LEGACY_QUEUE)),
        *(f"{each.method} {each.path}" for each in PostsApi(play.store, play.clock, {}, postgres=False).routes()),
        f"exchange {EXCHANGE}",
        f"key {KEY}",
        f"table {VERSION_TABLE}",
    }


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip())
def test_what_a_row_names_exists(row: list[str]) -> None:
    named = re.findall(r"`([^`]*)`", row[1])

    assert named
    assert set(named) <= known()


def test_each_row_is_there() -> None:
    found = {number for row in ROWS for number in re.findall(r"2\.(\d+)", row[0])}
    assert found >= {str(number) for number in range(1, 41)}
