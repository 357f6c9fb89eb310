"""The demo proves what it says; only its speed and its day are made for tests."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import Done, called, commands
from known_reports import POLLING
from terminals import interrupted

from sanderling.cli.demos import polling as demo_polling
from sanderling.cli.demos.polling import Proof, Story, differing
from sanderling.cli.running import Ran
from sanderling.stores.documents import Column, Schema, SourceRow, SourceTable, Whole
from sanderling.worlds.race import RaceDay, RaceRules, demo
from sanderling.worlds.race_day import DayRules

SCHEMA = Schema((SourceTable("pilots", (Column("name"),)),))
PROOF = Proof(rows=285, differ=0, changes=308, holes=0, adds_up=True)
SHORT = DayRules(pilots=6, late=0, removed=1, rounds=2, aborted=0, first=5.0, heat=14.0, pause=10.0, lap=2.0)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """The demo, of a shorter day and faster."""
    out = tmp_path_factory.mktemp("demo") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo_polling, "SPEED", 8.0)
        patch.setattr(demo_polling, "demo", lambda: RaceRules(SHORT))
        return out, called("demo", "polling", "--out", str(out), "--json")


def test_it_polls_a_race_day_and_proves_it(told: tuple[Path, Done]) -> None:
    out, done = told
    found = json.loads(done.out)

    assert done.code == 0, done.err
    assert (found["ok"], found["out"]) == (True, str(out))
    assert found["proof"] == {**found["proof"], "differ": 0, "holes": 0, "adds_up": True}
    assert found["proof"]["rows"] > 50
    assert min(found["races"].values()) > 10, "both races were live"
    assert "A simulated race day on this machine; nothing leaves it. Time passes 8x." in done.err


def test_what_is_proved_is_so(told: tuple[Path, Done]) -> None:
    """Counted once more, in another way."""
    out, done = told
    with closing(sqlite3.connect(out / "polling.db")) as db:
        ((races, ended),) = db.execute("SELECT count(*), count(end_local) FROM races")
        ((laps,),) = db.execute("SELECT count(*) FROM laps")

    assert (races, ended) == (2, 2)
    assert laps > 20
    assert json.loads(done.out)["proof"]["rows"] > laps
    status = called("status", str(out))
    assert ("which ended" in status.out, status.code) == (True, 0)


def test_it_removes_what_an_earlier_one_left_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")

    done = called("demo", "polling", "--out", str(tmp_path))

    assert done.code == 2
    assert "was not made by this demo, so it is left alone" in done.err
    assert (tmp_path / "thesis.txt").read_text() == "mine"


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


def test_ctrl_c_ends_it_early_with_what_there_is(tmp_path: Path) -> None:
    done = interrupted(
        "demo",
        "polling",
        "--out",
        "demo",
        at="none of them live",
        last="sanderling world race",
        cwd=tmp_path,
        columns=90,
        lines=30,
    )

    assert (done.code, done.errors) == (130, b"")
    assert "Ended early" in done.text
    assert "with no holes" in done.text


def test_the_commands_to_try_next_fit_a_terminal() -> None:
    day = RaceDay(1, demo())
    story = Story(Ran(POLLING), {}, PROOF, day.tally, day)

    shown = [line for line in story.words(demo_polling.OUT) if line.startswith("    sanderling")]

    named = [["polling", "targets"], ["polling", "settings"], ["world", "race"]]
    assert [command[:2] for command in commands("\n".join(shown))] == named
    assert max(map(len, shown)) <= 80
