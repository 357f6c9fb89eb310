"""`sanderling sequence status`: beside a crawl, after it, and where there never was one."""

import json
from contextlib import closing
from pathlib import Path

from command_line import called, run, running, sanderling
from sequence_commands import asked, begin, flags, served
from sequence_statuses import STATUS, status

from sanderling.cli.sequence_place import Place
from sanderling.cli.sequence_status import Known, look, words
from sanderling.sequence.cursor import Position
from sanderling.sequence.missed import Missed
from sanderling.sequence.retries import Reason
from sanderling.sequence.state import Fates, Saved, SequenceState
from sanderling.sequence.status import publish

SAVED = Saved("bungie", Position(STATUS.next, (STATUS.cursor,)), STATUS.newest)
KEYS = ["running", "age", "api", "cursor", "next", "open", "newest", "missed", "status"]


def begun(folder: Path, saved: Saved = SAVED) -> Place:
    """A folder in which a crawl has begun."""
    place = Place(out=folder)
    with closing(SequenceState(place.state)) as state:
        state.record(saved, Fates(missed=[Missed(10, 12, Reason.HIDDEN, 1.0, 1.0, 0, 2.0)]))
    return place


def test_where_nothing_has_begun_it_says_so(tmp_path: Path) -> None:
    said = called("sequence", "status", "--out", str(tmp_path / "none"))
    shown = called("sequence", "status", "--out", str(tmp_path / "none"), "--json")

    assert (said.code, said.out) == (0, f"No crawl of ids has begun in {tmp_path / 'none'}.\n")
    assert list(json.loads(shown.out)) == KEYS
    assert not (tmp_path / "none").exists(), "nothing is made"


def test_beside_a_crawl_it_says_how_that_stands(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            served() as server,
            running("sequence", "crawl", *flags(tmp_path, server), *begin(server)) as process,
        ):
            await asked(server, 8)
            shown: dict[str, object] = {}
            while not shown.get("status"):
                done = await sanderling("sequence", "status", "--out", str(tmp_path / "out"), "--json")
                assert done.code == 0, done.err
                shown = json.loads(done.out)
            said = await sanderling("sequence", "status", "--out", str(tmp_path / "out"))

        assert shown["running"]
        assert "running for 0:0" in said.out
        assert f"as process {process.pid}" in said.out
        assert "25, " in said.out

    run(main)


def test_after_a_crawl_it_says_how_that_ended(tmp_path: Path) -> None:
    place = begun(tmp_path)
    publish(tmp_path, status(running=False))

    said = "\n".join(words(look(place, STATUS.wall + 60), "there"))

    assert said.startswith("The crawl in there, which ended 60 s ago:\n")
    assert "all below 16,000,000,500 have their fate; the head is 5,500 ids ahead" in said
    assert "was catching up" in said
    assert "lag  2 min 15 s; P20 of the last period 2 min 20 s" in said
    assert "why  catch_up: 135 s behind" in said
    assert "missed  3 ids to be asked again: 3 hidden for now" in said, "what is on disk counts"
    assert "gaps  1 skipped, 9,996 ids" in said
    assert "  08:00:50    25 -> 50   catch_up  25 workers become 50: slew" in said


def test_a_crawl_that_was_killed_is_not_taken_for_one_that_runs(tmp_path: Path) -> None:
    place = begun(tmp_path, Saved("bungie", Position(STATUS.next + 100), None))
    publish(tmp_path, STATUS)

    known = look(place, STATUS.wall + 11)
    said = "\n".join(words(known, "there"))

    assert not known.running
    assert "which has said nothing since 11 s ago and is not running" in said
    assert "all below 16,000,000,610 have their fate\n" in said, "what is on disk counts"
    assert look(place, STATUS.wall + 9).running


def test_a_clock_that_is_ahead_does_no_harm(tmp_path: Path) -> None:
    place = begun(tmp_path)
    publish(tmp_path, STATUS)

    assert look(place, STATUS.wall - 100).age == 0


def test_without_a_status_there_is_what_is_on_disk(tmp_path: Path) -> None:
    place = begun(tmp_path)
    (tmp_path / "status.json").write_text("{}")

    known = look(place, 0.0)

    assert known == Known(SAVED, {"hidden": 3}, None, None)
    assert list(words(known, "there")) == [
        "The crawl in there:",
        "",
        "       ids  all below 16,000,000,500 have their fate",
        "    missed  3 ids to be asked again: 3 hidden for now",
    ]
    shown = known.as_json()
    assert list(shown) == KEYS
    assert (shown["cursor"], shown["next"], shown["open"]) == (STATUS.cursor, STATUS.next, 1)


def test_trouble_is_said(tmp_path: Path) -> None:
    place = begun(tmp_path)
    publish(tmp_path, status(trouble="no broker at 127.0.0.1"))

    said = "\n".join(words(look(place, STATUS.wall), "there"))

    assert "queue  takes nothing: no broker at 127.0.0.1" in said
    assert "doing  waiting for the queue" in said


def test_a_file_that_is_no_state_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "sequence.db").write_text("my thesis, which is no SQLite file at all")

    done = called("sequence", "status", "--out", str(tmp_path))

    assert (done.code, "is damaged, or not one of ours" in done.err) == (1, True)
