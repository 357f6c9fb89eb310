"""What the API said, in the engine in this process and over HTTP."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from looping import in_loop
from raids import letter, usual
from storing import store_letters

from sanderling.clock import SystemClock
from sanderling.stores.clickhouse import open_clickhouse
from sanderling.stores.clickhouse_raw import ClickhouseRaw
from sanderling.stores.instances import InstancesError, InstancesFault, RawRow
from sanderling.stores.instances_store import open_sqlite_instances
from sanderling.stores.sqlite_queue import SqliteQueue

Opens = Callable[[], AbstractAsyncContextManager[ClickhouseRaw]]
CRAWLED = 1_800_000_000.123457


@pytest.fixture
def opens(clickhouse_url: str) -> Opens:
    return lambda: opened(clickhouse_url)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[ClickhouseRaw]:
    store = ClickhouseRaw(open_clickhouse(url, {}))
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@in_loop
async def test_what_was_stored_comes_back_byte_for_byte_when_it_is_opened_again(opens: Opens) -> None:
    odd = [b'{"a": "\xc3\xa9"}', b"", bytes(range(256)), b"x" * 2_000_000, b"\\N", b"'"]
    batch = [RawRow(number, data, CRAWLED) for number, data in enumerate(odd)]
    async with opens() as store:
        await store.keep(batch)

    async with opens() as store:
        assert [await store.raw(number) for number in range(len(odd))] == odd
        assert await store.raw(99) is None


@in_loop
async def test_to_say_it_again_changes_nothing(opens: Opens) -> None:
    batch = [RawRow(number, b"{}", CRAWLED) for number in range(50)]
    async with opens() as store:
        for again in (batch, batch[20:], []):
            await store.keep(again)

        assert store._clickhouse.rows("SELECT count() FROM raw_instance FINAL") == [(50,)]


@in_loop
async def test_of_two_answers_the_later_counts_whichever_came_first(opens: Opens) -> None:
    async with opens() as store:
        await store.keep([RawRow(1, b"new", CRAWLED + 1e-6)])
        await store.keep([RawRow(1, b"old", CRAWLED), RawRow(2**63 - 1, b"largest", 0)])

        assert await store.raw(1) == b"new"
        assert await store.raw(2**63 - 1) == b"largest"


@in_loop
async def test_the_table_is_one_that_others_can_read(opens: Opens) -> None:
    async with opens() as store:
        await store.keep([RawRow(1, b"{}", CRAWLED)])

        ((engine, sorting),) = store._clickhouse.rows(
            "SELECT engine_full, sorting_key FROM system.tables WHERE database = currentDatabase()"
        )
        columns = store._clickhouse.rows(
            "SELECT name, type, compression_codec FROM system.columns WHERE table = 'raw_instance' "
            "AND database = currentDatabase() ORDER BY position"
        )
        ((crawled,),) = store._clickhouse.rows("SELECT toUnixTimestamp64Micro(crawled) FROM raw_instance")
    assert engine.startswith("ReplacingMergeTree(crawled)")
    assert sorting == "instance_id"
    assert columns == [
        ("instance_id", "Int64", ""),
        ("data", "String", "CODEC(ZSTD(3))"),
        ("crawled", "DateTime64(6)", ""),
    ]
    assert crawled == 1_800_000_000_123_457


@in_loop
async def test_many_batches_at_once_are_all_stored(opens: Opens) -> None:
    async with opens() as store:
        async with asyncio.TaskGroup() as group:
            for low in range(0, 40, 5):
                group.create_task(store.keep([RawRow(number, b"{}", CRAWLED) for number in range(low, low + 10)]))

        assert store._clickhouse.rows("SELECT count() FROM raw_instance FINAL") == [(45,)]


@in_loop
async def test_whatever_it_objects_to_is_not_the_letters_fault(opens: Opens) -> None:
    async with opens() as store:
        store._clickhouse.execute("DROP TABLE raw_instance")

        with pytest.raises(InstancesError, match="raw_instance") as told:
            await store.keep([RawRow(1, b"{}", CRAWLED)])

        assert told.value.fault is InstancesFault.DOWN


@in_loop
async def test_workers_store_there_what_the_api_said_and_the_rows_elsewhere(opens: Opens, tmp_path: Path) -> None:
    raids, queue = usual(50), SqliteQueue(tmp_path / "queue.db", SystemClock())
    await queue.publish([letter(each) for each in raids])
    async with opens() as store:
        tally = (await store_letters(queue, f"sqlite:{tmp_path / 'rows.db'}", 50, store)).tally

        assert tally.stored == 50
        assert [await store.raw(number) for number in (1, 50)] == [bytes(raids[0].raw), bytes(raids[49].raw)]
    await queue.close()
    rows = open_sqlite_instances(tmp_path / "rows.db")
    counts = await rows.counts()
    await rows.close()
    assert (counts.instances, counts.raw) == (50, 0)
