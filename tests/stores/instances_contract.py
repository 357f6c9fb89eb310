"""What every store of instances promises."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import storing
from hypothesis import given, settings
from hypothesis import strategies as st
from killed import killed
from looping import in_loop
from msgspec import Raw
from raids import ACTIVITY, EPOCH, SOME_RAIDS, letter, member, players_of, raid, rows, stats_of, usual
from storing import BATCH, store_letters

from sanderling.clock import SystemClock
from sanderling.formats.instance import Instance, Message
from sanderling.stores.instance_stats import StatsRow
from sanderling.stores.instances import (
    CharacterRow,
    InsertResult,
    InstanceCounts,
    InstancePlayerRow,
    InstanceRow,
    InstanceRows,
    Instances,
    InstancesError,
    InstancesFault,
    PlayerRow,
    RawRow,
    WeaponRow,
)
from sanderling.stores.queue import Depth
from sanderling.stores.sqlite_queue import SqliteQueue


class Tables(NamedTuple):
    """All there is, in the order of keys; in place of what the API said, its bytes as they lie there."""

    instance: list[InstanceRow]
    player: list[PlayerRow]
    instance_player: list[InstancePlayerRow]
    instance_character: list[CharacterRow]
    instance_character_weapon: list[WeaponRow]
    player_stats: list[StatsRow]
    raw_instance: list[RawRow]


class Place(NamedTuple):
    """Where instances are stored for a test. Each `opens` is another user of the same place."""

    opens: Callable[[], AbstractAsyncContextManager[Instances]]
    tables: Callable[[], Awaitable[Tables]]
    wipe: Callable[[], Awaitable[None]]
    sql: Callable[[str], Awaitable[None]]  # somebody who writes SQL by hand
    url: str


ROWS = (InstanceRow, PlayerRow, InstancePlayerRow, CharacterRow, WeaponRow, StatsRow, RawRow)
YES_OR_NO = {"completed", "fresh", "flawless", "finished"}
NOTHING = Tables([], [], [], [], [], [], [])


def as_rows(table: str, found: Iterable[Iterable[Any]]) -> list[Any]:
    """Rows of a table, whatever a database makes of numbers and times."""
    kind: Any = ROWS[Tables._fields.index(table)]
    return sorted(kind(*(_plain(name, value) for name, value in zip(kind._fields, row, strict=True))) for row in found)


def _plain(name: str, value: object) -> object:
    match value:
        case datetime():
            return value.timestamp()
        case list():
            return tuple(value)
        case int() if name in YES_OR_NO:
            return bool(value)
        case str() if name == "skull_hashes":
            return tuple(json.loads(value))
    return value


def expected(kept: list[InstanceRows]) -> Tables:
    """What the tables should hold, apart from what the API said."""
    kept = sorted(kept)
    return Tables(
        [each.instance for each in kept],
        players_of(kept),
        sorted(row for each in kept for row in each.taken_part),
        sorted(row for each in kept for row in each.characters),
        sorted(row for each in kept for row in each.weapons),
        stats_of(kept),
        [],
    )


async def assert_holds(place: Place, kept: list[InstanceRows]) -> None:
    found = await place.tables()
    assert found._replace(raw_instance=[]) == expected(kept)
    assert [row.instance_id for row in found.raw_instance] == [each.instance.instance_id for each in sorted(kept)]


class InstancesContract:
    """A subclass has the fixture `place`."""

    @in_loop
    async def test_it_begins_with_nothing(self, place: Place) -> None:
        async with place.opens() as store:
            assert await store.counts() == InstanceCounts(0, 0, 0, 0, 0, 0)
            assert await store.latest() is None
            assert await store.raw(1) is None
            assert await store.keep([]) == InsertResult(0, 0)
        assert await place.tables() == NOTHING

    @in_loop
    async def test_all_rows_of_a_batch_are_there_when_it_is_opened_again(self, place: Place) -> None:
        batch = rows(*usual(60))
        async with place.opens() as store:
            assert await store.keep(batch) == InsertResult(60, 0)

        async with place.opens() as store:
            assert await store.counts() == InstanceCounts(60, 9, 360, 360, 720, 60)
            assert await store.latest() == 60
        await assert_holds(place, batch)

    @in_loop
    async def test_what_the_api_said_comes_back_byte_for_byte(self, place: Place) -> None:
        message = raid(5)
        async with place.opens() as store:
            await store.keep(rows(message))

            assert await store.raw(5) == bytes(message.raw)
            assert await store.raw(6) is None

    @in_loop
    async def test_what_another_store_has_is_not_stored_here(self, place: Place) -> None:
        (only,) = rows(raid(5))
        async with place.opens() as store:
            await store.keep([only._replace(raw=None)])

            assert await store.raw(5) is None
            assert (await store.counts()).instances == 1

    @in_loop
    async def test_an_api_without_players_has_rows_of_records_only(self, place: Place) -> None:
        def plain(api: str) -> Message:
            return Message("7", api, EPOCH + 9, Instance(instance_id="7", date_completed=EPOCH), Raw(b'{"a": [1.50]}'))

        async with place.opens() as store:
            assert await store.keep(rows(plain("json_ids"))) == InsertResult(1, 0)
            assert await store.keep(rows(plain("json_ids"), raid(6))) == InsertResult(1, 1)
            with pytest.raises(InstancesError, match="Give each API a store of its own"):
                await store.keep(rows(plain("another")))

            assert await store.raw(7) == b'{"a": [1.50]}'
            assert await store.latest() == 7
            assert (await store.counts()).records == 1
        await assert_holds(place, rows(raid(6)))

    @pytest.mark.parametrize("known", [True, False, None])
    @in_loop
    async def test_yes_no_and_unknown_stay_apart(self, place: Place, known: bool | None) -> None:  # noqa: FBT001 - a parameter
        async with place.opens() as store:
            await store.keep(rows(raid(1, fresh=known)))

        ((row,), *_) = await place.tables()
        assert row.fresh is known
        assert row.flawless is None

    # --- once ---

    @in_loop
    async def test_to_say_it_again_changes_nothing(self, place: Place) -> None:
        batch = rows(*usual(10))
        async with place.opens() as store:
            await store.keep(batch)
            assert await store.keep(batch[3:]) == InsertResult(0, 7)
        async with place.opens() as store:
            assert await store.keep([*batch, *rows(*usual(2, 11)), *batch]) == InsertResult(2, 20)

        await assert_holds(place, rows(*usual(12)))

    @in_loop
    async def test_twice_in_one_batch_is_once(self, place: Place) -> None:
        batch = rows(*usual(3))
        async with place.opens() as store:
            assert await store.keep(batch * 2) == InsertResult(3, 3)

        await assert_holds(place, batch)

    @in_loop
    async def test_if_the_api_changed_its_mind_the_first_counts(self, place: Place) -> None:
        first, second = raid(1, [member(1)]), raid(1, [member(1), member(2)], at=EPOCH + 5)
        async with place.opens() as store:
            await store.keep(rows(first))
            assert await store.keep(rows(second)) == InsertResult(0, 1)

            assert await store.raw(1) == bytes(first.raw)
        await assert_holds(place, rows(first))

    @in_loop
    async def test_the_id_of_another_api_is_no_copy(self, place: Place) -> None:
        async with place.opens() as store:
            await store.keep(rows(raid(1)))

            with pytest.raises(InstancesError, match="instance 1 of the API 'other' was not stored") as told:
                await store.keep(rows(raid(2, api="other"), raid(1, api="other")))
            assert told.value.fault is InstancesFault.REFUSED
            assert "has that id from 'bungie'" in str(told.value)
        await assert_holds(place, rows(raid(1)))

    # --- all or nothing ---

    @in_loop
    async def test_of_a_batch_with_a_row_that_is_refused_nothing_is_stored(self, place: Place) -> None:
        good, bad = rows(*usual(2))
        bad = bad._replace(weapons=bad.weapons + bad.weapons[-1:])
        async with place.opens() as store:
            for batch in ([good, bad], [bad]):
                with pytest.raises(InstancesError, match="refuses it") as told:
                    await store.keep(batch)
                assert told.value.fault is InstancesFault.REFUSED
                assert not told.value.transient
            assert await place.tables() == NOTHING

            assert await store.keep([good]) == InsertResult(1, 0)

    @in_loop
    async def test_a_number_that_no_column_holds_is_refused(self, place: Place) -> None:
        (only,) = rows(raid(1))
        async with place.opens() as store:
            with pytest.raises(InstancesError, match="refuses it") as told:
                await store.keep([only._replace(instance=only.instance._replace(activity_hash=2**63))])

            assert told.value.fault is InstancesFault.REFUSED

    @in_loop
    async def test_the_largest_numbers_are_held(self, place: Place) -> None:
        largest = raid(
            2**63 - 1, [member(2**63 - 1 - 4_611_686_018_400_000_000, seconds=2**31 - 1)], at=4_294_967_000.0
        )
        async with place.opens() as store:
            await store.keep(rows(largest))

            assert await store.latest() == 2**63 - 1
        await assert_holds(place, rows(largest))

    # --- players ---

    @pytest.mark.parametrize("turned", [False, True])
    @in_loop
    async def test_the_name_seen_last_counts_whichever_came_last(self, place: Place, turned: bool) -> None:  # noqa: FBT001 - a parameter
        old, new = raid(1, [member(1, seen=EPOCH, name="old")]), raid(2, [member(1, seen=EPOCH + 1, name="new")])
        async with place.opens() as store:
            for message in (new, old) if turned else (old, new):
                await store.keep(rows(message))

        assert [row.display_name for row in (await place.tables()).player] == ["new"]

    @pytest.mark.parametrize(
        "name", ["Ω \N{WAVING HAND SIGN}", "it's; --", '"', "\\", "\n", "{1,2}", "x" * 100_000, "NULL"]
    )
    @in_loop
    async def test_odd_names_are_only_names(self, place: Place, name: str) -> None:
        async with place.opens() as store:
            await store.keep(rows(raid(1, [member(1, name=name)])))

        assert [row.display_name for row in (await place.tables()).player] == [name]

    # --- statistics ---

    @in_loop
    async def test_statistics_add_up_what_a_player_has_done(self, place: Place) -> None:
        raids = [
            raid(1, [member(1, seconds=10)], at=EPOCH + 1, seconds=900),
            raid(2, [member(1, seconds=20)], at=EPOCH + 2, seconds=700),
            raid(3, [member(1, seconds=30)], at=EPOCH + 3, seconds=100, fresh=None),
            raid(4, [member(1, seconds=40)], at=EPOCH + 4, seconds=100, fresh=False),
            raid(5, [member(1, seconds=50, finished=False)], at=EPOCH, seconds=50),
            raid(6, [member(1, seconds=60)], at=EPOCH + 6, seconds=50, activity=8),
            raid(7, [member(1, seconds=70)], at=EPOCH + 7, activity=None),
        ]
        async with place.opens() as store:
            await store.keep(rows(*raids))

        who = int(member(1).membership_id)
        assert (await place.tables()).player_stats == [
            StatsRow(who, 8, 1, 1, 0, 60, 50, 6, EPOCH + 6, 6),
            StatsRow(who, ACTIVITY, 4, 2, 0, 150, 700, 2, EPOCH + 1, 1),
        ]

    @pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 3, 1), (2, 1, 3), (1, 3, 2), (3, 1, 2)])
    @in_loop
    async def test_who_has_finished_before_leads_those_who_have_not(self, place: Place, order: list[int]) -> None:
        raids = {
            1: raid(1, [member(1), member(2, finished=False)], at=EPOCH + 1),
            2: raid(2, [member(1), member(2), member(3)], at=EPOCH + 2),
            3: raid(3, [member(1), member(2), member(4), member(5, finished=False)], at=EPOCH + 3),
        }
        async with place.opens() as store:
            for number in order:
                await store.keep(rows(raids[number]))

        led = [row.sherpas for row in (await place.tables()).player_stats]
        assert led == [2 + 1, 1, 0, 0, 0]

    def test_no_order_and_no_copies_change_what_is_there_in_the_end(self, place: Place) -> None:
        @settings(max_examples=40)
        @given(SOME_RAIDS, st.data())
        def play(raids: list[Message], data: st.DataObject) -> None:
            everything = rows(*raids)
            arrivals = data.draw(st.permutations([*everything, *everything[:3]]))
            cuts = sorted(data.draw(st.lists(st.integers(0, len(arrivals)), max_size=4)))
            batches = [arrivals[low:high] for low, high in zip([0, *cuts], [*cuts, None], strict=True)]
            asyncio.run(store_all(everything, batches))

        async def store_all(everything: list[InstanceRows], batches: list[list[InstanceRows]]) -> None:
            async with place.opens() as store:
                await place.wipe()
                for batch in batches:
                    await store.keep(batch)
            await assert_holds(place, everything)

        play()

    # --- several at once ---

    @in_loop
    async def test_two_at_once_neither_wait_for_each_other_for_ever_nor_count_twice(self, place: Place) -> None:
        everything = rows(*usual(120))

        async def store(batches: list[list[InstanceRows]]) -> int:
            async with place.opens() as one:
                return sum([(await one.keep(batch)).new for batch in batches])

        upwards = [everything[low : low + 30] for low in range(0, 100, 10)]
        downwards = [batch[::-1] for batch in upwards[::-1]]
        async with asyncio.timeout(300), asyncio.TaskGroup() as group:
            tasks = [group.create_task(store(batches)) for batches in (upwards, downwards, upwards)]

        assert sum(task.result() for task in tasks) == 120
        await assert_holds(place, everything)

    @in_loop
    async def test_one_store_takes_many_batches_at_once(self, place: Place) -> None:
        everything = rows(*usual(80))
        async with place.opens() as store, asyncio.TaskGroup() as group:
            for low in range(0, 80, 5):
                group.create_task(store.keep(everything[low : low + 10]))

        await assert_holds(place, everything)

    # --- killed ---

    def test_who_was_killed_before_the_letters_were_done_stores_them_once(self, place: Place, tmp_path: Path) -> None:
        raids, path = usual(3 * BATCH), tmp_path / "queue.db"

        async def publish() -> None:
            queue = SqliteQueue(path, SystemClock())
            await queue.publish([letter(each) for each in raids])
            await queue.close()

        async def store() -> None:
            assert len((await place.tables()).instance) == BATCH, "they were stored when it was killed"
            queue = SqliteQueue(path, SystemClock())
            workers = await store_letters(queue, place.url, 3 * BATCH)
            assert (workers.tally.stored, workers.tally.duplicates) == (2 * BATCH, BATCH)
            assert await queue.depth() == Depth(0, 0, 0, 0)
            await queue.close()
            await assert_holds(place, rows(*raids))

        asyncio.run(publish())
        killed([storing.__file__, place.url, path], after=1)
        asyncio.run(store())

    def test_a_batch_is_whole_or_not_there_whenever_it_is_killed(self, place: Place) -> None:
        async def batches() -> int:
            found, rest = divmod(len((await place.tables()).instance), BATCH)
            assert rest == 0
            await assert_holds(place, rows(*usual(found * BATCH)))
            return found

        stored = 0
        for after in (1, 3, 2):
            killed([storing.__file__, place.url], after=after)

            before, stored = stored, asyncio.run(batches())
            assert stored >= before + after

    @in_loop
    async def test_a_table_that_is_gone_is_not_the_letters_fault(self, place: Place) -> None:
        """Or all of them would be buried, one after the other."""
        async with place.opens() as store:
            await place.sql("DROP TABLE player_stats")

            with pytest.raises(InstancesError, match="player_stats") as told:
                await store.keep(rows(*usual(1)))
            assert told.value.fault is InstancesFault.DOWN
            assert (await store.counts()).instances == 0
