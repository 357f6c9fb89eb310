"""What other commands say of a folder: it adds up, ids come out and in, a database has what the folder has."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from sequence.plays import play
from sequence_ids import IdWorld

from sanderling.sequence import system
from sanderling.sequence.options import LARGEST_ID, StoreOptions
from sanderling.sequence.retries import Reason
from sanderling.sequence.store import Missed, SavedState, SequenceBatch, SequenceStore
from sanderling.sequence.store_command import _store_folder


def followed(folder: Path) -> set[int]:
    return set(play(folder, 700, lambda clock: IdWorld(clock, back=400, holes=0.1), until=1300).counts)


def test_a_folder_adds_up_and_gives_its_ids(tmp_path: Path) -> None:
    out, file, database = tmp_path / "out", tmp_path / "ids.txt", tmp_path / "rows.db"
    stored = followed(out)

    verified = asyncio.run(system.verify(out))
    said = asyncio.run(system.move_tasks(out, None, None, file, None))
    missed = {int(line) for line in file.read_text().split()}
    counts = asyncio.run(system.count_tasks(out))
    options = StoreOptions(folder=out, database=f"sqlite:{database}")
    number = asyncio.run(_store_folder(out, options))
    asyncio.run(_store_folder(out, options))

    assert verified.faults == []
    assert verified.counts["ids"] == 301
    assert stored | missed == set(range(1000, 1301))
    assert not stored & missed
    assert said == f"{len(missed)} ids"
    assert sum(counts.values()) == len(missed)
    with closing(sqlite3.connect(database)) as db:
        assert {each for (each,) in db.execute("SELECT id FROM record")} == stored
    assert number == len(stored)


def test_ids_are_imported_once_and_not_what_is_stored_or_ahead(tmp_path: Path) -> None:
    out, file = tmp_path / "out", tmp_path / "ids.txt"
    stored = followed(out)
    first = min(set(range(1000, 1301)) - stored)
    file.write_text(f"{min(stored)}\n{first}\n{first}\nnothing\n9000\n{2**70}\n")

    said = asyncio.run(system.move_tasks(out, None, file, None, None))
    again = asyncio.run(system.move_tasks(out, f"{first}-{first}", None, None, None))

    assert said == "0 ids added; 1 are stored, 1 have not had their turn, 1 lines are no ids"
    assert again == "1 are asked again by the next run"


def test_ranges_of_missed_ids_come_apart_where_one_turns_up(tmp_path: Path) -> None:
    async def act() -> tuple[list[Missed], list[Missed], list[tuple[int, int, str]]]:
        async with SequenceStore(tmp_path) as store:
            batch = SequenceBatch(missed=[Missed(10, 10_000, Reason.GAP, 1, 0.0, 5.0)])
            await store.commit(batch, SavedState())
            skipped = [(number, "unwanted") for number in (3, 1, 2, 5)]
            await store.commit(SequenceBatch(decided=[10, 500, 10_000], skipped=skipped), SavedState())
            apart = await store.missed()
            await store.wake_around(600, 20, 0.0)
            assert await store.retry(0, LARGEST_ID, "alive") == 41
            return apart, await store.due(2.0, 10), await store.skipped()

    apart, due, skipped = asyncio.run(act())

    assert [(each.low, each.high) for each in apart] == [(11, 499), (501, 9999)]
    assert [(each.low, each.high, each.reason) for each in due] == [(580, 620, Reason.ALIVE)]
    assert skipped == [(1, 3, "unwanted"), (5, 5, "unwanted")]
