"""The demo proves what it says; only its speed and its day are made for tests."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from command_line import called
from demo_runs import DemoRun, run_small

from sanderling.cli.demos import polling as demo_polling
from sanderling.cli.demos.polling import PollingProof, differing
from sanderling.stores.documents import Column, Schema, SourceRow, SourceTable, Whole
from sanderling.worlds.race import RaceDay, RaceRules, demo
from sanderling.worlds.race_day import DayRules

SCHEMA = Schema((SourceTable("pilots", (Column("name"),)),))
PROOF = PollingProof(rows=285, differ=0, changes=308, holes=0, adds_up=True)
SHORT = DayRules(pilots=6, late=0, removed=1, rounds=2, aborted=0, first=5.0, heat=14.0, pause=10.0, lap=2.0)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> DemoRun:
    """The demo, of a shorter day and faster."""
    out = tmp_path_factory.mktemp("demo") / "out"
    return run_small("polling", out, SPEED=8.0, demo=lambda: RaceRules(SHORT))


def test_it_polls_a_race_day_and_proves_it(ran: DemoRun) -> None:
    found = ran.document

    assert (found["ok"], found["out"]) == (True, str(ran.out))
    assert found["proof"] == {**found["proof"], "differ": 0, "holes": 0, "adds_up": True}
    assert found["proof"]["rows"] > 50
    assert min(found["races"].values()) > 10, "both races were live"
    assert "with no holes, add up to the" in " ".join(ran.lines)
    assert "A simulated race day on this machine; nothing leaves it. Time passes 8x." in ran.done.err


def test_what_is_proved_is_so(ran: DemoRun) -> None:
    """Counted once more, in another way."""
    with closing(sqlite3.connect(ran.out / "polling.db")) as db:
        ((races, ended),) = db.execute("SELECT count(*), count(end_local) FROM races")
        ((laps,),) = db.execute("SELECT count(*) FROM laps")

    assert (races, ended) == (2, 2)
    assert laps > 20
    assert ran.document["proof"]["rows"] > laps
    status = called("status", str(ran.out))
    assert ("which ended" in status.out, status.code) == (True, 0)


@pytest.mark.parametrize("change", [{"differ": 1}, {"holes": 1}, {"adds_up": False}])
def test_what_is_not_right_is_not_called_right(change: dict[str, Any]) -> None:
    assert PROOF.ok
    assert not replace(PROOF, **change).ok


def test_rows_that_differ_are_lacking_or_too_many_are_counted() -> None:
    document = SCHEMA.document(
        [SourceRow("pilots", key, {"name": "Wren"}) for key in "ab"], [Whole("pilots", "name", "Wren", frozenset("ab"))]
    )

    def counted(**rows: str) -> int:
        return differing({"pilots": {key: {"name": name} for key, name in rows.items()}}, document)

    assert counted(a="Wren", b="Wren") == 0
    assert counted(a="Wren", b="Swift") == 1
    assert counted(a="Wren") == 1
    assert counted(a="Wren", b="Wren", c="Wren") == 1
    assert counted(a="Wren", b="Wren", c="Swift") == 0, "it is of another document"


def test_the_day_takes_less_than_a_minute_of_yours() -> None:
    day = RaceDay(demo_polling.SEED, demo())

    assert (day.over + demo_polling.AFTER) / demo_polling.SPEED < 50
    assert len(day.heats) == 2
