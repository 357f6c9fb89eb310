"""The tables of a replay in ClickHouse: `repo_records`, and what must be known of them to load each thing once.

Of each repo `repo_records` has what was crawled last. The rows of an earlier crawl are removed at the end of a run, and
not only replaced, since the newer one may no longer have them. Which crawls of a repo were loaded is in
`repo_versions`, one row for each pattern of collections that was asked for: a crawl of which only some collections were
loaded says nothing about the others.
"""

# ruff: noqa: S608 - all names are ours, all values are parameters

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sanderling.extras import load
from sanderling.repos.replay import ReplayBatch, ReplaySegment
from sanderling.stores.clickhouse import REPO_RECORDS, Clickhouse, ClickhouseError

LOADED = """
CREATE TABLE IF NOT EXISTS repo_segments_loaded (
    segment String,
    size UInt64,
    index_crc UInt32,
    collections String,
    records UInt64,
    loaded_at DateTime64(6) DEFAULT now64(6)
) ENGINE = ReplacingMergeTree(loaded_at)
ORDER BY (segment, size, index_crc, collections)
"""
VERSIONS = """
CREATE TABLE IF NOT EXISTS repo_versions (
    repo String,
    collections String,
    time_us Int64
) ENGINE = ReplacingMergeTree
ORDER BY (repo, collections, time_us)
"""
# What an earlier release has loaded, of which only the rows tell.
TAKE_UP = """
INSERT INTO repo_versions SELECT DISTINCT repo, collection, time_us FROM repo_records
WHERE (SELECT count() FROM repo_versions) = 0
"""
SEVERAL = "SELECT repo FROM repo_versions GROUP BY repo HAVING min(time_us) < max(time_us)"
# The crawls of a repo that are older than the newest that was asked for these collections.
OLDER = f"""
SELECT repo, newest.collections, time_us FROM repo_versions INNER JOIN (
    SELECT repo, collections, max(time_us) AS time_us FROM repo_versions
    WHERE repo IN ({SEVERAL}) AND {{}} GROUP BY repo, collections
) AS newest USING (repo) WHERE repo_versions.time_us < newest.time_us
"""
PAUSE = 0.2  # seconds between two looks at whether rows are removed


class ClickhouseSink:
    """The table `repo_records`, and those beside it; they are made if they are not there.

    Of several processes that insert, one makes them, before the others begin.
    """

    def __init__(self, store: Clickhouse, *, make: bool = True) -> None:
        self._store = store
        for statement in (REPO_RECORDS, LOADED, VERSIONS, TAKE_UP) if make else ():
            store.execute(statement)

    @property
    def by_month(self) -> bool:
        """Whether an earlier release has made the table: every month that a record names has a partition there."""
        ((key,),) = self._store.rows(
            "SELECT partition_key FROM system.tables WHERE database = currentDatabase() AND name = 'repo_records'"
        )
        return str(key).startswith("toYYYYMM")

    def has(self, segment: ReplaySegment) -> bool:
        """Whether all of it was loaded before, in these collections or in all."""
        ((found,),) = self._store.rows(
            "SELECT count() FROM repo_segments_loaded WHERE segment = {name:String} AND size = {size:UInt64} "
            "AND index_crc = {index_crc:UInt32} AND collections IN ('', {collections:String})",
            **segment._asdict(),
        )
        return bool(found)

    @contextmanager
    def loading(self, segment: ReplaySegment) -> Iterator["_Inserted"]:
        """Insert its rows, and remember it when they are all there."""
        loading = _Inserted(self._store, segment.collections.split(","))
        yield loading
        if loading.complete:
            self._store.execute(
                "INSERT INTO repo_segments_loaded (segment, size, index_crc, collections, records) VALUES "
                "({name:String}, {size:UInt64}, {index_crc:UInt32}, {collections:String}, {records:UInt64})",
                **segment._asdict(),
                records=loading.records,
            )

    def remove_superseded(self) -> int:
        """Remove the rows of earlier crawls of repos of which a newer one was loaded; how many they were."""
        if not self._store.rows(f"{SEVERAL} LIMIT 1"):
            return 0
        found = self._store.rows("SELECT DISTINCT collections FROM repo_versions WHERE endsWith(collections, '*')")
        beginnings = {f"beginning{number}": pattern for number, (pattern,) in enumerate(found)}
        superseded = _superseded(list(beginnings))
        ((rows,),) = self._store.rows(f"SELECT count() FROM repo_records WHERE {superseded}", **beginnings)
        if rows:
            self._store.execute(f"ALTER TABLE repo_records DELETE WHERE {superseded}", **beginnings)
            self._wait()
        everything = OLDER.format("collections = ''")
        self._store.execute(
            f"ALTER TABLE repo_versions DELETE WHERE (repo, time_us) IN (SELECT repo, time_us FROM ({everything}))"
        )
        return int(rows)

    def _wait(self) -> None:
        """Return when the rows are gone: of a large table that takes longer than a server may take to answer."""
        while pending := self._store.rows(
            "SELECT latest_fail_reason FROM system.mutations "
            "WHERE database = currentDatabase() AND table = 'repo_records' AND NOT is_done"
        ):
            for (reason,) in pending:
                if reason:
                    raise ClickhouseError(f"{self._store.place}: cannot remove rows of earlier crawls: {reason[:300]}")
            threading.Event().wait(PAUSE)


def _superseded(beginnings: list[str]) -> str:
    """Whether a row is of a crawl that a newer one replaces: a condition; `beginnings` are parameters with patterns."""
    whole, named = OLDER.format("collections = ''"), OLDER.format("NOT endsWith(collections, '*')")
    conditions = [
        f"(repo, time_us) IN (SELECT repo, time_us FROM ({whole}))",
        f"(repo, collection, time_us) IN ({named})",
    ]
    for name in beginnings:
        pattern = f"{{{name}:String}}"
        older = OLDER.format(f"collections = {pattern}")
        conditions.append(
            f"(startsWith(collection, trimRight({pattern}, '*')) "
            f"AND (repo, time_us) IN (SELECT repo, time_us FROM ({older})))"
        )
    return " OR ".join(conditions)


class _Inserted:
    def __init__(self, store: Clickhouse, patterns: list[str]) -> None:
        self._store = store
        self._patterns = patterns  # [""] for all collections
        self.complete = False
        self.records = 0

    def write(self, batch: ReplayBatch) -> None:
        """Insert the rows, then which crawls they are of: if that fails, the segment is loaded again."""
        pa = load("pyarrow", "ClickHouse")
        create = pa.repeat(pa.scalar(1, pa.int8()), batch.rows.num_rows)  # as the table numbers it
        if batch.rows.num_rows:
            self._store.insert("repo_records", batch.rows.append_column("operation", create))
        if batch.versions:
            self._store.insert("repo_versions", self._versions(pa, batch))
        self.records += batch.rows.num_rows

    def _versions(self, pa: Any, batch: ReplayBatch) -> Any:  # noqa: ANN401 - pyarrow has no types
        versions = [(repo, pattern, at) for repo, at in batch.versions for pattern in self._patterns]
        repos, patterns, times = zip(*versions, strict=True)
        columns = {"repo": pa.array(repos), "collections": pa.array(patterns), "time_us": pa.array(times, pa.int64())}
        return pa.table(columns)
