"""Memory and database in step: what is due soon is in memory, and what ran is in the database."""

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from race_polling import at_once
from scheduled import take

from sanderling.polling.adaptive import Adapter
from sanderling.polling.measures import PollingMeasures
from sanderling.polling.schedule import GRACE, Schedule
from sanderling.polling.target_sync import HORIZON, REFILL, TargetSync
from sanderling.stores.documents import Column, Schema, SourceTable
from sanderling.stores.polling import PollingStoreError, Query, Reconciliation, TargetRun, WantedTarget
from sanderling.stores.polling_store import PollingStore
from sanderling.stores.sqlite_polling import open_sqlite_polling
from sanderling.testing import FakeClock, run_virtual

SCHEMA = Schema((SourceTable("things", (Column("event"),)),))


class Shop:
    """A database, a schedule and the books between them, on a clock that is moved by hand."""

    def __init__(self, store: PollingStore, clock: FakeClock) -> None:
        self.store, self.clock = store, clock
        self.woken = 0
        self.schedule = Schedule(lambda _: "host", Random(1))
        self.schedule.active = {"race": 0.2}
        self.sync = TargetSync(store, self.schedule, Adapter(), PollingMeasures((), (), clock), clock, self._wake)

    def _wake(self) -> None:
        self.woken += 1

    async def add(self, *seconds: float) -> None:
        first = len(await self.store.known())
        found = tuple(
            WantedTarget("race", f"{first + each}", "e", None, every, 0) for each, every in enumerate(seconds)
        )
        await self.store.apply(Reconciliation(insert=found), self.clock.wall())

    def run_due(self) -> int:
        """Run what is due, in no time."""
        now, ran = self.clock.now(), 0
        while (entry := take(self.schedule, now)) is not None:
            entry.runs += 1
            self.schedule.finish(entry, now)
            self.sync.note(entry)
            ran += 1
        return ran


async def shop(folder: Path) -> Shop:
    store = await open_sqlite_polling(folder / "polling.db", SCHEMA, "test", at_once)
    clock = FakeClock()
    await store.claim(clock.wall())
    return Shop(store, clock)


def test_what_is_not_due_for_long_is_not_in_memory(tmp_path: Path) -> None:
    async def main() -> None:
        here = await shop(tmp_path)
        await here.add(0.5, 8.0, 60.0, 3600.0)
        await here.sync.turn()
        assert len(here.schedule.entries) == 4, "new ones are due at once"
        here.run_due()
        await here.sync.turn()
        kept = {entry.usual for entry in here.schedule.entries.values()}
        assert kept <= {0.5, 8.0, 60.0}
        assert 3600.0 not in kept
        await here.store.close()

    run_virtual(main())


async def disturb(here: Shop, data: st.DataObject) -> None:
    """What people may do in the meantime."""
    match data.draw(st.integers(0, 9)):
        case 0:
            await here.store.change("race", "0", {"enabled": data.draw(st.booleans())})
        case 1:
            await here.store.change("race", "0", {"set_seconds": data.draw(st.sampled_from([1.0, 50.0, None]))})
        case 2:
            await here.store.promote(Query(source_id="0"), 0.0)
        case 3:
            here.clock.set_wall(here.clock.wall() + data.draw(st.sampled_from([3600.0, -3600.0])))


async def check_memory(here: Shop) -> None:
    """What is due soon is in memory, and nothing is overdue: what is live by a quarter of its interval at most."""
    soon = here.sync.wall(here.clock.now()) + REFILL
    for target in await here.store.list(Query(enabled=True, most=100)):
        assert not target.wanted or target.next_due > soon or target.id in here.schedule.entries
    grace = {entry.id: GRACE * entry.interval if entry.live else 0.0 for entry in here.schedule.entries.values()}
    assert all(entry.at > here.clock.now() - grace[entry.id] for entry in here.schedule.entries.values())


async def check_database(here: Shop) -> None:
    """What is in the database is what memory says."""
    for target in await here.store.list(Query(enabled=True, most=100)):
        entry = here.schedule.entries.get(target.id)
        if entry is not None:
            assert target.runs == entry.runs
            assert target.next_due == pytest.approx(here.sync.wall(entry.at), abs=1e-3)
        elif target.wanted:
            assert target.next_due > here.sync.wall(here.clock.now()) + REFILL
        assert target.next_due - here.clock.wall() <= max(target.interval, HORIZON) + 1


@given(st.lists(st.sampled_from([0.2, 3.0, 12.0, 30.0, 100.0]), min_size=1, max_size=12), st.data())
@settings(max_examples=20, deadline=None)
def test_whatever_happens_memory_has_what_is_due_and_the_database_what_ran(
    tmp_path_factory: pytest.TempPathFactory, intervals: list[float], data: st.DataObject
) -> None:
    async def main() -> None:
        here = await shop(tmp_path_factory.mktemp("books"))
        await here.add(*intervals)
        for _ in range(data.draw(st.integers(1, 40))):
            here.clock.advance(data.draw(st.sampled_from([0.2, 1.0, 4.0])))
            await disturb(here, data)
            await here.sync.turn()
            here.run_due()
            await here.sync.turn()
            await check_memory(here)
        await here.sync.flush()
        await check_database(here)
        await here.store.close()

    run_virtual(main())


def test_what_could_not_be_written_is_written_later(tmp_path: Path) -> None:
    async def main() -> None:
        here = await shop(tmp_path)
        await here.add(1.0)
        await here.sync.turn()
        here.run_due()
        write = here.store.write

        async def fails(_: list[TargetRun]) -> None:
            raise PollingStoreError("the disk is full")

        here.store.write = fails  # type: ignore[method-assign, assignment]
        await here.sync.turn()
        assert here.sync.trouble == "the disk is full"
        assert here.sync.pending == 1
        here.store.write = write  # type: ignore[method-assign]
        await here.sync.turn()
        assert here.sync.trouble == ""
        assert here.sync.pending == 0
        assert (await here.store.list(Query()))[0].runs == 1
        await here.store.close()

    run_virtual(main())


def test_a_database_that_is_another_s_ends_it(tmp_path: Path) -> None:
    async def main() -> None:
        here = await shop(tmp_path)
        await here.add(1.0)

        async def fails(_: float) -> None:
            raise PollingStoreError("another process polls it", transient=False)

        here.store.take_edits = fails  # type: ignore[method-assign, assignment]
        with pytest.raises(PollingStoreError, match="another process"):
            await here.sync.turn()
        await here.store.close()

    run_virtual(main())


def test_more_than_are_loaded_at_a_time_are_all_loaded(tmp_path: Path) -> None:
    async def main() -> None:
        here = await shop(tmp_path)
        await here.add(*([5.0] * 12_000))
        await here.sync.turn()
        assert len(here.schedule.entries) == 12_000
        assert here.run_due() == 12_000
        while here.sync.pending:
            await here.sync.turn()
        targets = await here.store.list(Query(most=20_000))
        assert {target.runs for target in targets} == {1}
        await here.store.close()

    run_virtual(main())
