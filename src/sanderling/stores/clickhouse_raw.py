"""What an API said, in ClickHouse: a server, or the engine in our own process.

Of two answers about one id the later counts, whichever came first. An insert makes a part on disk, however small it is:
hand over many rows at once.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from sanderling.executor import in_threads
from sanderling.extras import load
from sanderling.stores.clickhouse import Clickhouse, ClickhouseError
from sanderling.stores.instances import InstancesError, InstancesFault, RawRow

RAW_INSTANCE = """
CREATE TABLE IF NOT EXISTS raw_instance (
    instance_id Int64,
    data String CODEC(ZSTD(3)),
    crawled DateTime64(6)
) ENGINE = ReplacingMergeTree(crawled)
ORDER BY instance_id
"""

T = TypeVar("T")


class ClickhouseRaw:
    """The table `raw_instance`, made where there is none. Its work is done in a thread of its own."""

    def __init__(self, clickhouse: Clickhouse) -> None:
        self._clickhouse = clickhouse
        self._thread = ThreadPoolExecutor(1, "raw")
        self._executor = in_threads(self._thread)

    async def open(self) -> None:
        """Make the table."""
        await self._apart(self._clickhouse.execute, RAW_INSTANCE)

    async def keep(self, batch: Sequence[RawRow]) -> None:
        if batch:
            await self._apart(self._insert, batch)

    def _insert(self, batch: Sequence[RawRow]) -> None:
        pa = load("pyarrow", "ClickHouse")  # here: an extra, and slow to load
        ids, data, crawled = zip(*batch, strict=True)
        times = pa.array([round(1e6 * seconds) for seconds in crawled], pa.timestamp("us", "UTC"))
        table = {"instance_id": pa.array(ids, pa.int64()), "data": pa.array(data, pa.large_binary()), "crawled": times}
        self._clickhouse.insert("raw_instance", pa.table(table))

    async def raw(self, instance_id: int) -> bytes | None:
        # As hexadecimal digits: the client takes every String for text.
        query = "SELECT hex(data) FROM raw_instance FINAL WHERE instance_id = {id:Int64}"
        rows = await self._apart(lambda: self._clickhouse.rows(query, id=instance_id))
        return bytes.fromhex(rows[0][0]) if rows else None

    async def close(self) -> None:
        await self._apart(self._clickhouse.close)
        self._thread.shutdown()

    async def _apart(self, work: Callable[..., T], *arguments: Any) -> T:  # noqa: ANN401 - whatever `work` takes
        try:
            return await self._executor(work, *arguments)
        except ClickhouseError as error:
            # It takes any bytes: whatever it objects to is not in them.
            raise InstancesError(str(error), InstancesFault.DOWN) from error

    def __repr__(self) -> str:
        return f"<ClickhouseRaw {self._clickhouse.place}>"
