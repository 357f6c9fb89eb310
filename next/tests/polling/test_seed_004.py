"""What docs/seeds.md says of seed 004 can be typed, requested or found in the tables, with its default."""

import re
import sqlite3
from pathlib import Path

import pytest
from polling.race_day import RaceDay

from sanderling.cli.parse import parse
from sanderling.observe.metrics import metric_name
from sanderling.observe.report import Kind
from sanderling.polling.api import Api
from sanderling.polling.feed import Feed
from sanderling.polling.options import PollingOptions
from sanderling.polling.report import make_report
from sanderling.polling.scheduler import Scheduler
from sanderling.polling.settings import Settings
from sanderling.polling.tables import TARGET_TYPES, statements
from sanderling.serving import Streams

ROWS = [
    line.strip("|").split("|")
    for line in (Path(__file__).parents[2] / "docs" / "seeds.md").read_text().partition("## Seed 004")[2].splitlines()
    if line.startswith("| 4.")
]


def known() -> set[str]:
    day = RaceDay()
    feed = Feed(day.store, day.clock)
    facts = make_report(day.scheduler, feed, "h", "u", "o", 0.0, targets=0, running=True).facts
    base = sqlite3.connect(":memory:")
    for each in statements("sqlite"):
        base.execute(each)
    tables = ("ingest_targets", "server_settings")
    every = PollingOptions.fields.values()
    return {
        *(f"{table}.{row[1]}" for table in tables for row in base.execute(f"PRAGMA table_info({table})")),
        *(f"index {name}" for (name,) in base.execute("SELECT name FROM sqlite_schema WHERE type = 'index'")),
        *(f"type {each}" for each in TARGET_TYPES),
        *(f"{key} = {value}" for key, value in Settings().rows().items()),
        *(f"-{flag}={each.show(each.default)}" for each in every for flag in each.flags),
        *(f"--{each.key}" for each in every),
        *(f"Scheduler.{name}" for name in dir(Scheduler)),
        *(f"{each.method} {each.path}" for each in Api(day.scheduler, feed, Streams()).routes()),
        *(
            metric_name("polling", each).removeprefix("sanderling_").replace("_", ".", 1)
            + "_total" * (each.kind is Kind.COUNT)
            for each in facts
        ),
    }


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip())
def test_what_a_row_names_exists(row: list[str]) -> None:
    named = re.findall(r"`([^`]*)`", row[1])

    assert named
    assert set(named) <= known()


def test_each_row_is_there() -> None:
    found = {number for row in ROWS for number in re.findall(r"4\.(\d+)", row[0])}
    assert found >= {str(number) for number in range(1, 37)}


def test_the_flags_of_the_seed_can_be_typed_as_it_types_them() -> None:
    words = (
        "http://localhost:8080 --out x -ingest-full-interval=3s -ingest-race-active=100ms -ingest-race-idle=5s"
        " -ingest-results-interval=2s -ingest-concurrency=1 -ingest-burst=2 -ingest-enabled=false"
    )
    typed = parse(words.split(), PollingOptions.fields)

    assert typed["enabled"].raw == "false"
    assert {"full_interval", "race_active", "race_idle", "results_interval", "concurrency", "burst"} <= typed.keys()
