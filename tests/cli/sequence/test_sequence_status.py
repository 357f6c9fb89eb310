"""`sanderling sequence status`: beside a crawl, after it, and where there never was one."""

import asyncio
import json
from contextlib import closing
from pathlib import Path

from command_line import called, here, run, running
from known_reports import SEQUENCE, SEQUENCE_FACTS, put, sequence
from sequence_commands import asked, begin, flags, served

from sanderling.cli.sequence.place import SequenceFolder
from sanderling.clock import SystemClock
from sanderling.sequence.cursor import Position
from sanderling.sequence.retries import Missed, Reason
from sanderling.sequence.state import Fates, SavedCrawl, SequenceState

NEXT = SEQUENCE_FACTS.cursor + 10
SAVED = SavedCrawl("bungie", Position(NEXT, (SEQUENCE_FACTS.cursor,)), SEQUENCE_FACTS.newest)


def begun(folder: Path, saved: SavedCrawl = SAVED) -> SequenceFolder:
    """A folder in which a crawl has begun."""
    place = SequenceFolder(out=folder)
    with closing(SequenceState(place.state)) as state:
        state.record(saved, Fates(missed=[Missed(10, 12, Reason.HIDDEN, 1.0, 1.0, 0, 2.0)]))
    return place


def test_where_nothing_has_begun_it_says_so(tmp_path: Path) -> None:
    done = called("status", str(tmp_path / "none"))

    assert (done.code, done.out) == (2, "")
    assert f"there is no folder {tmp_path / 'none'}" in done.err
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
                await asyncio.sleep(0.1)
                done = await here("status", str(tmp_path / "out"), "--json")
                shown = json.loads(done.out) if done.code == 0 else {}
            said = await here("status", str(tmp_path / "out"))

        assert shown["running"]
        assert "running for 0:" in said.out
        assert f"as process {process.pid}" in said.out
        assert "25, " in said.out

    run(main)


def test_after_a_crawl_it_says_how_that_ended(tmp_path: Path) -> None:
    begun(tmp_path)
    put(tmp_path, sequence(running=False), SystemClock().wall() - 60)

    said = called("status", str(tmp_path)).out

    assert "which ended 60 s ago:\n" in said or "which ended 61 s ago:\n" in said
    assert "       ids  all below 16,000,000,500 have their fate\n" in said
    assert "at the end  ended; all ids below 16,000,000,500 have their fate" in said
    assert "numbers  behind 5,500 ids, lag 2 min 15 s, records a second 42.0, workers 50" in said
    assert "why  catch_up: 135 s behind" in said
    assert "missed  3 ids to be asked again: 3 hidden for now" in said, "what is on disk counts"
    assert "25 workers become 50: 5 min behind" in said


def test_a_crawl_that_was_killed_is_not_taken_for_one_that_runs(tmp_path: Path) -> None:
    begun(tmp_path, SavedCrawl("bungie", Position(NEXT + 100), None))
    put(tmp_path, SEQUENCE, SystemClock().wall() - 11)

    said = called("status", str(tmp_path)).out

    assert "which has said nothing for 11 s and is not running" in said
    assert "all below 16,000,000,610 have their fate\n" in said, "what is on disk counts"


def test_without_a_report_there_is_what_is_on_disk(tmp_path: Path) -> None:
    begun(tmp_path)
    kept = {"api": "bungie", "cursor": SEQUENCE_FACTS.cursor, "next": NEXT, "open": 1, "newest": SEQUENCE_FACTS.newest}

    assert called("status", str(tmp_path)).out == (
        f"The crawl in {tmp_path}:\n\n"
        "       ids  all below 16,000,000,500 have their fate\n"
        "    missed  3 ids to be asked again: 3 hidden for now\n"
    )
    shown = json.loads(called("status", str(tmp_path), "--json").out)
    assert shown == {"running": False, "age": None, "status": None, "kept": kept | {"missed": {"hidden": 3}}}


def test_a_file_that_is_no_state_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "sequence.db").write_text("my thesis, which is no SQLite file at all")

    done = called("status", str(tmp_path))

    assert (done.code, "is damaged, or not one of ours" in done.err) == (1, True)
