"""The demo proves what it says; only its speed is made for tests."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import Done, called, commands
from known_reports import SEQUENCE
from terminals import interrupted

from sanderling.cli.demos import sequence as demo_sequence
from sanderling.cli.demos.sequence import Proof, Story, small_game
from sanderling.cli.running import Ran
from sanderling.worlds.game import Game
from sanderling.worlds.game_schedule import TimeSpan

PROOF = Proof(live=40, raids=4, stored=3, later=1, strangers=0, twice=0, holes=9, filed=9)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """The demo, of a shorter story and faster."""
    out = tmp_path_factory.mktemp("demo") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo_sequence, "SPEED", 12.0)
        patch.setattr(demo_sequence, "HISTORY", 150.0)
        patch.setattr(demo_sequence, "LOST_AT", -100.0)
        patch.setattr(demo_sequence, "PAUSE", TimeSpan(55.0, 20.0))
        patch.setattr(demo_sequence, "MAINTENANCE", TimeSpan(400.0, 6.0))
        patch.setattr(demo_sequence, "END", 85.0)
        return out, called("demo", "sequence", "--out", str(out), "--json")


def test_it_follows_a_game_and_proves_it(told: tuple[Path, Done]) -> None:
    out, done = told
    found = json.loads(done.out)

    assert done.code == 0, done.err
    assert (found["ok"], found["complete"], found["out"]) == (True, True, str(out))
    assert found["proof"]["stored"] + found["proof"]["later"] == found["proof"]["raids"] > 0
    assert found["gaps"] >= 1
    assert found["proof"]["filed"] == found["proof"]["holes"] >= demo_sequence.LOST
    assert "A simulated game on this machine; nothing leaves it." in done.err


def test_what_is_proved_is_so(told: tuple[Path, Done]) -> None:
    """Counted once more, in another way."""
    out, done = told
    with closing(sqlite3.connect(out / "rows.db")) as db:
        ((rows, distinct),) = db.execute("SELECT count(*), count(DISTINCT instance_id) FROM instance")

    assert rows == distinct >= json.loads(done.out)["proof"]["stored"]
    status = called("status", str(out))
    assert ("which ended" in status.out, status.code) == (True, 0)


def test_it_removes_what_an_earlier_one_left_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")

    done = called("demo", "sequence", "--out", str(tmp_path))

    assert done.code == 2
    assert "was not made by this demo, so it is left alone" in done.err
    assert (tmp_path / "thesis.txt").read_text() == "mine"


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


def test_ctrl_c_ends_it_early_with_what_there_is(tmp_path: Path) -> None:
    done = interrupted(
        "demo",
        "sequence",
        "--out",
        "demo",
        at="catching up",
        last="sanderling world game",
        cwd=tmp_path,
        columns=90,
        lines=30,
    )

    assert (done.code, done.errors) == (130, b"")
    assert "Ended early" in done.text
    assert "none are lost" in done.text


def test_the_commands_to_try_next_fit_a_terminal() -> None:
    game = Game(small_game(), 1)
    story = Story(Ran(SEQUENCE), PROOF, game.tally, game)

    shown = [line for line in story.words(demo_sequence.OUT) if line.startswith("    sanderling")]

    named = [["status", "sanderling-demo-sequence"], ["sequence", "missed"], ["world", "game"]]
    assert [command[:2] for command in commands("\n".join(shown))] == named
    assert max(map(len, shown)) <= 80
