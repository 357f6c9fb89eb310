"""The demo proves what it says; only its speed is made for tests."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from command_line import called
from demo_runs import DemoRun, run_small

from sanderling.cli.demos import sequence as demo_sequence
from sanderling.cli.demos.sequence import SequenceProof, small_game
from sanderling.worlds.game import Game
from sanderling.worlds.game_schedule import TimeSpan

PROOF = SequenceProof(live=40, raids=4, stored=3, later=1, strangers=0, twice=0, holes=9, filed=9)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> DemoRun:
    """The demo, of a shorter story and faster."""
    return run_small(
        "sequence",
        tmp_path_factory.mktemp("demo") / "out",
        SPEED=12.0,
        HISTORY=150.0,
        LOST_AT=-100.0,
        PAUSE=TimeSpan(55.0, 20.0),
        MAINTENANCE=TimeSpan(400.0, 6.0),
        END=85.0,
    )


def test_it_follows_a_game_and_proves_it(ran: DemoRun) -> None:
    found = ran.document

    assert (found["ok"], found["complete"], found["out"]) == (True, True, str(ran.out))
    assert found["proof"]["stored"] + found["proof"]["later"] == found["proof"]["raids"] > 0
    assert found["gaps"] >= 1
    assert found["proof"]["filed"] == found["proof"]["holes"] >= demo_sequence.LOST
    assert "none are lost" in " ".join(ran.lines)
    assert "A simulated game on this machine; nothing leaves it." in ran.done.err


def test_what_is_proved_is_so(ran: DemoRun) -> None:
    """Counted once more, in another way."""
    with closing(sqlite3.connect(ran.out / "rows.db")) as db:
        ((rows, distinct),) = db.execute("SELECT count(*), count(DISTINCT instance_id) FROM instance")

    assert rows == distinct >= ran.document["proof"]["stored"]
    status = called("status", str(ran.out))
    assert ("which ended" in status.out, status.code) == (True, 0)


@pytest.mark.parametrize("change", [{"stored": 2}, {"later": 0}, {"filed": 8}, {"strangers": 1}, {"twice": 1}])
def test_what_is_not_right_is_not_called_right(change: dict[str, int]) -> None:
    assert PROOF.ok
    assert not replace(PROOF, **change).ok


def test_the_game_has_what_the_story_tells() -> None:
    game = Game(small_game(), 1)

    assert len(list(game.ids(game.first, game.head(game.began) + 1))) == demo_sequence.HISTORY * demo_sequence.RATE
    (hole,) = game.rules.schedule.holes
    assert hole.size == demo_sequence.LOST
    assert not any(game.exists(number) for number in (hole.first, hole.end - 1))
    assert game.exists(hole.first - 1)
    pause = demo_sequence.PAUSE
    assert game.head(game.began + pause.start) == game.head(game.began + pause.end)
