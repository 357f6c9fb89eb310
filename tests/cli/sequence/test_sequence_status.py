"""`sanderling sequence status`: beside a crawl, after it, and where there never was one."""

import asyncio
import json
from contextlib import closing
from pathlib import Path

import msgspec
from command_line import called, here, run, running
from sanderling.cli.published_words import document, state
from sanderling.cli.sequence.status import Kept, kept_in, words
from sanderling.sequence.status import published
from sequence_commands import asked, begin, flags, served
from sequence_statuses import STATUS, status

from sanderling.cli.sequence.place import Place
from sanderling.sequence.cursor import Position
from sanderling.sequence.missed import Missed
from sanderling.sequence.retries import Reason
from sanderling.sequence.state import Fates, Saved, SequenceState
from sanderling.stores.status_file import write_status

SAVED = Saved("bungie", Position(STATUS.next, (STATUS.cursor,)), STATUS.newest)
KEPT = Kept(api="bungie", cursor=STATUS.cursor, next=STATUS.next, open=1, newest=STATUS.newest, missed={"hidden": 3})


def begun(folder: Path, saved: Saved = SAVED) -> Place:
    """A folder in which a crawl has begun."""
    place = Place(out=folder)
    with closing(SequenceState(place.state)) as state:
        state.record(saved, Fates(missed=[Missed(10, 12, Reason.HIDDEN, 1.0, 1.0, 0, 2.0)]))
    return place


def said_of(place: Place, wall: float) -> str:
    """What is said of it at a time, in words."""
    found = published(place.out)
    return "\n".join([state(found, wall) if found else "", *words(kept_in(place), found, wall)])


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
    place = begun(tmp_path)
    write_status(tmp_path, status(running=False))

    said = said_of(place, STATUS.wall + 60)

    assert said.startswith("which ended 60 s ago\n")
    assert "all below 16,000,000,500 have their fate; the head is 5,500 ids ahead" in said
    assert "at the end  ended; all ids below 16,000,000,500 have their fate" in said
    assert "numbers  behind 5,500 ids, lag 2 min 15 s, records a second 42.0, workers 50" in said
    assert "why  catch_up: 135 s behind" in said
    assert "missed  3 ids to be asked again: 3 hidden for now" in said, "what is on disk counts"
    assert "; 1 gap skipped with 9,996 ids" in said
    assert "  08:00:50    25 -> 50   catch_up  25 workers become 50: slew" in said


def test_a_crawl_that_was_killed_is_not_taken_for_one_that_runs(tmp_path: Path) -> None:
    place = begun(tmp_path, Saved("bungie", Position(STATUS.next + 100), None))
    write_status(tmp_path, STATUS)

    said = said_of(place, STATUS.wall + 11)

    assert "which has said nothing for 11 s and is not running" in said
    assert "all below 16,000,000,610 have their fate\n" in said, "what is on disk counts"
    assert said_of(place, STATUS.wall + 9).startswith("running for ")


def test_without_a_status_there_is_what_is_on_disk(tmp_path: Path) -> None:
    place = begun(tmp_path)
    (tmp_path / "status.json").write_text("{}")

    kept, found = kept_in(place), published(tmp_path)

    assert (kept, found) == (KEPT, None)
    assert list(words(kept, found, 0.0)) == [
        "       ids  all below 16,000,000,500 have their fate",
        "    missed  3 ids to be asked again: 3 hidden for now",
    ]
    assert called("status", str(tmp_path)).out.startswith(f"The crawl in {tmp_path}:\n\n")
    shown = document(found, 0.0, kept)
    assert shown == {"running": False, "age": None, "status": None, "kept": msgspec.to_builtins(KEPT)}


def test_trouble_is_said(tmp_path: Path) -> None:
    place = begun(tmp_path)
    write_status(tmp_path, status(trouble="no broker at 127.0.0.1"))

    said = said_of(place, STATUS.wall)

    assert "trouble  the queue takes nothing: no broker at 127.0.0.1" in said
    assert "now  waiting for the queue" in said


def test_a_file_that_is_no_state_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "sequence.db").write_text("my thesis, which is no SQLite file at all")

    done = called("status", str(tmp_path))

    assert (done.code, "is damaged, or not one of ours" in done.err) == (1, True)
