"""`events mode`: which formats are processed, and how that is switched."""

import json
import os
from pathlib import Path

import pytest
from command_line import Done, called, commands
from known_reports import EVENTS, changed

from sanderling.clock import SystemClock
from sanderling.events.modes import FILE, Modes, read_modes, write_modes
from sanderling.stores.status_file import write_status


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NEW_MODE_ENABLED", "LEGACY_MODE_ENABLED"):
        monkeypatch.delenv(name, raising=False)


def mode(folder: Path, *flags: str) -> Done:
    return called("events", "mode", f"--out={folder}", *flags)


def lines(done: Done) -> dict[str, str]:
    """What is said of each mode."""
    found = (line.split(maxsplit=1) for line in done.out.splitlines() if line.startswith("  "))
    return {name: text for name, text in found}  # noqa: C416 - of two each


def test_without_a_file_it_is_said_what_a_consumer_begins_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEGACY_MODE_ENABLED", "False")

    words, document = mode(tmp_path / "out"), mode(tmp_path / "out", "--json")

    assert (words.code, words.err) == (0, "")
    assert "No modes are written in" in words.out
    assert "NEW_MODE_ENABLED and LEGACY_MODE_ENABLED of its environment" in words.out
    assert lines(words) == {"new": "on", "legacy": "off", "inline": "on", "canary": "100% of the new ones"}
    modes = {"new": True, "legacy": False, "inline": True, "canary": 1.0}
    assert json.loads(document.out) == {**modes, "written": False, "since": None}
    assert list(tmp_path.iterdir()) == []


def test_a_file_counts_and_it_is_said_since_when(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEW_MODE_ENABLED", "false")
    write_modes(tmp_path, Modes(inline=False, canary=0.25))
    os.utime(tmp_path / FILE, (1_762_000_000, 1_762_000_000))

    words, document = mode(tmp_path), mode(tmp_path, "--json")

    assert words.out.startswith(f"The modes in {tmp_path}, since 2025-11-01T12:26:40Z:\n")
    assert lines(words) == {"new": "on", "legacy": "on", "inline": "off", "canary": "25% of the new ones"}
    assert (
        "wait in the queue until this changes: 75% of those of the new format, those of the inline format" in words.out
    )
    assert json.loads(document.out)["since"] == 1_762_000_000
    assert json.loads(document.out)["written"] is True


def test_only_what_was_given_is_changed(tmp_path: Path) -> None:
    write_modes(tmp_path, Modes(legacy=False, canary=0.5))

    done = mode(tmp_path, "--no-new", "--canary", "0.1")

    assert (done.code, done.err) == (0, "")
    assert read_modes(tmp_path) == Modes(new=False, legacy=False, canary=0.1)
    changed = {"new": "on -> off", "canary": "50% -> 10% of the new ones"}
    assert lines(done) == {**changed, "legacy": "off", "inline": "on"}
    assert "those of the new format, those of the legacy format" in done.out


def test_a_rollback_and_back_leave_everything_as_it_was(tmp_path: Path) -> None:
    back_to = ("before", "now")
    there = json.loads(mode(tmp_path / "out", "--no-new", "--json").out)
    back = json.loads(mode(tmp_path / "out", "--new", "--json").out)

    assert [there[each]["new"] for each in back_to] == [True, False]
    assert [back[each]["new"] for each in back_to] == [False, True]
    assert read_modes(tmp_path / "out") == Modes()
    assert "No message waits" in mode(tmp_path / "out").out


def test_what_is_not_given_is_as_the_environment_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEGACY_MODE_ENABLED", "0")

    mode(tmp_path, "--no-inline")

    assert read_modes(tmp_path) == Modes(legacy=False, inline=False)


def test_one_that_consumes_there_knows_better_than_our_environment(tmp_path: Path) -> None:
    """It may have been started with another: a switch of one mode must not switch others."""
    wall = SystemClock().wall()
    write_status(tmp_path, changed(EVENTS, running=True, pid=4711, wall=wall, modes=Modes(legacy=False)))

    shown = mode(tmp_path)
    mode(tmp_path, "--no-new")

    assert "process 4711, which consumes there, keeps to these" in shown.out
    assert lines(shown)["legacy"] == "off"
    assert read_modes(tmp_path) == Modes(new=False, legacy=False)


def test_one_that_consumed_there_once_does_not(tmp_path: Path) -> None:
    write_status(tmp_path, changed(EVENTS, running=True, wall=SystemClock().wall() - 60, modes=Modes(legacy=False)))

    assert lines(mode(tmp_path))["legacy"] == "on"


@pytest.mark.parametrize("share", ["1.1", "-0.1", "nan", "inf"])
def test_a_share_that_is_none_changes_nothing(tmp_path: Path, share: str) -> None:
    done = mode(tmp_path / "out", f"--canary={share}")

    assert done.code == 2
    assert f"--canary is {float(share):g}, expected a share from 0 to 1" in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("share", ["0", "1"])
def test_none_and_all_are_shares(tmp_path: Path, share: str) -> None:
    assert mode(tmp_path, f"--canary={share}").code == 0
    assert read_modes(tmp_path) == Modes(canary=float(share))


@pytest.mark.parametrize("text", ["{", '{"canary": 7}', '{"newest": true}', '{"new": "\xff"}'])
def test_a_file_that_makes_no_sense_is_told_and_mended_by_who_says_all(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text, encoding="latin-1")

    shown, partly = mode(tmp_path), mode(tmp_path, "--no-new", "--canary=1")

    for done in (shown, partly):
        assert (done.code, done.out) == (1, "")
        assert f"{tmp_path / FILE}: " in done.err
        assert "keeps to the modes it had" in done.err
    assert (tmp_path / FILE).read_text(encoding="latin-1") == text
    whole = called(*shown.err.rpartition("sanderling ")[2].split())
    assert whole.code == 0
    assert lines(whole)["new"] == "unknown -> on"
    assert read_modes(tmp_path) == Modes()


def test_an_environment_that_makes_no_sense_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEW_MODE_ENABLED", "perhaps")

    done = mode(tmp_path)

    assert done.code == 2
    assert "NEW_MODE_ENABLED is 'perhaps', expected one of true, " in done.err


def test_where_nothing_can_be_written_that_is_told(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")

    done = mode(tmp_path / "out" / "below", "--new")

    assert done.code == 1
    assert "Traceback" not in done.err
    assert commands(done.err) == []
