"""`sequence missed list`, `retry` and `export`: what is said, asked again and written, beside a crawl."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from command_line import called, commands
from sequence_missing import FAR, ids, missed, under_way

from sanderling.apis.numbered import LARGEST_ID
from sanderling.cli.sequence import missed as sequence_missed
from sanderling.clock import SystemClock
from sanderling.sequence.retries import OFFLOAD, Missed, Reason
from sanderling.sequence.state import Fates, Hurry, SequenceState


@pytest.fixture
def state(tmp_path: Path) -> Iterator[SequenceState]:
    with under_way(tmp_path / "out") as opened:
        yield opened


@pytest.fixture
def out(tmp_path: Path) -> str:
    return f"--out={tmp_path / 'out'}"


# list


@pytest.mark.usefixtures("state")
def test_list_says_what_is_missed_and_why(out: str) -> None:
    done = called("sequence", "missed", "list", out)

    assert (done.code, done.err) == (0, "")
    for words in ("misses 2,002 ids, in 3 ranges:", "2,000  in gaps (gap)", "1  hidden for now (hidden)", "1000-2999"):
        assert words in done.out
    (row,) = (line for line in done.out.splitlines() if line.startswith("  1000-2999"))
    assert row.split()[:6] == ["1000-2999", "2,000", "gap", "3", "2", "h"]
    assert commands(done.out) == [["sequence", "missed", "retry", *out.split("=")]]


def test_list_as_json_has_one_object_per_range(state: SequenceState, out: str) -> None:
    done = called("sequence", "missed", "list", out, "--json")

    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [(row["low"], row["high"], row["reason"], row["ids"]) for row in rows] == [
        (5, 5, "not_found", 1),
        (7, 7, "hidden", 1),
        (1000, 2999, "gap", 2000),
    ]
    assert rows[0].keys() == {"low", "high", "reason", "first_seen", "last_seen", "tries", "next_check", "ids"}
    assert len(state.missed()) == 3


@pytest.mark.parametrize("spelled", ["not_found", "not-found"])
@pytest.mark.usefixtures("state")
def test_list_of_one_reason(out: str, spelled: str) -> None:
    done = called("sequence", "missed", "list", out, "--reason", spelled, "--json")

    assert [json.loads(line)["low"] for line in done.out.splitlines()] == [5]
    assert "No id is missed as error" in called("sequence", "missed", "list", out, "--reason=error").out


def test_a_long_list_is_cut_and_says_so(state: SequenceState, out: str) -> None:
    state.change(Fates(missed=[missed(number) for number in range(10_000, 10_100, 2)]))

    assert "and 33 ranges more: see --limit" in called("sequence", "missed", "list", out).out
    assert "and 51 ranges more" in called("sequence", "missed", "list", out, "--limit=2").out
    assert "more" not in called("sequence", "missed", "list", out, "--limit=99").out
    assert len(called("sequence", "missed", "list", out, "--json", "--limit=2").out.splitlines()) == 2
    assert len(called("sequence", "missed", "list", out, "--json").out.splitlines()) == 53


def test_what_is_due_is_due_now(state: SequenceState, out: str) -> None:
    state.hasten(Hurry(SystemClock().wall(), 5, 5))

    lines = called("sequence", "missed", "list", out).out.splitlines()
    assert [line.split()[-1] for line in lines if line.startswith("  5 ")] == ["now"]


@pytest.mark.parametrize("command", [["list"], ["retry"], ["export", "-"]])
def test_where_no_crawl_has_begun_nothing_is_made(tmp_path: Path, command: list[str]) -> None:
    done = called("sequence", "missed", *command, f"--out={tmp_path / 'none'}")

    assert (done.code, done.out) == (2, "")
    assert "no crawl of ids has begun in" in done.err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("command", [["list"], ["retry"], ["export", "-"], ["import", "/dev/null"]])
def test_a_file_that_is_none_of_ours_is_left_alone(tmp_path: Path, command: list[str]) -> None:
    path = tmp_path / "out" / "sequence.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE diary (day TEXT)")
    before = path.read_bytes()

    done = called("sequence", "missed", *command, f"--out={path.parent}")

    assert done.code == 1
    assert "is no state of a crawl of ids" in done.err
    assert path.read_bytes() == before


def test_the_numbers_of_a_list_and_its_rows_are_of_one_moment(
    state: SequenceState, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranges = sequence_missed._ranges

    def interrupted(db: sqlite3.Connection, reason: Reason | None) -> Iterator[Missed]:
        state.change(Fates(gone=[(0, 9999)]))
        return ranges(db, reason)

    monkeypatch.setattr(sequence_missed, "_ranges", interrupted)

    told = called("sequence", "missed", "list", out).out
    assert "misses 2,002 ids, in 3 ranges:" in told
    assert "  1000-2999  " in told
    assert called("sequence", "missed", "list", out).out.startswith("Nothing is missed in ")


# retry


def test_retry_makes_all_due_at_once(state: SequenceState, out: str) -> None:
    done = called("sequence", "missed", "retry", out)

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("2,002 missed ids due at once")
    assert sum(map(len, state.due(SystemClock().wall(), 10, failed=False))) == 2002
    assert state.missed()[2].reason is Reason.GAP  # so that a sample will do


def test_retry_of_some(state: SequenceState, out: str) -> None:
    done = called("sequence", "missed", "retry", out, "--from=6", "--to=1009", "--reason=gap", "--json")

    assert json.loads(done.out) == {"asked": 10}
    assert [(each.low, each.high) for each in state.due(SystemClock().wall(), 10, failed=False)] == [(1000, 1009)]


def test_retry_of_every_id(state: SequenceState, out: str) -> None:
    assert "each of them" in called("sequence", "missed", "retry", out, "--from=2990", "--every").out
    due = state.due(SystemClock().wall(), 10, failed=False)
    assert [(each.low, each.reason) for each in due] == [(2990, Reason.ALIVE)]


def test_retry_of_nothing_says_so(state: SequenceState, out: str) -> None:
    done = called("sequence", "missed", "retry", out, "--from=8", "--to=999")

    assert (done.code, done.out[:21]) == (0, "No such id is missed ")
    assert state.due(SystemClock().wall(), 10, failed=False) == []


@pytest.mark.parametrize("wrong", [["--from=9", "--to=8"], ["--from=-1"], [f"--to={LARGEST_ID + 1}"], ["--reason=bad"]])
def test_retry_that_makes_no_sense_is_refused(state: SequenceState, out: str, wrong: list[str]) -> None:
    assert called("sequence", "missed", "retry", out, *wrong).code == 2
    assert state.due(SystemClock().wall(), 10, failed=False) == []


def test_retry_takes_the_crawl_its_turn_for_a_few_ranges_at_a_time(
    state: SequenceState, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sequence_missed, "PAGE", 3)
    state.change(Fates(missed=[missed(number) for number in range(10_000, 10_050, 2)]))

    done = called("sequence", "missed", "retry", out, "--from=1500", "--to=10030", "--json")

    assert json.loads(done.out) == {"asked": 1500 + 16}
    assert [each.low for each in state.due(SystemClock().wall(), 99, failed=False)] == [1500, *range(10_000, 10_031, 2)]


# export


@pytest.mark.usefixtures("state")
def test_export_writes_one_id_to_a_line(tmp_path: Path, out: str) -> None:
    done = called("sequence", "missed", "export", str(tmp_path / "ids.txt"), out)

    assert (done.code, done.out) == (0, f"2,002 missed ids written to {tmp_path / 'ids.txt'}.\n")
    assert (tmp_path / "ids.txt").read_text().split() == ["5", "7", *map(str, range(1000, 3000))]


@pytest.mark.usefixtures("state")
def test_export_to_the_output_writes_nothing_else_there(out: str) -> None:
    assert called("sequence", "missed", "export", "-", out, "--ranges").out == "5-5\n7-7\n1000-2999\n"
    assert called("sequence", "missed", "export", "-", out, "--reason=hidden").out == "7\n"


def test_export_of_a_range_larger_than_the_memory_flows(state: SequenceState, out: str) -> None:
    state.change(Fates(missed=[missed(10**6, 10**12, Reason.GAP)]))
    command = [sys.executable, "-m", "sanderling", "sequence", "missed", "export", "-", out]

    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:  # noqa: S603 - ours
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(200_000)]
        child.stdout.close()
        child.wait(300)

    assert lines[2002] == b"1000000\n"
    assert lines[-1] == b"1197997\n"


def test_export_is_of_one_moment(state: SequenceState, out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crawl that joins or splits ranges meanwhile makes no id appear twice or not at all."""
    state.change(Fates(missed=[missed(number, reason=Reason.ERROR) for number in range(10_000, 10_900)]))
    before = ids(state)
    lines = sequence_missed._lines

    def interrupted(each: Missed, *, ranges: bool) -> Iterator[tuple[str, int]]:
        if each.low == 10_450:
            old = [Missed(n, n, Reason.ERROR, 0, 0, OFFLOAD + 1, FAR) for n in range(10_400, 10_700)]
            state.change(Fates(gone=[(7, 7), (10_800, 10_899)], missed=old))
        yield from lines(each, ranges=ranges)

    monkeypatch.setattr(sequence_missed, "_lines", interrupted)

    assert [int(line) for line in called("sequence", "missed", "export", "-", out).out.split()] == before
    assert ids(state) != before


@pytest.mark.usefixtures("state")
def test_export_to_where_nothing_can_be_written_says_so(tmp_path: Path, out: str) -> None:
    done = called("sequence", "missed", "export", str(tmp_path / "no" / "such" / "folder"), out)

    assert done.code == 1
    assert "cannot use" in done.err
