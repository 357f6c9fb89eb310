"""What is requested not for the first time: visits, retries, and what people are told of it."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from time import process_time

from sequence.plays import InlineFile, play
from sequence_ids import IdWorld

from sanderling.files import Exit
from sanderling.records.rows import RowReader
from sanderling.sequence import system
from sanderling.sequence.database import SqliteRecords
from sanderling.sequence.options import SequenceOptions
from sanderling.sequence.retries import Reason
from sanderling.sequence.store import (
    ROWS,
    KeptRecord,
    Missed,
    SavedState,
    SequenceBatch,
    SequenceStore,
    key_of,
)
from sanderling.sequence.targets import QueueTarget, read_message
from sanderling.stores.rabbitmq import OutgoingMessage


class Written:
    """A place that remembers."""

    def __init__(self) -> None:
        self.records: list[KeptRecord] = []

    async def write(self, records: Sequence[KeptRecord]) -> None:
        self.records += records


def test_visits_find_what_changed_and_what_was_deleted(tmp_path: Path) -> None:
    place = Written()

    def make(clock: object) -> IdWorld:
        return IdWorld(clock, back=60, rates=((0, 0.0),), edited=0.3, deleted=0.2)  # type: ignore[arg-type]

    played = play(tmp_path, 4400, make, revisit="600s,4000s", targets=(place,))

    world = played.world
    deleted = {n for n in range(1000, 1060) if world.chance(n, "deleted") < 0.2}
    edited = {n for n in range(1000, 1060) if world.chance(n, "edited") < 0.3} - deleted
    with RowReader(tmp_path, ROWS, played.run.state.files) as rows:
        newest = {n: rows.find(key_of(n))[-1] for n in range(1000, 1060)}
    assert {n for n, entry in newest.items() if not entry.lines} == deleted
    assert {n for n, entry in newest.items() if entry.lines and b"anew" in entry.content} == edited
    assert {entry.run for n, entry in newest.items() if n in deleted | edited} == {3}
    assert {(each.number, bool(each.line)) for each in place.records if each.visit} == {
        *((n, True) for n in edited), *((n, False) for n in deleted),
    }  # fmt: skip
    assert (played.run.figures.changed, played.run.figures.deleted) == (len(edited), len(deleted))
    assert played.run.figures.visited == 120
    verified = asyncio.run(system.verify(tmp_path))
    assert verified.faults == []
    assert verified.counts["deleted"] == len(deleted)
    assert asyncio.run(system.show(tmp_path, str(min(deleted)))).said == "it was deleted"


class HeardQueue:
    """A RabbitMQ that remembers what is published."""

    def __init__(self) -> None:
        self.sent: dict[str, list[OutgoingMessage]] = {}

    async def publish(self, to: str, messages: Sequence[OutgoingMessage], exchange: str = "") -> None:
        self.sent.setdefault(to, []).extend(messages)


def test_records_and_refused_ids_are_published_once(tmp_path: Path) -> None:
    queue = HeardQueue()
    target = QueueTarget(queue, SequenceOptions(out=tmp_path), game=False)  # type: ignore[arg-type]

    played = play(
        tmp_path, 900, lambda clock: IdWorld(clock, back=200, rates=((0, 0),), refused=0.02), targets=(target,)
    )

    refused = sorted(n for n in range(1000, 1200) if played.world.chance(n, "refused") < 0.02)
    stored = [read_message(each.body) for each in queue.sent["InstanceStore"]]
    assert sorted(each.number for each, _ in stored) == sorted(played.counts)
    assert not any(game or each.visit for each, game in stored)
    assert sorted(int(each.body) for each in queue.sent["InstanceRetry"]) == refused
    assert all(each.headers["x-due"] > 1e12 for each in queue.sent["InstanceRetry"])


def test_a_database_has_the_newest_state_and_a_tombstone(tmp_path: Path) -> None:
    async def act() -> list[tuple[object, ...]]:
        async with SqliteRecords(tmp_path / "rows.db", game=False, raw=False) as database:
            await database.write([KeptRecord(1, b'"a"'), KeptRecord(2, b'"b"'), KeptRecord(3, b'"c"')])
            await database.write([KeptRecord(1, b'"A"', 1), KeptRecord(2, b"", 1), KeptRecord(3, b'"c"')])
            assert await database.latest() == 3
            db = database._file.db
            return [tuple(db.execute(f"SELECT * FROM {name} ORDER BY 1")) for name in ("record", "tombstone")]

    assert asyncio.run(act()) == [((1, '"A"'), (3, '"c"')), ((2, 1),)]


def test_a_new_shape_is_said_once_and_nothing_is_lost(tmp_path: Path) -> None:
    played = play(
        tmp_path, 3000, lambda clock: IdWorld(clock, back=50, rates=((0, 2),), troubles=((300, 900, "shape"),))
    )

    assert [each.title for each in played.alerts].count("The API has changed its records") == 1
    assert not played.run.health.shape_trouble
    assert set(played.counts) >= played.world.due(2900)


def test_an_id_that_stays_missing_is_told_of(tmp_path: Path) -> None:
    played = play(tmp_path, 1500, lambda clock: IdWorld(clock, back=300, rates=((0, 0),), holes=0.1))

    titles = [each.title for each in played.alerts]
    assert titles[0] == "Starting up..."
    assert "Unresolved Instance (Warning)" in titles
    assert titles.count("Unresolved Instance (Warning)") + titles.count("Unresolved Instance") <= 1500 / 60


def test_one_of_a_million_missed_ids_turns_up_within_10_ms(tmp_path: Path) -> None:
    async def act() -> float:
        store = SequenceStore(tmp_path)
        store.file = InlineFile(store.file.path, store.file._application)
        async with store:
            missed = [Missed(n, n, Reason.NOT_FOUND, 9, 0.0, 1e12) for n in range(0, 2_000_000, 2)]
            await store.commit(SequenceBatch(missed=missed), SavedState())
            best = 1.0
            for number in range(500_000, 500_020, 2):
                begun = process_time()
                assert not await store.due(1e9, 400)
                await store.commit(SequenceBatch(decided=[number]), store.state)
                counts = await store.count_missed()
                best = min(best, process_time() - begun)
            assert counts == {(Reason.NOT_FOUND, False): 1_000_000 - 10}
            return best

    assert asyncio.run(act()) <= 0.010


def test_from_latest_goes_on_there_and_leaves_nothing_out(tmp_path: Path) -> None:
    def make(clock: object) -> IdWorld:
        return IdWorld(clock, back=3000, rates=((0, 0.0),))  # type: ignore[arg-type]

    first = play(tmp_path, 60, make, until=1099)
    assert first.exit is Exit.DONE
    missed = system_from_latest(tmp_path, 3500)
    again = play(tmp_path, 4000, make)

    assert missed == [(1100, 3399)]
    assert (
        min(int(json.loads(line)["id"]) for line in (tmp_path / "records.jsonl").read_text().splitlines()[100:]) >= 1100
    )
    assert set(again.counts) >= set(range(3400, 4000))


def system_from_latest(folder: Path, latest: int) -> list[tuple[int, int]]:
    """As a start with --from-latest does it, where a database's latest id is this one."""
    from sanderling.clock import FakeClock
    from sanderling.sequence.opening import _begin
    from sanderling.sequence.options import SequenceOptions

    async def act() -> list[tuple[int, int]]:
        async with SequenceStore(folder) as store:
            options = SequenceOptions(out=folder, from_latest=True, buffer=100)
            state, batch = _begin(options, store.state, latest, FakeClock())
            await store.commit(batch, state)
            return [(each.low, each.high) for each in batch.missed]

    return asyncio.run(act())
